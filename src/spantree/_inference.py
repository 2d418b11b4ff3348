"""Exact inference: one solve per batch, and everything that follows from it without another."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from . import _core, _decoding
from ._batch import Batch, rounded
from ._read import IntArray
from ._underflow import underflow_is_zero

if TYPE_CHECKING:
    import numpy.typing as npt

    Flat = npt.NDArray[np.float64]
else:
    Flat = np.ndarray

T = TypeVar("T", bound=np.generic)

_DRAWS, _QUESTIONS = _core.Solved.For.draws, _core.Solved.For.questions

# Sentences whose charts are kept in memory that was used before (chart/solved_sentence.hpp); fresh memory for more
# makes log Z alone a quarter slower, and saves only an eighth of the marginals after it.
_FEW = 64

# Charts take some 110 bytes for each pair of nodes. As many as this stay in a core's own cache, and to keep them costs
# nothing; to write more of them away takes as long as to solve them again.
_BYTES_OF_CHARTS_NEAR = 1 << 19


class Solved:
    """The solve of a batch, run when first needed and kept: what a distribution's quantities are made of.

    O(n^3) per sentence. Kept are O(n^2) numbers, about 110 n^2 bytes for projective trees, and nothing that later
    questions change: any number of threads may ask. Without `keep`, only marginals and log Z are kept: for who will ask
    nothing else. Arrays are flat, as the core writes them; see `Batch`.
    """

    __slots__ = (
        "_batch",
        "_begun",
        "_drawn_from",
        "_keep",
        "_log_partition",
        "_marginals",
        "_projective",
        "_rest",
        "_root",
        "_solution",
        "_unattachable",
    )

    def __init__(self, batch: Batch, root: _core.Root, projective: bool, keep: bool = True) -> None:
        self._batch = batch
        self._root = root
        self._projective = projective
        self._keep = keep
        self._drawn_from = False
        self._log_partition: Flat | None = None
        self._rest: Flat | None = None
        self._begun: _core.Solved | None = None  # of projective trees: log Z, and what it takes to go on
        self._solution: _core.Solved | None = None
        self._marginals: Flat | None = None
        self._unattachable: IntArray | None = None

    @property
    def log_partition(self) -> Flat:
        """log Z per sentence, -inf where there is no tree."""
        if self._log_partition is None:
            if self._keep and self._projective and len(self._batch) <= _FEW:
                self._solve(_DRAWS, None)
            else:
                self._solve_and_forget(None)
        assert self._log_partition is not None
        return self._log_partition

    @property
    def unattachable(self) -> IntArray | None:
        """What `Batch.judged` says."""
        if self._log_partition is None:
            _ = self.log_partition
        return self._unattachable

    @property
    def without_tree(self) -> npt.NDArray[np.bool_]:
        """Which sentences have none. (log Z may be -inf of others, where scores are about the least double.)"""
        words = self.unattachable
        return np.zeros(len(self._batch), np.bool_) if words is None else words != 0

    def to_draw_from(self) -> _core.Solved | None:
        """What trees are drawn from, if it has been solved, or is now for a few sentences.

        Else they are solved some at a time, and not kept. Large charts are kept when drawn from a second time.
        """
        solution, drawn_from = self._solved(), self._drawn_from
        self._drawn_from = True
        if solution is None and self._keep and len(self._batch) <= _FEW:
            if not self._projective:
                solution = self._solve(_QUESTIONS, None)
            elif drawn_from or self._charts_stay_near():
                solution = self._solve(_DRAWS, None)
        return solution

    def _solved(self) -> _core.Solved | None:
        begun = self._begun  # first: it goes when there is a solution
        return self._solution or begun

    def marginals(self) -> Flat:
        if self._marginals is None:
            self._marginals = self._write_marginals(np.float64)
        return self._marginals

    def fresh_marginals(self) -> npt.NDArray[Any]:
        """The same in the type of the scores, rounded once, in an array that is the caller's."""
        if self._marginals is not None:
            native = _native(self._batch)
            return rounded(self._marginals, np.dtype(native)) if native is np.float32 else self._marginals.copy()
        return self._write_marginals(_native(self._batch))

    def _write_marginals(self, dtype: type[np.floating[Any]]) -> npt.NDArray[Any]:
        out = np.empty(self._batch.core.edge_size, dtype)
        if self._solution is not None:
            self._solution.marginals(self._batch.core, self._batch.threads, out)
        elif self._keep:
            self._solve(_QUESTIONS, out)
        else:
            self._solve_and_forget(out)
        return out

    def expectation(
        self, values: Flat | None, with_grad: bool, rounded: bool = False
    ) -> tuple[Flat, npt.NDArray[Any] | None]:
        """E[sum of values over the tree's edges] per sentence, and its gradient; without values, the entropy.

        The gradient comes in the type of the scores if `rounded`. 0 times infinity is 0: values of edges that are in no
        tree do not matter, whatever they are.
        """
        batch = self._batch
        gradient = np.empty(batch.core.edge_size, _native(batch) if rounded else np.float64) if with_grad else None
        totals = np.empty(len(batch))
        if values is None and self._solution is None and self._begun is None:
            self._solve_for_entropy(totals, gradient)
        elif values is None:
            self._kept().entropy(batch.core, batch.threads, totals, gradient)
        else:
            self._kept().expectations(batch.core, batch.threads, values, totals[np.newaxis], gradient)
        return totals, gradient

    def expectations(self, values: Flat, with_grad: bool) -> tuple[Flat, Flat | None]:
        """The same of several values per edge, (R, edges): (B, R), and gradients (R, edges).

        Charts are asked about eight values of an edge at once: best if those lie side by side, as gradients do then.
        """
        batch = self._batch
        side_by_side = self._projective and not batch.labelled and values.flags.f_contiguous
        given = values.T if side_by_side else np.ascontiguousarray(values)
        totals = np.empty((len(values), len(batch)))
        gradients = np.empty(given.shape) if with_grad else None
        self._kept().expectations(batch.core, batch.threads, given, totals, gradients, side_by_side)
        return totals.T, gradients.T if gradients is not None and side_by_side else gradients

    def log_probs(self, heads: IntArray, labels: IntArray | None) -> tuple[Flat, npt.NDArray[np.bool_]]:
        """Log-probabilities (k, B) of heads (k, row_size), -inf where they are no tree, and where they are one.

        Off by a few units in the last place of the largest numbers involved.
        """
        shape = (len(heads), len(self._batch))
        out, allowed = np.empty(shape), np.empty(shape, np.bool_)
        solution = self._solved()
        if solution is None:
            solution = self._solve(_DRAWS if self._projective else _QUESTIONS, None)
        solution.log_probs(self._batch.core, self._batch.threads, heads, labels, out, allowed)
        return out, allowed

    def relative_scores(self, reach: float = 1.0) -> tuple[Flat, Flat]:
        """Scores of edges, when all that trees have in common is taken off, and log Z of these scores.

        log p(tree) is the sum of these scores less that log Z, for every tree that matters, even if log-probabilities
        were divided by `reach`.
        """
        out = np.empty(self._batch.core.edge_size)
        solution = self._solved() or self._kept()
        solution.relative_scores(self._batch.core, self._batch.threads, out, reach)
        assert self._rest is not None
        return out, self._rest

    def compare(self, other: Solved, divergence: bool, with_grad: bool) -> tuple[Flat, Flat | None]:
        """Cross-entropy relative to another, or the divergence from it, and its gradient.

        NaN where there is no tree, infinite where the other has not all of them; the gradient is 0 there. What has to
        be solved of the other for this is not kept.
        """
        batch, others = self._batch, other._batch
        totals = np.empty(len(batch))
        gradient = np.empty(batch.core.edge_size) if with_grad else None
        solved_here = _core.compare(
            batch.core,
            self._kept(),
            others.core,
            other._solved(),
            other._root,
            other._projective,
            batch.threads,
            divergence,
            totals,
            gradient,
        )
        if solved_here is not None:
            other._take(solved_here, None)
        return totals, gradient

    def _kept(self) -> _core.Solved:
        solution = self._solution
        if solution is None:
            self._keep = True
            solution = self._solve(_QUESTIONS, None)
        return solution

    def _solve(self, purpose: _core.Solved.For, marginals: npt.NDArray[Any] | None) -> _core.Solved:
        """Everything is complete before anybody else can see it."""
        batch, begun = self._batch, self._begun
        if begun is not None and purpose is _QUESTIONS:
            solution = _core.Solved(begun, batch.core, batch.threads, marginals)
        else:
            solution = _core.Solved(batch.core, self._root, self._projective, batch.threads, purpose, marginals)
        self._take(solution, purpose)
        return solution

    def _solve_for_entropy(self, totals: Flat, gradient: npt.NDArray[Any] | None) -> None:
        """A solve for questions of which this is the first: asked of each sentence as soon as it is solved.

        Many charts of projective trees are kept only if something has been asked before.
        """
        self._keep = True
        batch = self._batch
        keep = not self._projective or self._rest is not None or self._charts_stay_near()
        solution = _core.Solved(batch.core, self._root, self._projective, batch.threads, totals, gradient, keep)
        self._take(solution, _QUESTIONS if keep else None)

    def _charts_stay_near(self) -> bool:
        batch = self._batch
        return len(batch) <= _FEW and 110 * int(np.sum((batch.lengths + 1) ** 2)) <= _BYTES_OF_CHARTS_NEAR

    def _take(self, solution: _core.Solved, purpose: _core.Solved.For | None) -> None:
        log_partition, rest = np.empty(len(self._batch)), np.empty(len(self._batch))
        self._unattachable = self._batch.judged(solution.report(log_partition, rest))
        self._rest = rest
        if self._log_partition is None:
            self._log_partition = log_partition
        if purpose is _QUESTIONS:
            self._solution, self._begun = solution, None
        elif purpose is _DRAWS and self._solution is None:
            self._begun = solution

    def _solve_and_forget(self, marginals: npt.NDArray[Any] | None) -> None:
        batch = self._batch
        out = np.empty(len(batch))
        words = _core.log_partition(batch.core, self._root, self._projective, batch.threads, out, marginals)
        self._unattachable = batch.judged(words)
        if self._log_partition is None:
            self._log_partition = out


