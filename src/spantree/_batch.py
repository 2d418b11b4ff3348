"""The door: scores come in once, are checked here, and results leave in the form the scores came in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from . import _core
from ._memory import copy_of
from ._names import label_number
from ._options import Layout, check_choice, check_flag, positive_number
from ._read import FloatArray, IntArray, number_of_axes, read_flags, read_integers, read_scores, read_values
from ._threads import get_threads

if TYPE_CHECKING:
    import numpy.typing as npt

_LARGEST_SENTENCE = 2**20  # nodes, as in library/batch.hpp
_BAD_SCORE = -1  # Status::bad_score in spantree.hpp
BEING_CHANGED = "somebody writes to the scores while they are read"


class Batch:
    """Checked scores of one sentence, a padded batch or a ragged list, and the way back.

    Attributes
    ----------
    arrays
        Scores indexed ``[..., head, dep]`` (labelled: ``[..., head, dep, label]``) whatever the caller's layout:
        ``(B, n+1, n+1)`` for one sentence and padded batches, a list of matrices for ragged ones.
    leading
        The caller's leading axes, ``()`` for one sentence, None for a ragged list.
    dtype
        Of floating results. Scores of 16 bits are kept as float32.
    """

    __slots__ = ("_lengths", "arrays", "core", "dtype", "labelled", "layout", "leading")

    def __init__(
        self,
        arrays: FloatArray | list[FloatArray],
        leading: tuple[int, ...] | None,
        lengths: IntArray | None,
        labelled: bool,
        layout: Layout,
        dtype: np.dtype[Any] | None = None,
    ) -> None:
        self.arrays = arrays
        self.leading = leading
        self._lengths = lengths
        self.labelled = labelled
        self.layout: Layout = layout
        dep_major = layout == "dep_head"
        if isinstance(arrays, list):
            self.dtype = dtype or (arrays[0].dtype if arrays else np.dtype(np.float64))
            self.core = _core.Batch.ragged(arrays, labelled, dep_major)
        else:
            self.dtype = dtype or arrays.dtype
            self.core = _core.Batch.padded(arrays, lengths, labelled, dep_major)

    def __reduce__(self) -> tuple[Any, ...]:
        return Batch, (self.arrays, self.leading, self._lengths, self.labelled, self.layout, self.dtype)

    @classmethod
    def read(
        cls,
        scores: Any,
        lengths: npt.ArrayLike | None = None,
        mask: Any = None,
        labelled: bool = False,
        layout: Layout = "head_dep",
        *,
        in_place: bool = False,
        temperature: float = 1.0,
        root_label: int | None = None,
    ) -> Batch:
        """Checks the form of everything a caller may hand in; raises ValueError with what was wrong, and where.

        Scores are copied, once, unless they may be read `in_place`. What the scores are is checked by
        `refuse_bad_scores`, or by who looks at all of them anyway.
        """
        check_choice("layout", layout, "head_dep", "dep_head")
        labelled = check_flag("labelled", labelled)
        reader = _Reader(labelled, layout, in_place, temperature, root_label)
        if isinstance(scores, (list, tuple)) and not _is_one_sentence(scores, labelled):
            return cls._read_ragged(scores, lengths, mask, reader)
        of_words = mask is not None and _is_mask_of_words(scores, mask, labelled)
        array, dtype = reader.matrices(scores, None if of_words else mask, "scores")
        shape = array.shape
        axes = len(shape) - (3 if labelled else 2)
        leading = shape[:axes]
        if of_words:
            if lengths is not None:
                raise ValueError("give lengths or a mask of words, not both")
            lengths = _lengths_from_mask(mask, shape[axes] - 1)
        checked = None if lengths is None else _read_lengths(lengths, leading, shape[axes] - 1)
        if axes != 1:
            array = array.reshape((_product(leading), *shape[axes:])) if axes else array[np.newaxis]
        return cls(array, leading, checked, labelled, layout, dtype)

    @classmethod
    def _read_ragged(cls, scores: Sequence[Any], lengths: Any, mask: Any, reader: _Reader) -> Batch:
        if lengths is not None:
            raise ValueError("lengths goes with a padded batch; the matrices of a list have their own sizes")
        if mask is not None and (not isinstance(mask, (list, tuple)) or len(mask) != len(scores)):
            raise ValueError(f"mask must be a list of {len(scores)} arrays, like scores")
        labelled = reader.labelled
        matrices: list[FloatArray] = []
        dtypes = set()
        for i, item in enumerate(scores):
            name = f"scores[{i}]"
            array, dtype = reader.matrices(item, None if mask is None else mask[i], name)
            if array.ndim != (3 if labelled else 2):
                hint = "" if labelled or array.ndim != 3 else "; if its last axis are labels, say labelled=True"
                raise ValueError(f"{name} must be one sentence's matrix, not an array of shape {array.shape}{hint}")
            if labelled and matrices and array.shape[2] != matrices[0].shape[2]:
                raise ValueError(f"{name} has {array.shape[2]} labels, scores[0] has {matrices[0].shape[2]}")
            matrices.append(array)
            dtypes.add(dtype)
        if len(dtypes) > 1:
            matrices = [array.astype(np.float64) for array in matrices]
            dtypes = {np.dtype(np.float64)}
        return cls(matrices, None, None, labelled, reader.layout, *dtypes)

    def refuse_bad_scores(self, *, seen: bool = False) -> None:
        """Raises ValueError if a score is NaN or +inf; in any case if one was `seen`."""
        bad = self.core.first_bad(self.threads)
        if bad is not None:
            raise ValueError(self.describe_bad_score(*bad))
        if seen:
            raise ValueError(f"a score was NaN or +inf while it was read, and is not any more: {BEING_CHANGED}")

    def judged(self, words: IntArray | None) -> IntArray | None:
        """What the core reports, if all scores were scores: for each sentence a word that cannot be attached, 0 where
        there is a tree; None if all sentences have one."""
        if words is not None and _BAD_SCORE in words:
            self.refuse_bad_scores(seen=True)
        return words

    def describe_bad_score(self, i: int, head: int, dep: int, label: int) -> str:
        where = (head, dep, label) if self.labelled else (head, dep)
        value = self.arrays[i][where]
        edge = f"the edge {head} -> {dep}" + (f" with label {label}" if self.labelled else "")
        return f"{self.name(i)}: the score of {edge} is {value}; scores must be finite, or -inf to forbid an edge"

    @property
    def threads(self) -> int:
        """How many threads to spread it over."""
        return get_threads() if len(self.arrays) > 1 else 1

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
        rows = flat if k is None else flat.reshape(k, self.core.row_size)
        ends = np.cumsum(self.lengths + 1).tolist()
        return [rows[..., start:end] for start, end in zip([0, *ends], ends, strict=False)]

    def flat_nodes(self, values: Any, name: str) -> tuple[IntArray, tuple[int, ...]]:
        """The inverse: integers per node, ``(..., n+1)`` with any number of axes before, as rows ``(k, row_size)``.

        What stands at ROOT becomes -1. Returns the axes before, too.
        """
        if self.leading is None:
            if not isinstance(values, (list, tuple)) or len(values) != len(self):
                raise ValueError(f"{name} must be a list with one entry for each of the {len(self)} sentences")
            parts = [read_integers(value, name) for value in values]
            for i, (part, words) in enumerate(zip(parts, self.lengths, strict=True)):
                if part.shape[-1:] != (words + 1,):
                    raise ValueError(f"{name}[{i}] has shape {part.shape}; its last axis must be {words + 1}")
                part[..., 0] = -1
            before = {part.shape[:-1] for part in parts}
            if len(before) > 1:
                raise ValueError(f"the arrays in {name} differ in their leading axes")
            axes = before.pop() if before else ()
            joined = np.concatenate(parts, axis=-1) if parts else np.empty(0, np.int64)
        else:
            joined = read_integers(values, name)
            expected = (*self.leading, self._width())
            axes = joined.shape[: joined.ndim - len(expected)]
            if joined.shape != axes + expected:
                raise ValueError(f"{name} has shape {joined.shape}; it must end with {expected}")
            joined[..., 0] = -1
        return joined.reshape(_product(axes), self.core.row_size), axes

    def edges(self, flat: npt.NDArray[np.float64], axes: tuple[int, ...] = ()) -> Any:
        """One entry per edge: the shape, the layout and the dtype of the scores, behind other `axes` if given."""
        flat = rounded(flat, self.dtype)
        if not isinstance(self.arrays, list):
            assert self.leading is not None
            return flat.reshape(axes + self.leading + self.arrays.shape[1:])  # square: the same in both layouts
        rows = flat.reshape(*axes, self.core.edge_size)
        ends = np.cumsum([array.size for array in self.arrays], dtype=np.int64).tolist()
        parts = [rows[..., start:end] for start, end in zip([0, *ends], ends, strict=False)]
        return [part.reshape(axes + array.shape) for part, array in zip(parts, self.arrays, strict=True)]

    def flat_edges(
        self, values: Any, name: str, order: Literal["C", "F"] = "C"
    ) -> tuple[npt.NDArray[np.float64], bool]:
        """The inverse: numbers per edge as ``(R, edge_size)``, and whether they came with an axis for R.

        With order F the R numbers of an edge lie side by side, as they are usually given: then nothing is copied.
        """
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
            return np.asarray(joined.T, order=order), read[0][1]
        assert self.leading is not None
        features, several = _read_features(values, self.leading + self.arrays.shape[1:], name)
        return np.require(features.T, requirements=[order, "A", "W"]), several

    def number(self, x: float) -> np.floating[Any]:
        """One number in the dtype of the scores; what does not fit is infinite, or 0."""
        with np.errstate(over="ignore", under="ignore"):
            return self.dtype.type(x)

    def scalars(self, values: npt.NDArray[np.float64], k: int | None = None) -> Any:
        """One number per sentence, in the dtype of the scores."""
        values = rounded(values, self.dtype)
        if k is None and self.leading is not None and len(self.leading) == 1:
            return values
        if self.leading is not None:
            return values.reshape((() if k is None else (k,)) + self.leading)[()]
        return list(values if k is None else values.reshape(k, len(self)).T)

    def stack_scalars(self, values: npt.NDArray[np.float64]) -> Any:
        """Several numbers per sentence, (B, ...), with the sentences' axes first."""
        values = rounded(values, self.dtype)
        return list(values) if self.leading is None else values.reshape(self.leading + values.shape[1:])[()]

    def scalars_behind(self, values: npt.NDArray[np.float64], axes: tuple[int, ...]) -> Any:
        """One number per tree, values (k, B), where trees came with `axes` before those of the sentences."""
        values = rounded(values, self.dtype)
        if self.leading is None:
            return [column.reshape(axes)[()] for column in values.reshape(_product(axes), len(self)).T]
        return values.reshape(axes + self.leading)[()]

    def select(self, index: Any) -> tuple[Batch, list[int]]:
        """The part that `index` picks of an array of the batch's shape, and the numbers of its sentences."""
        shape = (len(self),) if self.leading is None else self.leading
        picked = np.asarray(np.arange(len(self)).reshape(shape)[index])
        which = picked.reshape(-1)
        lengths = self.lengths[which]
        if picked.ndim == 0:  # a view: nobody writes to it
            array = self.arrays[int(picked)][np.newaxis]
            return Batch(array, (), lengths, self.labelled, self.layout, self.dtype), which.tolist()
        if not isinstance(self.arrays, list):
            array = self.arrays[which]
            return Batch(array, picked.shape, lengths, self.labelled, self.layout, self.dtype), which.tolist()
        if picked.ndim > 1:
            raise IndexError(f"a list of sentences has one axis; this index makes {picked.ndim} of it")
        arrays = [self.arrays[i] for i in which]
        return Batch(arrays, None, lengths, self.labelled, self.layout, self.dtype), which.tolist()

    def with_matrices_changed(self, change: Callable[[int, FloatArray], None]) -> Batch:
        """A copy in which ``change(i, matrix)`` has edited every sentence's matrix, without padding, in place."""
        ragged = isinstance(self.arrays, list)
        arrays = [np.copy(array) for array in self.arrays] if ragged else np.copy(self.arrays)
        for i, (array, words) in enumerate(zip(arrays, self.lengths, strict=True)):
            change(i, array[: words + 1, : words + 1])
        return self.like_this(arrays, self.dtype)

    def like_this(self, arrays: Any, dtype: np.dtype[Any] | None = None) -> Batch:
        """The same sentences with other scores; results of another `dtype` than theirs, if given."""
        return Batch(arrays, self.leading, self.lengths, self.labelled, self.layout, dtype)

    def name(self, i: int) -> str:
        """How a caller would call sentence i."""
        if self.leading == ():
            return "the sentence"
        if self.leading is None or len(self.leading) == 1:
            return f"sentence {i}"
        return f"sentence {tuple(int(axis) for axis in np.unravel_index(i, self.leading))}"

    def _width(self) -> int:
        return int(self.arrays.shape[1])  # type: ignore[union-attr]


