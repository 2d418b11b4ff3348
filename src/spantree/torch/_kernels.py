"""Every question to the core, from tensors to tensors: no derivatives, no operators, and nothing else calls the core.

Scores are ``(*batch, n+1, n+1)``, ``[head, dep]``, or with one more axis of labels; lengths ``(*batch,)`` or None. What
there may be several of has more axes in front: directions ``(*R, *batch, n+1, n+1)``, heads ``(*k, *batch, n+1)``.
Results have the dtype and the device of the scores. Sentences without a tree have log Z of -inf, and 0 for everything
that would be a sum over their trees; with `STRICT` they raise.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

import spantree
import torch
from torch import Tensor

from .. import _threads

# What sort of trees: a sum of these is the `form` of every question.
SINGLE_ROOT, PROJECTIVE, LABELLED, STRICT, ON_DEVICE = 1, 2, 4, 8, 16


def edge_axes(form: int) -> int:
    """How many axes of the scores are no axes of the batch."""
    return 3 if form & LABELLED else 2


def batch_shape(scores: Tensor, form: int) -> torch.Size:
    return scores.shape[: scores.dim() - edge_axes(form)]


def threads() -> int:
    """Those of torch, unless spantree was told otherwise."""
    if _threads._threads is None and not os.environ.get("SPANTREE_THREADS"):
        return torch.get_num_threads()
    return spantree.get_threads()


def _distribution(scores: Tensor, lengths: Tensor | None, form: int, strict: bool | None = None) -> Any:
    strict = bool(form & STRICT) if strict is None else strict
    return spantree.TreeDistribution(
        _array(scores),
        lengths=None if lengths is None else _array(lengths),
        root="single" if form & SINGLE_ROOT else "multi",
        projective=bool(form & PROJECTIVE),
        labelled=bool(form & LABELLED),
        on_infeasible="raise" if strict else "mask",
    )


def _array(tensor: Tensor) -> Any:
    tensor = tensor.detach()
    if tensor.dtype in (torch.bfloat16, torch.float16):
        tensor = tensor.float()
    return tensor.cpu().numpy()


def _tensor(array: Any, like: Tensor) -> Tensor:
    return torch.as_tensor(np.array(array)).to(like.device, like.dtype)


def _zeros_for_nan(array: Any) -> Any:
    return np.nan_to_num(array, nan=0.0, posinf=np.inf, neginf=-np.inf)


def nothing(scores: Tensor) -> Tensor:
    """In the place of what nobody asked for."""
    return scores.new_empty(0)


def log_partition(scores: Tensor, lengths: Tensor | None, form: int, with_gradient: bool) -> tuple[Tensor, Tensor]:
    """log Z, and the marginals."""
    dist = _distribution(scores, lengths, form)
    marginals = _tensor(dist.marginals(), scores) if with_gradient else nothing(scores)
    return _tensor(dist.log_partition(), scores), marginals


def marginals(scores: Tensor, lengths: Tensor | None, form: int) -> Tensor:
    return _tensor(_distribution(scores, lengths, form).marginals(), scores)


def hessian(scores: Tensor, directions: Tensor, lengths: Tensor | None, form: int) -> Tensor:
    """The second derivative of log Z by the scores, contracted with each direction."""
    dist = _distribution(scores, lengths, form)
    flat = _array(directions).astype(np.float64).reshape(-1, *scores.shape)
    out = [_zeros_for_nan(dist.expectation(row, with_grad=True)[1]) for row in flat]
    return _tensor(np.array(out).reshape(directions.shape), scores)


def third(scores: Tensor, u: Tensor, g: Tensor, lengths: Tensor | None, form: int) -> Tensor:
    """The derivative of ``hessian(g)`` when the scores move along `u`."""
    us, gs = (x.double().reshape(-1, *scores.shape) for x in (u, g))
    step, out = 1e-4, []
    for one_u, one_g in zip(us, gs, strict=True):
        moved = [hessian(scores.double() + k * step * one_u, one_g, lengths, form) for k in (-2, -1, 1, 2)]
        out.append((8 * (moved[2] - moved[1]) - (moved[3] - moved[0])) / (12 * step))
    return torch.stack(out).reshape(u.shape).to(scores.dtype) if out else torch.empty_like(u)


def crf_loss(
    scores: Tensor,
    heads: Tensor,
    labels: Tensor | None,
    lengths: Tensor | None,
    form: int,
    partial: bool,
    with_gradient: bool,
) -> tuple[Tensor, Tensor]:
    """Minus the log-probability of one tree a sentence, and its gradient; inf and 0 where it is no tree.

    If `partial`, heads and labels may be -2, unknown.
    """
    dist = _distribution(scores, lengths, form)
    tree_labels = None if labels is None else _array(labels)
    value, gradient = dist.log_prob(_array(heads), tree_labels, partial=partial, with_grad=True)
    return _tensor(-value, scores), _tensor(0.0 - gradient, scores) if with_gradient else nothing(scores)


def log_prob(
    scores: Tensor, heads: Tensor, labels: Tensor | None, lengths: Tensor | None, form: int, with_gradient: bool
) -> tuple[Tensor, Tensor]:
    """Log-probabilities of any number of trees a sentence, -inf where they are none, and the marginals."""
    dist = _distribution(scores, lengths, form)
    value = dist.log_prob(_array(heads), None if labels is None else _array(labels))
    return _tensor(value, scores), _tensor(dist.marginals(), scores) if with_gradient else nothing(scores)


def score(scores: Tensor, heads: Tensor, labels: Tensor | None, lengths: Tensor | None, form: int) -> Tensor:
    """Sums of edge scores, -inf where heads are no tree."""
    dist = _distribution(scores, lengths, form)
    return _tensor(dist.score(_array(heads), None if labels is None else _array(labels)), scores)


def entropy(scores: Tensor, lengths: Tensor | None, form: int, with_gradient: bool) -> tuple[Tensor, Tensor]:
    value, gradient = _distribution(scores, lengths, form).entropy(with_grad=True)
    gradient = _tensor(_zeros_for_nan(gradient), scores) if with_gradient else nothing(scores)
    return _tensor(_zeros_for_nan(value), scores), gradient


def expectation(
    scores: Tensor, values: Tensor, lengths: Tensor | None, form: int, with_gradient: bool
) -> tuple[Tensor, Tensor]:
    """E[sum of values over the tree's edges] for each of several values, and its gradient by the scores."""
    dist = _distribution(scores, lengths, form)
    lead = values.shape[: values.dim() - scores.dim()]
    flat = _array(values).astype(np.float64).reshape(-1, *scores.shape)
    out = [dist.expectation(row, with_grad=True) for row in flat]
    totals = np.array([_zeros_for_nan(total) for total, _ in out]).reshape((*lead, *batch_shape(scores, form)))
    gradients = np.array([_zeros_for_nan(gradient) for _, gradient in out]).reshape(values.shape)
    return _tensor(totals, scores), _tensor(gradients, scores) if with_gradient else nothing(scores)


def cross_entropy(
    p: Tensor, q: Tensor, lengths: Tensor | None, form: int, with_gradient: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """-E_p[log q], and its gradients by the scores of both; inf and 0 where p has a tree that q has not."""
    return _compared("cross_entropy", p, q, lengths, form, with_gradient)


def kl(p: Tensor, q: Tensor, lengths: Tensor | None, form: int, with_gradient: bool) -> tuple[Tensor, Tensor, Tensor]:
    """E_p[log p - log q], and its gradients by the scores of both; inf and 0 where p has a tree that q has not."""
    return _compared("kl", p, q, lengths, form, with_gradient)


def _compared(
    quantity: str, p: Tensor, q: Tensor, lengths: Tensor | None, form: int, with_gradient: bool
) -> tuple[Tensor, Tensor, Tensor]:
    dist, other = (_distribution(x, lengths, form) for x in (p, q))
    value, *gradients = getattr(dist, quantity)(other, with_grad="both")
    value = _tensor(_zeros_for_nan(value), p)
    if not with_gradient:
        return value, nothing(p), nothing(q)
    known = value.isfinite()[(..., *(None,) * edge_axes(form))]
    by_p, by_q = (torch.where(known, _tensor(_zeros_for_nan(gradient), p), 0.0) for gradient in gradients)
    return value, by_p, by_q


def argmax(scores: Tensor, lengths: Tensor | None, form: int) -> tuple[Tensor, Tensor]:
    """Heads and labels of the best trees; labels are empty without labels."""
    return _trees(_distribution(scores, lengths, form).argmax(), scores)


def topk(scores: Tensor, lengths: Tensor | None, form: int, k: int) -> tuple[Tensor, Tensor, Tensor]:
    """Heads, labels and scores of the k best trees, along a first axis."""
    found = _distribution(scores, lengths, form).topk(k)
    return *_trees(found if found.labels is not None else found.heads, scores), _tensor(found.scores, scores)


def sample(
    scores: Tensor, keys: Tensor, lengths: Tensor | None, form: int, k: int, method: str
) -> tuple[Tensor, Tensor]:
    """k random trees, along a first axis. Each sentence has a key of its own, 128 random bits as two int64."""
    seeds = np.array([int(a) % 2**64 + (int(b) % 2**64 << 64) for a, b in _array(keys).reshape(-1, 2)], dtype=object)
    rng = seeds.reshape(tuple(keys.shape[:-1])) if keys.dim() > 1 else int(seeds[0])
    return _trees(_distribution(scores, lengths, form).sample(k, rng=rng, method=method), scores)


def sample_without_replacement(
    scores: Tensor, keys: Tensor, lengths: Tensor | None, form: int, k: int, method: str
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """k different random trees: heads, labels, log-probabilities, Gumbel keys, threshold, log of the mass left."""
    seeds = np.array([int(a) % 2**64 + (int(b) % 2**64 << 64) for a, b in _array(keys).reshape(-1, 2)], dtype=object)
    rng = seeds.reshape(tuple(keys.shape[:-1])) if keys.dim() > 1 else int(seeds[0])
    drawn = _distribution(scores, lengths, form).sample_without_replacement(k, rng=rng, method=method)
    trees = _trees(drawn if drawn.labels is not None else drawn.heads, scores)
    rest = (drawn.log_probs, drawn.keys, drawn.threshold, drawn.log_remaining)
    log_probs, gumbel_keys, threshold, log_remaining = (_tensor(x, scores) for x in rest)
    return *trees, log_probs, gumbel_keys, threshold, log_remaining


def _trees(found: Any, scores: Tensor) -> tuple[Tensor, Tensor]:
    heads, labels = (found, None) if isinstance(found, np.ndarray) else (found.heads, found.labels)
    empty = torch.empty(0, dtype=torch.int64)
    made = torch.as_tensor(heads), empty if labels is None else torch.as_tensor(labels)
    return made[0].to(scores.device), made[1].to(scores.device)
