"""Second moments and covariances of additive functions of the tree, in the form the scores came in."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._batch import Batch
from ._inference import Flat, Solved, spread_over_edges
from ._second_order import Features, covariance
from ._underflow import underflow_is_zero


@underflow_is_zero
def second_order(batch: Batch, solved: Solved, r: Any, s: Any, moment: bool) -> Any:
    """Cov(r, s), or E[r s^T] = Cov(r, s) + E[r] E[s]^T if `moment`."""
    left = Features(batch, r, "r")
    right = left if s is r else Features(batch, s, "s")
    if 0 in (left.count, right.count) and not (left.one_hot or right.one_hot):
        return batch.stack_scalars(_without_axes(np.zeros((len(batch), left.count, right.count)), left, right))
    result, left_mean, right_mean = covariance(batch, solved, left, right)
    if left.one_hot or right.one_hot:
        return _with_every_edge(batch, solved, result, left_mean, right_mean, left, right, moment)
    if moment:
        assert left_mean is not None
        assert right_mean is not None
        with np.errstate(over="ignore", invalid="ignore"):  # infinite and huge values are the caller's
            result = result + left_mean[:, :, None] * right_mean[:, None, :]
    return batch.stack_scalars(_without_axes(result, left, right))


def _without_axes(result: Flat, left: Features, right: Features) -> Flat:
    """Without the axis of a side that has one value per edge."""
    result = result[:, :, 0] if not right.several else result
    return result[:, 0] if not left.several else result


def _with_every_edge(
    batch: Batch,
    solved: Solved,
    result: Flat,
    left_mean: Flat | None,
    right_mean: Flat | None,
    left: Features,
    right: Features,
    moment: bool,
) -> Any:
    mean = right_mean if left_mean is None else left_mean
    assert mean is not None
    flat = result.T  # (R, edges)
    if moment:
        means = np.array([spread_over_edges(batch, m) for m in mean.T]).reshape(flat.shape)
        marginals = solved.marginals()
        with np.errstate(over="ignore", invalid="ignore"):  # infinite and huge values are the caller's
            flat = flat + np.where(marginals > 0.0, marginals * means, 0.0)
    if not (right if left.one_hot else left).several:
        return batch.edges(flat[0])
    pieces = batch.edges(flat, (len(flat),))  # R before the sentences' axes
    edge_axes = 3 if batch.labelled else 2
    axis = -1 if left.one_hot else -1 - edge_axes
    if batch.leading is None:
        return [np.moveaxis(piece, 0, axis) for piece in pieces]
    return np.moveaxis(pieces, 0, axis)
