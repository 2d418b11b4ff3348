"""The k best trees, with one root or several."""

from __future__ import annotations

from numpy.typing import ArrayLike

from ._graph import FloatArray, IntArray, Root, check_root
from .camerini_kbest import camerini_kbest
from .single_root_kbest import single_root_kbest


def kbest(scores: ArrayLike, k: int, root: Root = "single") -> tuple[IntArray, FloatArray]:
    """Find the `k` best trees: `single_root_kbest` or `camerini_kbest`, where promise and cost are stated.

    Parameters
    ----------
    scores : array_like, shape (n+1, n+1)
        Log-weights ``[head, dependent]``.
    k : int
        Number of trees.
    root : {"single", "multi"}
        Exactly one edge leaves ROOT, or any number.

    Returns
    -------
    heads : IntArray, shape (k, n+1)
        Distinct trees, best first; rows of -1 where there are no more.
    scores : FloatArray, shape (k,)
        Their scores, not increasing; ``-inf`` where there are no more trees.

    Raises
    ------
    NoTreeError
        There is no tree of the wanted kind at all.

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
