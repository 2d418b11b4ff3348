"""Kinds of arrays, and the edges of trees among the scores."""

from __future__ import annotations

import jax.numpy as jnp

from jax import Array

from .._front.form import LABELLED, UNKNOWN, edge_axes

# What an array has for each sentence; negative: several times, along axes before those of the batch.
EDGES, NUMBERS, NODES = 1, 2, 3
SEVERAL_EDGES, SEVERAL_NUMBERS, SEVERAL_NODES = -EDGES, -NUMBERS, -NODES


def over_edges(numbers: Array, form: int) -> Array:
    """Numbers for each sentence, with axes for the edges."""
    return jnp.expand_dims(numbers, tuple(range(-edge_axes(form), 0)))


def agreeing_edges(heads: Array, labels: Array, scores: Array, form: int) -> Array:
    """Which edges agree with heads (and labels, unless there are none): all do with an unknown one.

    Anything at ROOT and in the padding.
    """
    nodes = jnp.arange(heads.shape[-1])
    agrees = (heads[..., None, :] == nodes[:, None]) | (heads[..., None, :] == UNKNOWN)  # [head, dep]
    if not form & LABELLED:
        return agrees
    if labels.shape[-1] == 0:
        return jnp.broadcast_to(agrees[..., None], (*agrees.shape, scores.shape[-1]))
    label_agrees = (labels[..., None] == jnp.arange(scores.shape[-1])) | (labels[..., None] == UNKNOWN)  # [dep, label]
    return agrees[..., None] & label_agrees[..., None, :, :]


def real_words(nodes: int, lengths: Array) -> Array:
    """Which nodes are words: no ROOT, no padding. (*batch, n+1)"""
    numbers = jnp.arange(nodes)
    return (numbers > 0) & (numbers <= lengths[..., None])


def real_edges(nodes: int, lengths: Array, form: int) -> Array:
    """Which entries are edges between a word and another node. (*batch, n+1, n+1[, 1])"""
    words, numbers = real_words(nodes, lengths), jnp.arange(nodes)
    heads = words | (numbers == 0)
    edges = words[..., None, :] & heads[..., :, None] & (numbers[:, None] != numbers)
    return edges[..., None] if form & LABELLED else edges


def sum_over_edges(values: Array, heads: Array, labels: Array, lengths: Array, form: int) -> Array:
    """The sum of values (*batch, n+1, n+1[, labels]) over the edges of each tree (*several, *batch, n+1)."""
    nodes = heads.shape[-1]
    there = jnp.clip(heads, 0, nodes - 1)[..., None, :]  # [1, dep]: which row of heads
    if form & LABELLED:
        # One label first, then one head, of each dependent.
        several = (1,) * (heads.ndim - (values.ndim - 2))
        wide = jnp.broadcast_to(values.reshape(several + values.shape), (*heads.shape[:-1], *values.shape[-3:]))
        of_label = jnp.clip(labels, 0, values.shape[-1] - 1)[..., None, :, None]
        values = jnp.take_along_axis(wide, of_label, axis=-1)[..., 0]
    else:
        several = (1,) * (heads.ndim - (values.ndim - 1))
        values = jnp.broadcast_to(values.reshape(several + values.shape), (*heads.shape[:-1], *values.shape[-2:]))
    of_edges = jnp.take_along_axis(values, there, axis=-2)[..., 0, :]
    return jnp.sum(jnp.where(real_words(nodes, lengths), of_edges, 0.0), axis=-1)
