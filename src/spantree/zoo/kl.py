"""Kullback-Leibler divergence and cross-entropy of two distributions over trees, by T1.

Zmigrod, Vieira and Cotterell, "Efficient Computation of Expectations under Spanning Tree Distributions",
section 6.3 and equation (35).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._features import read_features
from ._graph import FloatArray, Root
from .entropy import entropy_values
from .matrix_tree import Inverse, invert
from .t1 import first_order


def kl(scores: ArrayLike, other: ArrayLike, root: Root = "single") -> float:
    """``E[log p(d) - log q(d)]`` in nats, for trees of ``p``, given by `scores`, and ``q``, given by `other`.

    T1 with ``r[i, j] = log w[i, j] - log Z / n - (the same of q)``; the paper absorbs the normalisation of ``q`` into
    its weights.

    Returns
    -------
    float
        ``inf`` if some tree of ``p`` uses an edge that ``q`` forbids, decided on the graph and so never by
        rounding; never NaN.

    Notes
    -----
    O(n^3). The error is absolute, as that of `entropy`: a divergence near 0 may come out as -1e-16. Accuracy on the
    graphs of `t1`: 6e-9, where the scores of ``q`` differ from those of ``p`` by half a nat or so.

    Examples
    --------
    >>> p = np.zeros((3, 3))
    >>> q = np.zeros((3, 3))
    >>> q[0, 2] = -np.inf
    >>> print(round(kl(q, p), 12), kl(p, q))
    0.69314718056 inf
    """
    p, q = read_both(scores, other, root)
    r, _ = read_features(kl_values(p, q), p.weights, root)
    return float(first_order(p, r)[0])


def cross_entropy(scores: ArrayLike, other: ArrayLike, root: Root = "single") -> float:
    """``E[-log q(d)]`` in nats, for trees of ``p``, given by `scores`, and ``q``, given by `other`: T1; O(n^3).

    ``inf`` where `kl` is. Accuracy on the graphs of `t1`: 3e-8.

    Examples
    --------
    >>> print(round(np.exp(cross_entropy(np.zeros((3, 3)), np.zeros((3, 3)))), 12))
    2.0
    """
    p, q = read_both(scores, other, root)
    r, _ = read_features(cross_entropy_values(p, q), p.weights, root)
    return float(first_order(p, r)[0])


def read_both(scores: ArrayLike, other: ArrayLike, root: Root) -> tuple[Inverse, Inverse]:
    """The two distributions, which must be over the same words."""
    p, q = invert(scores, root), invert(other, root)
    if p.weights.shape != q.weights.shape:
        raise ValueError(f"the distributions differ in size: {p.weights.shape} and {q.weights.shape}")
    return p, q


def cross_entropy_values(p: Inverse, q: Inverse) -> FloatArray:
    """``-log q`` as a sum over edges, (n+1, n+1): as for the entropy; any finite value where ``p`` has no edge."""
    return np.where(p.weights > 0.0, entropy_values(q), 0.0)


def kl_values(p: Inverse, q: Inverse) -> FloatArray:
    """``r`` of section 6.3, (n+1, n+1): ``log p - log q`` as a sum over edges, 0 where ``p`` has no edge."""
    difference = np.zeros_like(p.weights)
    np.subtract(entropy_values(q), entropy_values(p), out=difference, where=p.weights > 0.0)
    return difference
