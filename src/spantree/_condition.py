"""Edges that must, or must not, be in the tree."""

from __future__ import annotations

import operator
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
    given = listed_edges(edges, name)
    per_sentence = bool(given) and all(_is_list_of_edges(item) for item in given)
    if not per_sentence:
        shared = [tuple(edge) if isinstance(edge, (list, tuple)) else (edge,) for edge in given]
        return [[_check_edge(batch, i, edge, name) for edge in shared] for i in range(len(batch))]
    if len(given) != len(batch):
        raise ValueError(f"{name} has lists of edges for {len(given)} sentences; the batch has {len(batch)}")
    return [[_check_edge(batch, i, tuple(edge), name) for edge in item] for i, item in enumerate(given)]


def listed_edges(edges: Iterable[Any], name: str) -> list[Any]:
    """Edges that may have come as an array of any library, or as one alone."""
    try:
        given = [_as_list(edge) for edge in _as_list(edges)]
    except TypeError:
        raise TypeError(f"{name} must be edges (head, dep), not {edges!r}") from None
    return [tuple(given)] if given and all(_integer(part) is not None for part in given) else given


def _as_list(item: Any) -> Any:
    return item.tolist() if hasattr(item, "tolist") else item


def _is_list_of_edges(item: Any) -> bool:
    return isinstance(item, (list, tuple)) and all(np.ndim(_as_list(edge)) == 1 for edge in item)


def _check_edge(batch: Batch, i: int, edge: tuple[Any, ...], name: str) -> tuple[int, ...]:
    labels = batch.arrays[i].shape[-1] if batch.labelled else None
    return read_edge(edge, int(batch.lengths[i]), labels, name, batch.name(i))


def read_edge(edge: Any, words: int, labels: int | None, name: str, whose: str) -> tuple[int, ...]:
    """Head, dependent and, if there are labels and one is said, label of an edge between nodes of a sentence."""
    ends = [_integer(end) for end in edge] if hasattr(edge, "__iter__") else [None]
    sizes = (2,) if labels is None else (2, 3)
    if len(ends) not in sizes or None in ends:
        wanted = "(head, dep)" if labels is None else "(head, dep) or (head, dep, label)"
        raise ValueError(f"{name}: an edge is a pair of integers {wanted}, not {edge!r}")
    head, dep, *label = (end for end in ends if end is not None)
    if not (0 <= head <= words and 1 <= dep <= words and head != dep):
        raise ValueError(f"{name}: {whose} has {words} words and no edge {head} -> {dep}")
    if labels is not None and label and not 0 <= label[0] < labels:
        raise ValueError(f"{name}: {whose} has {labels} labels and no label {label[0]}")
    return (head, dep, *label)


def _integer(end: Any) -> int | None:
    """Of any integer, a tensor's too; None of anything else, truth values among them."""
    try:
        return None if isinstance(end, (bool, np.bool_)) else operator.index(end)
    except TypeError:
        return None
