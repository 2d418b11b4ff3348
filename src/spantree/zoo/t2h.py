"""Second-order expectations from the Hessian of Z: algorithm T2h.

Zmigrod, Vieira and Cotterell, "Efficient Computation of Expectations under Spanning Tree Distributions",
figure 3 and equation (20).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from ._features import EdgeFeatures, Values, only
from ._graph import FloatArray, Root
from .laplacian import column_derivatives, laplacian_pullback
from .matrix_tree import Inverse
from .t1 import expected_product
from .t2 import add_same_edge


def t2h(scores: ArrayLike, r: Values, s: Values, root: Root = "single", total: bool = False) -> FloatArray:
    """What `t2` computes, by going over all pairs of edges.

    Notes
    -----
    O(n^4 R' S') time and, beside the features themselves, O(n^2 + R S) memory: of the Hessian, the row of one edge at a
    time.

    Accuracy on the graphs of `t1`: 2e-9. A joint probability of two edges is a
    difference of products, so rare pairs have no correct digits even where the marginals of `matrix_tree` are fine.

    Examples
    --------
    >>> to_root = np.zeros((3, 3))
    >>> to_root[0] = 1
    >>> print(t2h(np.zeros((3, 3)), to_root, to_root, root="multi").round(12))
    2.0
    """
    return expected_product(second_order, scores, r, s, root, total)


def second_order(inverse: Inverse, r: EdgeFeatures, s: EdgeFeatures) -> FloatArray:
    """Line 12 of figure 3, divided by Z: an edge with itself, then pairs of different edges; shape (R, S)."""
    t = np.zeros((r.size, s.size))
    add_same_edge(t, inverse.marginals(), r, s)
    ordered = only(r, np.lexsort((r.head, r.dependent)))
    edge = ordered.dependent * len(inverse.weights) + ordered.head
    for i, j, pairs in pair_marginals(inverse):
        summands = pairs[s.head, s.dependent] * s.value
        start, end = np.searchsorted(edge, [j * len(inverse.weights) + i, j * len(inverse.weights) + i + 1])
        for feature, value in zip(ordered.feature[start:end], ordered.value[start:end], strict=True):
            np.add.at(t[feature], s.feature, value * summands)
    return t


def pair_marginals(inverse: Inverse) -> Iterator[tuple[int, int, FloatArray]]:
    """Probabilities that two different edges are both in the tree, for one edge ``i -> j`` at a time.

    Equations (17), (25) and (26), divided by Z.

    Yields
    ------
    i, j : int
        An edge.
    pairs : FloatArray, shape (n+1, n+1)
        ``pairs[k, l] = P(i -> j and k -> l)``, 0 for ``l = j``. O(n^2) time and memory for each edge.
    """
    w, B, G = inverse.weights, inverse.B, inverse.gradient()
    n = len(B)
    for j in range(1, n + 1):
        # by column l of the other edge: sum over k' of B[k', j] L'[k'l, kl], and sum over i' of B[i', l] L'[i'j, ij]
        other = laplacian_pullback(np.repeat(B[:, j - 1 : j], n, axis=1), inverse.root)
        heads = np.flatnonzero(w[:, j])
        for i, own in zip(heads.tolist(), column_derivatives(B, heads, j, inverse.root), strict=True):
            yield i, j, w[i, j] * w * (G[i, j] * G - np.concatenate([[0.0], own]) * other)
