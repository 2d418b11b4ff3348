"""`spantree.annotate` for files: columns over many sentences of any lengths, with MBR trees if they are wanted.

What is said of words stands in one row, sentence after sentence, ROOT first in each:

    sentences of 2 and 1 words    words [2, 1]    heads [-1, 2, 0, -1, 0]

Sentences go to the core sorted by length, so that those of the same length lie next to each other: the work in Python
is per length, not per sentence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from . import TreeDistribution, _decoding, _inference
from ._annotate import _without_bad_scores
from ._batch import Batch
from ._errors import describe_infeasible
from ._flat import FlatBatch, FlatScores, joined
from ._read import read_scores

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
_AT_ONCE = (
    1 << 24
)  # bytes of scores: enough for the core's lanes and threads, and memory stays small for long sentences


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Which trees, and what about them."""

    root: Literal["single", "multi"] = "single"
    projective: bool = False
    labelled: bool = False
    layout: Literal["head_dep", "dep_head"] = "head_dep"
    temperature: float = 1.0
    """Scores are divided by it."""
    mbr: bool = False
    """Take the tree with the highest expected number of right heads in place of the likeliest one."""
    confidence: bool = True
    """Find probabilities too, not only trees."""
    k: int = 1
    """How many of the best trees."""
    one_thread: bool = False
    """Stay in the thread of the caller; else spread the sentences over `get_threads` threads."""

    def __post_init__(self) -> None:
        if not 0 < self.temperature < np.inf:
            raise ValueError(f"temperature must be above 0 and finite, not {self.temperature}")
        if self.k < 1:
            raise ValueError(f"k must be at least 1, not {self.k}")


@dataclass(slots=True)
class Best:
    """The k best trees of each sentence, fewer where there are fewer."""

    log_probs: FloatArray
    """Shape (k, sentences): -inf where there is no further tree."""
    heads: IntArray
    """Shape (k, nodes)."""
    labels: IntArray | None


@dataclass(slots=True)
class Annotations:
    """What is known about some sentences."""

    words: IntArray
    """Shape (sentences,)."""
    heads: IntArray
    """Shape (nodes,): -1 for ROOT."""
    labels: IntArray | None = None
    head_probs: npt.NDArray[Any] | None = None
    """Shape (nodes,): the probability of each word's head."""
    log_odds: npt.NDArray[Any] | None = None
    """Shape (nodes,): log of that probability over that of all other heads; inf where no other head is possible."""
    log_prob: npt.NDArray[Any] | None = None
    """Shape (sentences,), of the trees."""
    entropy: npt.NDArray[Any] | None = None
    """Shape (sentences,), of the distributions over trees, in nats."""
    best: Best | None = None
    errors: dict[int, str] = field(default_factory=dict)
    """What is wrong with a sentence, from 0: a bad score, or no tree. Its heads are -1, its probabilities NaN."""

    def rows(self, per_node: npt.NDArray[Any] | None) -> list[Any]:
        """One of the columns, sentence by sentence: (n+1,) each; Nones in the place of None."""
        if per_node is None:
            return [None] * len(self.words)
        ends = np.cumsum(self.words + 1).tolist()
        return [per_node[..., start:end] for start, end in zip([0, *ends], ends, strict=False)]


