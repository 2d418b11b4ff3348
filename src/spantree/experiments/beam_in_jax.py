"""SBS-SWOR as one compiled program of array operations.

Stanojevic (2022), "Unbiased and Efficient Sampling of Dependency Trees": the CPU side of Figures 4 and 6. `sbs_swor` is
what `spantree.zoo.sbs_swor` is, section 5 on algorithm 8, with all prefixes of the beam in one array, and in JAX's own
precision, single. Importing this needs ``spantree[jax]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

import jax
import spantree
from jax import Array
from spantree import zoo
from spantree.jax import TreeDistribution

from . import figures
from ._types import FloatArray, Row
from .lab import Lab
from .random_graphs import log_weights
from .report import Section
from .tables import Column, Table
from .timing import Way, compare, each

PUBLISHED_WORDS = 100
"""Of the sentences of Figure 4."""

WAYS = {"numpy": "SBS-SWOR, NumPy", "jax": "SBS-SWOR, JAX", "core_jax": "core, from JAX", "core": "core, beam"}


def beam(lab: Lab) -> Section:
    """Figure 4, by number of trees, and Figure 6, by length."""
    setting: Row = {"graphs": 1, "rounds": lab.choose(2, 1)}
    words, trees = lab.choose((PUBLISHED_WORDS, 100), (8, 4))
    units: list[Row] = [{"n": words, "k": k, **setting} for k in lab.choose([10, 30, 100, 300], [2, 4])]
    units += [{"n": n, "k": trees, **setting} for n in lab.choose([20, 40, 60, 80], [4])]

    def measure(unit: Row, rng: np.random.Generator) -> Row:
        return time_beams(log_weights(rng, unit["n"], unit["graphs"]), unit["k"], unit["rounds"], rng)

    rows = lab.measure("beam in JAX", units, measure)
    columns = [
        Column("n", "words"),
        Column("k", "trees"),
        *(Column(way, f"{label}, s / tree", ".2e") for way, label in WAYS.items()),
        Column("invalid", "heads that are no tree"),
        Column("repeated", "trees drawn twice"),
    ]
    figure, (by_trees, by_words) = figures.panels(2)
    figures.time_curves(by_trees, [row for row in rows if row["n"] == words], "k", list(WAYS.items()), "tree")
    by_trees.set_xscale("log")
    by_trees.set_xlabel(f"trees of {words} words")
    of_all_lengths = sorted((row for row in rows if row["k"] == trees), key=lambda row: row["n"])
    figures.time_curves(by_words, of_all_lengths, "n", list(WAYS.items()), "tree")
    by_words.set_xlabel(f"words, {trees} trees")
    title = "SBS-SWOR in JAX on the CPU (Figures 4 and 6)"
    return Section("beam-in-jax", title, Table(columns, rows), figure)


def time_beams(graphs: Sequence[FloatArray], k: int, rounds: int, rng: np.random.Generator) -> Row:
    """Seconds per tree of each way, without compiling, and how many of their trees are no trees or came twice."""
    compiled = jax.jit(sbs_swor, static_argnames="k")
    from_jax = jax.jit(lambda scores, key: TreeDistribution(scores).sample_without_replacement(key, k).heads)

    def key() -> Array:
        return jax.random.key(int(rng.integers(2**31)))

    ways: dict[str, Way] = {
        "numpy": each(lambda scores: zoo.sbs_swor(scores, k, rng)[0]),
        "jax": each(lambda scores: np.asarray(compiled(np.float32(scores), key(), k)[0])),
        "core_jax": each(lambda scores: np.asarray(from_jax(np.float32(scores), key()))),
        "core": each(
            lambda scores: spantree.TreeDistribution(scores).sample_without_replacement(k, rng=rng, method="beam").heads
        ),
    }
    for way in ("jax", "core_jax"):
        ways[way](graphs[:1])  # compiles
    timed = compare(ways, graphs, rounds)
    samples = [heads for way in ways for heads in timed[way].results]
    return {
        **{way: timed[way].seconds / k for way in ways},
        "invalid": int(sum(np.count_nonzero(~spantree.is_tree(heads)) for heads in samples)),
        "repeated": int(sum(len(heads) - len(np.unique(heads, axis=0)) for heads in samples)),
    }


def sbs_swor(scores: Array, key: Array, k: int) -> tuple[Array, Array]:
    """Heads (k, n+1) and log-probabilities (k,) of distinct trees with one root, in the order of drawing one by one.

    Where a graph has fewer than `k` trees, the last are no trees, as with `spantree.zoo.PUBLISHED`: impossible heads
    keep some 1e-7 of mass, or a log-probability of ``-inf``.

    Examples
    --------
    >>> heads, log_probs = sbs_swor(jnp.zeros((3, 3)), jax.random.key(0), 2)
    >>> sorted(heads.tolist()), jnp.exp(log_probs).round(3).tolist()
    ([[-1, 0, 1], [-1, 2, 0]], [0.5, 0.5])
    """
    n = len(scores) - 1
    edges = ~jnp.eye(n + 1, dtype=bool).at[:, 0].set(True)
    w = jnp.where(edges, jnp.exp(scores - jnp.max(scores, axis=0, where=edges, initial=-jnp.inf)), 0.0)
    # key and log-probability of the empty prefix; the other places are free
    first = jnp.where(jnp.arange(k) == 0, 0.0, -jnp.inf)
    beam = (
        jnp.broadcast_to(w, (k, n + 1, n + 1)),
        jnp.broadcast_to(jnp.linalg.inv(laplacian(w)).T, (k, n, n)),
        jnp.full((k, n + 1), -1),
        first,
        first,
    )

    def decide(i: Any, beam: tuple[Array, ...]) -> tuple[Array, ...]:
        """Give word i + 1 a head in every prefix, and keep the `k` prefixes of largest key."""
        W, B, heads, log_probs, keys = beam
        probs = jax.vmap(marginals)(W, B)[:, :, i + 1]
        log_probs = log_probs[:, None] + jnp.log(jnp.maximum(probs, 0.0))
        drawn = log_probs + jax.random.gumbel(jax.random.fold_in(key, i), log_probs.shape)
        keys, place = jax.lax.top_k(with_maximum(drawn, keys).ravel(), k)
        prefix, head = jnp.divmod(place, n + 1)
        # equations (6) to (8)
        W, B, heads, log_probs = W[prefix], B[prefix], heads[prefix], log_probs.ravel()[place]
        only = jnp.where(jnp.arange(n + 1) == head[:, None], W[:, :, i + 1], 0.0)
        conditioned = W.at[:, :, i + 1].set(only)
        u = (jax.vmap(laplacian)(conditioned) - jax.vmap(laplacian)(W))[:, :, i]
        u_B = jnp.einsum("ki,kij->kj", u, B)
        ratio = 1.0 + u_B[:, i]
        possible = (ratio > 0.0) & (keys > -jnp.inf)
        B = B - B[:, :, i, None] * (u_B / jnp.where(possible, ratio, 1.0)[:, None])[:, None]
        return (
            conditioned,
            B,
            heads.at[:, i + 1].set(head),
            jnp.where(possible, log_probs, -jnp.inf),
            jnp.where(possible, keys, -jnp.inf),
        )

    _, _, heads, log_probs, _ = jax.lax.fori_loop(0, n, decide, beam)
    return heads, log_probs


def laplacian(w: Array) -> Array:
    """Algorithm 5, with the root edges in the first row; shape (n, n)."""
    words = w[1:, 1:]
    return (jnp.diag(words.sum(axis=0)) - words).at[0].set(w[0, 1:])


def marginals(w: Array, B: Array) -> Array:
    """Algorithm 6, (n+1, n+1), of the transposed inverse of the Laplacian."""
    words = B.at[0].set(0.0)
    slopes = jnp.zeros_like(w).at[0, 1:].set(B[0]).at[1:, 1:].set(words.diagonal() - words)
    return w * slopes


def with_maximum(drawn: Array, maximum: Array) -> Array:
    """Rows of Gumbel variables moved so that the largest is `maximum`, as `spantree.zoo.sbs_swor` does."""
    largest = drawn.max(axis=1, keepdims=True)
    behind = jnp.where(drawn > -jnp.inf, drawn - jnp.where(largest > -jnp.inf, largest, 0.0), -jnp.inf)
    log_gap = jnp.where(behind > -jnp.log(2.0), jnp.log(-jnp.expm1(behind)), jnp.log1p(-jnp.exp(behind)))
    v = maximum[:, None] - drawn + log_gap
    moved = maximum[:, None] - jnp.maximum(v, 0.0) - jnp.log1p(jnp.exp(-jnp.abs(v)))
    return jnp.where((drawn > -jnp.inf) & (maximum[:, None] > -jnp.inf), moved, -jnp.inf)
