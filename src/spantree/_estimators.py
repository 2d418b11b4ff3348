"""Trees drawn without replacement, and what can be estimated from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from ._batch import Batch, rounded
from ._read import IntArray, read_values
from ._sampling import DrawnDistinct
from ._trees import Floats, Ints

if TYPE_CHECKING:
    import numpy.typing as npt

    Numbers = npt.NDArray[np.float64]
else:
    Numbers = np.ndarray


class Sample(Generic[Ints, Floats]):
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
        Log of the mass of the trees not drawn; exact down to exp(-750), which soft masks alone go below.

    Examples
    --------
    >>> import numpy as np, spantree
    >>> dist = spantree.TreeDistribution(np.array([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]]))
    >>> sample = dist.sample_without_replacement(3, rng=1)
    >>> sample.heads
    array([[-1,  2,  0],
           [-1,  0,  1],
           [-1, -1, -1]])
    >>> round(float(sample.estimate(lambda heads: heads[1] == 2)), 12)  # all trees were drawn: exact
    0.952574126822
    """

    __slots__ = ("_drawn", "_form", "heads", "keys", "labels", "log_probs", "log_remaining", "threshold")

    def __init__(self, batch: Batch, drawn: DrawnDistinct, k: int) -> None:
        self._form = _Form(k, batch.leading, batch.lengths, batch.core.row_size, batch.dtype)
        self._drawn = drawn
        self.heads: Ints = batch.nodes(drawn.heads, k)
        self.labels: Ints = None if drawn.labels is None else batch.nodes(drawn.labels, k)  # type: ignore[assignment]
        self.log_probs: Floats = batch.scalars(drawn.log_probs, k)
        self.keys: Floats = batch.scalars(drawn.keys, k)
        self.threshold: Floats = batch.scalars(drawn.threshold)
        self.log_remaining: Floats = batch.scalars(drawn.log_remaining)

    def estimate(self, f: Callable[..., Any] | npt.ArrayLike | list[Any]) -> Floats:
        """An unbiased estimate of E[f(tree)].

        Parameters
        ----------
        f : function or values
            A function of one tree's heads ``(n+1,)`` (labelled: of heads and labels) that returns a number or an array,
            or such values for all trees: ``(k, ..., *shape)`` (a list of ``(k, *shape)`` for scores in a list).

        Returns
        -------
        array, of shape ``(..., *shape)``
            In the dtype of the scores, computed in double precision. Exact if all trees were drawn. NaN for a sentence
            without a tree.

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
        values = self._values(f)
        log_probs, drawn = self._form.by_tree(self._drawn.log_probs), self._drawn
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):  # infinite and huge values are the caller's
            means = [
                np.tensordot(_importance_weights(log_probs[:, i], drawn.threshold[i]), value, axes=1)
                for i, value in enumerate(values)
            ]
        estimates: Floats = self._form.stack(means, shape=_shape_of(f, self._form))
        return estimates

    def gradient_weights(self, f: Callable[..., Any] | npt.ArrayLike | list[Any]) -> Floats:
        """Weights for the score-function gradient: ``sum_i weight_i * grad log p(tree_i)`` is an unbiased grad E[f].

        Parameters
        ----------
        f : function or values
            As in `estimate`, one number per tree.

        Returns
        -------
        array (k, ...)
            In the dtype of the scores, computed in double precision. 0 where there is no tree. With autodiff,
            ``(weights * log_probs).sum(0)`` is the surrogate to differentiate.

        Notes
        -----
        The unordered-set estimator with built-in baseline of Kool, van Hoof & Welling (2020). With R(S, s) the ratio of
        the probabilities of drawing the set S without s from all trees but s, and of drawing S,

            weight(s) = p(s) R(S, s) (f(s) - sum over s' in S of p(s') R'(S, s') f(s')),

        R' the same ratio where s is left out already (1 for s itself). The order of the trees plays no role, and the
        other trees serve as the baseline; so k must be 2 or more for there to be one. Probabilities of sets are
        integrals over a race of exponential clocks, found by quadrature to about twelve digits. O(k).

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
        log_probs, form = self._form.by_tree(self._drawn.log_probs), self._form
        weights = np.zeros(log_probs.shape)
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):  # infinite and huge values are the caller's
            for i, value in enumerate(values):
                weights[:, i] = _unordered_set_weights(log_probs[:, i], self._drawn.log_remaining[i], value)
        rounded: Any = form.rounded(weights)
        result: Any = list(rounded.T) if form.leading is None else rounded.reshape((form.k, *form.leading))
        return result  # type: ignore[no-any-return]

    # Written out for pickle's protocols 0 and 1, which do not know of __slots__.

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)

    def __len__(self) -> int:
        return self._form.k

    def __repr__(self) -> str:
        form = self._form
        of = "" if form.leading == () else f" for each of {len(form.lengths)} sentences"
        return f"Sample({form.k} trees{of})"

    def _values(self, f: Any) -> list[Numbers]:
        """f of every tree, (k, *shape) per sentence; 0 where there is no tree."""
        form = self._form
        there = np.isfinite(form.by_tree(self._drawn.log_probs))
        if callable(f):
            starts, lengths = form.starts(), form.lengths.tolist()
            return [self._call(f, there[:, i], slice(starts[i], starts[i] + n + 1)) for i, n in enumerate(lengths)]
        given = form.split(f)
        for i, value in enumerate(given):
            if value.shape[:1] != (form.k,):
                raise ValueError(
                    f"the values of sentence {i} have shape {value.shape}; they must begin with ({form.k},)"
                )
        return [
            np.where(there[:, i].reshape(-1, *(1,) * (value.ndim - 1)), value, 0.0) for i, value in enumerate(given)
        ]

    def _call(self, f: Callable[..., Any], there: npt.NDArray[np.bool_], row: slice) -> Numbers:
        form, arrays = self._form, (self._drawn.heads, self._drawn.labels)
        rows = [flat.reshape(form.k, form.row_size)[:, row] for flat in arrays if flat is not None]
        values = [read_values(f(*(tree[t] for tree in rows)), "what f returns") for t in np.flatnonzero(there)]
        result = np.zeros((form.k, *(values[0].shape if values else ())))
        result[there] = np.stack(values) if values else 0.0
        return result


