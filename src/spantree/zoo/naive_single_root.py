"""One root the naive way: try every word as the root."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from ._graph import FloatArray, IntArray, NoTreeError, clean_scores, require_tree, tree_score
from .tarjan import tarjan


def naive_single_root(scores: ArrayLike) -> IntArray:
    """Find a best tree with one root in O(n^3), by one run of `tarjan` for each root edge.

    Stanojevic and Cohen (2021), "A Root of a Problem", section 3 (the Naive algorithm).

    Promise: a best tree among those with exactly one root; as many runs of the O(n^2) decoder as ROOT has
    edges, never fewer. Ties go to the lowest root. Numerically as sound as `tarjan`: nothing is added to
    the scores.

    Parameters
    ----------
    scores : array_like, shape (n+1, n+1)
        Log-weights ``[head, dependent]``.

    Returns
    -------
    IntArray, shape (n+1,)
        The heads, ``heads[0] = -1``, one of them 0.

    Raises
    ------
    NoTreeError
        No tree with a single root exists (although one with several roots may).

    Examples
    --------
    >>> naive_single_root([[0, 9, 9, 1], [0, 0, 1, 5], [0, 2, 0, 1], [0, 1, 1, 0]])
    array([-1,  2,  0,  1])
    """
    w = clean_scores(scores)
    require_tree(w, "single")
    if len(w) == 1:
        return tarjan(w)
    return best_with_root_among(w, np.flatnonzero(w[0] > -np.inf).tolist())


def best_with_root_among(w: FloatArray, candidates: Iterable[int]) -> IntArray:
    """The best of the trees whose one root is a candidate; at least one candidate must have a tree."""
    best: IntArray | None = None
    best_score = -np.inf
    for r in candidates:
        try:
            heads = tarjan(with_only_root(w, r))
        except NoTreeError:
            continue
        score = tree_score(w, heads)
        if best is None or score > best_score:
            best, best_score = heads, score
    assert best is not None
    return best


def with_only_root(w: FloatArray, r: int) -> FloatArray:
    """The graph in which `r` is the only word that ROOT has an edge to."""
    only: FloatArray = w.copy()
    only[0] = -np.inf
    only[0, r] = w[0, r]
    return only
