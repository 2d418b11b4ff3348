"""The door: scores come in once, are checked here, and results leave in the form the scores came in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from . import _core
from ._threads import get_threads

FloatArray = npt.NDArray[np.floating[Any]]
IntArray = npt.NDArray[np.int64]
Layout = Literal["head_dep", "dep_head"]

_FLOAT_TYPES = (np.dtype(np.float64), np.dtype(np.float32))
_LARGEST_SENTENCE = 2**30


class ScoreTypeError(TypeError, ValueError):
    """Scores of a dtype that is not float32 or float64."""


class Batch:
    """Checked scores of one sentence, a padded batch or a ragged list, and the way back.

    Attributes
    ----------
    arrays
        Scores indexed ``[..., head, dep]`` (labelled: ``[..., head, dep, label]``) whatever the caller's layout:
        ``(B, n+1, n+1)`` for one sentence and padded batches, a list of matrices for ragged ones.
    leading
        The caller's leading axes, ``()`` for one sentence, None for a ragged list.
    """

    __slots__ = ("_lengths", "arrays", "core", "dtype", "labelled", "layout", "leading")

    def __init__(
        self,
        arrays: FloatArray | list[FloatArray],
        leading: tuple[int, ...] | None,
        lengths: IntArray | None,
        labelled: bool,
        layout: Layout,
    ) -> None:
        self.arrays = arrays
        self.leading = leading
        self._lengths = lengths
        self.labelled = labelled
        self.layout: Layout = layout
        dep_major = layout == "dep_head"
        if isinstance(arrays, list):
            self.dtype = arrays[0].dtype if arrays else _FLOAT_TYPES[0]
            self.core = _core.Batch.ragged(arrays, labelled, dep_major)
        else:
            self.dtype = arrays.dtype
            self.core = _core.Batch.padded(arrays, lengths, labelled, dep_major)

    @classmethod
    def read(
        cls,
        scores: npt.ArrayLike | Sequence[npt.ArrayLike],
        lengths: npt.ArrayLike | None = None,
        mask: Any = None,
        labelled: bool = False,
        layout: Layout = "head_dep",
    ) -> Batch:
        """Checks the form of everything a caller may hand in; raises ValueError with what was wrong, and where.

        What the scores are is checked by `refuse_bad_scores`, or by who looks at all of them anyway.
        """
        if layout != "head_dep" and layout != "dep_head":
            raise ValueError(f'layout must be "head_dep" or "dep_head", not {layout!r}')
        if isinstance(scores, (list, tuple)):
            return cls._read_ragged(scores, lengths, mask, labelled, layout)
        array = _read_matrices(scores, mask, labelled, layout, "scores")
        shape = array.shape
        axes = len(shape) - (3 if labelled else 2)
        leading = shape[:axes]
        checked = None if lengths is None else _read_lengths(lengths, leading, shape[axes] - 1)
        if axes != 1:
            array = array.reshape((-1, *shape[axes:])) if axes else array[np.newaxis]
        return cls(array, leading, checked, labelled, layout)

    def refuse_bad_scores(self) -> None:
        """Raises ValueError if a score is NaN or +inf."""
        bad = self.core.first_bad(self.threads)
        if bad is not None:
            raise ValueError(self._describe_bad_score(*bad))

    @property
    def threads(self) -> int:
        """How many threads to spread it over."""
        return get_threads() if len(self.arrays) > 1 else 1

    @classmethod
    def _read_ragged(
        cls, scores: Sequence[Any], lengths: npt.ArrayLike | None, mask: Any, labelled: bool, layout: Layout
    ) -> Batch:
        if lengths is not None:
            raise ValueError("lengths goes with a padded batch; the matrices of a list have their own sizes")
        if mask is not None and (not isinstance(mask, (list, tuple)) or len(mask) != len(scores)):
            raise ValueError(f"mask must be a list of {len(scores)} arrays, like scores")
        matrices: list[FloatArray] = []
        for i, item in enumerate(scores):
            name = f"scores[{i}]"
            array = _read_matrices(item, None if mask is None else mask[i], labelled, layout, name)
            if array.ndim != (3 if labelled else 2):
                raise ValueError(f"{name} must be one sentence's matrix, not an array of shape {array.shape}")
            if labelled and matrices and array.shape[2] != matrices[0].shape[2]:
                raise ValueError(f"{name} has {array.shape[2]} labels, scores[0] has {matrices[0].shape[2]}")
            matrices.append(array)
        if len({array.dtype for array in matrices}) > 1:
            matrices = [array.astype(np.float64) for array in matrices]
        return cls(matrices, None, None, labelled, layout)

    def __len__(self) -> int:
        return len(self.arrays)

    @property
    def lengths(self) -> IntArray:
        """Words of each sentence, ``(B,)``."""
        if self._lengths is None:
            self._lengths = np.fromiter((len(array) - 1 for array in self.arrays), np.int64, len(self))
        return self._lengths

    @property
    def labels(self) -> int:
        """Labels of an edge; 1 if there are none."""
        return int(self.arrays[0].shape[-1]) if self.labelled and len(self) else 1

    # The way back: flat buffers, as the core writes them, become what the caller expects.

    def nodes(self, flat: npt.NDArray[Any], k: int | None = None) -> Any:
        """One entry per node: ``(..., n+1)``, with a first axis of size k if given."""
        if self.leading == () and k is None:
            return flat
        if self.leading is not None:
            return flat.reshape((() if k is None else (k,)) + self.leading + (self._width(),))
        rows = flat.reshape(-1 if k is None else (k, self.core.row_size))
        ends = np.cumsum(self.lengths + 1)[:-1]
        return np.split(rows, ends, axis=-1) if len(self) else []

    def flat_nodes(self, values: Any, name: str) -> IntArray:
        """The inverse: integers per node, ``(..., n+1)`` with any number of axes before, as rows ``(k, row_size)``."""
        if self.leading is None:
            if not isinstance(values, (list, tuple)) or len(values) != len(self):
                raise ValueError(f"{name} must be a list with one entry for each of the {len(self)} sentences")
            parts = [_read_integers(value, name) for value in values]
            for i, (part, words) in enumerate(zip(parts, self.lengths, strict=True)):
                if part.shape[-1:] != (words + 1,):
                    raise ValueError(f"{name}[{i}] has shape {part.shape}; its last axis must be {words + 1}")
            if len({part.shape[:-1] for part in parts}) > 1:
                raise ValueError(f"the arrays in {name} differ in their leading axes")
            joined = np.concatenate(parts, axis=-1) if parts else np.empty((0,), np.int64)
            return np.ascontiguousarray(joined.reshape(-1, self.core.row_size))
        array = _read_integers(values, name)
        expected = (*self.leading, self._width())
        if array.shape[array.ndim - len(expected) :] != expected:
            raise ValueError(f"{name} has shape {array.shape}; it must end with {expected}")
        return np.ascontiguousarray(array.reshape(-1, self.core.row_size))

    def edges(self, flat: npt.NDArray[np.float64]) -> Any:
        """One entry per edge: the shape, the layout and the dtype of the scores."""
        flat = flat.astype(self.dtype, copy=False)
        if not isinstance(self.arrays, list):
            assert self.leading is not None
            return flat.reshape(self.leading + self.arrays.shape[1:])  # square: the same in both layouts
        parts = np.split(flat, np.cumsum([array.size for array in self.arrays])[:-1]) if len(self) else []
        return [part.reshape(array.shape) for part, array in zip(parts, self.arrays, strict=True)]

    def flat_edges(self, values: Any, name: str) -> tuple[npt.NDArray[np.float64], bool]:
        """The inverse: numbers per edge as ``(R, edge_size)``, and whether they came with an axis for R."""
        if isinstance(self.arrays, list):
            if not isinstance(values, (list, tuple)) or len(values) != len(self):
                raise ValueError(f"{name} must be a list with one entry for each of the {len(self)} sentences")
            read = [
                _read_features(value, array.shape, f"{name}[{i}]")
                for i, (value, array) in enumerate(zip(values, self.arrays, strict=True))
            ]
            if len({(features.shape[-1], several) for features, several in read}) > 1:
                raise ValueError(f"the arrays in {name} differ in the number of values per edge")
            if not read:
                return np.empty((1, 0)), False
            joined = np.concatenate([features for features, _ in read])
            return np.ascontiguousarray(joined.T), read[0][1]
        assert self.leading is not None
        features, several = _read_features(values, self.leading + self.arrays.shape[1:], name)
        return np.ascontiguousarray(features.T), several

    def scalars(self, values: npt.NDArray[np.float64], k: int | None = None) -> Any:
        """One number per sentence, in the dtype of the scores."""
        if values.dtype is not self.dtype:
            values = values.astype(self.dtype)
        if k is None and self.leading is not None and len(self.leading) == 1:
            return values
        if self.leading is not None:
            return values.reshape((() if k is None else (k,)) + self.leading)[()]
        return list(values if k is None else values.reshape(k, len(self)).T)

    def stack_scalars(self, values: npt.NDArray[np.float64]) -> Any:
        """Several numbers per sentence, (B, ...), with the sentences' axes first."""
        values = values.astype(self.dtype, copy=False)
        return list(values) if self.leading is None else values.reshape(self.leading + values.shape[1:])[()]

    def scalars_like(self, values: npt.NDArray[np.float64], nodes: Any) -> Any:
        """One number per tree in `nodes`, as given to `flat_nodes`: values (k, B)."""
        if self.leading is None:
            extra = np.shape(nodes[0])[:-1] if len(self) else ()
            return [column.reshape(extra)[()] for column in values.astype(self.dtype, copy=False).T]
        return self.scalars(values, len(values)).reshape(np.shape(nodes)[:-1])[()]

    def select(self, index: Any) -> Batch:
        """Part of the batch along its first axis."""
        if self.leading == ():
            raise TypeError("a distribution over one sentence's trees has no parts to index")
        if isinstance(self.arrays, list):
            if isinstance(index, slice):
                return Batch(self.arrays[index], None, self.lengths[index], self.labelled, self.layout)
            return Batch(
                self.arrays[index][np.newaxis],
                (),
                np.atleast_1d(self.lengths[index]),
                self.labelled,
                self.layout,
            )
        assert self.leading is not None
        lengths = self.lengths.reshape(self.leading)[index]
        arrays = self.arrays.reshape(self.leading + self.arrays.shape[1:])[index]
        flat = arrays.reshape((-1, *self.arrays.shape[1:]))
        return Batch(flat, np.shape(lengths), np.ravel(lengths), self.labelled, self.layout)

    def with_matrices_changed(self, change: Callable[[int, FloatArray], None]) -> Batch:
        """A copy in which ``change(i, matrix)`` has edited every sentence's matrix, without padding, in place."""
        ragged = isinstance(self.arrays, list)
        arrays = [array.copy() for array in self.arrays] if ragged else np.copy(self.arrays)
        for i, (array, words) in enumerate(zip(arrays, self.lengths, strict=True)):
            change(i, array[: words + 1, : words + 1])
        return Batch(arrays, self.leading, self.lengths, self.labelled, self.layout)

    def name(self, i: int) -> str:
        """How a caller would call sentence i."""
        if self.leading == ():
            return "the sentence"
        if self.leading is None or len(self.leading) == 1:
            return f"sentence {i}"
        return f"sentence {tuple(int(axis) for axis in np.unravel_index(i, self.leading))}"

    def _width(self) -> int:
        return int(self.arrays.shape[1])  # type: ignore[union-attr]

    def _describe_bad_score(self, i: int, head: int, dep: int, label: int) -> str:
        where = (head, dep, label) if self.labelled else (head, dep)
        value = self.arrays[i][where]
        edge = f"the edge {head} -> {dep}" + (f" with label {label}" if self.labelled else "")
        return f"{self.name(i)}: the score of {edge} is {value}; scores must be finite, or -inf to forbid an edge"


