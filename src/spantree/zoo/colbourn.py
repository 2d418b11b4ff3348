"""Ancestral sampling: the heads of the words one after the other, as a state machine.

Colbourn et al. (1996), weighted and with one root by Zmigrod, Vieira and Cotterell, "Efficient Sampling of
Dependency Structures", figure 5; as a state machine by Stanojevic, "Unbiased and Efficient Sampling of
Dependency Trees", appendix B and algorithm 8.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ._draws import Rng, cumulative, draw, read_k
from ._graph import FloatArray, IntArray, Root
from ._support import possible_heads
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


def initial_state(scores: ArrayLike, root: Root = "single") -> State:
    """Nothing decided yet; O(n^3).

    Parameters
    ----------
    scores : array_like, shape (n+1, n+1)
        Log-weights ``[head, dependent]``.
    root : {"single", "multi"}, default "single"
        How many edges may leave ROOT.

    Raises
    ------
    NoTreeError, FloatingPointError, numpy.linalg.LinAlgError
        As `matrix_tree`.
    """
    inverse = invert(scores, root)
    return State(1, inverse.weights, laplacian(inverse.weights, root), inverse.B, root)


def transition_probs(state: State) -> FloatArray:
    """Probabilities of the heads of the next word given all decisions so far: (n+1,), O(n^2).

    Equation (15) on the conditioned graph, `sample_edge` of figure 5. What rounding leaves on heads that no
    tree uses, or below 0, is removed and the rest brought to sum 1.

    Raises
    ------
    FloatingPointError
        Nothing positive is left: the updates have destroyed the inverse.

    Examples
    --------
    >>> state = initial_state(np.zeros((3, 3)))
    >>> transition_probs(state).round(3)
    array([0.5, 0. , 0.5])
    >>> transition_probs(transit_state(state, 2)).round(3)
    array([1., 0., 0.])
    """
    marginals = (state.W * laplacian_pullback(state.B, state.root))[:, state.i]
    possible = possible_heads(state.W > 0.0, state.i, state.root)
    positive = np.where(possible, np.maximum(marginals, 0.0), 0.0)
    total = positive.sum()
    if not 0.0 < total < np.inf:
        raise FloatingPointError(f"no digits left in the conditional marginals of word {state.i}")
    probs: FloatArray = positive / total
    return probs


def transit_state(state: State, j: int) -> State:
    """Decide that the next word's head is `j`: equations (6) to (8), `condition` of figure 5; O(n^2).

    Column ``i`` of the Laplacian is replaced, so its inverse changes by the Sherman-Morrison formula with
    ``u`` the new column minus the old and ``v`` the ``i``-th unit vector. Row ``i`` of ``L^-1`` is *column*
    ``i`` of ``B`` (figure 5 prints a row), and the update is subtracted from ``B`` (equation (8) prints the
    term alone). The old column times ``B`` is ``v``, which is put in as such: then ``1 + u^T B_i`` is the
    probability of the head without a subtraction from 1.

    Parameters
    ----------
    state : State
        Not modified.
    j : int
        A head of word ``state.i`` that has a positive probability.

    Raises
    ------
    FloatingPointError
        The probability of `j` is lost in rounding.
    """
    i = state.i
    W = state.W.copy()
    W[:, i] = 0.0
    W[j, i] = state.W[j, i]
    L = laplacian(W, state.root)
    u_B = L[:, i - 1] @ state.B
    prob = u_B[i - 1]
    if not prob > 0.0:
        raise FloatingPointError(f"the probability of edge {j} -> {i} is lost in rounding")
    u_B[i - 1] -= 1.0
    B = state.B - np.outer(state.B[:, i - 1], u_B) / prob
    return State(i + 1, W, L, B, state.root)


def colbourn(scores: ArrayLike, k: int, rng: Rng = None, root: Root = "single") -> IntArray:
    """Independent draws, the head of each word from its marginal given the words before it.

    Parameters
    ----------
    scores : array_like, shape (n+1, n+1)
        Log-weights ``[head, dependent]``.
    k : int
        Number of trees.
    rng : None, int or numpy.random.Generator
        Source of randomness.
    root : {"single", "multi"}, default "single"
        Dependency trees or spanning trees.

    Returns
    -------
    IntArray, shape (k, n+1)
        Heads.

    Raises
    ------
    NoTreeError, FloatingPointError, numpy.linalg.LinAlgError
        As `matrix_tree` and `transition_probs`.

    Notes
    -----
    Unbiased. O(n^3) for each tree whatever the weights. Each update divides by the probability of the head
    chosen, so errors grow along the tree as it takes unlikely edges: after the inverse itself this is the
    second way to lose all digits on sharp scores, and nothing but a zero sum tells.

    Examples
    --------
    >>> colbourn([[0, 0, -np.inf], [0, 0, 0], [0, -np.inf, 0]], 2, rng=0)
    array([[-1,  0,  1],
           [-1,  0,  1]])
    """
    generator = np.random.default_rng(rng)
    start = initial_state(scores, root)
    heads = np.full((read_k(k), len(start.W)), -1, dtype=np.int64)
    for t in heads:
        state = start
        for i in range(1, len(t)):
            t[i] = draw(cumulative(transition_probs(state)), generator)
            state = transit_state(state, int(t[i]))
    return heads
