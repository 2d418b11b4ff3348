"""What is raised when a sentence has no tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ._batch import Batch
    from ._read import IntArray


class InfeasibleError(ValueError):
    """A sentence has no tree.

    Attributes
    ----------
    sentence : int
        Its index in the batch (0 for one sentence).
    word : int
        A word that cannot be attached.
    """

    def __init__(self, message: str, sentence: int, word: int) -> None:
        super().__init__(message)
        self.sentence = sentence
        self.word = word

    def __reduce__(self) -> tuple[type[InfeasibleError], tuple[str, int, int]]:
        return InfeasibleError, (str(self), self.sentence, self.word)


def raise_infeasible(batch: Batch, unattachable: IntArray, what: str) -> None:
    """Names the first sentence without a tree. `unattachable` holds a word per sentence, 0 where a tree exists."""
    sentence = int(np.flatnonzero(unattachable)[0])
    word = int(unattachable[sentence])
    raise InfeasibleError(describe_infeasible(batch, sentence, word, what), sentence, word)


def describe_infeasible(batch: Batch, sentence: int, word: int, what: str) -> str:
    return f"{batch.name(sentence)} {has_none(what, word)}"


def has_none(what: str, word: int) -> str:
    return f"has no {what}: word {word} cannot be attached"


def name_of_trees(root: str, projective: bool) -> str:
    kind = "projective tree" if projective else "tree"
    return f"{kind} with one root" if root == "single" else kind
