"""Every erratum of docs/errata.md: what is printed fails, what is meant holds."""

from __future__ import annotations

import math
import re
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tree_oracle import all_trees, random_scores

from spantree import zoo
from spantree.experiments.root_edges import probability
from spantree.zoo._graph import clean_scores
from spantree.zoo.hitting_time import hitting_times
from spantree.zoo.matrix_tree import invert
from spantree.zoo.reweighting import reweight
from spantree.zoo.tarjan import CycleForest, LossyQueue, expand

PAGE = (Path(__file__).parents[2] / "docs" / "errata.md").read_text(encoding="utf-8")
FIGURE_1 = np.where([[0, 1, 0, 1], [0, 0, 1, 1], [0, 0, 0, 1], [0, 1, 0, 0]], 0.0, -np.inf)


def weights_of(n, seed=0):
    return np.exp(clean_scores(random_scores(n, seed)))


def test_every_erratum_on_the_page_has_its_check_and_every_check_its_erratum():
    named = re.findall(r"`(test_\w+)`", PAGE)
    assert len(named) == len(set(named))
    checks = {name for name in globals() if name.startswith("test_")} - {
        "test_every_erratum_on_the_page_has_its_check_and_every_check_its_erratum"
    }
    assert set(named) == checks


# Efficient Computation of Expectations under Spanning Tree Distributions


@pytest.mark.parametrize("root", ["single", "multi"])
def test_expectations_equation_24(root):
    """The derivative of the Laplacian by each weight, printed and as it is."""
    n = 4

    def printed(i_, j_, i, j):
        if i_ in (1, j) and j_ == j:
            return 1.0
        return -1.0 if (i_, j_) == (i, j) else 0.0

    def corrected(i_, j_, i, j):
        if j_ != j:
            return 0.0
        if root == "multi":
            return float(i_ == j) - float(i_ == i)
        if i == 0:
            return float(i_ == 1)
        return float(i_ == j != 1) - float(i_ == i != 1)

    wrong = 0
    for i in range(n + 1):
        for j in set(range(1, n + 1)) - {i}:
            unit = np.zeros((n + 1, n + 1))
            unit[i, j] = 1.0
            derivative = zoo.laplacian(unit, root)  # linear in the weights
            for i_ in range(1, n + 1):
                for j_ in range(1, n + 1):
                    assert derivative[i_ - 1, j_ - 1] == corrected(i_, j_, i, j)
                    wrong += derivative[i_ - 1, j_ - 1] != printed(i_, j_, i, j)
    assert wrong > 0


def test_expectations_equations_29_and_30():
    """r_hat and s_hat with the printed indices do not give E[r s] in equation (32); with the corrected ones they do."""
    scores = random_scores(3, seed=1)
    inverse = invert(scores, "multi")
    w, B, marginals = inverse.weights, inverse.B, inverse.marginals()
    rng = np.random.default_rng(2)
    r, s = rng.normal(size=(2, 4, 4))
    trees = all_trees(scores, "multi")
    zeroed = [np.where(w > 0, values, 0.0) for values in (r, s)]
    expected = trees.probs @ (trees.total(zeroed[0]) * trees.total(zeroed[1]))

    def hats(values, printed):
        """r_hat[j', l'] = sum over edges k -> l' and over k' of B[k', j'] L'[k'l', kl] w r; printed with B[k', l']."""
        hat = np.zeros((3, 3))
        for k in range(4):
            for end in set(range(1, 4)) - {k}:
                for k_, sign in ((end, 1.0), (k, -1.0)) if k else ((end, 1.0),):
                    for j_ in range(3):
                        hat[j_, end - 1] += B[k_ - 1, end - 1 if printed else j_] * sign * w[k, end] * values[k, end]
        return hat

    def equation_32(printed):
        r_hat = hats(r, printed)
        s_hat = hats(s, printed)
        # s_hat[j', l'] sums edges into j', and is printed with l' in that place too
        product = r_hat * (s_hat if printed else s_hat.T)
        bar = [(marginals * values).sum() for values in zeroed]
        return (marginals * zeroed[0] * zeroed[1]).sum() + bar[0] * bar[1] - product.sum()

    assert equation_32(printed=False) == pytest.approx(expected, abs=1e-12)
    assert abs(equation_32(printed=True) - expected) > 1e-3


