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
    allowed = None if mask is None else stack_edges([array(one) for one in mask], pad, stack, True)
    return stack_edges(arrays, pad, stack), allowed, tuple(len(one) for one in arrays)


def stack_edges(matrices: Sequence[Any], pad: Pad, stack: Stack, fill: float = 0.0) -> Any:
    """(B, n+1, n+1, ...) from matrices (n_i+1, n_i+1, ...)."""
    nodes = max(len(matrix) for matrix in matrices)
    wide = [pad(m, [(0, nodes - len(m))] * 2 + [(0, 0)] * (m.ndim - 2), fill) for m in matrices]
    return stack(wide, 0)


def stack_nodes(rows: Sequence[Any], nodes: int, pad: Pad, stack: Stack) -> Any:
    """(..., B, n+1) from rows (..., n_i+1) of heads or labels; -1 in the padding."""
    wide = [pad(row, [(0, 0)] * (row.ndim - 1) + [(0, nodes - row.shape[-1])], -1) for row in rows]
    return stack(wide, -2)
