"""The k best trees with one root: one ranking for each root, opened only when its turn has come."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from ._edges import with_only_root
from ._graph import FloatArray, IntArray, NoTreeError, read_scores, tree_score
from .camerini_kbest import collect, rank
from .gabow_tarjan import gabow_tarjan


def single_root_kbest(scores: ArrayLike, k: int) -> tuple[IntArray, FloatArray]:
    """Find the `k` best trees with one root in O(k n^2).

    Zmigrod, Vieira and Cotterell (2021), "On Finding the K-best Non-projective Dependency Trees": the trees
    fall into classes by their root edge. With the root edge fixed, `camerini_kbest` ranks the trees of a
    class; the best tree among the classes not yet opened is what `gabow_tarjan` finds once the root edges
    of the opened ones are deleted. `reweighting_kbest` is another way to the same trees.

    Promise and result as `camerini_kbest`'s, of trees with exactly one root. Numerically as sound as `camerini_kbest`:
    nothing is added to the root scores.

    Examples
    --------
    >>> heads, scores = single_root_kbest([[0, 1, 2], [0, 0, 4], [0, 8, 0]], 3)
    >>> heads
    array([[-1,  2,  0],
           [-1,  0,  1],
           [-1, -1, -1]])
    >>> scores
    array([ 10.,   5., -inf])
    """
    w = read_scores(scores, "single")
    return collect(rank_with_one_root(w), k, w)


def rank_with_one_root(w: FloatArray) -> Iterator[IntArray]:
    """The trees of `w` with one root, best first, each found when it is asked for."""
    if len(w) == 1:
        yield from rank(w)
        return
    waiting: list[tuple[float, int, IntArray]] = []
    rankings: dict[int, Iterator[IntArray]] = {}
    unopened = w.copy()

    def push(tree: IntArray) -> None:
        (root,) = np.flatnonzero(tree == 0).tolist()
        heapq.heappush(waiting, (-tree_score(w, tree), root, tree))

    def push_best_unopened() -> None:
        try:
            push(gabow_tarjan(unopened))
        except NoTreeError:
            return

    push_best_unopened()
    while waiting:
        _, root, tree = heapq.heappop(waiting)
        if root not in rankings:
            rankings[root] = rank(with_only_root(w, root))
            unopened[0, root] = -np.inf
            push_best_unopened()
            tree = next(rankings[root])
        yield tree
        following = next(rankings[root], None)
        if following is not None:
            push(following)
