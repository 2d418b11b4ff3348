"""All questions that have derivatives, and the derivatives, in closed form.

Four are asked of the core, and `_front/fourth.py` has the next in terms of these, so that no derivative is the last.
With s the scores and M the marginals:

    d log Z = <M, ds>      dM = hessian(ds)      d hessian(G) = third(ds, G) + hessian(dG)

and `hessian` and `third` are their own transposes, so that forward and reverse mode share them. All others are numbers
of which one solve gives value and gradient (`Quantity`): the first backward is one multiplication. Where a second
derivative may follow, the gradient is written down again in terms of the four:

    entropy               -hessian(s)
    expectation of R      hessian(R)                       by R: M
    cross-entropy         -hessian_p(s_q)                  by q: M_q - M_p
    KL divergence         hessian_p(s_p - s_q)             by q: M_q - M_p
    loss of a tree        M - its edges                    (partial: M - M given what is known)

A constant added to all edges into a word changes no tree's probability, nor with one root does one added to all edges
from ROOT, so scores count relative to the best of these; edges that are in no tree count 0, whatever their score.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from .._front.form import LABELLED, STRICT, UNKNOWN, edge_axes
from .._front.fourth import Questions, edges_into
from .._front.relative import relative_to_best
from . import _kernels
from ._door import widened
from ._kernels import FULL, batch_shape
from ._operator import (
    EDGES,
    NODES,
    NUMBERS,
    SEVERAL_EDGES,
    SEVERAL_NODES,
    SEVERAL_NUMBERS,
    Operator,
    Trees,
    another_derivative_is_possible,
    in_eager_mode,
    is_plain,
    question,
    quick_apply,
    reverse_mode,
)

One = Callable[..., Tensor]
Several = Callable[..., tuple[Tensor, ...]]


# Closed under differentiation


class _Marginals(Operator):
    inputs, outputs = (EDGES, NUMBERS), (EDGES,)
    kernel = staticmethod(_kernels.marginals)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        scores, lengths, ctx.form = inputs
        _save(ctx, scores, lengths)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor | None) -> Any:
        scores, lengths = ctx.saved_tensors
        return None if gradient is None else hessian(scores, gradient, lengths, ctx.form), None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: None) -> Tensor:
        scores, lengths = ctx.saved_tensors
        return hessian(scores, tangent, lengths, ctx.form)


marginals: One = question("marginals", "Tensor scores, Tensor? lengths, int form", _Marginals)


class _Hessian(Operator):
    """The second derivative of log Z, contracted with each direction."""

    inputs, outputs = (EDGES, SEVERAL_EDGES, NUMBERS), (SEVERAL_EDGES,)
    kernel = staticmethod(_kernels.hessian)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        scores, directions, lengths, ctx.form = inputs
        _save(ctx, scores, directions, lengths)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor | None) -> Any:
        scores, directions, lengths = ctx.saved_tensors
        by_scores = by_directions = None
        if gradient is not None and ctx.needs_input_grad[0]:
            by_scores = _without_lead(third(scores, gradient, directions, lengths, ctx.form), scores.dim())
        if gradient is not None and ctx.needs_input_grad[1]:
            by_directions = hessian(scores, gradient, lengths, ctx.form)
        return by_scores, by_directions, None, None

    @staticmethod
    def jvp(ctx: Any, by_scores: Tensor | None, by_directions: Tensor | None, *_: None) -> Any:
        scores, directions, lengths = ctx.saved_tensors
        parts = []
        if by_scores is not None:
            parts.append(third(scores, by_scores.expand_as(directions), directions, lengths, ctx.form))
        if by_directions is not None:
            parts.append(hessian(scores, by_directions, lengths, ctx.form))
        return _total(parts)


hessian: One = question("hessian", "Tensor scores, Tensor directions, Tensor? lengths, int form", _Hessian)


class _Third(Operator):
    """The third derivative of log Z, contracted with pairs of directions."""

    inputs, outputs = (EDGES, SEVERAL_EDGES, SEVERAL_EDGES, NUMBERS), (SEVERAL_EDGES,)
    kernel = staticmethod(_kernels.third)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        scores, u, g, lengths, ctx.form = inputs
        _save(ctx, scores, u, g, lengths)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor | None) -> Any:
        scores, u, g, lengths = ctx.saved_tensors
        if gradient is None:
            return None, None, None, None, None
        by_scores = None
        if ctx.needs_input_grad[0]:
            by_scores = _without_lead(_fourth(scores, gradient, u, g, lengths, ctx.form), scores.dim())
        by_u = third(scores, gradient, g, lengths, ctx.form) if ctx.needs_input_grad[1] else None
        by_g = third(scores, gradient, u, lengths, ctx.form) if ctx.needs_input_grad[2] else None
        return by_scores, by_u, by_g, None, None

    @staticmethod
    def jvp(ctx: Any, by_scores: Tensor | None, by_u: Tensor | None, by_g: Tensor | None, *_: None) -> Any:
        scores, u, g, lengths = ctx.saved_tensors
        parts = [
            third(scores, direction, other, lengths, ctx.form)
            for direction, other in ((by_u, g), (by_g, u))
            if direction is not None
        ]
        if by_scores is not None:
            parts.append(_fourth(scores, by_scores.expand_as(u), u, g, lengths, ctx.form))
        return _total(parts)


third: One = question("third", "Tensor scores, Tensor u, Tensor g, Tensor? lengths, int form", _Third)


def _fourth(scores: Tensor, u: Tensor, g: Tensor, v: Tensor, lengths: Tensor | None, form: int) -> Tensor:
    """The fourth derivative, contracted with triples of directions."""
    wide, *values = (x.double() for x in (scores, u, g, v))
    axes = edge_axes(form)

    def of(s: Tensor) -> tuple[Tensor | None, int]:
        more = (1,) * (s.dim() - scores.dim())
        given = None if lengths is None else lengths.reshape(*lengths.shape, *more).expand(s.shape[: s.dim() - axes])
        return given, form & ~STRICT

    ask = Questions(
        torch,
        torch.arange(scores.shape[-axes], device=scores.device),
        lambda s: marginals(s, *of(s)),
        lambda s, x: hessian(s, x, *of(s)),
        lambda s, x, y: third(s, x, y, *of(s)),
    )
    column = edges_into(ask, wide, tuple(values), form)  # type: ignore[arg-type]
    columns = [column(word) for word in range(1, scores.shape[-axes])]
    into_root = torch.zeros_like(u.select(1 - axes, 0), dtype=torch.float64)
    return torch.stack([into_root, *columns], 1 - axes).to(scores.dtype)


# Numbers with their gradients


class Quantity(Operator):
    """Numbers per sentence, of which the kernel gives gradients too, if its last argument says so.

    `by[i]` is the gradient with respect to the i-th argument, as something that can be differentiated again. The kernel
    may leave out those of later arguments.
    """

    by: ClassVar[Sequence[Callable[..., Tensor]]]

    def __init_subclass__(cls) -> None:
        count = len(cls.inputs)

        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            tensors, ctx.rest = inputs[:count], inputs[count:]
            ctx.mark_non_differentiable(*output[1:])
            _save(ctx, *tensors, *output)

        def backward(ctx: Any, slope: Tensor | None, *_: None) -> Any:
            saved = ctx.saved_tensors
            inputs, value, kept = saved[:count], saved[count], saved[count + 1 :]
            if slope is None:
                return (None,) * (count + len(ctx.rest))
            fresh = another_derivative_is_possible() or not ctx.rest[-1]
            return cls._slopes(ctx, inputs, value, () if fresh else kept, slope)

        def jvp(ctx: Any, *tangents: Tensor | None) -> Any:
            moving = tangents[: len(cls.by)]
            saved = ctx.saved_tensors
            found = cls._gradients(ctx, saved[:count], saved[count], (), [tangent is not None for tangent in moving])
            axes = tuple(range(-edge_axes(ctx.rest[0]), 0))
            parts = [(x * t).sum(axes) for x, t in zip(found, moving, strict=True) if x is not None and t is not None]
            return _total(parts).to(saved[count].dtype), *(None,) * (len(cls.outputs) - 1)

        cls.setup_context = staticmethod(setup_context)  # type: ignore[method-assign]
        cls.backward = staticmethod(backward)  # type: ignore[method-assign]
        cls.jvp = staticmethod(jvp)  # type: ignore[method-assign]

    @classmethod
    def in_reverse_mode(cls) -> Callable[..., Any]:
        """Gradients are no outputs here: torch has less to keep account of.

        The first who asks for them gets them, scaled in place; for a second one they are computed again, to the same
        bits; for whoever wants another derivative, as something that can be differentiated.
        """
        count, by_scores_only = len(cls.inputs), len(cls.by) == 1

        def forward(ctx: Any, *args: Any) -> Any:
            value, *ctx.gradients = cls.kernel(*args)
            ctx.rest = args[count:]
            ctx.save_for_backward(*args[:count], value)
            return value

        def backward(ctx: Any, slope: Tensor) -> Any:
            kept = vars(ctx).pop("gradients", None) if ctx.rest[-1] else None
            for_good = not another_derivative_is_possible() and is_plain(slope)
            if kept and for_good and by_scores_only and not slope.dim():
                factor = slope.item()  # of one sentence, where tensors take longer than numbers
                if math.isfinite(factor):
                    scaled = kept[0] if factor == 1.0 else kept[0].mul_(factor)
                    return scaled, *(None,) * (count - 1 + len(ctx.rest))
            *inputs, value = ctx.saved_tensors
            if another_derivative_is_possible() or not ctx.rest[-1]:
                return cls._slopes(ctx, inputs, value, (), slope)
            kept = kept or cls.kernel(*inputs, *ctx.rest)[1:]
            if not for_good:
                ctx.gradients = kept
            return cls._slopes(ctx, inputs, value, kept, slope, in_place=for_good)

        ask = reverse_mode(cls.__name__, forward, backward)
        return lambda *args: (ask(*args),)

    @classmethod
    def _slopes(
        cls, ctx: Any, inputs: Any, value: Tensor, kept: Sequence[Tensor], slope: Tensor, in_place: bool = False
    ) -> tuple[Tensor | None, ...]:
        """By all arguments, for a slope of the value."""
        found = cls._gradients(ctx, inputs, value, kept, ctx.needs_input_grad)
        wide = _over_edges(_known(value, slope), ctx.rest[0])
        times = torch.Tensor.mul_ if in_place else torch.Tensor.mul
        products = [
            None if x is None else _without_lead(times(x, wide), y.dim()).to(y.dtype)
            for x, y in zip(found, inputs, strict=False)
        ]
        return *products, *(None,) * (len(inputs) + len(ctx.rest) - len(products))

    @classmethod
    def _gradients(
        cls, ctx: Any, inputs: Any, value: Tensor, kept: Sequence[Tensor], needed: Sequence[bool]
    ) -> list[Tensor | None]:
        """By each of the first arguments: kept, or in double precision such as can be differentiated again."""
        found: list[Tensor | None] = []
        for i, by in enumerate(cls.by):
            if not needed[i]:
                found.append(None)
            elif i < len(kept):
                found.append(kept[i])
            else:
                there = _over_edges(value.isfinite(), ctx.rest[0])
                found.append(torch.where(there, _in_double(by, inputs, *ctx.rest[:-1]), 0.0))
        return found

    @classmethod
    def absent(cls, *args: Any) -> Sequence[int]:
        return () if args[-1] else range(1, len(cls.outputs))


def _marginals(scores: Tensor, lengths: Tensor | None, form: int) -> Tensor:
    """0 where there is no tree: whoever asks for a gradient has been told already."""
    return marginals(scores, lengths, form & ~STRICT)


def _hessian(scores: Tensor, directions: Tensor, lengths: Tensor | None, form: int) -> Tensor:
    return hessian(scores, directions, lengths, form & ~STRICT)


def _relative(scores: Tensor, possible: Tensor, form: int) -> Tensor:
    """Scores of possible edges less what they have in common by word and by root; 0 for others."""
    rows = torch.arange(scores.shape[-edge_axes(form)], device=scores.device)
    return relative_to_best(torch, scores, scores.detach(), possible, rows, form)  # type: ignore[no-any-return]


def _in_double(by: Callable[..., Tensor], inputs: Sequence[Tensor | None], *rest: Any) -> Tensor:
    """A derivative, of scores in double precision: what is subtracted in it was not rounded before."""
    return by(*(widened(x) if x is not None and x.is_floating_point() else x for x in inputs), *rest)


class _LogPartition(Quantity):
    inputs, outputs = (EDGES, NUMBERS), (NUMBERS, EDGES)
    kernel = staticmethod(_kernels.log_partition)
    by = (_marginals,)


log_partition: Several = question(
    "log_partition", "Tensor scores, Tensor? lengths, int form, bool with_gradient", _LogPartition
)


def _entropy_by_scores(scores: Tensor, lengths: Tensor | None, form: int) -> Tensor:
    possible = _marginals(scores.detach(), lengths, form) > 0.0
    return -_hessian(scores, _relative(scores, possible, form), lengths, form)


class _Entropy(Quantity):
    inputs, outputs = (EDGES, NUMBERS), (NUMBERS, EDGES)
    kernel = staticmethod(_kernels.entropy)
    by = (_entropy_by_scores,)


entropy: Several = question("entropy", "Tensor scores, Tensor? lengths, int form, bool with_gradient", _Entropy)


def _expectation_by_scores(scores: Tensor, values: Tensor, lengths: Tensor | None, form: int) -> Tensor:
    possible = _marginals(scores.detach(), lengths, form) > 0.0
    return _hessian(scores, torch.where(possible, values, 0.0), lengths, form)


def _expectation_by_values(scores: Tensor, values: Tensor, lengths: Tensor | None, form: int) -> Tensor:
    return _marginals(scores, lengths, form).expand_as(values)


class _Expectation(Quantity):
    inputs, outputs = (EDGES, SEVERAL_EDGES, NUMBERS), (SEVERAL_NUMBERS, SEVERAL_EDGES)
    kernel = staticmethod(_kernels.expectation)
    by = (_expectation_by_scores, _expectation_by_values)


expectation: Several = question(
    "expectation", "Tensor scores, Tensor values, Tensor? lengths, int form, bool with_gradient", _Expectation
)


def _cross_entropy_by_p(p: Tensor, q: Tensor, lengths: Tensor | None, form: int) -> Tensor:
    possible = _marginals(p.detach(), lengths, form) > 0.0
    return -_hessian(p, _relative(q, possible, form), lengths, form)


def _kl_by_p(p: Tensor, q: Tensor, lengths: Tensor | None, form: int) -> Tensor:
    possible = _marginals(p.detach(), lengths, form) > 0.0
    difference = _relative(p, possible, form) - _relative(q, possible, form)
    return _hessian(p, difference, lengths, form)


def _compared_by_q(p: Tensor, q: Tensor, lengths: Tensor | None, form: int) -> Tensor:
    return _marginals(q, lengths, form) - _marginals(p, lengths, form)


_COMPARISON = "Tensor p, Tensor q, Tensor? lengths, int form, bool with_gradient"


class _CrossEntropy(Quantity):
    inputs, outputs = (EDGES, EDGES, NUMBERS), (NUMBERS, EDGES, EDGES)
    kernel = staticmethod(_kernels.cross_entropy)
    by = (_cross_entropy_by_p, _compared_by_q)


cross_entropy: Several = question("cross_entropy", _COMPARISON, _CrossEntropy)


class _Kl(Quantity):
    inputs, outputs = (EDGES, EDGES, NUMBERS), (NUMBERS, EDGES, EDGES)
    kernel = staticmethod(_kernels.kl)
    by = (_kl_by_p, _compared_by_q)


kl: Several = question("kl", _COMPARISON, _Kl)


def _crf_loss_by_scores(
    scores: Tensor, heads: Tensor, labels: Tensor | None, lengths: Tensor | None, form: int, partial: bool
) -> Tensor:
    agrees = agreeing_edges(heads, labels, scores, form)
    if partial:
        known = _marginals(torch.where(agrees, scores, -torch.inf), lengths, form)
    else:
        known = (agrees & real_edges(scores, lengths, form)).to(scores.dtype)
    return _marginals(scores, lengths, form) - known


class _CrfLoss(Quantity):
    inputs, outputs = (EDGES, NODES, NODES, NUMBERS), (NUMBERS, EDGES)
    kernel = staticmethod(_kernels.crf_loss)
    by = (_crf_loss_by_scores,)


crf_loss: Several = question(
    "crf_loss",
    "Tensor scores, Tensor heads, Tensor? labels, Tensor? lengths, int form, bool partial, bool with_gradient",
    _CrfLoss,
)


class _TotalLoss(torch.autograd.Function):
    """The sum of the losses, or their mean, for eager reverse mode; its gradient as that of a `Quantity`."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, tree: Any, mean: bool) -> Tensor:
        heads, labels, lengths, form, partial = tree
        ctx.save_for_backward(scores, heads, labels, lengths)
        loss, ctx.gradient, weight = _kernels.crf_losses(scores, heads, labels, lengths, form, partial, True, mean)
        ctx.rest = form, partial, mean, weight
        return loss

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> Any:
        form, partial, mean, weight = ctx.rest
        if not another_derivative_is_possible() and is_plain(slope):
            gradient = vars(ctx).pop("gradient", None)
            if gradient is None:
                scores, heads, labels, lengths = ctx.saved_tensors
                _, gradient, _ = _kernels.crf_losses(scores, heads, labels, lengths, form, partial, True, mean)
            factor = slope.item()
            if not math.isfinite(factor):  # of a tree that is none, whatever was made of its loss: the gradient is 0
                return torch.where(gradient == 0.0, 0.0, gradient * factor), None, None
            return gradient if factor == 1.0 else gradient.mul_(factor), None, None
        scores, heads, labels, lengths = ctx.saved_tensors
        losses, _ = crf_loss(scores.detach(), heads, labels, lengths, form, partial, False)
        gradient = _in_double(_crf_loss_by_scores, (scores, heads, labels, lengths), form, partial)
        gradient = slope * weight * torch.where(_over_edges(losses.isfinite(), form), gradient, 0.0)
        return gradient.to(scores.dtype), None, None


