"""Sentences to draw from, draws with a budget of steps, and whether draws follow the law."""

from __future__ import annotations

import numpy as np

from oracle.chi_square import FALSE_ALARM, p_value
from oracle.listed import Listed
from spantree import _core
from spantree._batch import Batch

DRAWS = 200_000


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
        if Listed(scores, root, projective).feasible:
            return scores
