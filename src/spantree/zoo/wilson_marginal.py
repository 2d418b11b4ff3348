"""Wilson's sampler with a root drawn first by its marginal: unbiased.

Stanojevic, "Unbiased and Efficient Sampling of Dependency Trees", algorithm 3 and theorem 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._draws import Rng, cumulative, draw, read_k
from ._graph import IntArray
from ._support import root_words
from ._walk import dependency_tree, stochastic_graph
from .matrix_tree import invert


def wilson_marginal(scores: ArrayLike, k: int, rng: Rng = None) -> IntArray:
    """Independent draws from the distribution over trees with one root.

    Parameters
    ----------
    scores : array_like, shape (n+1, n+1)
        Log-weights ``[head, dependent]``.
    k : int
        Number of trees.
    rng : None, int or numpy.random.Generator
        Source of randomness.

    Returns
    -------
    IntArray, shape (k, n+1)
        Heads.

    Raises
    ------
    NoTreeError, FloatingPointError, numpy.linalg.LinAlgError
        As `matrix_tree`.

    Notes
    -----
    Unbiased. O(n^3) once, then the time of `wilson` between words for each tree. The root edge is as accurate
    as the marginals of `matrix_tree`, which sharp scores break (negative ones are taken as 0); the rest of
    the tree is exact given its root.

    Line 3 of the algorithm leaves the drawn edge as the only way to ROOT. Its word is put in the tree at once
    here, which saves the walks from that word and changes nothing else.

    Examples
    --------
    >>> wilson_marginal([[0, 0, -np.inf], [0, 0, 0], [0, -np.inf, 0]], 2, rng=0)
    array([[-1,  0,  1],
           [-1,  0,  1]])
    """
    generator = np.random.default_rng(rng)
    inverse = invert(scores, "single")
    k = read_k(k)
    weights = inverse.weights
    if len(weights) == 1:
        return np.full((k, 1), -1, dtype=np.int64)
    usable = root_words(weights > 0.0)
    roots = cumulative(np.where(usable, np.maximum(inverse.marginals()[0], 0.0), 0.0))
    steps = stochastic_graph(np.where(np.arange(len(weights))[:, None] > 0, weights, 0.0))
    heads = [dependency_tree(draw(roots, generator), steps, generator) for _ in range(k)]
    return np.array(heads, dtype=np.int64).reshape(k, len(weights))
