"""The k best trees, with one root or several."""

from __future__ import annotations

from numpy.typing import ArrayLike

from ._graph import FloatArray, IntArray, Root, check_root
from .camerini_kbest import camerini_kbest
from .single_root_kbest import single_root_kbest


def kbest(scores: ArrayLike, k: int, root: Root = "single") -> tuple[IntArray, FloatArray]:
    """Find the `k` best trees: `single_root_kbest` or `camerini_kbest`, where promise, result and cost are stated.

    Examples
    --------
    >>> kbest([[0, 1, 2], [0, 0, 4], [0, 8, 0]], 2, root="multi")
    (array([[-1,  2,  0],
           [-1,  0,  1]]), array([10.,  5.]))
    """
    check_root(root)
    if root == "single":
        return single_root_kbest(scores, k)
    return camerini_kbest(scores, k)
