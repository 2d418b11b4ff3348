"""Second-order expectations, unified: algorithm T2.

Zmigrod, Vieira and Cotterell, "Efficient Computation of Expectations under Spanning Tree Distributions",
figure 3, equation (32) and appendix B.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._edge_values import drop_missing_axes, read_finite_values
from ._graph import FloatArray, Root
from .laplacian import laplacian
from .matrix_tree import invert
from .t1 import first_order


def t2(scores: ArrayLike, r: ArrayLike, s: ArrayLike, root: Root = "single") -> FloatArray:
    """``E[r(d) s(d)^T]`` for sums over edges ``r`` and ``s``.

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
    O(n^3 (R + S) + n^2 R S) time and O(n^2 (R + S) + R S) memory for dense ``r`` and ``s``. The last term is
    a difference of numbers of the size of ``E[r] E[s]``: a covariance much smaller than that is lost.

    Lines 23 to 26 of the figure add ``B[i', k] L'[i'j, ij] w[i, j] r[i, j]`` over the edges. Since the
    Laplacian is linear in the weights, the sum over ``i`` is the Laplacian of the weights ``w r``, and the
    whole is a product of ``L^-1`` with it.

    Examples
    --------
    The number of root edges of the three trees over two words is 1, 1 and 2.

    >>> to_root = np.zeros((3, 3))
    >>> to_root[0] = 1
    >>> print(t2(np.zeros((3, 3)), to_root, to_root, root="multi").round(12))
    2.0
    """
    inverse = invert(scores, root)
    w, B = inverse.weights, inverse.B
    r_values, r_scalar = read_finite_values(r, w, root)
    s_values, s_scalar = read_finite_values(s, w, root)
    # Lines 19 to 21.
    r_bar = first_order(inverse, r_values)
    s_bar = first_order(inverse, s_values)
    f_bar: FloatArray = np.einsum("ij,ijr,ijs->rs", inverse.marginals(), r_values, s_values, optimize=True)
    # Lines 22 to 26.
    r_hat = np.tensordot(B.T, laplacian(w[:, :, None] * r_values, root), axes=1)
    s_hat = np.tensordot(B.T, laplacian(w[:, :, None] * s_values, root), axes=1).swapaxes(0, 1)
    # Line 28.
    t = f_bar + np.outer(r_bar, s_bar) - np.tensordot(r_hat, s_hat, axes=((0, 1), (0, 1)))
    return drop_missing_axes(t, r_scalar, s_scalar)
