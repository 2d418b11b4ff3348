"""Trees that are made one by one, when they are asked for."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from ._trees import Trees

OneTree = Trees[npt.NDArray[np.int64], np.floating[Any]]


class TreeStream:
    """An iterator over a generator's trees. If something ended it early, such as Ctrl-C, later steps say so.

    A generator alone would be at its end then, as if no tree were left.
    """

    def __init__(self, trees: Generator[OneTree, None, None]) -> None:
        self._trees = trees
        self._ended_by: str | None = None

    def __iter__(self) -> TreeStream:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a stream of trees cannot be copied or pickled; ask the distribution for another")

    def __next__(self) -> OneTree:
        if self._ended_by is not None:
            raise RuntimeError(f"these trees were ended by a {self._ended_by}; ask for them again")
        try:
            return next(self._trees)
        except StopIteration:
            raise
        except BaseException as error:
            if getattr(self._trees, "gi_frame", None) is None:  # else another thread is at it
                self._ended_by = type(error).__name__
            raise
