"""`colbourn` made robust: no head that no tree has, and no subtraction from 1.

Not published: two changes to the state machine of algorithm 8 (`state_machine`) that keep the trees right where
rounding would not, at the price of a graph search for each word.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._draws import Rng, cumulative, draw, read_k
from ._graph import FloatArray, IntArray, Root
from ._support import possible_heads
from .laplacian import laplacian
from .state_machine import Machine, State, conditioned_weights, initial_state
from .state_machine import transition_probs as published_probs


def colbourn_robust(scores: ArrayLike, k: int, rng: Rng = None, root: Root = "single") -> IntArray:
    """Independent draws, shape (k, n+1), from the distribution of `colbourn`, by the machine `ROBUST`.

    Notes
    -----
    O(n^3) for each tree whatever the graph. Always trees of the graph. On sharp scores the probabilities lose their
    digits as those of `colbourn` do.

    Examples
    --------
    >>> colbourn_robust([[0, 0, -np.inf], [0, 0, 0], [0, -np.inf, 0]], 2, rng=0)
    array([[-1,  0,  1],
           [-1,  0,  1]])
    """
    generator = np.random.default_rng(rng)
    start = initial_state(scores, root)
    heads = np.full((read_k(k), len(start.W)), -1, dtype=np.int64)
    for t in heads:
        state = start
        for i in range(1, len(t)):
            t[i] = draw(cumulative(robust_probs(state)), generator)
            state = robust_transit(state, int(t[i]))
    return heads


def robust_probs(state: State) -> FloatArray:
    """`transition_probs` without what rounding leaves on heads that no tree uses, or below 0; of sum 1; O(n^2).

    Raises
    ------
    FloatingPointError
        Nothing positive is left: the updates have destroyed the inverse.
    """
    possible = possible_heads(state.W > 0.0, state.i, state.root)
    positive = np.where(possible, np.maximum(published_probs(state), 0.0), 0.0)
    total = positive.sum()
    if not 0.0 < total < np.inf:
        raise FloatingPointError(f"no digits left in the conditional marginals of word {state.i}")
    probs: FloatArray = positive / total
    return probs


def robust_transit(state: State, j: int) -> State:
    """`transit_state`, with the old column times ``B`` put in as the unit vector it is.

    Then ``1 + u^T B_i`` is the new column times ``B_i``, the probability of the head without a subtraction from 1.
    """
    i = state.i
    W = conditioned_weights(state, j)
    L = laplacian(W, state.root)
    u_B = L[:, i - 1] @ state.B
    prob = u_B[i - 1]
    if not prob > 0.0:
        raise FloatingPointError(f"the probability of edge {j} -> {i} is lost in rounding")
    u_B[i - 1] -= 1.0
    B = state.B - np.outer(state.B[:, i - 1], u_B) / prob
    return State(i + 1, W, L, B, state.root)


ROBUST = Machine(robust_probs, robust_transit)
"""For `trie_swor` and `sbs_swor` in the place of algorithm 8."""
