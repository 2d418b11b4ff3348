"""Output in shards: pieces of the result, each put in its place when it is whole, so that a run can be taken up again.

out.conllu        out.conllu.parts/part-000000000-000008192.conllu    sentences 0 to 8191
                  out.conllu.parts/part-000008192-000016384.conllu    ... are put together at the end
out/              out/part-000000000-000008192.parquet                a folder keeps its shards
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

from ..files import whole_file
from ..files.output import FileBeside
from ._common import OptionError, complain

SENTENCES = 8192
"""A shard: a second or so of work."""

_NAME = re.compile(r"part-(\d{9})-(\d{9})\..*")


class Shards:
    """Takes what is written, batch by batch: text goes to its shard at once. If it ends in an error before a shard is
    finished, nothing is left."""

    def __init__(self, target: str, suffix: str, resume: bool, settings: dict[str, Any]) -> None:
        self.target = Path(target)
        self._keep = target.endswith("/") or self.target.is_dir()
        self.folder = self.target if self._keep else self.target.with_name(self.target.name + ".parts")
        self._is_new = not self.folder.exists()
        self.suffix = suffix
        self._batches: list[Any] = []
        self._text: FileBeside | None = None
        self._begin_settings(resume, settings)
        self.done = self._start = self._finished()
        """Sentences that need not be looked at again."""

    def __enter__(self) -> Shards:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._text is not None:
            self._text.discard()
        if kind is None or not self.folder.exists():
            return
        if self._files():
            if kind is KeyboardInterrupt:
                complain(f"{self.folder} keeps what is finished; with --resume, the same command goes on from there")
        else:
            self._mark.unlink(missing_ok=True)
            if self._is_new:
                self.folder.rmdir()

    @property
    def _mark(self) -> Path:
        return self.folder / ".settings"

    def _begin_settings(self, resume: bool, settings: dict[str, Any]) -> None:
        text = json.dumps(settings, sort_keys=True)
        if not resume:
            for old in self._files() if self.folder.is_dir() else ():
                old.unlink()
        elif self._mark.exists() and self._mark.read_text() != hashlib.sha256(text.encode()).hexdigest():
            raise OptionError(f"{self.folder} was begun with other options or files: leave out --resume to begin anew")
        if not self.folder.parent.is_dir():
            raise OptionError(f"{self.target}: there is no folder {self.folder.parent}")
        self.folder.mkdir(exist_ok=True)
        for unfinished in self.folder.glob(".part-*.part"):  # of a run that was killed
            unfinished.unlink()
        self._mark.write_text(hashlib.sha256(text.encode()).hexdigest())

    def _files(self) -> list[Path]:
        return sorted(path for path in self.folder.iterdir() if _NAME.fullmatch(path.name))

    def has(self, start: int, end: int) -> bool:
        """Whether this shard is finished."""
        return (self.folder / shard_name(start, end, self.suffix)).exists()

    def _finished(self) -> int:
        done = 0
        for path in self._files():
            match = _NAME.fullmatch(path.name)
            if match is None or int(match[1]) != done:
                break
            done = int(match[2])
        return done

    def add(self, end: int, part: Any) -> None:
        """A part of the output: pieces of text, or a record batch. `end` sentences have been seen up to here."""
        if self.suffix == ".parquet":
            self._batches.append(part)
        else:
            self._beside().file.writelines(part)
        if end - self._start >= SENTENCES:
            self._write(end)

    def flush(self, end: int) -> None:
        """Makes a shard of what there is."""
        if self._batches or self._text is not None:
            self._write(end)

    def _beside(self) -> FileBeside:
        if self._text is None:
            self._text = FileBeside(self.folder / f"part-{self._start:09d}{self.suffix}")
        return self._text

    def _write(self, end: int) -> None:
        path = self.folder / shard_name(self._start, end, self.suffix)
        if self.suffix == ".parquet":
            with whole_file(path) as file:
                write_batches(self._batches, file)
        else:
            self._beside().take_the_place_of(path)
        self._start, self._batches, self._text = end, [], None

    def finish(self, end: int) -> None:
        """Writes the last shard and puts all of them together."""
        self.flush(end)
        if not self._files():
            self._write(end)
        if self._keep:
            return
        with whole_file(self.target) as file:
            if self.suffix == ".parquet":
                _join_parquet(self._files(), file)
            else:
                for path in self._files():
                    with path.open("rb") as part:
                        shutil.copyfileobj(part, file, 1 << 20)
        shutil.rmtree(self.folder)


def plan(ends: Iterable[int]) -> list[tuple[int, int]]:
    """First and last (excluded) sentence of each shard of a file, of whose batches we know the ends."""
    shards, first, end = [], 0, 0
    for end in ends:
        if end - first >= SENTENCES:
            shards.append((first, end))
            first = end
    return [*shards, (first, end)] if end > first else shards


def shard_name(start: int, end: int, suffix: str) -> str:
    return f"part-{start:09d}-{end:09d}{suffix}"


def write_batches(batches: list[Any], file: BinaryIO) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_batches(batches) if batches else pa.table({}), file)


def _join_parquet(paths: list[Path], file: BinaryIO) -> None:
    import pyarrow.parquet as pq

    with pq.ParquetWriter(file, pq.read_schema(paths[0])) as writer:
        for path in paths:
            writer.write_table(pq.read_table(path))
