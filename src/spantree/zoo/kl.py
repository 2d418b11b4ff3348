"""Kullback-Leibler divergence between two tree distributions, by T1.

Zmigrod, Vieira and Cotterell, "Efficient Computation of Expectations under Spanning Tree Distributions",
section 6.3.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._edge_values import read_values
from ._graph import Root, clean_scores
from .matrix_tree import invert
from .t1 import first_order


def kl(scores: ArrayLike, other: ArrayLike, root: Root = "single") -> float:
    """``KL(p || q)`` in nats: T1 under ``p`` with ``r = log w_p - log w_q``, then the partition functions.

    The paper absorbs the normalisation of ``q`` into its weights; here both distributions are given by
    scores.

    Parameters
    ----------
    scores, other : array_like, shape (n+1, n+1)
        Log-weights of ``p`` and of ``q``.
    root : {"single", "multi"}, default "single"
        How many edges may leave ROOT, in both.

    Returns
    -------
    float
        ``inf`` if some tree of ``p`` uses an edge that ``q`` forbids, decided on the graph and so never by
        rounding; never NaN.

    Notes
    -----
    O(n^3). Absolute accuracy like `entropy`: a divergence near 0 may come out as -1e-16.

    Examples
    --------
    >>> p = np.zeros((3, 3))
    >>> q = np.zeros((3, 3))
    >>> q[0, 2] = -np.inf
    >>> print(round(kl(q, p), 12), kl(p, q))
    0.69314718056 inf
    """
    p = invert(scores, root)
    theta_p, theta_q = clean_scores(scores), clean_scores(other)
    if theta_p.shape != theta_q.shape:
        raise ValueError(f"the distributions differ in size: {theta_p.shape} and {theta_q.shape}")
    q = invert(other, root)
    ratio = np.zeros_like(theta_p)
    np.subtract(theta_p, theta_q, out=ratio, where=theta_p > -np.inf)
    r, _ = read_values(ratio, p.weights, root)
    return float(first_order(p, r)[0]) - p.log_z + q.log_z
