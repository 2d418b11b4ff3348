"""The gradient of the generalized expectation criterion by the covariance of features and edges.

Druck and Smith (2009), as described in Zmigrod, Vieira and Cotterell, "Efficient Computation of Expectations
under Spanning Tree Distributions", sections 1 and 6.4, where it is the slower side of the experiment.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._graph import FloatArray, Root
from ._hessian import pair_marginals
from .generalized_expectation import features_and_gap
from .matrix_tree import invert


def generalized_expectation_druck_smith(
    scores: ArrayLike, f: ArrayLike, target: ArrayLike, root: Root = "single"
) -> tuple[float, FloatArray]:
    """`generalized_expectation` the old way: materialise ``Cov(f, edge)`` for every feature and edge.

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

    Notes
    -----
    O(n^4 F) time, O(n^3 + n^2 F) memory, against O(n^3 + n^2 F) time for the same numbers. Accuracy as `t2h`.

    Examples
    --------
    >>> to_root = np.zeros((3, 3))
    >>> to_root[0] = 1
    >>> _, gradient = generalized_expectation_druck_smith(np.zeros((3, 3)), to_root, 1.0, root="multi")
    >>> gradient.round(3)
    array([[ 0.   ,  0.037,  0.037],
           [ 0.   ,  0.   , -0.037],
           [ 0.   , -0.037,  0.   ]])
    """
    inverse = invert(scores, root)
    features, gap = features_and_gap(inverse, f, target)
    marginals = inverse.marginals()
    covariance = marginals[:, :, None] * features
    for j, pairs in pair_marginals(inverse):
        independent = marginals[:, j, None, None] * marginals
        covariance += np.tensordot(pairs - independent, features[:, j], axes=((0,), (0,)))
    return 0.5 * float(gap @ gap), covariance @ gap
