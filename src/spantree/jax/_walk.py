"""The core's solve in array operations, for devices that it does not run on: log Z and marginals without a subtraction.

Read the graph as a random walk from a word to its head, with weights w = exp(score), ROOT at its end. With E[i, j] the
probability that the walk from i reaches ROOT before it visits j,

    marginal(i -> j) = w[i, j] E[i, j] / sum_i w[i, j] E[i, j]

and Z is the product of the pivots met while words are eliminated one after the other. Eliminating word k (Grassmann,
Taksar & Heyman 1985) adds a[i, k] a[k, l] / pivot to every step i -> l, the pivot being the sum of all steps out of k:
sums, products and quotients of positive numbers, so every result is accurate to its own last digits.

One root is the limit of infinitesimal root weights. So steps to ROOT are kept in two columns, orders 0 and 1, in which
several roots start in the first and a single one in the second; a word whose only way out is ROOT (pivot 0) raises the
order of Z by one, and whoever led to it now reaches ROOT at order 0.

E[:, j] needs all words but j eliminated. Divide and conquer, all chains of a level side by side: each is stacked with
its half-swapped self, the second halves are eliminated, and after the recursion one product fills in their rows,

    E[dropped, kept] = T[:, kept] E[kept, kept] + T[:, ROOT],      T: where the walk from a dropped word leaves those.

Words are padded to c 2^k with c <= 6; a padding word leads to the first word, no word leads to it. Cost O(n^3), in O(n)
steps. Derivatives: `jax.jvp` through all of it, which keeps their absolute errors at rounding level whatever the
scores.
"""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

import jax
from jax import Array, lax

from ._form import real_edges, real_words

_SMALL = 6  # chains up to this long are solved by one copy for each word


def solve(scores: Array, lengths: Array, single_root: bool) -> tuple[Array, Array]:
    """log Z (*batch) and marginals of scores (*batch, n+1, n+1), in double if JAX has doubles.

    Without a tree -inf and 0; with a NaN or +inf among the scores NaN and 0; NaN and NaN if what decides underflows.
    """
    batch, nodes = scores.shape[:-2], scores.shape[-1]
    s = scores.reshape(-1, nodes, nodes).astype(jax.dtypes.canonicalize_dtype(np.float64))
    lengths = lengths.reshape(-1)
    edges = real_edges(nodes, lengths, 0)
    bad = jnp.any(edges & (jnp.isnan(s) | (s == jnp.inf)), axis=(-2, -1))
    s = jnp.where(edges & ~bad[:, None, None], s, -jnp.inf)
    best = lax.stop_gradient(jnp.max(s, axis=-2))
    best = jnp.where(best > -jnp.inf, best, 0.0)
    w = jnp.exp(s - best[:, None, :])
    if nodes == 1:
        return jnp.zeros(batch, scores.dtype), jnp.zeros_like(scores)

    of_words = real_words(nodes, lengths)[:, 1:]
    chain = _chain(w, of_words, single_root)
    (e0, e1), walk = _escape(chain[:, None])
    e0, e1 = (e[:, 0, : nodes - 1, : nodes - 1] for e in (e0, e1))
    weights = w[:, 1:, 1:]
    root = w[:, 0, 1:]
    of_order_0 = jnp.concatenate([(jnp.zeros_like(root) if single_root else root)[:, None], weights * e0], axis=1)
    of_order_1 = jnp.concatenate([root[:, None], weights * e1], axis=1)
    shares = jnp.where(jnp.sum(of_order_0, axis=1, keepdims=True) > 0.0, of_order_0, of_order_1)
    total = jnp.sum(shares, axis=1, keepdims=True)
    marginals = jnp.where(total > 0.0, shares / jnp.where(total > 0.0, total, 1.0), 0.0)
    marginals = jnp.pad(marginals, ((0, 0), (0, 0), (1, 0)))

    found = (walk.order == single_root) & (walk.log_z > -jnp.inf) & ~bad
    log_z = jnp.where(found, walk.log_z + jnp.sum(jnp.where(of_words, best[:, 1:], 0.0), axis=-1), -jnp.inf)
    lost = _lost(s, w, walk, found, single_root) & ~bad
    log_z = jnp.where(bad | lost, jnp.nan, log_z)
    marginals = jnp.where(lost[:, None, None], jnp.nan, jnp.where(found[:, None, None] & edges, marginals, 0.0))
    return log_z.reshape(batch).astype(scores.dtype), marginals.reshape(scores.shape).astype(scores.dtype)


