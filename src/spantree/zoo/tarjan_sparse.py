"""Tarjan's algorithm for sparse graphs: the same two phases, with a mergeable heap and lazy constants."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ._graph import FloatArray, IntArray, clean_scores, require_tree
from .tarjan import Edge, collapse, expand


@dataclass
class Node:
    """A node of a leftist tree: no child outweighs it, and its left child's rank is not the lesser."""

    weight: float
    u: int
    v: int
    rank: int = 1
    """Length of the way down right children; at most log2 of the size of the tree."""
    pending: float = 0.0
    """Constant that all nodes below, but not this one, have still to receive."""
    left: Node | None = None
    right: Node | None = None

    def push_down(self) -> None:
        """Hand the pending constant to both children."""
        for child in (self.left, self.right):
            if child is not None:
                child.weight += self.pending
                child.pending += self.pending
        self.pending = 0.0


def meld(x: Node | None, y: Node | None) -> Node | None:
    """Meld two leftist trees along their right spines; O(log m)."""
    spine = []
    while x is not None and y is not None:
        if x.weight < y.weight:
            x, y = y, x
        x.push_down()
        spine.append(x)
        x = x.right
    melded = x if y is None else y
    for node in reversed(spine):
        node.right = melded
        if node.left is None or (node.right is not None and node.left.rank < node.right.rank):
            node.left, node.right = node.right, node.left
        node.rank = 1 if node.right is None else node.right.rank + 1
        melded = node
    return melded


class LeftistHeap:
    """A queue of edges as a leftist tree: extraction and meld in O(log m), adding a constant in O(1)."""

    def __init__(self, top: Node | None) -> None:
        self.top = top

    @classmethod
    def heapify(cls, edges: list[Edge]) -> LeftistHeap:
        """Build the heap in linear time, melding trees of like size two by two."""
        trees: deque[Node | None] = deque(Node(edge.weight, edge.u, edge.v) for edge in edges)
        while len(trees) > 1:
            trees.append(meld(trees.popleft(), trees.popleft()))
        return cls(trees[0] if trees else None)

    def __bool__(self) -> bool:
        return self.top is not None

    def extract_max(self) -> Edge:
        top = self.top
        assert top is not None
        top.push_down()
        self.top = meld(top.left, top.right)
        return Edge(top.u, top.v, top.weight)

    def add_const(self, const: float) -> LeftistHeap:
        # an infinite constant means that the best edge was an artificial one; then they all are, and stay so
        if self.top is not None and np.isfinite(const):
            self.top.weight += const
            self.top.pending += const
        return self

    def meld(self, other: LeftistHeap) -> LeftistHeap:
        return LeftistHeap(meld(self.top, other.top))


def strongly_connected(w: FloatArray) -> list[list[Edge]]:
    """The edges entering each vertex, and edges of ``-inf`` between neighbours in both directions."""
    edges: list[list[Edge]] = [[] for _ in w]
    for u, v in np.argwhere(w > -np.inf).tolist():
        edges[v].append(Edge(u, v, float(w[u, v])))
    for i in range(len(w) - 1):
        edges[i + 1].append(Edge(i, i + 1, -np.inf))
        edges[i].append(Edge(i + 1, i, -np.inf))
    return edges


def tarjan_sparse(scores: ArrayLike) -> IntArray:
    """Find a best tree, any number of roots, in O(m log n) for m edges that are not forbidden.

    Stanojevic and Cohen (2021), "A Root of a Problem", Appendix A, Algorithms 1 and 2 as printed, after
    Tarjan (1977) and Camerini et al. (1979). The heap is a leftist tree (Crane, 1972); the strongly
    connected graph that Algorithm 1 asks for is made by 2n edges of weight ``-inf`` between neighbours.

    Promise: a best tree; every one of the m + 2n edges is extracted once, and there are fewer than 2n
    melds, each operation O(log n), after O(n^2) to read the matrix. On dense graphs `tarjan` has one log
    less.

    Numerically: weights are reduced by subtraction along the contractions. Where the best tree needs an
    edge of, say, -1e30 to enter a cycle, that edge drowns the scores it is added to.

    Parameters
    ----------
    scores : array_like, shape (n+1, n+1)
        Log-weights ``[head, dependent]``, ``-inf`` where there is no edge.

    Returns
    -------
    IntArray, shape (n+1,)
        The heads, ``heads[0] = -1``.

    Raises
    ------
    NoTreeError
        Some word cannot be reached from ROOT.

    Examples
    --------
    >>> no = -np.inf
    >>> tarjan_sparse([[no, 2, no, no], [no, no, 1, no], [no, no, no, 5], [no, no, 5, no]])
    array([-1,  0,  1,  2])
    """
    w = clean_scores(scores)
    require_tree(w, "multi")
    heads, _ = expand(collapse([LeftistHeap.heapify(edges) for edges in strongly_connected(w)]), len(w))
    return heads
