"""Trees with their words in three formats: CoNLL-U, JSON lines, Parquet.

A JSON line, or a row of Parquet, is a sentence; heads are those of the words, 0 for ROOT:

    {"id": "s1", "words": ["She", "sleeps"], "heads": [2, 0], "labels": ["nsubj", "root"]}

Without ``words``, their numbers stand for them; ``id`` and ``labels`` may be missing too, and heads that are not known.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from ._errors import BadFileError, naming
from .conllu import LONGEST_LINE, Sentence, chunks_of, read_conllu
from .output import standard_input

_ROWS = 1024  # a group of rows of Parquet
_BROKEN_GZ = (EOFError, gzip.BadGzipFile, zlib.error)
_BREAKS = re.compile(r"[\t\r\n]+")  # what cannot stand in a column of CoNLL-U; spaces of all kinds can


@dataclass(slots=True)
class Tree:
    """A sentence with its tree."""

    words: list[str]
    heads: npt.NDArray[np.int64]
    """Shape (n+1,): -1 for ROOT, -2 where unknown."""
    labels: list[str] | None = None
    id: str | None = None


@contextmanager
def open_bytes(path: str | Path) -> Iterator[BinaryIO]:
    """A file to read: ``-`` is standard input, ``.gz`` is unpacked on the way."""
    if str(path) == "-":
        yield standard_input()
    elif str(path).endswith(".gz"):
        with gzip.open(path) as file:
            yield file  # type: ignore[misc]
    else:
        with Path(path).open("rb") as file:
            yield file


def sentences_of(path: str | Path) -> Iterator[Sentence]:
    """The pieces of a CoNLL-U file, ``.gz`` or not."""
    with open_bytes(path) as file:
        try:
            yield from read_conllu(chunks_of(file), str(path))
        except _BROKEN_GZ as error:
            raise BadFileError(path, "a broken .gz file") from error


def read_trees(path: str | Path) -> Iterator[Tree]:
    """The trees of a file, one after the other. The name's ending says the format; without a known one, CoNLL-U.

    Raises
    ------
    BadFileError
        The file is not what its name says.
    """
    name = str(path).removesuffix(".gz")
    if name.endswith((".jsonl", ".json")):
        yield from _read_jsonl(path)
    elif name.endswith(".parquet"):
        yield from _read_parquet(path)
    else:
        yield from (Tree(s.words, s.heads(), s.labels, s.id) for s in sentences_of(path) if len(s))


def write_trees(trees: Iterable[Tree], target: BinaryIO, name: str) -> None:
    """Writes trees in the format that the name's ending says."""
    if name.endswith((".jsonl", ".json")):
        for tree in trees:
            target.write(json.dumps(_record(tree), ensure_ascii=False).encode() + b"\n")
    elif name.endswith(".parquet"):
        _write_parquet(trees, target)
    else:
        for tree in trees:
            target.write(conllu_of(tree))


def conllu_of(tree: Tree) -> bytes:
    """A sentence in CoNLL-U: ID, FORM, HEAD and DEPREL; the other columns are ``_``.

    Examples
    --------
    >>> print(conllu_of(Tree(["Go"], np.array([-1, 0]), ["root"])).decode().replace("\\t", " "), end="")
    1 Go _ _ _ _ 0 root _ _
    <BLANKLINE>
    """
    lines = [] if tree.id is None else [f"# sent_id = {_cell(tree.id)}"]
    labels = tree.labels or ["_"] * len(tree.words)
    for i, (word, head, label) in enumerate(zip(tree.words, tree.heads[1:].tolist(), labels, strict=True), start=1):
        lines.append(f"{i}\t{_cell(word)}\t_\t_\t_\t_\t{head if head >= 0 else '_'}\t{_cell(label)}\t_\t_")
    return ("\n".join(lines) + "\n\n").encode(errors="surrogateescape")


def _cell(text: str) -> str:
    return _BREAKS.sub(" ", text) or "_"


def _record(tree: Tree) -> dict[str, Any]:
    heads = [head if head >= 0 else None for head in tree.heads[1:].tolist()]
    return {"id": tree.id, "words": tree.words, "heads": heads, "labels": tree.labels}


def _from_record(record: Any, file: str | Path, sentence: int) -> Tree:
    where = f"sentence {sentence}"
    if not isinstance(record, dict):
        raise BadFileError(file, where, "is no JSON object")
    words, heads, labels = record.get("words"), record.get("heads"), record.get("labels")
    if words is None and isinstance(heads, list):  # as `spantree annotate` writes where it is not told the words
        words = [str(number) for number in range(1, len(heads) + 1)]
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise BadFileError(file, where, "words", "must be a list of texts")
    n = len(words)
    heads = [None] * n if heads is None else heads
    if not isinstance(heads, list) or len(heads) != n:
        raise BadFileError(file, where, "heads", f"must be a list of {n} numbers")
    for word, head in enumerate(heads, start=1):
        if head is not None and (isinstance(head, bool) or not isinstance(head, int) or not 0 <= head <= n):
            raise BadFileError(file, where, f"word {word}", f"head is {head!r}, not a number from 0 to {n}")
    if labels is not None and (not isinstance(labels, list) or len(labels) != n):
        raise BadFileError(file, where, "labels", f"must be a list of {n} texts")
    name = None if record.get("id") is None else str(record["id"])
    names = None if labels is None else ["_" if label is None else str(label) for label in labels]
    try:
        "".join([*words, *(names or ()), name or ""]).encode()
    except UnicodeEncodeError as error:
        raise BadFileError(file, where, "a text with half of a character: one of a pair of surrogates") from error
    known = np.array([-1, *(-2 if head is None else head for head in heads)], np.int64)
    return Tree(words, known, names, name)


def _read_jsonl(path: str | Path) -> Iterator[Tree]:
    with open_bytes(path) as file:
        for number in count(1):
            try:
                line = file.readline(LONGEST_LINE)
            except _BROKEN_GZ as error:
                raise BadFileError(path, "a broken .gz file") from error
            if not line:
                return
            if len(line) == LONGEST_LINE:
                raise BadFileError(
                    path, f"line {number}", f"more than {LONGEST_LINE >> 20} MiB: no sentence is so long"
                )
            if line.strip():
                try:
                    record = json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise BadFileError(path, f"line {number}", f"no JSON: {error}") from error
                yield _from_record(record, path, number)


def _read_parquet(path: str | Path) -> Iterator[Tree]:
    import pyarrow.parquet as pq

    from .scores import PARQUET

    with naming(path), pq.ParquetFile(path, **PARQUET) as file:
        records = (record for batch in file.iter_batches(_ROWS) for record in batch.to_pylist())
        yield from (_from_record(record, path, number) for number, record in enumerate(records, start=1))


def _write_parquet(trees: Iterable[Tree], target: BinaryIO) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    texts = pa.list_(pa.string())
    fields = [("id", pa.string()), ("words", texts), ("heads", pa.list_(pa.int32())), ("labels", texts)]
    rows = iter(trees)
    with pq.ParquetWriter(target, pa.schema(fields)) as writer:
        while group := [_record(tree) for tree in islice(rows, _ROWS)]:
            writer.write_batch(pa.RecordBatch.from_pylist(group, schema=writer.schema))
