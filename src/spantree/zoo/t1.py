"""First-order expectations: algorithm T1 and its gradient.

Zmigrod, Vieira and Cotterell, "Efficient Computation of Expectations under Spanning Tree Distributions",
figure 2 and proposition 4. The paper returns totals; here they are divided by Z, which never has to be
formed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._edge_values import read_values
from ._graph import FloatArray, Root
from .laplacian import laplacian, laplacian_pullback
from .matrix_tree import Inverse, invert


def t1(scores: ArrayLike, r: ArrayLike, root: Root = "single") -> FloatArray:
    """Expectation of a function that is a sum over the edges of the tree.

    Parameters
    ----------
    scores : array_like, shape (n+1, n+1)
        Log-weights ``[head, dependent]``.
    r : array_like, shape (n+1, n+1) or (n+1, n+1, R)
        Values of the edges. May be infinite; where no tree passes it counts as 0 whatever it is.
    root : {"single", "multi"}, default "single"
        How many edges may leave ROOT.

    Returns
    -------
    FloatArray, shape () or (R,)
        ``E[sum of r over the edges of the tree]``.

    Notes
    -----
    O(n^3 + n^2 R). The accuracy is that of the marginals of `matrix_tree`: lost when scores are sharp.

    Examples
    --------
    Each of two words is attached to ROOT in 2 of 3 trees.

    >>> to_root = np.zeros((3, 3))
    >>> to_root[0] = 1
    >>> print(t1(np.zeros((3, 3)), to_root, root="multi").round(12))
    1.333333333333
    """
    inverse = invert(scores, root)
    values, scalar = read_values(r, inverse.weights, root)
    expected = first_order(inverse, values)
    return expected[0] if scalar else expected


def first_order(inverse: Inverse, values: FloatArray) -> FloatArray:
    """Line 4 of figure 2, normalised, for values already read: (n+1, n+1, R) -> (R,).

    An infinite value on an edge that some tree uses makes the expectation infinite (NaN if both signs occur),
    whatever rounding did to the marginal of that edge.
    """
    finite = np.isfinite(values)
    expected: FloatArray = np.einsum("ij,ijr->r", inverse.marginals(), np.where(finite, values, 0.0))
    with np.errstate(invalid="ignore"):
        infinite: FloatArray = np.where(finite, 0.0, values).sum(axis=(0, 1))
        return expected + infinite


def t1_gradient(inverse: Inverse, r: FloatArray) -> FloatArray:
    """Gradient of ``E[r]`` with respect to the log-weights, by reverse mode through T1.

    That is the covariance of ``r`` with the indicator of each edge (section 5.2: T2 with one-hot ``s``, at
    the price of one gradient).

    Parameters
    ----------
    inverse : Inverse
        Of the scores.
    r : FloatArray, shape (n+1, n+1)
        Values of the edges, finite, independent of the weights.

    Returns
    -------
    FloatArray, shape (n+1, n+1)
        ``d E[r] / d scores``; O(n^3).

    Notes
    -----
    Forward: ``L = laplacian(w)``, ``B = L^-T``, ``G = pullback(B)``, ``E[r] = sum of w G r``. Backward, with
    a bar for the derivative of ``E[r]``: ``G_bar = w r``, ``B_bar = laplacian(G_bar)``, ``L_bar = -B B_bar^T
    B``, ``w_bar = G r + pullback(L_bar)``, and ``scores_bar = w w_bar``.
    """
    B_bar = laplacian(inverse.weights * r, inverse.root)
    L_bar = -inverse.B @ B_bar.T @ inverse.B
    w_bar = inverse.gradient() * r + laplacian_pullback(L_bar, inverse.root)
    return inverse.weights * w_bar
