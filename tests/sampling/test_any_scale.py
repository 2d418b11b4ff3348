"""Scores of any size: what is drawn, and all that is said about it, against sums with as many digits as it takes."""

from __future__ import annotations

import numpy as np
import pytest

from oracle.law import Law, floats
from sampling.draws import random_graph
from spantree import TreeDistribution

METHODS = ("auto", "wilson-marginal", "wilson-reject", "ancestral")
DISTINCT = ("auto", "trie", "beam")
SOFT_MASKS = (-1e4, -1e9, -1e12, -1e30, float(np.finfo(np.float32).min), -1e300)

PADDED = np.full((4, 4), -1e30)
PADDED[:3, :3] = [[0, 1, 2], [0, 0, 3], [0, 5, 0]]
FAR_APART = np.array([[0, -1e12, -2e12], [0, 0, 0], [0, 0, 0.0]])


def agree(ours, exact):
    np.testing.assert_allclose(ours, exact, rtol=1e-14, atol=1e-12)


def which(law, heads):
    """Which trees of the law these are."""
    at = np.array([law.index(tree) for tree in heads])
    assert (at >= 0).all()
    return at


def softly_masked(seed, mask):
    """Half of the edges masked, but some head for each word is not; there may be no tree without masked edges."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(5, 5))
    scores[rng.random(scores.shape) < 0.5] = mask
    for word in range(1, 5):
        scores[1 + word % 4, word] = rng.normal()
    scores[0, 1 + seed] = rng.normal()
    return scores


@pytest.mark.parametrize("method", METHODS)
def test_no_impossible_tree_is_drawn(method):
    assert (TreeDistribution(FAR_APART).sample(1000, rng=1, method=method) == [-1, 0, 1]).all()
    drawn = TreeDistribution(PADDED).sample(4000, rng=1, method=method)
    alone = TreeDistribution(PADDED[:3, :3]).sample(4000, rng=1, method=method)
    assert set(map(tuple, drawn[:, :3])) == set(map(tuple, alone))
    # Word 3 has any head but ROOT: two of the three words, alike. 4,000 draws, false alarm 1e-9.
    assert abs((drawn[:, 3] == 1).mean() - 0.5) < 6.1 * 0.5 / np.sqrt(4000)


@pytest.mark.parametrize("method", DISTINCT)
@pytest.mark.parametrize("scores", [FAR_APART, PADDED], ids=["far apart", "padding"])
def test_log_probs_keys_and_rest_of_hand_made_scores(scores, method):
    check_distinct(scores, "single", method)


@pytest.mark.parametrize("method", DISTINCT)
@pytest.mark.parametrize("root", ["single", "multi"])
@pytest.mark.parametrize("mask", SOFT_MASKS)
def test_log_probs_keys_and_rest_beside_soft_masks(mask, root, method):
    for seed in range(4):
        check_distinct(softly_masked(seed, mask), root, method)


def check_distinct(scores, root, method):
    law = Law(scores, root)
    log_probs, count = floats(law.log_probs), int(law.allowed.sum())
    dist = TreeDistribution(scores, root=root)
    for k in {1, count // 3, count - 1, count} - {0}:
        sample = dist.sample_without_replacement(k, rng=k, method=method)
        trees = which(law, sample.heads)
        assert len(set(trees)) == k
        agree(sample.log_probs, log_probs[trees])
        agree(sample.log_remaining, law.log_left(trees))
        keys = np.append(sample.keys, sample.threshold)
        assert (keys[:-1] >= keys[1:]).all()
        # A key is its tree's log-probability plus a Gumbel number, of which none is as far out as 40.
        np.testing.assert_allclose(sample.keys, sample.log_probs, atol=40, rtol=1e-14)


@pytest.mark.parametrize("method", DISTINCT)
def test_estimate_of_one_beside_a_masked_word(method):
    """All trees that count have been drawn after four: then the estimate is exact."""
    dist = TreeDistribution(PADDED)
    for k in (4, 5, 8, 12, 16):
        sample = dist.sample_without_replacement(k, rng=3, method=method)
        assert sample.estimate(lambda heads: 1.0) == pytest.approx(1.0, abs=1e-12)
        assert np.exp(sample.log_probs).sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("shift", [1e6, -3e7])
def test_float32_probabilities_add_up(shift):
    scores = (shift + 10 * random_graph(40, 3)).astype(np.float32)
    sample = TreeDistribution(scores).sample_without_replacement(9, rng=0)
    assert sample.log_probs.dtype == sample.keys.dtype == np.float32
    assert np.exp(sample.log_probs.astype(float)).sum() == pytest.approx(1.0, abs=1e-5)
    law = Law(scores)
    np.testing.assert_allclose(sample.log_probs, floats(law.log_probs)[which(law, sample.heads)], rtol=2e-7)
    assert sample.estimate(lambda heads: 1.0).dtype == np.float32


@pytest.mark.parametrize("scale", [1e5, 1e12, 1e16, 1e30, 1e100, 1e300])
@pytest.mark.parametrize("method", METHODS)
def test_scores_of_any_scale(scale, method):
    """Nothing is near anything: the best tree is certain."""
    for seed in range(5):
        scores = random_graph(50 + seed, 3, scale)
        law = Law(scores)
        dist = TreeDistribution(scores)
        assert (dist.sample(20, rng=0, method=method) == law.heads[np.argmax(law.probs)]).all()
        sample = dist.sample_without_replacement(9, rng=0)
        agree(sample.log_probs, floats(law.log_probs)[which(law, sample.heads)])
