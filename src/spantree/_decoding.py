"""Best trees: what the decoding methods of `TreeDistribution` do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core
from ._batch import Batch
from ._read import IntArray
from ._trees import Trees


@dataclass(slots=True)
class Decoded:
    """What the core wrote: flat heads and labels, scores if asked for, and how many sentences have no tree."""

    heads: IntArray
    labels: IntArray | None
    scores: npt.NDArray[np.float64]
    infeasible: int


_NO_SCORES = np.empty(0)


def argmax(
    batch: Batch, root: _core.Root, projective: bool, *, scored: bool = False, unattachable: IntArray | None = None
) -> Decoded:
    """The best trees. `unattachable (B,)` receives a word that cannot be attached, 0 where there is a tree."""
    heads = np.empty(batch.core.row_size, np.int64)
    labels = np.empty(batch.core.row_size, np.int64) if batch.labelled else None
    scores = np.empty(len(batch)) if scored else _NO_SCORES
    search = _core.projective_argmax if projective else _core.argmax
    infeasible = search(batch.core, root, batch.threads, heads, labels, scores if scored else None, unattachable)
    if infeasible < 0:
        batch.refuse_bad_scores()
    return Decoded(heads, labels, scores, infeasible)


def unattachable(batch: Batch, root: _core.Root, projective: bool) -> IntArray:
    """Per sentence a word that cannot be attached, 0 where there is a tree."""
    words = np.empty(len(batch), np.int64)
    argmax(batch, root, projective, unattachable=words)
    return words


def topk(batch: Batch, root: _core.Root, projective: bool, k: int) -> Decoded:
    count = len(batch)
    heads = np.empty(k * batch.core.row_size, np.int64)
    labels = np.empty(k * batch.core.row_size, np.int64) if batch.labelled else None
    scores = np.empty(k * count)
    search = _core.projective_topk if projective else _core.topk
    infeasible = search(batch.core, root, k, batch.threads, heads, labels, scores, None)
    return Decoded(heads, labels, scores, infeasible)


def iter_best(batch: Batch, root: _core.Root, projective: bool) -> Iterator[Trees[IntArray, np.floating[Any]]]:
    stream = (_core.projective_iter_best if projective else _core.iter_best)(batch.core, 0, root)
    while stream is not None:
        heads = np.full(batch.core.row_size, -1)
        labels: Any = np.full(batch.core.row_size, -1) if batch.labelled else None
        score = stream.next(heads, labels)
        if score is None:
            return
        yield Trees(heads, batch.dtype.type(score), labels)


def score(
    batch: Batch, root: _core.Root, projective: bool, heads: IntArray, labels: IntArray | None
) -> npt.NDArray[np.float64]:
    """Scores (k, B) of heads (k, row_size): -inf where they are no tree."""
    scores = np.empty((len(heads), len(batch)))
    for i, row in enumerate(heads):
        row_labels = None if labels is None else labels[i]
        _core.score(batch.core, root, projective, row, row_labels, scores[i])
    return scores
