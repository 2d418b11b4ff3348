"""One root by reweighting: make root edges so dear that a second one never pays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ._edges import AnyGraph, EdgeList, is_sparse, read_graph
from ._graph import FloatArray, IntArray, read_scores, tree_score
from .camerini_kbest import camerini_kbest
from .tarjan import tarjan

Decoder: TypeAlias = Callable[[Any], IntArray]
"""An algorithm for any number of roots: from a graph, matrix or list, to the heads of a best tree."""


def reweighting(scores: ArrayLike | EdgeList, mst_func: Decoder = tarjan) -> IntArray:
    """Find a best tree with one root, by one run of an unconstrained decoder on reweighted scores.

    Stanojevic and Cohen (2021), "A Root of a Problem", section 4, equations 3 to 6, and Figure 8.

    Promise: in real arithmetic, a best tree among those with exactly one root. In floating point the root
    scores lose the digits that c pushes out: about log10(n (max w - min w)) decimal digits. Where the
    matrix holds soft masks such as -1e9 or -1e30, c swamps the root scores altogether: the tree is still
    valid, but its root is chosen blindly. Use ``-inf`` to forbid edges, or `gabow_tarjan`.

    Parameters
    ----------
    mst_func : callable, default tarjan
        `tarjan`, `chu_liu_edmonds`, `tarjan_sparse`, `gabow_galil_spencer_tarjan`, or ``eisner`` with
        ``root="multi"``; anything that finds a best tree with any number of roots, or a best one of some kind.

    Notes
    -----
    The cost of `mst_func` plus O(n^2), or O(m) for a list of edges: O(n^2) with `tarjan`, O(m log n) with
    `tarjan_sparse`, O(m + n log n) with `gabow_galil_spencer_tarjan`.

    Raises
    ------
    OverflowError
        The constant c is too large for a double.

    Examples
    --------
    >>> from spantree.zoo import chu_liu_edmonds
    >>> reweighting([[0, 9, 9, 1], [0, 0, 1, 5], [0, 2, 0, 1], [0, 1, 1, 0]], chu_liu_edmonds)
    array([-1,  2,  0,  1])
    """
    return mst_func(reweight(read_graph(scores, "single")))


def reweight(w: AnyGraph) -> AnyGraph:
    """Subtract c = 1 + n (max w - min w) over allowed edges from all root edges (equations 5 and 6).

    Examples
    --------
    >>> from spantree.zoo._graph import clean_scores
    >>> reweight(clean_scores([[0, 3, 4], [0, 0, 1], [0, 1, 0]]))
    array([[-inf,  -4.,  -3.],
           [-inf, -inf,   1.],
           [-inf,   1., -inf]])
    """
    if isinstance(w, EdgeList):
        c = constant(w.weight, w.nodes - 1)
        return w._replace(weight=np.where(w.head == 0, w.weight - c, w.weight))
    reweighted: FloatArray = w.copy()
    reweighted[0] -= constant(w[w > -np.inf], len(w) - 1)
    return reweighted


def constant(weights: FloatArray, n: int) -> float:
    """Equation 5; 0 for a graph without edges."""
    if weights.size == 0:
        return 0.0
    with np.errstate(over="ignore"):
        c = float(1 + n * (weights.max() - weights.min()))
    if not np.isfinite(c):
        raise OverflowError(f"scores from {weights.min()} to {weights.max()} are too far apart for reweighting")
    return c


def reweighting_kbest(
    scores: ArrayLike, k: int, kbest_func: Callable[[FloatArray, int], tuple[IntArray, FloatArray]] = camerini_kbest
) -> tuple[IntArray, FloatArray]:
    """Find the `k` best trees with one root, by one unconstrained `kbest_func` on reweighted scores; section 4.

    All trees with one root come before all others, so of the first `k` those with one root are kept. Result as
    `camerini_kbest`'s, cost that of `kbest_func`, weakness that of `reweighting`; `single_root_kbest` has neither.

    Examples
    --------
    >>> heads, scores = reweighting_kbest([[0, 9, 9], [0, 0, 4], [0, 8, 0]], 2)  # the best tree has two root edges
    >>> heads.tolist(), scores.tolist()
    ([[-1, 2, 0], [-1, 0, 1]], [17.0, 13.0])
    """
    if is_sparse(scores):
        raise TypeError("k best trees are found on a matrix; a list of edges will not do")
    w = read_scores(scores, "single")
    heads, found = kbest_func(reweight(w), k)
    for tree in range(len(heads)):
        if np.count_nonzero(heads[tree] == 0) == (len(w) > 1) and found[tree] > -np.inf:
            found[tree] = tree_score(w, heads[tree])
        else:
            heads[tree], found[tree] = -1, -np.inf
    return heads, found
