"""Which edges occur in some tree, decided on the graph alone and so untouched by rounding.

An inverse gives an edge that no tree contains a marginal of 1e-17 rather than 0. Multiplied by an infinite
value, or added up over all trees of a graph sampled without replacement, that residue becomes a wrong answer.
"""

from __future__ import annotations

import numpy as np

from ._graph import BoolArray, Root


def spread(edges: BoolArray, start: int) -> BoolArray:
    """Nodes on a path from `start`, all of one distance at a time: few steps on dense graphs; O(n^2).

    Examples
    --------
    >>> spread(np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]], dtype=bool), 1)
    array([False,  True,  True])
    """
    seen = np.zeros(len(edges), dtype=np.bool_)
    seen[start] = True
    nearest = np.array([start])
    while len(nearest):
        new = edges[nearest].any(axis=0) & ~seen
        seen |= new
        nearest = np.flatnonzero(new)
    return seen


def root_words(edges: BoolArray) -> BoolArray:
    """Words that can be the only dependent of ROOT: an edge from ROOT, and ways to all words; O(n^2).

    Examples
    --------
    >>> edges = np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]], dtype=bool)
    >>> root_words(edges)
    array([False,  True, False])
    """
    between_words = edges.copy()
    between_words[0] = False
    visited = np.zeros(len(edges), dtype=np.bool_)
    visited[0] = True
    last, from_last = 0, visited
    while not visited.all():
        last = int(np.argmin(visited))
        from_last = spread(between_words, last)
        visited |= from_last
    # If any word leads to all words, the search started last does: no earlier one reached its start.
    if not from_last[1:].all():
        return np.zeros_like(visited)
    leads_to_all: BoolArray = edges[0] & spread(between_words.T, last)
    return leads_to_all


def possible_heads(edges: BoolArray, dependent: int, root: Root) -> BoolArray:
    """Heads of `dependent` that some tree of the graph uses; O(n^2).

    ``i -> j`` is in a tree exactly when the graph has a tree and a path leads from ROOT to ``i`` without
    meeting ``j`` (with one root: by a word of `root_words`).

    Parameters
    ----------
    edges : BoolArray, shape (n+1, n+1)
        Edges ``[head, dependent]`` of a graph that has a tree; column 0 and the diagonal are False.
    dependent : int
        A word, 1 to n.
    root : {"single", "multi"}
        How many edges may leave ROOT.

    Returns
    -------
    BoolArray, shape (n+1,)

    Examples
    --------
    >>> edges = np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]], dtype=bool)
    >>> possible_heads(edges, 2, "multi"), possible_heads(edges, 2, "single")
    (array([ True,  True, False]), array([False,  True, False]))
    """
    paths = edges.copy()
    if root == "single":
        paths[0] = root_words(edges)
    attached_to_root = paths[0, dependent]
    paths[:, dependent] = False
    possible: BoolArray = edges[:, dependent] & spread(paths, 0)
    possible[0] = attached_to_root
    return possible


def possible_edges(edges: BoolArray, root: Root) -> BoolArray:
    """Edges that some tree of the graph uses, all columns of `possible_heads`; O(n^3).

    Examples
    --------
    >>> possible_edges(np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]], dtype=bool), "single").astype(int)
    array([[0, 1, 0],
           [0, 0, 1],
           [0, 0, 0]])
    """
    possible = np.zeros_like(edges)
    for dependent in range(1, len(edges)):
        possible[:, dependent] = possible_heads(edges, dependent, root)
    return possible