def _lost(s: Array, w: Array, walk: _Walk, found: Array, single_root: bool) -> Array:
    """Where what underflowed may matter.

    All weights are at most 1, so that a tree with a lost edge weighs less than the smallest number; it does not matter
    if all others together weigh more than that, times the number of trees, in all digits.
    """
    numbers, nodes = jnp.finfo(w.dtype), w.shape[-1]
    least = math.log(numbers.tiny) - math.log(numbers.eps)
    any_lost = jnp.any((w == 0.0) & (s > -jnp.inf), axis=(-2, -1))
    too_light = walk.log_z < least + nodes * math.log(nodes)
    return (found & ((any_lost & too_light) | (walk.least < least))) | (~found & _has_tree(s > -jnp.inf, single_root))


def _has_tree(allowed: Array, single_root: bool) -> Array:
    """Whether ROOT, by one of its words if there is a single root, leads to all words; padding is led to by nobody."""
    words = jnp.any(allowed[:, :, 1:], axis=1) | jnp.any(allowed[:, 1:, :], axis=2)
    steps = (allowed[:, 1:, 1:] | jnp.eye(allowed.shape[-1] - 1, dtype=bool)).astype(jnp.float32)
    for _ in range(math.ceil(math.log2(max(allowed.shape[-1] - 1, 2)))):
        steps = (steps @ steps > 0.0).astype(jnp.float32)
    reached = (steps > 0.0) & allowed[:, 0, 1:, None]  # [root word, word]
    if single_root:
        return jnp.any(jnp.all(reached | ~words[:, None, :], axis=2), axis=1)
    return jnp.all(jnp.any(reached, axis=1) | ~words, axis=1)


def _chain(w: Array, of_words: Array, single_root: bool) -> Array:
    """Steps of the walk as [word, head word | ROOT at order 0, ROOT at order 1], words padded."""
    n = of_words.shape[-1]
    size = n if n <= _SMALL else min(c << k for k in range(1, 30) for c in range(4, _SMALL + 1) if c << k >= n)
    steps = jnp.pad(jnp.swapaxes(w[:, 1:, 1:], 1, 2), ((0, 0), (0, size - n), (0, size - n)))
    padding = ~jnp.pad(of_words, ((0, 0), (0, size - n)))
    first = (jnp.arange(size) == 0).astype(w.dtype)
    steps = jnp.where(padding[:, :, None], first * (1.0 - first[:, None]), steps)
    root = jnp.where(padding, first, jnp.pad(w[:, 0, 1:], ((0, 0), (0, size - n))))
    none = jnp.zeros_like(root)
    ends = (none, root) if single_root else (root, none)
    return jnp.concatenate([steps, *(end[:, :, None] for end in ends)], axis=2)


class _Walk:
    """What the first chain's pivots say: log Z, its order; and the logarithm of the least pivot of all chains."""

    def __init__(self, log_z: Array, order: Array, least: Array) -> None:
        self.log_z, self.order, self.least = log_z, order, least

    def __add__(self, other: _Walk) -> _Walk:
        least = jnp.minimum(self.least, other.least)
        return _Walk(self.log_z + other.log_z, self.order + other.order, least)


