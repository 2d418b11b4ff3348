"""Whatever a caller hands in, as NumPy arrays the core can read; or an error that says what to do instead."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core

if TYPE_CHECKING:
    import numpy.typing as npt

    FloatArray = npt.NDArray[np.floating[Any]]
    IntArray = npt.NDArray[np.int64]
else:  # numpy.typing takes longer to import than this package
    FloatArray = IntArray = np.ndarray

_DOUBLE, _SINGLE = np.dtype(np.float64), np.dtype(np.float32)
_LARGEST_INTEGER = np.iinfo(np.int64).max


class ScoreTypeError(TypeError, ValueError):
    """Scores that are not real numbers."""


def read_scores(given: Any, name: str) -> tuple[FloatArray, np.dtype[Any], bool, npt.NDArray[np.bool_] | None]:
    """Scores as float32 or float64, the dtype of the results, whether this is a copy, and what `numpy.ma` masks."""
    masked = _mask_of(given)
    array = _as_array(given if masked is None else given.data, name)
    dtype = array.dtype
    if dtype in (_DOUBLE, _SINGLE):
        return array, dtype, False, masked
    if dtype.kind == "f" and dtype.itemsize >= 4:  # of the other byte order, or longer than double
        native = _SINGLE if dtype.itemsize == 4 else _DOUBLE
        return _rounded_to(array, native), native, True, masked
    if dtype.kind == "f" or dtype.name == "bfloat16":
        return array.astype(_SINGLE), dtype.newbyteorder("="), True, masked
    if dtype.kind in "iu":
        return array.astype(_DOUBLE), _DOUBLE, True, masked
    raise ScoreTypeError(f"{name} must be real numbers, such as float32 or float64, not {dtype}")


def read_values(given: Any, name: str) -> npt.NDArray[np.float64]:
    """Numbers in double precision, aligned."""
    refuse_masked(given, name)
    array = _as_array(given, name)
    if array.dtype.kind not in "fiub" and array.dtype.name != "bfloat16":
        raise ValueError(f"{name} must be real numbers, not {array.dtype}")
    if array.dtype.itemsize > _DOUBLE.itemsize:
        array = _rounded_to(array, _DOUBLE)
    return np.require(array, np.float64, "A")


def _rounded_to(array: npt.NDArray[Any], dtype: np.dtype[Any]) -> FloatArray:
    """What is finite stays so."""
    with np.errstate(all="ignore"):
        rounded = array.astype(dtype)
    beyond = np.isinf(rounded) & np.isfinite(array)
    if beyond.any():
        rounded[beyond] = np.copysign(np.finfo(dtype).max, array[beyond])
    return rounded


def read_integers(given: Any, name: str) -> IntArray:
    """Integers as int64 that are nobody else's: aligned, contiguous, ours to write to."""
    refuse_masked(given, name)
    array = _as_array(given, name)
    if array.dtype.kind not in "iu" and array.size:
        raise ValueError(f"{name} must be integers, not {array.dtype}")
    if array.dtype.kind == "u" and array.dtype.itemsize == 8:
        array = np.minimum(array, _LARGEST_INTEGER)
    return np.array(array, np.int64, order="C")


def read_flags(given: Any, name: str) -> npt.NDArray[np.bool_]:
    refuse_masked(given, name)
    array = _as_array(given, name)
    if array.dtype != np.bool_ and array.size:
        raise ValueError(f"{name} must be boolean, not {array.dtype}")
    return array.astype(np.bool_, copy=False)


def number_of_axes(given: Any, name: str) -> int:
    return given.ndim if hasattr(given, "ndim") else _as_array(given, name).ndim


def refuse_masked(given: Any, name: str) -> None:
    if _mask_of(given) is not None:
        raise ValueError(f"{name} is a masked array; only scores may be masked, where it forbids edges")


def _refuse_masked_rows(given: Sequence[Any], name: str, axes: int = 64) -> None:
    """In nested lists; an array would be made of them without the mask. No array has more axes."""
    for row in given:
        if isinstance(row, (list, tuple)):
            if axes > 0:
                _refuse_masked_rows(row, name, axes - 1)
        elif _mask_of(row) is not None:
            raise ValueError(f"{name} has rows that are masked arrays; give one masked array for the whole matrix")


def _mask_of(given: Any) -> npt.NDArray[np.bool_] | None:
    """Where a `numpy.ma` array is masked; None for all other arrays."""
    if type(given) is np.ndarray:
        return None
    masked_arrays = sys.modules.get("numpy.ma")
    if masked_arrays is None or not isinstance(given, masked_arrays.MaskedArray):
        return None
    mask: npt.NDArray[np.bool_] = masked_arrays.getmaskarray(given)
    return mask


def _as_array(given: Any, name: str) -> npt.NDArray[Any]:
    if type(given) is np.ndarray:
        return given
    if getattr(given, "requires_grad", False):
        raise TypeError(f"{name} requires a gradient: spantree.torch keeps it, or pass {name}.detach()")
    if hasattr(given, "__dlpack__") and not isinstance(given, np.ndarray):
        if str(given.dtype).endswith("bfloat16") and not isinstance(given.dtype, np.dtype):
            return _from_bfloat16(given)
        if not hasattr(given, "__array__"):
            return np.from_dlpack(given)
    if isinstance(given, (list, tuple)):
        _refuse_masked_rows(given, name)
    try:
        return np.asarray(given)
    except ValueError as error:
        raise ValueError(f"{name} is no array of numbers: {error}") from None


def _from_bfloat16(given: Any) -> npt.NDArray[np.float32]:
    """A tensor of bfloat16, which NumPy does not know: the upper halves of float32s."""
    bits = _core.bfloat16_bits(given).astype(np.uint32)
    return np.left_shift(bits, 16, out=bits).view(np.float32)
