"""How a distribution looks in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

from ._batch import Batch
from ._decoding import Decoded

_MOST_ROWS = 20


def summary(title: str, batch: Batch, decoded: Decoded) -> str:
    """The best tree of one sentence, word by word; or the best scores of a batch, sentence by sentence."""
    table = _words(batch, decoded, decoded.scores[0]) if batch.leading == () else _sentences(batch, decoded.scores)
    return f"<div><code>{escape(title)}</code>{table}</div>"


def _words(batch: Batch, decoded: Decoded, score: float) -> str:
    words = int(batch.lengths[0])
    rows: list[Sequence[object]] = []
    for word in range(1, min(words, _MOST_ROWS) + 1):
        head = int(decoded.heads[word])
        label = () if decoded.labels is None else (int(decoded.labels[word]),)
        rows.append((word, "ROOT" if head == 0 else head if head > 0 else "none", *label))
    columns = ("word", "head in the best tree", *(() if decoded.labels is None else ("label",)))
    return _table(columns, rows, words, "words") + f"<p>score {score:.6g}</p>"


def _sentences(batch: Batch, scores: Iterable[float]) -> str:
    names = np.ndindex(*batch.leading) if batch.leading is not None else ((i,) for i in range(len(batch)))
    shown = zip(names, batch.lengths, scores, strict=True)
    rows = [(", ".join(map(str, name)), int(words), f"{score:.6g}") for name, words, score in shown][:_MOST_ROWS]
    return _table(("sentence", "words", "score of the best tree"), rows, len(batch), "sentences")


def _table(columns: Iterable[str], rows: Sequence[Sequence[object]], total: int, what: str) -> str:
    header = "".join(f"<th>{column}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    more = f"<p>and {total - len(rows)} more {what}</p>" if total > len(rows) else ""
    return f"<table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>{more}"
