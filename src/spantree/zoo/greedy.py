"""ArcMax: the best head for every word, and the checks that tell whether that happens to be a tree.

Stanojevic and Cohen (2021), "A Root of a Problem", section 5 and Figures 9 and 10.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from ._graph import FloatArray, IntArray, NoTreeError, Root, check_root, clean_scores
from .eisner import eisner


def greedy(scores: ArrayLike) -> IntArray:
    """Give every word its best head, tree or not (``proposal`` in Figure 9).

    Promise: no tree scores higher; if the result is a tree, it is a best one. Ties go to the head of lowest
    index. It breaks by design, not numerically: the result may hold cycles, several roots or crossing
    edges, so ask `is_tree` or `is_projective_tree`. Cost: O(n^2).

    Raises
    ------
    NoTreeError
        A word has no head at all.

    Examples
    --------
    >>> heads = greedy([[0, 1, 1], [0, 0, 5], [0, 5, 0]])
    >>> heads, is_tree(heads)
    (array([-1,  2,  1]), False)
    """
    w = clean_scores(scores)
    heads: IntArray = w.argmax(axis=0)
    headless = np.flatnonzero(w.max(axis=0)[1:] == -np.inf) + 1
    if len(headless):
        raise NoTreeError(f"no tree exists: word {headless[0]} has no head")
    heads[0] = -1
    return heads


def is_tree(heads: ArrayLike, root: Root = "single") -> bool:
    """Whether `heads` is a tree rooted in node 0, by a depth-first search (``is_tree`` in Figure 9); O(n).

    ``heads[0]`` must be -1, the others any integers; with ``root="single"``, exactly one of them 0.

    Examples
    --------
    >>> is_tree([-1, 0, 0]), is_tree([-1, 0, 0], root="multi"), is_tree([-1, 2, 1], root="multi")
    (False, True, False)
    """
    proposal = np.asarray(heads)
    if not is_proposal(proposal, root):
        return False
    n = len(proposal)  # number of words + 1 for ROOT
    children: list[list[int]] = [[] for _ in range(n)]
    for i in range(1, n):
        children[proposal[i]].append(i)
    is_visited = np.zeros(n, dtype=np.bool_)
    stack = [0]
    while stack:
        i = stack.pop()
        is_visited[i] = True
        stack.extend(children[i])
    return bool(is_visited.all())


def is_proposal(proposal: IntArray, root: Root) -> bool:
    """Whether every word has a node as its head, and ROOT as many dependents as `root` allows; O(n)."""
    check_root(root)
    n = len(proposal)
    if proposal[0] != -1 or (proposal[1:] < 0).any() or (proposal >= n).any():
        return False
    return root == "multi" or n == 1 or np.count_nonzero(proposal == 0) == 1


def is_projective_tree(heads: ArrayLike, root: Root = "single") -> bool:
    """Whether `heads` is a tree without crossing edges, by a shift-reduce run (Figure 10); O(n).

    ``heads[0]`` must be -1, the others any integers; with ``root="single"``, exactly one of them 0.

    Examples
    --------
    >>> is_projective_tree([-1, 2, 0, 2]), is_projective_tree([-1, 3, 0, 2])
    (True, False)
    """
    proposal = np.asarray(heads)
    if not is_proposal(proposal, root):
        return False
    n = len(proposal)
    deps_count = np.bincount(proposal[1:], minlength=n)
    stack = [0]
    for i in range(1, n):
        stack.append(i)
        while len(stack) > 1:
            left, right = stack[-2:]
            if proposal[left] == right:
                del stack[-2]
                deps_count[right] -= 1
            elif proposal[right] == left and deps_count[right] == 0:
                del stack[-1]
                deps_count[left] -= 1
            else:  # neither is complete: shift the next word
                break
    return stack == [0]


def arcmax(
    scores: ArrayLike, one_root: bool, mst_func: Callable[[FloatArray], IntArray], projective: bool | None = None
) -> IntArray:
    """Try `greedy` first and run a true decoder only if that gives no tree (``arcmax`` in Figure 9).

    Promise: as good a tree as `mst_func` finds, in O(n^2) without running it when the scores are easy. With
    `reweighting`, ArcMax helps only outside it: after reweighting no root edge is the best one into a word that has
    another (section 5).

    Parameters
    ----------
    one_root : bool
        Whether the tree must have a single root.
    mst_func : callable
        A decoder of this zoo, with one root if `one_root`.
    projective : bool, optional
        Whether a tree with crossing edges will not do: then `is_projective_tree` takes the place of `is_tree` (Appendix
        B.2). By default, if `mst_func` is `eisner` or a ``functools.partial`` of it.

    Examples
    --------
    >>> from spantree.zoo import eisner, reweighting
    >>> arcmax([[0, 2, 1], [0, 0, 5], [0, 5, 0]], True, reweighting)
    array([-1,  0,  1])

    The best heads form a tree with crossing edges.

    >>> scores = np.zeros((5, 5))
    >>> scores[[0, 3, 1, 4], [3, 1, 4, 2]] = 1
    >>> is_projective_tree(arcmax(scores, True, eisner))
    True
    """
    if projective is None:
        projective = getattr(mst_func, "func", mst_func) is eisner
    proposal = greedy(scores)
    check = is_projective_tree if projective else is_tree
    if check(proposal, "single" if one_root else "multi"):
        return proposal
    return mst_func(clean_scores(scores))
