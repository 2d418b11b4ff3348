"""The door every animal of the zoo goes through: scores in, a clean float64 matrix out.

Conventions: ``scores[h, d]`` is the log-weight of the edge head ``h`` -> dependent ``d``, shape ``(n+1,
n+1)``, node 0 is ROOT. Column 0 and the diagonal are ignored whatever they hold, ``-inf`` forbids an edge.
A tree is its heads: an int64 array ``(n+1,)`` with ``heads[0] = -1``. With ``root="single"`` exactly one
edge leaves ROOT. The sentence without words (``n = 0``) has one tree, the empty one, whatever ``root``
says.
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


def clean_scores(scores: ArrayLike) -> FloatArray:
    """Read one sentence's scores into a fresh float64 matrix with only the true edges in it.

    Parameters
    ----------
    scores : array_like, shape (n+1, n+1)
        Log-weights ``[head, dependent]``; column 0 and the diagonal may hold anything.

    Returns
    -------
    FloatArray, shape (n+1, n+1)
        A copy with column 0 and the diagonal set to ``-inf``.

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
        raise ValueError(
            f"the score of edge {head} -> {dependent} is {w[head, dependent]}; "
            "scores must be finite, or -inf to forbid the edge"
        )
    return w


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


def reachable(edges: BoolArray, start: int) -> BoolArray:
    """Which nodes a walk along ``edges[from, to]`` starting at `start` can visit; O(n^2).

    Examples
    --------
    >>> reachable(np.array([[False, True, False], [False] * 3, [True, False, False]]), 0)
    array([ True,  True, False])
    """
    seen = np.zeros(len(edges), dtype=np.bool_)
    seen[start] = True
    frontier = [start]
    while frontier:
        new = edges[frontier.pop()] & ~seen
        seen |= new
        frontier.extend(np.flatnonzero(new).tolist())
    return seen


def require_tree(w: FloatArray, root: Root) -> None:
    """Raise `NoTreeError`, naming a word that cannot be attached, unless `w` has a tree; O(n^2).

    Several roots: every word must be reachable from ROOT. One root: moreover, some word must reach all
    words along edges between words (then so does the word through which ROOT reaches it). If there is such
    a word, the last search of a sweep over unvisited words starts at one.
    """
    edges = w > -np.inf
    from_root = reachable(edges, 0)
    if not from_root.all():
        raise NoTreeError(f"no tree exists: word {np.argmin(from_root)} cannot be reached from ROOT")
    if root == "multi" or len(w) == 1:
        return
    between_words = edges.copy()
    between_words[0] = False
    visited = np.zeros(len(w), dtype=np.bool_)
    visited[0] = True
    candidate = 0
    while not visited.all():
        candidate = int(np.argmin(visited))
        visited |= reachable(between_words, candidate)
    from_candidate = reachable(between_words, candidate)
    from_candidate[0] = True
    if not from_candidate.all():
        raise NoTreeError(
            "no tree with a single root exists: "
            f"no word leads to both word {candidate} and word {np.argmin(from_candidate)}"
        )
