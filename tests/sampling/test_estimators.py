"""Estimates from trees drawn without replacement: unbiased within four standard errors over 10,000 repetitions."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest

from sampling.law import Law, random_graph
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
    law = Law(scores)
    values = np.random.default_rng(0).normal(size=(len(law), 2))
    sample = sample_often(scores, k, method)
    estimates = sample.estimate(values[law.index(sample.heads)])
    assert estimates.shape == (REPETITIONS, 2)
    assert_unbiased(estimates, law.probs @ values)


def test_estimate_is_exact_with_all_trees():
    scores = random_graph(22, 4)
    law = Law(scores)
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
    law = Law(scores)
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
    law = Law(scores)
    f = np.arange(9.0)
    sample = TreeDistribution(scores).sample_without_replacement(9, rng=1)
    tree = law.index(sample.heads)
    np.testing.assert_allclose(sample.gradient_weights(f[tree]), law.probs[tree] * (f[tree] - law.probs @ f))
