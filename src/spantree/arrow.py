"""Columns of Arrow to sentences and back: the function that Ray Data, datasets, Spark, Dask and polars call.

A sentence is a row. Scores, dense or a few candidates for each word:

=============  =======================  ============================================================================
column         type                     meaning
=============  =======================  ============================================================================
``id``         string, optional         carried along
``n``          integer                  words
``scores``     list<float>              the matrix ``[head, dependent]``, row by row: (n+1)² numbers; labels: times Y
``heads``      list<list<int>>          or: for each word its candidate heads ...
``scores``     list<list<float>>        ... and their scores; all other edges are forbidden
``labels``     list<list<int>>          ... and the labels of the candidates, if there are labels
``gold_heads`` list<int>, optional      gold heads of the words, 0 for ROOT; ``gold_labels`` likewise
=============  =======================  ============================================================================

Labels are named in the schema's metadata: ``labels`` holds their names as JSON, and makes the scores labelled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ._annotations import Annotations, Options, annotate
from ._flat import Candidates, FlatScores
from .files._errors import BadFileError
from .files.scores import MOST_BYTES, IntArray, _names_in_json


@dataclass(slots=True)
class Columns:
    """The sentences of a record batch."""

    scores: Sequence[npt.NDArray[Any]]
    ids: list[str | None] | None
    heads: list[IntArray] | None
    labels: list[IntArray] | None


def label_names(schema: pa.Schema, file: str = "Arrow") -> list[str] | None:
    """The names of the labels; None where the scores have none."""
    names = (schema.metadata or {}).get(b"labels")
    return None if names is None else _names_in_json(names, file)


def columns_of(batch: pa.RecordBatch, file: str = "Arrow", first: int = 0) -> Columns:
    """The scores of each row, where they lie in the column if it is dense.

    Raises
    ------
    BadFileError
        A column is missing, of the wrong type, has nulls, or its lists do not have the lengths that ``n`` asks for.
    """
    try:
        batch.validate(full=True)  # offsets from a file are not to be trusted
    except pa.ArrowInvalid as error:
        raise BadFileError(file, str(error).splitlines()[0]) from error
    reader = _Reader(batch, file, first)
    words = reader.integers("n")
    labels = len(label_names(batch.schema, file) or ())
    longest = math.isqrt(MOST_BYTES // (4 * max(labels, 1))) - 1
    wrong = np.flatnonzero((words < 0) | (words > longest))
    if len(wrong):
        raise reader.trouble(int(wrong[0]), "n", f"{words[wrong[0]]} words")
    ids = None
    if "id" in batch.schema.names:
        ids = [None if one is None else str(one) for one in batch.column("id").to_pylist()]
    candidates = "heads" in batch.schema.names
    return Columns(
        reader.candidates(words, labels) if candidates else reader.dense(words, labels),
        ids,
        reader.gold("gold_heads", words, words),
        reader.gold("gold_labels", words, np.full(len(words), labels - 1)) if labels else None,
    )


class _Reader:
    def __init__(self, batch: pa.RecordBatch, file: str, first: int) -> None:
        self.batch, self.file, self.first = batch, file, first

    def trouble(self, row: int, column: str, what: str) -> BadFileError:
        return BadFileError(self.file, f"sentence {self.first + row + 1}", column, what)

    def column(self, name: str) -> pa.Array:
        if name not in self.batch.schema.names:
            raise BadFileError(self.file, f"has no column {name!r}")
        column = self.batch.column(name)
        if column.null_count:
            row = column.is_null().to_numpy(zero_copy_only=False).argmax()
            raise self.trouble(int(row), name, "is null")
        return column

    def integers(self, name: str) -> IntArray:
        column = self.column(name)
        if not pa.types.is_integer(column.type):
            raise BadFileError(self.file, name, f"must be integers, not {column.type}")
        return np.asarray(column.to_numpy(zero_copy_only=False)).astype(np.int64)

    def lists(self, column: pa.Array, name: str) -> tuple[IntArray, pa.Array]:
        """Where each row's list starts and ends, (rows + 1,), and what is in them."""
        if pa.types.is_fixed_size_list(column.type):
            size = column.type.list_size
            return (column.offset + np.arange(len(column) + 1)) * size, column.values
        if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
            raise BadFileError(self.file, name, f"must be a list, not {column.type}")
        return column.offsets.to_numpy().astype(np.int64), column.values

    def numbers(self, values: pa.Array, bounds: IntArray, name: str, real: bool) -> npt.NDArray[Any]:
        """The values of all rows, one after the other; row i has those from bounds[i] to bounds[i + 1]."""
        wanted = pa.types.is_floating(values.type) or pa.types.is_integer(values.type)
        if not (wanted if real else pa.types.is_integer(values.type)):
            raise BadFileError(self.file, name, f"must hold {'numbers' if real else 'integers'}, not {values.type}")
        return np.asarray(self.without_nulls(values, bounds, name).to_numpy(zero_copy_only=True))

    def without_nulls(self, values: pa.Array, bounds: IntArray, name: str) -> pa.Array:
        ours = values.slice(bounds[0], bounds[-1] - bounds[0])
        if ours.null_count:
            place = bounds[0] + ours.is_null().to_numpy(zero_copy_only=False).argmax()
            raise self.trouble(int(np.searchsorted(bounds, place, side="right")) - 1, name, "holds nulls")
        return ours

    def dense(self, words: IntArray, labels: int) -> FlatScores:
        offsets, values = self.lists(self.column("scores"), "scores")
        numbers = self.numbers(values, offsets, "scores", real=True)
        wrong = np.flatnonzero(np.diff(offsets) != (words + 1) ** 2 * max(labels, 1))
        if len(wrong):
            row = int(wrong[0])
            need = (int(words[row]) + 1) ** 2 * max(labels, 1)
            what = f"{offsets[row + 1] - offsets[row]} numbers; {words[row]} words need {need}"
            raise self.trouble(row, "scores", what)
        return FlatScores(numbers, offsets[:-1] - offsets[0], words + 1, labels)

    def candidates(self, words: IntArray, labels: int) -> Candidates:
        names = ("heads", "scores", "labels") if labels else ("heads", "scores")
        columns, first_cuts = [], np.zeros(1, np.int64)
        for name in names:
            bounds, of_words = self.lists(self.column(name), name)
            wrong = np.flatnonzero(np.diff(bounds) != words)
            if len(wrong):
                raise self.trouble(int(wrong[0]), name, f"must have a list for each of the {words[wrong[0]]} words")
            self.without_nulls(of_words, bounds, name)
            cuts, values = self.lists(of_words, name)
            columns.append(self.numbers(values, cuts[bounds], name, real=name == "scores"))
            cuts = cuts[bounds[0] : bounds[-1] + 1] - cuts[bounds[0]]
            first_cuts = cuts if name == "heads" else first_cuts
            wrong = np.flatnonzero(cuts != first_cuts)
            if len(wrong):
                row = int(np.searchsorted(bounds - bounds[0], wrong[0] - 1, side="right")) - 1
                raise self.trouble(row, name, "must have as many entries for each word as 'heads'")
        heads, scores, *edge_labels = columns
        sentence = np.repeat(np.repeat(np.arange(len(words)), words), np.diff(first_cuts))  # of each candidate
        self.within("heads", "a candidate", heads, words[sentence], sentence)
        if labels:
            self.within("labels", "a label", edge_labels[0], np.full(len(sentence), labels - 1), sentence)
        values = scores if scores.dtype.kind == "f" else scores.astype(np.float64)
        return Candidates(values, heads, edge_labels[0] if labels else None, first_cuts, words + 1, labels)

    def within(self, name: str, what: str, numbers: npt.NDArray[Any], most: IntArray, sentence: IntArray) -> None:
        wrong = np.flatnonzero((numbers < 0) | (numbers > most))
        if len(wrong):
            raise self.trouble(int(sentence[wrong[0]]), name, f"{what} outside 0 to {most[wrong[0]]}")

    def gold(self, name: str, words: IntArray, most: IntArray) -> list[IntArray] | None:
        if name not in self.batch.schema.names:
            return None
        offsets, values = self.lists(self.column(name), name)
        numbers = self.numbers(values, offsets, name, real=False).astype(np.int64)
        offsets = offsets - offsets[0]
        out = []
        for row, n in enumerate(words.tolist()):
            one = np.concatenate([[-1], numbers[offsets[row] : offsets[row + 1]]])
            if len(one) != n + 1 or (n and (one.min() < -2 or one.max() > most[row])):
                raise self.trouble(row, name, f"must be {n} numbers up to {most[row]}")
            out.append(one)
        return out


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotate:
    """Trees and confidence for the scores of a record batch: RecordBatch in, RecordBatch out (or Table in, Table out).

    A plain function to map over any data set made of Arrow batches. It pickles, and runs in the thread that calls it:
    the engines call many of them side by side.

    Parameters
    ----------
    root, projective, layout : as for `spantree.TreeDistribution`
    temperature : scores are divided by it
    mbr : take the tree with the highest expected number of right heads
    confidence : add probabilities
    k : how many best trees to list in ``best``

    Returns
    -------
    pyarrow.RecordBatch
        ``id`` (if it was there), ``n``, ``heads: list<int32>`` of the words, 0 for ROOT; with labels ``labels:
        list<int32>``, named in the schema's metadata as those of the scores are; with `confidence` ``head_prob:
        list<float>``, ``log_odds: list<float>``, ``log_prob``, ``entropy``; with k > 1 ``best_heads:
        list<list<int32>>``, ``best_log_prob: list<double>`` and ``best_labels``; ``error``: null, or what is wrong with
        the sentence (a score that is NaN, no tree), whose heads are then -1.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from spantree.arrow import Annotate
    >>> batch = pa.record_batch({"n": [2], "scores": [[0, 1, 2, 0, 0, 3, 0, 5, 0.0]]})
    >>> Annotate()(batch).to_pylist()[0]["heads"]
    [2, 0]
    """

    root: Literal["single", "multi"] = "single"
    projective: bool = False
    layout: Literal["head_dep", "dep_head"] = "head_dep"
    temperature: float = 1.0
    mbr: bool = False
    confidence: bool = True
    k: int = 1

    def __post_init__(self) -> None:
        self.options(labelled=False)  # raises if one of them makes no sense

    def __call__(self, batch: Any) -> Any:
        if isinstance(batch, pa.Table):  # as Ray Data and datasets hand them over
            empty = pa.RecordBatch.from_pylist([], schema=batch.schema)
            return pa.Table.from_batches([self(part) for part in batch.to_batches() or [empty]])
        names = label_names(batch.schema)
        columns = columns_of(batch)
        options = self.options(names is not None)
        found = annotate(columns.scores, options)
        table = table_of(found, columns.ids)
        errors = [found.errors.get(i) for i in range(len(found.words))]
        table = table.append_column("error", pa.array(errors, pa.string()))
        return table if names is None else table.replace_schema_metadata({"labels": batch.schema.metadata[b"labels"]})

    def options(self, labelled: bool) -> Options:
        return Options(
            root=self.root,
            projective=self.projective,
            labelled=labelled,
            layout=self.layout,
            temperature=self.temperature,
            mbr=self.mbr,
            confidence=self.confidence,
            k=self.k,
            one_thread=True,
        )


