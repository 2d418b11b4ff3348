"""What a front end's distribution is, and how what callers hand in gets to it and back: settings, layout, lists, trees.

A front end has a module of array functions (`_xp`) whose names both libraries share, and a few steps of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

import spantree

from .._options import Layout, OnInfeasible, RootMode
from .._trees import Trees, parts_of
from .form import LABELLED, PROJECTIVE, SINGLE_ROOT, UNKNOWN, edge_axes, turned
from .ragged import stack_edges, stack_nodes

if TYPE_CHECKING:
    from typing_extensions import Self

A = TypeVar("A")  # Tensor, or Array
M = TypeVar("M", bound=Callable[..., Any])


class Door(NamedTuple):
    """Scores ``[..., head, dep(, label)]``, lengths and form: what every question is about."""

    scores: Any
    lengths: Any
    form: int


class Names(NamedTuple):
    """Names of words and labels, for people; and the sizes of matrices that came as a list, ROOT included."""

    words: Sequence[Any] | None = None
    labels: Sequence[str] | None = None
    sizes: tuple[int, ...] | None = None

    def at(self, index: Any) -> Names:
        """Of the part of the batch that the index picks, where it is one sentence or a range along the first axis."""
        if not isinstance(index, (int, slice)):
            return Names(labels=self.labels)
        words = None if self.words is None else self.words[index]
        sizes = None if self.sizes is None or isinstance(index, int) else self.sizes[index]
        return Names(words, self.labels, sizes)


NO_NAMES = Names()


def rounded(method: M) -> M:
    """Of a method whose result is numbers, in the dtype that the scores are computed with."""

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self._rounded(method(self, *args, **kwargs))

    return call  # type: ignore[return-value]


def in_full(method: M) -> M:
    """Of a method whose result is numbers: half precision computed with as float32, and rounded once at the end."""

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        full = self._full()
        return method(self, *args, **kwargs) if full is self else self._rounded(method(full, *args, **kwargs))

    return call  # type: ignore[return-value]


def in_double(method: M) -> M:
    """Of a method that puts several answers together: in the widest type there is, and rounded once at the end."""

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        wide = self._wide()
        return method(self, *args, **kwargs) if wide is self else self._rounded(method(wide, *args, **kwargs))

    return call  # type: ignore[return-value]


class Base(Generic[A]):
    """Scores, lengths, settings and names."""

    _xp: ClassVar[Any]
    _scores: Any
    _lengths: Any
    _form: int
    _dtype: Any  # of the answers: that of the scores, unless these had to become wider to be divided by a temperature
    _layout: Layout
    _names: Names

    # What it is

    @property
    def root(self) -> RootMode:
        """Whether one edge leaves ROOT ("single") or any number ("multi")."""
        return "single" if self._form & SINGLE_ROOT else "multi"

    @property
    def projective(self) -> bool:
        """Whether only trees without crossing arcs count."""
        return bool(self._form & PROJECTIVE)

    @property
    def labelled(self) -> bool:
        """Whether edges have labels."""
        return bool(self._form & LABELLED)

    @property
    def scores(self) -> A:
        """The scores that count: after mask and temperature, in the caller's layout. They are not to be written to."""
        return self._edges_out(self._rounded(self._scores))  # type: ignore[no-any-return]

    @property
    def mode(self) -> Any:
        """The best tree of each sentence: `argmax`."""
        return self.argmax()

    @property
    def _nodes(self) -> int:
        return int(self._scores.shape[-edge_axes(self._form)])

    @property
    def _sizes(self) -> tuple[int, ...] | None:
        """Nodes of each sentence of a list; None for a padded batch, and when the list's axis has been mapped over."""
        sizes = self._names.sizes
        return sizes if sizes is not None and tuple(self.batch_shape) == (len(sizes),) else None

    def __bool__(self) -> bool:
        return True

    def __len__(self) -> int:
        if not self.batch_shape:
            raise TypeError("a distribution over one sentence's trees has no length")
        return int(self.batch_shape[0])

    def __repr__(self) -> str:
        if not hasattr(self._scores, "shape"):  # JAX puts anything in the place of arrays
            return f"TreeDistribution({self._scores!r}, {self._lengths!r})"
        kind = ", projective" if self.projective else ""
        labels = f", {self._scores.shape[-1]} labels" if self.labelled else ""
        return (
            f"TreeDistribution(batch_shape: {tuple(self.batch_shape)}, {self._nodes - 1} words, {self.root} root{kind}"
            f"{labels}, {self._dtype})"
        )

    # From callers, and back to them

    def _read_trees(self, heads: Any, labels: Any, partial: bool = False) -> tuple[Self, Any, Any]:
        """Trees broadcast against the batch, and this distribution if its batch is the smaller one."""
        heads, labels = parts_of(heads, labels)
        if self.labelled != (labels is not None) and not (partial and self.labelled):
            raise ValueError("labels are needed with labelled scores, and only with them")
        heads, labels = self._nodes_in(heads, "heads"), None if labels is None else self._nodes_in(labels, "labels")
        if heads.ndim == 0 or heads.shape[-1] != self._nodes:
            raise ValueError(f"heads must be integers (..., {self._nodes}), not of {tuple(heads.shape)}")
        if labels is not None and labels.shape != heads.shape:
            raise ValueError("heads and labels must have the same shape")
        shape = self._xp.broadcast_shapes(heads.shape[:-1], tuple(self.batch_shape))
        dist = self._expanded(shape[len(shape) - len(self.batch_shape) :])
        wide = [None if x is None else self._xp.broadcast_to(x, (*shape, self._nodes)) for x in (heads, labels)]
        return dist, *wide

    def _read_values(self, values: Any, name: str) -> tuple[Any, bool]:
        """Values per edge as (*batch, head, dep(, label)), or (R, ...) and True if they came with an axis for R."""
        values, shape = self._numbers_in(values, name), tuple(self._scores.shape)
        several = values.ndim == len(shape) + 1
        moved = self._moved(values, -1, 0) if several else values
        if values.ndim > len(shape) + 1 or self._xp.broadcast_shapes(moved.shape[several:], shape) != shape:
            raise ValueError(f"{name} have shape {tuple(values.shape)}; they must be {shape}, or that and one more")
        return self._turned(self._xp.broadcast_to(moved, (*moved.shape[:several], *shape))), several

    def _read_target(self, target: Any, shape: tuple[int, ...]) -> Any:
        numbers = self._like_scores(self._array(target))
        try:
            return self._xp.broadcast_to(numbers, shape)
        except (RuntimeError, ValueError):
            raise ValueError(f"target has shape {tuple(numbers.shape)}; it must be {shape}") from None

    def _edges_of(self, heads: Any, labels: Any) -> Any:
        """`edges_of` as [head, dep(, label)]."""
        dist, heads, labels = self._read_trees(heads, labels)
        known = self._xp.where(heads == UNKNOWN, -1, heads)
        return dist._agreeing(known, labels) & dist._real_edges()

    def _nodes_in(self, nodes: Any, name: str) -> Any:
        """Heads, or labels, as integers; a list padded."""
        sizes = self._sizes
        if sizes is not None and isinstance(nodes, (list, tuple)):
            nodes = stack_nodes([self._array(row) for row in nodes], sizes, name, self._pad, self._xp.stack)
        return self._integers(self._array(nodes))

    def _numbers_in(self, numbers: Any, name: str) -> Any:
        """Numbers of edges in the dtype of the scores; a list padded."""
        sizes = self._sizes
        if sizes is not None and isinstance(numbers, (list, tuple)):
            numbers = stack_edges([self._array(matrix) for matrix in numbers], sizes, name, self._pad, self._xp.stack)
        return self._like_scores(self._array(numbers))

    def _turned(self, edges: Any) -> Any:
        return turned(edges, self._layout, self.labelled)

    def _edges_out(self, edges: Any) -> Any:
        """Numbers of edges as the caller had his scores: padded, or a list."""
        sizes = self._sizes
        if sizes is None:
            return self._turned(edges)
        parts = [edges[(..., i, *(slice(size),) * 2, *(slice(None),) * self.labelled)] for i, size in enumerate(sizes)]
        return [self._turned(part) for part in parts]

    def _nodes_out(self, nodes: Any) -> Any:
        """Heads, or labels, likewise."""
        sizes = self._sizes
        return nodes if sizes is None else [nodes[..., i, :size] for i, size in enumerate(sizes)]

    def _several_out(self, numbers: Any) -> Any:
        """Numbers (k, ...) of k trees a sentence, likewise."""
        return numbers if self._sizes is None else [numbers[:, i] for i in range(len(self._sizes))]

    def _trees(self, heads: Any, labels: Any) -> Any:
        heads = self._nodes_out(heads)
        return Trees(heads, labels=self._nodes_out(labels)) if self.labelled else heads

    def _from_numpy(self, nodes: Any) -> Any:
        """Heads, or labels, of the NumPy side."""
        return (
            [self._from_numpy(row) for row in nodes] if isinstance(nodes, list) else self._integers(self._array(nodes))
        )

    def _as_numpy(
        self, scores: Any, lengths: Any, on_infeasible: OnInfeasible
    ) -> spantree.TreeDistribution[Any, Any, Any]:
        words, labels, _ = self._names
        sizes = self._sizes
        if sizes is not None:
            scores = [np.asarray(matrix) for matrix in scores]
        return spantree.TreeDistribution(
            scores,
            lengths=None if sizes is not None else lengths,
            root=self.root,
            projective=self.projective,
            labelled=self.labelled,
            layout=self._layout,
            on_infeasible=on_infeasible,
            words=words,
            labels=labels,
        )

    if TYPE_CHECKING:  # what a front end has of its own
        batch_shape: Any
        lengths: Any
        argmax: Any
        entropy: Any
        expectation: Any
        kl: Any
        log_partition: Any
        log_prob: Any
        numpy: Any
        score: Any
        _agreeing: Any  # which edges agree with heads and labels
        _array: Any  # anything as an array
        _copied: Any  # so that no caller can change it; with the same gradient
        _constant: Any  # a NumPy array as one that goes with the scores
        _expanded: Any  # with these axes of the batch
        _expectation: Any  # of values (*R, *batch, head, dep(, label))
        _fixed: Any  # without a gradient
        _full: Any  # itself, or with scores in float32 if they are in half precision
        _rounded: Any  # numbers in the dtype of the answers
        _has_trees: Any  # which sentences have one; None: all
        _hessian: Any  # of log Z, times directions (*R, *batch, head, dep(, label))
        _integers: Any  # raises unless they are
        _like_scores: Any  # in their dtype
        _moved: Any  # (array, axes, where they are to be)
        _pad: Any  # (array, widths, fill)
        _possible: Any  # edges that are in some tree
        _question: Any  # scores, lengths and form
        _real_edges: Any  # no padding, no diagonal, no column 0
        _relative_scores: Any  # without what all trees have in common, and without a gradient
        _with: Any  # (scores, lengths)