def _native(batch: Batch) -> type[np.floating[Any]]:
    """What the core can write: float32 for scores of that type; others are rounded from float64."""
    return np.float32 if batch.dtype == np.float32 else np.float64


# Quantities. Each returns one number per sentence and, if asked, the gradient with respect to the scores.

Quantity = tuple[Flat, Flat | None]


@underflow_is_zero
def renyi_entropy(
    batch: Batch,
    solved: Solved,
    solve: Callable[[Batch], Solved],
    best_trees: Callable[[], tuple[Flat, Flat]],
    alpha: float,
    with_grad: bool,
) -> Quantity:
    """(log Z(alpha s) - alpha log Z(s)) / (1 - alpha), with its limits at 1 and infinity.

    `best_trees` gives the best trees' log-probabilities and their edges as 0/1.
    """
    if alpha == 1.0:
        return solved.expectation(None, with_grad)
    if alpha == np.inf:
        log_prob, edges = best_trees()
        gradient = solved.marginals() - edges if with_grad else None
        return -log_prob, gradient
    distance = alpha - 1.0
    scores, log_z = solved.relative_scores(reach=max(1.0, 1.0 / alpha) if alpha > 0.0 else 1.0)
    if abs(distance) < 0.01:
        return _renyi_near_one(batch, scores, log_z, solve, alpha, with_grad)
    scaled = solve(scaled_batch(batch, scores, alpha))
    gradient = (scaled.marginals() - solved.marginals()) * (alpha / -distance) if with_grad else None
    with np.errstate(invalid="ignore"):  # 0 times -inf, where there is no tree
        whole = alpha * log_z
    return np.maximum(_difference(scaled.log_partition, whole) / -distance, 0.0), gradient  # (NaN stays NaN)


