"""`spantree annotate --ray`: the shards of `shards.py` as tasks of Ray Data.

The shards, and what is in them, are those of the command on one machine, so the output is the same, byte for byte. A
task reads its rows of the score file, annotates them and puts its shard in place when it is whole; it returns only what
went wrong. So a lost worker costs its shard, which Ray starts again, and a lost driver nothing that is finished.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import set_threads
from .._annotations import Options, annotate
from ..files import open_scores, whole_file
from ._common import Work
from .annotate import rendered
from .shards import SENTENCES, shard_name, write_parts


def plan(path: str, start: int) -> list[tuple[int, int]]:
    """First and last (excluded) sentence of each shard of a Parquet file, from `start` on, as its batches fall."""
    import pyarrow.parquet as pq

    from ..files.scores import _SENTENCES

    metadata = pq.read_metadata(path)
    shards, first, end = [], 0, 0
    for group in range(metadata.num_row_groups):
        rows = metadata.row_group(group).num_rows
        for size in [_SENTENCES] * (rows // _SENTENCES) + [rows % _SENTENCES] * (rows % _SENTENCES > 0):
            end += size
            if end - first >= SENTENCES:
                shards.append((first, end))
                first = end
    if end > first:
        shards.append((first, end))
    return [shard for shard in shards if shard[0] >= start]


@dataclass(frozen=True)
class ShardTask:
    """Annotates one shard and writes it; returns sentences, from 1, and what is wrong with them."""

    scores: str
    folder: str
    suffix: str
    options: Options

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        start, end = int(row["start"]), int(row["end"])
        set_threads(1)
        parts, sentences, reasons = [], [], []
        with open_scores(self.scores, start) as file:
            for batch in file.batches:
                if batch.first >= end:
                    break
                found = annotate(batch.scores, self.options)
                for i in sorted(found.errors):
                    sentences.append(batch.first + i + 1)
                    reasons.append(found.errors[i])
                parts.append(rendered(Work(batch), found, file, self.suffix))
        with whole_file(Path(self.folder) / shard_name(start, end, self.suffix)) as target:
            write_parts(parts, target, self.suffix)
        return {"start": start, "end": end, "sentences": sentences, "reasons": reasons}


def run_tasks(address: str, shards: list[tuple[int, int]], task: Any) -> Iterator[dict[str, Any]]:
    """What each task returns, as they finish. `address` is that of a cluster, or ``local``."""
    import ray

    ray.init(address=None if address == "local" else address, log_to_driver=False, include_dashboard=False)
    try:
        rows = [{"start": start, "end": end} for start, end in shards]
        ray.data.DataContext.get_current().enable_progress_bars = False
        work = ray.data.from_items(rows, override_num_blocks=max(len(rows), 1)).map(task, num_cpus=1)
        yield from work.iter_rows()
    finally:
        ray.shutdown()