class _Reader:
    """Reads the matrices of one call: all of them by the same rules."""

    __slots__ = ("in_place", "labelled", "layout", "root_label", "temperature")

    def __init__(
        self, labelled: bool, layout: Layout, in_place: bool, temperature: float, root_label: int | None
    ) -> None:
        temperature = positive_number("temperature", temperature)
        if root_label is not None:
            if not labelled:
                raise ValueError("root_label needs labelled scores; say labelled=True")
            root_label = label_number(root_label, None, "root_label")
        self.labelled = labelled
        self.layout = layout
        self.in_place = in_place
        self.temperature = temperature
        self.root_label = root_label

    def matrices(self, given: Any, mask: Any, name: str) -> tuple[FloatArray, np.dtype[Any]]:
        """An array indexed [..., head, dep(, label)] that the core can read where it lies; the dtype of results."""
        array, dtype, ours, masked = read_scores(given, name)
        axes = 3 if self.labelled else 2
        self._check_shape(array.shape, axes, name)
        for allowed in (None if masked is None else ~masked, None if mask is None else read_flags(mask, "mask")):
            if allowed is not None:
                if allowed.shape != array.shape:
                    raise ValueError(f"mask has shape {allowed.shape}, {name} has {array.shape}")
                array, ours = array if ours else copy_of(array), True
                np.copyto(array, -np.inf, where=~allowed)
        if self.temperature != 1.0:
            array, ours = _divided(array, self.temperature), True
        if not (ours or (self.in_place and self.root_label is None)):
            array = copy_of(array)
        if self.layout == "dep_head":
            array = array.swapaxes(-axes, 1 - axes)
        if self.root_label is not None:
            self._keep_root_label_at_root(array)
        return array if _readable_in_place(array, axes) else np.array(array, order="C"), dtype

    def _check_shape(self, shape: tuple[int, ...], axes: int, name: str) -> None:
        if len(shape) < axes:
            wanted = "(..., n+1, n+1, labels)" if self.labelled else "(..., n+1, n+1)"
            raise ValueError(f"{name} must have shape {wanted}, not {shape}")
        heads, deps = shape[-axes], shape[1 - axes]
        if heads != deps or heads == 0:
            labels = not self.labelled and len(shape) > 2 and shape[-3] == heads
            hint = f"; if the last axis of {shape} are labels, say labelled=True" if labels else ""
            raise ValueError(f"{name} has {heads} x {deps} edges; a sentence of n words has (n+1) x (n+1){hint}")
        if heads > _LARGEST_SENTENCE:
            raise ValueError(f"{name} has {heads - 1} words; at most {_LARGEST_SENTENCE - 1} are possible")
        if self.labelled and shape[-1] == 0:
            raise ValueError(f"{name} has no labels")

    def _keep_root_label_at_root(self, array: FloatArray) -> None:
        label, labels = self.root_label, array.shape[-1]
        assert label is not None
        if not 0 <= label < labels:
            raise ValueError(f"root_label is {label}, and there are {labels} labels")
        array[..., 1:, :, label] = -np.inf
        array[..., 0, :, :label] = -np.inf
        array[..., 0, :, label + 1 :] = -np.inf


