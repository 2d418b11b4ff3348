"""Names of words and labels, for people: numbers stay what everything is computed with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ._options import read_list

if TYPE_CHECKING:
    from ._batch import Batch

Words = list[tuple[str, ...]]


def read_words(batch: Batch, words: Sequence[Any]) -> Words:
    """The words of each sentence: n strings for one sentence; for a batch a list of them, nested like its axes."""
    wanted = "words must be a list of strings for each sentence"
    sentences = [read_list(wanted, words)]
    for _ in (0,) if batch.leading is None else batch.leading:
        sentences = [read_list(wanted, sentence) for part in sentences for sentence in part]
    if len(sentences) != len(batch):
        raise ValueError(f"words are for {len(sentences)} sentences; the batch has {len(batch)}")
    for i, (sentence, n) in enumerate(zip(sentences, batch.lengths, strict=True)):
        if len(sentence) != n:
            raise ValueError(f"{batch.name(i)} has {n} words and was given the names of {len(sentence)}")
    return [tuple(str(word) for word in sentence) for sentence in sentences]


def read_labels(batch: Batch, labels: Sequence[str]) -> tuple[str, ...]:
    return names_of_labels(labels, batch.labelled, batch.labels if len(batch) else None)


def names_of_labels(labels: Sequence[str], labelled: bool, count: int | None) -> tuple[str, ...]:
    """The names of so many labels, one for each; of any number if nobody knows how many there are."""
    if not labelled:
        raise ValueError("names of labels need labelled scores; say labelled=True")
    wanted = "labels must be a list of names" if count is None else f"labels must be a list of {count} names"
    names = tuple(str(label) for label in read_list(wanted, labels))
    if count is not None and len(names) != count:
        raise ValueError(f"{wanted}, not of {len(names)}")
    twice = same_names(names)
    if twice is not None:
        raise ValueError(f"labels: {twice}")
    return names


def same_names(names: Sequence[str]) -> str | None:
    """Which labels cannot be told apart by their names, as a sentence; None if all can."""
    first: dict[str, int] = {}
    for number, name in enumerate(names):
        if first.setdefault(name, number) != number:
            return f"the labels {first[name]} and {number} have the same name, {name!r}"
    return None


def label_number(label: Any, names: tuple[str, ...] | None, option: str) -> int:
    """A label by its number, or by its name."""
    if isinstance(label, str):
        if names is None:
            raise ValueError(f"{option}: {label!r} is a name, and labels have none; give labels=[...] or a number")
        if label not in names:
            raise ValueError(f"{option}: no label is called {label!r}")
        return names.index(label)
    if isinstance(label, bool) or not isinstance(label, (int, np.integer)):
        raise ValueError(f"{option}: a label is a number or a name, not {label!r}")
    return int(label)


def node_name(words: Sequence[str] | None, node: int) -> str:
    """How to speak of a node: ROOT, the word and its number, or its number."""
    if node <= 0:
        return "ROOT" if node == 0 else "none"
    return f"{words[node - 1]}({node})" if words is not None else f"word {node}"
