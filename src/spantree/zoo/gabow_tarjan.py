"""The algorithm of Gabow and Tarjan (1984) for trees with one root, in the form of "Please Mind the Root"."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._contract import Contraction, contract, cycle_through, expand, find_cycle
from ._graph import BoolArray, FloatArray, IntArray, NoTreeError, read_scores


def gabow_tarjan(scores: ArrayLike, q: int = 1, at_most: bool = False) -> IntArray:
    """Find a best tree with one root, or with `q`, in O(n^2).

    Zmigrod, Vieira and Cotterell (2020), "Please Mind the Root: Decoding Arborescences for Dependency
    Parsing", Algorithm 1 (``opt`` and ``constrain``); Gabow and Tarjan (1984), section 7.

    Promise: a best tree among those with exactly one root, in O(n^2): at most n - 1 contractions, each paid
    by the nodes it removes, and at most n - 1 deletions of root edges. The greedy graph and the best head
    among the words are kept up to date rather than computed afresh.

    Numerically: no constant is added to the scores, so soft masks (-1e30) do no harm as long as a tree
    without masked edges exists: then no masked edge is ever part of a contracted cycle. If none exists, a
    mask drowns the scores it is added to.

    Parameters
    ----------
    q : int, default 1
        Number of root edges. Each turn of ``constrain`` that deletes one leaves a best tree with one root edge less
        (the Augmentation Theorem, Theorem 1 of Stanojevic and Cohen, 2021), so it may stop at any number. If the best
        tree has fewer than `q`, it starts from a best tree with as many root edges as there can be.
    at_most : bool, default False
        The best of the trees with 1 to `q` root edges. As the best weights by number of root edges rise to that of the
        best tree and fall after it, that is the best tree if it has no more than `q`, and else the best with `q`.

    Raises
    ------
    NoTreeError
        No tree with `q` root edges exists (although one with another number may).

    Examples
    --------
    >>> scores = [[0, 9, 9, 1], [0, 0, 1, 5], [0, 2, 0, 1], [0, 1, 1, 0]]
    >>> gabow_tarjan(scores), gabow_tarjan(scores, q=2)
    (array([-1,  2,  0,  1]), array([-1,  0,  0,  1]))
    """
    if q < 1:
        raise ValueError(f"the number of root edges must be positive, not {q}")
    w = read_scores(scores, "single" if q == 1 else "multi")
    G = w.copy()
    heads, contractions = opt(G, w.argmax(axis=0))
    if len(w) > 1:
        roots = np.count_nonzero(in_graph(G) & (heads == 0))
        if roots < q and not at_most:
            G = w
            heads, contractions = opt(G, np.where(w[0] > -np.inf, 0, w.argmax(axis=0)))
        if roots > q or not at_most:
            contractions += constrain(G, heads, q)
    for contraction in reversed(contractions):
        expand(heads, contraction)
    return heads


def opt(w: FloatArray, greedy_graph: IntArray) -> tuple[IntArray, list[Contraction]]:
    """Contract cycles until the greedy graph has none; return both (lines 1 to 4)."""
    heads = greedy_graph.astype(np.int64)
    heads[0] = -1
    contractions = []
    while (cycle := find_cycle(heads)) is not None:
        contractions.append(contract(w, heads, cycle))
        c = cycle[0]
        heads[c] = w[:, c].argmax()
    return heads, contractions


def in_graph(w: FloatArray) -> BoolArray:
    """Which words are nodes of the graph: those contracted into others have no edges left; O(n^2)."""
    nodes: BoolArray = w.max(axis=0) > -np.inf
    return nodes


def constrain(w: FloatArray, heads: IntArray, q: int) -> list[Contraction]:
    """Turn the acyclic greedy graph `heads` into the best tree with `q` roots (lines 9 to 16)."""
    contractions: list[Contraction] = []
    # the best head of each node other than ROOT: what is left of the greedy graph when the root edge is
    # deleted
    word_heads = w[1:].argmax(axis=0) + 1
    nodes = in_graph(w)
    while True:
        sigma = np.flatnonzero(nodes & (heads == 0))
        if len(sigma) == q:
            return contractions
        weight_lost = w[0, sigma] - w[word_heads[sigma], sigma]
        if len(sigma) < q or weight_lost.min() == np.inf:
            raise NoTreeError(f"no tree with {q} root edges exists")
        j = sigma[weight_lost.argmin()]
        without_root_edge = heads.copy()
        without_root_edge[j] = word_heads[j]
        cycle = cycle_through(without_root_edge, j)
        if cycle is None:  # optimization case: G without the edge ROOT -> j
            w[0, j] = -np.inf
            heads[j] = word_heads[j]
        else:  # reduction case: G/C, where the edge from ROOT stays the best one into c
            contractions.append(contract(w, without_root_edge, cycle))
            c = cycle[0]
            heads[:] = without_root_edge
            heads[c] = 0
            nodes[cycle[1:]] = False
            word_heads[np.isin(word_heads, cycle)] = c
            word_heads[c] = w[1:, c].argmax() + 1
