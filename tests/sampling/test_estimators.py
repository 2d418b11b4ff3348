"""Estimates from trees drawn without replacement: unbiased within four standard errors over 10,000 repetitions."""

from __future__ import annotations

import copy
import pickle
from itertools import combinations, permutations

import mpmath as mp
import numpy as np
import pytest

from oracle.listed import Listed
from sampling.draws import random_graph
from spantree import TreeDistribution
from spantree._estimators import _unordered_set_weights

REPETITIONS = 10_000


def sample_often(scores, k, method="auto", seed=1):
    batch = np.broadcast_to(scores, (REPETITIONS, *scores.shape))
    return TreeDistribution(batch).sample_without_replacement(k, rng=seed, method=method)


def assert_unbiased(estimates, truth):
    error = estimates.std(0, ddof=1) / np.sqrt(len(estimates))
    assert (np.abs(estimates.mean(0) - truth) <= 4 * error).all()


@pytest.mark.parametrize("method", ["auto", "trie", "beam"])
@pytest.mark.parametrize("k", [1, 3, 6])
def test_estimate_is_unbiased(method, k):
    scores = random_graph(21, 3, 2.0)
    law = Listed(scores)
    values = np.random.default_rng(0).normal(size=(len(law), 2))
    sample = sample_often(scores, k, method)
    estimates = sample.estimate(values[law.index(sample.heads)])
    assert estimates.shape == (REPETITIONS, 2)
    assert_unbiased(estimates, law.probs @ values)


def test_estimate_is_exact_with_all_trees():
    scores = random_graph(22, 4)
    law = Listed(scores)
    sample = TreeDistribution(scores).sample_without_replacement(len(law) + 1, rng=0)
    estimate = sample.estimate(lambda heads: np.eye(5)[heads[1:]])
    np.testing.assert_allclose(estimate, np.tensordot(law.probs, np.eye(5)[law.heads[:, 1:]], 1), atol=1e-13)


def test_values_in_every_form():
    sentences = [random_graph(23, 3), random_graph(24, 5)]
    padded = np.zeros((2, 6, 6))
    for matrix, scores in zip(padded, sentences, strict=True):
        matrix[: len(scores), : len(scores)] = scores
    count = lambda heads: (heads == 0).sum() + heads[1]  # noqa: E731
    ragged = TreeDistribution(sentences).sample_without_replacement(9, rng=2)
    batch = TreeDistribution(padded, lengths=[3, 5]).sample_without_replacement(9, rng=2)
    expected = batch.estimate(count)
    np.testing.assert_allclose(ragged.estimate(count), expected)
    np.testing.assert_allclose(ragged.estimate([h[:, 1] + 1 for h in ragged.heads]), expected)
    np.testing.assert_allclose(batch.estimate(batch.heads[:, :, 1] + 1), expected)
    deep = TreeDistribution(padded.reshape(1, 2, 6, 6), lengths=[[3, 5]]).sample_without_replacement(9, rng=2)
    assert deep.estimate(count).shape == (1, 2)
    np.testing.assert_allclose(deep.gradient_weights(count)[:, 0], batch.gradient_weights(count))
    np.testing.assert_allclose(np.stack(ragged.gradient_weights(count), 1), batch.gradient_weights(count))
    with pytest.raises(ValueError, match="must begin with"):
        batch.estimate(np.zeros(9))
    with pytest.raises(ValueError, match="one number per tree"):
        batch.gradient_weights(lambda heads: heads)


def test_infeasible_sentences_give_nan():
    scores = np.full((2, 3, 3), -np.inf)
    scores[1] = 0.0
    sample = TreeDistribution(scores, on_infeasible="mask").sample_without_replacement(3, rng=0)
    assert (sample.heads[:, 0] == -1).all()
    assert np.isnan(sample.estimate(lambda heads: 1.0)).tolist() == [True, False]
    assert (sample.gradient_weights(lambda heads: 1.0)[:, 0] == 0).all()


def set_probability(chosen, probs):
    """P(drawing exactly these, in any order), by summing over all orders."""
    total = 0.0
    for order in permutations(chosen):
        left, chance = probs.sum(), 1.0
        for i in order:
            chance *= probs[i] / left
            left -= probs[i]
        total += chance
    return total


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("scale", [0.3, 2.0, 8.0])
def test_unordered_set_weights_by_enumeration(k, scale):
    """Summed over all sets with their probabilities, the gradient of E[f] with respect to the tree's logits."""
    rng = np.random.default_rng(k)
    logits = rng.normal(scale=scale, size=6)
    probs = np.exp(logits - np.logaddexp.reduce(logits))
    f = rng.normal(size=6)
    gradient = np.zeros(6)
    for chosen in map(list, combinations(range(6), k)):
        rest = np.log(np.delete(probs, chosen).sum())
        weights = _unordered_set_weights(np.log(probs[chosen]), rest, f[chosen])
        score = np.eye(6)[chosen] - probs  # gradient of log p of each
        gradient += set_probability(chosen, probs) * (weights @ score)
    np.testing.assert_allclose(gradient, probs * (f - probs @ f), atol=1e-9)


def test_gradient_is_unbiased():
    scores = random_graph(25, 3, 1.0)
    law = Listed(scores)
    f = np.random.default_rng(1).normal(size=len(law))
    edges = np.zeros((len(law), 4, 4))
    edges[np.arange(len(law))[:, None], law.heads[:, 1:], np.arange(1, 4)] = 1.0
    marginals = np.tensordot(law.probs, edges, 1)
    truth = np.tensordot(law.probs * (f - law.probs @ f), edges, 1)
    sample = sample_often(scores, 3)
    tree = law.index(sample.heads)
    weights = sample.gradient_weights(f[tree])
    assert_unbiased(np.einsum("kb,kbij->bij", weights, edges[tree] - marginals), truth)


