"""Functions of edges, r and s of additively decomposable functions: dense arrays, or the list of what is not 0.

The bounds of T1 and T2 count the *nonzero* values of an edge (R' of R in the paper), so the algorithms work on the
list.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ._graph import FloatArray, IntArray, Root
from ._support import possible_edges


class EdgeFeatures(NamedTuple):
    """A function of edges with `size` values, as the list of its nonzero values.

    Examples
    --------
    The edge 0 -> 1 counts once for feature 2 of three; all other edges have none.

    >>> EdgeFeatures(np.array([0]), np.array([1]), np.array([2]), np.array([1.0]), 3).value
    array([1.])
    """

    head: IntArray
    """Shape (K,)."""
    dependent: IntArray
    """Shape (K,)."""
    feature: IntArray
    """Shape (K,), which of the values; no two entries agree in head, dependent and feature."""
    value: FloatArray
    """Shape (K,)."""
    size: int
    """R, the number of values."""


Values: TypeAlias = "ArrayLike | EdgeFeatures"
"""Values of the edges: (n+1, n+1), (n+1, n+1, R), or a list."""


def edge_indicators(n: int) -> EdgeFeatures:
    """The one-hot representation of the edges over `n` words: feature ``i (n+1) + j`` is the edge ``i -> j``.

    (n+1)^2 features, one nonzero value for each edge; column 0 and the diagonal have none.

    Examples
    --------
    >>> edge_indicators(2).feature
    array([1, 2, 5, 7])
    """
    head, dependent = np.divmod(np.arange((n + 1) ** 2), n + 1)
    edges = (dependent > 0) & (head != dependent)
    ones = np.ones(np.count_nonzero(edges))
    return EdgeFeatures(head[edges], dependent[edges], np.flatnonzero(edges), ones, (n + 1) ** 2)


def read_features(values: Values, weights: FloatArray, root: Root) -> tuple[EdgeFeatures, bool]:
    """The list of nonzero values on edges that some tree uses, and whether they came without a last axis.

    What stands on other edges counts as 0, even NaN, so that ``0 * inf`` is 0. `weights` is zero where there is no
    edge.

    Raises
    ------
    ValueError
        Wrong shape, or NaN on an edge that some tree uses.
    """
    if isinstance(values, EdgeFeatures):
        scalar = False
        listed = values
    else:
        dense = np.asarray(values, dtype=np.float64)
        scalar = dense.ndim == 2
        dense = dense[:, :, None] if scalar else dense
        if dense.ndim != 3 or dense.shape[:2] != weights.shape:
            n1 = len(weights)
            raise ValueError(f"edge values must have shape ({n1}, {n1}) or ({n1}, {n1}, R), not {np.shape(values)}")
        head, dependent, feature = np.nonzero(dense)
        listed = EdgeFeatures(head, dependent, feature, dense[head, dependent, feature], dense.shape[2])
    read = only(listed, weights[listed.head, listed.dependent] > 0.0)
    if not np.isfinite(read.value).all():
        read = only(read, possible_edges(weights > 0.0, root)[read.head, read.dependent])
        wrong = np.flatnonzero(np.isnan(read.value))
        if len(wrong):
            raise ValueError(f"the value of edge {read.head[wrong[0]]} -> {read.dependent[wrong[0]]} is NaN")
    return read, scalar


def read_finite_features(values: Values, weights: FloatArray, root: Root) -> tuple[EdgeFeatures, bool]:
    """`read_features` for algorithms that multiply values with each other: infinite ones are refused.

    Raises
    ------
    ValueError
        As `read_features`, or an infinite value on an edge that some tree uses.
    """
    read, scalar = read_features(values, weights, root)
    wrong = np.flatnonzero(~np.isfinite(read.value))
    if len(wrong):
        head, dependent = read.head[wrong[0]], read.dependent[wrong[0]]
        raise ValueError(f"edge {head} -> {dependent} is in some tree and has an infinite value")
    return read, scalar


def only(features: EdgeFeatures, chosen: np.ndarray) -> EdgeFeatures:
    """The entries that `chosen`, a mask or indices, picks."""
    return EdgeFeatures(
        features.head[chosen],
        features.dependent[chosen],
        features.feature[chosen],
        features.value[chosen],
        features.size,
    )


def dense_values(features: EdgeFeatures, feature: int, nodes: int) -> FloatArray:
    """The values (n+1, n+1) of one feature."""
    of_feature = only(features, features.feature == feature)
    values = np.zeros((nodes, nodes))
    values[of_feature.head, of_feature.dependent] = of_feature.value
    return values