def _divided(scores: FloatArray, temperature: float) -> npt.NDArray[np.float64]:
    """In double precision. What is finite stays so: the least double, as a mask, does not come to forbid an edge."""
    with np.errstate(all="ignore"):  # whatever stands in the padding
        divided = np.divide(scores, temperature, dtype=np.float64)
    if temperature < 1.0:
        too_large = np.isinf(divided) & np.isfinite(scores)
        if too_large.any():
            divided[too_large] = np.copysign(np.finfo(np.float64).max, scores[too_large])
    return divided


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


def _is_one_sentence(scores: Sequence[Any], labelled: bool) -> bool:
    """Whether a list is one matrix as nested lists (or rows) of numbers, and no list of matrices."""
    if not scores or (labelled and isinstance(scores[0], np.ndarray)):
        return False
    depth, row = 1, scores[0]
    while isinstance(row, (list, tuple)) and row and depth < 4:  # a list may hold itself
        depth, row = depth + 1, row[0]
    return depth + np.ndim(row) == (3 if labelled else 2)


def _is_mask_of_words(scores: Any, mask: Any, labelled: bool) -> bool:
    """Whether a mask has one flag per word, not per edge: its number of axes says which."""
    return number_of_axes(mask, "mask") == number_of_axes(scores, "scores") - (2 if labelled else 1)


