"""Second-order expectations, unified: algorithm T2.

Zmigrod, Vieira and Cotterell, "Efficient Computation of Expectations under Spanning Tree Distributions",
figure 3, equation (32) and appendix B.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ._features import EdgeFeatures, Values, only
from ._graph import FloatArray, IntArray, Root
from .laplacian import column_derivatives
from .matrix_tree import Inverse
from .t1 import expected_product, first_order


def t2(scores: ArrayLike, r: Values, s: Values, root: Root = "single", total: bool = False) -> FloatArray:
    """``E[r(d) s(d)^T]`` for sums over edges ``r`` and ``s``: shape (R, S), without an axis that the values had not.

    Parameters
    ----------
    r, s : array_like, shapes (n+1, n+1, R) and (n+1, n+1, S), the last axis may be missing; or EdgeFeatures
        Values of the edges, finite on edges that some tree uses.
    total : bool, default False
        The paper's total, Z times as much.

    Notes
    -----
    For at most R' and S' nonzero values of an edge, and ``R_ = min(R, n R')``, ``S_ = min(S, n S')``: O(n^3 (R' + S') +
    R S + n^2 R_ S_) time and O(R S + n^2 (R_ + S_)) memory, for dense and for sparse features. With one function ``r``
    and the one-hot edges `edge_indicators` as ``s``, that is a gradient in O(n^3).

    Accuracy on the graphs of `t1`: 2e-9.

    Examples
    --------
    The number of root edges of the three trees over two words is 1, 1 and 2.

    >>> to_root = np.zeros((3, 3))
    >>> to_root[0] = 1
    >>> print(t2(np.zeros((3, 3)), to_root, to_root, root="multi").round(12))
    2.0
    """
    return expected_product(second_order, scores, r, s, root, total)


def second_order(inverse: Inverse, r: EdgeFeatures, s: EdgeFeatures) -> FloatArray:
    """Lines 15 to 28 of figure 3, divided by Z: shape (R, S)."""
    # Lines 19 to 21.
    r_bar = first_order(inverse, r)
    s_bar = first_order(inverse, s)
    t = np.outer(r_bar, s_bar)
    add_same_edge(t, inverse.marginals(), r, s)
    # Line 28. r_hat[a, b] holds what edges into b give, s_hat[a, b] what edges into a give; n features of s at a time,
    # so that no array outgrows the hats
    r_hat = stack(hat(inverse, r))
    for a, s_hat in enumerate(hat(inverse, s)):
        for some in (slice(start, start + len(inverse.B)) for start in range(0, len(s_hat.features), len(inverse.B))):
            products = r_hat.values[:, a, None] * s_hat.values[some, r_hat.dependent].T
            if products.size:
                by_feature = np.add.reduceat(products, r_hat.starts, axis=0)
                t[np.ix_(r_hat.features, s_hat.features[some])] -= by_feature
    return t


def add_same_edge(t: FloatArray, marginals: FloatArray, r: EdgeFeatures, s: EdgeFeatures) -> None:
    """Line 21, ``sum of marginal r s^T`` over the edges, added to `t`: O(n^2 R' S') time, O(n^2 S') memory.

    One nonzero value of ``r`` on each edge at a time, beside all values of ``s`` on that edge.
    """
    nodes = len(marginals)
    r_edge, s_edge = r.head * nodes + r.dependent, s.head * nodes + s.dependent
    order = np.argsort(r_edge, kind="stable")
    first_of_edge = np.searchsorted(r_edge[order], r_edge[order])
    place_on_edge = np.arange(len(order)) - first_of_edge
    # at place 0, 1, ... each edge occurs at most once
    by_place = np.argsort(place_on_edge, kind="stable")
    ends = np.cumsum(np.bincount(place_on_edge))
    for start, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True) if len(order) else ():
        entries = order[by_place[start:end]]
        feature, value = np.full(nodes**2, -1), np.zeros(nodes**2)
        feature[r_edge[entries]], value[r_edge[entries]] = r.feature[entries], r.value[entries]
        both = feature[s_edge] >= 0
        edge = s_edge[both]
        summands = marginals.ravel()[edge] * value[edge] * s.value[both]
        np.add.at(t, (feature[edge], s.feature[both]), summands)


class Hat(NamedTuple):
    """What the edges into one word add to ``r_hat``: a vector over the words for each feature that they have."""

    features: IntArray
    """Shape (R_j,), increasing; at most min(R, n R')."""
    values: FloatArray
    """Shape (R_j, n)."""


def hat(inverse: Inverse, features: EdgeFeatures) -> list[Hat]:
    """Lines 22 to 26 for each word ``j``: ``hat[k] = sum of B[i', k] L'[i'j, ij] w[i, j] r[i, j]``; O(n^3 R')."""
    ordered = only(features, np.lexsort((features.feature, features.dependent)))
    n = len(inverse.B)
    ends = np.searchsorted(ordered.dependent, np.arange(1, n + 2))
    hats = []
    for j in range(1, n + 1):
        column = only(ordered, np.arange(ends[j - 1], ends[j]))
        weighted = inverse.weights[column.head, j] * column.value
        summands = weighted[:, None] * column_derivatives(inverse.B, column.head, j, inverse.root)
        names, starts = np.unique(column.feature, return_index=True)
        values = np.add.reduceat(summands, starts, axis=0) if len(starts) else summands
        hats.append(Hat(names, values))
    return hats


class Stacked(NamedTuple):
    """The hats of all words under each other, those of a feature together."""

    values: FloatArray
    """Shape (P, n)."""
    dependent: IntArray
    """Shape (P,), the word minus 1 whose edges a row is of."""
    features: IntArray
    """The features that occur."""
    starts: IntArray
    """The first row of each of them."""


def stack(hats: list[Hat]) -> Stacked:
    """Sort the rows of all hats by their feature."""
    n = len(hats)
    feature = np.concatenate([one.features for one in hats] or [np.empty(0, dtype=np.int64)])
    dependent = np.repeat(np.arange(n), [len(one.features) for one in hats])
    order = np.argsort(feature, kind="stable")
    names, starts = np.unique(feature[order], return_index=True)
    values = np.concatenate([one.values for one in hats] or [np.empty((0, n))])
    return Stacked(values[order], dependent[order], names, starts)
