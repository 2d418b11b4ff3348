"""What is raised when a file is not what its name says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class BadFileError(ValueError):
    """A file cannot be read: the message says which file, where in it, what is wrong.

    Examples
    --------
    >>> raise BadFileError("trees.conllu", "line 3", "HEAD is 'x', not a number")
    Traceback (most recent call last):
    spantree.files._errors.BadFileError: trees.conllu: line 3: HEAD is 'x', not a number
    """

    def __init__(self, *parts: object) -> None:
        file, *rest = map(str, parts)
        super().__init__(": ".join(["standard input" if file == "-" else file, *rest]))


class NoMiscError(BadFileError):
    """MISC keys are to be set in a line that has no tenth column."""


@contextmanager
def naming(file: str | Path) -> Iterator[None]:
    """Whatever the libraries raise on broken files (there is no end to it) becomes one error that names the file."""
    try:
        yield
    except (BadFileError, FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    except Exception as error:
        raise BadFileError(file, first_line(error)) from error


def first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0] or type(error).__name__
