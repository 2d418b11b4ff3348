"""SynJax's `SpanningTreeCRF` with JAX arrays: what `spantree.compat.synjax` makes if it is given some."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import jax.numpy as jnp

import jax
from jax import Array

from .._options import check_choice
from ..compat import synjax
from .distribution import TreeDistribution

if TYPE_CHECKING:
    from typing_extensions import Self


@jax.tree_util.register_pytree_node_class
class SpanningTreeCRF(synjax.SpanningTreeCRF):
    """As `spantree.compat.synjax.SpanningTreeCRF`, and a pytree: potentials and lengths are its leaves."""

    log_potentials: Any
    lengths: Any

    def __init__(
        self, log_potentials: Any, *, directed: bool, projective: bool, single_root_edge: bool, lengths: Any = None
    ) -> None:
        given = jnp.asarray(log_potentials)
        self.log_potentials = given if directed else (given + jnp.swapaxes(given, -2, -1)) / 2
        self.directed, self.projective, self.single_root_edge = directed, projective, single_root_edge
        self.batch_shape, self.event_shape = given.shape[:-2], given.shape[-2:]
        full = jnp.full(self.batch_shape, given.shape[-1], jnp.int32)
        self.lengths = full if lengths is None else jnp.asarray(lengths)

    def tree_flatten(self) -> tuple[tuple[Any, Any], tuple[Any, ...]]:
        static = (self.directed, self.projective, self.single_root_edge)
        return (self.log_potentials, self.lengths), static

    @classmethod
    def tree_unflatten(cls, static: Any, leaves: Any) -> Self:
        self = object.__new__(cls)
        self.log_potentials, self.lengths = leaves
        self.directed, self.projective, self.single_root_edge = static
        shape = getattr(self.log_potentials, "shape", ())
        self.batch_shape, self.event_shape = shape[:-2], shape[-2:]
        return self

    @property
    def _trees(self) -> Any:  # type: ignore[override]
        return self._distribution(self.log_potentials)

    def _distribution(self, log_potentials: Any) -> Any:
        return TreeDistribution(
            log_potentials,
            lengths=self.lengths - 1,
            root="single" if self.single_root_edge else "multi",
            projective=self.projective,
        )

    def _spread(self, shape: tuple[int, ...]) -> tuple[Any, Any]:
        potentials = jnp.broadcast_to(self.log_potentials, (*shape, *self.log_potentials.shape))
        return potentials, jnp.broadcast_to(self.lengths, (*shape, *self.batch_shape))

    def _implicit_mle(self, noise: Any, step: Any) -> Any:
        """The best tree; by potentials t it has the gradient tree(t + noise) - tree(t - step * slope + noise)."""

        def best(potentials: Any) -> Any:
            return self._with_potentials(potentials + noise).argmax()

        @jax.custom_vjp
        def sample(potentials: Any) -> Any:
            return best(potentials)

        def forward(potentials: Any) -> Any:
            tree = best(potentials)
            return tree, (potentials, tree)

        def backward(kept: Any, slope: Any) -> Any:
            potentials, tree = kept
            return ((tree - best(potentials - step * slope)).astype(potentials.dtype),)

        sample.defvjp(forward, backward)
        return sample(self.log_potentials)

    def _noise(self, key: Any, noise: synjax.Noise) -> Any:
        shape, dtype = self.log_potentials.shape, self.log_potentials.dtype
        if callable(noise):
            return noise(key, shape)
        if noise == "Sum-of-Gamma":
            edges = jnp.maximum(self.lengths - 1, 1)[..., None, None]
            shares = (1.0 / edges[..., None]).astype(dtype)
            parts = jax.random.gamma(key, shares, (*shape, synjax.GAMMAS), dtype) / jnp.arange(1, synjax.GAMMAS + 1)
            return parts.sum(-1) - (math.log(synjax.GAMMAS) / edges).astype(dtype)
        if noise not in ("Gumbel", "None"):
            raise NotImplementedError(f"there is no noise {noise!r}")
        return jax.random.gumbel(key, shape, dtype) if noise == "Gumbel" else jnp.zeros(shape, dtype)

    def log_partition(self) -> Any:
        return self._trees.log_partition()

    def log_count(self) -> Any:
        return self._distribution(jnp.where(self.log_potentials > -jnp.inf, 0.0, -jnp.inf)).log_partition()

    def log_marginals(self) -> Any:
        there = self.marginals()
        return jnp.where(there > 0.0, jnp.log(jnp.where(there > 0.0, there, 1.0)), -jnp.inf)

    def argmax_and_max(self) -> tuple[Any, Any]:
        return self.argmax(), self._trees.max()

    def top_k(self, k: int, approximate: bool = False) -> tuple[Any, Any]:
        best = self._trees.topk(k)
        return self._events(best.heads), best.scores

    def sample(
        self,
        key: Any,
        sample_shape: int | Sequence[int] = (),
        temperature: float = 1.0,
        *,
        algorithm: Literal["colbourn", "wilson"] = "colbourn",
    ) -> Any:
        check_choice("algorithm", algorithm, "colbourn", "wilson")
        return self._events(self.with_temperature(temperature)._trees.sample(key, sample_shape))

    def sample_without_replacement(self, key: Any, k: int) -> tuple[Any, Any, Any]:
        drawn = self._trees.sample_without_replacement(key, k)
        return self._events(drawn.heads), drawn.log_probs, drawn.keys

    def log_prob(self, event: Any) -> Any:
        heads, is_tree = self._heads(event)
        return jnp.where(is_tree, self._trees.log_prob(heads), -jnp.inf)

    def unnormalized_log_prob(self, event: Any) -> Any:
        heads, is_tree = self._heads(event)
        return jnp.where(is_tree, self._trees.score(heads), -jnp.inf)

    def entropy(self) -> Any:
        return self._trees.entropy()

    def cross_entropy(self, other: synjax.SpanningTreeCRF) -> Any:
        return self._trees.cross_entropy(self._comparable(other))

    def kl_divergence(self, other: synjax.SpanningTreeCRF) -> Any:
        return self._trees.kl(self._comparable(other))

    def _events(self, heads: Any) -> Any:
        nodes = jnp.arange(heads.shape[-1])
        return self._both_ways((heads[..., None, :] == nodes[:, None]).astype(jnp.float32))

    def _heads(self, event: Any) -> tuple[Any, Any]:
        """Heads, and whether their edges, and no others, are the event's."""
        edges = jnp.asarray(event) != 0
        heads = jnp.argmax(edges if self.directed else _away_from_root(edges), axis=-2)
        nodes = jnp.arange(edges.shape[-1])
        words = (nodes > 0) & (nodes < self.lengths[..., None])
        expected = (heads[..., None, :] == nodes[:, None]) & words[..., None, :]
        return heads, jnp.all(self._both_ways(expected) == edges, axis=(-2, -1))


def _away_from_root(edges: Array) -> Array:
    """Of symmetric matrices: the edges by which a walk in breadth from node 0 first reaches each node."""
    reached = jnp.broadcast_to(jnp.arange(edges.shape[-1]) == 0, edges.shape[:-1])

    def step(_: Any, state: tuple[Array, Array]) -> tuple[Array, Array]:
        directed, reached = state
        out = edges & reached[..., :, None] & ~reached[..., None, :]
        return directed | out, reached | jnp.any(out, axis=-2)

    directed, _ = jax.lax.fori_loop(0, edges.shape[-1] - 1, step, (jnp.zeros_like(edges), reached))
    return jnp.asarray(directed)
