"""Asks questions about sentences in every form, and collects what is wrong with the answers."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import spantree
from oracle import structures
from oracle.forms import FORMS, Form
from oracle.quantities import Kind, Question, expected
from oracle.sentence import Sentence

KINDS = [Kind(root, projective) for projective in (False, True) for root in ("single", "multi")]
LABELS = [0, 1, 3]
DTYPES = [np.float64, np.float32]


@dataclass(frozen=True)
class Failure:
    """One answer that is wrong."""

    question: str
    kind: Kind
    form: Form
    sentence: Sentence
    complaint: str

    def __str__(self) -> str:
        kind = f"{self.kind.root}{', projective' if self.kind.projective else ''}"
        scores = self.sentence.scores
        return (
            f"{self.question} ({kind}; {self.form}; {scores.dtype}; {self.sentence.name}): {self.complaint}\n{scores!r}"
        )


@cache
def sentences(group: str, labels: int, dtype: type, seed: int = 0) -> list[Sentence]:
    """Up to four words; two or three with labels, or there would be too many trees."""
    largest = {0: 4, 1: 3, 3: 2 + (group in ("ordinary", "ties", "hard masks"))}[labels]
    return [Sentence(f"{group}: {name}", m) for name, m in structures.matrices(group, labels, dtype, seed, largest)]


def distribution(form: Form, batch: list[Sentence], kind: Kind) -> spantree.TreeDistribution:
    return spantree.TreeDistribution(**arguments(form, batch, kind))


def arguments(form: Form, batch: list[Sentence], kind: Kind) -> dict[str, Any]:
    """Scores, and all that is said about them."""
    options = {"labelled": bool(batch[0].labels), "on_infeasible": "mask"}
    return form.scores([sentence.scores for sentence in batch]) | form.options(batch) | kind.options | options


def failures(
    questions: Iterable[Question], everything: list[Sentence], kind: Kind, forms: Iterable[Form] = FORMS
) -> Iterator[Failure]:
    """Warnings are failures too."""
    questions = list(questions)
    for form in forms:
        for batch in form.batches(everything):
            dist = distribution(form, batch, kind)
            for question in questions:
                for sentence, complaint in _complaints(question, dist, form, batch, kind):
                    yield Failure(question.name, kind, form, sentence, complaint)


def _complaints(
    question: Question, dist: Any, form: Form, batch: list[Sentence], kind: Kind
) -> Iterator[tuple[Sentence, str]]:
    dtype = batch[0].scores.dtype
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            answers = question.ask(dist, form, batch)
    except Exception as error:
        yield batch[0], f"{type(error).__name__}: {error}"
        return
    for sentence, parts in zip(batch, answers, strict=True):
        for i, (part, wanted) in enumerate(zip(parts, expected(question, sentence, kind), strict=False)):
            complaint = wanted.complaint(part, dtype)
            if complaint:
                yield sentence, complaint if i == 0 else f"gradient: {complaint}"
