"""Brute force: every dependency tree of n words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._graph import BoolArray, IntArray, Root, check_root


def enumerate_trees(n: int, root: Root = "single", projective: bool = False) -> IntArray:
    """List all trees over ROOT and `n` words, in lexicographic order of their heads.

    Words get their heads one after the other. A partial assignment is dropped as soon as it closes a cycle,
    crosses an edge (`projective`) or takes a second root (``root="single"``). What is left can always be
    completed, if need be by crossing edges, so without `projective` no list is longer than the last one.

    There are (n+1)^(n-1) trees with several roots and n^(n-1) with one (Cayley, 1889); projective ones are
    binom(3n, n) / (2n+1) with several roots and binom(3n-2, n-1) / n with one. For n = 0 the empty tree is
    the only one.

    Parameters
    ----------
    n : int
        Number of words.
    root : {"single", "multi"}
        Exactly one edge leaves ROOT, or at least one.
    projective : bool
        Keep only trees without crossing edges (ROOT stands left of all words).

    Returns
    -------
    IntArray, shape (T, n+1)
        One tree a row, ``heads[:, 0] = -1``.

    Notes
    -----
    Cost: O(T n^2) time and O(T n) space; n = 7 (262,144 trees with several roots) takes a fraction of a
    second, and each further word about n times as much.

    Examples
    --------
    >>> enumerate_trees(2, root="multi")
    array([[-1,  0,  0],
           [-1,  0,  1],
           [-1,  2,  0]])
    >>> [len(enumerate_trees(n)) for n in range(1, 6)]
    [1, 2, 9, 64, 625]
    """
    check_root(root)
    if n < 0:
        raise ValueError(f"the number of words must not be negative, not {n}")
    heads = np.full((1, n + 1), -1, dtype=np.int8)
    # top[t, v]: the end of the walk from v along the heads assigned so far
    top = np.arange(n + 1, dtype=np.int8)[None, :]
    for word in range(1, n + 1):
        # edge word <- head closes a cycle where the walk from head ends in word; that includes head == word
        allowed = top != word
        if root == "single":
            has_root = (heads == 0).any(axis=1)
            allowed[has_root, 0] = False
        if projective:
            allowed &= ~_crossing(heads, word)
        parents, chosen = np.nonzero(allowed)
        heads = heads[parents]
        heads[:, word] = chosen
        top = top[parents]
        top = np.where(top == word, top[np.arange(len(top)), chosen][:, None], top)
    return heads.astype(np.int64)


def _crossing(heads: NDArray[np.int8], word: int) -> BoolArray:
    """``[t, h]``: whether edge h -> word crosses an edge that `heads` gives a word before it."""
    candidates = np.arange(heads.shape[1])
    left, right = np.minimum(candidates, word), np.maximum(candidates, word)
    crossing = np.zeros(heads.shape, dtype=np.bool_)
    for earlier in range(1, word):
        l2 = np.minimum(heads[:, earlier], earlier)[:, None]
        r2 = np.maximum(heads[:, earlier], earlier)[:, None]
        crossing |= ((left < l2) & (l2 < right) & (right < r2)) | ((l2 < left) & (left < r2) & (r2 < right))
    return crossing
