"""Sentences of different sizes, given as a list, as one padded array, and how to find one's way back.

`array(numbers)`, `pad(array, widths, fill)` and `stack(arrays, axis)` are the front end's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .form import check_shape

AsArray = Callable[[Any], Any]
Pad = Callable[[Any, list[tuple[int, int]], float], Any]
Stack = Callable[[list[Any], int], Any]


def stack_list(
    matrices: Sequence[Any], lengths: Any, mask: Any, array: AsArray, pad: Pad, stack: Stack
) -> tuple[Any, Any, tuple[int, ...]]:
    """Scores and mask, if any, as padded batches, and the sizes of the matrices."""
    if lengths is not None:
        raise ValueError("matrices in a list have their own lengths; lengths are for a padded batch")
    if not matrices:
        raise ValueError("there are no sentences in the list")
    arrays = [array(matrix) for matrix in matrices]
    for one in arrays:
        check_shape(one.shape[:2], False)
    sizes = tuple(len(one) for one in arrays)
    allowed = None if mask is None else stack_edges([array(one) for one in mask], sizes, "mask", pad, stack, True)
    return stack_edges(arrays, sizes, "scores", pad, stack), allowed, sizes


def stack_edges(
    matrices: Sequence[Any], sizes: Sequence[int], name: str, pad: Pad, stack: Stack, fill: float = 0.0
) -> Any:
    """(B, n+1, n+1, ...) from matrices (n_i+1, n_i+1, ...), whose sizes n_i+1 must be these."""
    _check_count(matrices, sizes, name)
    for i, (matrix, size) in enumerate(zip(matrices, sizes, strict=True)):
        if tuple(matrix.shape[:2]) != (size, size):
            raise ValueError(f"{name}[{i}] has shape {tuple(matrix.shape)}; it must begin with {(size, size)}")
    nodes = max(sizes)
    wide = [pad(m, [(0, nodes - len(m))] * 2 + [(0, 0)] * (m.ndim - 2), fill) for m in matrices]
    return stack(wide, 0)


def stack_nodes(rows: Sequence[Any], sizes: Sequence[int], name: str, pad: Pad, stack: Stack) -> Any:
    """(..., B, n+1) from rows (..., n_i+1) of heads or labels, whose sizes n_i+1 must be these; -1 in the padding."""
    _check_count(rows, sizes, name)
    for i, (row, size) in enumerate(zip(rows, sizes, strict=True)):
        if tuple(row.shape[-1:]) != (size,):
            raise ValueError(f"{name}[{i}] has shape {tuple(row.shape)}; its last axis must be {size}")
    nodes = max(sizes)
    wide = [pad(row, [(0, 0)] * (row.ndim - 1) + [(0, nodes - row.shape[-1])], -1) for row in rows]
    return stack(wide, -2)


def _check_count(parts: Sequence[Any], sizes: Sequence[int], name: str) -> None:
    if len(parts) != len(sizes):
        raise ValueError(f"{name} must be a list with one entry for each of the {len(sizes)} sentences")