def _renyi_near_one(
    batch: Batch, scores: Flat, log_z: Flat, solve: Callable[[Batch], Solved], alpha: float, with_grad: bool
) -> Quantity:
    """log Z(s) less the mean over b from 1 to alpha of E_b[score], where trees weigh exp(b score).

    The difference quotients of log Z(b s) and of the marginals have no digits left here. But they are means of the
    derivatives, E_b[score] and its gradient, for which Gauss's three points do: the error is of order distance^6.
    """
    value, gradient = log_z.copy(), np.zeros(batch.core.edge_size) if with_grad else None
    for point, weight in ((0.5 - 0.15**0.5, 5 / 18), (0.5, 8 / 18), (0.5 + 0.15**0.5, 5 / 18)):
        b = 1.0 + (alpha - 1.0) * point
        expected, slope = solve(scaled_batch(batch, scores, b)).expectation(scores, with_grad)
        with np.errstate(invalid="ignore"):
            value -= weight * expected
        if gradient is not None and slope is not None:
            gradient -= alpha * weight * slope
    return np.where(np.isneginf(log_z), np.nan, value), gradient


@underflow_is_zero
def norm(
    batch: Batch,
    solved: Solved,
    solve: Callable[[Batch], Solved],
    best_trees: Callable[[], tuple[Flat, Flat]],
    p: float,
    with_grad: bool,
) -> Quantity:
    """(sum of probabilities to the p)^(1/p); the highest probability for p = inf."""
    if p == np.inf:
        log_prob, edges = best_trees()
        value = np.exp(log_prob)
        slope = edges - solved.marginals() if with_grad else None
    else:
        scores, log_z = solved.relative_scores(reach=max(1.0, 1.0 / p))
        scaled = solve(scaled_batch(batch, scores, p))
        slope = scaled.marginals() - solved.marginals() if with_grad else None
        with np.errstate(over="ignore"):  # for a p near 0 it is infinite
            value = np.exp(_difference(scaled.log_partition, p * log_z) / p)
    if slope is None:
        return value, None
    with np.errstate(over="ignore", invalid="ignore"):
        return value, np.where(slope == 0.0, 0.0, slope * spread_over_edges(batch, value))


