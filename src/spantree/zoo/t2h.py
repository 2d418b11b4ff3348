"""Second-order expectations from the Hessian of Z: algorithm T2h.

Zmigrod, Vieira and Cotterell, "Efficient Computation of Expectations under Spanning Tree Distributions",
figure 3 and equation (20).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._edge_values import drop_missing_axes, read_finite_values
from ._graph import FloatArray, Root
from ._hessian import pair_marginals
from .matrix_tree import invert


def t2h(scores: ArrayLike, r: ArrayLike, s: ArrayLike, root: Root = "single") -> FloatArray:
    """``E[r(d) s(d)^T]`` for sums over edges ``r`` and ``s``, by going over all pairs of edges.

    Parameters
    ----------
    scores : array_like, shape (n+1, n+1)
        Log-weights ``[head, dependent]``.
    r, s : array_like, shapes (n+1, n+1, R) and (n+1, n+1, S), the last axis may be missing
        Values of the edges, finite on edges that some tree uses.
    root : {"single", "multi"}, default "single"
        How many edges may leave ROOT.

    Returns
    -------
    FloatArray, shape (R, S), without the axes that were missing

    Notes
    -----
    O(n^4 R + n^3 R S) time, O(n^3 + R S) memory (the pairs are formed for one dependent at a time). A joint
    probability of two edges is a difference of products, so rare pairs have no correct digits even where the
    marginals of `matrix_tree` are fine.

    Examples
    --------
    >>> to_root = np.zeros((3, 3))
    >>> to_root[0] = 1
    >>> print(t2h(np.zeros((3, 3)), to_root, to_root, root="multi").round(12))
    2.0
    """
    inverse = invert(scores, root)
    r_values, r_scalar = read_finite_values(r, inverse.weights, root)
    s_values, s_scalar = read_finite_values(s, inverse.weights, root)
    # Line 12: an edge with itself, then pairs of different edges.
    t: FloatArray = np.einsum("ij,ijr,ijs->rs", inverse.marginals(), r_values, s_values, optimize=True)
    for j, pairs in pair_marginals(inverse):
        t += np.tensordot(np.tensordot(r_values[:, j].T, pairs, axes=1), s_values, axes=2)
    return drop_missing_axes(t, r_scalar, s_scalar)
