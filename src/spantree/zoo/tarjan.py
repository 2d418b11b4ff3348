"""Tarjan's algorithm for optimum branchings: both phases for any queue, and the dense lossy queue.

Tarjan (1977), corrected by Camerini et al. (1979), in the form of Stanojevic and Cohen (2021), "A Root of a
Problem", Appendix A, Algorithms 1 and 2, and Figure 12. Three lines of the printed pseudocode need
completing: the walk around a cycle (Algorithm 1, line 23) steps to ``find(prev[i])``, for ``prev[i]`` may
have been contracted meanwhile; the constant of line 27 is the weight that ``in[i]`` had in its queue, as Figure 12
returns it, not the ``w(in[i])`` of the graph; and DISMANTLE (Algorithm 2, line 3) climbs to ``parent[u]`` in each turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ._graph import FloatArray, IntArray, read_scores

if TYPE_CHECKING:
    from typing_extensions import Self


class Edge(NamedTuple):
    """The edge u -> v with the weight it had, after all reductions, when it was taken from a queue."""

    u: int
    v: int
    weight: float


Queue = TypeVar("Queue", bound="EdgeQueue")


class EdgeQueue(Protocol):
    """A priority queue P of the edges entering one (super-)node."""

    def __bool__(self) -> bool:
        """Whether any edge is left."""

    def extract_max(self) -> Edge:
        """Take the best edge out."""

    def add_const(self, const: float) -> Self:
        """Give the queue with `const` added to all its weights; this one may be spent."""

    def meld(self, other: Self) -> Self:
        """Give the queue of both queues' edges; both may be spent."""


@dataclass(frozen=True)
class CycleForest(Generic[Queue]):
    """What Phase I leaves behind; node numbers below n+1 are vertices, the others super-nodes."""

    in_: list[Edge | None]
    """The best edge entering a (super-)node from outside."""
    parent: list[int | None]
    """The super-node, a cycle, in which a (super-)node takes part."""
    children: list[list[int]]
    """The (super-)nodes of a cycle; none for a vertex."""
    P: list[Queue]
    """The queues of edges."""


def collapse(P: list[Queue]) -> CycleForest[Queue]:
    """Phase I (Algorithm 1): grow a path backwards along best edges; contract it when it bites its tail.

    Parameters
    ----------
    P : list of EdgeQueue
        ``P[i]`` holds the edges entering vertex i. The graph must be strongly connected, if need be by edges
        of weight ``-inf``. The list grows by the queues of the super-nodes.
    """
    in_: list[Edge | None] = [None] * len(P)
    prev: list[int] = [-1] * len(P)
    parent: list[int | None] = [None] * len(P)
    children: list[list[int]] = [[] for _ in P]
    # path compression would destroy the tree that Phase II needs, so `find` has its own copy of `parent`
    shortcut = list(range(len(P)))

    def find(i: int) -> int:
        while shortcut[i] != i:
            shortcut[i] = shortcut[shortcut[i]]
            i = shortcut[i]
        return i

    a = 0
    while P[a]:
        edge = P[a].extract_max()
        b = find(edge.u)
        if a == b:
            continue  # a self-loop
        in_[a] = edge
        prev[a] = b
        if in_[b] is None:
            a = b  # path extension
        else:  # new cycle
            cycle = [a]
            while (i := find(prev[cycle[-1]])) != a:
                cycle.append(i)
            c = len(P)
            in_.append(None)
            prev.append(-1)
            parent.append(None)
            children.append(cycle)
            shortcut.append(c)
            queues = []
            for i in cycle:
                parent[i] = shortcut[i] = c
                taken = in_[i]
                assert taken is not None
                queues.append(P[i].add_const(-taken.weight))
            melded = queues[0]
            for queue in queues[1:]:
                melded = melded.meld(queue)
            P.append(melded)
            a = c
    return CycleForest(in_, parent, children, P)


