"""Pairs of edges: the Hessian of Z that T2h and Druck and Smith's covariance are made of."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ._graph import FloatArray
from .laplacian import laplacian_pullback
from .matrix_tree import Inverse


def pair_marginals(inverse: Inverse) -> Iterator[tuple[int, FloatArray]]:
    """Probabilities that two different edges are both in the tree, one dependent ``j`` at a time.

    Zmigrod, Vieira and Cotterell, "Efficient Computation of Expectations under Spanning Tree Distributions",
    equations (17), (25) and (26), divided by Z.

    Yields
    ------
    j : int
        A word, 1 to n.
    pairs : FloatArray, shape (n+1, n+1, n+1)
        ``pairs[i, k, l] = P(i -> j and k -> l)``, 0 for ``l = j``. O(n^3) time and memory for each ``j``.
    """
    w, B = inverse.weights, inverse.B
    n = len(B)
    # C[l, i, j] = sum over i' of B[i', l] L'[i'j, ij]: equation (25) needs it with l the dependent of the
    # other edge.
    C = np.zeros((n + 1, n + 1, n + 1))
    for other in range(1, n + 1):
        C[other] = laplacian_pullback(np.repeat(B[:, other - 1 : other], n, axis=1), inverse.root)
    G = inverse.gradient()
    for j in range(1, n + 1):
        hessian = G[:, j, None, None] * G - C[:, :, j].T[:, None, :] * C[j]
        yield j, w[:, j, None, None] * w * hessian
