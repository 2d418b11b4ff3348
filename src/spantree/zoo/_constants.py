"""Which node of a contracted graph a vertex is in, and what was added to the weights of the edges that enter it there.

Disjoint sets with union by size and path compression (Tarjan, 1975), where each vertex holds what is to be added on the
way to its parent. f look-ups among n vertices cost O(f a(f, n)) with the inverse Ackermann function a, which is
bounded where f is at least n log n.
"""

from __future__ import annotations


class ContractedVertices:
    """The vertices 0 to n-1 of a graph, at first nodes of their own under their own names."""

    def __init__(self, n: int) -> None:
        self.up = list(range(n))
        self.size = [1] * n
        self.constant = [0.0] * n
        """Relative to the vertex above."""
        self.name = list(range(n))
        """Of the node, at the top of its set."""
        self.top = list(range(n))
        """The top of the set that a node, by name, consists of."""

    def find(self, v: int) -> tuple[int, float]:
        """The name of the node that `v` is in, and the sum of the constants that edges into `v` have received.

        Examples
        --------
        >>> vertices = ContractedVertices(3)
        >>> vertices.contract([0, 2], [-1.0, -5.0])
        3
        >>> vertices.find(0), vertices.find(2)
        ((3, -1.0), (3, -5.0))
        """
        trail = []
        while self.up[v] != v:
            trail.append(v)
            v = self.up[v]
        below_top = 0.0
        while trail:
            below = trail.pop()
            self.constant[below] = below_top = self.constant[below] + below_top
            self.up[below] = v
        return self.name[v], self.constant[v] + below_top

    def contract(self, nodes: list[int], constants: list[float]) -> int:
        """Add to the weights of edges into each node its constant, and make one node of them, whose name is new."""
        tops = [self.top[node] for node in nodes]
        for top, constant in zip(tops, constants, strict=True):
            self.constant[top] += constant
        largest = max(tops, key=self.size.__getitem__)
        for top in tops:
            if top != largest:
                self.up[top] = largest
                self.constant[top] -= self.constant[largest]
                self.size[largest] += self.size[top]
        self.name[largest] = len(self.top)
        self.top.append(largest)
        return self.name[largest]
