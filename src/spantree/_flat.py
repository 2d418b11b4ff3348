"""The scores of many sentences in one array, as Arrow keeps a column of lists: matrices of any sizes, never copied.

    sentences of 2 and 1 words    values [9 numbers, 4 numbers]    starts [0, 9]    nodes [3, 2]

A sentence's matrix is made, as a view, when somebody asks for it; the core reads all of them where they lie.
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


def joined(matrices: Sequence[npt.NDArray[Any]]) -> FlatScores:
    """A copy of matrices that lie apart."""
    nodes = np.fromiter(map(len, matrices), np.int64, len(matrices))
    ends = np.cumsum([matrix.size for matrix in matrices], dtype=np.int64)
    values = np.concatenate([matrix.ravel() for matrix in matrices]) if len(matrices) else np.empty(0)
    labels = matrices[0].shape[2] if len(matrices) and matrices[0].ndim == 3 else 0
    return FlatScores(values, np.concatenate([[0], ends])[: len(nodes)], nodes, labels)
