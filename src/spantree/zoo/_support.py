"""Which edges occur in some tree, decided on the graph alone and so untouched by rounding.

An inverse gives an edge that no tree contains a marginal of 1e-17 rather than 0. Multiplied by an infinite
value, or added up over all trees of a graph sampled without replacement, that residue becomes a wrong answer.
"""

from __future__ import annotations

import numpy as np

from ._graph import BoolArray, Root, leading_word, reachable


def root_words(edges: BoolArray) -> BoolArray:
    """Words that can be the only dependent of ROOT: an edge from ROOT, and ways to all words; O(n^2).

    Examples
    --------
    >>> edges = np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]], dtype=bool)
    >>> root_words(edges)
    array([False,  True, False])
    """
    leader, from_leader = leading_word(edges)
    if not from_leader[1:].all():
        return np.zeros(len(edges), dtype=np.bool_)
    between_words = edges.copy()
    between_words[0] = False
    leads_to_all: BoolArray = edges[0] & reachable(between_words.T, leader)
    return leads_to_all


def possible_heads(edges: BoolArray, dependent: int, root: Root) -> BoolArray:
    """Heads of `dependent` that some tree of the graph uses: (n+1,), O(n^2).

    ``i -> j`` is in a tree exactly when the graph has a tree, which `edges` must, and a path leads from ROOT to ``i``
    without meeting ``j`` (with one root: by a word of `root_words`).

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
    possible: BoolArray = edges[:, dependent] & reachable(paths, 0)
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
