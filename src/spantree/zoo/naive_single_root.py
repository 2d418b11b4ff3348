"""One root the naive way: try every word as the root."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from ._edges import EdgeList, Graph, read_graph, root_dependents, tree_score, with_only_root
from ._graph import IntArray, NoTreeError
from .reweighting import Decoder
from .tarjan import tarjan


def naive_single_root(scores: ArrayLike | EdgeList, mst_func: Decoder = tarjan) -> IntArray:
    """Find a best tree with one root, by one run of an unconstrained decoder for each root edge.

    Stanojevic and Cohen (2021), "A Root of a Problem", section 3 (the Naive algorithm).

    Promise: a best tree among those with exactly one root, of the kind that `mst_func`, as for `reweighting`, finds; as
    many runs as ROOT has edges, never fewer: O(n^3) with `tarjan`, O(n m + n^2 log n) on a list of edges with
    `gabow_galil_spencer_tarjan`. Ties go to the lowest root. Numerically as sound as `mst_func`: nothing is added to
    the scores.

    Examples
    --------
    >>> naive_single_root([[0, 9, 9, 1], [0, 0, 1, 5], [0, 2, 0, 1], [0, 1, 1, 0]])
    array([-1,  2,  0,  1])
    """
    graph = read_graph(scores, "single")
    candidates = root_dependents(graph)
    if not candidates:  # the sentence without words
        return mst_func(graph)
    return best_with_root_among(graph, candidates, mst_func)


def best_with_root_among(graph: Graph, candidates: Iterable[int], mst_func: Decoder) -> IntArray:
    """The best of the trees whose one root is a candidate."""
    best: IntArray | None = None
    best_score = -np.inf
    for r in candidates:
        try:
            heads = mst_func(with_only_root(graph, r))
        except NoTreeError:
            continue
        score = tree_score(graph, heads)
        if best is None or score > best_score:
            best, best_score = heads, score
    if best is None:  # mst_func finds trees of some kind only, and there is none with one root
        raise NoTreeError("no tree of this kind with a single root exists")
    return best
