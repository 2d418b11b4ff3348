"""The generalized expectation criterion and its gradient in cubic time.

Zmigrod, Vieira and Cotterell, "Efficient Computation of Expectations under Spanning Tree Distributions",
section 6.4, equation (36) and footnote 23.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._edge_values import read_finite_values
from ._graph import FloatArray, Root
from .matrix_tree import Inverse, invert
from .t1 import first_order, t1_gradient


def generalized_expectation(
    scores: ArrayLike, f: ArrayLike, target: ArrayLike, root: Root = "single"
) -> tuple[float, FloatArray]:
    """``1/2 |E[f(d)] - target|^2`` and its gradient with respect to the scores.

    By the chain rule the gradient is a second-order expectation of the one function ``f . (E[f] - target)``
    with the one-hot indicators of the edges, that is one gradient of T1.

    Parameters
    ----------
    scores : array_like, shape (n+1, n+1)
        Log-weights ``[head, dependent]``.
    f : array_like, shape (n+1, n+1, F) or (n+1, n+1)
        Features of the edges, finite on edges that some tree uses.
    target : array_like, shape (F,) or ()
        Wanted expectations.
    root : {"single", "multi"}, default "single"
        How many edges may leave ROOT.

    Returns
    -------
    value : float
    gradient : FloatArray, shape (n+1, n+1)
        Zero where there is no edge.

    Notes
    -----
    O(n^3 + n^2 F). Accuracy as `t1`.

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
    return 0.5 * float(gap @ gap), t1_gradient(inverse, features @ gap)


def features_and_gap(inverse: Inverse, f: ArrayLike, target: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Features (n+1, n+1, F) as read, and ``E[f] - target`` (F,)."""
    features, scalar = read_finite_values(f, inverse.weights, inverse.root)
    wanted = np.asarray(target, dtype=np.float64)
    if wanted.shape != (() if scalar else features.shape[2:]):
        raise ValueError(f"target has shape {wanted.shape}, features have shape {np.shape(f)}")
    return features, first_order(inverse, features) - wanted
