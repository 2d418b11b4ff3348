"""How a distribution looks in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

from ._batch import Batch
from ._decoding import Decoded
from ._names import Words, node_name

_MOST_ROWS = 20


def summary(
    title: str, batch: Batch, decoded: Decoded, words: Words | None = None, labels: tuple[str, ...] | None = None
) -> str:
    """The best tree of one sentence, word by word; or the best scores of a batch, sentence by sentence."""
    table = (
        _words(batch, decoded, decoded.scores[0], None if words is None else words[0], labels)
        if batch.leading == ()
        else _sentences(batch, decoded.scores, words)
    )
    return f"<div><code>{escape(title)}</code>{table}</div>"


def _words(
    batch: Batch, decoded: Decoded, score: float, names: tuple[str, ...] | None, labels: tuple[str, ...] | None
) -> str:
    words = int(batch.lengths[0])
    rows: list[Sequence[object]] = []
    for word in range(1, min(words, _MOST_ROWS) + 1):
        head = int(decoded.heads[word])
        number = -1 if decoded.labels is None else int(decoded.labels[word])
        label = () if decoded.labels is None else (labels[number] if labels and number >= 0 else number,)
        plain = names is None
        rows.append(
            (
                word if plain else node_name(names, word),
                head if plain and head > 0 else node_name(names, head),
                *label,
            )
        )
    columns = ("word", "head in the best tree", *(() if decoded.labels is None else ("label",)))
    return _table(columns, rows, words, "words") + f"<p>score {score:.6g}</p>"


def _sentences(batch: Batch, scores: Iterable[float], words: Words | None) -> str:
    numbers = np.ndindex(*batch.leading) if batch.leading is not None else ((i,) for i in range(len(batch)))
    names = [", ".join(map(str, number)) for number in numbers]
    if words is not None:
        names = [f"{name}: {' '.join(sentence)}" for name, sentence in zip(names, words, strict=True)]
    shown = zip(names, batch.lengths, scores, strict=True)
    rows = [(name, int(count), f"{score:.6g}") for name, count, score in shown][:_MOST_ROWS]
    return _table(("sentence", "words", "score of the best tree"), rows, len(batch), "sentences")


def _table(columns: Iterable[str], rows: Sequence[Sequence[object]], total: int, what: str) -> str:
    header = "".join(f"<th>{column}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    more = f"<p>and {total - len(rows)} more {what}</p>" if total > len(rows) else ""
    return f"<table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>{more}"
