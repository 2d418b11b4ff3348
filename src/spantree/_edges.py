"""The edges of trees as 0/1 arrays over all edges.

For three words, heads [-1, 2, 0, 2] stand for the edges 2 -> 1, 0 -> 2, 2 -> 3: ones at [2, 1], [0, 2], [2, 3].
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from ._batch import Batch
    from ._read import IntArray


def edges_of(batch: Batch, heads: IntArray, labels: IntArray | None) -> npt.NDArray[np.float64]:
    """1 at the edges of the trees ``heads (k, row_size)``, as ``(k, edge_size)``; what is no edge leaves no trace."""
    sizes = np.array([len(array) for array in batch.arrays], np.int64)
    sentence = np.repeat(np.arange(len(batch)), sizes)
    first_node = np.repeat(np.cumsum(sizes) - sizes, sizes)
    dep = np.arange(len(sentence)) - first_node
    width, words = sizes[sentence], batch.lengths[sentence]
    first_edge = (np.cumsum(sizes**2) - sizes**2)[sentence]
    there = (dep >= 1) & (dep <= words) & (heads >= 0) & (heads <= words) & (heads != dep)
    edge = first_edge + (heads * width + dep if batch.layout == "head_dep" else dep * width + heads)
    if labels is not None:
        there &= (labels >= 0) & (labels < batch.labels)
        edge = edge * batch.labels + labels
    result = np.zeros((len(heads), batch.core.edge_size))
    tree, _ = np.nonzero(there)
    result[tree, edge[there]] = 1.0
    return result
