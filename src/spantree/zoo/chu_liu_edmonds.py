"""The Chu-Liu-Edmonds algorithm: contract one cycle of the greedy graph at a time."""

from __future__ import annotations

from numpy.typing import ArrayLike

from ._contract import Contraction, contract, expand, find_cycle
from ._graph import IntArray, read_scores


def chu_liu_edmonds(scores: ArrayLike) -> IntArray:
    """Find a best tree, any number of roots, in O(n^3).

    Chu and Liu (1965), Bock (1971), Edmonds (1967), in the form of Zmigrod et al. (2020), "Please Mind the
    Root", Theorem 1 and Algorithm 1 without line 5: if the greedy graph has a cycle C, then opt(G) is
    opt(G/C) with C broken at its entrance. The recursion is a loop here that remembers the contractions.

    Promise: a best tree; as many edges leave ROOT as that takes. There are at most n - 1 contractions, and
    the greedy graph is computed afresh after each of them: O(n^3) at worst, O(n^2) when the greedy graph is
    a tree.

    Numerically: contraction adds scores up. Where the best tree needs an edge of, say, -1e30 to enter a
    cycle, that edge drowns the scores added to it, and ties among what is left are broken by rounding.

    Examples
    --------
    >>> chu_liu_edmonds([[0, 9, 9, 1], [0, 0, 1, 5], [0, 1, 0, 1], [0, 1, 1, 0]])
    array([-1,  0,  0,  1])
    """
    w = read_scores(scores, "multi")
    contractions: list[Contraction] = []
    while True:
        greedy_graph: IntArray = w.argmax(axis=0)
        greedy_graph[0] = -1
        cycle = find_cycle(greedy_graph)
        if cycle is None:
            break
        contractions.append(contract(w, greedy_graph, cycle))
    for contraction in reversed(contractions):
        expand(greedy_graph, contraction)
    return greedy_graph
