"""The C++ library's entries, asked with NumPy arrays: any strides, results where the caller wants them."""

from __future__ import annotations

import numpy as np

from spantree._core import entries


def _strides(array, wanted):
    """In numbers, missing axes at the end as 0."""
    strides = [stride // array.itemsize for stride in array.strides]
    return strides + [0] * (wanted - len(strides))


class Asked:
    """Scores (B, n+1, n+1[, Y]) to be asked about; axes may be swapped by giving a transposed view."""

    def __init__(self, scores, lengths=None, root="single", projective=False, labelled=False, threads=1):
        self.scores, self.lengths, self.labelled = scores, lengths, labelled
        batch, nodes = scores.shape[:2]
        self.view = entries.ScoresView(
            scores.ctypes.data,
            scores.dtype == np.float64,
            batch,
            nodes,
            scores.shape[3] if labelled else 0,
            *_strides(scores, 4),
            *((0, True) if lengths is None else (lengths.ctypes.data, lengths.dtype == np.int64)),
        )
        self.options = entries.Options(root == "single", projective, threads)
        self.status = np.full(batch, 77, dtype=np.int32)

    def log_partition(self):
        return self._ask(entries.log_partition, self._numbers())

    def marginals(self, turned=False):
        log_z, out = self._numbers(), self._edges(turned)
        self._keep(entries.marginals(self.view, self.options, log_z.ctypes.data, edges_out(out)))
        return log_z, out

    def hessian(self, g, turned=False):
        """`g`: (R, ...) like the scores, any type."""
        out = self._edges(turned, len(g))
        self._keep(entries.hessian(self.view, self.options, len(g), edges_view(g), several_out(out)))
        return out

    def third(self, u, g, turned=False):
        out = self._edges(turned, len(g))
        self._keep(entries.third(self.view, self.options, len(g), edges_view(u), edges_view(g), several_out(out)))
        return out

    def relative_scores(self, turned=False):
        out = self._edges(turned)
        self._keep(entries.relative_scores(self.view, self.options, edges_out(out)))
        return out

    def entropy(self):
        value, out = self._numbers(), self._edges()
        self._keep(entries.entropy(self.view, self.options, value.ctypes.data, edges_out(out)))
        return value, out

    def expectation(self, values):
        totals, out = self._numbers(len(values)), self._edges(directions=len(values))
        self._keep(
            entries.expectation(
                self.view,
                self.options,
                len(values),
                edges_view(values),
                totals.ctypes.data,
                several_out(out),
            )
        )
        return totals, out

    def compare(self, other, entry):
        value, by_p, by_q = self._numbers(), self._edges(), other._edges()
        of_p, of_q = entry(
            self.view,
            other.view,
            self.options,
            value.ctypes.data,
            edges_out(by_p),
            edges_out(by_q),
        )
        self._keep(of_p)
        other._keep(of_q)
        return value, by_p, by_q

    def crf_loss(self, heads, labels=None, partial=True, weight=None):
        loss, out = self._numbers(), self._edges()
        self._keep(
            entries.crf_loss(
                self.view,
                self.options,
                heads_view(heads[np.newaxis]),
                entries.HeadsView() if labels is None else heads_view(labels[np.newaxis]),
                loss.ctypes.data,
                edges_out(out),
                partial,
                weight,
            )
        )
        return loss, out

    def log_prob(self, heads, labels=None):
        """`heads`: (k, B, n+1)."""
        out = self._numbers(len(heads))
        self._keep(
            entries.log_prob(
                self.view,
                self.options,
                len(heads),
                heads_view(heads),
                entries.HeadsView() if labels is None else heads_view(labels),
                out.ctypes.data,
            )
        )
        return out

    def argmax(self, dtype=np.int64):
        heads, labels, best = self._heads(1, dtype), self._heads(1, dtype), self._numbers()
        self._keep(entries.argmax(self.view, self.options, heads_out(heads), heads_out(labels), best.ctypes.data))
        return heads[0], labels[0], best

    def topk(self, k, dtype=np.int64):
        heads, labels, best = self._heads(k, dtype), self._heads(k, dtype), self._numbers(k)
        self._keep(entries.topk(self.view, self.options, k, heads_out(heads), heads_out(labels), best.ctypes.data))
        return heads, labels, best

    def sample(self, k, keys, dtype=np.int64):
        heads, labels = self._heads(k, dtype), self._heads(k, dtype)
        self._keep(
            entries.sample(
                self.view,
                self.options,
                k,
                keys.ctypes.data,
                heads_out(heads),
                heads_out(labels),
            )
        )
        return heads, labels

    def sample_without_replacement(self, k, keys, dtype=np.int64):
        heads, labels = self._heads(k, dtype), self._heads(k, dtype)
        log_probs, gumbel_keys, threshold, log_left = (
            self._numbers(k),
            self._numbers(k),
            self._numbers(),
            self._numbers(),
        )
        self._keep(
            entries.sample_without_replacement(
                self.view,
                self.options,
                k,
                keys.ctypes.data,
                heads_out(heads),
                heads_out(labels),
                log_probs.ctypes.data,
                gumbel_keys.ctypes.data,
                threshold.ctypes.data,
                log_left.ctypes.data,
            )
        )
        return heads, labels, log_probs, gumbel_keys, threshold, log_left

    def _ask(self, entry, out):
        self._keep(entry(self.view, self.options, out.ctypes.data))
        return out

    def _keep(self, status):
        self.status[:] = 0 if status is None else status

    def _numbers(self, *rows):
        return np.full((*rows, len(self.scores)), 77.0, dtype=self.scores.dtype)

    def _heads(self, k, dtype):
        return np.full((k, *self.scores.shape[:2]), 77, dtype=dtype)

    def _edges(self, turned=False, directions=None):
        """Filled with what is no result; `turned`: [dep, head] in memory, seen as [head, dep]."""
        shape = self.scores.shape if directions is None else (directions, *self.scores.shape)
        out = np.full(shape, 77.0, dtype=self.scores.dtype)
        axis = 1 if directions is None else 2
        return out.swapaxes(axis, axis + 1) if turned else out


def edges_view(values):
    """Of (R, B, n+1, n+1[, Y])."""
    direction, *rest = _strides(values, 5)
    return entries.EdgesView(values.ctypes.data, values.dtype == np.float64, *rest, direction)


def edges_out(out):
    return entries.EdgesOut(out.ctypes.data, out.dtype == np.float64, *_strides(out, 4)[:3])


def several_out(out):
    direction, batch, head, dep = _strides(out, 5)[:4]
    return entries.EdgesOut(out.ctypes.data, out.dtype == np.float64, batch, head, dep, direction)


def heads_view(heads):
    tree, batch, node = _strides(heads, 3)
    return entries.HeadsView(heads.ctypes.data, heads.dtype == np.int64, batch, node, tree)


def heads_out(heads):
    tree, batch, node = _strides(heads, 3)
    return entries.HeadsOut(heads.ctypes.data, heads.dtype == np.int64, batch, node, tree)