def _read_matrices(scores: Any, mask: Any, labelled: bool, layout: Layout, name: str) -> FloatArray:
    """An array indexed [..., head, dep(, label)] that the core can read where it lies, or a copy of it."""
    array = np.asarray(scores)
    if array.dtype not in _FLOAT_TYPES:
        raise ScoreTypeError(f"{name} must be float32 or float64, not {array.dtype}")
    axes = 3 if labelled else 2
    shape = array.shape
    if len(shape) < axes:
        wanted = "(..., n+1, n+1, labels)" if labelled else "(..., n+1, n+1)"
        raise ValueError(f"{name} must have shape {wanted}, not {shape}")
    heads, deps = shape[-axes], shape[1 - axes]
    if heads != deps or heads == 0:
        raise ValueError(f"{name} has {heads} x {deps} edges; a sentence of n words has (n+1) x (n+1)")
    if heads > _LARGEST_SENTENCE:
        raise ValueError(f"{name} has {heads - 1} words; at most {_LARGEST_SENTENCE - 1} are possible")
    if labelled and shape[-1] == 0:
        raise ValueError(f"{name} has no labels")
    if mask is not None:
        allowed = np.asarray(mask)
        if allowed.dtype != np.bool_:
            raise ValueError(f"mask must be boolean, not {allowed.dtype}")
        if allowed.shape != shape:
            raise ValueError(f"mask has shape {allowed.shape}, {name} has {shape}")
        array = np.where(allowed, array, array.dtype.type(-np.inf))
    if layout == "dep_head":
        array = array.swapaxes(-axes, 1 - axes)
    return array if _readable_in_place(array, axes) else np.ascontiguousarray(array)


