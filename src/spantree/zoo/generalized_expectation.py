"""The generalized expectation criterion and its gradient: in cubic time by T2, and in quartic by the covariances.

Zmigrod, Vieira and Cotterell, "Efficient Computation of Expectations under Spanning Tree Distributions",
section 6.4, equation (36) and footnote 23.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._features import EdgeFeatures, Values, edge_indicators, read_finite_features
from ._graph import FloatArray, Root
from .gradients import expectation_gradient
from .matrix_tree import Inverse, invert
from .t1 import SecondOrder, first_order
from .t2 import second_order as by_t2
from .t2h import second_order as by_t2h


def generalized_expectation(
    scores: ArrayLike, f: Values, target: ArrayLike, root: Root = "single", second_order: SecondOrder = by_t2
) -> tuple[float, FloatArray]:
    """``1/2 |E[f(d)] - target|^2`` and its gradient (n+1, n+1) with respect to the scores.

    By the chain rule the gradient is that of ``E[f . gap]`` for the fixed vector ``gap = E[f] - target``: T2 with one
    function and the one-hot edges, footnote 23.

    Parameters
    ----------
    f : array_like, shape (n+1, n+1, F) or (n+1, n+1), or EdgeFeatures
        Features of the edges, finite on edges that some tree uses.
    target : array_like, shape (F,) or ()
        Wanted expectations.
    second_order : callable
        ``second_order`` of `t2`, `t2v` (then this is reverse mode, the paper's alternative) or `t2h`.

    Notes
    -----
    O(n^3 + n^2 F').

    Accuracy of the gradient, for a gap of size 1, on the graphs of `t1`: by T2 1e-9, by T2v 9e-3.

    Examples
    --------
    >>> to_root = np.zeros((3, 3))
    >>> to_root[0] = 1
    >>> value, gradient = generalized_expectation(np.zeros((3, 3)), to_root, 1.0, root="multi")
    >>> print(round(value, 6))
    0.055556
    >>> gradient.round(3)
    array([[ 0.   ,  0.037,  0.037],
           [ 0.   ,  0.   , -0.037],
           [ 0.   , -0.037,  0.   ]])
    """
    inverse = invert(scores, root)
    features, gap = features_and_gap(inverse, f, target)
    r = np.zeros_like(inverse.weights)
    np.add.at(r, (features.head, features.dependent), features.value * gap[features.feature])
    return 0.5 * float(gap @ gap), expectation_gradient(inverse, r, second_order)[1]


def generalized_expectation_druck_smith(
    scores: ArrayLike, f: Values, target: ArrayLike, root: Root = "single"
) -> tuple[float, FloatArray]:
    """`generalized_expectation` the old way: materialise ``Cov(f, edge)`` for every feature and edge.

    Druck and Smith (2009), in the paper's words "materializing the covariance matrix (i.e., T2h)": T2h with all
    features and the one-hot edges.

    Notes
    -----
    O(n^4 F') time, O(n^2 F) memory, against O(n^3 + n^2 F') time for the same numbers, with the same
    accuracy, 1e-9.

    Examples
    --------
    >>> scores, distance = np.arange(9.0).reshape(3, 3), np.abs(np.subtract.outer(range(3), range(3)))
    >>> old, new = (ge(scores, distance, 3.0) for ge in (generalized_expectation_druck_smith, generalized_expectation))
    >>> old[0] == new[0], bool(np.abs(old[1] - new[1]).max() < 1e-15)
    (True, True)
    """
    inverse = invert(scores, root)
    features, gap = features_and_gap(inverse, f, target)
    marginals = inverse.marginals()
    edges, _ = read_finite_features(edge_indicators(len(marginals) - 1), inverse.weights, root)
    independent = np.outer(first_order(inverse, features), marginals)
    covariance = by_t2h(inverse, features, edges) - independent
    return 0.5 * float(gap @ gap), (gap @ covariance).reshape(marginals.shape)


def features_and_gap(inverse: Inverse, f: Values, target: ArrayLike) -> tuple[EdgeFeatures, FloatArray]:
    """Features as read, and ``E[f] - target`` (F,)."""
    features, scalar = read_finite_features(f, inverse.weights, inverse.root)
    wanted = np.asarray(target, dtype=np.float64)
    if wanted.shape != (() if scalar else (features.size,)):
        raise ValueError(f"target has shape {wanted.shape}, there are {features.size} features")
    return features, first_order(inverse, features) - wanted