def table_of(
    found: Annotations,
    ids: Sequence[str | None] | None,
    *,
    words: list[list[str]] | None = None,
    names: list[str] | None = None,
) -> pa.RecordBatch:
    """Annotations as a record batch: labels as numbers or, with the names of all labels, by their names."""
    counts = found.words
    first = np.cumsum(counts + 1) - counts  # word of each sentence, among the nodes
    nodes = _ranges(first, counts)
    columns: dict[str, pa.Array] = {} if ids is None else {"id": pa.array(ids, pa.string())}
    columns["n"] = pa.array(counts.astype(np.int32))
    if words is not None:
        columns["words"] = pa.array(words, pa.list_(pa.string()))
    columns["heads"] = _lists(found.heads[nodes].astype(np.int32), counts)
    if found.labels is not None:
        columns["labels"] = _lists(_labels(found.labels[nodes], names), counts)
    for name, values in (("head_prob", found.head_probs), ("log_odds", found.log_odds)):
        if values is not None:
            columns[name] = _lists(values[nodes].astype(np.float32), counts)
    for name, values in (("log_prob", found.log_prob), ("entropy", found.entropy)):
        if values is not None:
            columns[name] = pa.array(values.astype(np.float64))
    if found.best is not None:
        best = found.best
        sentence, rank = np.nonzero(~np.isneginf(best.log_probs.T))
        trees = np.bincount(sentence, minlength=len(counts))
        places = _ranges(rank * best.heads.shape[1] + first[sentence], counts[sentence])
        columns["best_heads"] = _lists(_lists(best.heads.ravel()[places].astype(np.int32), counts[sentence]), trees)
        columns["best_log_prob"] = _lists(best.log_probs[rank, sentence], trees)
        if best.labels is not None:
            labels = _labels(best.labels.ravel()[places], names)
            columns["best_labels"] = _lists(_lists(labels, counts[sentence]), trees)
    return pa.record_batch(columns)


def _labels(numbers: IntArray, names: list[str] | None) -> pa.Array:
    """Labels as numbers, or by their names; null for -1, where there is no tree."""
    labels = pa.array(numbers.astype(np.int32))
    return labels if names is None else pa.array(names, pa.string()).take(pa.array(numbers, mask=numbers < 0))


def _lists(values: Any, counts: IntArray) -> pa.Array:
    """Lists of so many entries each."""
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), values if isinstance(values, pa.Array) else pa.array(values))


def _ranges(starts: IntArray, counts: IntArray) -> IntArray:
    """start, start + 1, ..., start + count - 1 of each pair, in one row."""
    return np.repeat(starts - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