@underflow_is_zero
def product_expectation(
    batch: Batch,
    solved: Solved,
    solve: Callable[[Batch], Solved],
    root: _core.Root,
    values: Flat,
    with_grad: bool,
    projective: bool,
) -> Quantity:
    """Z(w v) / Z(w) = Z(w |v|) / Z(w) times the mean of the product of signs where edges weigh w |v|."""
    relevant = flat_scores(batch) > -np.inf
    values = np.where(relevant & word_pairs(batch), values, 0.0)
    if np.isnan(values).any() or np.isinf(values).any():
        raise ValueError("values must be finite")
    scores, log_z = solved.relative_scores()
    with np.errstate(divide="ignore"):
        weighted = solve(shifted_batch(batch, scores, np.log(np.abs(values))))
    with np.errstate(over="ignore"):
        value = np.exp(_difference(weighted.log_partition, log_z))
    slope = weighted.marginals() if with_grad else None
    if (values < 0.0).any():
        if projective:
            raise ValueError("negative values need trees that may cross: projective=False")
        mean, slope = _mean_sign(batch, weighted, root, values, with_grad)
        magnitude, value = value, value * mean
    else:
        magnitude = value
    if slope is None:
        return value, None
    with np.errstate(over="ignore", invalid="ignore"):
        gradient = slope * spread_over_edges(batch, magnitude) - solved.marginals() * spread_over_edges(batch, value)
    gradient[spread_over_edges(batch, np.isneginf(log_z))] = 0.0  # there is no tree
    return value, gradient


