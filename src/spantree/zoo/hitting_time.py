"""The mean hitting time of a graph, in which the running time of walks is stated.

Zmigrod, Vieira and Cotterell, "Efficient Sampling of Dependency Structures", equation (9), after Wilson (1996).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._graph import FloatArray, clean_scores, leading_word, reachable


def mean_hitting_time(scores: ArrayLike) -> float:
    """``H = sum of pi[i] pi[j] h(i, j)`` of the walk between words that `wilson_rc` takes, equation (9).

    ``pi`` is the stationary distribution, ``h(i, j)`` the expected number of steps from word ``i`` to word ``j``. ROOT
    is left out: a walk never leaves it, so with ROOT ``pi`` is all there and equation (9) gives 0, which bounds no
    running time; that of `wilson` is `mean_steps`.

    Notes
    -----
    O(n^3). The steps that `wilson_rc` takes from the root word ``r`` are ``sum of pi[u] (h(u, r) + h(r, u))`` in
    expectation (Wilson, 1996), and so ``2 H`` if ``r`` is itself drawn from ``pi``. From a word that is nearly never a
    head they are many, whatever ``H`` is: about ``1 / pi[r]``.

    Raises
    ------
    ValueError
        No word leads to all others: the stationary distribution is not unique.

    Examples
    --------
    From any of three equal words, each other one is two steps away on average.

    >>> print(round(mean_hitting_time(np.zeros((4, 4))), 12))
    1.333333333333
    """
    pi, h = hitting_times(scores)
    reached = pi > 0.0
    return float(pi @ h[:, reached] @ pi[reached])


def hitting_times(scores: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """``pi`` (n,) and ``h`` (n, n) of the walk between words, by its fundamental matrix; ``inf`` where ``pi`` is 0.

    With ``P[i, j]`` the probability of the step from word ``i`` to its head ``j``: ``N = (I - P + 1 pi^T)^-1`` and
    ``h(i, j) = (N[j, j] - N[i, j]) / pi[j]`` (Kemeny and Snell, 1960).
    """
    theta = clean_scores(scores)[1:, 1:]
    n = len(theta)
    edges = np.zeros((n + 1, n + 1), dtype=np.bool_)
    edges[1:, 1:] = theta > -np.inf
    leader, led = leading_word(edges)
    if not led[1:].all():
        raise ValueError("no word leads to all others: the walk between words has no unique stationary distribution")
    if n <= 1:
        return np.ones(n), np.zeros((n, n))
    best = theta.max(axis=0)
    weights = np.exp(theta - np.where(best > -np.inf, best, 0.0))
    # a word that nothing enters keeps the walk
    weights[:, best == -np.inf] = np.eye(n)[:, best == -np.inf]
    P = (weights / weights.sum(axis=0)).T
    ones = np.ones((n, n))
    # from anywhere the walk ends among the words that lead to the leader, and so to all
    reached = reachable(edges.T, leader)[1:]
    pi = np.where(reached, np.linalg.solve((np.eye(n) - P + ones).T, np.ones(n)), 0.0)
    N = np.linalg.inv(np.eye(n) - P + ones * pi)
    h = np.full((n, n), np.inf)
    h[:, reached] = (N.diagonal()[reached] - N[:, reached]) / pi[reached]
    return pi, h
