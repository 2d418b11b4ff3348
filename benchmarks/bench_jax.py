"""spantree.jax inside compiled programs: log Z with its gradient against slogdet, the overhead of a call, decoding."""

from __future__ import annotations

import os

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import jax.numpy as jnp
import numpy as np

import jax
import spantree
from report import Report, best_times, finish, seeded
from spantree.jax import TreeDistribution
from spantree.zoo.reweighting import reweighting

jax.config.update("jax_enable_x64", True)

SENTENCES = 32


def main() -> int:
    spantree._core.entries.set_default_threads(1)
    return finish(*seeded(gradients), overhead, *seeded(decoding))


def slogdet_log_z(scores: jax.Array) -> jax.Array:
    """One root: the Laplacian's first row replaced by the root weights (Koo et al. 2007)."""
    n = scores.shape[-1] - 1
    weights = jnp.exp(scores) * (1.0 - jnp.eye(n + 1))
    inner = weights[:, 1:, 1:]
    laplacian = jnp.eye(n) * inner.sum(1)[:, None, :] - inner
    return jnp.linalg.slogdet(laplacian.at[:, 0].set(weights[:, 0, 1:]))[1]


def gradients(rng: np.random.Generator) -> Report:
    report = Report(f"log Z and its gradient, jitted, {SENTENCES} sentences, float64, one thread; other side: slogdet")
    ours = jax.jit(jax.value_and_grad(lambda scores: TreeDistribution(scores).log_partition().sum()))
    theirs = jax.jit(jax.value_and_grad(lambda scores: slogdet_log_z(scores).sum()))
    for n in (20, 40):
        scores = jnp.asarray(rng.normal(size=(SENTENCES, n + 1, n + 1)))
        for mine, right in zip(ours(scores), theirs(scores), strict=True):
            np.testing.assert_allclose(mine, right, atol=1e-9)
        times = best_times(
            lambda scores=scores: jax.block_until_ready(ours(scores)),
            lambda scores=scores: jax.block_until_ready(theirs(scores)),
            repeats=15,
        )
        report.faster(f"n = {n}", *times, 4)
    return report


def overhead() -> Report:
    """A hundred calls in a loop inside of one program, of one sentence of one word, beyond the loop itself."""
    report = Report("What a call costs inside of a compiled program")
    scores, calls = jnp.zeros((2, 2)), 100

    def loop(step: object) -> object:
        return jax.jit(lambda s: jax.lax.fori_loop(0, calls, lambda _, s: step(s), s))  # type: ignore[operator]

    asked = loop(lambda s: s + 1e-9 * TreeDistribution(s).log_partition())
    empty = loop(lambda s: s + 1e-9 * s[0, 1])
    with_calls, without = best_times(
        lambda: jax.block_until_ready(asked(scores)), lambda: jax.block_until_ready(empty(scores)), repeats=15
    )
    report.bound("log Z of one word", (with_calls - without) / calls * 1e6, 15, "us")
    return report


def decoding(rng: np.random.Generator) -> Report:
    report = Report("Best trees, jitted, one thread; other side: pure_callback to NumPy code (spantree.zoo)")

    def in_numpy(scores: np.ndarray) -> np.ndarray:
        return np.stack([reweighting(matrix) for matrix in np.asarray(scores)]).astype(np.int32)

    ours = jax.jit(lambda scores: TreeDistribution(scores).argmax())
    for n in (20, 40):
        scores = jnp.asarray(rng.normal(size=(SENTENCES, n + 1, n + 1)))
        shape = jax.ShapeDtypeStruct((SENTENCES, n + 1), np.int32)
        theirs = jax.jit(lambda scores, shape=shape: jax.pure_callback(in_numpy, shape, scores))
        np.testing.assert_array_equal(ours(scores)[:, 1:], theirs(scores)[:, 1:])
        times = best_times(
            lambda scores=scores: jax.block_until_ready(ours(scores)),
            lambda scores=scores, theirs=theirs: jax.block_until_ready(theirs(scores)),
            repeats=3,
        )
        report.faster(f"n = {n}", *times, 20)
    return report


if __name__ == "__main__":
    raise SystemExit(main())