def _mean_sign(batch: Batch, weighted: Solved, root: _core.Root, values: Flat, with_grad: bool) -> Quantity:
    """E[product of the values' signs], and the same over trees with an edge; 1 and 0 where there is no tree."""
    scores, log_z = weighted.relative_scores()
    sign = np.where(values < 0.0, -1.0, 1.0)
    from ._signed_product import mean_of_product  # here, because `decimal` takes its time

    mean, gradient = np.ones(len(batch)), np.zeros(batch.core.edge_size)
    pieces = [split_edges(batch, flat) for flat in (scores, sign, weighted.marginals(), gradient)]
    for i, parts in enumerate(zip(*pieces, strict=True)):
        if np.isneginf(log_z[i]):
            continue
        nodes, shape = int(batch.lengths[i]) + 1, in_layout(batch, batch.arrays[i]).shape
        s, signs, marginals, slope = (in_layout(batch, part.reshape(shape))[:nodes, :nodes] for part in parts)
        share = np.ones(s.shape)  # of each label in its edge
        ratio = signs
        if batch.labelled:
            s, share = _sum_over_labels(s)
            marginals, ratio = marginals.sum(axis=-1), (share * signs).sum(axis=-1)
        mean[i], by_ratio = mean_of_product(s, ratio, marginals, float(log_z[i]), root, with_grad)
        if by_ratio is not None:
            slope[...] = signs * share * (by_ratio[..., np.newaxis] if batch.labelled else by_ratio)
    return mean, gradient if with_grad else None


