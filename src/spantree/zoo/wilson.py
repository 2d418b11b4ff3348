"""Wilson's sampler of spanning trees: any number of root edges.

Wilson (1996), as in Zmigrod, Vieira and Cotterell, "Efficient Sampling of Dependency Structures", figure 2,
and Stanojevic, "Unbiased and Efficient Sampling of Dependency Trees", algorithm 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._draws import Rng, read_k
from ._graph import FloatArray, IntArray, clean_scores, require_tree
from ._walk import attach_all, stochastic_graph
from .matrix_tree import invert, scale_columns


def wilson(scores: ArrayLike, k: int, rng: Rng = None) -> IntArray:
    """Independent draws from the distribution over trees with several roots.

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
    NoTreeError
        No tree exists.
    FloatingPointError
        Every tree has an edge whose weight underflows next to the best of its column.

    Notes
    -----
    Unbiased. Expected time proportional to the number of steps, `mean_steps`, as small as O(n); no worst
    case. Only nonnegative numbers are added, so the accuracy does not suffer from sharp scores, but the time
    does: words that prefer each other to ROOT by x nats take about exp(x) steps to get away.

    Examples
    --------
    >>> wilson([[0, 0, -np.inf], [0, 0, 0], [0, -np.inf, 0]], 2, rng=0)
    array([[-1,  0,  1],
           [-1,  0,  1]])
    """
    generator = np.random.default_rng(rng)
    sampler = SpanningTrees(scores)
    heads = [sampler.tree(generator) for _ in range(read_k(k))]
    return np.array(heads, dtype=np.int64).reshape(k, sampler.nodes)


class SpanningTrees:
    """The graph made stochastic once, for any number of trees."""

    def __init__(self, scores: ArrayLike) -> None:
        theta = clean_scores(scores)
        require_tree(theta, "multi")
        weights, _ = scale_columns(theta, "multi")
        self.nodes = len(theta)
        self.steps: list[FloatArray] = stochastic_graph(weights)

    def tree(self, rng: np.random.Generator) -> IntArray:
        """One tree: heads, shape (n+1,)."""
        t = np.full(self.nodes, -1, dtype=np.int64)
        visited = [True] + [False] * (self.nodes - 1)
        return attach_all(self.steps, t, visited, rng)


def mean_steps(scores: ArrayLike) -> float:
    """Expected number of steps of `wilson` for one tree: the sum over words of ``L[j, j] * (L^-1)[j, j]``.

    The walk leaves word ``j`` with total weight ``L[j, j]``, and with weight ``1 / (L^-1)[j, j]`` never to
    return, and the loops erased do not depend on the tree.

    Notes
    -----
    O(n^3), by the inverse, with its accuracy.

    Examples
    --------
    Two words that like each other 99 times more than ROOT.

    >>> print(round(mean_steps(np.log([[1, 1, 1], [1, 1, 99], [1, 99, 1]])), 6))
    100.502513
    """
    inverse = invert(scores, "multi")
    return float(inverse.weights[:, 1:].sum(axis=0) @ inverse.B.diagonal())