def test_expectations_footnote_10():
    """Z of the k-th powers is the sum over trees of a product over edges; the product is printed as a sum."""
    w = weights_of(3)
    trees = zoo.enumerate_trees(3)
    powers = w[trees[:, 1:], np.arange(1, 4)] ** 2
    z_of_powers = np.linalg.det(zoo.laplacian(w**2))
    assert powers.prod(axis=1).sum() == pytest.approx(z_of_powers)
    assert abs(powers.sum() - z_of_powers) > 0.1


def test_expectations_equation_33():
    """Called a cost that counts mistakes, it counts what is right."""
    scores, gold = random_scores(4, seed=3), zoo.enumerate_trees(4)[5]
    r = np.zeros((5, 5))
    r[gold[1:], np.arange(1, 5)] = 1 / 4
    trees = all_trees(scores, "single")
    right = trees.probs @ (trees.heads[:, 1:] == gold[1:]).mean(axis=1)
    assert zoo.t1(scores, r) == pytest.approx(right)
    assert zoo.risk(scores, gold) == pytest.approx(1 - right)


def test_expectations_section_6_3():
    """Without log Z of the other distribution, KL comes out too small by just that."""
    scores, other = random_scores(4, seed=3), random_scores(4, seed=4)
    p, q = all_trees(scores, "single"), all_trees(other, "single")
    divergence = p.probs @ (np.log(p.probs) - np.log(q.probs))
    w, q_weights = (np.where(np.isfinite(one), one, 0.0) for one in (scores, other))
    printed = zoo.t1(scores, w - q_weights - zoo.log_partition(scores) / 4)
    log_z_of_q = zoo.log_partition(other)
    assert abs(log_z_of_q) > 0.1
    assert printed + log_z_of_q == pytest.approx(divergence)
    assert zoo.kl(scores, other) == pytest.approx(divergence)


# Efficient Sampling of Dependency Structures


def test_efficient_sampling_rank_one_update():
    """Equations (19b) to (19d), figure 5 line 37, figure 7 lines 32 and 33: column j of B, not row j."""
    w = weights_of(4)
    L = zoo.laplacian(w)
    B = np.linalg.inv(L).T
    i, j = 3, 2
    conditioned = w.copy()
    conditioned[:, j] = 0.0
    conditioned[i, j] = w[i, j]
    after = zoo.laplacian(conditioned)
    u = after[:, j - 1] - L[:, j - 1]
    exact = np.linalg.inv(after).T

    def updated(vector):
        return B - np.outer(vector, u @ B) / (1 + u @ vector)

    np.testing.assert_allclose(updated(B[:, j - 1]), exact, atol=1e-12)
    assert np.abs(updated(B[j - 1]) - exact).max() > 1e-3
    assert 1 + u @ B[:, j - 1] == pytest.approx(np.linalg.det(after) / np.linalg.det(L))


def test_efficient_sampling_section_4_1():
    """u is given without the exceptions of row 1, which lemma 3 and figure 5 have."""
    w = weights_of(3)
    L = zoo.laplacian(w)
    i, j = 3, 1
    conditioned = w.copy()
    conditioned[:, j] = 0.0
    conditioned[i, j] = w[i, j]
    exact = zoo.laplacian(conditioned)[:, j - 1] - L[:, j - 1]
    unit = np.eye(3)
    printed = w[i, j] * (unit[j - 1] - unit[i - 1]) - L[:, j - 1]
    lemma_3 = w[i, j] * -unit[i - 1] - L[:, j - 1]
    np.testing.assert_allclose(lemma_3, exact)
    assert np.abs(printed - exact).max() > 1e-3


def test_efficient_sampling_equation_9():
    """ROOT is where walks end, so all of pi is there, and the mean hitting time is 0 whatever the walk takes."""
    scores = random_scores(4, seed=4)
    w = np.exp(clean_scores(scores))
    step = np.zeros((5, 5))
    step[1:] = (w / np.maximum(w.sum(axis=0), 1e-300)).T[1:]
    step[0, 0] = 1.0
    pi = np.linalg.matrix_power(step, 2000)[2]
    np.testing.assert_allclose(pi, [1, 0, 0, 0, 0], atol=1e-12)
    # h(ROOT, ROOT) = 0 is the only summand of equation (9)
    assert zoo.mean_steps(scores) > 4