def expand(forest: CycleForest[Queue], vertices: int, r: int = 0) -> tuple[IntArray, list[int]]:
    """Phase II (Algorithm 2): open each cycle at the vertex where the tree rooted in `r` enters it.

    Returns
    -------
    heads : IntArray, shape (vertices,)
        The best tree rooted in `r`.
    entered : list of int
        For each edge of the tree the (super-)node that chose it, as ``forest.in_``.
    """
    in_ = forest.in_[:vertices]
    parent = list(forest.parent)
    R: list[int] = []
    entered: list[int] = []

    def dismantle(u: int) -> None:
        while (cycle := parent[u]) is not None:
            for v in forest.children[cycle]:
                if v != u:
                    parent[v] = None
                    entered.append(v)
                    if forest.children[v]:
                        R.append(v)
            u = cycle

    dismantle(r)
    while R:
        edge = forest.in_[R.pop()]
        assert edge is not None
        in_[edge.v] = edge
        dismantle(edge.v)
    heads = np.full(vertices, -1, dtype=np.int64)
    for v, edge in enumerate(in_):
        if v != r:
            assert edge is not None
            heads[v] = edge.u
    return heads, entered


class LossyQueue:
    """The queue of the dense version (Figure 12): one slot per source vertex.

    Melding keeps the better of two edges from the same source and loses the other. NaN marks sources whose
    edge is taken or that lie within the super-node; NaN wins every meld, so self-loops never come up.
    `extract_max` is the only change in place: a queue that was melded or added to still shows what it held.
    """

    def __init__(self, weights: FloatArray, target: IntArray) -> None:
        self.weights = weights
        self.target = target

    @classmethod
    def of_vertex(cls, w: FloatArray, i: int) -> LossyQueue:
        """All edges into vertex `i`; those of ``-inf`` keep the graph strongly connected."""
        weights = w[:, i].copy()
        weights[i] = np.nan
        return cls(weights, np.full(len(w), i))

    def __bool__(self) -> bool:
        return not np.isnan(self.weights).all()

    def extract_max(self) -> Edge:
        present = np.flatnonzero(~np.isnan(self.weights))
        u = present[self.weights[present].argmax()]
        edge = Edge(int(u), int(self.target[u]), float(self.weights[u]))
        self.weights[u] = np.nan
        return edge

    def add_const(self, const: float) -> LossyQueue:
        # an infinite constant means that the best edge was forbidden; then they all are, and stay so
        return LossyQueue(self.weights + const if np.isfinite(const) else self.weights, self.target)

    def meld(self, other: LossyQueue) -> LossyQueue:
        from_other = self.weights < other.weights
        weights = np.where(from_other, other.weights, self.weights)
        weights[np.isnan(other.weights)] = np.nan
        return LossyQueue(weights, np.where(from_other, other.target, self.target))


def collapse_dense(w: FloatArray) -> CycleForest[LossyQueue]:
    """Phase I on a clean score matrix with lossy queues; O(n^2)."""
    return collapse([LossyQueue.of_vertex(w, i) for i in range(len(w))])


def tarjan(scores: ArrayLike) -> IntArray:
    """Find a best tree, any number of roots, in O(n^2), as suits dense graphs.

    Stanojevic and Cohen (2021), Appendix A, Algorithms 1 and 2 with the queue of Figure 12.

    Promise: a best tree; at most 2n extractions and fewer than 2n melds, each O(n), whatever the scores
    are. As the path must be able to pass through ROOT, everything is contracted in the end even when the
    greedy graph is a tree: that is what `arcmax` saves. Ties go to the source of lowest index.

    Numerically: weights are reduced by subtraction along the contractions. Where the best tree needs an
    edge of, say, -1e30 to enter a cycle, that edge drowns the scores it is added to.

    Examples
    --------
    >>> tarjan([[0, 9, 9, 1], [0, 0, 1, 5], [0, 1, 0, 1], [0, 1, 1, 0]])
    array([-1,  0,  0,  1])
    """
    w = read_scores(scores, "multi")
    heads, _ = expand(collapse_dense(w), len(w))
    return heads
