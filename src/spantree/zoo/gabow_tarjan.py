"""The algorithm of Gabow and Tarjan (1984) for trees with one root, in the form of "Please Mind the Root"."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._contract import Contraction, contract, cycle_through, expand, find_cycle
from ._graph import FloatArray, IntArray, clean_scores, require_tree


def gabow_tarjan(scores: ArrayLike) -> IntArray:
    """Find a best tree with one root in O(n^2).

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
    scores : array_like, shape (n+1, n+1)
        Log-weights ``[head, dependent]``.

    Returns
    -------
    IntArray, shape (n+1,)
        The heads, ``heads[0] = -1``, one of them 0.

    Raises
    ------
    NoTreeError
        No tree with a single root exists (although one with several roots may).

    Examples
    --------
    >>> gabow_tarjan([[0, 9, 9, 1], [0, 0, 1, 5], [0, 2, 0, 1], [0, 1, 1, 0]])
    array([-1,  2,  0,  1])
    """
    w = clean_scores(scores)
    require_tree(w, "single")
    heads, contractions = opt(w)
    if len(w) > 1:
        contractions += constrain(w, heads)
    for contraction in reversed(contractions):
        expand(heads, contraction)
    return heads


def opt(w: FloatArray) -> tuple[IntArray, list[Contraction]]:
    """Contract critical cycles until the greedy graph has none; return both (lines 1 to 4)."""
    heads = w.argmax(axis=0).astype(np.int64)
    heads[0] = -1
    contractions = []
    while (cycle := find_cycle(heads)) is not None:
        contractions.append(contract(w, heads, cycle))
        c = cycle[0]
        heads[c] = w[:, c].argmax()
    return heads, contractions


def constrain(w: FloatArray, heads: IntArray) -> list[Contraction]:
    """Turn the acyclic greedy graph `heads` into the best tree with one root (lines 9 to 16)."""
    contractions: list[Contraction] = []
    # the best head of each node other than ROOT: what is left of the greedy graph when the root edge is
    # deleted
    word_heads = w[1:].argmax(axis=0) + 1
    in_graph = w.max(axis=0) > -np.inf
    while True:
        sigma = np.flatnonzero(in_graph & (heads == 0))
        if len(sigma) == 1:
            return contractions
        weight_lost = w[0, sigma] - w[word_heads[sigma], sigma]
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
            in_graph[cycle[1:]] = False
            word_heads[np.isin(word_heads, cycle)] = c
            word_heads[c] = w[1:, c].argmax() + 1
