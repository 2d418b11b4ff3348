"""Files written beside their place and put there when they are whole, so that no one ever reads half of one."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ._errors import BadFileError


@contextmanager
def whole_file(path: str | Path) -> Iterator[BinaryIO]:
    """An open file that takes the place of `path` at the end, if nothing is raised before; ``-`` is standard output.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with whole_file(Path(folder) / "a.txt") as file:
    ...         _ = file.write(b"all of it")
    ...     (Path(folder) / "a.txt").read_bytes()
    b'all of it'
    """
    if str(path) == "-":
        with standard_output() as out:
            yield out
        return
    target = Path(path)
    beside = FileBeside(target)
    try:
        yield beside.file
        beside.take_the_place_of(target)
    finally:
        beside.discard()


class FileBeside:
    """A file to write to, beside its place; nothing is left of it if it is never put there."""

    def __init__(self, target: Path) -> None:
        self._path = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            self.file = self._path.open("wb")
        except OSError as error:
            error.filename = str(target)
            raise

    def take_the_place_of(self, target: Path) -> None:
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()
        self._path.replace(target)

    def discard(self) -> None:
        self.file.close()
        self._path.unlink(missing_ok=True)


@contextmanager
def standard_output() -> Iterator[BinaryIO]:
    """Written at the end. Whoever started us may have closed it."""
    if sys.stdout is None:
        raise BadFileError("standard output", "is closed")
    yield sys.stdout.buffer
    sys.stdout.buffer.flush()


def standard_input() -> BinaryIO:
    if sys.stdin is None:
        raise BadFileError("standard input", "is closed")
    return sys.stdin.buffer
