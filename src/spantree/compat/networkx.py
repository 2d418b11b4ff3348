"""`networkx.algorithms.tree.branchings`: spanning arborescences of a DiGraph, best one first.

Any node may be the root there, and no edge leads to it. Here ROOT is a node of its own with one edge, of score 0, to
the root: node v of the graph is word v + 1, and a tree with one edge out of ROOT is an arborescence.

Weights are compared as doubles. Scores are a dense matrix: 8 (n+1)² bytes for n nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .._errors import InfeasibleError
from ..distribution import TreeDistribution

try:
    import networkx as nx
except ImportError as error:
    raise ImportError("spantree.compat.networkx takes and gives networkx graphs: pip install networkx") from error

Edge = tuple[Any, Any]


def maximum_spanning_arborescence(
    G: Any,
    attr: str = "weight",
    default: float = 1,
    preserve_attrs: bool = False,
    partition: str | None = None,
    *,
    backend: str | None = None,
    **backend_kwargs: Any,
) -> Any:
    """The spanning arborescence of largest total weight. Unlike the original, it leaves `G` as it was.

    Parameters
    ----------
    G : networkx.DiGraph or MultiDiGraph
        The graph. Self-loops are ignored.
    attr : str
        Edge attribute that holds the weight.
    default : float
        Weight of an edge without that attribute.
    preserve_attrs : bool
        Keep all attributes of the edges, not only the weight.
    partition : str, optional
        Edge attribute that holds an ``nx.EdgePartition``: included, excluded or open.
    backend : {None, "networkx"}
        Without effect: what is computed is computed here. Others raise.
    **backend_kwargs
        There are none.

    Returns
    -------
    graph of the class of `G`
        All nodes of `G`, in its order; the edges of the arborescence, with their weights as they were.

    Raises
    ------
    networkx.NetworkXException
        There is none.
    ImportError
        Another backend is asked for.

    Examples
    --------
    >>> import networkx as nx
    >>> G = nx.DiGraph()
    >>> G.add_weighted_edges_from([("a", "b", 5), ("b", "a", 9), ("b", "c", 2), ("c", "a", 3)])
    >>> sorted(maximum_spanning_arborescence(G).edges(data="weight"))
    [('b', 'a', 9), ('b', 'c', 2)]
    """
    _check_backend("maximum_spanning_arborescence", backend, backend_kwargs)
    return _best(G, attr, default, preserve_attrs, partition, +1)


def minimum_spanning_arborescence(
    G: Any,
    attr: str = "weight",
    default: float = 1,
    preserve_attrs: bool = False,
    partition: str | None = None,
    *,
    backend: str | None = None,
    **backend_kwargs: Any,
) -> Any:
    """The spanning arborescence of smallest total weight. Unlike the original, it leaves `G` as it was.

    Parameters
    ----------
    G : networkx.DiGraph or MultiDiGraph
        The graph. Self-loops are ignored.
    attr : str
        Edge attribute that holds the weight.
    default : float
        Weight of an edge without that attribute.
    preserve_attrs : bool
        Keep all attributes of the edges, not only the weight.
    partition : str, optional
        Edge attribute that holds an ``nx.EdgePartition``: included, excluded or open.
    backend : {None, "networkx"}
        Without effect: what is computed is computed here. Others raise.
    **backend_kwargs
        There are none.

    Returns
    -------
    graph of the class of `G`
        All nodes of `G`, in its order; the edges of the arborescence, with their weights as they were.

    Raises
    ------
    networkx.NetworkXException
        There is none.
    ImportError
        Another backend is asked for.
    """
    _check_backend("minimum_spanning_arborescence", backend, backend_kwargs)
    return _best(G, attr, default, preserve_attrs, partition, -1)


class ArborescenceIterator:
    """All spanning arborescences of a graph, from the smallest total weight to the largest, or the other way round.

    Parameters
    ----------
    G : networkx.DiGraph
        The graph.
    weight : str
        Edge attribute that holds the weight; an edge without it has weight 1.
    minimum : bool
        Smallest first; otherwise largest first.
    init_partition : (included edges, excluded edges), optional
        Edges ``(u, v)`` that every arborescence has, and edges that none has.

    Examples
    --------
    >>> import networkx as nx
    >>> G = nx.DiGraph()
    >>> G.add_weighted_edges_from([("a", "b", 5), ("b", "a", 9), ("b", "c", 2), ("c", "a", 3)])
    >>> [tree.size("weight") for tree in ArborescenceIterator(G)]
    [5.0, 7.0, 8.0, 11.0]
    """

    def __init__(
        self,
        G: Any,
        weight: str = "weight",
        minimum: bool = True,
        init_partition: tuple[Iterable[Edge], Iterable[Edge]] | None = None,
    ) -> None:
        self.G = G.copy()
        self.weight = weight
        self.minimum = minimum
        included, excluded = init_partition or ((), ())
        self.init_partition = dict.fromkeys(included, nx.EdgePartition.INCLUDED)
        self.init_partition |= dict.fromkeys(excluded, nx.EdgePartition.EXCLUDED)

    def __iter__(self) -> ArborescenceIterator:
        graph = _Graph(
            self.G, self.weight, 1, -1 if self.minimum else +1, lambda u, v, _: self.init_partition.get((u, v))
        )
        for u, v in self.init_partition:
            if self.init_partition[u, v] == nx.EdgePartition.INCLUDED and not self.G.has_edge(u, v):
                raise nx.NetworkXException(f"the edge {u!r} -> {v!r} is to be included, but G has no such edge")
        trees = _ask(graph, TreeDistribution.iter_best)
        self._arborescences = (graph.arborescence(tree.heads, preserve_attrs=True) for tree in trees)
        return self

    def __next__(self) -> Any:
        return next(self._arborescences)


def _check_backend(function: str, backend: str | None, more: dict[str, Any]) -> None:
    """As networkx does where no backend is installed."""
    if backend not in (None, "networkx"):
        raise ImportError(f"there is no backend {backend!r} here: for that, call networkx.{function}")
    for keyword in more:
        raise TypeError(f"{function}() got an unexpected keyword argument {keyword!r}")


def _best(G: Any, attr: str, default: float, preserve_attrs: bool, partition: str | None, sign: int) -> Any:
    graph = _Graph(G, attr, default, sign, lambda _u, _v, data: data.get(partition))
    return graph.arborescence(_ask(graph, TreeDistribution.argmax), preserve_attrs)


def _ask(graph: _Graph, question: Callable[[TreeDistribution[Any, Any, Any]], Any]) -> Any:
    try:
        return question(TreeDistribution(graph.scores))
    except InfeasibleError:
        kind = "maximum" if graph.sign > 0 else "minimum"
        raise nx.NetworkXException(f"No {kind} spanning arborescence in G.") from None


class _Graph:
    """A graph as scores, ``[head, dependent]``, and the way back from heads to edges."""

    def __init__(self, G: Any, attr: str, default: float, sign: int, part: Callable[[Any, Any, Any], Any]) -> None:
        if not G.is_directed():
            raise nx.NetworkXNotImplemented("not implemented for undirected type")
        if len(G) == 0:
            raise nx.NetworkXPointlessConcept("G has no nodes.")
        self.G, self.attr, self.default, self.sign = G, attr, default, sign
        word = {node: number for number, node in enumerate(G, start=1)}
        self.scores = np.full((len(G) + 1, len(G) + 1), -np.inf)
        self.scores[0, 1:] = 0.0
        self.edges: dict[Edge, tuple[Any, Any, dict[Any, Any]]] = {}
        rank: dict[Edge, tuple[bool, float]] = {}
        for u, v, data in G.edges(data=True):
            edge, score = (word[u], word[v]), sign * data.get(attr, default)
            if not score < np.inf:
                raise ValueError(f"the weight of the edge {u!r} -> {v!r} is {data.get(attr, default)}")
            if u == v or part(u, v, data) == nx.EdgePartition.EXCLUDED:
                continue
            here = (part(u, v, data) == nx.EdgePartition.INCLUDED, score)
            if edge not in rank or here > rank[edge]:  # of parallel edges, the one that is included, or the best
                rank[edge], self.edges[edge], self.scores[edge] = here, (u, v, data), score
        for head, dependent in (edge for edge, (included, _) in rank.items() if included):
            score = self.scores[head, dependent]  # -inf if another edge to this node is included: then there is no tree
            self.scores[:, dependent] = -np.inf
            self.scores[head, dependent] = score

    def arborescence(self, heads: Any, preserve_attrs: bool) -> Any:
        tree = self.G.__class__()
        tree.add_nodes_from(self.G)
        for dependent, head in enumerate(heads[1:].tolist(), start=1):
            if head != 0:
                u, v, data = self.edges[head, dependent]
                kept = dict(data) if preserve_attrs else {}
                tree.add_edge(u, v, **{**kept, self.attr: data.get(self.attr, self.default)})
        return tree
