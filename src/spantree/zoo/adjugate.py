"""Z and its gradient by the adjugate of the Laplacian, which exists where the inverse does not.

Zmigrod, Vieira and Cotterell, "Efficient Computation of Expectations under Spanning Tree Distributions", footnote 16;
Stewart (1998), "On the adjugate matrix".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._graph import FloatArray, Root, check_root, clean_scores
from .laplacian import laplacian, laplacian_pullback


def adjugate_gradient(scores: ArrayLike, root: Root = "single") -> tuple[float, FloatArray]:
    """Z, and its gradient with respect to the *weights*: the pullback of ``adj(L)^T``.

    ``dZ/dw[i, j]`` is the weight of all trees with the edge ``i -> j``, were that edge's own weight 1, also for edges
    that are forbidden. So on a graph without any tree, where Z is 0 and the Laplacian singular, it tells which edges
    are missing.

    Returns
    -------
    z : float
        0 if there is no tree.
    gradient : FloatArray, shape (n+1, n+1)
        Zero in column 0 and on the diagonal.

    Raises
    ------
    ValueError
        As the contract says, but never for want of a tree.

    Notes
    -----
    O(n^3). From the singular values ``L = U S V^T``: ``adj(L) = det(U) det(V) V adj(S) U^T``, where ``adj(S)`` holds
    the products of all singular values but one. Weights are not scaled, so they must not overflow.

    Accurate to some 1e-16 times the product of the n - 1 largest singular values: marginals ``w dZ/dw / Z`` have as
    many digits as those of the inverse (1e-9 and 4e-9 on the graphs of `t1`). What the
    adjugate gains is the singular case alone.

    Examples
    --------
    Word 2 has no head. Edges from ROOT or from word 1 would each complete one tree.

    >>> no = -np.inf
    >>> z, gradient = adjugate_gradient([[no, 0, no], [no, no, no], [no, no, no]], root="multi")
    >>> z, gradient.round(12)
    (0.0, array([[0., 0., 1.],
           [0., 0., 1.],
           [0., 0., 0.]]))
    """
    check_root(root)
    weights = np.exp(clean_scores(scores))
    n = len(weights) - 1
    U, singular, V_transposed = np.linalg.svd(laplacian(weights, root))
    sign = float(np.linalg.det(U) * np.linalg.det(V_transposed))
    all_but_one = np.array([np.prod(np.delete(singular, i)) for i in range(n)])
    adjugate = sign * (V_transposed.T * all_but_one) @ U.T
    return sign * float(np.prod(singular)), laplacian_pullback(adjugate.T, root)