def _lengths_from_mask(mask: Any, words: int) -> IntArray:
    """Number of words of each sentence from flags ``(..., n)``, or ``(..., n+1)`` with one for ROOT, not looked at."""
    flags = read_flags(mask, "mask")
    if flags.shape[-1] == words + 1:
        flags = flags[..., 1:]
    if flags.shape[-1] != words:
        raise ValueError(f"mask has {flags.shape[-1]} words; the matrices have room for {words}")
    lengths = np.asarray(flags.sum(axis=-1))
    gaps = np.argwhere(flags != (np.arange(words) < lengths[..., np.newaxis]))
    if len(gaps):
        sentence = f"sentence {', '.join(map(str, gaps[0][:-1]))}" if flags.ndim > 1 else "the sentence"
        raise ValueError(
            f"{sentence}: the mask leaves out word {gaps[0][-1] + 1} and keeps a later one; "
            "a mask of words marks padding at the end, one of edges forbids edges anywhere"
        )
    return lengths


def _read_lengths(lengths: npt.ArrayLike, leading: tuple[int, ...], words: int) -> IntArray:
    array = read_integers(lengths, "lengths")
    if array.shape != leading:
        raise ValueError(f"lengths has shape {array.shape}; the batch has shape {leading}")
    flat = array.reshape(-1)
    outside = np.flatnonzero((flat < 0) | (flat > words))
    if len(outside):
        i = int(outside[0])
        raise ValueError(f"lengths: sentence {i} has {flat[i]} words; the matrices have room for 0 to {words}")
    return flat


def _read_features(values: Any, shape: tuple[int, ...], name: str) -> tuple[npt.NDArray[np.float64], bool]:
    """Values of `shape`, or with one more axis, as (edges, R)."""
    array = read_values(values, name)
    several = array.ndim == len(shape) + 1
    if array.shape[: len(shape)] != shape or array.ndim > len(shape) + 1:
        raise ValueError(f"{name} has shape {array.shape}; it must be {shape}, or that and one more axis")
    return array.reshape(_product(shape), array.shape[-1] if several else 1), several


def rounded(values: npt.NDArray[np.float64], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Double precision in the dtype of the scores; what does not fit is infinite, or 0."""
    if values.dtype is dtype:
        return values
    with np.errstate(over="ignore", under="ignore"):
        return values.astype(dtype, copy=False)


def _product(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape, dtype=np.int64))
