"""Covariances of additive functions of the tree: the T2 algorithm (Zmigrod et al. 2021) on a kept solve.

For every feature of the shorter side, one gradient of its expectation, O(n^3), which is its covariance with every edge;
then one inner product per pair, O(n^2) or as many terms as a sparse feature has. No one-hot vector and no n^4 Hessian
is ever formed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ._batch import Batch
from ._inference import Flat, Solved, split_edges, sum_by_sentence

EDGES = "edges"


class Features:
    """R numbers per edge, dense, sparse over flattened edges, or all one-hot edge indicators."""

    def __init__(self, batch: Batch, given: Any, name: str) -> None:
        self._batch = batch
        self._sparse: list[Any] | None = None
        self.one_hot = isinstance(given, str)
        if self.one_hot:
            if given != EDGES:
                raise ValueError(f'{name} must be an array, a sparse matrix or "{EDGES}", not {given!r}')
            self.count, self.several = 0, False
        elif _is_sparse(given) or (isinstance(given, (list, tuple)) and any(_is_sparse(item) for item in given)):
            self._sparse = _read_sparse(batch, given, name)
            self.count, self.several = self._sparse[0].shape[1] if self._sparse else 0, True
        else:
            self._dense, self.several = batch.flat_edges(given, name)
            self.count = len(self._dense)

    def column(self, r: int) -> Flat:
        """One feature of every edge, flat."""
        if self._sparse is None:
            return np.asarray(self._dense[r])
        columns: list[Flat] = [matrix[:, [r]].toarray()[:, 0] for matrix in self._sparse]
        return np.concatenate(columns)

    def dot(self, gradient: Flat, possible: npt.NDArray[np.bool_]) -> Flat:
        """Inner products with every feature, (B, R); features of impossible edges do not count."""
        if self._sparse is not None:
            parts = split_edges(self._batch, np.where(possible, gradient, 0.0))
            return np.stack([matrix.T @ part for matrix, part in zip(self._sparse, parts, strict=True)])
        return np.stack(
            [sum_by_sentence(self._batch, np.where(possible, row, 0.0) * gradient) for row in self._dense], -1
        )


def covariance(batch: Batch, solved: Solved, r: Features, s: Features) -> tuple[Flat, Flat | None, Flat | None]:
    """Cov(r, s) as (B, R, S), and the means (B, R) and (B, S).

    With a one-hot side, (edges, R) instead: edges flat, in the place of B; that side's mean is None.
    """
    if r.one_hot and s.one_hot:
        raise ValueError("the covariances of all pairs of edges are n^4 numbers; give r or s as features")
    if r.one_hot or s.one_hot:
        features = s if r.one_hot else r
        totals, gradients = _gradients(solved, features)
        return np.stack(gradients, -1), *((None, totals) if r.one_hot else (totals, None))
    if s.count < r.count:
        transposed, s_mean, r_mean = covariance(batch, solved, s, r)
        return transposed.swapaxes(1, 2), r_mean, s_mean
    possible = solved.marginals() > 0.0
    r_mean, gradients = _gradients(solved, r)
    s_mean = s.dot(solved.marginals(), possible)
    return np.stack([s.dot(gradient, possible) for gradient in gradients], 1), r_mean, s_mean


def _gradients(solved: Solved, features: Features) -> tuple[Flat, list[Flat]]:
    totals, gradients = [], []
    for r in range(features.count):
        total, gradient = solved.expectation(features.column(r), True)
        assert gradient is not None
        totals.append(total)
        gradients.append(gradient)
    return np.stack(totals, -1), gradients


def _is_sparse(given: Any) -> bool:
    return hasattr(given, "tocsc") and hasattr(given, "nnz")


def _read_sparse(batch: Batch, given: Any, name: str) -> list[Any]:
    matrices = list(given) if isinstance(given, (list, tuple)) else [given]
    if len(matrices) != len(batch) or not all(_is_sparse(matrix) for matrix in matrices):
        raise ValueError(f"{name}: give one sparse matrix for each of the {len(batch)} sentences")
    for matrix, array in zip(matrices, batch.arrays, strict=True):
        if matrix.ndim != 2 or matrix.shape[0] != array.size or matrix.shape[1] != matrices[0].shape[1]:
            raise ValueError(
                f"{name}: a sparse matrix must have shape ({array.size}, R), edges flattened, not {matrix.shape}"
            )
    return [matrix.tocsc() for matrix in matrices]
