"""The exact distribution over all trees of a small sentence, and the test that draws come from it."""

from __future__ import annotations

import numpy as np
from scipy import stats

from spantree import _core
from spantree._batch import Batch
from spantree.zoo.enumerate_trees import enumerate_trees

DRAWS = 200_000
FALSE_ALARM = 1e-9  # of one test; there are fewer than 1,000


class Law:
    """Every tree that the scores allow, and its probability."""

    def __init__(self, scores, root="single", projective=False):
        words = len(scores) - 1
        heads = enumerate_trees(words, root, projective)
        score = np.asarray(scores, float)[heads[:, 1:], np.arange(1, words + 1)].sum(1)
        self.heads, score = heads[score > -np.inf], score[score > -np.inf]
        self.log_probs = score - np.logaddexp.reduce(score)
        self.probs = np.exp(self.log_probs)
        self._codes = _codes(self.heads)
        self._order = np.argsort(self._codes)

    def __len__(self):
        return len(self.heads)

    def index(self, heads):
        """Which tree each row of heads is; fails if one is none."""
        codes = _codes(heads)
        at = self._order[np.searchsorted(self._codes, codes, sorter=self._order).clip(max=len(self) - 1)]
        assert (self._codes[at] == codes).all(), "drawn, but not a tree of the sentence"
        return at


def _codes(heads):
    """A number for each row."""
    words = heads.shape[-1] - 1
    return heads[..., 1:] @ (words + 1) ** np.arange(words)


def p_value(counts, probs):
    """Chi-square; outcomes expected less than five times count as one, and impossible ones must not occur."""
    counts, expected = np.ravel(counts), np.ravel(probs) * np.sum(counts)
    assert not counts[expected == 0].any()
    rare = expected < 5
    counts = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    if expected[-1] < 5:  # too few even together: let them be, unless there are very many
        assert stats.poisson.sf(counts[-1] - 1, expected[-1]) > FALSE_ALARM
        counts, expected = counts[:-1], expected[:-1]
        expected = expected * counts.sum() / expected.sum()
    return 1.0 if len(counts) < 2 else stats.chisquare(counts, expected).pvalue


def follows(law, heads):
    """Whether the trees may have been drawn from the law."""
    return p_value(np.bincount(law.index(heads), minlength=len(law)), law.probs) > FALSE_ALARM


def draw_with_budget(scores, k, *, root, method="automatic", budget, seed=0):
    """k trees by walks that may take `budget` steps, and which of them fell back on the ancestral method."""
    batch = Batch.read(scores)
    heads, fell_back = np.empty(k * batch.core.row_size, np.int64), np.zeros(k, np.int64)
    method = getattr(_core.SamplingMethod, method)
    root = getattr(_core.Root, root)
    keys = np.array([[seed, 7]], np.uint64)
    _core.sample(batch.core, root, False, method, k, keys, 0, budget, 1, heads, None, fell_back, None)
    return heads.reshape(k, -1), fell_back.astype(bool)


def random_graph(seed, words, scale=1.0, forbidden=0.0, root="single", projective=False):
    """Gaussian scores with some edges forbidden, but not so many that there is no tree."""
    rng = np.random.default_rng(seed)
    while True:
        scores = rng.normal(scale=scale, size=(words + 1, words + 1))
        scores[rng.random(scores.shape) < forbidden] = -np.inf
        heads = enumerate_trees(words, root, projective)
        if (scores[heads[:, 1:], np.arange(1, words + 1)].sum(1) > -np.inf).any():
            return scores
