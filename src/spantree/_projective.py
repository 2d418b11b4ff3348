"""Inference over projective trees: inside and outside charts behind the same questions as the matrix-tree solve."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core
from ._batch import Batch
from ._inference import Flat
from ._read import IntArray


class ProjectiveSolve:
    """A `Solved` for trees without crossing arcs. O(n^3) per sentence, once, and again for each gradient.

    Kept are the charts, about 110 n^2 bytes per sentence of n words (210 where scores are so sharp that doubles do not
    have the range), and nothing that later questions change: any number of threads may ask.
    """

    __slots__ = ("_batch", "_keep", "_log_partition", "_marginals", "_root", "_solution")

    def __init__(self, batch: Batch, root: _core.Root, keep: bool = True) -> None:
        self._batch = batch
        self._root = root
        self._keep = keep
        self._log_partition: Flat | None = None
        self._marginals: Flat | None = None
        self._solution: _core.ProjectiveSolution | None = None

    @property
    def log_partition(self) -> Flat:
        if self._log_partition is None:
            out = np.empty(len(self._batch))
            _core.projective_log_partition(self._batch.core, self._root, self._batch.threads, out)
            self._log_partition = out
        return self._log_partition

    @property
    def infeasible(self) -> int:
        return int(np.count_nonzero(np.isneginf(self.log_partition)))

    def marginals(self) -> Flat:
        if self._marginals is None:
            out = np.empty(self._batch.core.edge_size)
            if self._solution is None:
                self._solve(marginals=out)
            else:
                self._solution.marginals(self._batch.core, self._batch.threads, out)
            self._marginals = out
        return self._marginals

    def fresh_marginals(self) -> npt.NDArray[Any]:
        return self.marginals().astype(self._batch.dtype)

    def expectation(self, values: Flat | None, with_grad: bool, rounded: bool = False) -> tuple[Flat, Flat | None]:
        gradient = np.empty(self._batch.core.edge_size) if with_grad else None
        totals = np.empty(len(self._batch))
        if values is None and self._solution is None:
            self._keep = True
            self._solve(entropies=totals, gradients=gradient)
        else:
            self._ask(1, values, totals, gradient)
        return totals, gradient

    def expectations(self, values: Flat, with_grad: bool) -> tuple[Flat, Flat | None]:
        """The same of several values per edge, (R, edges), in fewer passes: (B, R), and gradients (R, edges)."""
        count = len(values)
        totals = np.empty((count, len(self._batch)))
        gradients = np.empty((count, self._batch.core.edge_size)) if with_grad else None
        flat = None if gradients is None else gradients.reshape(-1)
        self._ask(count, np.ascontiguousarray(values).reshape(-1), totals.reshape(-1), flat)
        return totals.T, gradients

    def log_prob(self, heads: IntArray, labels: IntArray | None) -> Flat:
        batch, count = self._batch, len(heads)
        out = np.empty((count, len(batch)))
        rows = np.ascontiguousarray(heads).reshape(-1)
        label_rows = None if labels is None else np.ascontiguousarray(labels).reshape(-1)
        solution = self._solution
        if solution is None:
            _core.projective_log_prob(batch.core, self._root, batch.threads, count, rows, label_rows, out.reshape(-1))
        else:
            solution.log_prob(batch.core, batch.threads, count, rows, label_rows, out.reshape(-1))
        return out

    def relative_scores(self) -> tuple[Flat, Flat]:
        batch = self._batch
        out, total, rest = np.empty(batch.core.edge_size), np.empty(len(batch)), np.empty(len(batch))
        solution = self._kept()
        solution.relative_scores(batch.core, batch.threads, out)
        solution.log_partition(total, rest)
        return out, rest

    def sample(
        self, k: int, keys: npt.NDArray[np.uint64], first_sentence: int, heads: IntArray, unattachable: IntArray
    ) -> int:
        """Writes k trees a sentence; returns how many sentences have none."""
        batch, solution = self._batch, self._solution
        if solution is None:
            return _core.projective_sample(
                batch.core, self._root, k, keys, first_sentence, batch.threads, heads, unattachable
            )
        return solution.sample(batch.core, k, keys, first_sentence, batch.threads, heads, unattachable)

    def hessian(self, directions: Flat) -> Flat:
        """The second derivative of log Z by the scores, contracted with each of several directions: (R, edges)."""
        out = np.empty((len(directions), self._batch.core.edge_size))
        self._kept().hessian(
            self._batch.core, self._batch.threads, len(directions), directions.reshape(-1), out.reshape(-1)
        )
        return out

    def third(self, u: Flat, g: Flat) -> Flat:
        """The derivative of ``hessian(g)`` along u, for each of several pairs: (R, edges)."""
        out = np.empty((len(u), self._batch.core.edge_size))
        self._kept().third(self._batch.core, self._batch.threads, len(u), u.reshape(-1), g.reshape(-1), out.reshape(-1))
        return out

    def _ask(self, count: int, values: Flat | None, totals: Flat, gradients: Flat | None) -> None:
        self._kept().expectation(self._batch.core, self._batch.threads, count, values, totals, gradients)

    def _kept(self) -> _core.ProjectiveSolution:
        solution = self._solution
        if solution is None:
            self._keep = True
            solution = self._solve()
            assert solution is not None
        return solution

    def _solve(
        self, marginals: Flat | None = None, entropies: Flat | None = None, gradients: Flat | None = None
    ) -> _core.ProjectiveSolution | None:
        """Nobody sees anything of it before all is complete."""
        batch = self._batch
        total, rest = np.empty(len(batch)), np.empty(len(batch))
        solution = _core.projective_solve(
            batch.core, self._root, batch.threads, self._keep, total, rest, marginals, entropies, gradients
        )
        with np.errstate(invalid="ignore", over="ignore"):
            self._log_partition = np.where(np.isneginf(rest), rest, total + rest)
        self._solution = solution
        return solution