_total_loss = quick_apply(_TotalLoss)


def total_crf_loss(
    scores: Tensor,
    heads: Tensor,
    labels: Tensor | None,
    lengths: Tensor | None,
    form: int,
    partial: bool,
    mean: bool,
) -> Tensor:
    """The sum of `crf_loss`, or its mean."""
    tree = heads, labels, lengths, form, partial
    with_gradient = torch.is_grad_enabled() and scores.requires_grad
    if scores.dtype in FULL and in_eager_mode((scores, heads, labels, lengths)):
        if with_gradient:
            return _total_loss(scores, tree, mean)  # type: ignore[no-any-return]
        return _kernels.crf_losses(scores, *tree, False, mean)[0]
    losses = crf_loss(scores, *tree, with_gradient)[0]
    return losses.mean() if mean else losses.sum()


# Numbers of trees


class _Score(Operator):
    """Sums of edge scores, of any number of trees a sentence."""

    inputs, outputs = (EDGES, SEVERAL_NODES, SEVERAL_NODES, NUMBERS), (SEVERAL_NUMBERS,)
    kernel = staticmethod(_kernels.score)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        *tensors, ctx.form = inputs
        _save(ctx, *tensors, output)

    @staticmethod
    def backward(ctx: Any, slope: Tensor | None) -> Any:
        scores, heads, labels, lengths, value = ctx.saved_tensors
        if slope is None:
            return None, None, None, None, None
        slope = _known(value, slope)
        return _put_on_edges(slope, heads, labels, scores, lengths, ctx.form), None, None, None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: None) -> Tensor:
        _, heads, labels, lengths, value = ctx.saved_tensors
        return torch.where(value.isfinite(), _sum_over_edges(tangent, heads, labels, lengths, ctx.form), 0.0)


