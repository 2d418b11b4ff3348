"""`swor_zmigrod` made robust: a second machine counts the trees that are left.

Not published. Figure 7 of Zmigrod, Vieira and Cotterell, "Efficient Sampling of Dependency Structures", on the machine
of `colbourn_robust`, and once more on weights 0 and 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ._draws import Rng, cumulative, draw, pad, read_k
from ._graph import FloatArray, IntArray, Root
from .colbourn_robust import robust_probs, robust_transit
from .state_machine import State, initial_state


def swor_zmigrod_robust(
    scores: ArrayLike, k: int, rng: Rng = None, root: Root = "single"
) -> tuple[IntArray, FloatArray]:
    """Distinct trees in the order drawn, each from the distribution over the trees not drawn before.

    Returns
    -------
    heads : IntArray, shape (k, n+1)
        If there are fewer than `k` trees: all of them, then rows of -1.
    log_probs : FloatArray, shape (k,)
        Log-probabilities under the full distribution; ``-inf`` for missing trees.

    Notes
    -----
    O(k n^3 + k^2 n), with a graph search for each word: 11 to 13 times the time of `swor_zmigrod` on 14 words.

    The mass left on an edge is its marginal minus the mass drawn, which is rounding error once nearly all mass is
    drawn, so the tail still comes out in a wrong order. *Which* edges have a tree left does not depend on that error:
    the same machine run on weights 0 and 1 counts the trees of each edge, and a count minus the number drawn is exact
    as long as it is small. A remainder that cancelled to nothing while trees are left is taken as one unit of rounding.

    All weights are divided by Z, so ``Z`` of the figure starts at 1 and ``w(t)`` is the probability of ``t``,
    and both are kept as logarithms, since those of a long sentence underflow.

    Examples
    --------
    >>> heads, log_probs = swor_zmigrod_robust(np.zeros((3, 3)), 3, rng=0)
    >>> sorted(heads.tolist()), np.exp(log_probs).round(12)
    ([[-1, -1, -1], [-1, 0, 1], [-1, 2, 0]], array([0.5, 0.5, 0. ]))
    """
    generator = np.random.default_rng(rng)
    k = read_k(k)
    weighted = initial_state(scores, root)
    counting = initial_state(np.where(weighted.W > 0.0, 0.0, -np.inf), root)
    log_trees = float(np.linalg.slogdet(counting.L)[1])
    nodes = len(weighted.W)
    heads = np.empty((min(k, whole_number(log_trees)), nodes), dtype=np.int64)
    log_probs = np.empty(len(heads))
    for row in range(len(heads)):
        drawn = Drawn(heads[:row], log_probs[:row])
        heads[row], log_probs[row] = draw_new(weighted, counting, log_trees, drawn, generator)
    return pad(list(heads), log_probs.tolist(), k, nodes - 1)


class Drawn(NamedTuple):
    """The list ``D`` of figure 7."""

    heads: IntArray
    """Shape (K, n+1)."""
    log_probs: FloatArray
    """Shape (K,)."""


def whole_number(logarithm: float) -> int:
    """The integer whose rounded logarithm this is; anything above 2^62, which no list reaches, becomes that.

    Examples
    --------
    >>> whole_number(np.log(9)), whole_number(1e4) == 2**62
    (9, True)
    """
    return round(np.exp(logarithm)) if logarithm < 62 * np.log(2) else 2**62


def draw_new(
    weighted: State, counting: State, log_trees: float, drawn: Drawn, rng: np.random.Generator
) -> tuple[IntArray, float]:
    """One tree not in `drawn`, and its log-probability: lines 9 to 13 of figure 7."""
    t = np.full(len(weighted.W), -1, dtype=np.int64)
    log_Z = 0.0
    for j in range(1, len(t)):
        # sample_edge': all trees minus drawn trees, for each head of j, as shares of Z.
        probs = robust_probs(weighted)
        shares = np.exp(drawn.log_probs - log_Z)
        left = probs - np.bincount(drawn.heads[:, j], weights=shares, minlength=len(t))
        log_counts = log_trees + log_or_minus_infinity(robust_probs(counting))
        counts = np.array([whole_number(log_count) for log_count in log_counts.tolist()])
        trees_left = counts - np.bincount(drawn.heads[:, j], minlength=len(t))
        m = np.where(trees_left > 0, np.maximum(left, np.finfo(np.float64).eps * probs), 0.0)
        i = draw(cumulative(m), rng)
        # condition': keep the drawn trees that contain the new edge.
        t[j] = i
        log_Z += float(np.log(probs[i]))
        log_trees = float(log_counts[i])
        same = drawn.heads[:, j] == i
        drawn = Drawn(drawn.heads[same], drawn.log_probs[same])
        weighted, counting = robust_transit(weighted, i), robust_transit(counting, i)
    return t, log_Z


def log_or_minus_infinity(probs: FloatArray) -> FloatArray:
    """Logarithm that takes zeros quietly."""
    with np.errstate(divide="ignore"):
        return np.log(probs)
