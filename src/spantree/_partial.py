"""Partial trees: some heads are known, the others are summed or maximised over.

An unknown head, or label, is -2. For three words, heads [-1, -2, 0, 2] leave the head of word 1 open: with one root the
completions are [-1, 2, 0, 2] and [-1, 3, 0, 2]. Every edge that disagrees with a known head is forbidden, and what is
left is an ordinary distribution: log Z of it minus log Z of all trees is the log-probability of the partial tree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ._batch import Batch
    from ._read import FloatArray, IntArray

UNKNOWN = -2


def first_bad_head(batch: Batch, heads: IntArray, labels: IntArray | None) -> tuple[int, int] | None:
    """Sentence and word of the first head (flat, one row) that is neither unknown nor a node, or with such a label."""
    start = 0
    for i, (array, words) in enumerate(zip(batch.arrays, batch.lengths.tolist(), strict=True)):
        here = slice(start + 1, start + 1 + words)
        bad = ~_good_heads(heads[here], words)
        if labels is not None:
            bad |= (labels[here] != UNKNOWN) & ~((labels[here] >= 0) & (labels[here] < batch.labels))
        if bad.any():
            return i, 1 + int(np.flatnonzero(bad)[0])
        start += len(array)
    return None


def completions(batch: Batch, heads: IntArray, labels: IntArray | None) -> Batch:
    """The batch with every edge forbidden that disagrees with the known heads (flat, one row) and labels.

    A head that is neither unknown nor a node leaves no edge for its word.
    """
    sizes = [len(array) for array in batch.arrays]
    starts = np.cumsum([0, *sizes]).tolist()

    def change(i: int, matrix: FloatArray) -> None:
        words = len(matrix) - 1
        here = slice(starts[i] + 1, starts[i] + 1 + words)
        known = heads[here]
        agrees = (known == UNKNOWN) | (known == np.arange(words + 1)[:, np.newaxis])  # [head, dep - 1]
        if labels is None:
            matrix[:, 1:][~agrees] = -np.inf
            return
        known_label = labels[here][:, np.newaxis]
        label_agrees = (known_label == UNKNOWN) | (known_label == np.arange(matrix.shape[2]))  # [dep - 1, label]
        matrix[:, 1:][~(agrees[:, :, np.newaxis] & label_agrees)] = -np.inf

    return batch.with_matrices_changed(change)


def _good_heads(heads: IntArray, words: int) -> IntArray:
    deps = np.arange(1, words + 1)
    good: IntArray = (heads == UNKNOWN) | ((heads >= 0) & (heads <= words) & (heads != deps))
    return good
