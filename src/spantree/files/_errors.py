"""What is raised when a file is not what its name says."""

from __future__ import annotations


class BadFileError(ValueError):
    """A file cannot be read: the message says which file, where in it, what is wrong.

    Examples
    --------
    >>> raise BadFileError("trees.conllu", "line 3", "HEAD is 'x', not a number")
    Traceback (most recent call last):
    spantree.files._errors.BadFileError: trees.conllu: line 3: HEAD is 'x', not a number
    """

    def __init__(self, *parts: object) -> None:
        super().__init__(": ".join(map(str, parts)))


class NoMiscError(BadFileError):
    """MISC keys are to be set in a line that has no tenth column."""
