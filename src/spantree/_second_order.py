"""Covariances of additive functions of the tree: one product with the Hessian a feature (T2v of Zmigrod et al. 2021).

For every feature of the shorter side, one gradient of its expectation, O(n^3), which is its covariance with every edge;
then one inner product per pair, O(n^2) or as many terms as a sparse feature has. No one-hot vector and no n^4 Hessian
is ever formed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ._batch import Batch
from ._inference import Flat, Solved, split_edges, split_own_edges, spread_over_edges, word_pairs

if TYPE_CHECKING:
    import numpy.typing as npt

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
            self._dense, self.several = batch.flat_edges(given, name, order="F")
            self.count = len(self._dense)

    def columns(self) -> Flat:
        """All features of every edge, (R, edges)."""
        if self._sparse is None:
            return np.asarray(self._dense)
        return np.concatenate([matrix.toarray().T for matrix in self._sparse], axis=-1)

    def dot(self, gradients: Flat, possible: npt.NDArray[np.bool_]) -> Flat:
        """Inner products of every row with every feature, (B, rows, R); features of impossible edges do not count."""
        batch = self._batch
        if self._sparse is not None:
            parts = zip(self._sparse, split_edges(batch, possible), split_edges(batch, gradients), strict=True)
            return np.stack([(_with_rows(matrix, rows).T @ part.T).T for matrix, rows, part in parts])
        with np.errstate(over="ignore", invalid="ignore"):  # infinite and huge values are the caller's
            all_finite = np.isfinite(np.sum(self._dense))  # then gradients of impossible edges, which are 0, are enough
            features = self._dense if all_finite else np.where(possible, self._dense, 0.0)
            size = None if isinstance(batch.arrays, list) else batch.arrays.shape[1]
            if len(batch) and np.all(batch.lengths + 1 == size):  # an array without padding
                of_sentences = [flat.reshape(len(flat), len(batch), -1) for flat in (gradients, features)]
                return of_sentences[0].swapaxes(0, 1) @ of_sentences[1].transpose(1, 2, 0)
            # As above in memory too, since a product's last bits depend on how its factors lie.
            rows, columns = (_as_they_lie(flat, split_own_edges(batch, flat)) for flat in (gradients, features))
            products = [one @ other.T for one, other in zip(rows, columns, strict=True)]
        return np.array(products).reshape(len(batch), len(gradients), self.count)


def _as_they_lie(flat: Flat, parts: Iterable[Flat]) -> list[Flat]:
    """Parts of an array, in memory in its order."""
    order: Literal["C", "F"] = "C" if flat.flags.c_contiguous else "F"
    return [np.asarray(part, order=order) for part in parts]


def covariance(batch: Batch, solved: Solved, r: Features, s: Features) -> tuple[Flat, Flat | None, Flat | None]:
    """Cov(r, s) as (B, R, S), and the means (B, R) and (B, S).

    With a one-hot side, (edges, R) instead: edges flat, in the place of B; that side's mean is None.
    """
    if r.one_hot and s.one_hot:
        raise ValueError("the covariances of all pairs of edges are n^4 numbers; give r or s as features")
    if r.one_hot or s.one_hot:
        features = s if r.one_hot else r
        totals, gradients = _gradients(solved, features)
        without_tree = spread_over_edges(batch, solved.without_tree)
        gradients[:, without_tree & word_pairs(batch)] = np.nan
        return gradients.T, *((None, totals) if r.one_hot else (totals, None))
    if s.count < r.count:
        transposed, s_mean, r_mean = covariance(batch, solved, s, r)
        return transposed.swapaxes(1, 2), r_mean, s_mean
    marginals = solved.marginals()
    possible = marginals > 0.0
    r_mean, gradients = _gradients(solved, r)
    s_mean = r_mean if s is r else s.dot(marginals[np.newaxis], possible)[:, 0]
    result = s.dot(gradients, possible)
    result[solved.without_tree] = np.nan
    return result, r_mean, s_mean


def _gradients(solved: Solved, features: Features) -> tuple[Flat, Flat]:
    totals, gradients = solved.expectations(features.columns(), True)
    assert gradients is not None
    return totals, gradients


def _with_rows(matrix: Any, rows: npt.NDArray[np.bool_]) -> Any:
    """A sparse matrix with zeros in the other rows, whatever stands there."""
    result = matrix.copy()
    result.data = np.where(rows[matrix.indices], matrix.data, 0.0)
    return result


def _is_sparse(given: Any) -> bool:
    return hasattr(given, "tocsc") and hasattr(given, "nnz")


def _read_sparse(batch: Batch, given: Any, name: str) -> list[Any]:
    matrices = list(given) if isinstance(given, (list, tuple)) else [given]
    if len(matrices) != len(batch) or not all(_is_sparse(matrix) for matrix in matrices):
        raise ValueError(f"{name}: give one sparse matrix for each of the {len(batch)} sentences")
    for matrix, array in zip(matrices, batch.arrays, strict=True):
        if matrix.dtype.kind not in "fiub":
            raise ValueError(f"{name} must be real numbers, not {matrix.dtype}")
        if matrix.ndim != 2 or matrix.shape[0] != array.size or matrix.shape[1] != matrices[0].shape[1]:
            raise ValueError(
                f"{name}: a sparse matrix must have shape ({array.size}, R), edges flattened, not {matrix.shape}"
            )
    return [matrix.tocsc() for matrix in matrices]
