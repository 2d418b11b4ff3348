"""Shannon entropy in cubic time, by T1.

Zmigrod, Vieira and Cotterell, "Efficient Computation of Expectations under Spanning Tree Distributions",
section 6.2; the same algorithm as Martins et al. (2010).
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from ._features import read_features
from ._graph import FloatArray, Root
from .matrix_tree import Inverse, invert
from .t1 import first_order


def entropy(scores: ArrayLike, root: Root = "single") -> float:
    """Entropy of the distribution over trees, in nats: T1 with ``r[i, j] = log Z / n - log w[i, j]``.

    Notes
    -----
    O(n^3). A near-certain distribution has an entropy far below the terms that are added up, so its error is
    absolute (about 1e-15 times n times the spread of the scores), not relative; sharp scores break it with
    the marginals of `matrix_tree`. Accuracy on the graphs of `t1`: 2e-8.

    Examples
    --------
    Two words have two equally likely trees with one root.

    >>> import numpy as np
    >>> print(round(np.exp(entropy(np.zeros((3, 3)))), 12))
    2.0
    """
    inverse = invert(scores, root)
    r, _ = read_features(entropy_values(inverse), inverse.weights, root)
    return float(first_order(inverse, r)[0])


def entropy_values(inverse: Inverse) -> FloatArray:
    """``r`` of section 6.2, (n+1, n+1)."""
    return inverse.log_det / max(len(inverse.B), 1) - inverse.log_weights
