"""Every question to the core, from tensors to tensors: no derivatives, no operators, and nothing else calls the core.

Scores are ``(*batch, n+1, n+1)``, ``[head, dep]``, or with one more axis of labels; lengths ``(*batch,)`` or None. What
there may be several of has more axes in front: directions ``(*R, *batch, n+1, n+1)``, heads ``(*k, *batch, n+1)``.
Results have the dtype and the device of the scores. Sentences without a tree have log Z of -inf, marginals and
gradients of 0, and NaN for everything that would be a mean over their trees; with `STRICT` they raise.

The core reads tensors where they lie and writes into new ones: addresses and strides go in, nothing is copied but what
is in half precision, on another device, or has axes of the batch that do not lie in one row.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

import spantree
import torch
from torch import Tensor

from .. import _threads
from .._core import entries
from .._front.form import LABELLED, PROJECTIVE, SINGLE_ROOT, STRICT, UNKNOWN, edge_axes

FULL = (torch.float32, torch.float64)
_HALF = (torch.float16, torch.bfloat16)
_INTEGERS = (torch.int32, torch.int64)
_A_NUMBER = {dtype: torch.empty((), dtype=dtype, device="cpu") for dtype in FULL}


def batch_shape(scores: Tensor, form: int) -> torch.Size:
    return scores.shape[: scores.dim() - edge_axes(form)]


def empty_edges(scores: Tensor, form: int, lead: tuple[int, ...] = ()) -> Tensor:
    """Room for numbers of edges: with the strides of the scores, where the core can write to these."""
    if lead or form & LABELLED or scores.dim() > 3:
        return torch.empty((*lead, *scores.shape), dtype=scores.dtype, device=scores.device)
    return torch.empty_like(scores)


def _number_of_threads() -> int:
    """Those of torch, unless spantree was told otherwise."""
    told = _threads._threads
    if told is not None:
        return told
    return spantree.get_threads() if os.environ.get("SPANTREE_THREADS") else torch.get_num_threads()


_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])


def _on_host(kernel: _Kernel) -> _Kernel:
    """The kernel for tensors wherever they are: through the memory of the host, pinned if that makes it faster."""

    @functools.wraps(kernel)
    def through_host(scores: Tensor, *args: Any) -> Any:
        if scores.is_cpu and scores.dtype not in _HALF:
            return kernel(scores, *args)
        found = kernel(*(_to_host(arg) if isinstance(arg, Tensor) else arg for arg in (scores, *args)))
        if isinstance(found, Tensor):
            return _like(found, scores)
        return tuple(None if part is None else _like(part, scores) for part in found)

    return through_host  # type: ignore[return-value]


def _to_host(tensor: Tensor) -> Tensor:
    wanted = torch.float32 if tensor.dtype in _HALF else tensor.dtype
    if tensor.device.type == "cuda":
        host = torch.empty(tensor.shape, dtype=wanted, device="cpu", pin_memory=True)
        return host.copy_(tensor)
    return tensor.to("cpu", wanted)


def _like(found: Tensor, scores: Tensor) -> Tensor:
    return found.to(scores.device, scores.dtype if found.is_floating_point() else found.dtype)


class _Asked:
    """Scores as the core sees them, options, and what became of the sentences."""

    __slots__ = ("_scores", "axes", "batch", "form", "given", "lengths", "options", "shape", "status", "view")

    def __init__(self, scores: Tensor, lengths: Tensor | None, form: int) -> None:
        self.given, self.form = scores, form
        self.axes = axes = 3 if form & LABELLED else 2
        shape = scores.shape
        self.shape = shape[:-axes]  # of the batch
        rank = len(shape) - axes
        self._scores = scores if rank < 2 else scores.flatten(0, rank - 1)
        strides = self._scores.stride()
        batch_stride = 0
        self.batch = 1
        if rank:
            self.batch, batch_stride = self._scores.shape[0], strides[0]
        self.lengths = None if lengths is None else lengths.to("cpu").contiguous()
        self.view = entries.ScoresView(
            self._scores.data_ptr(),
            scores.dtype is torch.float64,
            self.batch,
            shape[-axes],
            shape[-1] if axes == 3 else 0,
            batch_stride,
            strides[-axes],
            strides[1 - axes],
            strides[-1] if axes == 3 else 0,
            0 if self.lengths is None else self.lengths.data_ptr(),
            self.lengths is None or self.lengths.dtype is torch.int64,
        )
        self.options = _options(form & (SINGLE_ROOT | PROJECTIVE), _number_of_threads())

    def numbers(self, lead: tuple[int, ...] = ()) -> Tensor:
        if not (lead or self.shape):
            return torch.empty_like(_A_NUMBER[self.given.dtype])
        return torch.empty((*lead, *self.shape), dtype=self.given.dtype, device="cpu")

    def nodes(self, lead: tuple[int, ...] = ()) -> Tensor:
        return torch.empty((*lead, *self.shape, self.given.shape[-self.axes]), dtype=torch.int64, device="cpu")

    def labels(self, lead: tuple[int, ...] = ()) -> Tensor | None:
        return self.nodes(lead) if self.form & LABELLED else None

    def edges(self, lead: tuple[int, ...] = ()) -> Tensor:
        return empty_edges(self.given, self.form, lead)

    def edges_out(self, edges: Tensor | None) -> Any:
        """Where edges (*lead, *batch, head, dep(, label)) go, if they are wanted."""
        if edges is None:
            return _NO_EDGES
        strides = edges.stride()
        head, dep = strides[-self.axes], strides[1 - self.axes]
        batch = strides[-self.axes - 1] if self.shape else 0
        several = len(strides) > self.given.dim()
        direction = self.batch * edges.shape[-self.axes] * head if several else 0
        return entries.EdgesOut(edges.data_ptr(), edges.dtype is torch.float64, batch, head, dep, direction)

    def check(self, status: list[int] | None) -> bool:
        """Whether every sentence has a tree. Raises if a score is bad, or if there must be a tree and there is none."""
        self.status = status
        if status is None:
            return True
        if min(status) == _BAD_SCORE or (self.form & STRICT and max(status) > 0):
            self.explain()
        return max(status) <= 0

    def explain(self) -> None:
        """The error, in the words of the NumPy side."""
        distribution(self.given, self.lengths, self.form).argmax()
        raise ValueError("the scores are being changed while they are read")

    def without_tree(self) -> Tensor:
        return torch.tensor(self.status or [0] * self.batch, device="cpu") > 0


_BAD_SCORE = -1


@functools.cache
def _options(form: int, threads: int) -> Any:
    return entries.Options(bool(form & SINGLE_ROOT), bool(form & PROJECTIVE), threads)


def _edges_view(edges: Tensor, asked: _Asked) -> tuple[Any, Tensor, int]:
    """Edges (*lead, *batch, head, dep(, label)) as the core sees them, what must stay alive for it, and how many."""
    axes = edge_axes(asked.form)
    edges = edges.float() if edges.dtype not in (torch.float32, torch.float64) else edges
    count = edges.shape[: edges.dim() - asked.given.dim()].numel()
    flat = edges.reshape(count, asked.batch, *edges.shape[edges.dim() - axes :])
    direction, batch, head, dep, *label = flat.stride()
    is_double = flat.dtype == torch.float64
    return entries.EdgesView(flat.data_ptr(), is_double, batch, head, dep, *(label or (0,)), direction), flat, count


_NO_HEADS, _NO_EDGES = entries.HeadsView(), entries.EdgesOut()


def _heads_view(heads: Tensor, asked: _Asked) -> tuple[Any, Tensor | None, int]:
    """Nodes (*lead, *batch, node), likewise."""
    flat = heads if heads.dtype in _INTEGERS else as_integers(heads)
    if heads.dim() == len(asked.shape) + 1 <= 2:
        batch = flat.stride(0) if asked.shape else 0
        return entries.HeadsView(flat.data_ptr(), flat.dtype == torch.int64, batch, flat.stride(-1), 0), flat, 1
    lead = heads.shape[: heads.dim() - 1 - len(asked.shape)]
    flat = flat.reshape(lead.numel(), asked.batch, heads.shape[-1])
    tree, batch, node = flat.stride()
    return entries.HeadsView(flat.data_ptr(), flat.dtype == torch.int64, batch, node, tree), flat, len(flat)


def as_integers(nodes: Tensor) -> Tensor:
    if nodes.is_floating_point() or nodes.is_complex() or nodes.dtype == torch.bool:
        raise ValueError(f"heads and labels must be integers, not {nodes.dtype}")
    return nodes.long()


def _heads_out(heads: Tensor | None, asked: _Asked) -> Any:
    if heads is None or not heads.numel():
        return entries.HeadsOut()
    nodes = heads.shape[-1]
    return entries.HeadsOut(heads.data_ptr(), True, nodes, 1, asked.batch * nodes)


def distribution(scores: Tensor, lengths: Tensor | None, form: int) -> spantree.TreeDistribution[Any, Any, Any]:
    """The same with NumPy arrays."""
    return spantree.TreeDistribution(
        scores.detach().cpu().numpy(),
        lengths=None if lengths is None else lengths.reshape(batch_shape(scores, form)).cpu().numpy(),
        root="single" if form & SINGLE_ROOT else "multi",
        projective=bool(form & PROJECTIVE),
        labelled=bool(form & LABELLED),
        on_infeasible="raise" if form & STRICT else "mask",
    )


@_on_host
def log_partition(
    scores: Tensor, lengths: Tensor | None, form: int, with_gradient: bool
) -> tuple[Tensor, Tensor | None]:
    """log Z, and the marginals."""
    asked = _Asked(scores, lengths, form)
    log_z = asked.numbers()
    if not with_gradient:
        asked.check(entries.log_partition(asked.view, asked.options, log_z.data_ptr()))
        return log_z, None
    edges = asked.edges()
    asked.check(entries.marginals(asked.view, asked.options, log_z.data_ptr(), asked.edges_out(edges)))
    return log_z, edges


@_on_host
def marginals(scores: Tensor, lengths: Tensor | None, form: int) -> Tensor:
    asked = _Asked(scores, lengths, form)
    edges = asked.edges()
    asked.check(entries.marginals(asked.view, asked.options, 0, asked.edges_out(edges)))
    return edges


@_on_host
def hessian(scores: Tensor, directions: Tensor, lengths: Tensor | None, form: int) -> Tensor:
    """The second derivative of log Z by the scores, contracted with each direction."""
    asked = _Asked(scores, lengths, form)
    g, _alive, count = _edges_view(directions, asked)
    out = asked.edges(directions.shape[: directions.dim() - scores.dim()])
    asked.check(entries.hessian(asked.view, asked.options, count, g, asked.edges_out(out)))
    return out


@_on_host
def third(scores: Tensor, u: Tensor, g: Tensor, lengths: Tensor | None, form: int) -> Tensor:
    """The derivative of ``hessian(g)`` when the scores move along `u`."""
    asked = _Asked(scores, lengths, form)
    views = [_edges_view(x, asked) for x in (u, g)]
    out = asked.edges(u.shape[: u.dim() - scores.dim()])
    (of_u, _, count), (of_g, _, _) = views
    asked.check(entries.third(asked.view, asked.options, count, of_u, of_g, asked.edges_out(out)))
    return out


@_on_host
def crf_loss(
    scores: Tensor,
    heads: Tensor,
    labels: Tensor | None,
    lengths: Tensor | None,
    form: int,
    partial: bool,
    with_gradient: bool,
) -> tuple[Tensor, Tensor | None]:
    """Minus the log-probability of one tree a sentence, and its gradient; inf and 0 where it is no tree.

    If `partial`, heads and labels may be -2, unknown; without labels, all of them are.
    """
    return crf_losses(scores, heads, labels, lengths, form, partial, with_gradient, None)[:2]


def crf_losses(
    scores: Tensor,
    heads: Tensor,
    labels: Tensor | None,
    lengths: Tensor | None,
    form: int,
    partial: bool,
    with_gradient: bool,
    mean: bool | None,
) -> tuple[Tensor, Tensor | None, float | None]:
    """The losses, or their mean, or their sum; the gradient; and what each loss counts in a mean or a sum.

    For float32 and float64 on the host. What a short sentence costs is the way from here to the core: there is nothing
    in it that could be left out.
    """
    given, shape = scores, scores.shape
    labelled = form & LABELLED != 0
    rank = len(shape) - (3 if labelled else 2)
    if mean is None:
        loss, weight = torch.empty(shape[:rank], dtype=scores.dtype, device="cpu"), None
    else:
        loss = torch.empty_like(_A_NUMBER[scores.dtype])
        weight = 1.0 / max(shape[:rank].numel(), 1) if mean and rank else 1.0
    gradient = into = empty_edges(scores, form) if with_gradient else None
    if rank > 1:  # as one row of sentences
        scores = scores.flatten(0, rank - 1)
        heads = heads.reshape(-1, heads.shape[-1])
        labels = None if labels is None else labels.reshape(-1, labels.shape[-1])
        into = None if gradient is None else gradient.flatten(0, rank - 1)
    if labelled and labels is None:
        labels = heads.new_full((1,), UNKNOWN).expand_as(heads)
    heads = heads if heads.dtype in _INTEGERS else as_integers(heads)
    labels = labels if labels is None or labels.dtype in _INTEGERS else as_integers(labels)
    lengths = None if lengths is None else lengths.to("cpu").contiguous()
    status = entries.crf_loss_of_tensors(
        scores.shape,
        labelled,
        _options(form & (SINGLE_ROOT | PROJECTIVE), _number_of_threads()),
        scores.data_ptr(),
        scores.dtype is torch.float64,
        scores.stride(),
        0 if lengths is None else lengths.data_ptr(),
        lengths is None or lengths.dtype is torch.int64,
        heads.data_ptr(),
        heads.dtype is torch.int64,
        heads.stride(),
        0 if labels is None else labels.data_ptr(),
        labels is None or labels.dtype is torch.int64,
        () if labels is None else labels.stride(),
        loss.data_ptr(),
        0 if into is None else into.data_ptr(),
        () if into is None else into.stride(),
        partial,
        weight,
    )
    if status is not None:
        _Asked(given, lengths, form).check(status)
    return loss, gradient, weight


@_on_host
def log_prob(
    scores: Tensor, heads: Tensor, labels: Tensor | None, lengths: Tensor | None, form: int, with_gradient: bool
) -> tuple[Tensor, Tensor | None]:
    """Log-probabilities of any number of trees a sentence, -inf where they are none, and the marginals."""
    asked = _Asked(scores, lengths, form)
    trees, _alive, count = _heads_view(heads, asked)
    tree_labels, _alive_too, _ = (_NO_HEADS, None, 0) if labels is None else _heads_view(labels, asked)
    lead = heads.shape[: heads.dim() - 1 - len(batch_shape(scores, form))]
    found = asked.numbers(lead)
    asked.check(entries.log_prob(asked.view, asked.options, count, trees, tree_labels, found.data_ptr()))
    keeps = with_gradient and scores.dtype is torch.float64  # marginals, where all their digits are kept
    return found, marginals(scores, lengths, form) if keeps else None


@_on_host
def relative_scores(scores: Tensor, lengths: Tensor | None, form: int) -> Tensor:
    """Scores without what all trees have in common; -inf where there is no edge, or no tree."""
    asked = _Asked(scores, lengths, form)
    out = asked.edges()
    asked.check(entries.relative_scores(asked.view, asked.options, asked.edges_out(out)))
    return out


@_on_host
def score(scores: Tensor, heads: Tensor, labels: Tensor | None, lengths: Tensor | None, form: int) -> Tensor:
    """Sums of edge scores, -inf where heads are no tree."""
    trees = None if labels is None else labels.numpy()
    found = distribution(scores, lengths, form).score(heads.numpy(), trees)
    return torch.from_numpy(np.asarray(found))


@_on_host
def entropy(scores: Tensor, lengths: Tensor | None, form: int, with_gradient: bool) -> tuple[Tensor, Tensor | None]:
    asked = _Asked(scores, lengths, form)
    value, gradient = asked.numbers(), asked.edges() if with_gradient else None
    asked.check(entries.entropy(asked.view, asked.options, value.data_ptr(), asked.edges_out(gradient)))
    return value, gradient


@_on_host
def expectation(
    scores: Tensor, values: Tensor, lengths: Tensor | None, form: int, with_gradient: bool
) -> tuple[Tensor, Tensor | None]:
    """E[sum of values over the tree's edges] for each of several values, and its gradient by the scores."""
    asked = _Asked(scores, lengths, form)
    numbers, _alive, count = _edges_view(values, asked)
    lead = values.shape[: values.dim() - scores.dim()]
    totals, gradient = asked.numbers(lead), asked.edges(lead) if with_gradient else None
    out = asked.edges_out(gradient)
    asked.check(entries.expectation(asked.view, asked.options, count, numbers, totals.data_ptr(), out))
    return totals, gradient


@_on_host
def cross_entropy(
    p: Tensor, q: Tensor, lengths: Tensor | None, form: int, with_gradient: bool
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """-E_p[log q], and its gradients by the scores of both; inf and 0 where p has a tree that q has not."""
    return _compared(entries.cross_entropy, p, q, lengths, form, with_gradient)


@_on_host
def kl(
    p: Tensor, q: Tensor, lengths: Tensor | None, form: int, with_gradient: bool
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """E_p[log p - log q], and its gradients by the scores of both; inf and 0 where p has a tree that q has not."""
    return _compared(entries.kl, p, q, lengths, form, with_gradient)


def _compared(
    entry: Callable[..., Any], p: Tensor, q: Tensor, lengths: Tensor | None, form: int, with_gradient: bool
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    of_p, of_q = _Asked(p, lengths, form), _Asked(q, lengths, form)
    value = of_p.numbers()
    by_p, by_q = (of_p.edges() if with_gradient else None for _ in range(2))  # both lie as the scores of p
    status_p, status_q = entry(
        of_p.view,
        of_q.view,
        of_p.options,
        value.data_ptr(),
        of_p.edges_out(by_p),
        of_q.edges_out(by_q),
    )
    if not (of_p.check(status_p) & of_q.check(status_q)):
        value.view(-1)[of_q.without_tree()] = torch.inf
        value.view(-1)[of_p.without_tree()] = torch.nan
    return value, by_p, by_q


@_on_host
def argmax(scores: Tensor, lengths: Tensor | None, form: int) -> tuple[Tensor, Tensor | None]:
    """Heads and labels of the best trees; labels are empty without labels."""
    asked = _Asked(scores, lengths, form)
    heads, labels = asked.nodes(), asked.labels()
    out, labels_out = _heads_out(heads, asked), _heads_out(labels, asked)
    asked.check(entries.argmax(asked.view, asked.options, out, labels_out, 0))
    return heads, labels


@_on_host
def topk(scores: Tensor, lengths: Tensor | None, form: int, k: int) -> tuple[Tensor, Tensor | None, Tensor]:
    """Heads, labels and scores of the k best trees, along a first axis."""
    asked = _Asked(scores, lengths, form)
    heads, labels, best = asked.nodes((k,)), asked.labels((k,)), asked.numbers((k,))
    out, labels_out = _heads_out(heads, asked), _heads_out(labels, asked)
    asked.check(entries.topk(asked.view, asked.options, k, out, labels_out, best.data_ptr()))
    return heads, labels, best


@_on_host
def sample(
    scores: Tensor, keys: Tensor, lengths: Tensor | None, form: int, k: int, method: Any
) -> tuple[Tensor, Tensor | None]:
    """k random trees, along a first axis. Each sentence has a key of its own, 128 random bits as two int64."""
    if method != "auto":
        return _trees(distribution(scores, lengths, form).sample(k, rng=_seeds(keys), method=method))
    asked = _Asked(scores, lengths, form)
    bits = keys.contiguous()
    heads, labels = asked.nodes((k,)), asked.labels((k,))
    out, labels_out = _heads_out(heads, asked), _heads_out(labels, asked)
    asked.check(entries.sample(asked.view, asked.options, k, bits.data_ptr(), out, labels_out))
    return heads, labels


@_on_host
def sample_without_replacement(
    scores: Tensor, keys: Tensor, lengths: Tensor | None, form: int, k: int, method: Any
) -> tuple[Tensor, Tensor | None, Tensor, Tensor, Tensor, Tensor]:
    """k different random trees: heads, labels, log-probabilities, Gumbel keys, threshold, log of the mass left."""
    if method != "auto":
        drawn = distribution(scores, lengths, form).sample_without_replacement(k, rng=_seeds(keys), method=method)
        numbers = (drawn.log_probs, drawn.keys, drawn.threshold, drawn.log_remaining)
        log_probs, gumbel_keys, threshold, log_left = (torch.from_numpy(np.asarray(x)) for x in numbers)
        return *_trees(drawn if form & LABELLED else drawn.heads), log_probs, gumbel_keys, threshold, log_left
    asked = _Asked(scores, lengths, form)
    bits = keys.contiguous()
    heads, labels = asked.nodes((k,)), asked.labels((k,))
    log_probs, gumbel_keys, threshold, log_left = (asked.numbers(lead) for lead in ((k,), (k,), (), ()))
    status = entries.sample_without_replacement(
        asked.view,
        asked.options,
        k,
        bits.data_ptr(),
        _heads_out(heads, asked),
        _heads_out(labels, asked),
        log_probs.data_ptr(),
        gumbel_keys.data_ptr(),
        threshold.data_ptr(),
        log_left.data_ptr(),
    )
    asked.check(status)
    return heads, labels, log_probs, gumbel_keys, threshold, log_left


def _seeds(keys: Tensor) -> Any:
    """A seed for each sentence, for samplers of the NumPy side."""
    pairs = keys.reshape(-1, 2).tolist()
    seeds = np.array([first % 2**64 + (second % 2**64 << 64) for first, second in pairs], dtype=object)
    return seeds.reshape(tuple(keys.shape[:-1])) if keys.dim() > 1 else int(seeds[0])


def _trees(found: Any) -> tuple[Tensor, Tensor | None]:
    if isinstance(found, np.ndarray):
        return torch.from_numpy(found), None
    return torch.from_numpy(found.heads), torch.from_numpy(found.labels)
