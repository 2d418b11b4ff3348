"""Edges that must, or must not, be in the tree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ._batch import Batch
from ._read import FloatArray

Edge = Sequence[int]


def condition(batch: Batch, include: Iterable[Any], exclude: Iterable[Any]) -> Batch:
    """The batch with every other edge into an included edge's word, and every excluded edge, at -inf."""
    included = _edges_by_sentence(batch, include, "include")
    excluded = _edges_by_sentence(batch, exclude, "exclude")

    def change(i: int, matrix: FloatArray) -> None:
        for edge in included[i]:
            dep = edge[1]
            kept = matrix[edge].copy()
            matrix[:, dep] = -np.inf
            matrix[edge] = kept
        for edge in excluded[i]:
            matrix[edge] = -np.inf

    return batch.with_matrices_changed(change)


def _edges_by_sentence(batch: Batch, edges: Iterable[Any], name: str) -> list[list[tuple[int, ...]]]:
    """Edges for each sentence: those given hold for all of them, or there is one list of edges per sentence."""
    try:
        given = list(edges)
    except TypeError:
        raise TypeError(f"{name} must be edges (head, dep), not {edges!r}") from None
    if given and all(isinstance(part, (int, np.integer)) for part in given):
        given = [tuple(given)]  # one edge alone
    per_sentence = bool(given) and all(_is_list_of_edges(item) for item in given)
    if not per_sentence:
        shared = [tuple(edge) if isinstance(edge, (list, tuple, np.ndarray)) else (edge,) for edge in given]
        return [[_check_edge(batch, i, edge, name) for edge in shared] for i in range(len(batch))]
    if len(given) != len(batch):
        raise ValueError(f"{name} has lists of edges for {len(given)} sentences; the batch has {len(batch)}")
    return [[_check_edge(batch, i, tuple(edge), name) for edge in item] for i, item in enumerate(given)]


def _is_list_of_edges(item: Any) -> bool:
    return isinstance(item, (list, tuple, np.ndarray)) and all(np.ndim(edge) == 1 for edge in item)


def _check_edge(batch: Batch, i: int, edge: tuple[Any, ...], name: str) -> tuple[int, ...]:
    sizes = (2, 3) if batch.labelled else (2,)
    if len(edge) not in sizes or not all(isinstance(part, (int, np.integer)) for part in edge):
        wanted = "(head, dep) or (head, dep, label)" if batch.labelled else "(head, dep)"
        raise ValueError(f"{name}: an edge is a pair of integers {wanted}, not {edge!r}")
    head, dep, *label = (int(part) for part in edge)
    words = int(batch.lengths[i])
    if not (0 <= head <= words and 1 <= dep <= words and head != dep):
        raise ValueError(f"{name}: {batch.name(i)} has {words} words and no edge {head} -> {dep}")
    if label and not 0 <= label[0] < batch.arrays[i].shape[-1]:
        raise ValueError(f"{name}: {batch.name(i)} has {batch.arrays[i].shape[-1]} labels and no label {label[0]}")
    return (head, dep, *label)
