"""The algorithm of Gabow, Galil, Spencer and Tarjan (1986): best trees of sparse graphs in O(m + n log n).

"Efficient algorithms for finding minimum spanning trees in undirected and directed graphs", Combinatorica 6(2), the
part on directed graphs. As in Tarjan's algorithm a path grows backwards along best edges and is contracted where it
bites its tail, but no heap holds all edges. Of the path ``v_l -> ... -> v_1 -> v_0``

- only ``v_l`` is ever asked for its best edge; before ``v_i`` is asked again, all of ``v_i ... v_l`` have become one
  node;
- so of all edges from one source into the path, its *exit list*, only the one into the latest ``v_i`` matters for now.
  It is *active*; the others are *passive*, and wait in the passive sets of their targets;
- when ``v_i ... v_l`` become one node, their passive edges are parallel to active ones from the same sources. The best
  edge from each source becomes its active one, and the others are dropped for good.

So the heaps hold sources, each in one heap at most, and an edge that becomes active moves its source to another heap in
O(1) (`ActiveForest`). Exits of a node that has become part of the path lead back into it: loops, dropped when met.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._active_forest import ActiveForest, Item
from ._constants import ContractedVertices
from ._edges import EdgeList, read_edges, require_tree
from ._graph import IntArray
from .tarjan import CycleForest, Edge, expand
from .tarjan_sparse import strongly_connected


def gabow_galil_spencer_tarjan(scores: ArrayLike | EdgeList) -> IntArray:
    """Find a best tree, any number of roots, in O(m + n log n) for m edges that are not forbidden.

    Gabow, Galil, Spencer and Tarjan (1986), as named in Stanojevic and Cohen (2021), Table 1 and section 4; input as
    `tarjan_sparse`. The strongly connected graph that it asks for is made as there, by 2n edges of weight ``-inf``, and
    the cycles are opened by Algorithm 2 of that paper, O(n).

    Notes
    -----
    End to end: each of the m + 2n edges is read once when its target joins the path and at most once more as a passive
    edge, with one change of heap at most each time. At most 2n + 1 insertions, deletions and choices of a best edge,
    O(log n) each. So O(m + n log n) comparisons, each with two look-ups of what contractions added to a weight: f
    look-ups cost O(f a(f, n)), and with f >= n log n the inverse Ackermann function a(f, n) is bounded.

    Numerically as `tarjan`.

    Examples
    --------
    >>> edges = EdgeList(4, np.array([0, 1, 2, 3]), np.array([1, 2, 3, 2]), np.array([2.0, 1.0, 5.0, 5.0]))
    >>> gabow_galil_spencer_tarjan(edges)
    array([-1,  0,  1,  2])
    """
    graph = read_edges(scores)
    require_tree(graph, "multi")
    growth = GrowthPath(strongly_connected(graph))
    growth.collapse()
    heads, _ = expand(CycleForest(growth.in_, growth.parent, growth.children, []), graph.nodes)
    return heads


class GrowthPath:
    """The path, the edges into it, and the cycles contracted so far; nodes are vertices, or cycles with new numbers."""

    def __init__(self, entering: list[list[Edge]]) -> None:
        self.entering = entering
        """The edges into each vertex."""
        self.path: list[int] = []
        """v_0 to v_l."""
        self.on_path = [False] * len(entering)
        self.in_: list[Edge | None] = [None] * len(entering)
        """The best edge into each node that has been the last of the path."""
        self.parent: list[int | None] = [None] * len(entering)
        self.children: list[list[int]] = [[] for _ in entering]
        self.vertices = ContractedVertices(len(entering))
        self.active: list[Item | None] = [None] * len(entering)
        """By source: its active edge, an item of the heap of the node where the edge enters the path."""
        self.passive: list[list[Edge]] = [[] for _ in entering]
        """By target."""
        self.heaps = ActiveForest(self.target, self.weight)

    def source(self, edge: Edge) -> int:
        return self.vertices.find(edge.u)[0]

    def target(self, edge: Edge) -> int:
        return self.vertices.find(edge.v)[0]

    def weight(self, edge: Edge) -> float:
        return edge.weight + self.vertices.find(edge.v)[1]

    def collapse(self) -> None:
        """Grow the path from ROOT until it is one node that nothing enters."""
        self.extend(0)
        while (best := self.heaps.best(self.path[-1])) is not None:
            edge = best.edge
            self.in_[self.path[-1]] = edge
            source = self.source(edge)
            if self.on_path[source]:
                self.contract(source)
            else:
                self.extend(source)

    def extend(self, u: int) -> None:
        """Let the vertex `u` be the last of the path: the edges into it become active, instead of what was."""
        self.path.append(u)
        self.on_path[u] = True
        for edge in self.entering[u]:
            source = self.source(edge)
            item = self.active[source]
            if item is None:
                self.active[source] = self.heaps.insert(edge)
            elif item.edge.v != u:
                self.passive[self.target(item.edge)].append(item.edge)
                self.heaps.change(item, edge)
            elif edge.weight > item.edge.weight:  # parallel edges, from one vertex or from a contracted cycle
                self.heaps.change(item, edge)

    def contract(self, first: int) -> None:
        """Make one node of the path from the node `first` on."""
        cycle: list[int] = []
        constants: list[float] = []
        while not cycle or cycle[-1] != first:
            node = self.path.pop()
            taken = self.in_[node]
            assert taken is not None
            cycle.append(node)
            # an infinite constant means that the best edge was an artificial one; then they all are, and stay so
            constants.append(-self.weight(taken) if taken.weight > -np.inf else 0.0)
        for node in cycle:
            item = self.active[node]
            if item is not None:  # it leads to a node of the cycle
                self.heaps.delete(item)
                self.active[node] = None
        c = self.vertices.contract(cycle, constants)
        for node in cycle:
            self.parent[node] = c
        self.path.append(c)
        self.on_path.append(True)
        self.in_.append(None)
        self.parent.append(None)
        self.children.append(cycle)
        self.active.append(None)
        self.passive.append([])
        self.heaps.meld(cycle, c)
        for node in cycle:
            for edge in self.passive[node]:
                source = self.source(edge)
                if source == c:
                    continue
                item = self.active[source]
                assert item is not None
                if self.weight(edge) > self.weight(item.edge):
                    self.heaps.change(item, edge)
            self.passive[node].clear()
