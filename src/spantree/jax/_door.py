"""The door: what a caller hands in becomes scores ``[..., head, dep(, label)]``, lengths and a form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

import jax
from jax import Array

from .._front.base import Door
from .._front.form import PADDING_IN_BETWEEN, check_shape, form_of, is_mask_of_words, turned, words_in
from .._front.ragged import stack_list
from .._options import Layout, RootMode, positive_number


def read(
    scores: Any,
    lengths: Any = None,
    mask: Any = None,
    *,
    root: RootMode = "single",
    projective: bool = False,
    labelled: bool = False,
    layout: Layout = "head_dep",
) -> Door:
    """Checks all that can be checked of traced values too."""
    form = form_of(root, projective, labelled, layout, "mask")
    scores = own(scores)
    axes = 3 if labelled else 2
    check_shape(scores.shape, labelled)
    if jnp.issubdtype(scores.dtype, jnp.complexfloating) or scores.dtype == bool:
        raise TypeError(f"scores must be real numbers, such as float32 or float64, not {scores.dtype}")
    if not jnp.issubdtype(scores.dtype, jnp.floating):
        scores = scores.astype(jax.dtypes.canonicalize_dtype(np.float64))
    batch, nodes = scores.shape[: scores.ndim - axes], scores.shape[-axes]
    mask = None if mask is None else jnp.asarray(mask)
    if mask is not None and is_mask_of_words(mask, scores, labelled):
        if lengths is not None:
            raise ValueError("give lengths or a mask of words, not both")
        lengths = _lengths_from(mask, nodes)
    elif mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf)
    return Door(turned(scores, layout, labelled), _read_lengths(lengths, batch, nodes), form)


def read_list(matrices: Sequence[Any], lengths: Any, mask: Any) -> tuple[Array, Any, Any, tuple[int, ...]]:
    """Matrices of different sizes as one padded batch: scores, lengths, mask, and sizes."""
    scores, allowed, sizes = stack_list(matrices, lengths, mask, jnp.asarray, pad, jnp.stack)
    return scores, np.array(sizes) - 1, allowed, sizes


def pad(array: Array, widths: list[tuple[int, int]], fill: float) -> Array:
    """With so many more entries before and behind those along each axis."""
    return jnp.pad(array, widths, constant_values=fill)


def own(numbers: Any) -> Array:
    """As an array that no caller can change: JAX may look at NumPy's in place."""
    return jnp.array(numbers) if isinstance(numbers, np.ndarray) else jnp.asarray(numbers)


def divisor(temperature: Any) -> float | Array:
    """A temperature: a number, or an array that holds one and may be traced."""
    if not isinstance(temperature, Array):
        return positive_number("temperature", temperature)
    if temperature.size != 1:
        raise TypeError(f"temperature must be a real number, not an array of shape {temperature.shape}")
    number = temperature.reshape(())
    return number if is_traced(number) else positive_number("temperature", number)


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
    lengths = own(lengths)
    if not jnp.issubdtype(lengths.dtype, jnp.integer):
        raise TypeError(f"lengths must be integers, not {lengths.dtype}")
    if lengths.shape != batch:
        raise ValueError(f"lengths have shape {lengths.shape}; the batch has shape {batch}")
    return jnp.asarray(lengths, jnp.int32)


def _lengths_from(mask: Array, nodes: int) -> Array:
    """Words of each sentence from flags ``(..., n)``, or ``(..., n+1)`` with one for ROOT, not looked at."""
    words = words_in(mask, nodes)
    if not is_traced(words) and np.any(np.diff(np.asarray(words).astype(np.int8)) > 0):
        raise ValueError(PADDING_IN_BETWEEN)
    return jnp.sum(words, axis=-1)