def annotate(scores: Sequence[npt.NDArray[Any]], options: Options) -> Annotations:
    """Annotations of sentences. Scores (n+1, n+1), or with labels (n+1, n+1, Y), one array for each."""
    if isinstance(scores, FlatScores):
        sizes, edge_bytes = scores.nodes, scores.values.itemsize * max(scores.labels, 1)
    else:
        sizes = np.fromiter(map(len, scores), np.int64, len(scores))
        edge_bytes = scores[0].nbytes // len(scores[0]) ** 2 if len(scores) else 0
    order = np.argsort(sizes, kind="stable")
    cuts = np.flatnonzero(np.diff(np.cumsum(sizes[order] ** 2 * edge_bytes) // _AT_ONCE)) + 1
    found = [_annotate_sorted(_batch(scores, part, options), options) for part in np.split(order, cuts)]
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    starts = np.cumsum(sizes[order]) - sizes[order]
    errors = [(first + i, why) for first, part in zip([0, *cuts], found, strict=True) for i, why in part.errors.items()]
    return _joined(found, place, ranges(starts[place], sizes), {int(order[i]): why for i, why in errors})


def ranges(starts: IntArray, counts: IntArray) -> IntArray:
    """start, start + 1, ..., start + count - 1 of each pair, in one row."""
    return np.repeat(starts - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())


def _joined(parts: list[Annotations], sentences: IntArray, nodes: IntArray, errors: dict[int, str]) -> Annotations:
    """All of them in another order."""

    def of(owners: list[Any], name: str, which: IntArray) -> Any:
        columns = [getattr(owner, name) for owner in owners]
        return None if columns[0] is None else np.concatenate(columns, axis=-1)[..., which]

    by_sentence = {name: of(parts, name, sentences) for name in ("words", "log_prob", "entropy")}
    by_node = {name: of(parts, name, nodes) for name in ("heads", "labels", "head_probs", "log_odds")}
    trees = [part.best for part in parts]
    best = None
    if trees[0] is not None:
        best = Best(of(trees, "log_probs", sentences), of(trees, "heads", nodes), of(trees, "labels", nodes))
    return Annotations(**by_sentence, **by_node, best=best, errors=errors)


def _annotate_sorted(batch: Batch, options: Options) -> Annotations:
    errors: dict[int, str] = {}
    batch = _without_bad_scores(batch, errors)
    sizes = batch.lengths + 1
    dist: TreeDistribution[Any, Any, Any] = TreeDistribution.__new__(TreeDistribution)
    dist._set(options.root, options.projective, "mask", options.temperature)
    dist._batch = batch
    tree = dist._decode()
    if tree.unattachable is not None:
        for i in np.flatnonzero(tree.unattachable).tolist():
            errors.setdefault(i, describe_infeasible(batch, i, int(tree.unattachable[i]), dist._tree_name()))
    if options.mbr:
        tree = _inference.mbr(batch, dist._solved, dist._core_root, options.projective)
    found = Annotations(batch.lengths, tree.heads, tree.labels)
    found.errors = {i: re.sub(r"^sentence \d+:? ", "", why) for i, why in errors.items()}
    if options.confidence:
        probs = dist._solved.fresh_marginals()
        found.head_probs, found.log_odds = _certainty(probs, tree.heads, sizes, options)
        found.log_prob, found.entropy = dist._log_probs_of(tree), dist._solved.expectation(None, False)[0]
    if options.k > 1:
        found.best = _best(dist, options.k)
    return found


def _batch(scores: Sequence[npt.NDArray[Any]], which: IntArray, options: Options) -> Batch:
    """Some of the sentences: where they lie, if they are in one array that the core can read."""
    if isinstance(scores, FlatScores) and options.temperature == 1.0 and scores.readable_in_place:
        return FlatBatch(scores.take(which), options.labelled, options.layout, options.one_thread)
    flat = joined([scores[i] for i in which])
    values, dtype, _, _ = read_scores(flat.values, "scores")
    if options.temperature != 1.0:
        with np.errstate(all="ignore"):  # whatever stands where no scores are
            values = np.divide(values, options.temperature, dtype=np.float64)
    return FlatBatch(replace(flat, values=values), options.labelled, options.layout, options.one_thread, dtype)


def _best(dist: TreeDistribution[Any, Any, Any], k: int) -> Best:
    found = _decoding.topk(dist._batch, dist._core_root, dist._projective, k)
    heads = found.heads.reshape(k, -1)
    labels = None if found.labels is None else found.labels.reshape(k, -1)
    return Best(dist._log_probs(heads, labels)[0], heads, labels)


def _certainty(
    marginals: npt.NDArray[Any], heads: IntArray, sizes: IntArray, options: Options
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """P(head) of each word and its log-odds against all other heads, both (nodes,); NaN without a head.

    Writes to the marginals, which are those of sentences sorted by size.
    """
    if options.labelled:
        edges = int((sizes**2).sum())
        marginals = marginals.reshape(edges, len(marginals) // max(edges, 1)).sum(axis=-1)
    chosen, others = (np.empty(len(heads), marginals.dtype) for _ in range(2))
    by_head = options.layout == "head_dep"
    node = edge = 0
    for size, count in zip(*(column.tolist() for column in np.unique(sizes, return_counts=True)), strict=True):
        nodes = slice(node, node + count * size)
        table = marginals[edge : edge + count * size**2].reshape(count, size, size)
        node, edge = nodes.stop, edge + table.size
        own = np.maximum(heads[nodes], 0).reshape(count, size)
        row, column = (own, np.arange(size)) if by_head else (np.arange(size), own)
        places = np.arange(count)[:, np.newaxis] * size**2 + row * size + column
        chosen[nodes] = table.ravel()[places].ravel()
        table.ravel()[places] = 0.0
        others[nodes] = table.sum(axis=1 if by_head else 2).ravel()
    chosen[heads < 0] = np.nan
    with np.errstate(divide="ignore"):
        return np.minimum(chosen, 1.0), np.log(chosen) - np.log(others)


def distribution(scores: Any, options: Options) -> Any:
    """The distribution that the options speak of."""
    return TreeDistribution(
        scores,
        root=options.root,
        projective=options.projective,
        labelled=options.labelled,
        layout=options.layout,
        temperature=options.temperature,
    )


def edge_marginals(dist: Any, options: Options) -> FloatArray:
    """The probability of each edge ``[head, dep]``, labels summed out, in the precision of the scores."""
    marginals: FloatArray = dist.marginals()
    if options.labelled:
        marginals = marginals.sum(axis=-1)
    return marginals if options.layout == "head_dep" else marginals.swapaxes(-1, -2)