def _escape(chain: Array) -> tuple[Array, _Walk]:
    """E at orders 0 and 1, (2, B, C, m, m), of chains (B, C, m, m + 2)."""
    batch, chains, m, _ = chain.shape
    if m <= _SMALL:
        # One copy for each word, which stands first in it and stays.
        copies = jnp.stack([_rolled(chain, r) for r in range(m)], axis=2)
        copies, walk = _eliminate(copies.reshape(batch, chains * m, m, m + 2), 1)
        ends = jnp.moveaxis(copies[..., m:], -1, 0).reshape(2, batch, chains, m, m)  # [copy, word]
        ends = ends.at[..., 0].set(0.0)
        escape = jnp.stack([jnp.roll(ends[..., r, :], r, axis=-1) for r in range(m)], axis=-1)
        last = lax.stop_gradient(copies[:, 0, 0, m:])
        log_z, order = _log_pivot(last[..., 0], last[..., 1])
        return escape, walk + _Walk(log_z, order, jnp.where(order == 0, log_z, jnp.inf))
    half = m // 2
    both = jnp.stack([chain, _rolled(chain, half)], axis=2).reshape(batch, 2 * chains, m, m + 2)
    both, walk = _eliminate(both, half)
    kept, dropped = both[:, :, :half], both[:, :, half:]
    inner, rest = _escape(jnp.concatenate([kept[..., :half], kept[..., m:]], axis=-1))
    outer = dropped[..., :half] @ inner + jnp.moveaxis(dropped[..., m:], -1, 0)[..., None]
    columns = jnp.concatenate([inner, outer], axis=-2).reshape(2, batch, chains, 2, m, half)
    escape = jnp.concatenate([columns[..., 0, :, :], jnp.roll(columns[..., 1, :, :], half, axis=-2)], axis=-1)
    return escape, walk + rest


def _rolled(chain: Array, r: int) -> Array:
    """The chain with word r first."""
    m = chain.shape[-2]
    steps = jnp.roll(chain[..., :m], (-r, -r), axis=(-2, -1))
    return jnp.concatenate([steps, jnp.roll(chain[..., m:], -r, axis=-2)], axis=-1)


def _eliminate(chain: Array, keep: int) -> tuple[Array, _Walk]:
    """Eliminates all words but the first `keep`, last first; their rows then say where they leave those dropped."""
    batch, _, m, width = chain.shape
    rows, columns = jnp.arange(m)[:, None], jnp.arange(width)
    at_root = (columns == m).astype(chain.dtype)

    def step(t: Any, state: Any) -> Any:
        x, log_z, order, least = state
        k = m - 1 - t
        row = jnp.where((columns < k) | (columns >= m), lax.dynamic_index_in_dim(x, k, 2, keepdims=False), 0.0)
        pivot = jnp.sum(row[..., : m + 1], axis=-1)
        stuck = pivot <= 0.0
        f = jnp.where(stuck[..., None], at_root, row / jnp.where(stuck, 1.0, pivot)[..., None])
        x = x + lax.dynamic_index_in_dim(x, k, 3) * f[:, :, None, :]
        x = jnp.where((rows == columns) | (columns == k), 0.0, x)
        x = jnp.where(rows == k, f[:, :, None, :], x)
        of_pivot, of_order = _log_pivot(*lax.stop_gradient((pivot, row[..., m + 1])))
        smallest = jnp.min(jnp.where(of_order == 0, of_pivot, jnp.inf), axis=1)
        return x, log_z + of_pivot[:, 0], order + of_order[:, 0], jnp.minimum(least, smallest)

    zeros = jnp.zeros(batch, chain.dtype)
    start = (chain, zeros, jnp.zeros(batch, jnp.int32), zeros + jnp.inf)
    x, *walk = lax.fori_loop(0, m - keep, step, start)
    return x, _Walk(*walk)


def _log_pivot(at_order_0: Array, at_order_1: Array) -> tuple[Array, Array]:
    """The logarithm of what is there at the lower order, and that order."""
    there = at_order_0 > 0.0
    value = jnp.where(there, at_order_0, at_order_1)
    return jnp.log(value), (~there).astype(jnp.int32)
