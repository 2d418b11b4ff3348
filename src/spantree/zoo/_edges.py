"""Sparse graphs as lists of edges, and what the single-root algorithms ask of a graph, list or matrix.

Reading a list and telling whether it has a tree cost O(n + m) for m edges; no matrix is ever formed.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from ._graph import FloatArray, IntArray, NoTreeError, Root, check_root, clean_scores, read_scores, refuse_score
from ._graph import tree_score as matrix_tree_score


class EdgeList(NamedTuple):
    """The edges that are not forbidden; parallel edges are allowed, and the best of them counts."""

    nodes: int
    """n+1."""
    head: IntArray
    """Shape (m,)."""
    dependent: IntArray
    """Shape (m,)."""
    weight: FloatArray
    """Shape (m,), the scores."""


Graph: TypeAlias = "FloatArray | EdgeList"
AnyGraph = TypeVar("AnyGraph", FloatArray, EdgeList, Graph)


def is_sparse(scores: Any) -> bool:
    """Whether the graph comes as a list: an `EdgeList`, or a sparse matrix of SciPy or the like (it has ``tocoo``)."""
    return isinstance(scores, EdgeList) or hasattr(scores, "tocoo")


def read_edges(scores: ArrayLike | EdgeList) -> EdgeList:
    """The true edges of a graph, forbidden ones left out; of a sparse matrix those stored, zeros too.

    O(m) for a list, O(n^2) for a matrix.

    Raises
    ------
    ValueError
        As `clean_scores`.

    Examples
    --------
    >>> read_edges([[0, 1, -np.inf], [0, 0, 2], [0, -np.inf, 0]]).head
    array([0, 1])
    """
    listed: Any = scores
    if not is_sparse(scores):
        w = clean_scores(cast(ArrayLike, scores))
        head, dependent = np.nonzero(w > -np.inf)
        return EdgeList(len(w), head, dependent, w[head, dependent])
    if isinstance(scores, EdgeList):
        listed = scores
        nodes, shape = scores.nodes, (scores.nodes, scores.nodes)
        head, dependent, weight = scores.head, scores.dependent, scores.weight
    else:
        listed = listed.tocoo()
        shape = listed.shape
        nodes, head, dependent, weight = shape[0], listed.row, listed.col, listed.data
    if len(shape) != 2 or shape[0] != shape[1] or nodes == 0:
        raise ValueError(f"scores must be one square matrix of shape (n+1, n+1), not {shape}")
    true = (dependent != 0) & (head != dependent) & ~(weight == -np.inf)
    edges = EdgeList(
        nodes, head[true].astype(np.int64), dependent[true].astype(np.int64), weight[true].astype(np.float64)
    )
    wrong = np.flatnonzero(~(edges.weight < np.inf))
    if len(wrong):
        first = wrong[0]
        refuse_score(int(edges.head[first]), int(edges.dependent[first]), float(edges.weight[first]))
    return edges


def read_graph(scores: ArrayLike | EdgeList, root: Root) -> Graph:
    """A list as a list, a matrix as a matrix, of a graph that has a tree of the kind `root`."""
    if not is_sparse(scores):
        return read_scores(cast(ArrayLike, scores), root)
    edges = read_edges(scores)
    require_tree(edges, root)
    return edges


def require_tree(edges: EdgeList, root: Root) -> None:
    """Raise `NoTreeError`, naming a word that cannot be attached, unless there is a tree; O(n + m)."""
    check_root(root)
    dependents: list[list[int]] = [[] for _ in range(edges.nodes)]
    for head, dependent in zip(edges.head.tolist(), edges.dependent.tolist(), strict=True):
        dependents[head].append(dependent)

    def visit(start: int, seen: list[bool]) -> None:
        seen[start] = True
        frontier = [start]
        while frontier:
            for node in dependents[frontier.pop()]:
                if not seen[node]:
                    seen[node] = True
                    frontier.append(node)

    from_root = [False] * edges.nodes
    visit(0, from_root)
    if not all(from_root):
        raise NoTreeError(f"no tree exists: word {from_root.index(False)} cannot be reached from ROOT")
    if root == "multi" or edges.nodes == 1:
        return
    # as `leading_word`: the start of the last search of a sweep
    seen = [True] + [False] * (edges.nodes - 1)
    candidate = 0
    for word in range(1, edges.nodes):
        if not seen[word]:
            candidate = word
            visit(word, seen)
    from_candidate = [True] + [False] * (edges.nodes - 1)
    visit(candidate, from_candidate)
    if not all(from_candidate):
        missing = from_candidate.index(False)
        raise NoTreeError(
            f"no tree with a single root exists: no word leads to both word {candidate} and word {missing}"
        )


def root_dependents(graph: Graph) -> list[int]:
    """The words that ROOT has an edge to."""
    if isinstance(graph, EdgeList):
        return list(map(int, np.unique(graph.dependent[graph.head == 0])))
    return list(map(int, np.flatnonzero(graph[0] > -np.inf)))


def with_only_root(graph: AnyGraph, r: int) -> AnyGraph:
    """The graph in which `r` is the only word that ROOT has an edge to."""
    if isinstance(graph, EdgeList):
        kept = (graph.head != 0) | (graph.dependent == r)
        return EdgeList(graph.nodes, graph.head[kept], graph.dependent[kept], graph.weight[kept])
    only: FloatArray = graph.copy()
    only[0] = -np.inf
    only[0, r] = graph[0, r]
    return only


def tree_score(graph: Graph, heads: IntArray) -> float:
    """The sum of the scores of a tree's edges, O(n), or O(m) for a list."""
    if not isinstance(graph, EdgeList):
        return matrix_tree_score(graph, heads)
    best = np.full(graph.nodes, -np.inf)
    used = heads[graph.dependent] == graph.head
    np.maximum.at(best, graph.dependent[used], graph.weight[used])
    return float(best[1:].sum())
