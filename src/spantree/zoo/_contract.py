"""Cycle contraction on a dense score matrix, for the algorithms that contract one cycle at a time.

The notation is that of Zmigrod et al. (2020), "Please Mind the Root", section 2.1: a cycle C of the graph G
is replaced by one node c, giving G/C; an edge that enters C at j is charged with the weight of the broken
cycle C^(j), all of C but the edge into j, so that the best tree of G/C weighs as much as the best tree of
G.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._graph import FloatArray, IntArray


@dataclass(frozen=True)
class Contraction:
    """What turns a tree of G/C into a tree of G; node c goes by the name of the first node of C."""

    cycle: IntArray
    """The nodes of C."""
    cycle_heads: IntArray
    """The head of each of them within C."""
    entrance: IntArray
    """``entrance[i]``: the node of C that the edge i -> c points to in G."""
    exit: IntArray
    """``exit[k]``: the node of C that the edge c -> k leaves in G."""


def find_cycle(heads: IntArray) -> IntArray | None:
    """Some cycle of the graph in which ``heads[d]`` is the only head of d, or None; O(n).

    Examples
    --------
    >>> find_cycle(np.array([-1, 2, 3, 2]))
    array([2, 3])
    >>> find_cycle(np.array([-1, 2, 0, 2])) is None
    True
    """
    walk_that_saw = np.zeros(len(heads), dtype=np.int64)
    for start in range(1, len(heads)):
        node = start
        while node > 0 and walk_that_saw[node] == 0:
            walk_that_saw[node] = start
            node = int(heads[node])
        if node > 0 and walk_that_saw[node] == start:
            return cycle_through(heads, node)
    return None


def cycle_through(heads: IntArray, node: int) -> IntArray | None:
    """The cycle on which the heads lead from `node` back to it, or None if they lead to ROOT; O(n)."""
    cycle = [node]
    while (node := int(heads[node])) > 0:
        if node == cycle[0]:
            return np.array(cycle)
        cycle.append(node)
    return None


def contract(w: FloatArray, heads: IntArray, cycle: IntArray) -> Contraction:
    """Turn `w` (G) into G/C in place, and let `heads` point to c where it pointed into C; O(n |C|).

    `heads` holds the cycle's edges. The nodes of C other than c leave the graph: they lose all their edges,
    and their heads are set to ROOT, so that no walk finds a cycle there, until `expand` gives them their
    heads in the tree.
    """
    cycle_heads = heads[cycle]
    cycle_weights = w[cycle_heads, cycle]
    weight_broken_at = cycle_weights.sum() - cycle_weights
    entering = w[:, cycle] + weight_broken_at
    exiting = w[cycle, :]
    entrance, exit_ = cycle[entering.argmax(axis=1)], cycle[exiting.argmax(axis=0)]
    c = cycle[0]
    w[:, c] = entering.max(axis=1)
    w[c, :] = exiting.max(axis=0)
    w[cycle, c] = -np.inf
    w[cycle[1:], :] = -np.inf
    w[:, cycle[1:]] = -np.inf
    heads[np.isin(heads, cycle)] = c
    heads[cycle[1:]] = 0
    return Contraction(cycle, cycle_heads, entrance, exit_)


def expand(heads: IntArray, contraction: Contraction) -> None:
    """Turn the tree `heads` of G/C into the tree of G that breaks C at its entrance, in place; O(n)."""
    c = contraction.cycle[0]
    head_of_c = heads[c]
    leaving = heads == c
    heads[leaving] = contraction.exit[leaving]
    heads[contraction.cycle] = contraction.cycle_heads
    heads[contraction.entrance[head_of_c]] = head_of_c
