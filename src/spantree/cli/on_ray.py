"""`spantree annotate --ray`: what the command does on one machine, by the workers of a cluster; byte for byte the same.

Score files can be read from the middle: the shards of `shards.py` are tasks of Ray Data. A task reads its part of the
file, annotates it and puts its shard in place when it is whole; it returns only what went wrong. So a lost worker
costs its shard, which Ray starts again, and a lost driver nothing that is finished.

What has no middle to begin at (compressed ``.npz``, streams, CoNLL-U beside the scores) is read by the command, batch
by batch: a batch's annotations are a task, and the command writes them, in their order.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import set_threads
from .._annotations import Annotations, Options, annotate
from ..files import BadFileError, open_scores, whole_file
from ._common import Work
from .annotate import rendered
from .shards import shard_name, write_batches


@dataclass(frozen=True)
class ShardTask:
    """Annotates one shard and writes it; returns sentences, from 1, and what is wrong with them; or with the file."""

    scores: str
    folder: str
    suffix: str
    options: Options

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        start, end = int(row["start"]), int(row["end"])
        try:
            errors, problem = self._write(start, end), ""
        except (BadFileError, OSError) as error:  # as text: Ray has its own way to show exceptions
            errors, problem = {}, str(error)
        sentences = sorted(errors)
        reasons = [errors[sentence] for sentence in sentences]
        return {"start": start, "end": end, "sentences": sentences, "reasons": reasons, "problem": problem}

    def _write(self, start: int, end: int) -> dict[int, str]:
        set_threads(1)
        parts: list[Any] = []
        errors: dict[int, str] = {}
        with open_scores(self.scores, start) as file:
            for batch in file.batches:
                if batch.first >= end:
                    break
                found = annotate(batch.scores, self.options)
                errors |= {batch.first + i + 1: why for i, why in found.errors.items()}
                parts.append(rendered(Work(batch), found, file, self.suffix))
        with whole_file(Path(self.folder) / shard_name(start, end, self.suffix)) as target:
            write_batches(parts, target) if self.suffix == ".parquet" else target.writelines(parts)
        return errors


def run_tasks(address: str, shards: list[tuple[int, int]], task: Any) -> Iterator[dict[str, Any]]:
    """What each task returns, as they finish. `address` is that of a cluster, or ``local``."""
    with _cluster(address) as ray:
        rows = [{"start": start, "end": end} for start, end in shards]
        ray.data.DataContext.get_current().enable_progress_bars = False
        work = ray.data.from_items(rows, override_num_blocks=max(len(rows), 1)).map(task, num_cpus=1)
        yield from work.iter_rows()


def annotated(
    address: str, left: Iterator[tuple[int, Work]], options: Options
) -> Iterator[tuple[int, Work, Annotations]]:
    """Annotations of batches, in their order. Two of them are under way for each processor of the cluster."""
    with _cluster(address) as ray:
        task = ray.remote(num_cpus=1)(_annotate_on_one_thread)
        most = 2 * max(int(ray.cluster_resources().get("CPU", 1)), 1)
        under_way: deque[tuple[int, Work, Any]] = deque()
        for end, work in left:
            under_way.append((end, work, task.remote(work.batch.scores, options)))
            if len(under_way) == most:
                yield _finished(ray, under_way)
        while under_way:
            yield _finished(ray, under_way)


def _annotate_on_one_thread(scores: Sequence[Any], options: Options) -> Annotations:
    set_threads(1)
    return annotate(scores, options)


def _finished(ray: Any, under_way: deque[tuple[int, Work, Any]]) -> tuple[int, Work, Annotations]:
    end, work, answer = under_way.popleft()
    return end, work, ray.get(answer)


@contextmanager
def _cluster(address: str) -> Iterator[Any]:
    """Ray's own word ``local`` starts one here, whatever else runs. What it reports stays in its own logs."""
    import ray
    import ray.data  # which sets up its logger

    ray.init(address, log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False)
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    try:
        yield ray
    finally:
        ray.shutdown()
