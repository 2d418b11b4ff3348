"""The algorithm of Gabow and Tarjan for trees with one root, on sparse graphs.

Zmigrod, Vieira and Cotterell (2020), "Please Mind the Root", Algorithm 1, with the data structures of Tarjan (1977) for
sparse graphs: the O(m log n) of Table 1 of Stanojevic and Cohen (2021), "A Root of a Problem".
"""

from __future__ import annotations

import heapq

from numpy.typing import ArrayLike

from ._edges import EdgeList, read_edges, require_tree
from ._graph import IntArray
from .tarjan import CycleForest, Edge, expand
from .tarjan_sparse import LeftistHeap


def gabow_tarjan_sparse(scores: ArrayLike | EdgeList) -> IntArray:
    """Find a best tree with one root in O(m log n) for m edges that are not forbidden; input as `tarjan_sparse`.

    `Branching.opt` contracts the cycles of the greedy graph, never one through ROOT. `Branching.constrain` then deletes
    root edges as `gabow_tarjan` does. Whether the next head of a root's dependent lies below it, and so closes a cycle,
    is asked of a union-find over the subtrees of ROOT.

    Notes
    -----
    Every edge between words is extracted from a heap at most once, fewer than 2n melds and fewer than 2n turns of
    ``constrain``, each O(log n); walks around cycles are paid by the nodes they contract. Numerically as
    `gabow_tarjan`.

    Examples
    --------
    >>> gabow_tarjan_sparse([[0, 9, 9, 1], [0, 0, 1, 5], [0, 2, 0, 1], [0, 1, 1, 0]])
    array([-1,  2,  0,  1])
    """
    graph = read_edges(scores)
    require_tree(graph, "single")
    branching = Branching(graph)
    branching.opt()
    if graph.nodes > 1:
        branching.constrain()
    heads, _ = expand(branching.forest(), graph.nodes)
    return heads


class Sets:
    """Disjoint sets of nodes, each with a name."""

    def __init__(self, size: int) -> None:
        self.up = list(range(size))

    def find(self, i: int) -> int:
        """The name of the set of `i`."""
        while self.up[i] != i:
            self.up[i] = self.up[self.up[i]]
            i = self.up[i]
        return i

    def add(self, members: list[int]) -> int:
        """Put the sets named `members` together under a new name."""
        name = len(self.up)
        self.up.append(name)
        for member in members:
            self.up[member] = name
        return name


