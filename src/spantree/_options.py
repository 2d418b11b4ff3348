"""The words in which options are given, and their types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import numpy as np

from . import _core

if TYPE_CHECKING:
    import numpy.typing as npt

    Scores = npt.ArrayLike | Sequence[npt.ArrayLike]
    ListOfScores = Sequence[npt.NDArray[Any]]
    ListOfInts = list[npt.NDArray[np.int64]]
    ListOfFloats = list[npt.NDArray[np.floating[Any]]]

RootMode = Literal["single", "multi"]
Layout = Literal["head_dep", "dep_head"]
OnInfeasible = Literal["raise", "mask"]

ROOTS = {"single": _core.Root.single, "multi": _core.Root.multi}
LAYOUTS = ("head_dep", "dep_head")


class Options(TypedDict, total=False):
    """What goes with scores into a `TreeDistribution`, `labelled` apart, which decides what comes out."""

    lengths: npt.ArrayLike | None
    mask: Any
    root: RootMode
    projective: bool
    layout: Layout
    on_infeasible: OnInfeasible
    temperature: float
    root_label: int | str | None
    words: Sequence[Any] | None
    labels: Sequence[str] | None


class MoreOptions(TypedDict, total=False):
    """What the one-liners take by keyword only."""

    mask: Any
    layout: Layout
    on_infeasible: OnInfeasible
    temperature: float
    root_label: int | None


def core_root(root: RootMode) -> _core.Root:
    found = ROOTS.get(root) if isinstance(root, str) else None
    if found is None:
        raise ValueError(f'root must be "single" or "multi", not {root!r}')
    return found


def check_choice(name: str, given: Any, first: str, second: str) -> None:
    if not isinstance(given, str) or given not in (first, second):
        raise ValueError(f'{name} must be "{first}" or "{second}", not {given!r}')


def check_flag(name: str, given: Any) -> bool:
    if not isinstance(given, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, not {given!r}")
    return bool(given)


def real_number(name: str, given: Any) -> float:
    """A number of any kind as a float."""
    if type(given) is float:  # as it mostly is: what follows takes longer than the rest of a short sentence's door
        return given
    text = isinstance(given, (str, bytes, bytearray))
    if not text and not isinstance(given, (complex, np.complexfloating)) and np.ndim(given) == 0:
        try:
            return float(given)
        except (TypeError, ValueError):
            pass
        except OverflowError:
            raise ValueError(f"{name} is too large for a float") from None
    raise TypeError(f"{name} must be a real number, not {given!r}")


def positive_integer(name: str, given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, (int, np.integer)) or given < 1:
        raise ValueError(f"{name} must be a positive integer, not {given!r}")
    return int(given)
