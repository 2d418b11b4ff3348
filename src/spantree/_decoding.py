"""Best trees: what the decoding methods of `TreeDistribution` do."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from ._batch import Batch
from ._read import IntArray
from ._trees import Trees

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(slots=True)
class Decoded:
    """What the core wrote: flat heads and labels, scores if asked for.

    `unattachable` is what `Batch.judged` says.
    """

    heads: IntArray
    labels: IntArray | None
    scores: npt.NDArray[np.float64]
    unattachable: IntArray | None


_NO_SCORES = np.empty(0)


def argmax(batch: Batch, root: _core.Root, projective: bool, *, scored: bool = False) -> Decoded:
    heads = np.empty(batch.core.row_size, np.int64)
    labels = np.empty(batch.core.row_size, np.int64) if batch.labelled else None
    scores = np.empty(len(batch)) if scored else _NO_SCORES
    words = _core.argmax(batch.core, root, projective, batch.threads, heads, labels, scores if scored else None)
    return Decoded(heads, labels, scores, batch.judged(words))


def topk(batch: Batch, root: _core.Root, projective: bool, k: int) -> Decoded:
    heads = np.empty(k * batch.core.row_size, np.int64)
    labels = np.empty(k * batch.core.row_size, np.int64) if batch.labelled else None
    scores = np.empty(k * len(batch))
    words = _core.topk(batch.core, root, projective, k, batch.threads, heads, labels, scores)
    return Decoded(heads, labels, scores, batch.judged(words))


def iter_best(
    batch: Batch, root: _core.Root, projective: bool
) -> Generator[Trees[IntArray, np.floating[Any]], None, None]:
    stream = _core.iter_best(batch.core, 0, root, projective)
    while stream is not None:
        heads = np.full(batch.core.row_size, -1)
        labels: Any = np.full(batch.core.row_size, -1) if batch.labelled else None
        score = stream.next(heads, labels)
        if score is None:
            return
        yield Trees(heads, batch.number(score), labels)


def score(
    batch: Batch,
    root: _core.Root,
    projective: bool,
    heads: IntArray,
    labels: IntArray | None,
    than: Decoded | None = None,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Scores (k, B) of heads (k, row_size), -inf where they are no tree of the batch, and where they are one.

    With `than`, by how much they are higher than those of one tree per sentence, to the last digit.
    """
    shape = (len(heads), len(batch))
    scores, allowed = np.empty(shape), np.empty(shape, np.bool_)
    other = None if than is None else than.heads[np.newaxis]
    other_labels = None if than is None or than.labels is None else than.labels[np.newaxis]
    _core.score(batch.core, root, projective, batch.threads, heads, labels, other, other_labels, scores, allowed)
    return scores, allowed
