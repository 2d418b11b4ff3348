"""The loop-erased random walk inside all of Wilson's samplers."""

from __future__ import annotations

import numpy as np

from ._draws import cumulative, draw
from ._graph import FloatArray, IntArray


def stochastic_graph(weights: FloatArray) -> list[FloatArray]:
    """Distribution function of the step from each node ``u`` to a head ``v``, in proportion to ``w[v, u]``.

    Zmigrod, Vieira and Cotterell, "Efficient Sampling of Dependency Structures", equation (4). Nodes that
    nothing enters have no step; their entry is empty.
    """
    enters = weights.sum(axis=0) > 0.0
    return [cumulative(weights[:, u]) if enters[u] else np.empty(0) for u in range(len(weights))]


def attach_all(steps: list[FloatArray], t: IntArray, visited: list[bool], rng: np.random.Generator) -> IntArray:
    """Walk from every word to the tree grown so far; lines 6 to 16 of figure 2 (3 to 13 of algorithm 1).

    Overwriting ``t[u]`` whenever the walk comes back to ``u`` is what erases the loops.

    Parameters
    ----------
    steps : list of FloatArray
        As `stochastic_graph` returns.
    t : IntArray, shape (n+1,)
        Heads of the visited words; filled in place.
    visited : list of bool
        Nodes in the tree already; updated in place. Every word must have a way to one of them.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    IntArray, shape (n+1,)
        `t`.
    """
    for i in range(1, len(t)):
        u = i
        while not visited[u]:
            v = draw(steps[u], rng)
            t[u] = v
            u = v
        u = i
        while not visited[u]:
            visited[u] = True
            u = int(t[u])
    return t


def dependency_tree(root_word: int, steps_between_words: list[FloatArray], rng: np.random.Generator) -> IntArray:
    """A tree whose only root edge enters `root_word`, the rest by walks between words."""
    t = np.full(len(steps_between_words), -1, dtype=np.int64)
    t[root_word] = 0
    visited = [node in (0, root_word) for node in range(len(t))]
    return attach_all(steps_between_words, t, visited, rng)
