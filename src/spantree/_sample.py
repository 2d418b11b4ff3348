"""Trees drawn without replacement, and what can be estimated from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ._batch import Batch
from ._sampling import DrawnDistinct

Floats = npt.NDArray[np.float64]


class Sample:
    """Different trees of each sentence, in the order in which they were drawn, without replacement.

    Lists of arrays where the scores came as a list. Where a sentence has fewer than k trees, it has all of them, and
    then heads are -1 and log-probabilities and keys -inf.

    Attributes
    ----------
    heads : int64 array (k, ..., n+1)
    labels : int64 array (k, ..., n+1), or None
        If the scores are labelled; then it is labelled trees that are different.
    log_probs : float array (k, ...)
        Each tree's exact log-probability under the distribution (not given the trees before it).
    keys : float array (k, ...)
        Gumbel keys, decreasing: the k largest of one independent key per tree, with location its log-probability.
    threshold : float array (...)
        The next largest key, that of the tree that would have come next; -inf if all trees were drawn.
    log_remaining : float array (...)
        Log of the mass of the trees not drawn; exact however little it is.

    Examples
    --------
    >>> import numpy as np, spantree
    >>> dist = spantree.TreeDistribution(np.array([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]]))
    >>> sample = dist.sample_without_replacement(3, rng=1)
    >>> sample.heads
    array([[-1,  2,  0],
           [-1,  0,  1],
           [-1, -1, -1]])
    >>> float(sample.estimate(lambda heads: heads[1] == 2))  # all trees were drawn: exact
    0.9525741268224333
    """

    __slots__ = ("_batch", "_drawn", "heads", "keys", "labels", "log_probs", "log_remaining", "threshold")

    def __init__(self, batch: Batch, drawn: DrawnDistinct, k: int) -> None:
        self._batch = batch
        self._drawn = drawn
        self.heads: Any = batch.nodes(drawn.heads, k)
        self.labels: Any = None if drawn.labels is None else batch.nodes(drawn.labels, k)
        self.log_probs: Any = batch.scalars(drawn.log_probs, k)
        self.keys: Any = batch.scalars(drawn.keys, k)
        self.threshold: Any = batch.scalars(drawn.threshold)
        self.log_remaining: Any = batch.scalars(drawn.log_remaining)

    def estimate(self, f: Callable[..., Any] | npt.ArrayLike | list[Any]) -> Any:
        """An unbiased estimate of E[f(tree)].

        Parameters
        ----------
        f : function or values
            A function of one tree's heads ``(n+1,)`` (labelled: of heads and labels) that returns a number or an array,
            or such values for all trees: ``(k, ..., *shape)`` (a list of ``(k, *shape)`` for scores in a list).

        Returns
        -------
        float64 array (..., *shape)
            Exact if all trees were drawn. NaN for a sentence without a tree.

        Notes
        -----
        Every tree counts p / q, q = 1 - exp(-exp(log p - threshold)) the probability that a key exceeds the threshold
        (Kool, van Hoof & Welling 2019).

        Examples
        --------
        >>> import numpy as np, spantree
        >>> dist = spantree.TreeDistribution(np.zeros((6, 6)))  # 625 trees, all alike
        >>> sample = dist.sample_without_replacement(100, rng=0)
        >>> round(float(sample.estimate(lambda heads: (heads == 3).sum())), 3)  # exactly: 0.8
        0.826
        """
        weights = self._for_each_sentence(_importance_weights)
        return self._in_form([_weighted_sum(w, v) for w, v in zip(weights, self._values(f), strict=True)])

    def gradient_weights(self, f: Callable[..., Any] | npt.ArrayLike | list[Any]) -> Any:
        """Weights for the score-function gradient: ``sum_i weight_i * grad log p(tree_i)`` is an unbiased grad E[f].

        Parameters
        ----------
        f : function or values
            As in `estimate`, one number per tree.

        Returns
        -------
        float64 array (k, ...)
            0 where there is no tree. With autodiff, ``(weights * log_probs).sum(0)`` is the surrogate to differentiate.

        Notes
        -----
        The unordered-set estimator with built-in baseline of Kool, van Hoof & Welling (2020). With R(S, s) the ratio of
        the probabilities of drawing the set S without s from all trees but s, and of drawing S,

            weight(s) = p(s) R(S, s) (f(s) - sum over s' in S of p(s') R'(S, s') f(s')),

        R' the same ratio where s is left out already (1 for s itself). The order of the trees plays no role, and the
        other trees serve as the baseline; so k must be 2 or more for there to be one. Probabilities of sets are
        integrals over a race of exponential clocks, found by quadrature to about ten digits. O(k^2).

        Examples
        --------
        >>> import numpy as np, spantree
        >>> dist = spantree.TreeDistribution(np.array([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]]))
        >>> dist.sample_without_replacement(2, rng=1).gradient_weights([1.0, 0.0]).round(6)
        array([ 0.045177, -0.045177])
        """
        values = self._values(f)
        if any(value.ndim != 1 for value in values):
            raise ValueError("gradient_weights needs one number per tree")
        sets = self._for_each_sentence(lambda log_probs, _, rest: (log_probs, rest))
        weights = [_unordered_set_weights(p, rest, value) for (p, rest), value in zip(sets, values, strict=True)]
        if self._batch.leading is None:
            return weights
        return (
            np.stack(weights, axis=1).reshape(np.shape(self.log_probs))
            if weights
            else np.zeros(np.shape(self.log_probs))
        )

    def __len__(self) -> int:
        return len(self.heads) if self._batch.leading is not None else len(self.heads[0])

    def __repr__(self) -> str:
        count = len(self._batch)
        k = len(self._drawn.keys) // max(count, 1)
        of = "" if self._batch.leading == () else f" for each of {count} sentences"
        return f"Sample({k} trees{of})"

    def _for_each_sentence(self, function: Callable[[Floats, float, float], Any]) -> list[Any]:
        """function(log-probabilities (k,), threshold, log of the remaining mass), in double precision."""
        drawn, count = self._drawn, len(self._batch)
        log_probs = drawn.log_probs.reshape(-1, count) if count else drawn.log_probs.reshape(0, 0)
        return [function(log_probs[:, i], drawn.threshold[i], drawn.log_remaining[i]) for i in range(count)]

    def _values(self, f: Any) -> list[Floats]:
        """f of every tree, (k, *shape) per sentence; 0 where there is no tree."""
        batch, count = self._batch, len(self._batch)
        if callable(f):
            rows = self._drawn.heads.reshape(-1, batch.core.row_size)
            label_rows = None if self._drawn.labels is None else self._drawn.labels.reshape(rows.shape)
            starts = np.cumsum([0, *(batch.lengths + 1)]) if batch.leading is None else np.arange(count) * self._width()
            return [self._call(f, rows, label_rows, i, int(starts[i]), int(n) + 1) for i, n in enumerate(batch.lengths)]
        if batch.leading is None:
            values = [np.asarray(value, dtype=np.float64) for value in f]
            if len(values) != count:
                raise ValueError(f"values must be a list with one entry for each of the {count} sentences")
        else:
            array = np.asarray(f, dtype=np.float64)
            expected = np.shape(self.log_probs)
            if array.shape[: len(expected)] != expected:
                raise ValueError(f"values have shape {array.shape}; they must begin with {expected}")
            flat = array.reshape((expected[0], count, *array.shape[len(expected) :]))
            values = [flat[:, i] for i in range(count)]
        exists = self._for_each_sentence(lambda log_probs, *_: np.isfinite(log_probs))
        return [
            np.where(there.reshape(-1, *(1,) * (value.ndim - 1)), value, 0.0)
            for there, value in zip(exists, values, strict=True)
        ]

    def _call(self, f: Callable[..., Any], rows: Any, labels: Any, i: int, start: int, nodes: int) -> Floats:
        drawn = int(np.isfinite(self._drawn.log_probs.reshape(len(rows), -1)[:, i]).sum())
        here = slice(start, start + nodes)
        trees = [(rows[t, here],) if labels is None else (rows[t, here], labels[t, here]) for t in range(drawn)]
        values = [np.asarray(f(*tree), dtype=np.float64) for tree in trees]
        shape = values[0].shape if values else ()
        return np.stack(values + [np.zeros(shape)] * (len(rows) - drawn)) if len(rows) else np.zeros((0, *shape))

    def _width(self) -> int:
        return int(self.heads.shape[-1])

    def _in_form(self, estimates: list[Floats]) -> Any:
        if self._batch.leading is None:
            return estimates
        if not estimates:
            return np.zeros(self._batch.leading)
        shape = max((np.shape(x) for x in estimates), key=len)
        filled = [np.broadcast_to(x, shape) for x in estimates]
        return np.stack(filled).reshape(self._batch.leading + shape)[()]


def _importance_weights(log_probs: Floats, threshold: float, _: float) -> Floats:
    there = np.isfinite(log_probs)
    if not there.any():
        return np.full(log_probs.shape, np.nan)
    weights = np.zeros(log_probs.shape)
    log_rate = log_probs[there] - threshold  # +inf if all trees were drawn
    with np.errstate(over="ignore"):
        log_q = np.log(-np.expm1(-np.exp(log_rate)), where=log_rate > -30.0, out=log_rate.copy())
    weights[there] = np.exp(log_probs[there] - log_q)
    return weights


def _weighted_sum(weights: Floats, values: Floats) -> Floats:
    return np.asarray(np.tensordot(weights, values, axes=1))


def _unordered_set_weights(log_probs: Floats, log_rest: float, values: Floats) -> Floats:
    there = np.isfinite(log_probs)
    weights = np.zeros(log_probs.shape)
    log_p, f = log_probs[there], values[there]
    count = len(log_p)
    if count == 0:
        return weights
    p = np.exp(log_p)
    if log_rest == -np.inf:
        weights[there] = p * (f - p @ f)
        return weights
    log_density, log_arrived = _race(log_p, log_rest)
    log_set = _log_sum_exp(log_density)
    without = log_density - log_arrived  # row s: all of the set but s have arrived
    log_set_without = _log_sum_exp(without)
    baseline = np.zeros(count)
    if count > 1:
        for s in range(count):
            log_ratio = _log_sum_exp(without[s] - log_arrived) - log_set_without[s]
            log_ratio[s] = 0.0
            baseline[s] = np.exp(log_p + log_ratio) @ f
    weights[there] = np.exp(log_p + log_set_without - log_set) * (f - baseline)
    return weights


def _race(log_p: Floats, log_rest: float) -> tuple[Floats, Floats]:
    """Trees arrive at rates p, the rest together at rate r. The set is what came before the first of the rest if, at
    that time t, all of it has arrived: P(S) = integral of r exp(-r t) prod (1 - exp(-p t)) dt.

    In x = log t the integrand falls off exponentially on both sides, so that equal steps converge fast. Returns the
    logs of the integrand (grid,) and of the factors (k, grid).
    """
    latest = -log_rest + np.log(50.0)
    earliest = min(-log_rest, -log_p.max()) - 50.0
    x = np.linspace(earliest, latest, int(8 * (latest - earliest)) + 2)
    log_times = log_p[:, None] + x
    with np.errstate(over="ignore"):
        arrived = -np.expm1(-np.exp(np.minimum(log_times, 5.0)))
        log_arrived = np.where(log_times < -30.0, log_times, np.log(np.maximum(arrived, 1e-300)))
    log_density = log_rest + x - np.exp(log_rest + x) + log_arrived.sum(0)
    return log_density, log_arrived


def _log_sum_exp(x: Floats) -> Floats:
    largest = x.max(-1, keepdims=True)
    return np.asarray(np.log(np.exp(x - largest).sum(-1)) + largest[..., 0])
