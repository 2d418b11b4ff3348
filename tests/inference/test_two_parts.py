"""Sentences whose trees come in two parts: words that can be nobody's head, padding that is masked, a root that is set.

With one root, these leave words without any way but ROOT in the middle of the elimination. Against many digits.
"""

from __future__ import annotations

import itertools

import mpmath as mp
import numpy as np
import pytest

import spantree
from oracle.laplacian import exact, exact_gradient
from oracle.law import BITS, Law, floats, to_float

WORDS = 9
MASKS = [-np.inf, -1e9, -1e30]


def leaf(*words):
    """These words are nobody's head."""

    def mask(scores, forbidden):
        scores[list(words), :] = forbidden

    return mask


def padding(count):
    """The last words are masked as heads and as dependents."""

    def mask(scores, forbidden):
        scores[-count:, :] = forbidden
        scores[:, -count:] = forbidden if np.isfinite(forbidden) else -1e30

    return mask


def root_is(word):
    """The word has no other head than ROOT, and ROOT no other dependent."""

    def mask(scores, forbidden):
        kept = scores[0, word]
        scores[1:, word] = forbidden
        scores[0, :] = forbidden
        scores[0, word] = kept

    return mask


def one_way(scores, forbidden):
    """Words 1 to 4 can be above words 5 to 9, not below them."""
    scores[5:, 1:5] = forbidden


def below_a_leaf(scores, forbidden):
    """Word 8 can only be above word 9, and is its only head but for the first word."""
    scores[8, 1:9] = forbidden
    scores[2:8, 9] = scores[0, 9] = forbidden
    scores[9, :] = forbidden


SHAPES = [leaf(9), leaf(1), leaf(2, 3, 7), padding(1), padding(3), root_is(1), root_is(5), one_way, below_a_leaf]


def batch(scale, forbidden):
    rng = np.random.default_rng([int(scale), 4])
    scores = rng.normal(size=(len(SHAPES), WORDS + 1, WORDS + 1)) * scale
    for sentence, mask in zip(scores, SHAPES, strict=True):
        mask(sentence, forbidden)
    return scores


def without_masks(sentence):
    """Scores with what a masked column has in common taken off, -inf for every other mask; and what was taken off."""
    highest = sentence.max(axis=0)
    common = np.where(highest < -1e8, highest, 0.0)
    moderate = sentence - common
    return np.where(moderate < -1e8, -np.inf, moderate), common.sum()


@pytest.mark.parametrize("forbidden", MASKS)
@pytest.mark.parametrize("scale", [1, 50])
def test_against_many_digits(scale, forbidden):
    scores = batch(scale, forbidden)
    together = spantree.TreeDistribution(scores)
    marginals, entropies, log_z = together.marginals(), together.entropy(), together.log_partition()
    for i, sentence in enumerate(scores):
        reference, common = without_masks(sentence)
        expected, expected_log_z = exact(reference, "single", 300 + 20 * scale)
        assert abs(float(expected_log_z) + common - log_z[i]) <= 1e-12 * abs(log_z[i])
        np.testing.assert_array_equal(spantree.marginals(sentence), marginals[i])
        entropy = expected_log_z
        for h in range(WORDS + 1):
            for d in range(1, WORDS + 1):
                if h == d or reference[h, d] == -np.inf:
                    assert marginals[i, h, d] == 0.0
                    continue
                entropy -= expected[h, d] * mp.mpf(float(reference[h, d]))
                error = abs(mp.mpf(float(marginals[i, h, d])) - expected[h, d])
                assert error <= (1e-11 * expected[h, d] if expected[h, d] > mp.mpf(10) ** -250 else 1e-200)
        assert abs(float(entropy) - entropies[i]) < 1e-11 * max(1.0, scale)


@pytest.mark.parametrize("forbidden", MASKS)
def test_gradients_against_many_digits(forbidden):
    scores = batch(3, forbidden)
    values = np.random.default_rng(8).normal(size=scores.shape)
    _, gradients = spantree.TreeDistribution(scores).expectation(values, with_grad=True)
    for i, sentence in enumerate(scores):
        expected = exact_gradient(without_masks(sentence)[0], values[i], "single", 300)
        np.testing.assert_allclose(gradients[i], expected, rtol=1e-9, atol=1e-13)


def test_two_roots_are_no_tree():
    scores = np.random.default_rng(5).normal(size=(8, 6, 6))
    scores[:, 1:, [2, 4]] = -np.inf
    dist = spantree.TreeDistribution(scores, on_infeasible="mask")
    assert (dist.log_partition() == -np.inf).all()
    assert np.isnan(dist.entropy()).all()
    islands = np.full((6, 6), -np.inf)
    islands[0], islands[1:3, 1:3], islands[3:, 3:] = 1.0, 2.0, 3.0
    assert spantree.log_partition(islands, on_infeasible="mask") == -np.inf


@pytest.mark.parametrize("mask", [-100.0, -1e3, -1e4, -1.6e4, -2e4, -1e9])
def test_a_mask_leaves_root_scores_their_digits(mask):
    """A word whose only likely head is ROOT: relative to its other heads, the score is as large as the mask."""
    rng = np.random.default_rng(0)
    for words, _ in itertools.product((3, 4, 5), range(5)):
        scores = np.where(rng.random((words + 1, words + 1)) < 0.3, mask, rng.normal(size=(words + 1, words + 1)))
        likely = rng.normal(size=words)
        scores[1:, 2], scores[0, 2] = mask, likely[0]
        scores[2, 1], scores[1, 3:] = likely[1], likely[2:]
        law = Law(scores)
        entropy = to_float(sum(p * -log_p for p, log_p in zip(law.probs, law.log_probs, strict=True)) >> BITS)
        for several in (1, 9):  # alone, and beside others
            dist = spantree.TreeDistribution(np.stack([scores] * several))
            log_probs = [dist.log_prob(np.stack([tree] * several))[-1] for tree in law.heads]
            np.testing.assert_allclose(np.exp(log_probs), floats(law.probs), rtol=0, atol=2e-15)
            np.testing.assert_allclose(dist.entropy(), entropy, rtol=0, atol=4e-15)
            np.testing.assert_allclose(dist.log_partition(), to_float(law.log_partition), rtol=0, atol=4e-15)
