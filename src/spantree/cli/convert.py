"""`spantree convert`: the same trees, or the same scores, in another format."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from ..files import ScoreFile, holds_scores, open_scores, read_trees, whole_file, write_trees
from ._common import OptionError, one_line_errors

_TREES = (".conllu", ".jsonl", ".json", ".parquet", "-")


@one_line_errors
def convert(
    source: Annotated[str, typer.Argument(help="Trees or scores.")],
    target: Annotated[str, typer.Argument(help="Trees: .conllu, .jsonl, .parquet. Scores: .parquet, .arrow.")],
) -> None:
    """The same trees, or the same scores, in another format.

    Trees: CoNLL-U, JSON lines and Parquet, each to each (of CoNLL-U only words, heads and labels). Scores: any format
    to Parquet or Arrow; - is a stream of Arrow, which other commands read from theirs.

    \b
    Example:
      spantree convert scores.npz scores.parquet
    """
    ending = "-" if target == "-" else Path(target).suffix
    if holds_scores(source):
        if ending not in (".parquet", ".arrow", "-"):
            raise OptionError(f"{target}: scores go to .parquet or .arrow")
        with open_scores(source) as file, whole_file(target) as out:
            _write_scores(file, out, ending)
        return
    if ending not in _TREES:
        raise OptionError(f"{target}: trees go to .conllu, .jsonl or .parquet")
    with whole_file(target) as out:
        write_trees(read_trees(source), out, target)


def _write_scores(file: ScoreFile, out: Any, ending: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = _rows(file)
    first = next(rows, None)
    if first is None:
        raise OptionError(f"{file.name}: no sentences")
    names = file.label_names
    schema = first.schema.with_metadata(None if names is None else {"labels": json.dumps(names, ensure_ascii=False)})
    writers = {".parquet": pq.ParquetWriter, ".arrow": pa.ipc.new_file, "-": pa.ipc.new_stream}
    with writers[ending](out, schema) as writer:
        for batch in chain([first], rows):
            writer.write_batch(batch.replace_schema_metadata(schema.metadata))


def _rows(file: ScoreFile) -> Iterator[Any]:
    import numpy as np
    import pyarrow as pa

    for batch in file.batches:
        words = np.array([len(one) - 1 for one in batch.scores], np.int32)
        ids = batch.ids or [str(batch.first + i + 1) for i in range(len(words))]
        columns = {"id": pa.array(ids), "n": pa.array(words)}
        columns["scores"] = _lists([one.ravel() for one in batch.scores])
        if batch.heads is not None:
            columns["gold_heads"] = _lists([one[1:].astype(np.int32) for one in batch.heads])
        if batch.labels is not None:
            columns["gold_labels"] = _lists([one[1:].astype(np.int32) for one in batch.labels])
        yield pa.record_batch(columns)


def _lists(rows: list[Any]) -> Any:
    import numpy as np
    import pyarrow as pa

    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.concatenate(rows)))
