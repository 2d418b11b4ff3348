"""The forms in which sentences are handed in, and the way back: what a result says of each sentence, [head, dep]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

RUBBISH = [np.nan, np.inf, -np.inf, 1e300, 0.0]


def fortran(array):
    return np.asfortranarray(array)


def strided(array):
    """Every second entry, backwards, of something larger."""
    wide = np.full([2 * size for size in array.shape], array.dtype.type(7))
    view = wide[tuple(slice(None, None, -2) for _ in array.shape)]
    view[...] = array
    return view


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def unaligned(array):
    room = np.empty(array.nbytes + 1, np.uint8)
    view = room[1:].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


MEMORY = {"plain": np.copy, "fortran": fortran, "strided": strided, "read-only": read_only, "unaligned": unaligned}


@dataclass(frozen=True)
class Form:
    """How a batch is handed in."""

    kind: str  # "one", "padded", "two axes", "listed", "repeated": the same memory twice, a stride of 0 apart
    layout: str = "head_dep"
    memory: str = "plain"
    masked: bool = False  # whether forbidden edges are said by a mask, and rubbish stands in their place

    def __str__(self) -> str:
        return f"{self.kind}, {self.layout}, {self.memory}{', masked' if self.masked else ''}"

    def batches(self, sentences: list) -> list[list]:
        """The sentences of each call."""
        if self.kind == "one":
            return [[sentence] for sentence in sentences]
        if self.kind == "repeated":
            return [[sentence, sentence] for sentence in sentences]
        if self.kind == "two axes" and len(sentences) % 2:
            return [[*sentences, sentences[0]]]
        return [sentences]

    # In

    def options(self, sentences: list) -> dict[str, Any]:
        words = np.array([sentence.words for sentence in sentences])
        options: dict[str, Any] = {"layout": self.layout}
        if self.kind in ("padded", "two axes"):
            options["lengths"] = words.reshape(self._leading(sentences))
        return options

    def scores(self, arrays: list[np.ndarray]) -> dict[str, Any]:
        """Scores [head, dep(, label)] of each sentence, and a mask if this form has one, by keyword."""
        if not self.masked:
            return {"scores": self.edges(arrays)}
        allowed = [array != -np.inf for array in arrays]
        hidden = [np.where(ok, array, array.dtype.type(np.nan)) for ok, array in zip(allowed, arrays, strict=True)]
        return {"scores": self.edges(hidden), "mask": self.edges(allowed, filler=False)}

    def edges(self, arrays: list[np.ndarray], filler: Any = None) -> Any:
        """Numbers per edge [head, dep(, label)(, more)] of each sentence."""
        if self.layout == "dep_head":
            arrays = [array.swapaxes(0, 1) for array in arrays]
        return self._pack(arrays, 2, filler)

    def nodes(self, arrays: list[np.ndarray], filler: int = 0) -> Any:
        """Integers per node (..., n+1), leading axes first, as `score` takes them."""
        if self.kind == "one":
            return MEMORY[self.memory](arrays[0])
        if self.kind == "listed":
            return [MEMORY[self.memory](array) for array in arrays]
        width = self._width(arrays, -1)
        padded = np.full((*arrays[0].shape[:-1], len(arrays), width), filler, arrays[0].dtype)
        for i, array in enumerate(arrays):
            padded[..., i, : array.shape[-1]] = array
        return MEMORY[self.memory](padded.reshape((*arrays[0].shape[:-1], *self._leading(arrays), width)))

    def scalars(self, numbers: list[Any]) -> Any:
        """Numbers (R,) or () per sentence."""
        if self.kind == "one":
            return numbers[0]
        if self.kind == "listed":
            return list(numbers)
        stacked = np.stack([np.asarray(number) for number in numbers])
        return stacked.reshape(self._leading(numbers) + stacked.shape[1:])

    def _leading(self, items: list) -> tuple[int, ...]:
        return (2, len(items) // 2) if self.kind == "two axes" else () if self.kind == "one" else (len(items),)

    def _width(self, arrays: list[np.ndarray], axis: int) -> int:
        return max(array.shape[axis] for array in arrays) + (1 if self.kind == "padded" else 0)

    def _pack(self, arrays: list[np.ndarray], axes: int, filler: Any) -> Any:
        if self.kind == "one":
            return MEMORY[self.memory](arrays[0])
        if self.kind == "listed":
            return [MEMORY[self.memory](array) for array in arrays]
        if self.kind == "repeated" and all(np.array_equal(array, arrays[0]) for array in arrays):
            return np.broadcast_to(MEMORY[self.memory](arrays[0]), (len(arrays), *arrays[0].shape))
        width = self._width(arrays, 0)
        padded = np.zeros((len(arrays), *[width] * axes, *arrays[0].shape[axes:]), arrays[0].dtype)
        for i, array in enumerate(arrays):
            with np.errstate(over="ignore"):
                padded[i] = RUBBISH[i % len(RUBBISH)] if filler is None else filler
            padded[(i, *[slice(len(array))] * axes)] = array
        return MEMORY[self.memory](padded.reshape(self._leading(arrays) + padded.shape[1:]))

    # Out. `before` counts axes ahead of the sentences' own, as for k trees; `after` those between sentence and edges.

    def scalars_of(self, result: Any, sentences: list, before: int = 0) -> list[np.ndarray]:
        self._check_form(result)
        if self.kind == "one":
            return [np.asarray(result)]
        if self.kind == "listed":
            return [np.asarray(part) for part in result]
        array = np.asarray(result)
        assert array.shape[before:][: len(self._leading(sentences))] == self._leading(sentences), array.shape
        flat = array.reshape(
            (*array.shape[:before], len(sentences), *array.shape[before + len(self._leading(sentences)) :])
        )
        return [flat[(slice(None),) * before + (i,)] for i in range(len(sentences))]

    def nodes_of(self, result: Any, sentences: list, before: int = 0) -> list[np.ndarray]:
        parts = self.scalars_of(result, sentences, before)
        for part, sentence in zip(parts, sentences, strict=True):
            assert part.dtype == np.int64
            assert (part[..., sentence.words + 1 :] == -1).all(), "padding of heads or labels must be -1"
        return [part[..., : sentence.words + 1] for part, sentence in zip(parts, sentences, strict=True)]

    def edges_of(self, result: Any, sentences: list, before: int = 0, after: int = 0) -> list[np.ndarray]:
        """[head, dep(, label)(, more)], without the padding, in which there must be zeros (or NaN: no tree)."""
        out = []
        for part, sentence in zip(self.scalars_of(result, sentences, before), sentences, strict=True):
            nodes = sentence.words + 1
            part = np.moveaxis(part, (before + after, before + after + 1), (0, 1))
            if self.layout == "dep_head":
                part = part.swapaxes(0, 1)
            inside = part[:nodes, :nodes]
            rest = part.copy()
            rest[:nodes, :nodes] = 0
            assert ((rest == 0) | np.isnan(rest)).all(), "padding of an edge result must be 0"
            out.append(inside)
        return out

    def _check_form(self, result: Any) -> None:
        assert isinstance(result, list) == (self.kind == "listed"), f"a {type(result).__name__} for {self.kind}"


FORMS = [
    Form("one"),
    Form("one", "dep_head", "strided"),
    Form("padded"),
    Form("padded", "dep_head", "read-only"),
    Form("padded", "head_dep", "unaligned"),
    Form("two axes", "head_dep", "fortran"),
    Form("two axes", "dep_head", "strided"),
    Form("listed"),
    Form("listed", "dep_head", "fortran"),
    Form("padded", "dep_head", masked=True),
    Form("listed", "head_dep", "strided", masked=True),
    Form("repeated", "dep_head"),
]
