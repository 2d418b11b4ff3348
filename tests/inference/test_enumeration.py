"""Every quantity and every gradient against the list of all trees, with and without forbidden edges."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from scipy import sparse

import spantree
from oracle.listed import Listed
from oracle.trees import all_trees

ROOTS = ["single", "multi"]
CLOSE = {"rtol": 1e-12, "atol": 1e-14}


def garbage(scores):
    """Column 0 and the diagonal hold anything."""
    scores = scores.copy()
    scores[:, 0] = np.nan
    np.fill_diagonal(scores, np.inf)
    return scores


@lru_cache(None)
def sentences(n, forbid, root, count=12):
    """Scores, and the list of their trees."""
    rng = np.random.default_rng([n, int(forbid * 10)])
    result = []
    for _ in range(count):
        scores = rng.normal(size=(n + 1, n + 1)) * 2
        scores[rng.random(scores.shape) < forbid] = -np.inf
        result.append((garbage(scores), Listed(scores, root)))
    return result


def feasible_sentences(n, forbid, root):
    rng = np.random.default_rng(n)
    for scores, listed in sentences(n, forbid, root):
        if listed.feasible:
            yield scores, listed, spantree.TreeDistribution(scores, root=root), rng


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("forbid", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
class TestEveryQuantity:
    def test_log_partition_and_marginals(self, n, forbid, root):
        for scores, listed, dist, _ in feasible_sentences(n, forbid, root):
            value, gradient = dist.log_partition(with_grad=True)
            np.testing.assert_allclose(value, listed.log_partition, **CLOSE)
            np.testing.assert_allclose(spantree.log_partition(scores, root=root), listed.log_partition, **CLOSE)
            np.testing.assert_allclose(dist.marginals(), listed.marginals, **CLOSE)
            np.testing.assert_array_equal(gradient, dist.marginals())
            np.testing.assert_array_equal(dist.marginals() > 0, listed.marginals > 0)

    def test_log_prob(self, n, forbid, root):
        for _, listed, dist, _ in feasible_sentences(n, forbid, root):
            trees = all_trees(n, root, False)
            log_probs = dist.log_prob(trees)
            forbidden = log_probs == -np.inf
            np.testing.assert_array_equal(trees[~forbidden], listed.heads)
            np.testing.assert_allclose(log_probs[~forbidden], listed.log_probs, **CLOSE)

    def test_entropy(self, n, forbid, root):
        for scores, listed, dist, _ in feasible_sentences(n, forbid, root):
            value, gradient = dist.entropy(with_grad=True)
            np.testing.assert_allclose(value, listed.entropy, rtol=1e-12, atol=1e-13)
            np.testing.assert_allclose(
                gradient, -listed.covariance_with_edges(listed.sums(scores)), rtol=1e-11, atol=1e-13
            )

    def test_expectation(self, n, forbid, root):
        for _, listed, dist, rng in feasible_sentences(n, forbid, root):
            values = rng.normal(size=(n + 1, n + 1, 3))
            value, gradient = dist.expectation(values, with_grad=True)
            for r in range(3):
                sums = listed.sums(values[..., r])
                np.testing.assert_allclose(value[r], listed.mean(sums), **CLOSE)
                np.testing.assert_allclose(gradient[..., r], listed.covariance_with_edges(sums), rtol=1e-11, atol=1e-13)
                np.testing.assert_array_equal(dist.expectation(values[..., r]), value[r])

    def test_cross_entropy_and_kl(self, n, forbid, root):
        for scores, listed, dist, rng in feasible_sentences(n, forbid, root):
            other_scores = rng.normal(size=scores.shape)
            other, other_listed = spantree.TreeDistribution(other_scores, root=root), Listed(other_scores, root)
            of_other = other_listed.log_probs[other_listed.index(listed.heads)]
            cross, cross_gradient = dist.cross_entropy(other, with_grad=True)
            kl, kl_gradient = dist.kl(other, with_grad=True)
            np.testing.assert_allclose(cross, -listed.mean(of_other), **CLOSE)
            np.testing.assert_allclose(kl, cross - listed.entropy, rtol=1e-11, atol=1e-13)
            towards = listed.covariance_with_edges(-of_other)
            np.testing.assert_allclose(cross_gradient, towards, rtol=1e-11, atol=1e-13)
            spread = listed.covariance_with_edges(listed.sums(scores) - of_other)
            np.testing.assert_allclose(kl_gradient, spread, rtol=1e-11, atol=1e-13)

    def test_zeroth_order(self, n, forbid, root):
        for scores, listed, dist, _ in feasible_sentences(n, forbid, root):
            positive = listed.probs[listed.probs > 0]
            for alpha in (0.5, 2.0, 3.5):
                power = np.log(np.sum(positive**alpha))
                value, gradient = dist.renyi_entropy(alpha, with_grad=True)
                np.testing.assert_allclose(value, power / (1 - alpha), rtol=1e-12, atol=1e-12)
                tilted = Listed(scores * alpha, root)
                slope = alpha / (1 - alpha) * (tilted.marginals - listed.marginals)
                np.testing.assert_allclose(gradient, slope, rtol=1e-11, atol=1e-12)
                norm, norm_gradient = dist.norm(alpha, with_grad=True)
                np.testing.assert_allclose(norm, np.exp(power / alpha), **CLOSE)
                np.testing.assert_allclose(
                    norm_gradient, norm * (tilted.marginals - listed.marginals), rtol=1e-11, atol=1e-12
                )
            np.testing.assert_allclose(dist.renyi_entropy(0), np.log(len(positive)), rtol=1e-12, atol=1e-14)
            np.testing.assert_allclose(dist.renyi_entropy(1), listed.entropy, rtol=1e-12, atol=1e-13)
            np.testing.assert_allclose(dist.renyi_entropy(np.inf), -np.log(positive.max()), rtol=1e-11, atol=1e-13)
            np.testing.assert_allclose(dist.norm(np.inf), positive.max(), **CLOSE)

    @pytest.mark.parametrize("signed", [False, True])
    def test_product_expectation(self, n, forbid, root, signed):
        for _, listed, dist, rng in feasible_sentences(n, forbid, root):
            values = rng.normal(size=(n + 1, n + 1))
            values = values if signed else np.abs(values) * (rng.random(values.shape) < 0.8)
            products = np.prod([values[listed.heads[:, dep], dep] for dep in range(1, n + 1)], axis=0)
            value, gradient = dist.product_expectation(values, with_grad=True)
            scale = listed.mean(np.abs(products))
            np.testing.assert_allclose(value, listed.mean(products), rtol=1e-12, atol=1e-12 * scale)
            expected = listed.covariance_with_edges(products)
            np.testing.assert_allclose(gradient, expected, rtol=1e-10, atol=1e-12 * scale)

    def test_second_order(self, n, forbid, root):
        for _, listed, dist, rng in feasible_sentences(n, forbid, root):
            r, s = rng.normal(size=(n + 1, n + 1, 2)), rng.normal(size=(n + 1, n + 1, 3))
            r_sums = np.stack([listed.sums(r[..., k]) for k in range(2)], -1)
            s_sums = np.stack([listed.sums(s[..., k]) for k in range(3)], -1)
            moment = np.einsum("t,tr,ts->rs", listed.probs, r_sums, s_sums)
            expected = moment - np.outer(listed.probs @ r_sums, listed.probs @ s_sums)
            close = {"rtol": 1e-11, "atol": 1e-12}
            np.testing.assert_allclose(dist.covariance(r, s), expected, **close)
            np.testing.assert_allclose(dist.covariance(s, r), expected.T, **close)
            np.testing.assert_allclose(dist.second_moment(r, s), moment, **close)
            np.testing.assert_allclose(dist.second_moment(s, r), moment.T, **close)
            np.testing.assert_allclose(dist.covariance(r[..., 0], s), expected[0], **close)
            np.testing.assert_allclose(dist.covariance(r[..., 0], s[..., 0]), expected[0, 0], **close)
            flat_r, flat_s = sparse.csr_array(r.reshape(-1, 2)), sparse.coo_array(s.reshape(-1, 3))
            np.testing.assert_allclose(dist.covariance(flat_r, flat_s), expected, **close)
            np.testing.assert_allclose(dist.second_moment(flat_r, s), moment, **close)
            edges = dist.covariance("edges", s)
            assert edges.shape == s.shape
            for k in range(3):
                np.testing.assert_allclose(edges[..., k], listed.covariance_with_edges(s_sums[:, k]), **close)
            np.testing.assert_allclose(dist.covariance(s, "edges"), np.moveaxis(edges, -1, 0), **close)
            joint = np.einsum("t,tij->ij", listed.probs * s_sums[:, 0], listed.indicator)
            np.testing.assert_allclose(dist.second_moment(s[..., 0], "edges"), joint, **close)

    def test_attachment(self, n, forbid, root):
        for _, listed, dist, rng in feasible_sentences(n, forbid, root):
            gold = listed.heads[rng.integers(len(listed.heads))]
            share = (listed.heads[:, 1:] == gold[1:]).mean(axis=1)
            value, gradient = dist.expected_attachment(gold, with_grad=True)
            np.testing.assert_allclose(value, listed.mean(share), rtol=1e-12, atol=1e-14)
            np.testing.assert_allclose(gradient, listed.covariance_with_edges(share), rtol=1e-11, atol=1e-13)
            risk, risk_gradient = dist.risk(gold, with_grad=True)
            np.testing.assert_allclose(risk, 1 - value, rtol=1e-12, atol=1e-14)
            np.testing.assert_array_equal(risk_gradient, -gradient)

    def test_generalized_expectation(self, n, forbid, root):
        for _, listed, dist, rng in feasible_sentences(n, forbid, root):
            values, target = rng.normal(size=(n + 1, n + 1, 2)), rng.normal(size=2)
            sums = np.stack([listed.sums(values[..., k]) for k in range(2)], -1)
            gap = listed.probs @ sums - target
            value, gradient = dist.generalized_expectation(values, target, with_grad=True)
            np.testing.assert_allclose(value, 0.5 * gap @ gap, rtol=1e-11, atol=1e-13)
            np.testing.assert_allclose(gradient, listed.covariance_with_edges(sums @ gap), rtol=1e-10, atol=1e-12)

    def test_mbr(self, n, forbid, root):
        for _, listed, dist, _ in feasible_sentences(n, forbid, root):
            reward = listed.sums(listed.marginals)
            tree = dist.mbr()
            assert np.isfinite(dist.score(tree))
            best = reward.max()
            np.testing.assert_allclose(listed.marginals[tree[1:], np.arange(1, n + 1)].sum(), best, rtol=1e-12)

    def test_infeasible_exactly_when_there_is_no_tree(self, n, forbid, root):
        for scores, listed in sentences(n, forbid, root):
            if listed.feasible:
                continue
            with pytest.raises(spantree.InfeasibleError) as raised:
                spantree.marginals(scores, root=root)
            masked = spantree.TreeDistribution(scores[None], root=root, on_infeasible="mask")
            with pytest.raises(spantree.InfeasibleError) as decoding:
                spantree.decode(scores, root=root)
            assert raised.value.word == decoding.value.word
            np.testing.assert_array_equal(masked.log_partition(), [-np.inf])
            assert not masked.marginals().any()
            assert np.isnan(masked.entropy()).all()


def test_six_words():
    rng = np.random.default_rng(6)
    scores = rng.normal(size=(7, 7)) * 3
    for root in ROOTS:
        listed, dist = Listed(scores, root), spantree.TreeDistribution(scores, root=root)
        np.testing.assert_allclose(dist.log_partition(), listed.log_partition, **CLOSE)
        np.testing.assert_allclose(dist.marginals(), listed.marginals, **CLOSE)
        np.testing.assert_allclose(dist.entropy(), listed.entropy, **CLOSE)


@pytest.mark.parametrize("root", ROOTS)
def test_labels(root):
    """A labelled edge is several parallel edges."""
    rng = np.random.default_rng(0)
    n, labels = 3, 2
    scores = rng.normal(size=(n + 1, n + 1, labels)) * 2
    scores[0, 1, 1] = scores[2, 3] = -np.inf
    listed = Listed(np.logaddexp.reduce(scores, axis=-1), root)
    dist = spantree.TreeDistribution(scores, root=root, labelled=True)
    values = rng.normal(size=scores.shape)
    share = np.exp(scores)
    share /= np.maximum(share.sum(axis=-1, keepdims=True), 1e-300)
    np.testing.assert_allclose(dist.log_partition(), listed.log_partition, **CLOSE)
    np.testing.assert_allclose(dist.marginals(), listed.marginals[..., None] * share, **CLOSE)

    trees, combinations = listed.heads, np.array(list(np.ndindex(*[labels] * n)))
    heads, tags = np.repeat(trees, len(combinations), 0), np.tile(combinations, (len(trees), 1))
    deps = np.arange(1, n + 1)
    total = scores[heads[:, 1:], deps, tags].sum(axis=1)
    probs = np.exp(total - listed.log_partition)
    np.testing.assert_allclose(probs.sum(), 1.0, **CLOSE)
    log_probs = dist.log_prob(heads, np.concatenate([np.full((len(tags), 1), -1), tags], axis=1))
    np.testing.assert_allclose(log_probs, total - listed.log_partition, **CLOSE)
    indicator = np.zeros((len(heads), *scores.shape))
    for row, (tree, tag) in enumerate(zip(heads, tags, strict=True)):
        indicator[row, tree[1:], deps, tag] = 1.0

    def gradient_of(sums):
        sums = np.where(probs > 0, sums, 0.0)
        return np.tensordot(probs * (sums - probs @ sums), indicator, 1)

    sums = values[heads[:, 1:], deps, tags].sum(axis=1)
    value, gradient = dist.expectation(values, with_grad=True)
    np.testing.assert_allclose(value, probs @ sums, **CLOSE)
    np.testing.assert_allclose(gradient, gradient_of(sums), rtol=1e-11, atol=1e-13)
    entropy, entropy_gradient = dist.entropy(with_grad=True)
    np.testing.assert_allclose(entropy, -np.sum(probs[probs > 0] * np.log(probs[probs > 0])), **CLOSE)
    np.testing.assert_allclose(entropy_gradient, -gradient_of(total), rtol=1e-11, atol=1e-13)
    best = dist.mbr()
    assert np.isfinite(dist.score(best))
    las = dist.expected_attachment(best)
    np.testing.assert_allclose(las, dist.marginals()[best.heads[1:], deps, best.labels[1:]].mean(), **CLOSE)
    np.testing.assert_allclose(dist.renyi_entropy(2), -np.log(np.sum(probs**2)), **CLOSE)


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("labelled", [False, True])
def test_projective_trees_answer_the_same_questions(root, labelled):
    rng = np.random.default_rng(7)
    n = 5
    scores, values = rng.normal(size=(2, n + 1, n + 1))
    scores[2, 3] = -np.inf
    listed = Listed(scores, root, projective=True)
    if labelled:
        shares = rng.random((n + 1, n + 1, 2))
        shares /= shares.sum(axis=-1, keepdims=True)
        with np.errstate(divide="ignore"):
            given, of_labels = scores[..., None] + np.log(shares), np.repeat(values[..., None], 2, axis=-1)
    else:
        shares, given, of_labels = np.ones((n + 1, n + 1)), scores, values
    spread = (lambda table: table[..., None] * shares) if labelled else (lambda table: table)
    dist = spantree.TreeDistribution(given, root=root, projective=True, labelled=labelled)
    np.testing.assert_allclose(dist.log_partition(), listed.log_partition, rtol=1e-12)
    np.testing.assert_allclose(dist.marginals(), spread(listed.marginals), rtol=1e-12, atol=1e-15)
    value, gradient = dist.expectation(of_labels, with_grad=True)
    sums = listed.sums(values)
    np.testing.assert_allclose(value, listed.mean(sums), rtol=1e-12)
    np.testing.assert_allclose(gradient, spread(listed.covariance_with_edges(sums)), rtol=1e-10, atol=1e-13)
    if not labelled:
        entropy, slope = dist.entropy(with_grad=True)
        np.testing.assert_allclose(entropy, listed.entropy, rtol=1e-11)
        np.testing.assert_allclose(slope, -listed.covariance_with_edges(listed.sums(scores)), rtol=1e-10, atol=1e-12)
        power = np.log(np.sum(listed.probs**2))
        np.testing.assert_allclose(dist.renyi_entropy(2), -power, rtol=1e-11)
        expected = np.einsum("t,t,tij->ij", listed.probs, sums - listed.mean(sums), listed.indicator)
        np.testing.assert_allclose(dist.covariance(values, "edges"), expected, rtol=1e-10, atol=1e-13)
        reward = listed.sums(listed.marginals)
        tree = dist.mbr()
        np.testing.assert_allclose(listed.marginals[tree[1:], np.arange(1, n + 1)].sum(), reward.max(), rtol=1e-12)


def test_kl_of_different_supports():
    full = np.zeros((3, 4, 4))
    holes = full.copy()
    holes[1, 2, 3] = holes[2, 0, 1] = -np.inf
    p, q = spantree.TreeDistribution(full), spantree.TreeDistribution(holes)
    np.testing.assert_array_equal(np.isinf(p.kl(q)), [False, True, True])
    np.testing.assert_array_equal(np.isinf(p.cross_entropy(q)), [False, True, True])
    assert (q.kl(p) >= 0).all()
    assert np.isfinite(q.kl(p)).all()
    np.testing.assert_allclose(q.kl(q), 0.0, atol=1e-14)


@pytest.mark.parametrize("root", ROOTS)
def test_renyi_is_continuous_at_one(root):
    rng = np.random.default_rng(2)
    dist = spantree.TreeDistribution(rng.normal(size=(6, 6)), root=root)
    entropy = dist.entropy()
    orders = 1.0 + np.array([-1e-4, -1e-5, -1e-7, -1e-12, 1e-12, 1e-7, 1e-5, 1e-4])
    values = np.array([dist.renyi_entropy(alpha) for alpha in orders])
    assert (np.diff(values) <= 1e-12).all()  # decreasing in the order
    slopes = (values - entropy) / (orders - 1.0)
    np.testing.assert_allclose(slopes[[0, 1, 2, 5, 6, 7]], slopes[0], rtol=1e-3)


def test_no_words():
    dist = spantree.TreeDistribution(np.zeros((2, 1, 1)))
    np.testing.assert_array_equal(dist.log_partition(), [0.0, 0.0])
    np.testing.assert_array_equal(dist.entropy(), [0.0, 0.0])
    np.testing.assert_array_equal(dist.marginals(), np.zeros((2, 1, 1)))
    np.testing.assert_array_equal(dist.expected_attachment([[-1], [-1]]), [1.0, 1.0])


def test_sparse_features_of_impossible_edges_do_not_count():
    sparse = pytest.importorskip("scipy.sparse")
    dist = spantree.TreeDistribution(np.array([[0, 1, 2], [0, 0, -np.inf], [0, 5, 0.0]]), root="multi")
    features = np.array([[np.nan, 1, 2], [np.inf, np.nan, np.nan], [0, 3, -np.inf]])
    found = dist.covariance(sparse.csr_matrix(features.reshape(9, 1)), sparse.csr_matrix(features.reshape(9, 1)))
    np.testing.assert_allclose(found[0, 0], dist.covariance(features, features), rtol=1e-13)