score: One = question("score", "Tensor scores, Tensor heads, Tensor? labels, Tensor? lengths, int form", _Score)


class _LogProb(Operator):
    """Log-probabilities, of any number of trees a sentence: the sum of their scores less log Z."""

    inputs, outputs = (EDGES, SEVERAL_NODES, SEVERAL_NODES, NUMBERS), (SEVERAL_NUMBERS, EDGES)
    kernel = staticmethod(_kernels.log_prob)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        *tensors, ctx.form, ctx.with_gradient = inputs
        ctx.mark_non_differentiable(output[1])
        _save(ctx, *tensors, *output)

    @staticmethod
    def backward(ctx: Any, slope: Tensor | None, *_: None) -> Any:
        scores, heads, labels, lengths, value, edge_probs = ctx.saved_tensors
        if slope is None:
            return None, None, None, None, None, None
        wide = widened(scores)
        if another_derivative_is_possible() or not _has_all_digits(scores, ctx.with_gradient):
            edge_probs = _marginals(wide, lengths, ctx.form)
        slope = widened(_known(value, slope))
        total = _without_lead(slope, len(batch_shape(scores, ctx.form)))
        edges = _put_on_edges(slope, heads, labels, wide, lengths, ctx.form)
        by_scores = edges - _over_edges(total, ctx.form) * edge_probs
        return by_scores.to(scores.dtype), None, None, None, None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: None) -> Any:
        scores, heads, labels, lengths, value, _ = ctx.saved_tensors
        wide, tangent = widened(scores), widened(tangent)
        of_tree = _sum_over_edges(tangent, heads, labels, lengths, ctx.form)
        mean = (_marginals(wide, lengths, ctx.form) * tangent).sum(tuple(range(-edge_axes(ctx.form), 0)))
        return torch.where(value.isfinite(), of_tree - mean, 0.0).to(value.dtype), None

    @classmethod
    def absent(cls, *args: Any) -> Sequence[int]:
        return () if _has_all_digits(args[0], args[-1]) else (1,)


