"""`spantree.annotate` for files: columns over many sentences of any lengths, with MBR trees if they are wanted.

What is said of words stands in one row, sentence after sentence, ROOT first in each:

    sentences of 2 and 1 words    words [2, 1]    heads [-1, 2, 0, -1, 0]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from . import TreeDistribution, _core
from ._batch import BEING_CHANGED
from ._errors import has_none, name_of_trees
from ._flat import Candidates, FlatScores, joined
from ._options import LAYOUTS, check_choice, check_flag, core_root, positive_integer, positive_number
from ._read import read_scores
from ._threads import get_threads

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
NO_LAYOUT = "lists of candidates say which heads they are: leave out the layout"


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
        core_root(self.root)
        check_choice("layout", self.layout, *LAYOUTS)
        positive_number("temperature", self.temperature)
        positive_integer("k", self.k)
        for name in ("projective", "labelled", "mbr", "confidence", "one_thread"):
            check_flag(name, getattr(self, name))


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
    """Annotations of sentences. Scores (n+1, n+1), or with labels (n+1, n+1, Y), one array for each.

    One call of the core, which reads `FlatScores` and `Candidates` of float32 or float64 where they lie.
    """
    flat = scores if isinstance(scores, (FlatScores, Candidates)) else joined(scores)
    few = flat if isinstance(flat, Candidates) else None
    if few is not None and options.layout != "head_dep":
        raise ValueError(NO_LAYOUT)
    values = np.require(read_scores(flat.values, "scores")[0], requirements="A")
    sentences, nodes = len(flat), int(flat.nodes.sum())

    def numbers(wanted: bool, dtype: npt.DTypeLike, *shape: int) -> Any:
        return np.empty(shape, dtype) if wanted else None

    labelled, confidence, k = options.labelled, options.confidence, options.k if options.k > 1 else 0
    found = Annotations(
        words=flat.nodes - 1,
        heads=np.empty(nodes, np.int64),
        labels=numbers(labelled, np.int64, nodes),
        head_probs=numbers(confidence, values.dtype, nodes),
        log_odds=numbers(confidence, values.dtype, nodes),
        log_prob=numbers(confidence, np.float64, sentences),
        entropy=numbers(confidence, np.float64, sentences),
    )
    best_heads, best_labels = numbers(k > 0, np.int64, k * nodes), numbers(k > 0 and labelled, np.int64, k * nodes)
    best_log_probs = numbers(k > 0, np.float64, k * sentences)
    status = np.empty(sentences, np.int32)
    _core.annotate(
        values,
        None if isinstance(flat, Candidates) else flat.starts,
        flat.nodes,
        flat.labels,
        options.layout == "dep_head",
        None if few is None else few.cuts,
        None if few is None else _int32_or_64(few.heads),
        None if few is None or few.edge_labels is None else _int32_or_64(few.edge_labels),
        core_root(options.root),
        options.projective,
        1 if options.one_thread else get_threads(),
        options.temperature,
        options.mbr,
        confidence,
        k,
        found.heads,
        found.labels,
        found.head_probs,
        found.log_odds,
        found.log_prob,
        found.entropy,
        best_heads,
        best_labels,
        best_log_probs,
        status,
    )
    if k:
        labels = best_labels.reshape(k, -1) if labelled else None
        found.best = Best(best_log_probs.reshape(k, -1), best_heads.reshape(k, -1), labels)
    found.errors = {i: _what_is_wrong(flat[i], int(status[i]), options) for i in np.flatnonzero(status).tolist()}
    return found


def _int32_or_64(numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return numbers if numbers.dtype in (np.int32, np.int64) else numbers.astype(np.int64)


def _what_is_wrong(matrix: npt.NDArray[Any], status: int, options: Options) -> str:
    """With a sentence that has no tree, `status` being a word that cannot be attached, or whose scores are bad."""
    if status > 0:
        return has_none(name_of_trees(options.root, options.projective), status)
    try:
        distribution(matrix, options)
    except ValueError as error:
        return str(error).removeprefix("the sentence").lstrip(": ")
    return BEING_CHANGED


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
