"""Probabilities that mean what they say: a temperature fitted to gold trees, and how far off probabilities are.

A temperature T divides all scores. With b = 1/T, the log-likelihood of gold trees and its derivatives are

    L(b)   = sum over sentences of  b s(gold) - log Z(b s)
    L'(b)  = sum of  s(gold) - E_b[s]          L''(b) = - sum of  Var_b[s]

L is concave, so that Newton's steps, kept between bounds on the root, find its maximum in a few solves.
Guo, Pleiss, Sun and Weinberger (2017), "On Calibration of Modern Neural Networks", fit a classifier's temperature so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _decoding
from ._edges import edges_of
from ._inference import scaled_batch, sum_by_sentence
from ._oneliners import _distribution
from ._options import positive_integer
from ._underflow import underflow_is_zero

if TYPE_CHECKING:
    import numpy.typing as npt

    from ._options import Layout, RootMode, Scores
    from .distribution import TreeDistribution

    Floats = npt.NDArray[np.float64]

_CLOSE = 1e-6  # relative: calibration errors do not feel it
_MOST_BINS = 1_000_000  # a row of the table for each
_MOST_STEPS = 90  # 1,024 to one in each reaches any scale of scores in 60, and Newton's method is done soon after


@underflow_is_zero
def fit_temperature(
    scores: Scores,
    gold: Any,
    lengths: npt.ArrayLike | None = None,
    root: RootMode = "single",
    projective: bool = False,
    *,
    labels: Any = None,
    mask: Any = None,
    labelled: bool = False,
    layout: Layout = "head_dep",
) -> float:
    """The temperature under which gold trees are likeliest.

    Parameters
    ----------
    scores : array (..., n+1, n+1), or a list of (n+1, n+1) arrays
        As for `TreeDistribution`.
    gold : integers (..., n+1), or Trees
        The gold tree of each sentence. Sentences whose gold tree is none of the distribution's are left out.
    lengths, root, projective, mask, labelled, layout : optional
        As for `TreeDistribution`.
    labels : integers like `gold`, optional
        Gold labels, needed if the scores are labelled (or give `Trees`).

    Returns
    -------
    float
        Above 1 where the scores are too sure of themselves.

    See Also
    --------
    calibration : How far off probabilities are.

    Notes
    -----
    Maximum likelihood by Newton's method: some five solves with a gradient. Raises ValueError where there is no
    maximum: if every gold tree is the best one, the likelihood grows as the temperature falls to 0; if gold trees score
    no better than trees on average, it grows with the temperature for ever.

    Examples
    --------
    >>> import numpy as np, spantree
    >>> scores = 3 * np.random.default_rng(0).normal(size=(400, 9, 9))
    >>> gold = spantree.sample(scores, temperature=2.0, rng=0)
    >>> round(spantree.fit_temperature(scores, gold), 1)
    2.0
    """
    dist = _distribution(scores, lengths, root, projective, mask, labelled, layout, "mask", 1.0)
    rows, label_rows, axes = dist._read_trees(gold, labels, "gold")
    if axes != ():
        raise ValueError("gold must be one tree per sentence")
    log_prob = dist._solved.log_probs(rows, label_rows)[0][0]
    counts = log_prob > -np.inf
    if not counts.any():
        raise ValueError("no gold tree is a tree of its sentence's distribution")
    best = _decoding.argmax(dist._batch, dist._core_root, dist._projective)
    if (dist._score(rows, label_rows, best)[0][0] >= 0.0)[counts].all():
        raise ValueError(
            "every gold tree is the best tree: its likelihood grows without end as the temperature falls to 0"
        )
    edges = edges_of(dist._batch, rows, label_rows)[0] > 0.0
    for reach in _REACHES:
        temperature = _likeliest_temperature(dist, edges, counts, reach)
        if temperature <= reach:
            return temperature
    raise ValueError("gold trees score no better than trees on average: no temperature makes them likeliest")


# Up to which temperature trees matter that have soft masks, where others have none. Beside masks that all trees have,
# scores lose digits to what is let through: so the first that will do.
_REACHES = 2.0**10, 2.0**20, np.inf


def _likeliest_temperature(
    dist: TreeDistribution[Any, Any, Any], edges: npt.NDArray[np.bool_], counts: npt.NDArray[np.bool_], reach: float
) -> float:
    """Of gold trees with these edges; right if it is at most `reach`. NaN if there is none."""
    scores_of_edges, _ = dist._solved.relative_scores(reach=reach)  # what all trees share drops out of likelihoods
    with np.errstate(over="ignore", invalid="ignore"):  # of masks about the least double
        gold_score = sum_by_sentence(dist._batch, np.where(edges, scores_of_edges, 0.0))

    def slope_and_curvature(b: float) -> tuple[float, float]:
        """L'(b) and -L''(b)."""
        mean, variance = _score_moments(dist, scores_of_edges, b)
        with np.errstate(over="ignore", invalid="ignore"):
            return float(np.sum((gold_score - mean)[counts])), float(np.sum(variance[counts]))

    if slope_and_curvature(0.0)[0] <= 0.0:
        return np.nan
    low, high, b = 0.0, np.inf, 1.0
    for _ in range(_MOST_STEPS):
        slope, curvature = slope_and_curvature(b)
        low, high = (b, high) if slope > 0.0 else (low, b)
        step = slope / curvature if curvature > 0.0 else np.inf
        inside = low < b + step < high and b + step < 4.0 * b
        outwards = 4.0 * b if high == np.inf else high / 1024.0
        next_b = b + step if inside else (0.5 * (low + high) if 0.0 < low < high < np.inf else outwards)
        done = abs(next_b - b) <= _CLOSE * b
        b = next_b
        if done:
            break
    return 1.0 / b


