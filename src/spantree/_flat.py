"""The scores of many sentences in one array, as Arrow keeps a column of lists: of any sizes, never copied.

    sentences of 2 and 1 words    values [9 numbers, 4 numbers]    starts [0, 9]    nodes [3, 2]

Or only a few heads for each word, all others forbidden:

    values [1.5, 0.2, 3.0, 0.1]   heads [2, 0, 0, 0]    cuts [0, 2, 3, 4]    nodes [3, 2]
    word 1 of the first sentence: 2 -> 1 and 0 -> 1; its word 2: 0 -> 2; the other sentence's word: 0 -> 1

A sentence's matrix is made when somebody asks for it; the core reads all of them where they lie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from ._read import IntArray


@dataclass(frozen=True, slots=True)
class FlatScores(Sequence[npt.NDArray[Any]]):
    """Matrices (n+1, n+1), or (n+1, n+1, labels): matrix i begins at ``values[starts[i]]``, with ``nodes[i]`` rows."""

    values: npt.NDArray[Any]
    starts: IntArray
    nodes: IntArray
    labels: int = 0
    """0: edges have none."""

    def __len__(self) -> int:
        return len(self.nodes)

    @overload
    def __getitem__(self, index: int) -> npt.NDArray[Any]: ...
    @overload
    def __getitem__(self, index: slice) -> FlatScores: ...
    def __getitem__(self, index: int | slice) -> npt.NDArray[Any] | FlatScores:
        if isinstance(index, slice):
            return self.take(np.arange(len(self))[index])
        start, nodes = int(self.starts[index]), int(self.nodes[index])
        shape = (nodes, nodes, self.labels) if self.labels else (nodes, nodes)
        return self.values[start : start + nodes * nodes * max(self.labels, 1)].reshape(shape)

    def take(self, which: IntArray) -> FlatScores:
        """Some of the sentences, in another order."""
        return replace(self, starts=self.starts[which], nodes=self.nodes[which])


@dataclass(frozen=True, slots=True)
class Candidates(Sequence[npt.NDArray[Any]]):
    """Matrices ``[head, dep(, label)]`` of which few entries are not -inf: entries ``cuts[w]`` to ``cuts[w + 1]`` of
    `values`, `heads` and `edge_labels` are those of word w, of all words of all sentences."""

    values: npt.NDArray[Any]
    heads: npt.NDArray[np.integer[Any]]
    edge_labels: npt.NDArray[np.integer[Any]] | None
    cuts: IntArray
    """Shape (words + 1,)."""
    nodes: IntArray
    labels: int = 0
    """0: edges have none."""

    def __len__(self) -> int:
        return len(self.nodes)

    @overload
    def __getitem__(self, index: int) -> npt.NDArray[Any]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[npt.NDArray[Any]]: ...
    def __getitem__(self, index: int | slice) -> npt.NDArray[Any] | Sequence[npt.NDArray[Any]]:
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[index]]
        index = range(len(self))[index]
        nodes, before = int(self.nodes[index]), int((self.nodes[:index] - 1).sum())
        cuts = self.cuts[before : before + nodes]
        here = slice(int(cuts[0]), int(cuts[-1]))
        place: tuple[Any, ...] = (self.heads[here], np.repeat(np.arange(1, nodes), np.diff(cuts)))
        if self.edge_labels is not None:
            place = (*place, self.edge_labels[here])
        shape = (nodes, nodes, self.labels) if self.labels else (nodes, nodes)
        matrix = np.full(shape, -np.inf, self.values.dtype)
        matrix[place] = self.values[here]
        return matrix


def sizes_of(matrices: Sequence[npt.NDArray[Any]]) -> IntArray:
    """Rows of each matrix."""
    if isinstance(matrices, (FlatScores, Candidates)):
        return matrices.nodes
    return np.fromiter(map(len, matrices), np.int64, len(matrices))


def joined(matrices: Sequence[npt.NDArray[Any]]) -> FlatScores:
    """A copy of matrices that lie apart."""
    nodes = sizes_of(matrices)
    ends = np.cumsum([matrix.size for matrix in matrices], dtype=np.int64)
    values = np.concatenate([matrix.ravel() for matrix in matrices]) if len(matrices) else np.empty(0)
    labels = matrices[0].shape[2] if len(matrices) and matrices[0].ndim == 3 else 0
    return FlatScores(values, np.concatenate([[0], ends])[: len(nodes)], nodes, labels)