def test_efficient_sampling_theorem_2():
    """H of the walk between words stays below 1.5 while that to word 3, nearly never a head, grows without bound."""
    for rarely in (5.0, 10.0, 20.0):
        scores = np.zeros((4, 4))
        scores[3, 1:] = -rarely
        pi, h = hitting_times(scores)
        to_root = pi @ (h + h.T)
        by_root_weight = to_root.mean()  # the three root edges weigh the same
        assert zoo.mean_hitting_time(scores) < 1.5
        assert by_root_weight > np.exp(rarely) / 3
        # section 4.2 of Unbiased Sampling: if word 3 has the only root edge, its marginal is 1
        scores[0, 1:3] = -np.inf
        assert zoo.matrix_tree(scores)[1][0, 3] == pytest.approx(1)
        assert to_root[2] > np.exp(rarely)
        # as meant: on average over the stationary distribution
        assert pi @ to_root == pytest.approx(2 * zoo.mean_hitting_time(scores))


def test_efficient_sampling_equation_11():
    """Locally normalised weights of trees do not sum to 1: what is missing is the mass of cycles."""
    normalised = zoo.log_partition(np.log(np.full((3, 3), 0.5)), "multi")  # every word has two heads
    assert np.exp(normalised) == pytest.approx(3 / 4)
    assert all_trees(np.zeros((3, 3)), "multi").probs == pytest.approx(1 / 3)  # not 1/4, the product of two halves


def test_efficient_sampling_figure_7_line_17(monkeypatch):
    """The first decision of tree k goes through all k - 1 trees drawn before, whatever n."""
    module = import_module("spantree.zoo.swor_zmigrod")
    read = []

    def counting(heads, *args, original=np.bincount, **kwargs):
        read.append(len(heads))
        return original(heads, *args, **kwargs)

    monkeypatch.setattr(module.np, "bincount", counting)
    zoo.swor_zmigrod(random_scores(4, seed=5), 30, 0)
    assert read[::4] == list(range(30))


def test_efficient_sampling_figure_7_line_19():
    """With all trees in place of those drawn, as printed, nothing is ever left on a root edge."""
    scores = random_scores(4, seed=5)
    trees = all_trees(scores, "multi")
    z_single = np.exp(zoo.log_partition(scores))
    root_marginals = zoo.matrix_tree(scores)[1][0]
    for j in range(1, 5):
        of_all_trees = np.exp(trees.log_z) * trees.probs[trees.heads[:, j] == 0].sum()
        assert z_single * root_marginals[j] - of_all_trees <= 1e-12


def test_efficient_sampling_section_3_1():
    """ "To sample an unbiased dependency tree from the distribution": half of the draws for a third of the mass."""
    heads = zoo.wilson_rc(FIGURE_1, 4000, rng=0)
    share = (heads[:, 3] == 0).mean()
    assert abs(share - 1 / 2) < 5 * math.sqrt(0.25 / 4000)  # false alarm 6e-7
    assert zoo.matrix_tree(FIGURE_1)[1][0, 3] == pytest.approx(1 / 3)


def test_efficient_sampling_figure_3():
    """The walk has no end if the word drawn as the root does not lead to all others."""
    scores = np.full((3, 3), -np.inf)
    scores[0, 1:] = 0.0
    scores[1, 2] = 0.0  # word 1 leads to word 2, not the other way round
    with pytest.raises(RuntimeError, match=r"word 2 .* endless"):
        zoo.wilson_rc(scores, 100, rng=0)


# Unbiased and Efficient Sampling of Dependency Trees


def test_unbiased_sampling_algorithms_2_and_7():
    """Line 4 draws by M(v -> u), where there is no u. The column of word i gives each tree its probability."""
    scores = random_scores(3, seed=4)
    trees = all_trees(scores, "single")

    def probability_of(tree, column):
        theta = clean_scores(scores)
        probability = 1.0
        for i in (1, 2, 3):
            probability *= zoo.matrix_tree(theta)[1][tree[i], column(i)]
            theta[np.arange(4) != tree[i], i] = -np.inf
        return probability

    meant = [probability_of(tree, lambda i: i) for tree in trees.heads]
    np.testing.assert_allclose(meant, trees.probs, rtol=1e-12)
    for word in (1, 2, 3):
        other = [probability_of(tree, lambda i, word=word: word) for tree in trees.heads]
        assert np.abs(other - trees.probs).max() > 0.01


