"""What all samplers share: reading ``k``, drawing from weights, filling up a short list of trees."""

from __future__ import annotations

import operator
from typing import TypeAlias

import numpy as np

from ._graph import FloatArray, IntArray

Rng: TypeAlias = int | np.random.Generator | None


def read_k(k: int) -> int:
    """The number of trees as an ``int``; ``ValueError`` if negative."""
    number = operator.index(k)
    if number < 0:
        raise ValueError(f"k must not be negative, not {k}")
    return number


def cumulative(weights: FloatArray) -> FloatArray:
    """Distribution function of draws proportional to `weights` (nonnegative, of positive sum) along axis 0.

    Divided by the last entry, which becomes exactly 1, so that `draw` never picks a zero weight.
    """
    sums = np.cumsum(weights, axis=0)
    distribution: FloatArray = sums / sums[-1]
    return distribution


def draw(distribution: FloatArray, rng: np.random.Generator) -> int:
    """One index from the distribution function that `cumulative` made.

    Examples
    --------
    >>> draw(cumulative(np.array([0.0, 3.0, 0.0])), np.random.default_rng(0))
    1
    """
    return int(np.searchsorted(distribution, rng.random(), side="right"))


def draw_from_marginals(m: FloatArray, rng: np.random.Generator) -> int:
    """One index in proportion to `m` as an inverse gave it: rounding below 0 counts as 0.

    Raises
    ------
    FloatingPointError
        Nothing positive is left.

    Examples
    --------
    >>> draw_from_marginals(np.array([-1e-17, 0.7, -0.2]), np.random.default_rng(0))
    1
    """
    positive = np.maximum(m, 0.0)
    if not 0.0 < positive.sum() < np.inf:
        raise FloatingPointError("no digits left in the marginals that a head is drawn from")
    return draw(cumulative(positive), rng)


def pad(heads: list[IntArray], log_probs: list[float], k: int, n: int) -> tuple[IntArray, FloatArray]:
    """At most `k` trees as arrays (k, n+1) and (k,), the missing ones with heads -1 and log-probability -inf.

    Examples
    --------
    >>> pad([np.array([-1, 0])], [0.0], 2, 1)
    (array([[-1,  0],
           [-1, -1]]), array([  0., -inf]))
    """
    all_heads = np.full((k, n + 1), -1, dtype=np.int64)
    all_log_probs = np.full(k, -np.inf)
    for row, (tree, log_prob) in enumerate(zip(heads, log_probs, strict=True)):
        all_heads[row] = tree
        all_log_probs[row] = log_prob
    return all_heads, all_log_probs