def _has_all_digits(scores: Tensor, with_gradient: bool) -> bool:
    """Whether marginals are kept for a gradient: 1 less one that was rounded to float32 would have few digits left."""
    return with_gradient and scores.dtype == torch.float64


log_prob: Several = question(
    "log_prob", "Tensor scores, Tensor heads, Tensor? labels, Tensor? lengths, int form, bool with_gradient", _LogProb
)


# Trees


class _Argmax(Trees):
    inputs, outputs = (EDGES, NUMBERS), (NODES, NODES)
    kernel = staticmethod(_kernels.argmax)


argmax: Several = question("argmax", "Tensor scores, Tensor? lengths, int form", _Argmax)


class _RelativeScores(Trees):
    """Scores without what all trees have in common."""

    inputs, outputs = (EDGES, NUMBERS), (EDGES,)
    kernel = staticmethod(_kernels.relative_scores)

    @classmethod
    def absent(cls, *args: Any) -> Sequence[int]:
        return ()


relative_scores: One = question("relative_scores", "Tensor scores, Tensor? lengths, int form", _RelativeScores)


class _Several(Trees):
    """With a first axis of k trees."""

    @classmethod
    def lead(cls, *args: Any) -> tuple[int, ...]:
        return (args[len(cls.inputs) + 1],)