def test_unbiased_sampling_algorithm_3():
    """Steps on equal weights: with one root edge left in the graph, as printed, and with its word as the root."""

    def printed(n):
        only_word_1 = np.zeros((n + 1, n + 1))
        only_word_1[0, 2:] = -np.inf
        return zoo.mean_steps(only_word_1)

    def meant(n):
        pi, h = hitting_times(np.zeros((n + 1, n + 1)))
        return (pi @ (h + h.T))[0]

    for n in (5, 20, 40):
        assert printed(n) == pytest.approx(n**2 + n - 3 + 2 / n)
        assert meant(n) == pytest.approx(2 * (n - 1) ** 2 / n)


def test_unbiased_sampling_appendix_a_cofactors():
    """Of L = D - W, the cofactors of ROOT's column are Z, and all others 0: no edge enters ROOT."""
    W = weights_of(3)
    L = np.diag(W.sum(axis=0)) - W
    z = np.exp(zoo.log_partition(random_scores(3, 0), "multi"))
    for i in range(4):
        for j in range(4):
            minor = np.delete(np.delete(L, i, axis=0), j, axis=1)
            cofactor = (-1) ** (i + j) * np.linalg.det(minor)
            assert cofactor == pytest.approx(z if j == 0 else 0.0)


def test_unbiased_sampling_appendix_a_marginals():
    """The derivative of log |L| by the weights is the marginals divided by them."""
    scores = random_scores(4, seed=0)
    W = weights_of(4)
    derivative = zoo.laplacian_pullback(np.linalg.inv(zoo.laplacian(W)).T)
    exact = all_trees(scores, "single").marginals()
    np.testing.assert_allclose(W * derivative, exact, atol=1e-12)
    assert np.abs(derivative - exact)[W > 0.0].max() > 0.1


def l_hat(W, root_row):
    """Algorithm 5."""
    Wp = W[1:, 1:]
    L = np.diag(Wp.sum(axis=0)) - Wp
    L[0] = root_row(W, Wp)
    return L


def test_unbiased_sampling_algorithm_5():
    """The first row is that of the root edges, W[0, 1:], not that of the first word's."""
    W = weights_of(4)
    trees = zoo.enumerate_trees(4)
    z = W[trees[:, 1:], np.arange(1, 5)].prod(axis=1).sum()
    assert np.linalg.det(l_hat(W, lambda W, Wp: W[0, 1:])) == pytest.approx(z)
    assert abs(np.linalg.det(l_hat(W, lambda W, Wp: Wp[0])) - z) > 0.1


def test_unbiased_sampling_algorithm_6():
    """Marginals of root edges take the first row of B, not its diagonal."""
    scores = random_scores(4, seed=0)
    W = weights_of(4)
    B = np.linalg.inv(l_hat(W, lambda W, Wp: W[0, 1:])).T
    exact = all_trees(scores, "single").marginals()[0, 1:]
    np.testing.assert_allclose(W[0, 1:] * B[0], exact, atol=1e-12)
    assert np.abs(W[0, 1:] * np.diag(B) - exact).max() > 0.01


def test_unbiased_sampling_equation_8():
    """B' is B minus the fraction, and the column is that of the dependent i, not of the head j."""
    W = weights_of(4)
    i, j = 2, 4
    after = W.copy()
    after[:, i] = 0.0
    after[j, i] = W[j, i]
    L, L_after = zoo.laplacian(W), zoo.laplacian(after)
    B = np.linalg.inv(L).T
    u = L_after[:, i - 1] - L[:, i - 1]
    exact = np.linalg.inv(L_after).T

    def fraction(word):
        column = B[:, word - 1]
        return np.outer(column, u @ B) / (1 + u @ column)

    np.testing.assert_allclose(B - fraction(i), exact, atol=1e-12)
    for printed in (fraction(j), B - fraction(j), fraction(i)):
        assert np.abs(printed - exact).max() > 1e-3


def test_unbiased_sampling_limitations():
    """Of uniform spanning trees 1 - 1/e, 63 %, have several roots in the limit, not 2/e, 73 %."""
    n = 100_000
    several = 1 - math.exp((n - 1) * (math.log(n) - math.log(n + 1)))  # equations (3) and (4)
    assert several == pytest.approx(1 - 1 / math.e, abs=1e-4)
    assert abs(several - 2 / math.e) > 0.1
    shares = [1 - (n / (n + 1)) ** (n - 1) for n in (1, 2, 5, 20, 100)]
    assert all(a < b < 1 - 1 / math.e for a, b in pairwise(shares))


# Please Mind the Root