@dataclass(slots=True, frozen=True)
class _Form:
    """The form the scores came in, for k trees of each sentence."""

    k: int
    leading: tuple[int, ...] | None  # None: a list
    lengths: IntArray
    row_size: int  # entries of one array of heads
    dtype: Any

    def starts(self) -> list[int]:
        """Where the nodes of each sentence begin in a row."""
        if self.leading is None:
            return [0, *np.cumsum(self.lengths + 1).tolist()]
        width = self.row_size // max(len(self.lengths), 1)
        return [i * width for i in range(len(self.lengths))]

    def by_tree(self, flat: Numbers) -> Numbers:
        return flat.reshape(self.k, len(self.lengths))

    def split(self, values: Any) -> list[Numbers]:
        """Values of all trees, as handed in, by sentence."""
        count = len(self.lengths)
        if self.leading is None:
            if not isinstance(values, (list, tuple)) or len(values) != count:
                raise ValueError(f"values must be a list with one entry for each of the {count} sentences")
            return [read_values(value, f"values[{i}]") for i, value in enumerate(values)]
        array = read_values(values, "values")
        expected = (self.k, *self.leading)
        if array.shape[: len(expected)] != expected:
            raise ValueError(f"values have shape {array.shape}; they must begin with {expected}")
        flat = array.reshape((self.k, count, *array.shape[len(expected) :]))
        return [flat[:, i] for i in range(count)]

    def stack(self, results: list[Numbers], shape: tuple[int, ...]) -> Any:
        """One array (or number) per sentence; `shape` is theirs where there is no sentence to tell it."""
        if self.leading is None:
            return [self.rounded(result) for result in results]
        shape = max((np.shape(x) for x in results), key=len, default=shape)
        stacked = np.empty((len(results), *shape))
        for i, result in enumerate(results):
            stacked[i] = result  # a sentence without a tree has a lone NaN
        return self.rounded(stacked).reshape(self.leading + shape)[()]

    def rounded(self, values: Any) -> Any:
        return rounded(np.asarray(values), self.dtype)[()]


def _shape_of(f: Any, form: _Form) -> tuple[int, ...]:
    """Of one tree's value, as far as that can be told without a tree."""
    return () if callable(f) or form.leading is None else np.shape(f)[1 + len(form.leading) :]


def _importance_weights(log_probs: Numbers, threshold: float) -> Numbers:
    there = np.isfinite(log_probs)
    if not there.any():
        return np.full(log_probs.shape, np.nan)
    weights = np.zeros(log_probs.shape)
    log_rate = log_probs[there] - threshold  # +inf if all trees were drawn
    weights[there] = np.exp(log_probs[there] - _log_arrived(log_rate))
    return weights