class _Topk(_Several):
    inputs, outputs = (EDGES, NUMBERS), (SEVERAL_NODES, SEVERAL_NODES, SEVERAL_NUMBERS)
    kernel = staticmethod(_kernels.topk)


topk: Several = question("topk", "Tensor scores, Tensor? lengths, int form, int k", _Topk)


_SAMPLE = "Tensor scores, Tensor keys, Tensor? lengths, int form, int k, str method"


class _Sample(_Several):
    inputs, outputs = (EDGES, NODES, NUMBERS), (SEVERAL_NODES, SEVERAL_NODES)
    kernel = staticmethod(_kernels.sample)


sample: Several = question("sample", _SAMPLE, _Sample)


class _SampleWithoutReplacement(_Several):
    inputs = (EDGES, NODES, NUMBERS)
    outputs = (SEVERAL_NODES, SEVERAL_NODES, SEVERAL_NUMBERS, SEVERAL_NUMBERS, NUMBERS, NUMBERS)
    kernel = staticmethod(_kernels.sample_without_replacement)


sample_without_replacement: Several = question("sample_without_replacement", _SAMPLE, _SampleWithoutReplacement)


# Edges of trees


def agreeing_edges(heads: Tensor, labels: Tensor | None, scores: Tensor, form: int) -> Tensor:
    """Which edges agree with heads (and labels): all do with an unknown one. Anything at ROOT and in the padding."""
    nodes = torch.arange(heads.shape[-1], device=heads.device)
    agrees = (heads.unsqueeze(-2) == nodes.unsqueeze(-1)) | (heads.unsqueeze(-2) == UNKNOWN)  # [head, dep]
    if not form & LABELLED:
        return agrees
    if labels is None:
        return agrees.unsqueeze(-1).expand(*agrees.shape, scores.shape[-1])
    numbers = torch.arange(scores.shape[-1], device=heads.device)
    label_agrees = (labels.unsqueeze(-1) == numbers) | (labels.unsqueeze(-1) == UNKNOWN)  # [dep, label]
    return agrees.unsqueeze(-1) & label_agrees.unsqueeze(-3)


