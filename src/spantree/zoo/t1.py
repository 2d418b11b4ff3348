"""First-order expectations: algorithm T1 and its gradient by reverse mode.

Zmigrod, Vieira and Cotterell, "Efficient Computation of Expectations under Spanning Tree Distributions",
figure 2 and proposition 4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ._features import EdgeFeatures, Values, read_features, read_finite_features
from ._graph import FloatArray, Root
from .laplacian import laplacian, laplacian_pullback
from .matrix_tree import Inverse, invert

SecondOrder: TypeAlias = Callable[[Inverse, EdgeFeatures, EdgeFeatures], FloatArray]
"""`second_order` of the modules `t2`, `t2v` and `t2h`: ``E[r s^T]`` from what is already read."""


def t1(scores: ArrayLike, r: Values, root: Root = "single", total: bool = False) -> FloatArray:
    """Expectation of a function that is a sum over the edges of the tree: ``E[r(d)]``, shape () or (R,).

    Parameters
    ----------
    r : array_like, shape (n+1, n+1) or (n+1, n+1, R), or EdgeFeatures
        Values of the edges. May be infinite; where no tree passes it counts as 0 whatever it is.
    total : bool, default False
        The paper's total, ``Z E[r(d)]``, instead, which overflows from log Z = 709 on.

    Notes
    -----
    O(n^3 + n^2 R') for at most R' nonzero values of an edge. The accuracy is that of the marginals of
    `matrix_tree`: off by up to 4e-9 on twenty graphs of five words with several roots and root scores around -14 nats,
    on which the accuracies of the other animals are stated too.

    Examples
    --------
    Each of two words is attached to ROOT in 2 of 3 trees.

    >>> to_root = np.zeros((3, 3))
    >>> to_root[0] = 1
    >>> print(t1(np.zeros((3, 3)), to_root, root="multi").round(12))
    1.333333333333
    >>> print(t1(np.zeros((3, 3)), to_root, root="multi", total=True).round(12))
    4.0
    """
    inverse = invert(scores, root)
    features, scalar = read_features(r, inverse.weights, root)
    expected = times_z(first_order(inverse, features), inverse, total)
    return expected[0] if scalar else expected


def times_z(expected: FloatArray, inverse: Inverse, total: bool) -> FloatArray:
    """Expectations as they are, or as totals."""
    return expected * np.exp(inverse.log_z) if total else expected


def expected_product(
    second_order: SecondOrder, scores: ArrayLike, r: Values, s: Values, root: Root, total: bool
) -> FloatArray:
    """What `t2`, `t2v` and `t2h` share: values read, expectations as they are or as totals, missing axes dropped."""
    inverse = invert(scores, root)
    r_features, r_scalar = read_finite_features(r, inverse.weights, root)
    s_features, s_scalar = read_finite_features(s, inverse.weights, root)
    t = times_z(second_order(inverse, r_features, s_features), inverse, total)
    return t[0 if r_scalar else slice(None), 0 if s_scalar else slice(None)]


def first_order(inverse: Inverse, features: EdgeFeatures) -> FloatArray:
    """Line 4 of figure 2, normalised: shape (R,).

    An infinite value on an edge that some tree uses makes the expectation infinite (NaN if both signs occur),
    whatever rounding did to the marginal of that edge.
    """
    finite = np.isfinite(features.value)
    marginals = inverse.marginals()[features.head, features.dependent]
    summands = np.where(finite, marginals, 1.0) * features.value
    with np.errstate(invalid="ignore"):
        expected: FloatArray = np.bincount(features.feature, summands, features.size).astype(np.float64, copy=False)
    return expected


def t1_gradient(inverse: Inverse, r: FloatArray) -> FloatArray:
    """Gradient (n+1, n+1) of ``E[r]`` with respect to the log-weights, by reverse mode through T1; O(n^3).

    `r` (n+1, n+1) is finite and independent of the weights. Forward: ``L = laplacian(w)``, ``B = L^-T``, ``G =
    pullback(B)``, ``E[r] = sum of w G r``. Backward, with a bar for the derivative of ``E[r]``: ``G_bar = w r``,
    ``B_bar = laplacian(G_bar)``, ``L_bar = -B B_bar^T B``, ``w_bar = G r + pullback(L_bar)``, ``scores_bar = w w_bar``.
    """
    B_bar = laplacian(inverse.weights * r, inverse.root)
    L_bar = -inverse.B @ B_bar.T @ inverse.B
    w_bar = inverse.gradient() * r + laplacian_pullback(L_bar, inverse.root)
    return inverse.weights * w_bar
