"""Reading the edge functions ``r`` and ``s`` of additively decomposable functions."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._graph import FloatArray, Root
from ._support import possible_edges


def read_values(values: ArrayLike, weights: FloatArray, root: Root) -> tuple[FloatArray, bool]:
    """One vector of values per edge, zero on edges that no tree uses, so that ``0 * inf`` is 0.

    Parameters
    ----------
    values : array_like, shape (n+1, n+1) or (n+1, n+1, R)
        Values of the edges; anything, NaN too, where no tree passes.
    weights : FloatArray, shape (n+1, n+1)
        Edge weights, zero where there is no edge.
    root : {"single", "multi"}
        How many edges leave ROOT.

    Returns
    -------
    values : FloatArray, shape (n+1, n+1, R)
        A copy.
    scalar : bool
        Whether the values came without the last axis.

    Raises
    ------
    ValueError
        Wrong shape, or NaN on an edge that some tree uses.
    """
    read = np.array(values, dtype=np.float64)
    scalar = read.ndim == 2
    if scalar:
        read = read[:, :, None]
    if read.ndim != 3 or read.shape[:2] != weights.shape:
        n1 = len(weights)
        raise ValueError(f"edge values must have shape ({n1}, {n1}) or ({n1}, {n1}, R), not {np.shape(values)}")
    read[weights == 0.0] = 0.0
    if not np.isfinite(read).all():
        read[~possible_edges(weights > 0.0, root)] = 0.0
        if np.isnan(read).any():
            head, dependent, _ = np.argwhere(np.isnan(read))[0]
            raise ValueError(f"the value of edge {head} -> {dependent} is NaN")
    return read, scalar


def read_finite_values(values: ArrayLike, weights: FloatArray, root: Root) -> tuple[FloatArray, bool]:
    """`read_values` for algorithms that multiply values with each other: infinite ones are refused.

    Raises
    ------
    ValueError
        As `read_values`, or an infinite value on an edge that some tree uses.
    """
    read, scalar = read_values(values, weights, root)
    if not np.isfinite(read).all():
        head, dependent, _ = np.argwhere(~np.isfinite(read))[0]
        raise ValueError(f"edge {head} -> {dependent} is in some tree and has an infinite value")
    return read, scalar


def drop_missing_axes(t: FloatArray, r_scalar: bool, s_scalar: bool) -> FloatArray:
    """From (R, S) to what the caller expects who gave ``r`` or ``s`` without its last axis."""
    return t[0 if r_scalar else slice(None), 0 if s_scalar else slice(None)]
