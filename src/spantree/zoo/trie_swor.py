"""Sampling without replacement with a trie of the trees drawn.

Stanojevic, "Unbiased and Efficient Sampling of Dependency Trees", section 5: the trie of Shi et al. (2020) on
algorithm 8 (`state_machine`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from ._draws import Rng, cumulative, draw, pad, read_k
from ._graph import FloatArray, IntArray, Root
from .state_machine import PUBLISHED, Machine, State, initial_state


@dataclass
class Node:
    """A prefix of heads that some drawn tree starts with."""

    probs: FloatArray
    """Probabilities of the next head, shape (n+1,)."""
    left: FloatArray
    """Of `probs`, what belongs to trees not drawn yet; never computed by subtracting."""
    children: dict[int, Node] = field(default_factory=dict)
    """Prefixes one head longer; an absent child has nothing drawn below it."""


def trie_swor(
    scores: ArrayLike, k: int, rng: Rng = None, root: Root = "single", machine: Machine = PUBLISHED
) -> tuple[IntArray, FloatArray]:
    """Distinct trees in the order drawn, each from the distribution over the trees not drawn before.

    Parameters
    ----------
    machine : Machine
        `PUBLISHED`, algorithm 8 of the paper, or `ROBUST`.

    Returns
    -------
    heads : IntArray, shape (k, n+1)
        If there are fewer than `k` trees: all of them, then rows of -1; so with `ROBUST`. With `PUBLISHED`, heads that
        no tree has left keep some 1e-17 of mass, and once all else is drawn they are, or ``FloatingPointError`` is
        raised.
    log_probs : FloatArray, shape (k,)
        Log-probabilities under the full distribution; ``-inf`` for missing trees.

    Notes
    -----
    O(k n^3) time, O(k n^2) memory, one tree after the other. Shi et al. subtract a drawn sequence from the mass of its
    prefixes; here the unsampled mass of a prefix is the *sum* of the unsampled masses of its continuations, at the same
    cost, so it is accurate when nearly all trees below are drawn. The conditional probabilities are those of the
    machine, and fail with it on sharp scores; a tree whose probability they round to 0 is never drawn.

    Examples
    --------
    >>> heads, log_probs = trie_swor(np.zeros((3, 3)), 3, rng=0)  # there are two trees
    >>> sorted(heads.tolist()), np.exp(log_probs).round(12).tolist()
    ([[-1, -1, -1], [-1, 0, 1], [-1, 2, 0]], [0.5, 0.5, 0.0])
    """
    generator = np.random.default_rng(rng)
    k = read_k(k)
    start = initial_state(scores, root)
    nodes = len(start.W)
    if nodes == 1:
        return pad([np.array([-1])] * min(k, 1), [0.0] * min(k, 1), k, 0)
    first = positive_probs(machine, start)
    top = Node(first, first.copy())
    heads: list[IntArray] = []
    log_probs: list[float] = []
    while len(heads) < k and top.left.any():
        t = np.full(nodes, -1, dtype=np.int64)
        path: list[Node] = []
        state, node = start, top
        for i in range(1, nodes):
            path.append(node)
            t[i] = draw(cumulative(node.left), generator)
            if i == nodes - 1:
                break
            state = machine.transit_state(state, int(t[i]))
            if t[i] not in node.children:
                probs = positive_probs(machine, state)
                node.children[int(t[i])] = Node(probs, probs.copy())
            node = node.children[int(t[i])]
        heads.append(t)
        log_probs.append(float(sum(np.log(node.probs[head]) for node, head in zip(path, t[1:], strict=True))))
        remove(path, t)
    return pad(heads, log_probs, k, nodes - 1)


def remove(path: list[Node], t: IntArray) -> None:
    """Take a drawn tree out of the masses left on its path, from the last word up; O(n^2)."""
    below = 0.0
    for node, head in zip(reversed(path), reversed(t[1:].tolist()), strict=True):
        node.left[head] = node.probs[head] * below
        below = float(node.left.sum())


def positive_probs(machine: Machine, state: State) -> FloatArray:
    """The machine's probabilities, with rounding below 0 as 0."""
    return np.maximum(machine.transition_probs(state), 0.0)
