"""Questions about trees as JAX primitives: their shapes, derivatives and batches.

All that leans on JAX's inner interfaces is here.

Operands are arrays of these kinds; scores come first, lengths second, heads and lengths are int32:

    EDGES   (*batch, n+1, n+1[, labels])         SEVERAL_EDGES    the same with axes in front, *several
    NUMBERS (*batch)                             SEVERAL_NUMBERS
    NODES   (*batch, n+1)                        SEVERAL_NODES

Four are asked of the core, and `_front/fourth.py` has the next in terms of these, so that no derivative is the last.
With s the scores and M the marginals,

    d log Z = <M, ds>      dM = hessian(ds)      d hessian(G) = third(ds, G) + hessian(dG)

and `hessian` and `third` are their own transposes, so that forward and reverse mode share them. A quantity is a pair of
primitives, the value alone, and value and gradient from one solve: the value's derivative asks for the second. The
gradients' own derivatives are written in terms of the four:

    entropy               -hessian(s)                     d:  -third(ds, s) - hessian(ds)
    expectation of R      hessian(R)                      d:  third(ds, R) + hessian(dR)
    cross-entropy         -hessian_p(s_q)                 d:  -third_p(ds_p, s_q) - hessian_p(ds_q)
    KL divergence         hessian_p(s_p - s_q)            d:  third_p(ds_p, s_p - s_q) + hessian_p(ds_p - ds_q)
      both, by q          M_q - M_p                       d:  hessian_q(ds_q) - hessian_p(ds_p)
    loss of a tree        M - its edges                   d:  hessian(ds)   (partial: less that given what is known)

A constant added to all edges into a word changes no tree's probability, so scores count relative to the best of their
word's; edges that are in no tree count 0, whatever their score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

import jax
from jax import Array

from .._front.form import LABELLED, edge_axes
from .._front.fourth import Questions, edges_into
from .._front.relative import relative_to_best
from . import _elsewhere, _ffi
from ._form import (
    EDGES,
    NODES,
    NUMBERS,
    SEVERAL_EDGES,
    SEVERAL_NODES,
    SEVERAL_NUMBERS,
    agreeing_edges,
    over_edges,
    sum_over_edges,
)

Jvp = Callable[..., tuple[Sequence[Array], Sequence[Any]]]


def _primitive(
    name: str,
    handler: str,
    operands: tuple[int, ...],
    results: tuple[int, ...],
    integers: tuple[int, ...] = (),
    labels: int | None = None,
) -> Primitive:
    """A primitive that calls a handler on the CPU, and `_elsewhere` on other devices.

    `integers` says which results are, `labels` which one is empty if scores have no labels. Of SEVERAL_* results there
    are as many as of such operands, or `k`.
    """
    primitive = Primitive(f"spantree_{name}")
    primitive.multiple_results = True

    def shapes(*args: Any, form: int, k: int | None = None, **_: Any) -> list[Any]:
        scores, axes = args[0], edge_axes(form)
        batch, edges = scores.shape[: scores.ndim - axes], scores.shape[scores.ndim - axes :]
        several = () if k is None else (k,)
        for kind, arg in zip(operands, args, strict=True):
            if kind in (SEVERAL_EDGES, SEVERAL_NODES):
                several = arg.shape[: arg.ndim - len(batch) - (1 if kind == SEVERAL_NODES else axes)]
                break
        of_kind = {EDGES: edges, NUMBERS: (), NODES: edges[:1]}
        found = []
        for i, kind in enumerate(results):
            last = (0,) if i == labels and not form & LABELLED else of_kind[abs(kind)]
            shape = (*(several if kind < 0 else ()), *batch, *last)
            found.append(_shaped(shape, np.dtype(np.int32) if i in integers else scores.dtype, scores))
        return found

    def lower(ctx: Any, *args: Any, form: int, **_: Any) -> Any:
        return jax.ffi.ffi_lowering(_ffi.target(handler))(ctx, *args, form=np.int32(form))

    def elsewhere(*args: Array, **params: Any) -> Sequence[Array]:
        return _elsewhere.answer(handler, shapes(*args, **params), *args, **params)

    def batch(args: Sequence[Any], at: Sequence[int | None], **params: Any) -> tuple[Any, Any]:
        size = next(arg.shape[axis] for arg, axis in zip(args, at, strict=True) if axis is not None)
        inner = args[0].ndim - edge_axes(params["form"]) - (at[0] is not None)
        after = {EDGES: edge_axes(params["form"]), NUMBERS: 0, NODES: 1}
        # The new axis goes to the front of the batch, unless only what there may be several of is mapped.
        into_batch = any(axis is not None and kind > 0 for kind, axis in zip(operands, at, strict=True))
        moved = []
        for kind, arg, axis in zip(operands, args, at, strict=True):
            several = arg.ndim - (axis is not None) - inner - after[abs(kind)] if kind < 0 else 0
            if not into_batch and kind > 0:
                moved.append(arg)
                continue
            place = several if into_batch else 0
            if axis is None:
                shape = (*arg.shape[:place], size, *arg.shape[place:])
                moved.append(jnp.broadcast_to(jnp.expand_dims(arg, place), shape))
            else:
                moved.append(jnp.moveaxis(arg, axis, place))
        out = primitive.bind(*moved, **params)
        lead = [x.ndim - inner - 1 - (after[abs(kind)]) for kind, x in zip(results, out, strict=True)]
        return out, [(n if kind < 0 else 0) if into_batch else (0 if kind < 0 else None)
                     for kind, n in zip(results, lead, strict=True)]  # fmt: skip

    static = ("form", "k", "partial")
    primitive.def_impl(jax.jit(primitive.bind, static_argnames=static))
    primitive.def_abstract_eval(shapes)
    batching.primitive_batchers[primitive] = batch
    mlir.register_lowering(primitive, mlir.lower_fun(elsewhere, multiple_results=True))
    mlir.register_lowering(primitive, lower, platform="cpu")
    return primitive


def _shaped(shape: tuple[int, ...], dtype: Any, scores: Any) -> Any:
    """An array that differs between the devices of a `shard_map` if the scores do (older JAX does not ask)."""
    varying = getattr(scores, "manual_axis_type", None)
    if varying is None or not varying.varying:
        return jax.core.ShapedArray(shape, dtype)
    sharding = scores.sharding.update(spec=jax.sharding.PartitionSpec(*(None,) * len(shape)))
    return jax.core.ShapedArray(shape, dtype, sharding=sharding, manual_axis_type=varying)


def _is_zero(tangent: Any) -> bool:
    return type(tangent) is ad.Zero


def _no_tangent(value: Array) -> Any:
    return ad.Zero(jax.typeof(value).to_tangent_aval())


def _filled(tangent: Any) -> Array:
    return ad.instantiate_zeros(tangent)  # type: ignore[no-any-return,no-untyped-call]


def _on_edges(numbers: Array, edges: Array, form: int) -> Array:
    """The sum over edges of a product with tangents, one for each sentence."""
    return jnp.sum(numbers * edges, axis=tuple(range(-edge_axes(form), 0)))


# Closed under differentiation

_E, _N = (EDGES, NUMBERS), (NUMBERS, EDGES)
_log_partition_p = _primitive("log_partition", "log_partition", _E, (NUMBERS,))
_solve_p = _primitive("solve", "log_partition", _E, _N)
_hessian_p = _primitive("hessian", "hessian", (*_E, SEVERAL_EDGES), (SEVERAL_EDGES,))
_third_p = _primitive("third", "third", (*_E, SEVERAL_EDGES, SEVERAL_EDGES), (SEVERAL_EDGES,))
_relative_scores_p = _primitive("relative_scores", "relative_scores", _E, (EDGES,))


def log_partition(scores: Array, lengths: Array, form: int) -> Array:
    return _log_partition_p.bind(scores, lengths, form=form)[0]  # type: ignore[no-any-return]


def marginals(scores: Array, lengths: Array, form: int) -> Array:
    return _solve_p.bind(scores, lengths, form=form)[1]  # type: ignore[no-any-return]


def relative_scores(scores: Array, lengths: Array, form: int) -> Array:
    """Without what all trees have in common, and without a derivative; -inf where there is no edge, or no tree."""
    return _relative_scores_p.bind(scores, lengths, form=form)[0]  # type: ignore[no-any-return]


def hessian(scores: Array, lengths: Array, directions: Array, form: int) -> Array:
    """The second derivative of log Z, contracted with each direction: (*several, *batch, n+1, n+1)."""
    return _hessian_p.bind(scores, lengths, directions, form=form)[0]  # type: ignore[no-any-return]


def _third(scores: Array, lengths: Array, u: Array, g: Array, form: int) -> Array:
    """The third derivative, contracted with each pair of directions."""
    u, g = jnp.broadcast_arrays(u, g)
    return _third_p.bind(scores, lengths, u, g, form=form)[0]  # type: ignore[no-any-return]


def _log_partition_jvp(primals: Any, tangents: Any, form: int) -> Any:
    log_z, edges = _solve_p.bind(*primals, form=form)
    return [log_z], [_on_edges(edges, tangents[0], form)]


def _solve_jvp(primals: Any, tangents: Any, form: int) -> Any:
    log_z, edges = _solve_p.bind(*primals, form=form)
    return [log_z, edges], [_on_edges(edges, tangents[0], form), hessian(primals[0], primals[1], tangents[0], form)]


def _hessian_jvp(primals: Any, tangents: Any, form: int) -> Any:
    scores, lengths, g = primals
    by_scores, _, by_g = tangents
    parts = []
    if not _is_zero(by_scores):
        parts.append(_third(scores, lengths, by_scores, g, form))
    if not _is_zero(by_g):
        parts.append(hessian(scores, lengths, by_g, form))
    return _hessian_p.bind(*primals, form=form), [sum(parts[1:], parts[0])]


def _hessian_transpose(slopes: Any, scores: Any, lengths: Any, g: Any, form: int) -> Any:
    assert isinstance(g, ad.UndefinedPrimal)
    return [None, None, slopes[0] if _is_zero(slopes[0]) else hessian(scores, lengths, slopes[0], form)]


def _third_jvp(primals: Any, tangents: Any, form: int) -> Any:
    scores, lengths, u, g = primals
    by_scores, _, by_u, by_g = tangents
    parts = [_third(scores, lengths, t, x, form) for t, x in ((by_u, g), (by_g, u)) if not _is_zero(t)]
    if not _is_zero(by_scores):
        parts.append(_fourth(scores, lengths, u, g, by_scores, form))
    return _third_p.bind(*primals, form=form), [sum(parts[1:], parts[0])]


def _fourth(scores: Array, lengths: Array, u: Array, g: Array, v: Array, form: int) -> Array:
    """The fourth derivative, contracted with each triple of directions."""
    axes = edge_axes(form)

    def of(s: Array) -> Array:
        return jnp.broadcast_to(lengths.reshape(lengths.shape + (1,) * (s.ndim - scores.ndim)), s.shape[:-axes])

    ask = Questions(
        jnp,
        jnp.arange(scores.shape[-axes]),
        lambda s: marginals(s, of(s), form),
        lambda s, x: hessian(s, of(s), x, form),
        lambda s, x, y: _third(s, of(s), x, y, form),
    )
    column = edges_into(ask, scores, (u, g, jnp.broadcast_to(v, u.shape)), form)
    columns = [column(word) for word in range(1, scores.shape[-axes])]  # jax 0.6 does not transpose such a `lax.map`
    into_root = jnp.zeros_like(jax.lax.index_in_dim(u, 0, u.ndim + 1 - axes, keepdims=False))
    return jnp.stack([into_root, *columns], 1 - axes)


def _third_transpose(slopes: Any, scores: Any, lengths: Any, u: Any, g: Any, form: int) -> Any:
    fixed = g if isinstance(u, ad.UndefinedPrimal) else u
    found = slopes[0] if _is_zero(slopes[0]) else _third(scores, lengths, slopes[0], fixed, form)
    return [None, None, found, None] if fixed is g else [None, None, None, found]


ad.primitive_jvps[_log_partition_p] = _log_partition_jvp
ad.primitive_jvps[_solve_p] = _solve_jvp
ad.primitive_jvps[_hessian_p] = _hessian_jvp
ad.primitive_transposes[_hessian_p] = _hessian_transpose
ad.primitive_jvps[_third_p] = _third_jvp
ad.primitive_transposes[_third_p] = _third_transpose


def _where_known(value: Array, slope: Array) -> Array:
    """0 where there is no value, so that the NaN that others make of it does not come back as a gradient."""
    return jnp.where(jnp.isfinite(value), slope, 0.0)


# Quantities: values with a gradient of their own

Slopes = Callable[..., Sequence[Array]]


def _quantity(name: str, operands: tuple[int, ...], by: tuple[int, ...], slopes_of_gradients: Slopes) -> Primitive:
    """The value's primitive; `by` says which operands have gradients.

    `slopes_of_gradients(primals, tangents, value, **params)` is linear in the tangents, one for each in `by`, 0 or not.
    """
    value_p = _primitive(name, name, operands, (NUMBERS,))
    both_p = _primitive(f"{name}_and_gradient", name, operands, (NUMBERS, *(EDGES,) * len(by)))

    def slope(gradients: Sequence[Array], tangents: Sequence[Any], form: int) -> Array:
        moving = zip(gradients, (tangents[i] for i in by), strict=True)
        parts = [_on_edges(gradient, t, form) for gradient, t in moving if not _is_zero(t)]
        return sum(parts[1:], parts[0])

    def value_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        value, *gradients = both_p.bind(*primals, **params)
        return [value], [_where_known(value, slope(gradients, tangents, params["form"]))]

    def both_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        value, *gradients = both_p.bind(*primals, **params)
        given = [_filled(tangents[i]) for i in by]
        known = over_edges(jnp.isfinite(value), params["form"])
        moved = [jnp.where(known, x, 0.0) for x in slopes_of_gradients(primals, given, **params)]
        return [value, *gradients], [_where_known(value, slope(gradients, tangents, params["form"])), *moved]

    ad.primitive_jvps[value_p] = value_jvp
    ad.primitive_jvps[both_p] = both_jvp
    return value_p


def _relative(scores: Array, possible: Array, form: int) -> Array:
    """Scores of possible edges less what they have in common by word and by root; 0 for others."""
    rows = jnp.arange(scores.shape[-edge_axes(form)])
    return relative_to_best(jnp, scores, jax.lax.stop_gradient(scores), possible, rows, form)  # type: ignore[no-any-return]


def _entropy_slopes(primals: Any, tangents: Any, form: int) -> Any:
    scores, lengths = primals
    relative = _relative(scores, marginals(scores, lengths, form) > 0.0, form)
    return [-_third(scores, lengths, tangents[0], relative, form) - hessian(scores, lengths, tangents[0], form)]


def _by_q(p: Array, lengths: Array, q: Array, tangents: Any, form: int) -> Array:
    return hessian(q, lengths, tangents[1], form) - hessian(p, lengths, tangents[0], form)


def _cross_entropy_slopes(primals: Any, tangents: Any, form: int) -> Any:
    p, lengths, q = primals
    relative = _relative(q, marginals(p, lengths, form) > 0.0, form)
    by_p = -_third(p, lengths, tangents[0], relative, form) - hessian(p, lengths, tangents[1], form)
    return [by_p, _by_q(p, lengths, q, tangents, form)]


def _kl_slopes(primals: Any, tangents: Any, form: int) -> Any:
    p, lengths, q = primals
    possible = marginals(p, lengths, form) > 0.0
    difference = _relative(p, possible, form) - _relative(q, possible, form)
    by_p = _third(p, lengths, tangents[0], difference, form) + hessian(p, lengths, tangents[0] - tangents[1], form)
    return [by_p, _by_q(p, lengths, q, tangents, form)]


def _crf_loss_slopes(primals: Any, tangents: Any, form: int, partial: bool) -> Any:
    scores, lengths, heads, labels = primals
    moved = hessian(scores, lengths, tangents[0], form)
    if partial:
        known = jnp.where(agreeing_edges(heads, labels, scores, form), scores, -jnp.inf)
        moved = moved - hessian(known, lengths, tangents[0], form)
    return [moved]


_entropy_p = _quantity("entropy", _E, (0,), _entropy_slopes)
_cross_entropy_p = _quantity("cross_entropy", (*_E, EDGES), (0, 2), _cross_entropy_slopes)
_kl_p = _quantity("kl", (*_E, EDGES), (0, 2), _kl_slopes)
_crf_loss_p = _quantity("crf_loss", (*_E, NODES, NODES), (0,), _crf_loss_slopes)


def entropy(scores: Array, lengths: Array, form: int) -> Array:
    return _entropy_p.bind(scores, lengths, form=form)[0]  # type: ignore[no-any-return]


def cross_entropy(p: Array, lengths: Array, q: Array, form: int) -> Array:
    return _cross_entropy_p.bind(p, lengths, q, form=form)[0]  # type: ignore[no-any-return]


def kl(p: Array, lengths: Array, q: Array, form: int) -> Array:
    return _kl_p.bind(p, lengths, q, form=form)[0]  # type: ignore[no-any-return]


def crf_loss(scores: Array, lengths: Array, heads: Array, labels: Array, form: int, partial: bool) -> Array:
    """Minus the log-probability of a tree; if `partial`, heads and labels may be -2, not known. No labels: (..., 0)."""
    return _crf_loss_p.bind(scores, lengths, heads, labels, form=form, partial=partial)[0]  # type: ignore[no-any-return]


# Expectations, which are linear in the values

_EXPECTATION = (*_E, SEVERAL_EDGES)
_expectation_p = _primitive("expectation", "expectation", _EXPECTATION, (SEVERAL_NUMBERS,))
_moments_p = _primitive("moments", "expectation", _EXPECTATION, (SEVERAL_NUMBERS, SEVERAL_EDGES))


def expectation(scores: Array, lengths: Array, values: Array, form: int) -> Array:
    """E[sum of values over the tree's edges], for each of several values."""
    return _expectation_p.bind(scores, lengths, values, form=form)[0]  # type: ignore[no-any-return]


def _expectation_jvp(primals: Any, tangents: Any, form: int) -> Any:
    by_scores, _, by_values = tangents
    scores, lengths, _ = primals
    if _is_zero(by_scores):
        return _expectation_p.bind(*primals, form=form), [expectation(scores, lengths, by_values, form)]
    value, gradient = _moments_p.bind(*primals, form=form)
    slope = _where_known(value, _on_edges(gradient, by_scores, form))
    return [value], [slope if _is_zero(by_values) else slope + expectation(scores, lengths, by_values, form)]


def _expectation_transpose(slopes: Any, scores: Any, lengths: Any, values: Any, form: int) -> Any:
    if _is_zero(slopes[0]):
        return [None, None, slopes[0]]
    return [None, None, over_edges(slopes[0], form) * marginals(scores, lengths, form)]


def _moments_jvp(primals: Any, tangents: Any, form: int) -> Any:
    scores, lengths, values = primals
    by_scores, _, by_values = tangents
    value, gradient = _moments_p.bind(*primals, form=form)
    slopes, moved = [], []
    if not _is_zero(by_scores):
        known = jnp.where(marginals(scores, lengths, form) > 0.0, values, 0.0)
        slopes.append(_where_known(value, _on_edges(gradient, by_scores, form)))
        moved.append(_third(scores, lengths, by_scores, known, form))
    if not _is_zero(by_values):
        slopes.append(expectation(scores, lengths, by_values, form))
        moved.append(hessian(scores, lengths, by_values, form))
    return [value, gradient], [sum(slopes[1:], slopes[0]), sum(moved[1:], moved[0])]


ad.primitive_jvps[_expectation_p] = _expectation_jvp
ad.primitive_transposes[_expectation_p] = _expectation_transpose
ad.primitive_jvps[_moments_p] = _moments_jvp


# Numbers of trees

_log_prob_p = _primitive("log_prob", "log_prob", (*_E, SEVERAL_NODES, SEVERAL_NODES), (SEVERAL_NUMBERS,))


def log_prob(scores: Array, lengths: Array, heads: Array, labels: Array, form: int) -> Array:
    """Of any number of trees for each sentence, (*several, *batch, n+1); -inf for what is none. No labels: (..., 0)."""
    return _log_prob_p.bind(scores, lengths, heads, labels, form=form)[0]  # type: ignore[no-any-return]


def _log_prob_slope(trees: Any, value: Array, scores: Array, lengths: Array, tangent: Array, form: int) -> Array:
    mean = _on_edges(marginals(scores, lengths, form), tangent, form)
    return jnp.where(value > -jnp.inf, sum_over_edges(tangent, trees[0], trees[1], lengths, form) - mean, 0.0)


def _log_prob_jvp(primals: Any, tangents: Any, form: int) -> Any:
    scores, lengths, *trees = primals
    (value,) = _log_prob_p.bind(*primals, form=form)
    return [value], [_log_prob_slope(trees, value, scores, lengths, tangents[0], form)]


ad.primitive_jvps[_log_prob_p] = _log_prob_jvp


# Trees

_argmax_p = _primitive("argmax", "argmax", _E, (NODES, NODES, NUMBERS, NUMBERS), integers=(0, 1, 3), labels=1)
_BEST = (SEVERAL_NODES, SEVERAL_NODES, SEVERAL_NUMBERS)
_topk_p = _primitive("topk", "topk", _E, _BEST, integers=(0, 1), labels=1)
_sample_p = _primitive("sample", "sample", (*_E, NODES), _BEST[:2], integers=(0, 1), labels=1)
_distinct_p = _primitive(
    "sample_without_replacement",
    "sample_without_replacement",
    (*_E, NODES),
    (*_BEST, SEVERAL_NUMBERS, NUMBERS, NUMBERS),
    integers=(0, 1),
    labels=1,
)


def argmax(scores: Array, lengths: Array, form: int) -> tuple[Array, Array, Array, Array]:
    """Heads, labels, score and status (0; -1 a bad score; else a word that cannot be attached) of the best tree."""
    return tuple(_argmax_p.bind(scores, lengths, form=form))  # type: ignore[return-value]


def topk(scores: Array, lengths: Array, k: int, form: int) -> tuple[Array, Array, Array]:
    """Heads, labels and scores of the k best trees, along a first axis."""
    return tuple(_topk_p.bind(scores, lengths, form=form, k=k))  # type: ignore[return-value]


def sample(scores: Array, lengths: Array, keys: Array, k: int, form: int) -> tuple[Array, Array]:
    """Heads and labels of k random trees. Keys: two or four uint32 for each sentence."""
    return tuple(_sample_p.bind(scores, lengths, keys, form=form, k=k))  # type: ignore[return-value]


def sample_without_replacement(
    scores: Array, lengths: Array, keys: Array, k: int, form: int
) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Heads, labels, log-probabilities, Gumbel keys, threshold and log of the mass left of k different random trees."""
    return tuple(_distinct_p.bind(scores, lengths, keys, form=form, k=k))  # type: ignore[return-value]


def _trees_jvp(primitive: Primitive, primals: Any, tangents: Any, **params: Any) -> Any:
    """Trees do not move; the third result are numbers of theirs, and do."""
    heads, labels, numbers, *rest = primitive.bind(*primals, **params)
    scores, lengths, form = primals[0], primals[1], params["form"]
    if primitive is _distinct_p:
        slope = _log_prob_slope((heads, labels), numbers, scores, lengths, tangents[0], form)
    else:
        slope = jnp.where(numbers > -jnp.inf, sum_over_edges(tangents[0], heads, labels, lengths, form), 0.0)
    out = [heads, labels, numbers, *rest]
    return out, [slope if i == 2 else _no_tangent(x) for i, x in enumerate(out)]


def _sample_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    out = _sample_p.bind(*primals, **params)
    return out, [_no_tangent(x) for x in out]


for _p in (_argmax_p, _topk_p, _distinct_p):
    ad.primitive_jvps[_p] = partial(_trees_jvp, _p)
ad.primitive_jvps[_sample_p] = _sample_jvp
