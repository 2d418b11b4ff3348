"""A report to look at: all sentences in one HTML file that opens offline, with the scores in it.

The page draws the trees and recomputes marginals at any temperature (`report.js`: the core's method, in logarithms).
Everything is text and numbers: nothing is fetched, and nothing of the data is ever read as HTML.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Any, BinaryIO, Literal

import numpy as np
import numpy.typing as npt

from .. import TreeDistribution
from .layout import printable, runs_right_to_left

K = 10  # best trees of a sentence

_BINS = 10


@dataclass(slots=True)
class ReportSentence:
    """A sentence of the report; heads are (n+1,)."""

    name: str
    words: list[str]
    scores: npt.NDArray[Any]
    """Shape (n+1, n+1), ``[head, dep]``."""
    labels: list[str] | None = None
    """Of the best tree."""
    gold: npt.NDArray[np.int64] | None = None
    gold_labels: list[str] | None = None


def write_report(
    sentences: Iterable[ReportSentence],
    target: BinaryIO,
    *,
    title: str,
    root: Literal["single", "multi"] = "single",
    projective: bool = False,
) -> int:
    """Writes the page and returns the number of sentences in it. Those without words are left out.

    Raises
    ------
    ValueError
        A score is bad, or a sentence has no tree; the message names the sentence.
    """
    records, bins = [], np.zeros((_BINS, 3))
    exact = True
    for number, sentence in enumerate(sentences):
        if sentence.words:
            try:
                records.append(_record(sentence, number, root, projective, bins))
            except ValueError as error:
                raise ValueError(f"{sentence.name}: {error}") from error
            exact = exact and _fits_single(sentence.scores)
    bits = 32 if exact else 64
    for record in records:
        record["scores"] = base64.b64encode(record["scores"].astype(f"<f{bits // 8}").tobytes()).decode()
    data = {"sentences": records, "bits": bits, "root": root, "projective": projective}
    data["calibration"] = bins.tolist() if bins.any() else None
    words = sum(len(record["words"]) for record in records)
    page = files(__package__).joinpath("report.html").read_text(encoding="utf-8")
    parts = {
        "title": escape(title),
        "about": f"{len(records)} sentences, {words} words; trees with {_kind(root, projective)}",
        "data": json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c"),
        "script": files(__package__).joinpath("report.js").read_text(encoding="utf-8"),
    }
    for piece in re.split(r"({{\w+}})", page):
        target.write(
            parts.get(piece.strip("{}"), piece).encode(errors="replace") if piece[:2] == "{{" else piece.encode()
        )
    return len(records)


def _kind(root: str, projective: bool) -> str:
    roots = "one root" if root == "single" else "any number of roots"
    return f"{roots} and no crossing arcs" if projective else roots


def _record(
    sentence: ReportSentence,
    number: int,
    root: Literal["single", "multi"],
    projective: bool,
    bins: npt.NDArray[np.float64],
) -> dict[str, Any]:
    n = len(sentence.words)
    scores = np.asarray(sentence.scores, np.float64)
    dist = TreeDistribution(scores, root=root, projective=projective)
    trees = dist.topk(K)
    heads, marginals = trees.heads[0], dist.marginals()
    mbr = dist.mbr()
    record: dict[str, Any] = {
        "number": number,
        "id": printable(sentence.name),
        "words": [printable(word) for word in sentence.words],
        "backwards": runs_right_to_left(sentence.words),
        "heads": heads[1:].tolist(),
        "entropy": float(dist.entropy()),
        "best": [
            [float(score), [[int(dep), int(tree[dep])] for dep in np.flatnonzero(tree != heads)]]
            for tree, score in zip(trees.heads, trees.scores, strict=True)
            if np.isfinite(score)
        ],
        "scores": scores.T[1:][~np.eye(n + 1, dtype=bool)[1:]],
    }
    if sentence.labels is not None:
        record["labels"] = sentence.labels
    if not np.array_equal(mbr, heads):
        record["mbr"] = mbr[1:].tolist()
    if sentence.gold is not None and (sentence.gold[1:] >= 0).all():
        record["gold"] = sentence.gold[1:].tolist()
        if sentence.gold_labels is not None:
            record["goldLabels"] = sentence.gold_labels
        p = np.minimum(marginals[heads[1:], np.arange(1, n + 1)], 1.0)
        places = np.minimum((p * _BINS).astype(int), _BINS - 1)
        for column, values in enumerate((np.ones(n), p, sentence.gold[1:] == heads[1:])):
            np.add.at(bins[:, column], places, values)
    return record


def _fits_single(scores: npt.NDArray[Any]) -> bool:
    """Whether every score is the same number in 32 bits."""
    return scores.dtype.itemsize <= 4 or np.array_equal(scores.astype(np.float32).astype(scores.dtype), scores, True)
