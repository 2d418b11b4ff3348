"""Random projective trees: the generator, the law, and what it may depend on.

Each chi-square test below rejects a correct sampler with probability 1e-8; there are fewer than 100, so all of them
together raise a false alarm with probability below 1e-6. Seeds are fixed.
"""

from __future__ import annotations

import itertools

import mpmath
import numpy as np
import pytest
from scipy import stats

import spantree
from projective.reference import Sentences, marginals, projective_trees, random_sentences, sample, tree_scores
from spantree import _core

FALSE_ALARM = 1e-8
DRAWS = 200_000


def test_generator_matches_its_published_vectors():
    ones, pi = 2**64 - 1, [0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0, 0x082EFA98EC4E6C89]
    known = [
        ([0] * 4, [0] * 2, [0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B]),
        ([ones] * 4, [ones] * 2, [0x87B092C3013FE90B, 0x438C3C67BE8D0224, 0x9CC7D7C69CD777B6, 0xA09CAEBF594F0BA0]),
        (pi, [0x452821E638D01377, 0xBE5466CF34E90C6C],
         [0xA528F45403E61D95, 0x38C72DBD566E9788, 0xA5A1610E72FD18B5, 0x57BD43B5E52B7FE6]),
    ]  # fmt: skip
    for counter, key, expected in known:
        assert list(_core.philox(counter, key)) == expected


def test_generator_matches_numpy():
    """NumPy's Philox is the same function; it steps its counter before the first block."""
    rng = np.random.default_rng(41)
    for _ in range(20):
        counter, key = rng.integers(0, 2**64, 4, dtype=np.uint64), rng.integers(0, 2**64, 2, dtype=np.uint64)
        expected = np.random.Philox(counter=counter, key=key).random_raw(4)
        stepped = (sum(int(c) << (64 * i) for i, c in enumerate(counter)) + 1) % 2**256
        words = [stepped >> (64 * i) & (2**64 - 1) for i in range(4)]
        assert list(_core.philox(words, [int(k) for k in key])) == expected.tolist()


def tree_counts(heads, trees):
    """How often each tree was drawn; every draw must be one of them."""
    base = (trees.shape[1]) ** np.arange(trees.shape[1])
    codes, drawn = trees @ base, heads @ base
    order = np.argsort(codes)
    places = np.searchsorted(codes[order], drawn)
    assert (codes[order][places] == drawn).all()
    return np.bincount(order[places], minlength=len(trees))


def assert_drawn_from(counts, probability):
    """Chi-square, trees expected fewer than 20 times taken together."""
    assert (counts[probability == 0] == 0).all()
    draws = counts.sum()
    rare = probability * draws < 20
    observed = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(probability[~rare], probability[rare].sum()) * draws
    if expected[-1] < 20:  # too few even together: bounded apart, by the Poisson tail
        assert stats.poisson.sf(observed[-1] - 1, expected[-1]) > FALSE_ALARM
        observed, expected = observed[:-1], expected[:-1] * (observed[:-1].sum() / expected[:-1].sum())
    if len(observed) > 1:
        statistic = ((observed - expected) ** 2 / expected).sum()
        assert stats.chi2.sf(statistic, len(observed) - 1) > FALSE_ALARM


@pytest.mark.parametrize("root", ["single", "multi"])
@pytest.mark.parametrize("scale", [0.0, 1.0, 4.0, 400.0])
@pytest.mark.parametrize("density", [1.0, 0.7])
def test_law(root, scale, density):
    """Flat, ordinary, peaked, and in the extended range (large scores in steps, so that several trees have mass)."""
    tested = 0
    for index, raw in enumerate(random_sentences(42, 4, words=(2, 3, 4, 5), density=density)):
        scores, present = raw.copy(), np.isfinite(raw)
        scores[present] = scale * np.round(raw[present]) + raw[present] if scale > 100 else scale * raw[present]
        trees = projective_trees(len(scores) - 1, root)
        totals = tree_scores(scores, trees)
        if not np.isfinite(totals).any():
            continue
        probability = np.exp(totals - totals.max())
        heads = sample(Sentences(scores), root, DRAWS, (index, 7))
        assert_drawn_from(tree_counts(heads, trees), probability / probability.sum())
        tested += 1
    assert tested >= 2


def test_the_test_rejects_a_biased_sampler():
    scores = next(random_sentences(43, 1, words=(4,)))
    trees = projective_trees(4, "single")
    probability = np.exp(tree_scores(scores, trees))
    counts = tree_counts(sample(Sentences(scores), "single", DRAWS, (1, 2)), trees)
    biased = probability**1.05
    with pytest.raises(AssertionError):
        assert_drawn_from(counts, biased / biased.sum())