def test_please_mind_the_root_section_3():
    """Table 1's classes average to 1.80 % and 0.0083 %, as printed, and to 0.67 % of exact match, printed 0.60 %."""
    treebanks = np.array([20, 32, 11])
    classes = np.array([[0.63, 0.0041, 0.15], [1.02, 0.0012, 0.22], [6.21, 0.0368, 2.91]])
    rounding = np.array([0.005, 0.00005, 0.005])  # of the numbers in the table
    malformed, uas, exact = treebanks @ classes / 63
    assert abs(malformed - 1.80) < 2 * rounding[0]
    assert abs(uas - 0.0083) < 2 * rounding[1]
    assert abs(exact - 0.67) < 2 * rounding[2]
    assert abs(exact - 0.60) > 10 * rounding[2]


def test_please_mind_the_root_lemma_3():
    """The root edge of word i = 1 is deleted, which closes the cycle of 1 and 2, and the tree enters it at j = 2."""
    scores = np.zeros((4, 4))
    scores[0, [1, 3]] = 9
    scores[1, 2] = scores[2, 1] = 8
    scores[3, [1, 2]] = 1, 6
    np.testing.assert_array_equal(zoo.tarjan(scores), [-1, 0, 1, 0])
    np.testing.assert_array_equal(zoo.gabow_tarjan(scores), [-1, 2, 3, 0])
    between_words = clean_scores(scores)[1:]
    assert between_words[:, 1].argmax() + 1 == 2  # the edge into i on the cycle is the next best into i


# A Root of a Problem


def test_root_of_a_problem_more_than_six_root_edges():
    """P(r > 6) < 0.0005 holds up to 121 words; the limit is that of 1 + Poisson(1), 0.00059."""

    def tail(n, most):
        return sum(probability(r, n) for r in range(most + 1, min(n, most + 40) + 1))

    limit = 1 - sum(math.exp(-1) / math.factorial(k) for k in range(6))
    assert limit == pytest.approx(0.00059, abs=5e-6)
    first = next(n for n in range(7, 400) if tail(n, 6) >= 0.0005)
    assert first == 122
    assert tail(400, 6) > 0.0005
    for most, bound in ((4, 0.02), (5, 0.004)):
        assert tail(400, most) < bound
        assert 1 - sum(math.exp(-1) / math.factorial(k) for k in range(most)) < bound


def collapse(P, find_previous=True, original=None):
    """Algorithm 1, with line 23 stepping to ``find(prev[i])`` or, as printed, to ``prev[i]``.

    And line 27 with the weights of the queue or, as printed, with those of the `original` graph.
    """
    in_, prev, parent = [None] * len(P), [-1] * len(P), [None] * len(P)
    children = [[] for _ in P]

    def find(i):
        while parent[i] is not None:
            i = parent[i]
        return i

    a = 0
    while P[a]:
        edge = P[a].extract_max()
        b = find(edge.u)
        if a == b:
            continue
        in_[a], prev[a] = edge, b
        if in_[edge.u] is None:
            a = b
            continue
        cycle, i = [], a
        for _ in range(len(P) + 1):
            cycle.append(find(i))
            i = find(prev[i]) if find_previous else prev[i]
            if i == a:
                break
        else:
            raise RecursionError("the cycle does not close")
        c = len(P)
        for array, value in ((in_, None), (prev, -1), (parent, None), (children, list(dict.fromkeys(cycle)))):
            array.append(value)
        queues = []
        for i in children[c]:
            parent[i] = c
            edge = in_[i]
            queues.append(P[i].add_const(-(edge.weight if original is None else original[edge.u, edge.v])))
        melded = queues[0]
        for queue in queues[1:]:
            melded = melded.meld(queue)
        P.append(melded)
        a = c
    return in_, parent, children


@pytest.mark.parametrize("find_previous", [True, False])
def test_root_of_a_problem_algorithm_1(find_previous):
    """Line 23 with ``prev[i]`` loses its way around the cycle on some graph of four words."""
    failures = 0
    for seed in range(60):
        w = clean_scores(random_scores(4, seed))
        P = [LossyQueue.of_vertex(w, i) for i in range(5)]
        try:
            forest = CycleForest(*collapse(P, find_previous), P)
            heads, _ = expand(forest, 5)
            score = w[heads[1:], np.arange(1, 5)].sum()
        except (RecursionError, AssertionError, AttributeError, TypeError, IndexError):
            failures += 1
            continue
        best = zoo.tarjan(w)
        failures += score < w[best[1:], np.arange(1, 5)].sum() - 1e-9
    assert (failures > 0) == (not find_previous)