def _sum_over_labels(scores: Flat) -> tuple[Flat, Flat]:
    """Log of the labels' total weight, and the share that each label has in it."""
    top = scores.max(axis=-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = np.where(np.isneginf(scores), 0.0, np.exp(scores - top))
        total = weights.sum(axis=-1, keepdims=True)
        return (top + np.log(total))[..., 0], np.where(total > 0.0, weights / total, 0.0)


@underflow_is_zero
def expected_attachment(batch: Batch, solved: Solved, gold: Flat, with_grad: bool) -> Quantity:
    """Mean over words of the gold edge's marginal. `gold` holds 1 at gold edges. A sentence without words scores 1."""
    lengths = batch.lengths
    share = np.divide(1.0, lengths, out=np.zeros(len(batch)), where=lengths > 0)
    value, gradient = solved.expectation(gold * spread_over_edges(batch, share), with_grad)
    return np.where(lengths > 0, value, 1.0), gradient


@underflow_is_zero
def generalized_expectation(batch: Batch, solved: Solved, features: Flat, target: Flat, with_grad: bool) -> Quantity:
    """Half the squared distance of E[features] from target: features (R, edges), target (B, R)."""
    expected = np.stack([solved.expectation(feature, False)[0] for feature in features], axis=-1)
    with np.errstate(over="ignore", invalid="ignore"):  # infinite and huge values are the caller's
        distance = expected - target
        value = 0.5 * np.sum(distance**2, axis=-1)
        if not with_grad:
            return value, None
        direction = np.zeros(batch.core.edge_size)
        for r, feature in enumerate(features):
            direction += np.where(solved.marginals() > 0.0, feature, 0.0) * spread_over_edges(batch, distance[:, r])
    return value, solved.expectation(direction, True)[1]


def mbr(batch: Batch, solved: Solved, root: _core.Root, projective: bool) -> _decoding.Decoded:
    """The tree of the support with the highest sum of marginals."""
    reward = np.where(flat_scores(batch) > -np.inf, solved.marginals(), -np.inf)
    return _decoding.argmax(batch_of_edges(batch, reward), root, projective)


# Flat edge arrays


def flat_scores(batch: Batch) -> Flat:
    """Scores as the core lays out edge results; anything in column 0, on the diagonal and in the padding."""
    if isinstance(batch.arrays, list):
        parts = [np.ravel(in_layout(batch, array)) for array in batch.arrays]
        return np.concatenate(parts).astype(np.float64) if parts else np.empty(0)
    return np.ascontiguousarray(in_layout(batch, batch.arrays), dtype=np.float64).reshape(-1)


def in_layout(batch: Batch, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """[..., head, dep(, label)] in the caller's order of axes, and back."""
    if batch.layout == "head_dep":
        return array
    return array.swapaxes(-3, -2) if batch.labelled else array.swapaxes(-2, -1)


def split_edges(batch: Batch, flat: npt.NDArray[T]) -> list[npt.NDArray[T]]:
    """One piece per sentence of flat edges, (..., edges)."""
    if isinstance(batch.arrays, list):
        sizes = [array.size for array in batch.arrays]
        return list(np.split(flat, np.cumsum(sizes)[:-1], axis=-1)) if sizes else []
    return list(np.split(flat, len(batch), axis=-1)) if len(batch) else []


def split_own_edges(batch: Batch, flat: npt.NDArray[T]) -> list[npt.NDArray[T]]:
    """The same without padding, so that sums over a sentence's edges do not depend on how far it was padded."""
    pieces = []
    for part, array, words in zip(split_edges(batch, flat), batch.arrays, batch.lengths, strict=True):
        own = part.reshape(*part.shape[:-1], *in_layout(batch, array).shape)
        own = own[..., : words + 1, : words + 1, :] if batch.labelled else own[..., : words + 1, : words + 1]
        pieces.append(own.reshape(*part.shape[:-1], -1))
    return pieces


def sum_by_sentence(batch: Batch, flat: Flat) -> Flat:
    return np.array([np.sum(part) for part in split_own_edges(batch, flat)], np.float64)


def spread_over_edges(batch: Batch, per_sentence: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if isinstance(batch.arrays, list):
        return np.repeat(per_sentence, [array.size for array in batch.arrays])
    return np.repeat(per_sentence, batch.core.edge_size // max(len(batch), 1))


def word_pairs(batch: Batch) -> npt.NDArray[np.bool_]:
    """Which entries are edges: no padding, no diagonal, no column 0."""
    parts = []
    for array, words in zip(batch.arrays, batch.lengths, strict=True):
        nodes = np.arange(len(array))
        edge = (nodes <= words)[:, None] & ((nodes >= 1) & (nodes <= words)) & (nodes[:, None] != nodes)
        if batch.labelled:
            edge = np.broadcast_to(edge[..., None], array.shape)
        parts.append(np.ravel(in_layout(batch, edge)))
    return np.concatenate(parts) if parts else np.empty(0, np.bool_)


def batch_of_edges(batch: Batch, flat: Flat) -> Batch:
    """A batch like `batch` with these scores."""
    arrays: Any
    if isinstance(batch.arrays, list):
        arrays = [
            in_layout(batch, part.reshape(in_layout(batch, array).shape))
            for part, array in zip(split_edges(batch, flat), batch.arrays, strict=True)
        ]
    else:
        arrays = in_layout(batch, flat.reshape(in_layout(batch, batch.arrays).shape))
    return batch.like_this(arrays)


def scaled_batch(batch: Batch, scores: Flat, factor: float) -> Batch:
    with np.errstate(invalid="ignore", over="ignore"):
        scaled = scores * factor if factor > 0.0 else np.where(flat_scores(batch) > -np.inf, 0.0, -np.inf)
    return batch_of_edges(batch, scaled)


def shifted_batch(batch: Batch, scores: Flat, shift: Flat) -> Batch:
    with np.errstate(invalid="ignore"):
        return batch_of_edges(batch, np.where(word_pairs(batch), scores + shift, -np.inf))


def _difference(a: Flat, b: Flat) -> Flat:
    """a - b; NaN where both are -inf: there is no distribution to speak of."""
    with np.errstate(invalid="ignore"):
        return a - b
