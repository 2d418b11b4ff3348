"""The k best trees with any number of roots: ranking arborescences after Camerini, Fratta and Maffioli."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import count, islice

import numpy as np
from numpy.typing import ArrayLike

from ._graph import FloatArray, IntArray, read_scores, tree_score
from .tarjan import CycleForest, LossyQueue, collapse_dense, expand

EdgeSet = tuple[tuple[int, int], ...]


def camerini_kbest(scores: ArrayLike, k: int) -> tuple[IntArray, FloatArray]:
    """Find the `k` best trees, any number of roots, in O(k n^2).

    Camerini, Fratta and Maffioli (1980), "Ranking arborescences in O(Km log n) time": procedures RANK, BEST
    and NEXT, here on dense graphs with the two phases of `tarjan`, hence n^2 in place of m log n.

    The trees that contain all edges of Y and none of Z form a class. Once a class's best tree A is known,
    NEXT names the edge b of A whose exclusion costs least; then Y + b (in which A is still best) and Z + b
    (whose best tree is next) split the class in two.

    Promise: distinct trees, best first, all of them if there are fewer than `k`, in which case the rest is
    padding. Among trees of equal score the order is arbitrary but always the same. Numerically as sound as
    `tarjan`; trees whose scores differ by rounding only may come in either order of their exact scores.
    Trees that share an edge of -1e30 are not told apart by their other edges.

    Returns
    -------
    heads : IntArray, shape (k, n+1)
        The trees; rows of -1 where there are no more.
    scores : FloatArray, shape (k,)
        Their scores, not increasing; ``-inf`` where there are no more trees.

    Examples
    --------
    >>> heads, scores = camerini_kbest([[0, 1, 2], [0, 0, 4], [0, 8, 0]], 4)
    >>> heads
    array([[-1,  2,  0],
           [-1,  0,  1],
           [-1,  0,  0],
           [-1, -1, -1]])
    >>> scores
    array([ 10.,   5.,   3., -inf])
    """
    w = read_scores(scores, "multi")
    return collect(rank(w), k, w)


def collect(trees: Iterator[IntArray], k: int, w: FloatArray) -> tuple[IntArray, FloatArray]:
    """The first `k` trees with their scores, padded with -1 and ``-inf``."""
    if k < 0:
        raise ValueError(f"the number of trees must not be negative, not {k}")
    heads = np.full((k, len(w)), -1, dtype=np.int64)
    scores = np.full(k, -np.inf)
    for i, tree in enumerate(islice(trees, k)):
        heads[i] = tree
        scores[i] = tree_score(w, tree)
    # ranking compares reduced weights, so scores that differ by rounding only may come in the wrong order
    order = np.argsort(-scores, kind="stable")
    return heads[order], scores[order]


def rank(w: FloatArray) -> Iterator[IntArray]:
    """RANK: the trees of `w`, best first, each found when it is asked for."""
    P: list[tuple[float, int, tuple[int, int], IntArray, EdgeSet, EdgeSet]] = []
    number = count()

    def push(A: IntArray, Y: EdgeSet, Z: EdgeSet) -> None:
        following = next_edge(restricted(w, Y, Z), A)
        if following is not None:
            b, delta = following
            heapq.heappush(P, (delta - tree_score(w, A), next(number), b, A, Y, Z))

    A = best(w)
    yield A
    push(A, (), ())
    while P:
        _, _, b, A, Y, Z = heapq.heappop(P)
        following_tree = best(restricted(w, Y, (*Z, b)))
        yield following_tree
        push(A, (*Y, b), Z)
        push(following_tree, Y, (*Z, b))


def restricted(w: FloatArray, Y: EdgeSet, Z: EdgeSet) -> FloatArray:
    """The graph whose trees are those of `w` with all edges of Y and none of Z."""
    w = w.copy()
    for u, v in Z:
        w[u, v] = -np.inf
    for u, v in Y:
        weight = w[u, v]
        w[:, v] = -np.inf
        w[u, v] = weight
    return w


def best(w: FloatArray) -> IntArray:
    """BEST: the best tree of a graph that has one."""
    heads, _ = expand(collapse_dense(w), len(w))
    return heads


def next_edge(w: FloatArray, A: IntArray) -> tuple[tuple[int, int], float] | None:
    """NEXT: the edge b of the best tree A that costs least to exclude, and how much it costs; O(n^2).

    Each edge b of A was chosen as the best edge entering some (super-)node x. The best tree other than A is
    made by letting another edge f enter some x, from a vertex that does not descend from x in A, and
    opening the cycles within x where f enters. It costs the difference of the reduced weights of b and f,
    so the least difference wins.

    Returns
    -------
    ((u, v), delta) or None
        None if A is the only tree.
    """
    forest = collapse_dense(w)
    heads, entered = expand(forest, len(w))
    if not np.array_equal(heads, A):
        # A is not the only best tree: what distinguishes it from the other one costs nothing
        v = int(np.flatnonzero(heads != A)[0])
        return (int(A[v]), v), tree_score(w, A) - tree_score(w, heads)

    descends = descendants(A)
    least: tuple[tuple[int, int], float] | None = None
    for x in entered:
        b = forest.in_[x]
        assert b is not None
        from_elsewhere = forest.P[x].weights[~descends[b.v]]
        same_tail = [w[b.u, v] - spent for v, spent in vertices_within(forest, x) if v != b.v]
        alternative = max([-np.inf, *from_elsewhere[~np.isnan(from_elsewhere)], *same_tail])
        if alternative > -np.inf and (least is None or b.weight - alternative < least[1]):
            least = (b.u, b.v), float(b.weight - alternative)
    return least


def vertices_within(forest: CycleForest[LossyQueue], x: int) -> Iterator[tuple[int, float]]:
    """The vertices of (super-)node x, each with what its entering edges were reduced by before x chose."""
    stack = [(x, 0.0)]
    while stack:
        node, spent = stack.pop()
        if not forest.children[node]:
            yield node, spent
        for child in forest.children[node]:
            edge = forest.in_[child]
            assert edge is not None
            stack.append((child, spent + edge.weight))


def descendants(A: IntArray) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """``[v, u]``: whether the walk from u to ROOT in the tree A meets v (or starts there); O(n^2)."""
    descends = np.eye(len(A), dtype=np.bool_)
    children: list[list[int]] = [[] for _ in A]
    for v in range(1, len(A)):
        children[A[v]].append(v)
    stack = [0]
    while stack:
        v = stack.pop()
        for child in children[v]:
            descends[:, child] |= descends[:, v]
            stack.append(child)
    return descends