def real_words(nodes: int, lengths: Tensor | None, device: torch.device) -> Tensor:
    """Which nodes are words: no ROOT, no padding."""
    numbers = torch.arange(nodes, device=device)
    return numbers > 0 if lengths is None else (numbers > 0) & (numbers <= lengths.to(device).unsqueeze(-1))


def real_edges(scores: Tensor, lengths: Tensor | None, form: int) -> Tensor:
    """Which entries are edges between a word and another node."""
    nodes = scores.shape[-3] if form & LABELLED else scores.shape[-2]
    words = real_words(nodes, lengths, scores.device)
    numbers = torch.arange(nodes, device=scores.device)
    heads = (words | (numbers == 0)).unsqueeze(-1)
    edges = words.unsqueeze(-2) & heads & (numbers != numbers.unsqueeze(-1))
    return edges.unsqueeze(-1) if form & LABELLED else edges


def _places(heads: Tensor, labels: Tensor | None, shape: torch.Size, form: int) -> Tensor:
    """Where the edges of trees lie in a tensor (*batch, heads, deps(, labels)); anything for what is no edge."""
    axes = edge_axes(form)
    nodes, batch = shape[-axes], shape[: len(shape) - axes]
    deps = torch.arange(nodes, device=heads.device)
    place = heads.clamp(0, nodes - 1) * nodes + deps
    if labels is not None:
        place = place * shape[-1] + labels.clamp(0, shape[-1] - 1)
    size, per_sentence = (
        math.prod(batch),
        math.prod(shape[-axes:]),
    )  # torch.Size.numel would fix a compiled batch's size
    return place + (torch.arange(size, device=heads.device) * per_sentence).reshape(*batch, 1)


