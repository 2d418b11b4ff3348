"""Second-order expectations by gradient-vector products: algorithm T2v.

Zmigrod, Vieira and Cotterell, "Efficient Computation of Expectations under Spanning Tree Distributions",
figure 3 and equation (19).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._edge_values import drop_missing_axes, read_finite_values
from ._graph import FloatArray, Root
from .matrix_tree import invert
from .t1 import first_order, t1_gradient


def t2v(scores: ArrayLike, r: ArrayLike, s: ArrayLike, root: Root = "single") -> FloatArray:
    """``E[r(d) s(d)^T]`` for sums over edges ``r`` and ``s``, one gradient of ``E[r_n]`` for each ``n``.

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
    O(R (n^3 + n^2 S)) time, O(n^2 R + R S) memory: nothing is shared between the R gradients. Accuracy as
    `t1`.

    Examples
    --------
    The number of root edges of the three trees over two words is 1, 1 and 2.

    >>> to_root = np.zeros((3, 3))
    >>> to_root[0] = 1
    >>> print(t2v(np.zeros((3, 3)), to_root, to_root, root="multi").round(12))
    2.0
    """
    inverse = invert(scores, root)
    r_values, r_scalar = read_finite_values(r, inverse.weights, root)
    s_values, s_scalar = read_finite_values(s, inverse.weights, root)
    # Line 3: the gradient of the total r_bar is Z * (grad E[r] + E[r] grad log Z); times w_ij, over Z.
    gradients = [t1_gradient(inverse, r_values[:, :, n]) for n in range(r_values.shape[2])]
    jacobian = np.stack(gradients, axis=2) if gradients else np.zeros(r_values.shape)
    jacobian = jacobian + inverse.marginals()[:, :, None] * first_order(inverse, r_values)
    # Line 6.
    t: FloatArray = np.einsum("ijr,ijs->rs", jacobian, s_values)
    return drop_missing_axes(t, r_scalar, s_scalar)