def _score_moments(dist: TreeDistribution[Any, Any, Any], scores: Floats, b: float) -> tuple[Floats, Floats]:
    """Mean and variance of a tree's score under weights exp(b times score), for each sentence."""
    batch = dist._batch
    solved = dist._solve(scaled_batch(batch, scores, b))
    possible = solved.marginals() > 0.0
    values = np.where(possible, scores, 0.0)
    mean, gradient = solved.expectation(values, True)
    assert gradient is not None
    with np.errstate(over="ignore", invalid="ignore"):  # of masks about the least double
        return mean, sum_by_sentence(batch, np.where(possible, gradient, 0.0) * values)


@dataclass(frozen=True, slots=True, eq=False)
class Reliability:
    """Probabilities against outcomes, for words or for sentences.

    Attributes
    ----------
    count : int
        How many there are.
    accuracy : float
        Share of those that are right.
    mean_probability : float
        What it would be if probabilities were right.
    error : float
        Expected calibration error: mean distance of a bin's accuracy from its mean probability, weighted by its count.
    bins : float array (bins, 5)
        The reliability table. A row for each bin: lower bound, upper bound, count, mean probability, accuracy (NaN if
        the bin is empty).
    precision_at_coverage : float array (10, 2)
        A row for each tenth: the share that is kept, the most probable first, and the accuracy among those.
    """

    count: int
    accuracy: float
    mean_probability: float
    error: float
    bins: Floats
    precision_at_coverage: Floats

    def __str__(self) -> str:
        lines = [
            f"{self.count} in all, {self.accuracy:.1%} right, {self.mean_probability:.1%} expected; "
            f"calibration error {self.error:.3f}",
            " probability     count  expected   right",
        ]
        for low, high, count, probability, accuracy in self.bins:
            if count:
                lines.append(f"{low:5.0%} to {high:4.0%} {count:9.0f} {probability:9.1%} {accuracy:7.1%}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """How far probabilities are from what happens.

    Attributes
    ----------
    words : Reliability
        P(head) of each word in the best tree, against whether it is the gold head (labelled: P(head and label)).
    sentences : Reliability
        P(best tree) of each sentence, against whether it is the gold tree.
    """

    words: Reliability
    sentences: Reliability


@underflow_is_zero
def calibration(
    scores: Scores,
    gold: Any,
    lengths: npt.ArrayLike | None = None,
    root: RootMode = "single",
    projective: bool = False,
    *,
    labels: Any = None,
    bins: int = 10,
    temperature: float = 1.0,
    mask: Any = None,
    labelled: bool = False,
    layout: Layout = "head_dep",
) -> Calibration:
    """How far the probabilities of best trees and of their heads are from what happens.

    Parameters
    ----------
    scores : array (..., n+1, n+1), or a list of (n+1, n+1) arrays
        As for `TreeDistribution`.
    gold : integers (..., n+1), or Trees
        The gold tree of each sentence.
    lengths, root, projective, mask, labelled, layout, temperature : optional
        As for `TreeDistribution`.
    labels : integers like `gold`, optional
        Gold labels, needed if the scores are labelled (or give `Trees`).
    bins : int
        How many bins of equal width the reliability table has.

    Returns
    -------
    Calibration
        By word and by sentence: expected calibration error, reliability table, precision at coverage. Sentences without
        a tree are left out.

    Examples
    --------
    Scores that are twice as sure as they should be:

    >>> import numpy as np, spantree
    >>> scores = 3 * np.random.default_rng(0).normal(size=(400, 9, 9))
    >>> gold = spantree.sample(scores, temperature=2.0, rng=0)
    >>> print(spantree.calibration(scores, gold, bins=5).words)
    3200 in all, 47.3% right, 69.0% expected; calibration error 0.216
     probability     count  expected   right
       0% to  20%         8     16.9%   12.5%
      20% to  40%       338     33.4%   22.2%
      40% to  60%       835     50.5%   35.3%
      60% to  80%       839     70.3%   44.5%
      80% to 100%      1180     91.7%   65.3%
    >>> round(spantree.calibration(scores, gold, temperature=2.0).words.error, 2)
    0.01
    """
    dist = _distribution(scores, lengths, root, projective, mask, labelled, layout, "mask", temperature)
    count = positive_integer("bins", bins)
    if count > _MOST_BINS:
        raise ValueError(f"bins is {bins}; at most {_MOST_BINS} are possible")
    rows, label_rows, axes = dist._read_trees(gold, labels, "gold")
    if axes != ():
        raise ValueError("gold must be one tree per sentence")
    found = dist._facts()
    best = found.best
    probabilities = found.head_probs if found.label_probs is None else found.label_probs
    right = best.heads == rows[0]
    if label_rows is not None:
        right &= best.labels == label_rows[0]
    is_word = ~np.isnan(probabilities)
    sentence = np.repeat(np.arange(len(dist._batch)), [len(array) for array in dist._batch.arrays])
    wrong_words = np.bincount(sentence[is_word & ~right], minlength=len(dist._batch))
    has_tree = found.log_prob > -np.inf
    return Calibration(
        _reliability(probabilities[is_word], right[is_word], count),
        _reliability(np.exp(found.log_prob[has_tree]), wrong_words[has_tree] == 0, count),
    )


def _reliability(probability: Floats, right: npt.NDArray[np.bool_], bins: int) -> Reliability:
    count = len(right)
    if count == 0:
        nothing = np.full((bins, 5), np.nan)
        return Reliability(0, np.nan, np.nan, np.nan, nothing, np.full((10, 2), np.nan))
    which = np.minimum((probability * bins).astype(np.int64), bins - 1)
    counts = np.bincount(which, minlength=bins).astype(np.float64)
    there = np.maximum(counts, 1.0)
    expected = np.where(counts > 0, np.bincount(which, probability, bins) / there, np.nan)
    accuracy = np.where(counts > 0, np.bincount(which, right, bins) / there, np.nan)
    edges = np.linspace(0.0, 1.0, bins + 1)
    table = np.stack([edges[:-1], edges[1:], counts, expected, accuracy], axis=1)
    error = float(np.nansum(counts * np.abs(accuracy - expected)) / count)
    surest_first = right[np.argsort(-probability, kind="stable")]
    kept = np.ceil(np.linspace(0.1, 1.0, 10) * count).astype(np.int64)
    precision = np.cumsum(surest_first)[kept - 1] / kept
    coverage = np.stack([kept / count, precision], axis=1)
    return Reliability(count, float(right.mean()), float(probability.mean()), error, table, coverage)
