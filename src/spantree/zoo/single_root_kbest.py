"""The k best trees with one root: one ranking for each root, opened only when its turn has come."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from ._graph import FloatArray, IntArray, NoTreeError, clean_scores, require_tree, tree_score
from .camerini_kbest import collect, rank
from .gabow_tarjan import gabow_tarjan
from .naive_single_root import with_only_root


def single_root_kbest(scores: ArrayLike, k: int) -> tuple[IntArray, FloatArray]:
    """Find the `k` best trees with one root in O(k n^2).

    Zmigrod, Vieira and Cotterell (2021), "On Finding the K-best Non-projective Dependency Trees": the trees
    fall into classes by their root edge. With the root edge fixed, `camerini_kbest` ranks the trees of a
    class; the best tree among the classes not yet opened is what `gabow_tarjan` finds once the root edges
    of the opened ones are deleted. (Running `camerini_kbest` on the scores of `reweight` until a second
    root edge turns up does the same in real arithmetic, Stanojevic and Cohen, 2021, section 4, with the
    weakness of `reweighting`.)

    Promise: distinct trees with exactly one root, best first, all of them if there are fewer than `k`, in
    which case the rest is padding. Numerically as sound as `camerini_kbest`: nothing is added to the root
    scores.

    Parameters
    ----------
    scores : array_like, shape (n+1, n+1)
        Log-weights ``[head, dependent]``.
    k : int
        Number of trees.

    Returns
    -------
    heads : IntArray, shape (k, n+1)
        The trees; rows of -1 where there are no more.
    scores : FloatArray, shape (k,)
        Their scores, not increasing; ``-inf`` where there are no more trees.

    Raises
    ------
    NoTreeError
        No tree with a single root exists (although one with several roots may).

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
    w = clean_scores(scores)
    require_tree(w, "single")
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
