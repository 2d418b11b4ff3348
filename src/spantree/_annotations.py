"""`spantree.annotate` for a stream of sentences: an annotation each, with MBR trees if they are wanted.

Sentences of the same length go through the core together, so that the work in Python is per length and not per word.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from . import TreeDistribution, Trees
from ._annotate import annotate as annotate_batch

if TYPE_CHECKING:
    from ._annotate import Annotations

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


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

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise ValueError(f"temperature must be above 0, not {self.temperature}")
        if self.k < 1:
            raise ValueError(f"k must be at least 1, not {self.k}")


@dataclass(slots=True)
class Annotation:
    """One sentence of n words."""

    heads: IntArray
    """Shape (n+1,), -1 for ROOT."""
    labels: IntArray | None = None
    head_probs: FloatArray | None = None
    """Shape (n+1,): the probability of each word's head."""
    log_odds: FloatArray | None = None
    """Shape (n+1,): log of that probability over that of all other heads; inf where no other head is possible."""
    log_prob: float | None = None
    """Of the tree."""
    entropy: float | None = None
    """Of the distribution over trees, in nats."""
    best: list[tuple[IntArray, IntArray | None, float]] | None = None
    """The k best trees: heads, labels, log-probability."""
    error: str | None = None
    """What is wrong with the sentence: a bad score, or no tree. Then nothing else is known of it."""


def annotate(scores: Sequence[npt.NDArray[Any]], options: Options) -> list[Annotation]:
    """An annotation of each sentence. Scores (n+1, n+1), or with labels (n+1, n+1, Y)."""
    groups: dict[int, list[int]] = {}
    for i, matrix in enumerate(scores):
        groups.setdefault(len(matrix), []).append(i)
    found: dict[int, Annotation] = {}
    for members in groups.values():
        stacked = np.stack([scores[i] for i in members])
        found.update(zip(members, _annotate_alike(stacked, options), strict=True))
    return [found[i] for i in range(len(scores))]


def _annotate_alike(scores: npt.NDArray[Any], options: Options) -> list[Annotation]:
    """The same for sentences of the same length."""
    columns = annotate_batch(
        scores,
        root=options.root,
        projective=options.projective,
        labelled=options.labelled,
        layout=options.layout,
        temperature=options.temperature,
        confidence=False,
        k=options.k if options.k > 1 else None,
    )
    labels = columns.get("labels", [None] * len(scores))
    out = [Annotation(heads, label) for heads, label in zip(columns["heads"], labels, strict=True)]
    errors = columns["error"].tolist()
    fine = [i for i, error in enumerate(errors) if error is None]
    for one, error in zip(out, errors, strict=True):
        one.error = None if error is None else re.sub(r"^sentence \d+:? ", "", error)
    if fine and (options.confidence or options.k > 1 or options.mbr):
        everything = len(fine) == len(scores)
        dist = distribution(scores if everything else scores[fine], options)
        if options.k > 1:
            _add_best([out[i] for i in fine], columns, fine, dist)
        _add_confidence([out[i] for i in fine], dist, options)
    return out


def _add_best(found: list[Annotation], columns: Annotations, fine: list[int], dist: Any) -> None:
    """The k best trees with their log-probabilities."""
    heads, values = columns["topk_heads"][:, fine], columns["topk_scores"][:, fine]
    labels = columns["topk_labels"][:, fine] if "topk_labels" in columns else None
    log_probs = np.asarray(dist.log_prob(heads if labels is None else Trees(heads, labels=labels)), np.float64)
    for j, one in enumerate(found):
        one.best = [
            (heads[rank, j], None if labels is None else labels[rank, j], float(log_probs[rank, j]))
            for rank in np.flatnonzero(values[:, j] > -np.inf)
        ]


def _add_confidence(found: list[Annotation], dist: Any, options: Options) -> None:
    """Probabilities of the trees; MBR trees in the place of the best, if they are wanted."""
    if options.mbr:
        best = dist.mbr()
        heads, labels = (best.heads, best.labels) if options.labelled else (best, [None] * len(found))
        for one, row, label in zip(found, heads, labels, strict=True):
            one.heads, one.labels = row, label
    if not options.confidence:
        return
    heads = np.stack([one.heads for one in found])
    labels = np.stack([one.labels for one in found if one.labels is not None]) if options.labelled else None
    log_probs = dist.log_prob(heads if labels is None else Trees(heads, labels=labels))
    probs, log_odds = _certainty(edge_marginals(dist, options), heads)
    for one, p, odds, log_prob, entropy in zip(found, probs, log_odds, log_probs, dist.entropy(), strict=True):
        one.head_probs, one.log_odds, one.log_prob, one.entropy = p, odds, float(log_prob), float(entropy)


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


def _certainty(marginals: FloatArray, heads: IntArray) -> tuple[FloatArray, FloatArray]:
    """P(head) of each word and its log-odds against all other heads, both (..., n+1), NaN at ROOT."""
    places = heads[..., np.newaxis, 1:]
    others = marginals[..., 1:].copy()
    probs, log_odds = (np.full(heads.shape, np.nan, marginals.dtype) for _ in range(2))
    probs[..., 1:] = np.take_along_axis(others, places, axis=-2)[..., 0, :]
    np.put_along_axis(others, places, 0.0, axis=-2)
    with np.errstate(divide="ignore"):
        log_odds[..., 1:] = np.log(probs[..., 1:]) - np.log(others.sum(axis=-2))
    return np.minimum(probs, 1.0), log_odds
