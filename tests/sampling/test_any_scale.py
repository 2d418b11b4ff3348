"""Scores of any size: what is drawn, and all that is said about it, against sums with as many digits as it takes."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

from sampling.law import random_graph
from spantree import TreeDistribution
from spantree.zoo.enumerate_trees import enumerate_trees

METHODS = ("auto", "wilson-marginal", "wilson-reject", "ancestral")
DISTINCT = ("auto", "trie", "beam")
SOFT_MASKS = (-1e4, -1e9, -1e12, -1e30, float(np.finfo(np.float32).min), -1e300)

PADDED = np.full((4, 4), -1e30)
PADDED[:3, :3] = [[0, 1, 2], [0, 0, 3], [0, 5, 0]]
FAR_APART = np.array([[0, -1e12, -2e12], [0, 0, 0], [0, 0, 0.0]])


class ExactLaw:
    """log-probabilities of all trees, and of the rest once some are gone, from exact sums of the scores."""

    def __init__(self, scores, root="single"):
        words = len(scores) - 1
        self.log_probs = {}
        with mp.workdps(400):
            exact = {}
            for heads in enumerate_trees(words, root, False).tolist():
                edges = [float(scores[heads[d], d]) for d in range(1, words + 1)]
                if -np.inf not in edges:
                    exact[tuple(heads)] = mp.fsum(map(mp.mpf, edges))
            self._largest = max(exact.values())
            self._weights = {heads: mp.exp(score - self._largest) for heads, score in exact.items()}
            self._log_z = mp.log(mp.fsum(self._weights.values()))
            self.log_probs = {heads: score - self._largest - self._log_z for heads, score in exact.items()}

    def log_rest(self, gone):
        with mp.workdps(400):
            rest = [log_prob for heads, log_prob in self.log_probs.items() if heads not in gone]
            if not rest:
                return -np.inf
            top = max(rest)
            return float(top + mp.log(mp.fsum(mp.exp(x - top) for x in rest)))


def agree(ours, exact):
    np.testing.assert_allclose(ours, np.array([float(x) for x in exact]), rtol=1e-14, atol=1e-12)


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
    law = ExactLaw(scores, root)
    dist = TreeDistribution(scores, root=root)
    for k in {1, len(law.log_probs) // 3, len(law.log_probs) - 1, len(law.log_probs)} - {0}:
        sample = dist.sample_without_replacement(k, rng=k, method=method)
        trees = [tuple(heads) for heads in sample.heads.tolist()]
        assert len(set(trees)) == k
        agree(sample.log_probs, [law.log_probs[tree] for tree in trees])
        agree(sample.log_remaining, [law.log_rest(set(trees))])
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
    law = ExactLaw(scores)
    np.testing.assert_allclose(
        sample.log_probs, [float(law.log_probs[tuple(tree)]) for tree in sample.heads.tolist()], rtol=2e-7
    )
    assert sample.estimate(lambda heads: 1.0).dtype == np.float32


@pytest.mark.parametrize("scale", [1e5, 1e12, 1e16, 1e30, 1e100, 1e300])
@pytest.mark.parametrize("method", METHODS)
def test_scores_of_any_scale(scale, method):
    """Nothing is near anything: the best tree is certain."""
    for seed in range(5):
        scores = random_graph(50 + seed, 3, scale)
        law = ExactLaw(scores)
        dist = TreeDistribution(scores)
        assert (dist.sample(20, rng=0, method=method) == max(law.log_probs, key=law.log_probs.get)).all()
        sample = dist.sample_without_replacement(9, rng=0)
        agree(sample.log_probs, [law.log_probs[tuple(tree)] for tree in sample.heads.tolist()])
