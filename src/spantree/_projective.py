"""Inference over projective trees: inside-outside behind the same questions as the matrix-tree solve."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from . import _core
from ._batch import Batch
from ._inference import Flat, flat_scores, spread_over_edges, sum_by_sentence


class ProjectiveSolve:
    """A `Solved` for trees without crossing arcs. O(n^3) per sentence for marginals and for each gradient.

    The labels of an edge are parallel edges: the charts see their total weight, and each label has its share of it.
    """

    def __init__(self, batch: Batch, root: _core.Root) -> None:
        self._batch = batch
        self._root = root
        self._arcs = without_labels(batch)
        self._log_partition: Flat | None = None
        self._unattachable = np.empty(len(batch), np.int64)
        self._arc_marginals: Flat | None = None

    @property
    def log_partition(self) -> Flat:
        if self._log_partition is None:
            out = np.empty(len(self._batch))
            _core.projective_log_partition(self._arcs.core, self._root, self._batch.threads, out, self._unattachable)
            self._log_partition = out
        return self._log_partition

    @property
    def infeasible(self) -> int:
        return int(np.count_nonzero(self._nowhere()))

    def _nowhere(self) -> npt.NDArray[np.bool_]:
        """Which sentences have no tree."""
        _ = self.log_partition
        return np.not_equal(self._unattachable, 0)

    def marginals(self) -> Flat:
        return self._split(self._marginals_of_arcs())

    def expectation(self, values: Flat | None, with_grad: bool) -> tuple[Flat, Flat | None]:
        given = -flat_scores(self._batch) if values is None else values
        given = np.where(self.marginals() > 0.0, given, 0.0)
        totals = sum_by_sentence(self._batch, self.marginals() * given)
        if values is None:
            totals = totals + self.log_partition
        nowhere = self._nowhere()
        totals[nowhere] = np.nan
        if not with_grad:
            return totals, None
        mean = self._mean_over_labels(given)
        slope = np.empty(self._arcs.core.edge_size)
        _core.projective_vjp(
            self._arcs.core,
            self._root,
            self._batch.threads,
            1,
            mean,
            np.empty(len(self._batch)),
            np.empty_like(slope),
            slope,
            np.empty_like(self._unattachable),
        )
        gradient = self._split(slope)
        if self._batch.labelled:
            ahead = given.reshape(-1, self._batch.labels) - mean[:, None]
            gradient += (self.marginals().reshape(-1, self._batch.labels) * ahead).reshape(-1)
        return totals, np.where(spread_over_edges(self._batch, nowhere), np.nan, gradient)

    def _marginals_of_arcs(self) -> Flat:
        if self._arc_marginals is None:
            self._arc_marginals = np.empty(self._arcs.core.edge_size)
            self._log_partition = np.empty(len(self._batch))
            _core.projective_marginals(
                self._arcs.core,
                self._root,
                self._batch.threads,
                self._log_partition,
                self._arc_marginals,
                self._unattachable,
            )
        return self._arc_marginals

    def _split(self, arcs: Flat) -> Flat:
        """What an arc has, among its labels."""
        return (arcs[:, None] * self._shares()).reshape(-1) if self._batch.labelled else arcs

    def _mean_over_labels(self, values: Flat) -> Flat:
        return (
            np.sum(values.reshape(-1, self._batch.labels) * self._shares(), axis=1) if self._batch.labelled else values
        )

    def _shares(self) -> npt.NDArray[np.float64]:
        """(arcs, labels): each label's share of its arc's weight, 0 where there is no arc."""
        scores = flat_scores(self._batch).reshape(-1, self._batch.labels)
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            shares: npt.NDArray[np.float64] = np.nan_to_num(weights / weights.sum(axis=1, keepdims=True), posinf=0.0)
        return shares


def without_labels(batch: Batch) -> Batch:
    """The batch with labels summed out."""
    if not batch.labelled:
        return batch
    with np.errstate(invalid="ignore"):
        arrays: list[Flat] | Flat
        if isinstance(batch.arrays, list):
            arrays = [np.logaddexp.reduce(array.astype(np.float64), axis=-1) for array in batch.arrays]
        else:
            arrays = np.logaddexp.reduce(batch.arrays.astype(np.float64), axis=-1)
    return Batch(arrays, batch.leading, batch.lengths, False, batch.layout)  # type: ignore[arg-type]
