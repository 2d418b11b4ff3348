"""Helpers for heads vectors: is it a tree, and to and from 0/1 matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core
from ._batch import IntArray, _read_integers
from .distribution import _ROOTS, RootMode


def is_tree(heads: Any, root: RootMode = "single") -> Any:
    """Whether heads is a tree: every word reaches ROOT, and with ``root="single"`` exactly one word hangs on it.

    Parameters
    ----------
    heads : integers (..., n+1), or a list of such
        -1 at ROOT and in the padding. A row of -1 alone is no tree unless it has no room for words.

    Returns
    -------
    bool, boolean array (...), or a list of them

    Examples
    --------
    >>> import spantree
    >>> spantree.is_tree([-1, 2, 0])
    True
    >>> spantree.is_tree([-1, 2, 1])
    False
    >>> spantree.is_tree([[-1, 0, 0], [-1, 2, 0]], root="multi")
    array([ True,  True])
    """
    return _check_trees(heads, root, projective=False)


def is_projective(heads: Any) -> Any:
    """Whether heads is a tree, of any number of roots, whose arcs do not cross; ROOT stands left of the first word.

    Examples
    --------
    >>> import spantree
    >>> spantree.is_projective([-1, 2, 0, 2])
    True
    >>> spantree.is_projective([-1, 3, 0, 2])
    False
    """
    return _check_trees(heads, "multi", projective=True)


def _check_trees(heads: Any, root: RootMode, projective: bool) -> Any:
    if root not in _ROOTS:
        raise ValueError(f'root must be "single" or "multi", not {root!r}')
    array = _read_integers(heads, "heads")
    if array.shape[-1] == 0:
        raise ValueError("heads must have one entry per node, ROOT included")
    result = np.empty(array.size // array.shape[-1], np.bool_)
    rows = np.ascontiguousarray(array.reshape(-1, array.shape[-1]))
    _core.are_trees(rows, _ROOTS[root], projective, result)
    return bool(result[0]) if array.ndim == 1 else result.reshape(array.shape[:-1])


def heads_to_edges(heads: Any) -> IntArray:
    """0/1 adjacency matrices ``[..., head, dep]`` of heads ``(..., n+1)``: the form torch-struct and SynJax use.

    Examples
    --------
    >>> import spantree
    >>> spantree.heads_to_edges([-1, 2, 0])
    array([[0, 0, 1],
           [0, 0, 0],
           [0, 1, 0]])
    """
    array = _read_integers(heads, "heads")
    nodes = array.shape[-1]
    if array.size and (array.min() < -1 or array.max() >= nodes):
        raise ValueError(f"heads must lie between -1 and {nodes - 1}")
    edges: IntArray = (array[..., np.newaxis, :] == np.arange(nodes)[:, np.newaxis]).astype(np.int64)
    return edges


def edges_to_heads(matrix: npt.ArrayLike) -> IntArray:
    """Heads ``(..., n+1)`` of 0/1 adjacency matrices ``[..., head, dep]``; -1 for a node no edge enters.

    Examples
    --------
    >>> import spantree
    >>> spantree.edges_to_heads([[0, 0, 1], [0, 0, 0], [0, 1, 0]])
    array([-1,  2,  0])
    """
    array = np.asarray(matrix)
    if array.ndim < 2 or array.shape[-1] != array.shape[-2]:
        raise ValueError(f"an adjacency matrix must be square, not of shape {array.shape}")
    edges = array.astype(np.bool_)
    if not np.array_equal(edges, array):
        raise ValueError("an adjacency matrix holds only zeros and ones")
    several = np.argwhere(edges.sum(axis=-2) > 1)
    if len(several):
        raise ValueError(f"node {several[0][-1]} has more than one head")
    heads: IntArray = np.where(edges.any(axis=-2), edges.argmax(axis=-2), -1)
    return heads
