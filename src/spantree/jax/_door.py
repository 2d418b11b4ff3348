"""The door: what a caller hands in becomes scores ``[..., head, dep(, label)]``, lengths and a form."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

import jax
from jax import Array

from .._options import Layout, RootMode, check_choice, core_root
from ._form import LABELLED, PROJECTIVE, SINGLE_ROOT


class Door(NamedTuple):
    scores: Array
    lengths: Array
    form: int


def read(
    scores: Any,
    lengths: Any = None,
    mask: Any = None,
    *,
    root: RootMode = "single",
    projective: bool = False,
    labelled: bool = False,
    layout: Layout = "head_dep",
    temperature: Any = 1.0,
) -> Door:
    """Checks all that can be checked of traced values too."""
    check_choice("layout", layout, "head_dep", "dep_head")
    core_root(root)
    scores = jnp.asarray(scores)
    axes = 3 if labelled else 2
    if scores.ndim < axes or scores.shape[-axes] != scores.shape[1 - axes] or 0 in scores.shape[-axes:]:
        wanted = "(..., n+1, n+1, labels)" if labelled else "(..., n+1, n+1)"
        raise ValueError(f"scores have shape {scores.shape}; they must be {wanted}")
    if jnp.issubdtype(scores.dtype, jnp.complexfloating):
        raise TypeError("scores must be real numbers")
    if scores.dtype not in (jnp.float32, jnp.float64):
        half = jnp.issubdtype(scores.dtype, jnp.floating)
        scores = scores.astype(jnp.float32 if half else jax.dtypes.canonicalize_dtype(np.float64))
    batch, nodes = scores.shape[: scores.ndim - axes], scores.shape[-axes]
    if mask is not None and jnp.ndim(mask) == scores.ndim - axes + 1:
        if lengths is not None:
            raise ValueError("give lengths or a mask of words, not both")
        lengths = _lengths_from(jnp.asarray(mask, dtype=bool), nodes)
    elif mask is not None:
        scores = jnp.where(jnp.asarray(mask, dtype=bool), scores, -jnp.inf)
    if not (isinstance(temperature, (int, float)) and temperature == 1.0):
        if isinstance(temperature, (int, float)) and not 0.0 < temperature < float("inf"):
            raise ValueError(f"temperature must be positive and finite, not {temperature!r}")
        scores = scores / temperature
    form = (SINGLE_ROOT if root == "single" else 0) | (PROJECTIVE if projective else 0) | (LABELLED if labelled else 0)
    return Door(turned(scores, layout, labelled), _read_lengths(lengths, batch, nodes), form)


def turned(edges: Array, layout: Layout, labelled: bool) -> Array:
    """``[head, dep]`` in the caller's order of axes, and back."""
    return edges if layout == "head_dep" else jnp.swapaxes(edges, -3, -2) if labelled else jnp.swapaxes(edges, -2, -1)


def is_traced(*arrays: Any) -> bool:
    return any(isinstance(array, jax.core.Tracer) for array in arrays)


def _read_lengths(lengths: Any, batch: tuple[int, ...], nodes: int) -> Array:
    if lengths is None:
        return jnp.full(batch, nodes - 1, jnp.int32)
    if not is_traced(lengths):
        numbers = np.asarray(lengths)
        if not np.issubdtype(numbers.dtype, np.integer):
            raise TypeError(f"lengths must be integers, not {numbers.dtype}")
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < nodes:
            raise ValueError(f"lengths must be between 0 and {nodes - 1}, the words that the matrices have room for")
    lengths = jnp.asarray(lengths)
    if not jnp.issubdtype(lengths.dtype, jnp.integer):
        raise TypeError(f"lengths must be integers, not {lengths.dtype}")
    if lengths.shape != batch:
        raise ValueError(f"lengths have shape {lengths.shape}; the batch has shape {batch}")
    return jnp.asarray(lengths, jnp.int32)


def _lengths_from(mask: Array, nodes: int) -> Array:
    """Words of each sentence from flags ``(..., n)``, or ``(..., n+1)`` with one for ROOT, not looked at."""
    words = mask[..., 1:] if mask.shape[-1] == nodes else mask
    if words.shape[-1] != nodes - 1:
        raise ValueError(f"mask has {words.shape[-1]} words; the matrices have room for {nodes - 1}")
    if not is_traced(mask) and bool(jnp.any(words[..., 1:] > words[..., :-1])):
        raise ValueError(
            "a mask of words marks padding at the end, and this one keeps a word behind one that it leaves out; "
            "a mask of edges forbids edges anywhere"
        )
    return jnp.sum(words, axis=-1)
