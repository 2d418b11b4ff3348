"""Sampling without replacement by stochastic beam search.

Stanojevic, "Unbiased and Efficient Sampling of Dependency Trees", section 5: the stochastic beam search of
Kool et al. (2019), a Gumbel top-k over all trees found without forming them, on algorithm 8
(`state_machine`). Keys are drawn for the whole beam at once; only the machine goes from prefix to prefix.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ._draws import Rng, pad, read_k
from ._graph import FloatArray, IntArray, Root
from .state_machine import PUBLISHED, Machine, State, initial_state
from .trie_swor import positive_probs


class Prefix(NamedTuple):
    """A member of the beam: the heads of the first words."""

    state: State
    heads: IntArray
    log_prob: float
    """Of all trees that start like this together."""
    key: float
    """The largest Gumbel-perturbed log-probability among those trees."""


def sbs_swor(
    scores: ArrayLike, k: int, rng: Rng = None, root: Root = "single", machine: Machine = PUBLISHED
) -> tuple[IntArray, FloatArray]:
    """Distinct trees: the `k` with the largest log-probability plus independent Gumbel noise.

    Parameters and results as `trie_swor`; the order, by decreasing key, is that of drawing one by one without
    replacement.

    Notes
    -----
    O(k n^3) time while log k, which sorting the beam costs for each of its members, is below n; O(k n^2) memory. All
    `k` trees grow together, and `k` must be known beforehand. No mass is subtracted, so the tail is kept; the
    conditional probabilities are those of the machine and fail with it on sharp scores, where a tree whose probability
    they round to 0 is never drawn.

    Examples
    --------
    >>> heads, log_probs = sbs_swor(np.zeros((3, 3)), 2, rng=0)
    >>> sorted(heads.tolist()), np.exp(log_probs).round(12)
    ([[-1, 0, 1], [-1, 2, 0]], array([0.5, 0.5]))
    """
    generator = np.random.default_rng(rng)
    k = read_k(k)
    start = initial_state(scores, root)
    n = len(start.W) - 1
    beam = [Prefix(start, np.full(n + 1, -1, dtype=np.int64), 0.0, 0.0)][:k]
    for i in range(1, n + 1):
        # one row for each prefix, one column for each head of word i
        probs = np.reshape([positive_probs(machine, prefix.state) for prefix in beam], (-1, n + 1))
        with np.errstate(divide="ignore"):
            log_probs = np.log(probs) + np.reshape([prefix.log_prob for prefix in beam], (-1, 1))
        keys = gumbel_with_maximum(log_probs, np.reshape([prefix.key for prefix in beam], (-1, 1)), generator)
        rows, heads = np.unravel_index(np.argsort(-keys, axis=None)[:k], keys.shape)
        longer: list[Prefix] = []
        for row, head in zip(rows.tolist(), heads.tolist(), strict=True):
            if not keys[row, head] > -np.inf:
                break  # fewer than k prefixes have a positive probability
            t = beam[row].heads.copy()
            t[i] = head
            try:
                state = machine.transit_state(beam[row].state, head)
            except FloatingPointError:
                continue  # its probability was rounding: no tree starts like this
            longer.append(Prefix(state, t, float(log_probs[row, head]), float(keys[row, head])))
        beam = longer
    return pad([prefix.heads for prefix in beam], [prefix.log_prob for prefix in beam], k, n)


def gumbel_with_maximum(locations: FloatArray, maximum: FloatArray | float, rng: np.random.Generator) -> FloatArray:
    """Independent Gumbel variables with the given locations, conditioned on their maximum.

    Kool et al. (2019), appendix B.3: draw without the condition, then move each so that the largest becomes
    `maximum`, ``-log(exp(-maximum) - exp(-largest) + exp(-drawn))``, written so as not to cancel.

    Parameters
    ----------
    locations : FloatArray, shape (..., m)
        Locations of the variables. Those at ``-inf`` stay there; a row of nothing else becomes NaN.
    maximum : FloatArray, shape (..., 1), or float
        The largest value of each row.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    FloatArray, shape (..., m)

    Examples
    --------
    >>> keys = gumbel_with_maximum(np.log([0.2, 0.5, 0.3]), 1.5, np.random.default_rng(0))
    >>> print(keys.max(), (keys < 1.5).sum())
    1.5 2
    """
    drawn = rng.gumbel(loc=locations)
    with np.errstate(divide="ignore", invalid="ignore"):
        behind = drawn - drawn.max(axis=-1, keepdims=True)
        # log(1 - exp(behind)), which is -inf for the largest.
        log_gap = np.where(behind > -np.log(2), np.log(-np.expm1(behind)), np.log1p(-np.exp(behind)))
    v = maximum - drawn + log_gap
    moved: FloatArray = maximum - np.maximum(v, 0.0) - np.log1p(np.exp(-np.abs(v)))
    return moved
