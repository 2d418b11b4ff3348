"""The words in which options are given, and their types."""

from __future__ import annotations

import math
import operator
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


def check_choice(name: str, given: Any, *choices: str) -> None:
    if not isinstance(given, str) or given not in choices:
        *others, last = (f'"{choice}"' for choice in choices)
        raise ValueError(f"{name} must be {', '.join(others)} or {last}, not {given!r}")


def check_flag(name: str, given: Any) -> bool:
    if given is True or given is False:
        return given
    if not isinstance(given, np.bool_):
        raise TypeError(f"{name} must be True or False, not {given!r}")
    return bool(given)


def check_function(name: str, given: Any) -> None:
    if not callable(given):
        raise TypeError(f"{name} must be a function, not {given!r}")


def check_with_grad(given: Any) -> bool | Literal["both"]:
    """Of a quantity that has gradients with respect to two distributions' scores."""
    if isinstance(given, str):
        if given != "both":
            raise ValueError(f'with_grad must be True, False or "both", not {given!r}')
        return "both"
    if not isinstance(given, (bool, np.bool_)):
        raise TypeError(f'with_grad must be True, False or "both", not {given!r}')
    return bool(given)


def real_number(name: str, given: Any) -> float:
    """A number of any kind as a float."""
    if type(given) is float:  # as it mostly is: what follows takes longer than the rest of a short sentence's door
        return given
    if getattr(given, "requires_grad", False):
        raise TypeError(f"{name} must be a number; nothing has a gradient with respect to it, and {given!r} wants one")
    if type(given) is int or not (isinstance(given, _NO_NUMBERS) or _holds_no_numbers(given) or _has_axes(given)):
        try:
            return float(given)
        except (TypeError, ValueError):
            pass
        except OverflowError:
            raise ValueError(f"{name} is too large for a float") from None
    raise TypeError(f"{name} must be a real number, not {given!r}")


_NO_NUMBERS = bool, np.bool_, str, bytes, bytearray, complex, np.complexfloating


def _holds_no_numbers(given: Any) -> bool:
    """Whether an array of whatever library holds truth values or complex numbers, or NumPy's text, times or objects."""
    dtype = getattr(given, "dtype", None)
    return "bool" in str(dtype) or "complex" in str(dtype) or (isinstance(dtype, np.dtype) and dtype.kind in "SUmMO")


def _has_axes(given: Any) -> bool:
    """Whether it is an array of whatever library, and not of one number alone. (Lists are no numbers anyway.)"""
    return bool(getattr(given, "ndim", 0))


def positive_number(name: str, given: Any) -> float:
    number = real_number(name, given)
    if not 0.0 < number < math.inf:
        raise ValueError(f"{name} must be positive and finite, not {given!r}")
    return number


def number_from_0(name: str, given: Any) -> float:
    number = real_number(name, given)
    if not 0.0 <= number < math.inf:
        raise ValueError(f"{name} must be at least 0 and finite, not {given!r}")
    return number


def integer(name: str, given: Any) -> int:
    if not _is_integer(given):
        raise TypeError(f"{name} must be an integer, not {given!r}")
    return operator.index(given)


def positive_integer(name: str, given: Any) -> int:
    if not _is_integer(given) or given < 1:
        raise ValueError(f"{name} must be a positive integer, not {given!r}")
    return operator.index(given)


def _is_integer(given: Any) -> bool:
    """Of any kind, an array's or tensor's that has no axes too; no truth value."""
    if type(given) is int:
        return True
    if isinstance(given, (bool, np.bool_)) or _holds_no_numbers(given) or _has_axes(given):
        return False
    try:
        operator.index(given)
    except TypeError:
        return False
    return True


def read_list(wanted: str, given: Any) -> list[Any]:
    """The entries of whatever has some, text apart; `wanted` says what has to be what."""
    if not isinstance(given, (str, bytes)):
        try:
            return list(given)
        except TypeError:
            pass
    raise ValueError(f"{wanted}, not {given!r}")


def read_sizes(name: str, given: Any) -> tuple[int, ...]:
    """The sizes of axes, of which one may be given alone."""
    alone = isinstance(given, (int, np.integer)) or not hasattr(given, "__iter__") or getattr(given, "ndim", 1) == 0
    sizes = (given,) if alone else tuple(given)
    for size in sizes:
        no_integer = type(size) is not int and (isinstance(size, bool) or not hasattr(size, "__index__"))
        if no_integer or size < 0:
            raise ValueError(f"{name} must be integers, 0 or more, not {given!r}")
    return tuple(operator.index(size) if hasattr(size, "dtype") else size for size in sizes)
