"""Zeroth-order expectations: Renyi entropy and norms, by two calls of the matrix-tree theorem.

Zmigrod, Vieira and Cotterell, "Efficient Computation of Expectations under Spanning Tree Distributions",
section 3, equation (12) and footnote 10.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._graph import Root, check_root, clean_scores
from .entropy import entropy
from .matrix_tree import log_partition


def log_power_sum(scores: ArrayLike, power: float, root: Root = "single") -> float:
    """``log sum of p(d)^power``: ``log Z(power) - power log Z``, where Z(power) has weights ``w^power``.

    Examples
    --------
    >>> print(round(np.exp(log_power_sum(np.zeros((3, 3)), 0.0)), 12))
    2.0
    """
    check_root(root)
    theta = clean_scores(scores)
    powered = np.full_like(theta, -np.inf)
    # A forbidden edge stays forbidden at power 0.
    np.multiply(power, theta, out=powered, where=theta > -np.inf)
    return log_partition(powered, root) - power * log_partition(theta, root)


def renyi_entropy(scores: ArrayLike, alpha: float, root: Root = "single") -> float:
    """Renyi entropy of order `alpha`, in nats.

    Parameters
    ----------
    scores : array_like, shape (n+1, n+1)
        Log-weights ``[head, dependent]``.
    alpha : float
        Finite, not negative. 0 gives the logarithm of the number of trees, 1 the Shannon entropy (the limit).
    root : {"single", "multi"}, default "single"
        How many edges may leave ROOT.

    Returns
    -------
    float

    Notes
    -----
    O(n^3). Near ``alpha = 1`` the formula divides a difference of order ``|1 - alpha|`` by ``1 - alpha``:
    about ``1e-15 log Z / |1 - alpha|`` is lost. A large `alpha` sharpens the scores and breaks the
    determinant as sharp scores do.

    Examples
    --------
    >>> print(round(np.exp(renyi_entropy(np.zeros((4, 4)), 2.0)), 12))
    9.0
    """
    if not 0.0 <= alpha < np.inf:
        raise ValueError(f"alpha must be finite and not negative, not {alpha}")
    if alpha == 1.0:
        return entropy(scores, root)
    return log_power_sum(scores, alpha, root) / (1.0 - alpha)


def norm(scores: ArrayLike, p: float, root: Root = "single") -> float:
    """The l_p norm of the vector of tree probabilities.

    Parameters
    ----------
    scores : array_like, shape (n+1, n+1)
        Log-weights ``[head, dependent]``.
    p : float
        Finite and positive.
    root : {"single", "multi"}, default "single"
        How many edges may leave ROOT.

    Returns
    -------
    float

    Notes
    -----
    O(n^3). Fails as `renyi_entropy` for large `p`.

    Examples
    --------
    >>> print(round(norm(np.zeros((4, 4)), 2.0), 12))
    0.333333333333
    """
    if not 0.0 < p < np.inf:
        raise ValueError(f"p must be finite and positive, not {p}")
    return float(np.exp(log_power_sum(scores, p, root) / p))