@pytest.mark.parametrize("root", ["single", "multi"])
@pytest.mark.parametrize("scale", [1.0, 60.0])
def test_edge_frequencies_of_longer_sentences(root, scale):
    """Each count is binomial; with one bound for all edges, a false alarm has probability 1e-8."""
    scores = scale * next(random_sentences(44, 1, words=(25,)))
    expected = marginals(scores, root)[1][:, 1:]
    heads = sample(Sentences(scores), root, 20_000, (3, 4))[:, 1:]
    counts = np.stack([(heads == head).sum(axis=0) for head in range(26)])
    assert (counts[expected == 0] == 0).all()
    tail = np.minimum(stats.binom.cdf(counts, 20_000, expected), stats.binom.sf(counts - 1, 20_000, expected))
    assert 2 * tail.min() * tail.size > FALSE_ALARM


def test_draws_depend_on_key_sentence_and_tree_only():
    sentences = list(random_sentences(45, 9, words=(3, 20, 9)))
    key = (2**63 + 5, 99)
    together = Sentences(*sentences)
    drawn = sample(together, "single", 40, key)
    np.testing.assert_array_equal(sample(together, "single", 40, key, threads=3), drawn)
    np.testing.assert_array_equal(sample(together, "single", 13, key), drawn[:13])
    rows = np.cumsum([0] + [len(s) for s in sentences])
    for i, sentence in enumerate(sentences):
        np.testing.assert_array_equal(
            sample(Sentences(sentence), "single", 40, key, first=i), drawn[:, rows[i] : rows[i + 1]]
        )
    assert (sample(together, "single", 40, (key[0], 98)) != drawn).any()
    twins = sample(Sentences(sentences[1], sentences[1]), "single", 40, key)
    assert (twins[:, :21] != twins[:, 21:]).any()


def test_tiny_and_infeasible_sentences():
    infeasible = np.full((3, 3), -np.inf)
    infeasible[0, 1] = 0.0
    for root in ("single", "multi"):
        drawn = sample(Sentences(np.zeros((1, 1)), infeasible, np.zeros((2, 2))), root, 3, (0, 0))
        assert drawn.tolist() == [[-1, -1, -1, -1, -1, 0]] * 3


@pytest.mark.parametrize("root", ["single", "multi"])
@pytest.mark.parametrize("scale", [1.0, 60.0, 1000.0])
@pytest.mark.parametrize("labels", [0, 2])
def test_without_replacement_until_none_is_left(root, scale, labels):
    """Every tree once, with its log-probability, however far below the others it is."""
    words = 3
    rng = np.random.default_rng(46)
    scores = scale * rng.normal(size=(4, 4, labels) if labels else (4, 4))
    scores[1, 2] = -np.inf
    trees = projective_trees(words, root)
    choices = list(np.ndindex(*[labels] * words)) if labels else [()]
    expected = {}
    for tree, choice in itertools.product(trees, choices):
        edges = (tree[1:], np.arange(1, words + 1), *([np.array(choice)] if labels else []))
        if np.isfinite(scores[edges]).all():
            expected[(*tree[1:].tolist(), *choice)] = mpmath.fsum(map(mpmath.mpf, scores[edges].tolist()))
    log_z = mpmath.log(mpmath.fsum(map(mpmath.exp, expected.values())))
    dist = spantree.TreeDistribution(scores, root=root, projective=True, labelled=labels > 0)
    for method in ("auto", "trie", "beam"):
        sample = dist.sample_without_replacement(len(expected) + 2, rng=1, method=method)
        drawn = sample.heads[:-2, 1:]
        if labels:
            drawn = np.concatenate([drawn, sample.labels[:-2, 1:]], axis=1)
        assert len({tuple(tree) for tree in drawn.tolist()}) == len(expected)
        for tree, log_prob in zip(drawn.tolist(), sample.log_probs, strict=False):
            assert abs(expected[tuple(tree)] - log_z - mpmath.mpf(float(log_prob))) <= 1e-14 * max(1, abs(log_z))
        assert (sample.heads[-2:] == -1).all()
        assert np.isneginf(sample.log_probs[-2:]).all()
        assert sample.threshold == -np.inf


def test_charts_are_kept_when_drawn_from_again_and_no_tree_changes():
    """Large charts are not kept for the first draws: trees are the same whether they are or not."""
    scores = np.random.default_rng(0).normal(size=(30, 31, 31))
    dist = spantree.TreeDistribution(scores, projective=True)
    first, second, third = (dist.sample(3, rng=7) for _ in range(3))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, third)
    dist = spantree.TreeDistribution(scores, projective=True)
    dist.marginals()
    np.testing.assert_array_equal(first, dist.sample(3, rng=7))