def _log_arrived(log_time: Numbers) -> Numbers:
    """log(1 - exp(-t)) of log t: the probability that a clock of rate 1 has rung by time t."""
    # 1 - exp(-t) is t, to all digits, below exp(-37), and 1 above exp(5).
    clipped = np.exp(np.clip(log_time, -37.0, 5.0))
    return np.where(log_time < -37.0, log_time, np.log(-np.expm1(-clipped)))


def _unordered_set_weights(log_probs: Numbers, log_rest: float, values: Numbers) -> Numbers:
    there = np.isfinite(log_probs)
    weights = np.zeros(log_probs.shape)
    log_p, f = log_probs[there], values[there]
    if len(log_p) == 0:
        return weights
    if log_rest == -np.inf:
        p = np.exp(log_p)
        weights[there] = p * (f - p @ f)
        return weights
    race = _Race(log_p, log_rest)
    own = np.exp(log_p) * f
    others = sum((c.T @ f[part] for part, _, c in race.parts()), np.zeros(len(race.grid)))
    result = np.empty(len(log_p))
    for part, log_arrived, c in race.parts():
        without = _normalised(race.log_density - log_arrived)  # row s: all of the set but s have arrived
        # sum over s' of p(s') R'(S, s') f(s'), where R'(S, s) = 1
        baseline = without @ others - (without * c).sum(1) * f[part] + own[part] if len(log_p) > 1 else 0.0
        result[part] = (c @ _normalised(race.log_density)) * (f[part] - baseline)
    weights[there] = result
    return weights


class _Race:
    """Trees arrive at rates p, the rest together at rate r. The set is what came before the first of the rest if, at
    that time t, all of it has arrived: P(S) = integral of r exp(-r t) prod (1 - exp(-p t)) dt.

    With y = log(r t) the integrand's logarithm L is concave: its slope, 1 - r t + sum of p t / (exp(p t) - 1), falls.
    Equal steps in y converge fast, and only those count that lie between the points where the integrand has fallen to
    exp(-45) of its peak. The integrand without two of the trees has to fit as well. Its slope is least, and it reaches
    furthest to the left, without the two of least p; L itself reaches furthest to the right.

    The distance is at most about 55, with a peak no narrower than 0.3, or less in proportion to the peak's width: 512
    steps are several per width.
    """

    def __init__(self, log_p: Numbers, log_rest: float) -> None:
        self._log_p = log_p
        self._log_rest = log_rest
        log_rate = np.sort(log_p - log_rest)
        self.grid = np.linspace(_fallen(log_rate[2:], -1.0), _fallen(log_rate, 1.0), 513)
        self.log_density = self.grid - np.exp(self.grid)
        for _, log_arrived, _ in self.parts():
            self.log_density += log_arrived.sum(0)

    def parts(self) -> Iterator[tuple[slice, Numbers, Numbers]]:
        """A few thousand trees at a time: which, log(1 - exp(-p t)), and p / (1 - exp(-p t)), over the grid."""
        for begin in range(0, len(self._log_p), 2048):
            part = slice(begin, begin + 2048)
            log_p = self._log_p[part, None]
            log_arrived = _log_arrived(log_p - self._log_rest + self.grid)
            yield part, log_arrived, np.exp(log_p - log_arrived)


def _fallen(log_rate: Numbers, direction: float) -> float:
    """Where, on one side of its peak, the integrand of a race has fallen to exp(-45) of it."""

    def log_density(y: float) -> float:
        return float(y - np.exp(y) + _log_arrived(log_rate + y).sum())

    def slope(y: float) -> float:
        time = np.exp(np.clip(log_rate + y, -37.0, 5.0))
        return float(1.0 - np.exp(y) + (time / np.expm1(time)).sum())

    # Every tree adds between 0 and 1 to the slope 1 - exp(y). So the peak is right of 0, and 46 left of 0 the integrand
    # has fallen far enough. Right of the peak the slope falls faster than -exp(y): a distance of 5 is enough.
    peak = _bisect(lambda y: slope(y) < 0.0, 0.0, np.log(len(log_rate) + 2.0))
    enough = peak + 46.0 if direction < 0.0 else 5.0
    target = log_density(peak) - 45.0
    return peak + direction * _bisect(lambda distance: log_density(peak + direction * distance) < target, 0.0, enough)


def _bisect(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The least number at which `holds` does, to 2^-30 of the interval; it holds at `high`, and stays true."""
    for _ in range(30):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _normalised(log_density: Numbers) -> Numbers:
    density = np.exp(log_density - log_density.max(-1, keepdims=True))
    return np.asarray(density / density.sum(-1, keepdims=True))