class Branching:
    """(Super-)nodes with their queues of entering edges; node 0 is ROOT, which nothing enters."""

    def __init__(self, graph: EdgeList) -> None:
        edges: list[list[Edge]] = [[] for _ in range(graph.nodes)]
        self.root_edge: list[Edge | None] = [None] * graph.nodes
        """The best edge from ROOT into each node that is left."""
        for u, v, weight in zip(graph.head.tolist(), graph.dependent.tolist(), graph.weight.tolist(), strict=True):
            if u > 0:
                edges[v].append(Edge(u, v, weight))
            else:
                self.root_edge[v] = best(self.root_edge[v], Edge(u, v, weight))
        self.P = [LeftistHeap.heapify(entering) for entering in edges]
        """The edges from words into each node, without its `next_edge` and its `in_`."""
        self.next_edge: list[Edge | None] = [None] * graph.nodes
        """The best edge from another word, if it has been asked for and not been taken."""
        self.in_: list[Edge | None] = [None] * graph.nodes
        """The edge of the greedy graph."""
        self.parent: list[int | None] = [None] * graph.nodes
        self.children: list[list[int]] = [[] for _ in range(graph.nodes)]
        self.nodes = Sets(graph.nodes)
        """Which super-node a vertex is in."""

    def best_from_words(self, a: int) -> Edge | None:
        """The best edge into `a` from outside it and not from ROOT; it stays there."""
        while self.next_edge[a] is None and self.P[a]:
            edge = self.P[a].extract_max()
            if self.nodes.find(edge.u) != a:
                self.next_edge[a] = edge
        return self.next_edge[a]

    def take_from_words(self, a: int) -> None:
        """Let that edge be the edge of `a`."""
        self.in_[a], self.next_edge[a] = self.next_edge[a], None

    def contract(self, cycle: list[int]) -> int:
        """Make a super-node of the nodes whose edges form a cycle."""
        c = self.nodes.add(cycle)
        entering = LeftistHeap(None)
        root_edge: Edge | None = None
        for i in cycle:
            taken, edge = self.in_[i], self.root_edge[i]
            assert taken is not None
            self.parent[i] = c
            waiting = self.next_edge[i]
            if waiting is not None:
                entering = entering.meld(LeftistHeap.heapify([waiting._replace(weight=waiting.weight - taken.weight)]))
            entering = entering.meld(self.P[i].add_const(-taken.weight))
            if edge is not None:
                root_edge = best(root_edge, edge._replace(weight=edge.weight - taken.weight))
        self.P.append(entering)
        self.root_edge.append(root_edge)
        self.next_edge.append(None)
        self.in_.append(None)
        self.parent.append(None)
        self.children.append(cycle)
        return c

    def opt(self) -> None:
        """Lines 1 to 4: give every node its best edge, and contract the cycles that close."""
        finished = [True] + [False] * (len(self.P) - 1)
        for start in range(1, len(self.P)):
            path: list[int] = []
            on_path: set[int] = set()
            a = self.nodes.find(start)
            while not finished[a]:
                path.append(a)
                on_path.add(a)
                from_words, from_root = self.best_from_words(a), self.root_edge[a]
                if from_words is None or (from_root is not None and from_root.weight >= from_words.weight):
                    self.in_[a] = from_root
                    break
                self.take_from_words(a)
                a = self.nodes.find(from_words.u)
                if a in on_path:
                    cycle = [path.pop()]
                    while cycle[-1] != a:
                        cycle.append(path.pop())
                    on_path.difference_update(cycle)
                    a = self.contract(cycle)
                    finished.append(False)
            for node in path:
                finished[node] = True

    def constrain(self) -> None:
        """Lines 9 to 16."""
        top = [a for a in range(1, len(self.P)) if self.parent[a] is None]
        subtrees = Sets(len(self.P))
        for a in top:
            edge = self.in_[a]
            if edge is not None and edge.u > 0:
                subtrees.up[a] = self.nodes.find(edge.u)
        losses: list[tuple[float, int]] = []

        def push(j: int) -> None:
            from_root, from_words = self.in_[j], self.best_from_words(j)
            if from_root is not None and from_words is not None:
                heapq.heappush(losses, (from_root.weight - from_words.weight, j))

        roots = 0
        for a in top:
            edge = self.in_[a]
            if edge is not None and edge.u == 0:
                roots += 1
                push(a)
        while roots > 1:
            _, j = heapq.heappop(losses)
            from_words = self.next_edge[j]
            assert from_words is not None
            head = self.nodes.find(from_words.u)
            if subtrees.find(head) != j:  # optimization case
                self.take_from_words(j)
                self.root_edge[j] = None
                subtrees.up[j] = head
                roots -= 1
            else:  # reduction case
                self.take_from_words(j)
                cycle = [head]
                while cycle[-1] != j:
                    edge = self.in_[cycle[-1]]
                    assert edge is not None
                    cycle.append(self.nodes.find(edge.u))
                c = self.contract(cycle)
                self.in_[c] = self.root_edge[c]
                # the subtree of j is now that of c, and only the name at its top has changed
                assert subtrees.add([j]) == c
                push(c)

    def forest(self) -> CycleForest[LeftistHeap]:
        """The greedy graph with ROOT, as one last cycle that Phase II of Tarjan's algorithm opens at ROOT."""
        top = [a for a in range(len(self.P)) if self.parent[a] is None]
        last = len(self.P)
        parent = [last if p is None else p for p in self.parent]
        return CycleForest([*self.in_, None], [*parent, None], [*self.children, top], self.P)


def best(x: Edge | None, y: Edge) -> Edge:
    """The edge of the larger weight, the first if they are equal."""
    return x if x is not None and x.weight >= y.weight else y