def _readable_in_place(array: FloatArray, axes: int) -> bool:
    """Whether the heads, or the dependents, of a sentence lie next to each other (and so do the labels of an edge)."""
    flags = array.flags
    if flags.c_contiguous and flags.aligned:
        return True
    if not flags.aligned or any(stride % array.itemsize for stride in array.strides):
        return False
    cell = array.itemsize
    if axes == 3:
        if array.strides[-1] != cell:
            return False
        cell *= array.shape[-1]
    return cell in (array.strides[-axes], array.strides[1 - axes])


def _read_lengths(lengths: npt.ArrayLike, leading: tuple[int, ...], words: int) -> IntArray:
    array = np.asarray(lengths)
    if array.dtype.kind not in "iu" and array.size:
        raise ValueError(f"lengths must be integers, not {array.dtype}")
    if array.shape != leading:
        raise ValueError(f"lengths has shape {array.shape}; the batch has shape {leading}")
    flat = np.ascontiguousarray(array.reshape(-1), dtype=np.int64)
    outside = np.flatnonzero((flat < 0) | (flat > words))
    if len(outside):
        i = int(outside[0])
        raise ValueError(f"lengths: sentence {i} has {flat[i]} words; the matrices have room for 0 to {words}")
    return flat


def _read_features(values: Any, shape: tuple[int, ...], name: str) -> tuple[npt.NDArray[np.float64], bool]:
    """Values of `shape`, or with one more axis, as (edges, R)."""
    array = np.asarray(values, dtype=np.float64)
    several = array.ndim == len(shape) + 1
    if array.shape[: len(shape)] != shape or array.ndim > len(shape) + 1:
        raise ValueError(f"{name} has shape {array.shape}; it must be {shape}, or that and one more axis")
    return array.reshape(-1, array.shape[-1] if several else 1), several


def _read_integers(values: Any, name: str) -> IntArray:
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name} must be integers, not {array.dtype}")
    if array.ndim == 0:
        raise ValueError(f"{name} must have one entry per node, ROOT included")
    return array.astype(np.int64, copy=False)
