"""One root by reweighting: make root edges so dear that a second one never pays."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._graph import FloatArray, IntArray, clean_scores, require_tree
from .tarjan import tarjan


def reweight(w: FloatArray) -> FloatArray:
    """Subtract c = 1 + n (max w - min w) over allowed edges from all root edges (equations 5 and 6).

    Raises
    ------
    OverflowError
        The constant c is too large for a double.

    Examples
    --------
    >>> reweight(clean_scores([[0, 3, 4], [0, 0, 1], [0, 1, 0]]))
    array([[-inf,  -4.,  -3.],
           [-inf, -inf,   1.],
           [-inf,   1., -inf]])
    """
    finite = w[w > -np.inf]
    if finite.size == 0:
        return w
    n = len(w) - 1
    with np.errstate(over="ignore"):
        c = 1 + n * (finite.max() - finite.min())
    if not np.isfinite(c):
        raise OverflowError(f"scores from {finite.min()} to {finite.max()} are too far apart for reweighting")
    reweighted: FloatArray = w.copy()
    reweighted[0] -= c
    return reweighted


def reweighting(scores: ArrayLike) -> IntArray:
    """Find a best tree with one root in O(n^2), by one run of `tarjan` on reweighted scores.

    Stanojevic and Cohen (2021), "A Root of a Problem", section 4, equations 3 to 6, and Figure 8.

    Promise: in real arithmetic, a best tree among those with exactly one root. In floating point the root
    scores lose the digits that c pushes out: about log10(n (max w - min w)) decimal digits. Where the
    matrix holds soft masks such as -1e9 or -1e30, c swamps the root scores altogether: the tree is still
    valid, but its root is chosen blindly. Use ``-inf`` to forbid edges, or `gabow_tarjan`.

    Parameters
    ----------
    scores : array_like, shape (n+1, n+1)
        Log-weights ``[head, dependent]``.

    Returns
    -------
    IntArray, shape (n+1,)
        The heads, ``heads[0] = -1``, one of them 0.

    Raises
    ------
    NoTreeError
        No tree with a single root exists (although one with several roots may).
    OverflowError
        The constant c is too large for a double.

    Examples
    --------
    >>> reweighting([[0, 9, 9, 1], [0, 0, 1, 5], [0, 2, 0, 1], [0, 1, 1, 0]])
    array([-1,  2,  0,  1])
    """
    w = clean_scores(scores)
    require_tree(w, "single")
    return tarjan(reweight(w))
