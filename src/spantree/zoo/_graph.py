"""The door every animal of the zoo goes through: scores in, a clean float64 matrix of a graph that has a tree out.

The conventions are those of the contract in `spantree.zoo`. Everything here costs O(n^2), on every graph: a search
reads the row of a node once, and searches that follow each other share what they have seen.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
Root: TypeAlias = Literal["single", "multi"]


class NoTreeError(ValueError):
    """No tree of the requested kind has a finite score."""


def read_scores(scores: ArrayLike, root: Root) -> FloatArray:
    """`clean_scores` of a graph that has a tree of the kind `root`, or the error of the contract; O(n^2)."""
    check_root(root)
    w = clean_scores(scores)
    require_tree(w, root)
    return w


def clean_scores(scores: ArrayLike) -> FloatArray:
    """A fresh float64 matrix with only the true edges in it: column 0 and the diagonal are ``-inf``.

    Raises
    ------
    ValueError
        The matrix is not square, or a true edge scores NaN or ``+inf``; the message names the edge.

    Examples
    --------
    >>> clean_scores([[9, 1], [9, 9]])
    array([[-inf,   1.],
           [-inf, -inf]])
    """
    w = np.array(scores, dtype=np.float64)
    if w.ndim != 2 or w.shape[0] != w.shape[1] or w.shape[0] == 0:
        raise ValueError(f"scores must be one square matrix of shape (n+1, n+1), not {w.shape}")
    w[:, 0] = -np.inf
    np.fill_diagonal(w, -np.inf)
    wrong = np.argwhere(~(w < np.inf))
    if len(wrong):
        head, dependent = wrong[0]
        refuse_score(int(head), int(dependent), float(w[head, dependent]))
    return w


def refuse_score(head: int, dependent: int, score: float) -> None:
    """The error for NaN and ``+inf``."""
    raise ValueError(
        f"the score of edge {head} -> {dependent} is {score}; scores must be finite, or -inf to forbid the edge"
    )


def tree_score(w: FloatArray, heads: IntArray) -> float:
    """The sum of the scores of a tree's edges.

    Examples
    --------
    >>> tree_score(clean_scores([[0, 1, 2], [0, 0, 4], [0, 8, 0]]), np.array([-1, 0, 1]))
    5.0
    """
    return float(w[heads[1:], np.arange(1, len(heads))].sum())


def check_root(root: str) -> None:
    """Raise ``ValueError`` unless `root` is ``"single"`` or ``"multi"``."""
    if root not in ("single", "multi"):
        raise ValueError(f'root must be "single" or "multi", not {root!r}')


def reachable(edges: BoolArray, start: int, seen: BoolArray | None = None) -> BoolArray:
    """Which nodes a walk along ``edges[from, to]`` from `start` can visit, without entering those `seen` before.

    All nodes of one distance at a time, so few steps on a dense graph; O(n) for each node found.

    Examples
    --------
    >>> reachable(np.array([[False, True, False], [False] * 3, [True, False, False]]), 0)
    array([ True,  True, False])
    """
    seen = np.zeros(len(edges), dtype=np.bool_) if seen is None else seen.copy()
    seen[start] = True
    nearest = np.array([start])
    while len(nearest):
        new = edges[nearest].any(axis=0) & ~seen
        seen |= new
        nearest = np.flatnonzero(new)
    return seen


def leading_word(edges: BoolArray) -> tuple[int, BoolArray]:
    """A word that reaches all words along edges between words, if there is one, and what it reaches; O(n^2).

    Search from words not seen yet until all are. The start of the last search is the word: no search before it came
    to it, so no word seen before leads to it, and of a word that leads to all words its search sees all that is left.

    Examples
    --------
    >>> chain = np.eye(4, k=-1, dtype=bool)
    >>> leading_word(chain)
    (3, array([False,  True,  True,  True]))
    """
    between_words = edges.copy()
    between_words[0] = False
    between_words[:, 0] = False
    seen = np.zeros(len(edges), dtype=np.bool_)
    seen[0] = True
    last = 0
    while not seen.all():
        last = int(np.argmin(seen))
        seen = reachable(between_words, last, seen)
    return last, reachable(between_words, last)


def require_tree(w: FloatArray, root: Root) -> None:
    """Raise `NoTreeError`, naming a word that cannot be attached, unless `w` has a tree; O(n^2).

    Several roots: every word must be reachable from ROOT. One root: moreover, some word must reach all words along
    edges between words (then so does the word through which ROOT reaches it).
    """
    edges = w > -np.inf
    from_root = reachable(edges, 0)
    if not from_root.all():
        raise NoTreeError(f"no tree exists: word {np.argmin(from_root)} cannot be reached from ROOT")
    if root == "multi" or len(w) == 1:
        return
    candidate, from_candidate = leading_word(edges)
    if not from_candidate[1:].all():
        raise NoTreeError(
            "no tree with a single root exists: "
            f"no word leads to both word {candidate} and word {np.argmin(from_candidate[1:]) + 1}"
        )
