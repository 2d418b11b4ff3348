"""Tarjan's algorithm for sparse graphs: the same two phases, with a mergeable heap and lazy constants."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ._edges import EdgeList, read_edges, require_tree
from ._graph import IntArray
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


def strongly_connected(graph: EdgeList) -> list[list[Edge]]:
    """The edges entering each vertex, and edges of ``-inf`` between neighbours in both directions."""
    edges: list[list[Edge]] = [[] for _ in range(graph.nodes)]
    for u, v, weight in zip(graph.head.tolist(), graph.dependent.tolist(), graph.weight.tolist(), strict=True):
        edges[v].append(Edge(u, v, weight))
    for i in range(graph.nodes - 1):
        edges[i + 1].append(Edge(i, i + 1, -np.inf))
        edges[i].append(Edge(i + 1, i, -np.inf))
    return edges


def tarjan_sparse(scores: ArrayLike | EdgeList) -> IntArray:
    """Find a best tree, any number of roots, in O(m log n) for m edges that are not forbidden.

    Stanojevic and Cohen (2021), "A Root of a Problem", Appendix A, Algorithms 1 and 2 as printed but for the
    corrections named in `tarjan`, after Tarjan (1977) and Camerini et al. (1979). The heap is a leftist tree (Crane,
    1972), whose meld costs O(log n) where a Fibonacci heap's costs O(1): n of them stay within the bound. The strongly
    connected graph that Algorithm 1 asks for is made by 2n edges of weight ``-inf`` between neighbours.

    Parameters
    ----------
    scores : EdgeList, or a sparse matrix of SciPy, shape (n+1, n+1)
        The edges with their scores; what is not stored is forbidden, and a stored 0 is a score. Or a matrix like any
        other animal's, at O(n^2) for reading it.

    Notes
    -----
    End to end: every one of the m + 2n edges is extracted once, and there are fewer than 2n melds, each operation O(log
    n). On dense graphs `tarjan` has one log less. Numerically as `tarjan`.

    Examples
    --------
    >>> edges = EdgeList(4, np.array([0, 1, 2, 3]), np.array([1, 2, 3, 2]), np.array([2.0, 1.0, 5.0, 5.0]))
    >>> tarjan_sparse(edges)
    array([-1,  0,  1,  2])
    """
    graph = read_edges(scores)
    require_tree(graph, "multi")
    heaps = [LeftistHeap.heapify(edges) for edges in strongly_connected(graph)]
    heads, _ = expand(collapse(heaps), graph.nodes)
    return heads
