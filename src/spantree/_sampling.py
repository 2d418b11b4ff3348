"""Random trees: what the sampling methods of `TreeDistribution` do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from . import _core
from ._batch import Batch
from ._inference import Solved
from ._options import integer
from ._read import IntArray
from ._trees import Trees

if TYPE_CHECKING:
    import numpy.typing as npt

# As text: numpy.random takes a tenth of the time of importing all of NumPy, and many programs never draw a tree.
Rng: TypeAlias = "int | np.random.Generator | Sequence[Any] | npt.NDArray[np.integer[Any]] | None"
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


@dataclass
class Drawn:
    """What the core wrote: k flat arrays of heads and labels, and what `Batch.judged` says."""

    heads: IntArray
    labels: IntArray | None
    unattachable: IntArray | None


@dataclass
class DrawnDistinct(Drawn):
    """The same, with k log-probabilities and keys per sentence, and the key and the log-mass of what was not drawn."""

    log_probs: npt.NDArray[np.float64]
    keys: npt.NDArray[np.float64]
    threshold: npt.NDArray[np.float64]
    log_remaining: npt.NDArray[np.float64]


def keys_from(rng: Rng, first_sentence: int, batch: Batch) -> tuple[npt.NDArray[np.uint64], int]:
    """128 bits that all random numbers of a call derive from, (1, 2), or those of each sentence, (B, 2), and the number
    of the first sentence."""
    first_sentence = integer("first_sentence", first_sentence)
    if not 0 <= first_sentence < 2**64 - len(batch):
        raise ValueError(f"first_sentence must be 0 or more, and below 2^64 in the end, not {first_sentence}")
    if isinstance(rng, np.random.Generator):
        return rng.integers(0, 2**64, size=(1, 2), dtype=np.uint64), first_sentence
    if rng is None:
        return np.array([_key(None)], np.uint64), first_sentence
    if isinstance(rng, (int, np.integer)) and not isinstance(rng, bool):
        return np.array([_key(_seed(rng))], np.uint64), first_sentence
    if not isinstance(rng, (list, tuple, np.ndarray)):
        raise TypeError(
            "rng must be None, an integer seed, a numpy.random.Generator or one seed for each sentence, "
            f"not {type(rng).__name__}"
        )
    seeds = np.asarray(rng, dtype=object)
    expected = (len(batch),) if batch.leading is None else batch.leading
    if seeds.shape != expected:
        raise ValueError(f"rng has seeds of shape {seeds.shape}; one for each sentence would be {expected}")
    if first_sentence:
        raise ValueError("first_sentence goes with one rng for all sentences; seeds of their own need no numbers")
    keys = [_key(_seed(seed)) for seed in seeds.ravel()]
    return np.array(keys, np.uint64).reshape(-1, 2) if keys else np.zeros((1, 2), np.uint64), 0


def _seed(rng: Any) -> int:
    if not isinstance(rng, (int, np.integer)) or isinstance(rng, bool):
        raise TypeError(f"a seed must be an integer, not {type(rng).__name__}")
    if rng < 0:
        raise ValueError(f"a seed must not be negative, and rng is {rng}")
    return int(rng)


def _key(seed: int | None) -> npt.NDArray[np.uint64]:
    return np.random.SeedSequence(seed).generate_state(2, np.uint64).astype(np.uint64, copy=False)


def sample(
    batch: Batch,
    root: _core.Root,
    projective: bool,
    solved: Solved,
    k: int,
    rng: Rng,
    method: Method,
    first_sentence: int = 0,
    first_tree: int = 0,
) -> Drawn:
    keys, first = keys_from(rng, first_sentence, batch)
    first_tree = integer("first_tree", first_tree)
    if not 0 <= first_tree < 2**62 - k:
        raise ValueError(f"first_tree must be 0 or more, and below 2^62 in the end, not {first_tree}")
    heads, labels = _buffers(batch, k)
    words = _core.sample(
        batch.core,
        root,
        projective,
        METHODS[method],
        k,
        keys,
        first,
        0,
        batch.threads,
        heads,
        labels,
        None,
        solved.to_draw_from(),
        first_tree,
    )
    return Drawn(heads, labels, batch.judged(words))


def sample_distinct(
    batch: Batch,
    root: _core.Root,
    projective: bool,
    solved: Solved,
    k: int,
    rng: Rng,
    method: DistinctMethod,
    first_sentence: int = 0,
) -> DrawnDistinct:
    count = len(batch)
    keys, first = keys_from(rng, first_sentence, batch)
    heads, labels = _buffers(batch, k)
    log_probs, gumbel_keys = np.empty(k * count), np.empty(k * count)
    threshold, log_remaining = np.empty(count), np.empty(count)
    words = _core.sample_distinct(
        batch.core,
        root,
        projective,
        DISTINCT_METHODS[method],
        k,
        keys,
        first,
        batch.threads,
        heads,
        labels,
        log_probs,
        gumbel_keys,
        threshold,
        log_remaining,
        solved.to_draw_from(),
    )
    return DrawnDistinct(heads, labels, batch.judged(words), log_probs, gumbel_keys, threshold, log_remaining)


def iter_distinct(
    batch: Batch,
    root: _core.Root,
    projective: bool,
    solved: Solved,
    keys: npt.NDArray[np.uint64],
    first_sentence: int,
) -> Iterator[Trees[IntArray, np.floating[Any]]]:
    stream = _core.iter_distinct(batch.core, 0, root, projective, keys, first_sentence, solved.to_draw_from())
    if stream.bad():
        batch.refuse_bad_scores(seen=True)
    return _trees_of(stream, batch)


def _trees_of(stream: _core.DistinctTrees, batch: Batch) -> Iterator[Trees[IntArray, np.floating[Any]]]:
    while True:
        heads = np.full(batch.core.row_size, -1)
        labels: Any = np.full(batch.core.row_size, -1) if batch.labelled else None
        drawn = stream.next(heads, labels)
        if drawn is None:
            return
        yield Trees(heads, batch.number(drawn[0]), labels)


def _buffers(batch: Batch, k: int) -> tuple[IntArray, IntArray | None]:
    size = k * batch.core.row_size
    return np.empty(size, np.int64), np.empty(size, np.int64) if batch.labelled else None
