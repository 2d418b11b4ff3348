"""Choosing sentences of a treebank: by length, or at random."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ._types import FloatArray, Row
from .score_files import Treebank


@dataclass(frozen=True)
class LengthClass:
    """Sentences of `shortest` to `longest` words."""

    shortest: int
    longest: int

    def unit(self) -> Row:
        """As part of a unit of measurement."""
        return {"shortest": self.shortest, "longest": self.longest}


def length_classes(treebank: Treebank, width: int, fewest: int) -> list[LengthClass]:
    """Classes of `width` lengths each, those with at least `fewest` sentences.

    Examples
    --------
    >>> sentences = [np.zeros((n + 1, n + 1)) for n in (3, 4, 9, 25)]
    >>> treebank = Treebank("example", "", None, sentences, [], np.ones(4, dtype=bool))
    >>> length_classes(treebank, width=10, fewest=1)
    [LengthClass(shortest=1, longest=10), LengthClass(shortest=21, longest=30)]
    """
    lengths = treebank.lengths()
    classes = [LengthClass(start, start + width - 1) for start in range(1, int(lengths.max(initial=0)) + 1, width)]
    return [one for one in classes if len(members(treebank, one.shortest, one.longest)) >= fewest]


def members(treebank: Treebank, shortest: int, longest: int) -> list[FloatArray]:
    """The scores of the sentences of those lengths."""
    return [scores for scores in treebank.scores if shortest <= len(scores) - 1 <= longest]


def some(sentences: Sequence[FloatArray], most: int, rng: np.random.Generator) -> list[FloatArray]:
    """At most so many of the sentences, chosen at random, in the order they had.

    Examples
    --------
    >>> [len(one) for one in some([np.zeros((2, 2)), np.zeros((3, 3))], 5, np.random.default_rng(0))]
    [2, 3]
    """
    chosen = np.sort(rng.permutation(len(sentences))[:most])
    return [sentences[index] for index in chosen]


def mean_length(sentences: Sequence[FloatArray]) -> float:
    """Words of a sentence, on average."""
    return float(np.mean([len(scores) - 1 for scores in sentences]))
