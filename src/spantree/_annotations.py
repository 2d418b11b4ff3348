"""What a corpus job wants to know about many sentences: best trees, how sure they are, k best.

Sentences of the same length go through the core together, so that the work in Python is per length and not per word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from . import TreeDistribution, Trees

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
    """Shape (n+1,): log of that probability over the next likeliest head's; inf where no other head is possible."""
    log_prob: float | None = None
    """Of the tree."""
    entropy: float | None = None
    """Of the distribution over trees, in nats."""
    best: list[tuple[IntArray, IntArray | None, float]] | None = None
    """The k best trees: heads, labels, log-probability."""


def annotate(scores: Sequence[npt.NDArray[Any]], options: Options) -> list[Annotation]:
    """An annotation of each sentence. Scores (n+1, n+1), or with labels (n+1, n+1, Y).

    Raises
    ------
    SentenceError
        A score is bad, or a sentence has no tree.
    """
    groups: dict[int, list[int]] = {}
    for i, matrix in enumerate(scores):
        groups.setdefault(len(matrix), []).append(i)
    found: dict[int, Annotation] = {}
    for members in groups.values():
        stacked = np.stack([scores[i] for i in members])
        try:
            found.update(zip(members, _annotate_alike(stacked, options), strict=True))
        except ValueError:
            _blame(scores, members, options)
            raise
    return [found[i] for i in range(len(scores))]


class SentenceError(ValueError):
    """A sentence that has no answer: which one, from 0, and why."""

    def __init__(self, sentence: int, reason: str) -> None:
        super().__init__(f"sentence {sentence}: {reason}")
        self.sentence, self.reason = sentence, reason


def _blame(scores: Sequence[npt.NDArray[Any]], members: list[int], options: Options) -> None:
    """Asks the sentences one by one which of them it was."""
    for i in members:
        try:
            distribution(scores[i], options).argmax()
        except ValueError as error:
            raise SentenceError(i, str(error)) from error


def _annotate_alike(scores: npt.NDArray[Any], options: Options) -> list[Annotation]:
    """The same for sentences of the same length."""
    dist = distribution(scores, options)
    trees: Any = dist.topk(options.k) if options.k > 1 else dist.mbr() if options.mbr else dist.argmax()
    if options.mbr and options.k > 1:
        best = dist.mbr()
        heads, labels = (best.heads, best.labels) if isinstance(best, Trees) else (best, None)
    elif options.k > 1:
        heads, labels = trees.heads[0], None if trees.labels is None else trees.labels[0]
    elif options.labelled:
        heads, labels = trees.heads, trees.labels
    else:
        heads, labels = trees, None
    out = [Annotation(row, None if labels is None else labels[i]) for i, row in enumerate(heads)]
    if options.confidence:
        head_probs, log_odds = _certainty(edge_marginals(dist, options), heads)
        log_probs = dist.log_prob(heads) if labels is None else dist.log_prob(heads, labels)
        for one, p, odds, log_prob, entropy in zip(out, head_probs, log_odds, log_probs, dist.entropy(), strict=True):
            one.head_probs, one.log_odds, one.log_prob, one.entropy = p, odds, float(log_prob), float(entropy)
    if options.k > 1:
        log_probs = np.asarray(dist.log_prob(trees))
        for i, one in enumerate(out):
            one.best = [
                (
                    trees.heads[j, i],
                    None if trees.labels is None else trees.labels[j, i],
                    float(log_probs[j, i]),
                )
                for j in range(options.k)
                if trees.scores[j, i] > -np.inf
            ]
    return out


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
    """The probability of each edge ``[head, dep]``, labels summed out, in double precision."""
    marginals = np.asarray(dist.marginals(), np.float64)
    if options.labelled:
        marginals = marginals.sum(axis=-1)
    return marginals if options.layout == "head_dep" else marginals.swapaxes(-1, -2)


def _certainty(marginals: FloatArray, heads: IntArray) -> tuple[FloatArray, FloatArray]:
    """P(head) of each word and its log-odds against the next likeliest head, both (..., n+1), 1 and inf at ROOT."""
    places = heads[..., np.newaxis, 1:]
    others = marginals[..., 1:].copy()
    probs, log_odds = np.ones(heads.shape), np.full(heads.shape, np.inf)
    probs[..., 1:] = np.take_along_axis(others, places, axis=-2)[..., 0, :]
    np.put_along_axis(others, places, 0.0, axis=-2)
    with np.errstate(divide="ignore"):
        log_odds[..., 1:] = np.log(probs[..., 1:]) - np.log(others.max(axis=-2))
    return np.minimum(probs, 1.0), log_odds
