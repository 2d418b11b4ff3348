"""The loop-erased random walk inside all of Wilson's samplers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ._draws import cumulative, draw
from ._graph import BoolArray, FloatArray, IntArray
from ._support import root_words


def stochastic_graph(weights: FloatArray) -> list[FloatArray]:
    """Distribution function of the step from each node ``u`` to a head ``v``, in proportion to ``w[v, u]``.

    Zmigrod, Vieira and Cotterell, "Efficient Sampling of Dependency Structures", equation (4). Nodes that
    nothing enters have no step; their entry is empty.
    """
    enters = weights.sum(axis=0) > 0.0
    return [cumulative(weights[:, u]) if enters[u] else np.empty(0) for u in range(len(weights))]


def between_words(weights: FloatArray) -> list[FloatArray]:
    """`stochastic_graph` without the edges from ROOT."""
    return stochastic_graph(np.where(np.arange(len(weights))[:, None] > 0, weights, 0.0))


def attach_all(steps: Sequence[FloatArray], t: IntArray, visited: list[bool], rng: np.random.Generator) -> IntArray:
    """Walk from every word to the tree grown so far; lines 6 to 16 of figure 2 (3 to 13 of algorithm 1).

    Overwriting ``t[u]`` whenever the walk comes back to ``u`` is what erases the loops. `t`, the heads of the visited
    words, and `visited` are filled in place; every word must have a way to a visited node.
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


def spanning_tree(steps: Sequence[FloatArray], rng: np.random.Generator) -> IntArray:
    """Wilson's algorithm: walks to ROOT; heads, shape (n+1,)."""
    t = np.full(len(steps), -1, dtype=np.int64)
    visited = [True] + [False] * (len(steps) - 1)
    return attach_all(steps, t, visited, rng)


def dependency_tree(root_word: int, steps_between_words: Sequence[FloatArray], rng: np.random.Generator) -> IntArray:
    """A tree whose only root edge enters `root_word`, the rest by walks between words to it."""
    t = np.full(len(steps_between_words), -1, dtype=np.int64)
    t[root_word] = 0
    visited = [node in (0, root_word) for node in range(len(t))]
    return attach_all(steps_between_words, t, visited, rng)


def words_that_end_walks(weights: FloatArray) -> BoolArray:
    """The words that all walks between words can reach: as roots, no walk is endless; O(n^2)."""
    return root_words(weights > 0.0)


def refuse_endless(root_word: int, ends_walks: BoolArray) -> None:
    """Raise where the published walk would never end.

    Raises
    ------
    RuntimeError
        `root_word` does not lead to all words.
    """
    if not ends_walks[root_word]:
        raise RuntimeError(f"word {root_word} was drawn as the root and does not lead to all words: an endless walk")
