"""T1, T2, T2v, T2h and what is built on them, against enumeration and against each other."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tree_oracle import all_trees, graphs, random_scores

from spantree import zoo
from spantree.zoo._graph import clean_scores
from spantree.zoo.matrix_tree import invert
from spantree.zoo.t2 import second_order as t2_second_order
from spantree.zoo.t2h import pair_marginals
from spantree.zoo.t2h import second_order as t2h_second_order
from spantree.zoo.t2v import second_order as t2v_second_order

ROOTS = ("single", "multi")
SECOND_ORDER = (zoo.t2, zoo.t2v, zoo.t2h)


def edge_values(n, count, seed):
    """Random values, NaN where they must be ignored."""
    values = np.random.default_rng(seed).normal(size=(n + 1, n + 1, count))
    values[:, 0] = np.nan
    values[np.arange(n + 1), np.arange(n + 1)] = np.nan
    return values


@pytest.mark.parametrize("root", ROOTS)
def test_t1_is_the_expected_sum(root):
    for scores in graphs(root):
        r = edge_values(len(scores) - 1, 3, seed=1)
        trees = all_trees(scores, root)
        np.testing.assert_allclose(zoo.t1(scores, r, root=root), trees.probs @ trees.total(r), atol=1e-12)
        assert zoo.t1(scores, r[:, :, 1], root=root) == pytest.approx(zoo.t1(scores, r, root=root)[1])


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("algorithm", SECOND_ORDER)
def test_second_order_is_the_expected_outer_product(algorithm, root):
    for scores in graphs(root):
        n = len(scores) - 1
        r, s = edge_values(n, 3, seed=2), edge_values(n, 2, seed=3)
        trees = all_trees(scores, root)
        expected = np.einsum("t,tr,ts->rs", trees.probs, trees.total(r), trees.total(s))
        np.testing.assert_allclose(algorithm(scores, r, s, root=root), expected, atol=1e-11)
        np.testing.assert_allclose(algorithm(scores, r[:, :, 0], s, root=root), expected[0], atol=1e-11)
        np.testing.assert_allclose(algorithm(scores, r, s[:, :, 1], root=root), expected[:, 1], atol=1e-11)
        one = algorithm(scores, r[:, :, 0], s[:, :, 1], root=root)
        assert one.shape == ()
        assert one == pytest.approx(expected[0, 1], abs=1e-11)


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("algorithm", SECOND_ORDER)
def test_features_may_be_lists_of_what_is_not_zero(algorithm, root):
    """One-hot edges, and features of which an edge has at most two of seven."""
    for scores in graphs(root, sizes=(1, 3, 4)):
        n = len(scores) - 1
        rng = np.random.default_rng(7)
        values = np.where(rng.random((n + 1, n + 1, 7)) < 0.2, rng.normal(size=(n + 1, n + 1, 7)), 0.0)
        listed = zoo.EdgeFeatures(*np.nonzero(values), values[np.nonzero(values)], 7)
        trees = all_trees(scores, root)
        edges = np.eye((n + 1) ** 2).reshape(n + 1, n + 1, -1)
        for r, r_dense in ((listed, values), (zoo.edge_indicators(n), edges)):
            np.testing.assert_allclose(zoo.t1(scores, r, root=root), trees.probs @ trees.total(r_dense), atol=1e-12)
            for s, s_dense in ((listed, values), (zoo.edge_indicators(n), edges)):
                expected = np.einsum("t,tr,ts->rs", trees.probs, trees.total(r_dense), trees.total(s_dense))
                np.testing.assert_allclose(algorithm(scores, r, s, root=root), expected, atol=1e-11)


@pytest.mark.parametrize("root", ROOTS)
def test_totals_are_expectations_times_z(root):
    for scores in graphs(root, sizes=(2, 4)):
        n = len(scores) - 1
        r, s, q = edge_values(n, 3, seed=2), edge_values(n, 2, seed=3), edge_values(n, 2, seed=4)
        trees = all_trees(scores, root)
        weights = trees.probs * np.exp(trees.log_z)
        np.testing.assert_allclose(zoo.t1(scores, r, root=root, total=True), weights @ trees.total(r), atol=1e-10)
        products = np.prod(q[trees.heads[:, 1:], np.arange(1, n + 1)], axis=1)
        np.testing.assert_allclose(zoo.zeroth_order(scores, q, root=root, total=True), weights @ products, atol=1e-10)
        expected = np.einsum("t,tr,ts->rs", weights, trees.total(r), trees.total(s))
        for algorithm in SECOND_ORDER:
            np.testing.assert_allclose(algorithm(scores, r, s, root=root, total=True), expected, atol=1e-9)


@pytest.mark.parametrize("root", ROOTS)
def test_products_over_edges_are_those_of_enumeration(root):
    """Factors of both signs, zeros among them, a column of them large; vectors and single functions."""
    for scores in graphs(root):
        n = len(scores) - 1
        q = edge_values(n, 4, seed=5)
        q[:, :, 1] = np.abs(q[:, :, 1])
        q[:, :, 2] = np.where(q[:, :, 2] < 0.5, 0.0, q[:, :, 2])
        q[:, 1:2, 3] *= 1e200
        trees = all_trees(scores, root)
        products = np.prod(q[trees.heads[:, 1:], np.arange(1, n + 1)], axis=1)
        scale = trees.probs @ np.abs(products)
        found = zoo.zeroth_order(scores, q, root=root)
        assert (np.abs(found - trees.probs @ products) <= 1e-12 * scale).all()
        assert zoo.zeroth_order(scores, q[:, :, 1], root=root) == found[1]
    with pytest.raises(ValueError, match="shape"):
        zoo.zeroth_order(np.zeros((3, 3)), np.ones((2, 2)))
    with pytest.raises(ValueError, match="0 -> 1 is not finite"):
        zoo.zeroth_order(np.zeros((3, 3)), np.full((3, 3), np.inf))


@pytest.mark.parametrize("root", ROOTS)
def test_the_adjugate_knows_the_gradient_where_there_is_no_tree(root):
    """dZ/dw of an edge, also of a missing one: the weight of its trees if it weighed 1, by enumeration."""
    singular = 0
    for seed in range(60):
        scores = random_scores(4, seed, forbid=0.6)
        theta = clean_scores(scores)
        trees = zoo.enumerate_trees(4, root=root)
        weights = np.exp(theta)[trees[:, 1:], np.arange(1, 5)]
        z, gradient = zoo.adjugate_gradient(scores, root=root)
        assert z == pytest.approx(weights.prod(axis=1).sum(), abs=1e-12)
        singular += z == pytest.approx(0.0, abs=1e-13)
        for word in range(1, 5):
            others = np.delete(weights, word - 1, axis=1).prod(axis=1)
            for head in set(range(5)) - {word}:
                expected = others[trees[:, word] == head].sum()
                assert gradient[head, word] == pytest.approx(expected, abs=1e-11)
        assert not gradient[:, 0].any()
        assert not gradient.diagonal().any()
    assert 10 < singular < 60
    assert zoo.adjugate_gradient([[0.0]], root=root)[0] == 1.0
    ordinary = random_scores(6, seed=1)
    z, gradient = zoo.adjugate_gradient(ordinary, root=root)
    log_z, marginals = zoo.matrix_tree(ordinary, root=root)
    assert np.log(z) == pytest.approx(log_z)
    np.testing.assert_allclose(np.exp(clean_scores(ordinary)) * gradient / z, marginals, atol=1e-12)


@pytest.mark.parametrize("root", ROOTS)
def test_gradients_of_entropy_divergences_and_risk_are_those_of_enumeration(root):
    """d E[f] / d score of an edge = E[f 1] - E[f] E[1] + E[df], the last 0 for entropy and divergences of p."""
    for seed, scores in enumerate(graphs(root, sizes=(1, 3, 4))):
        n = len(scores) - 1
        other = random_scores(n, seed=100 + seed)
        p, q = all_trees(scores, root), all_trees(other, root)
        q_of_p = q.probs[q.index(p.heads)]
        gold = zoo.enumerate_trees(n, root="multi")[-1]
        wrong = (p.heads[:, 1:] != gold[1:]).mean(axis=1)
        marginals, q_marginals = p.marginals(), q.marginals()

        def covariance(f, p=p, marginals=marginals):
            joint = np.zeros_like(marginals)
            for tree, weight in zip(p.heads, p.probs * f, strict=True):
                joint[tree[1:], np.arange(1, len(tree))] += weight
            return joint - (p.probs @ f) * marginals

        for f, found in (
            (-np.log(p.probs), zoo.entropy_gradient(scores, root=root)),
            (np.log(p.probs / q_of_p), zoo.kl_gradient(scores, other, root=root)),
            (-np.log(q_of_p), zoo.cross_entropy_gradient(scores, other, root=root)),
            (wrong, zoo.risk_gradient(scores, gold, root=root)),
        ):
            assert found[0] == pytest.approx(p.probs @ f, abs=1e-11)
            np.testing.assert_allclose(found[1], covariance(f), atol=1e-11)
            if len(found) == 3:
                np.testing.assert_allclose(found[2], q_marginals - marginals, atol=1e-12)
        assert zoo.cross_entropy(scores, other, root=root) == pytest.approx(-(p.probs @ np.log(q_of_p)), abs=1e-11)
    assert zoo.risk_gradient([[0.0]], [-1])[0] == 0.0


@pytest.mark.parametrize("root", ROOTS)
def test_the_gradient_by_the_other_distribution_is_the_slope(root):
    p, q = random_scores(4, seed=1), random_scores(4, seed=2)
    for value, gradient in (
        (zoo.kl, zoo.kl_gradient(p, q, root=root)[2]),
        (zoo.cross_entropy, zoo.cross_entropy_gradient(p, q, root=root)[2]),
    ):
        for edge in ((0, 1), (2, 3), (4, 1)):
            up, down = q.copy(), q.copy()
            up[edge] += 1e-5
            down[edge] -= 1e-5
            slope = (value(p, up, root=root) - value(p, down, root=root)) / 2e-5
            assert gradient[edge] == pytest.approx(slope, abs=1e-8)
    forbidding = q.copy()
    forbidding[0, 1] = -np.inf
    assert zoo.cross_entropy(p, forbidding, root=root) == np.inf
    for gradients in (zoo.kl_gradient, zoo.cross_entropy_gradient):
        with pytest.raises(ValueError, match="0 -> 1"):
            gradients(p, forbidding, root=root)


def test_kl_of_scores_whose_weights_underflow():
    p = np.zeros((3, 3))
    q = np.zeros((3, 3))
    q[0, 1] = -2000.0
    assert zoo.kl(p, q) == pytest.approx(0.5 * 2000.0 - np.log(2), rel=1e-12)


@pytest.mark.parametrize("root", ROOTS)
def test_labelled_risk_and_its_gradient_are_those_of_enumeration(root):
    n, labels = 3, 2
    scores = np.random.default_rng(12).normal(size=(n + 1, n + 1, labels))
    scores[2, 1, 0] = scores[0, 3, 0] = scores[0, 3, 1] = -np.inf
    scores[:, 0] = np.nan
    gold, names = [-1, 2, 0, 1], [-1, 1, 0, 1]
    total, risk = 0.0, 0.0
    sums, weighted = np.zeros(scores.shape), np.zeros(scores.shape)
    for heads in zoo.enumerate_trees(n, root=root):
        for labelling in itertools.product(range(labels), repeat=n):
            edges = [(heads[j], j, labelling[j - 1]) for j in range(1, n + 1)]
            weight = np.exp(sum(scores[edge] for edge in edges))
            wrong = np.mean([(edge[0], edge[2]) != (gold[edge[1]], names[edge[1]]) for edge in edges])
            total += weight
            risk += weight * wrong
            for edge in edges:
                sums[edge] += weight
                weighted[edge] += weight * wrong
    assert zoo.labelled_risk(scores, gold, names, root=root) == pytest.approx(risk / total, abs=1e-13)
    value, gradient = zoo.labelled_risk_gradient(scores, gold, names, root=root)
    assert value == pytest.approx(risk / total, abs=1e-13)
    np.testing.assert_allclose(gradient, weighted / total - risk / total * sums / total, atol=1e-13)
    assert zoo.labelled_risk(np.zeros((1, 1, 2)), [-1], [-1]) == 0.0
    for bad in ([-1, 0, 0, 2], [-1, 0]):
        with pytest.raises(ValueError, match="labels"):
            zoo.labelled_risk(scores, gold, bad, root=root)
    with pytest.raises(ValueError, match="shape"):
        zoo.labelled_risk(scores[:, :, 0], gold, names, root=root)


@pytest.mark.parametrize("second_order", [t2_second_order, t2v_second_order, t2h_second_order])
def test_generalized_expectation_by_each_second_order_algorithm(second_order):
    scores = random_scores(6, seed=5)
    f, target = edge_values(6, 4, seed=6), np.ones(4)
    expected = zoo.generalized_expectation_druck_smith(scores, f, target)
    found = zoo.generalized_expectation(scores, f, target, second_order=second_order)
    assert found[0] == expected[0]
    np.testing.assert_allclose(found[1], expected[1], atol=1e-12)


@pytest.mark.parametrize("root", ROOTS)
def test_second_order_algorithms_agree_on_a_long_sentence(root):
    scores = random_scores(25, seed=4)
    r, s = edge_values(25, 4, seed=5), edge_values(25, 3, seed=6)
    reference = zoo.t2(scores, r, s, root=root)
    np.testing.assert_allclose(zoo.t2v(scores, r, s, root=root), reference, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(zoo.t2h(scores, r, s, root=root), reference, rtol=1e-11, atol=1e-11)


def test_values_where_no_tree_passes_count_as_zero():
    """Edge 2 -> 1 is allowed but in no tree; its marginal by the inverse need not be exactly 0."""
    scores = np.array([[0, 0.3, -np.inf, 0.1], [0, 0, 0.7, 1.1], [0, 0.2, 0, 0.4], [0, -np.inf, -np.inf, 0]])
    r = np.ones((4, 4))
    r[2, 1] = r[3, 2] = r[0, 2] = -np.inf
    for root in ROOTS:
        assert zoo.t1(scores, r, root=root) == pytest.approx(3.0)
        for algorithm in SECOND_ORDER:
            assert algorithm(scores, r, r, root=root) == pytest.approx(9.0)
    r[1, 2] = -np.inf
    assert zoo.t1(scores, r, root="multi") == -np.inf
    for algorithm in SECOND_ORDER:
        with pytest.raises(ValueError, match="1 -> 2"):
            algorithm(scores, r, np.ones((4, 4)), root="multi")
    r[1, 2] = np.nan
    with pytest.raises(ValueError, match="1 -> 2 is NaN"):
        zoo.t1(scores, r, root="multi")
    with pytest.raises(ValueError, match="shape"):
        zoo.t1(scores, np.ones((3, 3)))


@pytest.mark.parametrize("root", ROOTS)
def test_entropy_both_ways_is_that_of_enumeration(root):
    for scores in graphs(root):
        probs = all_trees(scores, root).probs
        expected = -(probs @ np.log(probs))
        assert zoo.entropy(scores, root=root) == pytest.approx(expected, abs=1e-11)
        assert zoo.entropy_smith_eisner(scores, root=root) == pytest.approx(expected, abs=1e-11)
    long = random_scores(30, seed=8)
    assert zoo.entropy(long, root=root) == pytest.approx(zoo.entropy_smith_eisner(long, root=root), rel=1e-11)


@pytest.mark.parametrize("root", ROOTS)
def test_entropy_does_not_depend_on_an_offset(root):
    scores = random_scores(5, seed=9)
    moved = scores + 1e6
    assert zoo.entropy(moved, root=root) == pytest.approx(zoo.entropy(scores, root=root), abs=1e-8)


@pytest.mark.parametrize("root", ROOTS)
def test_kl_is_that_of_enumeration(root):
    for seed, scores in enumerate(graphs(root)):
        other = random_scores(len(scores) - 1, seed=100 + seed)
        p, q = all_trees(scores, root), all_trees(other, root)
        q_of_p = q.probs[q.index(p.heads)]
        expected = p.probs @ np.log(p.probs / q_of_p)
        assert zoo.kl(scores, other, root=root) == pytest.approx(expected, abs=1e-11)
        assert zoo.kl(scores, scores, root=root) == 0.0


@pytest.mark.parametrize("root", ROOTS)
def test_kl_with_differing_supports_is_infinite_and_never_nan(root):
    sparse = list(graphs(root, sizes=(3, 4)))
    infinite = finite = 0
    for p_scores in sparse:
        for q_scores in sparse:
            if p_scores.shape != q_scores.shape:
                continue
            p, q = all_trees(p_scores, root), all_trees(q_scores, root)
            value = zoo.kl(p_scores, q_scores, root=root)
            if (q.index(p.heads) < 0).any():
                assert value == np.inf
                infinite += 1
            else:
                assert np.isfinite(value)
                assert value > -1e-12
                finite += 1
    assert infinite > 5
    assert finite > 5
    with pytest.raises(ValueError, match="differ in size"):
        zoo.kl(np.zeros((3, 3)), np.zeros((4, 4)))


@pytest.mark.parametrize("root", ROOTS)
def test_risk_is_the_expected_share_of_wrong_heads(root):
    for scores in graphs(root):
        trees = all_trees(scores, root)
        gold = zoo.enumerate_trees(len(scores) - 1, root="multi")[-1]
        expected = trees.probs @ (trees.heads[:, 1:] != gold[1:]).mean(axis=1)
        assert zoo.risk(scores, gold, root=root) == pytest.approx(expected, abs=1e-12)
    with pytest.raises(ValueError, match="gold"):
        zoo.risk(np.zeros((3, 3)), [-1, 0])
    with pytest.raises(ValueError, match="gold"):
        zoo.risk(np.zeros((3, 3)), [-1, 0, 3])


@pytest.mark.parametrize("root", ROOTS)
def test_generalized_expectation_gradient(root):
    """Against finite differences and against the covariance way of Druck and Smith."""
    for scores in graphs(root, sizes=(1, 3, 4)):
        n = len(scores) - 1
        f = edge_values(n, 3, seed=11)
        target = np.array([0.5, -1.0, 0.2])
        trees = all_trees(scores, root)
        gap = trees.probs @ trees.total(f) - target
        value, gradient = zoo.generalized_expectation(scores, f, target, root=root)
        assert value == pytest.approx(0.5 * gap @ gap)
        old_value, old_gradient = zoo.generalized_expectation_druck_smith(scores, f, target, root=root)
        assert old_value == value
        np.testing.assert_allclose(old_gradient, gradient, atol=1e-12)
        for head in range(n + 1):
            for dependent in range(1, n + 1):
                if head == dependent or scores[head, dependent] == -np.inf:
                    assert gradient[head, dependent] == 0.0
                    continue
                values = []
                for step in (1e-5, -1e-5):
                    moved = scores.copy()
                    moved[head, dependent] += step
                    values.append(zoo.generalized_expectation(moved, f, target, root=root)[0])
                assert gradient[head, dependent] == pytest.approx((values[0] - values[1]) / 2e-5, abs=1e-8)
    with pytest.raises(ValueError, match="target"):
        zoo.generalized_expectation(np.zeros((2, 2)), np.zeros((2, 2)), [1.0])


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("order", [0.0, 0.3, 1.0, 2.0, 3.5])
def test_renyi_entropy_and_norm_are_those_of_enumeration(order, root):
    for scores in graphs(root):
        probs = all_trees(scores, root).probs
        shannon = -(probs @ np.log(probs))
        expected = shannon if order == 1.0 else np.log((probs**order).sum()) / (1 - order)
        assert zoo.renyi_entropy(scores, order, root=root) == pytest.approx(expected, abs=1e-10)
        if order > 0:
            norm = (probs**order).sum() ** (1 / order)
            assert zoo.norm(scores, order, root=root) == pytest.approx(norm, rel=1e-10)


def test_orders_without_a_formula_are_refused():
    for alpha in (-1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="alpha"):
            zoo.renyi_entropy(np.zeros((2, 2)), alpha)
    for p in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="p must"):
            zoo.norm(np.zeros((2, 2)), p)


def test_rare_pairs_lose_their_digits_before_rare_edges():
    """The limit of T2h: at 10 nats single-root marginals are still good, those of rare pairs are not."""
    worst_edge = worst_pair = 0.0
    for seed in range(10):
        scores = random_scores(5, seed, scale=10.0)
        trees = all_trees(scores, "single")
        inverse = invert(scores, "single")
        exact = trees.marginals()
        seen = exact > 0
        worst_edge = max(worst_edge, (np.abs(inverse.marginals() - exact)[seen] / exact[seen]).max())
        for i, j, pairs in pair_marginals(inverse):
            both = trees.heads[:, j] == i
            for dependent in set(range(1, 6)) - {j}:
                counts = np.bincount(trees.heads[both, dependent], weights=trees.probs[both], minlength=6)
                seen_pair = counts > 0
                error = np.abs(pairs[:, dependent] - counts)[seen_pair] / counts[seen_pair]
                worst_pair = max(worst_pair, error.max(initial=0.0))
    assert worst_edge < 1e-4
    assert worst_pair > 1.0


def test_renyi_entropy_loses_digits_next_to_order_one():
    scores = random_scores(5, seed=3)
    shannon = zoo.entropy(scores)
    assert zoo.renyi_entropy(scores, 1 + 1e-6) == pytest.approx(shannon, abs=1e-5)
    assert abs(zoo.renyi_entropy(scores, 1 + 4e-16) - shannon) > 1e-3
