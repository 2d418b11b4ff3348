"""Answers on devices that the core does not run on: sums over trees as array operations, all else through the host.

Same arguments and results as the core's handlers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax.numpy as jnp

import jax
from jax import Array

from .._front.form import LABELLED, PROJECTIVE, SINGLE_ROOT, UNKNOWN, edge_axes
from . import _host, _walk
from ._form import agreeing_edges, over_edges


def answer(handler: str, results: Sequence[Any], *args: Array, form: int, **params: Any) -> Sequence[Array]:
    """`results` have the shapes and dtypes of what is wanted."""
    sums = _SUMS.get(handler)
    if sums is not None and not form & PROJECTIVE:
        return sums(*args, form=form)[: len(results)]  # type: ignore[no-any-return,operator]
    shapes = [jax.ShapeDtypeStruct(result.shape, result.dtype) for result in results]
    return jax.pure_callback(partial(_host.answer, handler, shapes, form), shapes, *args)  # type: ignore[no-any-return]


def _solve(scores: Array, lengths: Array, form: int) -> tuple[Array, Array]:
    """log Z and marginals. Labels are summed out before, and share an edge's probability afterwards."""
    single = bool(form & SINGLE_ROOT)
    if not form & LABELLED:
        return _walk.solve(scores, lengths, single)
    best = jax.lax.stop_gradient(jnp.max(scores, axis=-1, keepdims=True))
    best = jnp.where(jnp.isfinite(best), best, 0.0)
    weights = jnp.exp(scores - best)
    total = jnp.sum(weights, axis=-1, keepdims=True)
    there = total > 0.0
    edges = jnp.where(there, jnp.log(jnp.where(there, total, 1.0)) + best, -jnp.inf)[..., 0]
    edges = jnp.where(jnp.any(jnp.isnan(scores), axis=-1), jnp.nan, edges)
    log_z, marginals = _walk.solve(edges, lengths, single)
    shares = jnp.where(there, weights / jnp.where(there, total, 1.0), 0.0)
    return log_z, jnp.where(marginals[..., None] != 0.0, shares * marginals[..., None], 0.0)


def _hessian(scores: Array, lengths: Array, g: Array, form: int) -> tuple[Array]:
    flat = g.reshape(-1, *scores.shape)
    return (jax.vmap(lambda one: _along(scores, lengths, one, form))(flat).reshape(g.shape),)


def _along(scores: Array, lengths: Array, g: Array, form: int) -> Array:
    edges = jnp.where(scores > -jnp.inf, g.astype(scores.dtype), 0.0)
    return jax.jvp(lambda s: _solve(s, lengths, form)[1], (scores,), (edges,))[1]  # type: ignore[no-any-return]


def _third(scores: Array, lengths: Array, u: Array, g: Array, form: int) -> tuple[Array]:
    def one(along_u: Array, along_g: Array) -> Array:
        edges = jnp.where(scores > -jnp.inf, along_u, 0.0)
        return jax.jvp(lambda s: _along(s, lengths, along_g, form), (scores,), (edges,))[1]  # type: ignore[no-any-return]

    flat = (x.reshape(-1, *scores.shape) for x in (u, g))
    return (jax.vmap(one)(*flat).reshape(g.shape),)


def _expectation(scores: Array, lengths: Array, values: Array, form: int) -> tuple[Array, Array]:
    log_z, marginals = _solve(scores, lengths, form)
    known = jnp.where(marginals > 0.0, values, 0.0)
    total = jnp.sum(known * marginals, axis=tuple(range(-edge_axes(form), 0)))
    return jnp.where(jnp.isfinite(log_z), total, jnp.nan), _hessian(scores, lengths, known, form)[0]


def _entropy(scores: Array, lengths: Array, form: int) -> tuple[Array, Array]:
    log_z, _ = _solve(scores, lengths, form)
    mean, gradient = _expectation(scores, lengths, scores, form)
    return log_z - mean, -gradient


def _cross_entropy(p: Array, lengths: Array, q: Array, form: int) -> tuple[Array, Array, Array]:
    log_z, of_p = _solve(p, lengths, form)
    other_log_z, of_q = _solve(q, lengths, form)
    missing = jnp.any((of_p > 0.0) & (of_q == 0.0), axis=tuple(range(-edge_axes(form), 0)))
    mean, gradient = _expectation(p, lengths, jnp.where(q > -jnp.inf, q, 0.0), form)
    value = jnp.where(missing, jnp.inf, other_log_z - mean)
    value = jnp.where(jnp.isfinite(log_z), value, jnp.nan)
    known = over_edges(jnp.isfinite(value), form)
    return value, jnp.where(known, -gradient, 0.0), jnp.where(known, of_q - of_p, 0.0)


def _kl(p: Array, lengths: Array, q: Array, form: int) -> tuple[Array, Array, Array]:
    cross, by_p, by_q = _cross_entropy(p, lengths, q, form)
    entropy, gradient = _entropy(p, lengths, form)
    known = over_edges(jnp.isfinite(cross), form)
    return cross - entropy, jnp.where(known, by_p - gradient, 0.0), by_q


def _crf_loss(scores: Array, lengths: Array, heads: Array, labels: Array, form: int) -> tuple[Array, Array]:
    """log Z less that of the trees which have what is known: one of them, if all is known and a tree."""
    log_z, marginals = _solve(scores, lengths, form)
    known = jnp.where(agreeing_edges(heads, labels, scores, form), scores, -jnp.inf)
    known_log_z, known_marginals = _solve(known, lengths, form)
    loss = jnp.where(known_log_z > -jnp.inf, log_z - known_log_z, jnp.inf)
    gradient = jnp.where(over_edges(jnp.isfinite(loss), form), marginals - known_marginals, 0.0)
    return jnp.where(jnp.isnan(log_z), jnp.inf, loss), gradient


def _log_prob(scores: Array, lengths: Array, heads: Array, labels: Array, form: int) -> tuple[Array]:
    axes = scores.ndim - edge_axes(form) + 1
    several = heads.shape[: heads.ndim - axes]
    flat = (
        x.reshape(math.prod(several), *x.shape[len(several) :])
        for x in (jnp.where(heads == UNKNOWN, -1, heads), labels)
    )
    found = jax.vmap(lambda one, of_one: -_crf_loss(scores, lengths, one, of_one, form)[0])(*flat)
    return (found.reshape(several + found.shape[1:]),)


_SUMS = {
    "log_partition": _solve,
    "hessian": _hessian,
    "third": _third,
    "expectation": _expectation,
    "entropy": _entropy,
    "cross_entropy": _cross_entropy,
    "kl": _kl,
    "crf_loss": _crf_loss,
    "log_prob": _log_prob,
}
