"""Random trees: what the sampling methods of `TreeDistribution` do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from . import _core
from ._batch import Batch
from ._projective import ProjectiveSolve
from ._read import IntArray
from ._trees import Trees

Rng = None | int | np.random.Generator
Method = Literal["auto", "wilson-marginal", "wilson-reject", "ancestral"]
DistinctMethod = Literal["auto", "trie", "beam"]

METHODS = {
    "auto": _core.SamplingMethod.automatic,
    "wilson-marginal": _core.SamplingMethod.wilson_marginal,
    "wilson-reject": _core.SamplingMethod.wilson_reject,
    "ancestral": _core.SamplingMethod.ancestral,
}
DISTINCT_METHODS = {
    "auto": _core.DistinctMethod.automatic,
    "trie": _core.DistinctMethod.trie,
    "beam": _core.DistinctMethod.beam,
}


@dataclass(slots=True)
class Drawn:
    """What the core wrote: k flat arrays of heads and labels, and how many sentences have no tree."""

    heads: IntArray
    labels: IntArray | None
    infeasible: int


@dataclass(slots=True)
class DrawnDistinct(Drawn):
    """The same, with k log-probabilities and keys per sentence, and the key and the log-mass of what was not drawn."""

    log_probs: npt.NDArray[np.float64]
    keys: npt.NDArray[np.float64]
    threshold: npt.NDArray[np.float64]
    log_remaining: npt.NDArray[np.float64]


def key_from(rng: Rng) -> tuple[int, int]:
    """128 bits that all random numbers of a call derive from."""
    if isinstance(rng, np.random.Generator):
        first, second = rng.integers(0, 2**64, size=2, dtype=np.uint64)
    elif rng is None or (isinstance(rng, (int, np.integer)) and not isinstance(rng, bool)):
        if rng is not None and rng < 0:
            raise ValueError(f"a seed must not be negative, and rng is {rng}")
        first, second = np.random.SeedSequence(None if rng is None else int(rng)).generate_state(2, np.uint64)
    else:
        raise TypeError(f"rng must be None, an integer seed or a numpy.random.Generator, not {type(rng).__name__}")
    return int(first), int(second)


def sample(
    batch: Batch, root: _core.Root, projective: ProjectiveSolve | None, k: int, rng: Rng, method: Method
) -> Drawn:
    """`projective`: the solve to draw from if arcs must not cross."""
    key, threads = key_from(rng), batch.threads
    heads, labels, unattachable = _buffers(batch, k)
    if projective is not None:
        infeasible = projective.sample(k, key, heads, unattachable)
    else:
        infeasible = _core.sample(batch.core, root, METHODS[method], k, key, 0, 0, threads, heads, None, unattachable)
    if labels is not None:
        _core.sample_labels(batch.core, k, key, 0, threads, heads, labels)
    return Drawn(heads, labels, infeasible)


def sample_distinct(
    batch: Batch, root: _core.Root, projective: bool, k: int, rng: Rng, method: DistinctMethod
) -> DrawnDistinct:
    count = len(batch)
    heads, labels, unattachable = _buffers(batch, k)
    log_probs, keys = np.empty(k * count), np.empty(k * count)
    threshold, log_remaining = np.empty(count), np.empty(count)
    infeasible = _core.sample_distinct(
        batch.core,
        root,
        projective,
        DISTINCT_METHODS[method],
        k,
        key_from(rng),
        0,
        batch.threads,
        heads,
        labels,
        log_probs,
        keys,
        threshold,
        log_remaining,
        unattachable,
    )
    return DrawnDistinct(heads, labels, infeasible, log_probs, keys, threshold, log_remaining)


def iter_distinct(
    batch: Batch, root: _core.Root, projective: bool, rng: Rng
) -> Iterator[Trees[IntArray, np.floating[Any]]]:
    stream = _core.iter_distinct(batch.core, 0, root, projective, key_from(rng))
    while True:
        heads = np.full(batch.core.row_size, -1)
        labels: Any = np.full(batch.core.row_size, -1) if batch.labelled else None
        drawn = stream.next(heads, labels)
        if drawn is None:
            return
        yield Trees(heads, batch.dtype.type(drawn[0]), labels)


def _buffers(batch: Batch, k: int) -> tuple[IntArray, IntArray | None, IntArray]:
    size = k * batch.core.row_size
    labels = np.empty(size, np.int64) if batch.labelled else None
    return np.empty(size, np.int64), labels, np.empty(len(batch), np.int64)
