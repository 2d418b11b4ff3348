"""Trees drawn without replacement, as arrays, and what can be estimated from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp

import jax
from jax import Array


class Sample(NamedTuple):
    """Different trees of each sentence, in the order in which they were drawn, without replacement.

    Where a sentence has fewer than k trees, it has all of them, and then heads are -1 and log-probabilities -inf.
    If the scores came as a list, heads, labels, log-probabilities and keys are lists of (k, n+1) or (k,).

    Attributes
    ----------
    heads : int32 array (k, ..., n+1)
    labels : int32 array (k, ..., n+1), or None
        If the scores are labelled; then it is labelled trees that are different.
    log_probs : array (k, ...)
        Each tree's exact log-probability under the distribution; differentiable by the scores.
    keys : array (k, ...)
        Gumbel keys, decreasing: the k largest of one independent key per tree, with location its log-probability.
    threshold : array (...)
        The next largest key; -inf if all trees were drawn.
    log_remaining : array (...)
        Log of the mass of the trees not drawn.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, spantree.jax
    >>> dist = spantree.jax.TreeDistribution(jnp.array([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]]))
    >>> sample = dist.sample_without_replacement(jax.random.key(0), 2)
    >>> round(float(sample.estimate(sample.heads[:, 1] == 2)), 4)  # all trees were drawn: exact
    0.9526
    """

    heads: Any
    labels: Any
    log_probs: Any
    keys: Any
    threshold: Array
    log_remaining: Array

    def estimate(self, values: Array | list[Array] | Callable[..., Array]) -> Array:
        """An unbiased estimate of E[f(tree)].

        Parameters
        ----------
        values : array (k, ..., *shape), or a function
            f of every tree; or f itself, of all heads (labelled: and labels) at once. Of scores in a list: a list of
            ``(k, *shape)``, or f of the heads of one sentence.

        Returns
        -------
        array (..., *shape)
            Exact if all trees were drawn. NaN where there is no tree.

        Notes
        -----
        Every tree counts p / q, q = 1 - exp(-exp(log p - threshold)) the probability that a key exceeds the threshold
        (Kool, van Hoof & Welling 2019).

        Examples
        --------
        >>> import jax, jax.numpy as jnp, spantree.jax
        >>> dist = spantree.jax.TreeDistribution(jnp.zeros((4, 4)))
        >>> sample = dist.sample_without_replacement(jax.random.key(0), 9)
        >>> round(float(sample.estimate(lambda heads: (heads == 0).sum(-1))), 3)
        1.0
        """
        if callable(values):
            trees = (self.heads,) if self.labels is None else (self.heads, self.labels)
            in_list = isinstance(self.heads, list)
            values = [values(*tree) for tree in zip(*trees, strict=True)] if in_list else values(*trees)
        f, log_probs = _side_by_side(values), _side_by_side(self.log_probs)
        there = log_probs > -jnp.inf
        log_p = jnp.where(there, jax.lax.stop_gradient(log_probs), 0.0)
        time = jnp.where(there, log_p - self.threshold, 0.0)
        # 1 - exp(-t) is t, to all digits, below exp(-37), and 1 above exp(5).
        log_seen = jnp.where(time < -37.0, time, jnp.log(-jnp.expm1(-jnp.exp(jnp.clip(time, -37.0, 5.0)))))
        weights = jnp.where(there, jnp.exp(log_p - log_seen), 0.0)
        wide = weights.reshape(weights.shape + (1,) * (f.ndim - weights.ndim))
        total = jnp.sum(jnp.where(wide > 0.0, f, 0.0) * wide, axis=0)
        has_tree = there.any(0)
        return jnp.where(has_tree.reshape(has_tree.shape + (1,) * (total.ndim - has_tree.ndim)), total, jnp.nan)


def _side_by_side(numbers: Array | list[Array]) -> Array:
    """Of trees (k, ...), or of each sentence's (k, *shape) with an axis for the sentences."""
    return jnp.stack(numbers, 1) if isinstance(numbers, list) else numbers
