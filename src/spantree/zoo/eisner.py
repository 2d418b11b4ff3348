"""Eisner's algorithm: the best projective tree, by dynamic programming over half-constituents."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._graph import FloatArray, IntArray, NoTreeError, Root, check_root, clean_scores
from .reweighting import reweight


def eisner(scores: ArrayLike, root: Root = "single") -> IntArray:
    """Find a best projective tree in O(n^3).

    Eisner (1996); with ``root="single"`` it runs on scores reweighted as in Stanojevic and Cohen (2021), "A
    Root of a Problem", section 4, equation 6.

    A span from i to j is *complete* if all words between hang below its head, *incomplete* if moreover it
    ends with the edge between i and j; its head is i (to the right) or j (to the left)::

        incomplete: max over i <= k < j of  complete_right[i, k] + complete_left[k+1, j]  + w of the edge
        complete_right[i, j]: max over i < k <= j of  incomplete_right[i, k] + complete_right[k, j]
        complete_left[i, j]:  max over i <= k < j of  complete_left[i, k] + incomplete_left[k, j]

    Promise: a best tree among the projective ones (ROOT stands left of all words), O(n^3) time and O(n^2)
    space whatever the scores. Ties go to the leftmost split. With one root it has the weakness of
    `reweighting`: soft masks such as -1e30 make its constant swamp the root scores.

    Raises
    ------
    NoTreeError
        No projective tree with the wanted roots exists (although a non-projective one may).
    OverflowError
        The scores are too far apart for reweighting.

    Examples
    --------
    >>> scores = [[0, 2, 8, 2], [0, 0, 2, 8], [0, 4, 0, 4], [0, 2, 2, 0]]
    >>> eisner(scores), eisner(scores, root="multi")
    (array([-1,  2,  0,  2]), array([-1,  2,  0,  2]))
    """
    check_root(root)
    w = clean_scores(scores)
    heads = best_projective(reweight(w) if root == "single" else w)
    if root == "single" and len(w) > 1 and np.count_nonzero(heads == 0) != 1:
        raise NoTreeError("no projective tree with a single root exists")
    return heads


def best_projective(w: FloatArray) -> IntArray:
    """The best projective tree with any number of roots."""
    nodes = len(w)
    complete_right, complete_left = np.zeros((2, nodes, nodes))
    incomplete_right, incomplete_left = np.zeros((2, nodes, nodes))
    split_incomplete, split_right, split_left = np.zeros((3, nodes, nodes), dtype=np.int64)
    for length in range(1, nodes):
        for i in range(nodes - length):
            j = i + length
            joined = complete_right[i, i:j] + complete_left[i + 1 : j + 1, j]
            split_incomplete[i, j] = i + joined.argmax()
            incomplete_right[i, j] = joined.max() + w[i, j]
            incomplete_left[i, j] = joined.max() + w[j, i]
            rightward = incomplete_right[i, i + 1 : j + 1] + complete_right[i + 1 : j + 1, j]
            split_right[i, j] = i + 1 + rightward.argmax()
            complete_right[i, j] = rightward.max()
            leftward = complete_left[i, i:j] + incomplete_left[i:j, j]
            split_left[i, j] = i + leftward.argmax()
            complete_left[i, j] = leftward.max()
    if complete_right[0, nodes - 1] == -np.inf:
        raise NoTreeError("no projective tree exists")

    heads = np.full(nodes, -1, dtype=np.int64)
    complete_spans = [(0, nodes - 1, True)]
    while complete_spans:
        i, j, head_is_left = complete_spans.pop()
        if i == j:
            continue
        if head_is_left:
            k = split_right[i, j]
            heads[k] = i
            complete_spans.append((k, j, True))
            j = k
        else:
            k = split_left[i, j]
            heads[k] = j
            complete_spans.append((i, k, False))
            i = k
        # what remains of the span from i to j ends with an edge
        middle = split_incomplete[i, j]
        complete_spans += [(i, middle, True), (middle + 1, j, False)]
    return heads