def test_gradient_is_exact_with_all_trees():
    scores = random_graph(26, 3)
    law = Listed(scores)
    f = np.arange(9.0)
    sample = TreeDistribution(scores).sample_without_replacement(9, rng=1)
    tree = law.index(sample.heads)
    np.testing.assert_allclose(sample.gradient_weights(f[tree]), law.probs[tree] * (f[tree] - law.probs @ f))


def exact_set_weights(log_probs, log_rest, f):
    """The same weights from integrals of many digits."""
    p, rest = [mp.exp(x) for x in log_probs], mp.exp(log_rest)

    def set_probability(without):
        kept = [q for i, q in enumerate(p) if i not in without]
        # Over s = exp(-rest t), where the clocks of the rest have not rung.
        return mp.quad(lambda s: mp.fprod(1 - s ** (q / rest) for q in kept), [0, 0.01, 0.1, 0.5, 0.9, 1])

    whole = set_probability(())
    alone = [set_probability((i,)) for i in range(len(p))]
    weights = []
    for i in range(len(p)):
        baseline = p[i] * f[i]
        for j in range(len(p)):
            if j != i:
                baseline += p[j] * set_probability((i, j)) / alone[i] * f[j]
        weights.append(p[i] * alone[i] / whole * (f[i] - baseline))
    return np.array([float(x) for x in weights])


@pytest.mark.parametrize("log_rest", [-1e-3, -0.7, -8.0, -30.0])
@pytest.mark.parametrize("spread", [0.1, 5.0])
def test_unordered_set_weights_with_many_digits(log_rest, spread):
    rng = np.random.default_rng(4)
    logits = rng.normal(scale=spread, size=4)
    log_probs = logits - np.logaddexp.reduce(logits) + np.log1p(-np.exp(log_rest))
    f = rng.normal(size=4)
    with mp.workdps(30):
        exact = exact_set_weights(log_probs, log_rest, f)
    np.testing.assert_allclose(_unordered_set_weights(log_probs, log_rest, f), exact, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("count", [200, 3000])
def test_unordered_set_weights_of_many_alike(count):
    """Of N trees that are all alike, any k are equally likely: R and R' are ratios of binomial coefficients."""
    total = 2 * count
    log_probs = np.full(count, -np.log(total))
    f = np.random.default_rng(0).normal(size=count)
    weights = _unordered_set_weights(log_probs, np.log(0.5), f)
    # R = C(N, k) / C(N - 1, k - 1), so p R = 1 / k; R' = C(N - 1, k - 1) / C(N - 2, k - 2).
    others = (f.sum() - f) / (count - 1) * (1 - 1 / total)
    np.testing.assert_allclose(weights, (f - others - f / total) / count, rtol=1e-9, atol=1e-13)


def test_weights_once_only_hopeless_trees_are_left():
    scores = np.zeros((4, 4))
    scores[1, 2] = scores[1, 3] = scores[2, 3] = -1e9
    sample = TreeDistribution(scores).sample_without_replacement(2, rng=0)
    np.testing.assert_allclose(sample.gradient_weights([1.0, 0.0]), [0.25, -0.25], rtol=1e-12)
    np.testing.assert_allclose(sample.estimate([1.0, 0.0]), 0.5, rtol=1e-12)


@pytest.mark.parametrize("empty", [np.zeros((0, 4, 4)), np.zeros((3, 0, 4, 4)), []], ids=["batch", "two axes", "list"])
def test_no_sentences(empty):
    sample = TreeDistribution(empty).sample_without_replacement(3, rng=0)
    if isinstance(empty, list):
        assert sample.estimate(lambda heads: 1.0) == sample.estimate([]) == sample.gradient_weights([]) == []
        return
    leading = empty.shape[:-2]
    assert sample.estimate(lambda heads: 1.0).shape == leading
    assert sample.estimate(np.zeros((3, *leading, 7))).shape == (*leading, 7)
    assert sample.gradient_weights(lambda heads: 1.0).shape == (3, *leading)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_samples_are_copied_and_pickled(again):
    sentences = [random_graph(27, 3), random_graph(28, 4)]
    for dist in (TreeDistribution(sentences), TreeDistribution(sentences[0])):
        sample = dist.sample_without_replacement(4, rng=0)
        other = again(sample)
        assert repr(other) == repr(sample)
        for name in ("heads", "log_probs", "keys", "threshold", "log_remaining"):
            ours, theirs = getattr(other, name), getattr(sample, name)
            assert type(ours) is type(theirs)
            assert all(map(np.array_equal, ours, theirs)) if isinstance(ours, list) else np.array_equal(ours, theirs)
        np.testing.assert_array_equal(other.estimate(lambda heads: heads[1]), sample.estimate(lambda heads: heads[1]))


def test_estimates_in_single_precision_are_rounded_once():
    scores = random_graph(29, 4).astype(np.float32)
    single = TreeDistribution(scores).sample_without_replacement(5, rng=1)
    double = TreeDistribution(scores.astype(float)).sample_without_replacement(5, rng=1)
    count = lambda heads: float((heads == 0).sum()) + heads[2]  # noqa: E731
    for name in ("estimate", "gradient_weights"):
        rounded = getattr(single, name)(count)
        assert rounded.dtype == np.float32
        np.testing.assert_array_equal(rounded, np.float32(getattr(double, name)(count)))


def test_infinite_values_do_not_warn():
    sample = TreeDistribution(np.zeros((4, 4))).sample_without_replacement(2, rng=0)
    assert np.isnan(sample.gradient_weights(lambda heads: np.inf)).any()
