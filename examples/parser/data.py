"""Treebanks as tensors: CoNLL-U (plain or gzipped) or plain text in, padded batches out.

A batch of B sentences has ROOT in front of each, so that position d is word d:

    words, tags, labels   (B, n+1)   numbers from the vocabulary
    heads                 (B, n+1)   gold heads; 0 at ROOT and in the padding
    lengths               (B,)       numbers of words, without ROOT
    forms                 (U, L)     the characters of the U different words of the batch
    form_of               (B, n+1)   which of them each word is
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from spantree.files import BadFileError, Sentence, Tree, conllu_of, open_bytes, read_conllu, sentences_of
from torch import Tensor

PAD, UNKNOWN, ROOT = "<pad>", "<unknown>", "<root>"
UPOS = 3


@dataclass
class Example:
    """One sentence, ROOT left out."""

    words: list[str]
    tags: list[str]
    heads: list[int]
    labels: list[str]
    source: Sentence


def read(path: str) -> list[Example]:
    """The sentences of a file: CoNLL-U, or (``.txt``) one sentence a line, words apart by spaces, without tags."""
    try:
        return _read(path)
    except (BadFileError, OSError) as error:
        raise SystemExit(str(error)) from error


def is_text(path: str) -> bool:
    """Whether a file is one of plain text, by its name."""
    return path.removesuffix(".gz").endswith(".txt")


def _read(path: str) -> list[Example]:
    if not is_text(path):
        return [_example(sentence) for sentence in sentences_of(path) if len(sentence)]
    with open_bytes(path) as lines:
        words = [line.decode(errors="replace").split() for line in lines]
    trees = (conllu_of(Tree(line, torch.full((len(line) + 1,), -2).numpy())) for line in words if line)
    return [_example(sentence) for sentence in read_conllu(trees, path) if len(sentence)]


def _example(sentence: Sentence) -> Example:
    tags = [tag for (tag,) in sentence.columns(UPOS)]
    return Example(sentence.words, tags, sentence.heads()[1:].tolist(), sentence.labels, sentence)


class Vocabulary:
    """Numbers for words, characters, tags and labels. Words seen once are unknown: their characters must do."""

    def __init__(self, tables: dict[str, list[str]]) -> None:
        self.tables = tables
        self.number = {name: {item: i for i, item in enumerate(items)} for name, items in tables.items()}

    @classmethod
    def of(cls, examples: Iterable[Example]) -> Vocabulary:
        examples = list(examples)
        words = Counter(word for example in examples for word in example.words)
        specials = [PAD, UNKNOWN, ROOT]
        return cls(
            {
                "words": specials + sorted(word for word, count in words.items() if count > 1),
                "characters": specials + sorted({character for word in words for character in word}),
                "tags": specials + sorted({tag for example in examples for tag in example.tags} - {"_"}),
                "labels": sorted({label for example in examples for label in example.labels}),
            }
        )

    def size(self, name: str) -> int:
        return len(self.tables[name])

    def numbers(self, name: str, items: Iterable[str]) -> list[int]:
        unknown = self.number[name].get(UNKNOWN, -1)
        return [self.number[name].get(item, unknown) for item in items]


@dataclass
class Batch:
    words: Tensor
    tags: Tensor
    forms: Tensor
    form_of: Tensor
    heads: Tensor
    labels: Tensor
    lengths: Tensor
    examples: list[Example]

    @property
    def mask(self) -> Tensor:
        """True at words, (B, n+1)."""
        positions = torch.arange(self.words.shape[1])
        return (positions > 0) & (positions <= self.lengths[:, None])


def collate(examples: list[Example], vocabulary: Vocabulary) -> Batch:
    forms = [[ROOT]] + [list(form) for form in sorted({word for example in examples for word in example.words})]
    number_of_form = {"".join(form): i for i, form in enumerate(forms)}
    rows = [[ROOT, *example.words] for example in examples]
    return Batch(
        words=_pad([vocabulary.numbers("words", row) for row in rows]),
        tags=_pad([vocabulary.numbers("tags", [ROOT, *example.tags]) for example in examples]),
        forms=_pad([vocabulary.numbers("characters", form) for form in forms]),
        form_of=_pad([[number_of_form[word] for word in row] for row in rows]),
        heads=_pad([[0, *example.heads] for example in examples]),
        labels=_pad([[0, *vocabulary.numbers("labels", example.labels)] for example in examples]),
        lengths=torch.tensor([len(example.words) for example in examples]),
        examples=examples,
    )


def _pad(rows: list[list[int]]) -> Tensor:
    return torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True)


def cut(examples: list[Example], words_per_batch: int, generator: torch.Generator | None = None) -> list[list[Example]]:
    """Batches of sentences of like length; with a generator in random order."""
    order = range(len(examples)) if generator is None else torch.randperm(len(examples), generator=generator).tolist()
    by_length = sorted((examples[i] for i in order), key=lambda example: len(example.words))
    batches: list[list[Example]] = [[]]
    for example in by_length:
        if batches[-1] and (len(batches[-1]) + 1) * (len(example.words) + 1) > words_per_batch:
            batches.append([])
        batches[-1].append(example)
    if generator is None:
        return batches
    return [batches[i] for i in torch.randperm(len(batches), generator=generator).tolist()]


def batches_of(examples: list[Example], vocabulary: Vocabulary, words_per_batch: int) -> Iterator[Batch]:
    return (collate(batch, vocabulary) for batch in cut(examples, words_per_batch))
