"""The core's entries asked with NumPy arrays, as handlers are: for devices whose programs call back to the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core import entries
from .._front.form import LABELLED, PROJECTIVE, SINGLE_ROOT, edge_axes


def answer(handler: str, results: Sequence[Any], form: int, *given: Any) -> list[Any]:
    """Arguments and results of a handler; `results` have the shapes and dtypes of what is wanted."""
    args = [np.ascontiguousarray(x) for x in given]
    out = [np.empty(result.shape, result.dtype) for result in results]
    if args[0].size == 0 or args[1].size == 0:
        return out
    views = _Views(args, form)
    options = entries.Options(bool(form & SINGLE_ROOT), bool(form & PROJECTIVE), 0)
    scores, at = views.scores(0), [x.ctypes.data for x in out]
    if handler == "log_partition" and len(out) == 1:
        entries.log_partition(scores, options, at[0])
    elif handler == "log_partition":
        entries.marginals(scores, options, at[0], views.edges_out(out, 1))
    elif handler == "hessian":
        entries.hessian(scores, options, views.several(2), views.edges(2), views.edges_out(out, 0))
    elif handler == "third":
        entries.third(scores, options, views.several(2), views.edges(2), views.edges(3), views.edges_out(out, 0))
    elif handler == "relative_scores":
        entries.relative_scores(scores, options, views.edges_out(out, 0))
    elif handler == "entropy":
        entries.entropy(scores, options, at[0], views.edges_out(out, 1))
    elif handler == "expectation":
        entries.expectation(scores, options, views.several(2), views.edges(2), at[0], views.edges_out(out, 1))
    elif handler in ("cross_entropy", "kl"):
        by_p, by_q = views.edges_out(out, 1), views.edges_out(out, 2)
        getattr(entries, handler)(scores, views.scores(2), options, at[0], by_p, by_q)
    elif handler == "crf_loss":
        entries.crf_loss(scores, options, views.heads(2), views.heads(3), at[0], views.edges_out(out, 1), True, None)
    elif handler == "log_prob":
        trees = args[2].size // (views.batch * views.nodes)
        entries.log_prob(scores, options, trees, views.heads(2), views.heads(3), at[0])
    else:
        heads, labels = (views.heads_out(x) for x in out[:2])
        k = out[0].size // (views.batch * views.nodes)
        if handler == "argmax":
            out[3][...] = np.reshape(entries.argmax(scores, options, heads, labels, at[2]) or 0, -1)
        elif handler == "topk":
            entries.topk(scores, options, k, heads, labels, at[2])
        else:
            keys = of_128_bits(args[2].reshape(views.batch, -1))
            if handler == "sample":
                entries.sample(scores, options, k, keys.ctypes.data, heads, labels)
            else:
                entries.sample_without_replacement(scores, options, k, keys.ctypes.data, heads, labels, *at[2:])
    return out


def of_128_bits(keys: Any) -> Any:
    """JAX's keys (B, 2) or (B, 4) of uint32, the first word lowest, as two uint64 for each sentence."""
    words = np.zeros((len(keys), 4), "<u4")
    words[:, : keys.shape[-1]] = keys
    return words.view("<u8").astype(np.uint64)


class _Views:
    """Arrays as the entries see them; all are contiguous."""

    def __init__(self, args: list[Any], form: int) -> None:
        self.args = args
        shape = args[0].shape
        self.nodes = shape[-2]
        self.labels = shape[-1] if form & LABELLED else 0
        if form & LABELLED:
            self.nodes = shape[-3]
        self.batch = int(np.prod(shape[: len(shape) - edge_axes(form)]))
        cell = max(self.labels, 1)
        self.strides = (self.nodes**2 * cell, self.nodes * cell, cell)

    def scores(self, i: int) -> Any:
        array = self.args[i]
        where = (array.ctypes.data, array.dtype == np.float64, self.batch, self.nodes, self.labels)
        return entries.ScoresView(*where, *self.strides, 1, self.args[1].ctypes.data, False)

    def several(self, i: int) -> int:
        return int(self.args[i].size // self.args[0].size)

    def edges(self, i: int) -> Any:
        array = self.args[i]
        where = (array.ctypes.data, array.dtype == np.float64)
        return entries.EdgesView(*where, *self.strides, 1, self.batch * self.strides[0])

    def edges_out(self, out: list[Any], i: int) -> Any:
        if i >= len(out):
            return entries.EdgesOut()
        where = (out[i].ctypes.data, out[i].dtype == np.float64)
        return entries.EdgesOut(*where, *self.strides, self.batch * self.strides[0])

    def heads(self, i: int) -> Any:
        array = self.args[i]
        if array.size == 0:
            return entries.HeadsView()
        return entries.HeadsView(array.ctypes.data, False, self.nodes, 1, self.batch * self.nodes)

    def heads_out(self, array: Any) -> Any:
        if array.size == 0:
            return entries.HeadsOut()
        return entries.HeadsOut(array.ctypes.data, False, self.nodes, 1, self.batch * self.nodes)
