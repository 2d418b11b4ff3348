"""Draws without replacement: orders, inclusion, the tail, keys. False-alarm rates as in test_with_replacement.py."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from oracle.chi_square import FALSE_ALARM, p_value
from oracle.listed import Listed
from sampling.draws import random_graph
from spantree import TreeDistribution

METHODS = ("auto", "trie", "beam")
REPETITIONS = 50_000


def repeated(scores, k, *, root="single", projective=False, method, seed, repetitions=REPETITIONS):
    """The same sentence many times in one batch: independent samples."""
    batch = np.broadcast_to(scores, (repetitions, *scores.shape))
    dist = TreeDistribution(batch, root=root, projective=projective)
    return dist.sample_without_replacement(k, rng=seed, method=method)


def ordered_pairs(probs):
    """P(first i, then j)."""
    pairs = probs[:, None] * probs / (1 - probs)[:, None]
    np.fill_diagonal(pairs, 0.0)
    return pairs


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("root", ["single", "multi"])
@pytest.mark.parametrize("projective", [False, True])
@pytest.mark.parametrize("scale", [0.5, 3.0])
def test_ordered_pairs(method, root, projective, scale):
    scores = random_graph(11, 3, scale, root=root)
    law = Listed(scores, root, projective)
    sample = repeated(scores, 2, root=root, projective=projective, method=method, seed=1)
    first, second = map(law.index, sample.heads)
    counts = np.zeros((len(law), len(law)))
    np.add.at(counts, (first, second), 1)
    assert p_value(counts, ordered_pairs(law.probs)) > FALSE_ALARM


@pytest.mark.parametrize("method", METHODS)
def test_inclusion_probabilities(method):
    """Of three trees out of nine, by summing over all orders."""
    scores = random_graph(12, 3, 1.5)
    law = Listed(scores)
    p = law.probs
    inclusion = np.zeros(len(law))
    for a, b, c in product(range(len(law)), repeat=3):
        if len({a, b, c}) == 3:
            chance = p[a] * p[b] / (1 - p[a]) * p[c] / (1 - p[a] - p[b])
            inclusion[[a, b, c]] += chance
    sample = repeated(scores, 3, method=method, seed=2)
    counts = np.bincount(law.index(sample.heads.reshape(-1, 4)), minlength=len(law))
    z = (counts - REPETITIONS * inclusion) / np.sqrt(REPETITIONS * inclusion * (1 - inclusion))
    assert np.abs(z).max() < stats.norm.isf(FALSE_ALARM / 2 / len(law))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("root", ["single", "multi"])
@pytest.mark.parametrize("projective", [False, True])
@pytest.mark.parametrize("scale", [0.3, 5.0, 50.0, 400.0])
def test_every_tree_once(method, root, projective, scale):
    scores = random_graph(13, 4, scale, 0.1, root, projective)
    law = Listed(scores, root, projective)
    dist = TreeDistribution(scores, root=root, projective=projective)
    sample = dist.sample_without_replacement(len(law) + 3, rng=3, method=method)
    drawn = law.index(sample.heads[: len(law)])
    assert sorted(drawn) == list(range(len(law)))
    assert (sample.heads[len(law) :] == -1).all()
    np.testing.assert_allclose(sample.log_probs[: len(law)], law.log_probs[drawn], atol=1e-12 * max(1, scale))
    assert (sample.log_probs[len(law) :] == -np.inf).all()
    assert (sample.keys[len(law) :] == -np.inf).all()
    assert (np.diff(sample.keys[: len(law)]) < 0).all()
    assert sample.threshold == sample.log_remaining == -np.inf


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("projective", [False, True])
def test_no_word_and_one_word(method, projective):
    """Each has one tree."""
    for words in (0, 1):
        dist = TreeDistribution(np.zeros((words + 1, words + 1)), projective=projective)
        sample = dist.sample_without_replacement(2, rng=0, method=method)
        assert sample.heads.tolist() == [[-1, 0][: words + 1], [-1] * (words + 1)]
        assert sample.log_probs.tolist() == [0.0, -np.inf]
        assert sample.threshold == -np.inf


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("tail", [30, 300])
def test_tail(method, tail):
    """All but 10^-tail of the mass is in few trees; those after them still come in the right proportions."""
    rng = np.random.default_rng(4)
    scores = rng.normal(size=(4, 4))
    scores[0, 1] += tail * np.log(10)  # trees with another root word have this much less
    law = Listed(scores)
    heavy = law.log_probs > -tail * np.log(10) / 2
    best = TreeDistribution(scores).topk(len(law))
    np.testing.assert_array_equal(np.sort(law.index(best.heads[: heavy.sum()])), np.flatnonzero(heavy))
    sample = repeated(scores, heavy.sum() + 2, method=method, seed=5, repetitions=20_000)
    rest = np.flatnonzero(~heavy)
    light = law.log_probs[rest]
    probs = np.exp(light - np.logaddexp.reduce(light))
    first, second = (np.searchsorted(rest, law.index(heads)) for heads in sample.heads[-2:])
    assert np.isin(law.index(sample.heads[-2:]), rest).all()
    counts = np.zeros((len(rest), len(rest)))
    np.add.at(counts, (first, second), 1)
    assert p_value(counts, ordered_pairs(probs)) > FALSE_ALARM
    drawn = [law.index(heads) for heads in sample.heads]
    for i in range(20):
        gone = {int(d[i]) for d in drawn}
        left = np.logaddexp.reduce([x for t, x in enumerate(law.log_probs) if t not in gone])
        np.testing.assert_allclose(sample.log_remaining[i], left, atol=1e-11)


@pytest.mark.parametrize("method", METHODS)
def test_keys(method):
    """Keys and threshold as the largest of independent Gumbel variables: uniform once transformed, step by step."""
    scores = random_graph(14, 3)
    law = Listed(scores)
    sample = repeated(scores, 3, method=method, seed=6, repetitions=20_000)
    drawn = law.probs[np.stack([law.index(heads) for heads in sample.heads])]
    left = np.vstack([np.ones(20_000), 1 - np.cumsum(drawn, axis=0)])
    times = np.exp(-np.vstack([sample.keys, sample.threshold]))
    waits = np.diff(np.vstack([np.zeros(20_000), times]), axis=0) * left
    for wait in waits:
        assert stats.kstest(wait, "expon").pvalue > FALSE_ALARM
    assert abs(stats.spearmanr(waits[0], waits[1]).statistic) < 7 / np.sqrt(20_000)
    np.testing.assert_allclose(np.exp(sample.log_remaining), left[-1], rtol=1e-9)


def test_methods_agree_on_long_sentences(trained_sentences):
    """Different trees, exact log-probabilities, keys in order."""
    for scores in [np.random.default_rng(0).normal(size=(41, 41)), *trained_sentences[::8]]:
        dist = TreeDistribution(scores.astype(float))
        for method in METHODS:
            sample = dist.sample_without_replacement(60, rng=1, method=method)
            there = sample.log_probs > -np.inf
            assert len({tuple(heads) for heads in sample.heads[there].tolist()}) == there.sum()
            assert (np.diff(sample.keys[there]) < 0).all()
            offset = dist.score(sample.heads[there]) - sample.log_probs[there]
            assert np.ptp(offset) < 1e-12 * 60


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("projective", [False, True])
def test_labelled_trees_are_what_is_drawn(method, projective):
    rng = np.random.default_rng(7)
    scores = rng.normal(size=(3, 3, 2)) * 2
    scores[1, 2, 1] = -np.inf
    dist = TreeDistribution(scores, labelled=True, projective=projective)
    every = dist.topk(20)
    count = int((every.scores > -np.inf).sum())
    assert count == 4 + 2
    log_probs = every.scores[:count] - np.logaddexp.reduce(every.scores[:count])
    codes = {(*h, *y): i for i, (h, y) in enumerate(zip(every.heads.tolist(), every.labels.tolist(), strict=True))}
    sample = dist.sample_without_replacement(count + 1, rng=8, method=method)
    drawn = [codes[(*h, *y)] for h, y in zip(sample.heads.tolist(), sample.labels.tolist(), strict=True)]
    assert sorted(drawn[:count]) == list(range(count))
    np.testing.assert_allclose(sample.log_probs[:count], log_probs[drawn[:count]], atol=1e-13)
    batch = np.broadcast_to(scores, (REPETITIONS, *scores.shape))
    many = TreeDistribution(batch, labelled=True, projective=projective)
    pairs = many.sample_without_replacement(2, rng=9, method=method)
    rows = np.concatenate([pairs.heads, pairs.labels], axis=-1).tolist()
    counts = np.zeros((count, count))
    np.add.at(counts, tuple([codes[tuple(row)] for row in side] for side in rows), 1)
    assert p_value(counts, ordered_pairs(np.exp(log_probs))) > FALSE_ALARM


@pytest.mark.parametrize("projective", [False, True])
def test_iterator_goes_to_the_end(projective):
    scores = random_graph(15, 4, 2.0)
    law = Listed(scores, projective=projective)
    dist = TreeDistribution(scores, projective=projective)
    trees = list(dist.iter_without_replacement(rng=0))
    drawn = law.index(np.array([tree.heads for tree in trees]))
    assert sorted(drawn) == list(range(len(law)))
    np.testing.assert_allclose([tree.scores for tree in trees], law.log_probs[drawn], atol=1e-12)
    again = [tree.heads for tree in dist.iter_without_replacement(rng=0)]
    np.testing.assert_array_equal(again, [tree.heads for tree in trees])
    same = dist.sample_without_replacement(len(law), rng=0)
    np.testing.assert_array_equal(same.heads, again)


def test_iterator_has_the_same_numbers_beyond_the_largest_double():
    """-inf is no tree: what is lower than all doubles is the lowest of them."""
    mask = -1.7e308
    scores = np.array([[0, 0, 0, 0], [0, 0, mask, mask], [0, mask, 0, mask], [0, mask, mask, 0]])
    dist = TreeDistribution(scores, root="multi")
    one_by_one = [tree.scores for tree in dist.iter_without_replacement(rng=0)]
    np.testing.assert_array_equal(one_by_one, dist.sample_without_replacement(16, rng=0).log_probs)
    assert min(one_by_one) == np.finfo(np.float64).min


def test_many_trees():
    """The order of 20,000 draws by walks: all different, mass as it should be."""
    scores = np.random.default_rng(16).normal(size=(13, 13))
    sample = TreeDistribution(scores).sample_without_replacement(20_000, rng=1)
    assert len(np.unique(sample.heads, axis=0)) == 20_000
    np.testing.assert_allclose(np.exp(sample.log_remaining), 1 - np.exp(sample.log_probs).sum(), rtol=1e-10)
