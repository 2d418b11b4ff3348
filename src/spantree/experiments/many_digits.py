"""log Z and marginals in many-digit arithmetic: the reference of `numerics`."""

from __future__ import annotations

import math

import numpy as np

from spantree._options import RootMode

from ._extras import need
from ._types import FloatArray


def many_digit_reference(scores: FloatArray, root: RootMode) -> tuple[float, FloatArray]:
    """The matrix-tree theorem with so many digits that its cancellation does not matter.

    Parameters
    ----------
    scores : FloatArray, shape (n+1, n+1)
        Log-weights ``[head, dependent]``, finite.
    root : {"single", "multi"}
        How many edges may leave ROOT.

    Returns
    -------
    log_z : float
    marginals : FloatArray, shape (n+1, n+1)

    Notes
    -----
    Minors of the Laplacian are sums of weights of forests of at most n edges, so no two numbers that meet differ by
    more than n times the spread of the scores: carrying that many digits, and 30 more, is enough. O(n^3) operations.

    Examples
    --------
    >>> log_z, marginals = many_digit_reference(np.zeros((3, 3)), "multi")
    >>> print(round(np.exp(log_z), 12), marginals[0].round(3))
    3.0 [0.    0.667 0.667]
    """
    mp = need("mpmath").mp
    nodes = range(len(scores))
    words = nodes[1:]
    edges = [(head, dependent) for head in nodes for dependent in words if head != dependent]
    spread = np.ptp([scores[edge] for edge in edges])
    with mp.workdps(30 + math.ceil(len(words) * spread / math.log(10))):
        w = {edge: mp.exp(mp.mpf(float(scores[edge]))) for edge in edges}
        laplacian = mp.matrix(len(words))
        for head, dependent in edges:
            if head > 0:
                laplacian[head - 1, dependent - 1] -= w[head, dependent]
            if head > 0 or root == "multi":
                laplacian[dependent - 1, dependent - 1] += w[head, dependent]
        if root == "single":  # Koo et al. (2007): the root edges in place of the first row
            for dependent in words:
                laplacian[0, dependent - 1] = w[0, dependent]
        inverse = laplacian**-1
        marginals = np.zeros(scores.shape)
        for head, dependent in edges:
            # d log Z / d w, through the entries of the Laplacian that w is part of
            derivative = mp.mpf(0)
            if root == "single" and head == 0:
                derivative = inverse[dependent - 1, 0]
            else:
                if root == "multi" or dependent > 1:
                    derivative += inverse[dependent - 1, dependent - 1]
                if head > 0 and (root == "multi" or head > 1):
                    derivative -= inverse[dependent - 1, head - 1]
            marginals[head, dependent] = float(w[head, dependent] * derivative)
        return float(mp.log(mp.det(laplacian))), marginals
