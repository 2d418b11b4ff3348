"""Trees in the exact order of their scores, where doubles cannot tell them apart."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ._read import FloatArray, IntArray

_BITS_BEHIND_THE_POINT = 1074  # of the least double: all others are whole numbers of it


class BestFirst:
    """A key to sort trees by, behind their scores as the core reports them.

    These are the doubles nearest to the sums of the edges' scores: a higher sum never has a lower one. Most scores are
    no other tree's, so sums are added up when they are first compared.
    """

    def __init__(self, matrix: FloatArray, heads: IntArray, labels: IntArray | None) -> None:
        self._tree = matrix, heads, labels

    @cached_property
    def _score(self) -> int:
        """In units of the least double."""
        matrix, heads, labels = self._tree
        deps = np.arange(1, len(heads))
        edges = matrix[heads[1:], deps] if labels is None else matrix[heads[1:], deps, labels[1:]]
        fractions = map(float.as_integer_ratio, edges.tolist())  # over powers of two
        return sum(above << (_BITS_BEHIND_THE_POINT + 1 - below.bit_length()) for above, below in fractions)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BestFirst) and self._score == other._score

    def __lt__(self, other: BestFirst) -> bool:
        return self._score > other._score