def _put_on_edges(
    slopes: Tensor, heads: Tensor, labels: Tensor | None, scores: Tensor, lengths: Tensor | None, form: int
) -> Tensor:
    """The sum over trees of their number, on each of their edges."""
    places = _places(heads, labels, scores.shape, form)
    words = real_words(heads.shape[-1], lengths, heads.device)
    numbers = torch.where(words, slopes.unsqueeze(-1), 0.0).expand_as(places)
    flat = torch.zeros(scores.numel(), dtype=scores.dtype, device=scores.device)
    return flat.scatter_add(0, places.reshape(-1), numbers.reshape(-1)).reshape(scores.shape)


def _sum_over_edges(values: Tensor, heads: Tensor, labels: Tensor | None, lengths: Tensor | None, form: int) -> Tensor:
    """The sum of values (*batch, heads, deps(, labels)) over the edges of each tree."""
    places = _places(heads, labels, values.shape, form)
    words = real_words(heads.shape[-1], lengths, heads.device)
    return torch.where(words, values.reshape(-1)[places], 0.0).sum(-1)


# Small things


def _save(ctx: Any, *tensors: Tensor | None) -> None:
    ctx.save_for_backward(*tensors)
    ctx.save_for_forward(*tensors)
    ctx.set_materialize_grads(False)


def _known(value: Tensor, slope: Tensor) -> Tensor:
    """The slope; 0 where there is no value: what others make of its NaN does not come back."""
    return torch.where(value.isfinite(), slope, 0.0)


def _over_edges(numbers: Tensor, form: int) -> Tensor:
    """Numbers per sentence, with axes for the edges."""
    return numbers.reshape(*numbers.shape, *(1,) * edge_axes(form)) if numbers.dim() else numbers


def _without_lead(tensor: Tensor, axes: int) -> Tensor:
    """The sum over all but the last axes."""
    lead = tensor.dim() - axes
    return tensor.sum(tuple(range(lead))) if lead else tensor  # the sum over no axes would be one over all


def _total(parts: Any) -> Any:
    found = list(parts)
    return None if not found else sum(found[1:], found[0])