def test_root_of_a_problem_algorithm_1_line_27():
    """With the weights of the original graph, the tree is not the best one on some graph of five words."""

    def loss(w, original):
        P = [LossyQueue.of_vertex(w, i) for i in range(6)]
        heads, _ = expand(CycleForest(*collapse(P, original=original), P), 6)
        best = zoo.chu_liu_edmonds(w)
        return (w[best[1:], np.arange(1, 6)] - w[heads[1:], np.arange(1, 6)]).sum()

    graphs = [clean_scores(random_scores(5, seed)) for seed in range(100)]
    assert max(loss(w, original=None) for w in graphs) < 1e-12
    assert max(loss(w, original=w) for w in graphs) > 0.1


def test_root_of_a_problem_k_best():
    """Two words have three trees, two of them with one root: the third of three best has two, and is dropped."""
    scores = np.array([[0, 9, 9], [0, 0, 4], [0, 8, 0.0]])
    heads, _ = zoo.camerini_kbest(reweight(clean_scores(scores)), 3)
    assert np.count_nonzero(heads == 0, axis=1).tolist() == [1, 1, 2]
    _, found = zoo.reweighting_kbest(scores, 3)
    assert np.isfinite(found).tolist() == [True, True, False]


def test_root_of_a_problem_arcmax_inside():
    """Word 1 has no head but ROOT: after reweighting its best head is still ROOT, and the best heads are a tree."""
    scores = clean_scores([[0, 1, 1], [0, 0, 5], [0, -np.inf, 0]])
    inside = zoo.greedy(reweight(scores))
    assert inside.tolist() == [-1, 0, 1]
    np.testing.assert_array_equal(inside, zoo.reweighting(scores))


def test_root_of_a_problem_appendix_b_1():
    """A constant of infinity makes every tree weigh minus infinity."""
    scores = np.array([[-np.inf, 1, 2], [-np.inf, -np.inf, 3], [-np.inf, 4, -np.inf]])
    c = 1 + 2 * (scores.max() - scores.min())
    assert c == np.inf
    scores[0] -= c
    for heads in zoo.enumerate_trees(2, root="multi"):
        assert scores[heads[1:], [1, 2]].sum() == -np.inf


def test_root_of_a_problem_algorithm_2():
    """DISMANTLE never changes u, so its loop has no end wherever u has a parent."""
    parent, children = {1: 3, 2: 3, 3: None}, {3: [1, 2]}

    def dismantle(u, climb):
        for turn in range(100):
            if parent[u] is None:
                return turn
            for v in children[parent[u]]:
                if v != u:
                    parent[v] = None
            u = parent[u] if climb else u
        return math.inf

    assert dismantle(1, climb=False) == math.inf
    parent.update({1: 3, 2: 3})
    assert dismantle(1, climb=True) == 1


def test_root_of_a_problem_figure_8():
    """The printed function changes its caller's scores: called twice, it subtracts two constants."""

    def reweighting(scores, mst_func):
        scores2 = np.where(np.isinf(scores), np.nan, scores)
        n = scores.shape[0] - 1
        scores[:, 0] -= 1 + n * (np.nanmax(scores2) - np.nanmin(scores2))
        return mst_func(scores)

    scores = random_scores(4, seed=6)
    scores[:, 0] = -np.inf
    np.fill_diagonal(scores, -np.inf)
    transposed = scores.T.copy()  # the paper's matrices are [dependent, head]
    before = transposed.copy()
    first = reweighting(transposed, lambda s: zoo.tarjan(s.T))
    np.testing.assert_array_equal(first, zoo.reweighting(scores))
    assert not np.array_equal(transposed, before)
    kept = scores.copy()
    zoo.reweighting(scores)
    np.testing.assert_array_equal(scores, kept)


def test_root_of_a_problem_random_weights():
    """Uniform weights do not make best trees uniform: 1.5 root edges on average at 20 words, not 2n/(n+1) = 1.9.

    400 graphs; the standard error is 0.04, and the bound 8 of them from what uniform trees would give.
    """
    rng = np.random.default_rng(7)
    roots = [np.count_nonzero(zoo.tarjan(rng.random((21, 21))) == 0) for _ in range(400)]
    assert np.mean(roots) < 1.905 - 8 * np.std(roots) / 20
