"""The steps of a distribution that are JAX's own: `_front` has the questions that follow from these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import jax.numpy as jnp

import jax
from jax import Array

from .._front.base import Names
from .._front.derived import Derived
from .._front.form import edge_axes
from .._front.told import told_in_jax
from . import _primitives as ask
from ._door import own, pad
from ._form import agreeing_edges, real_edges

if TYPE_CHECKING:
    from typing_extensions import Self


def widest() -> Any:
    """The widest type of numbers: float32 without jax_enable_x64."""
    return jax.dtypes.canonicalize_dtype(jnp.float64)


@told_in_jax
class ArraySteps(Derived[Array]):
    """Scores and lengths are arrays, traced or not."""

    _xp: ClassVar[Any] = jnp
    _moved = staticmethod(jnp.moveaxis)

    def _expectation(self, values: Array) -> Array:
        scores, lengths, form = self._question
        return ask.expectation(scores, lengths, values, form)

    def _hessian(self, directions: Array) -> Array:
        scores, lengths, form = self._question
        return ask.hessian(scores, lengths, directions, form)

    def _relative_scores(self) -> Array:
        return ask.relative_scores(jax.lax.stop_gradient(self._scores), self._lengths, self._form)

    def _possible(self) -> Array:
        scores, lengths, form = self._question
        return ask.marginals(jax.lax.stop_gradient(scores), lengths, form) > 0.0

    def _real_edges(self) -> Array:
        return real_edges(self._nodes, self._lengths, self._form)

    def _agreeing(self, heads: Array, labels: Array | None) -> Array:
        return agreeing_edges(heads, heads[..., :0] if labels is None else labels, self._scores, self._form)

    def _has_trees(self) -> Array:
        scores = jax.lax.stop_gradient(self._full()._scores)
        return ask.log_partition(scores, self._lengths, self._form) > -jnp.inf

    def _expanded(self, batch: Any) -> Self:
        if tuple(batch) == self.batch_shape:
            return self
        edges = self._scores.shape[-edge_axes(self._form) :]
        scores, lengths = jnp.broadcast_to(self._scores, (*batch, *edges)), jnp.broadcast_to(self._lengths, batch)
        return self._with(scores, lengths, Names(labels=self._names.labels))  # type: ignore[no-any-return]

    def _array(self, given: Any) -> Array:
        return own(given)

    def _copied(self, array: Array) -> Array:
        return array  # nobody can change it

    def _constant(self, array: Any) -> Array:
        return jnp.asarray(array)

    def _integers(self, nodes: Array) -> Array:
        if not jnp.issubdtype(nodes.dtype, jnp.integer):
            raise ValueError(f"heads and labels must be integers, not {nodes.dtype}")
        return nodes.astype(jnp.int32)

    def _like_scores(self, numbers: Array) -> Array:
        return numbers.astype(self._scores.dtype)

    def _full(self) -> Self:
        dtype = self._scores.dtype
        return self._in(dtype if dtype in (jnp.float32, jnp.float64) else jnp.dtype(jnp.float32))

    def _wide(self) -> Self:
        return self._in(widest())

    def _in(self, dtype: Any) -> Self:
        """With scores, and answers, of that type."""
        if dtype == self._dtype:
            return self
        return self._with(self._scores.astype(dtype), self._lengths, dtype=dtype)  # type: ignore[no-any-return]

    def _rounded(self, found: Any) -> Any:
        def rounded(x: Array) -> Array:
            return x.astype(self._dtype) if jnp.issubdtype(x.dtype, jnp.floating) else x

        return jax.tree_util.tree_map(rounded, found)

    _fixed = staticmethod(jax.lax.stop_gradient)
    _pad = staticmethod(pad)
