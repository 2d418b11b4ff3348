"""Second-order expectations by gradient-vector products: algorithm T2v.

Zmigrod, Vieira and Cotterell, "Efficient Computation of Expectations under Spanning Tree Distributions",
figure 3 and equation (19).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._features import EdgeFeatures, Values, dense_values
from ._graph import FloatArray, Root
from .matrix_tree import Inverse
from .t1 import expected_product, first_order, t1_gradient


def t2v(scores: ArrayLike, r: Values, s: Values, root: Root = "single", total: bool = False) -> FloatArray:
    """What `t2` computes, by one gradient of ``E[r_n]`` for each ``n``.

    Notes
    -----
    O(R (n^3 + n^2 S')) time: nothing is shared between the R gradients. They are used one at a time, so O(n^2 + R S)
    memory instead of the paper's O(n^2 R + R S).

    Accuracy on the graphs of `t1`: 6e-3, where `t2` has 2e-9. Reverse mode
    multiplies by the inverse twice before it subtracts.

    Examples
    --------
    >>> to_root = np.zeros((3, 3))
    >>> to_root[0] = 1
    >>> print(t2v(np.zeros((3, 3)), to_root, to_root, root="multi").round(12))
    2.0
    """
    return expected_product(second_order, scores, r, s, root, total)


def second_order(inverse: Inverse, r: EdgeFeatures, s: EdgeFeatures) -> FloatArray:
    """Lines 3 to 6 of figure 3, divided by Z: shape (R, S)."""
    marginals = inverse.marginals()
    r_bar = first_order(inverse, r)
    t = np.empty((r.size, s.size))
    for n in range(r.size):
        # Line 4: the gradient of the total r_bar is Z * (grad E[r] + E[r] grad log Z); times w_ij, over Z.
        gradient = t1_gradient(inverse, dense_values(r, n, len(marginals))) + r_bar[n] * marginals
        # Line 6.
        t[n] = np.bincount(s.feature, weights=gradient[s.head, s.dependent] * s.value, minlength=s.size)
    return t
