"""A distribution over trees as a sequence model: `colbourn` in the form of a state machine.

Stanojevic, "Unbiased and Efficient Sampling of Dependency Trees", section 5.1, appendix B and algorithm 8.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ._graph import FloatArray, Root
from .laplacian import laplacian, laplacian_pullback
from .matrix_tree import invert


class State(NamedTuple):
    """The heads of words 1 to ``i - 1`` are decided; word ``i`` is next."""

    i: int
    """Next word; n+1 at the end."""
    W: FloatArray
    """Weights (n+1, n+1) of the conditioned graph: one edge left in each column before ``i``."""
    L: FloatArray
    """Laplacian of `W`, shape (n, n)."""
    B: FloatArray
    """Transposed inverse of `L`, kept by rank-one updates."""
    root: Root
    """Which Laplacian: dependency trees (``"single"``) or spanning trees (``"multi"``)."""


class Machine(NamedTuple):
    """How a sampler moves from state to state."""

    transition_probs: Callable[[State], FloatArray]
    transit_state: Callable[[State, int], State]


def initial_state(scores: ArrayLike, root: Root = "single") -> State:
    """Nothing decided yet; O(n^3)."""
    inverse = invert(scores, root)
    return State(1, inverse.weights, laplacian(inverse.weights, root), inverse.B, root)


def transition_probs(state: State) -> FloatArray:
    """Probabilities of the heads of the next word given all decisions so far: (n+1,), O(n^2).

    The marginals of the conditioned graph (algorithm 6, whose root row must read ``B[0]`` for ``diag(B)``) as the
    inverse gives them: heads that no tree has may keep some 1e-17 of either sign.

    Examples
    --------
    >>> state = initial_state(np.zeros((3, 3)))
    >>> transition_probs(state).round(3)
    array([0.5, 0. , 0.5])
    >>> transition_probs(transit_state(state, 2)).round(3)
    array([1., 0., 0.])
    """
    column: FloatArray = (state.W * laplacian_pullback(state.B, state.root))[:, state.i]
    return column


def transit_state(state: State, j: int) -> State:
    """Decide that the next word's head is `j`: equations (6) to (8); the state is not modified; O(n^2).

    Equation (8) as it must be: the Sherman-Morrison term is subtracted from ``B``, and its column is that of the word
    ``i`` whose edges changed, not that of the head.

    Raises
    ------
    FloatingPointError
        The probability of `j` is lost in rounding.
    """
    i = state.i
    W = conditioned_weights(state, j)
    L = laplacian(W, state.root)
    u = L[:, i - 1] - state.L[:, i - 1]
    u_B = u @ state.B
    ratio = 1.0 + u_B[i - 1]
    if not ratio > 0.0:
        raise FloatingPointError(f"the probability of edge {j} -> {i} is lost in rounding")
    B = state.B - np.outer(state.B[:, i - 1], u_B) / ratio
    return State(i + 1, W, L, B, state.root)


def conditioned_weights(state: State, j: int) -> FloatArray:
    """Equation (6)."""
    W = state.W.copy()
    W[:, state.i] = 0.0
    W[j, state.i] = state.W[j, state.i]
    return W


PUBLISHED = Machine(transition_probs, transit_state)
"""Algorithm 8."""
