"""The steps of a distribution that are torch's own: `_front` has the questions that follow from these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from torch.autograd.function import once_differentiable

import torch
from torch import Tensor

from .._front.derived import Derived
from .._front.form import STRICT, edge_axes
from . import _questions as ask
from ._door import copied, pad, widened
from ._kernels import FULL, as_integers, distribution
from ._operator import in_eager_mode

if TYPE_CHECKING:
    from typing_extensions import Self


class TensorSteps(Derived[Tensor]):
    """Scores are a tensor, lengths one or None."""

    _xp: ClassVar[Any] = torch
    _moved = staticmethod(torch.movedim)  # vmap has no rule for torch.moveaxis

    @property
    def _question(self) -> tuple[Tensor, Tensor | None, int]:
        return self._scores, self._lengths, self._form

    @property
    def _with_gradient(self) -> bool:
        return torch.is_grad_enabled() and self._scores.requires_grad

    @property
    def _may_have_derivative(self) -> bool:
        """Of whatever kind: only reverse mode outside of any transformation can be seen from the tensor."""
        return self._with_gradient or not in_eager_mode((self._scores,))

    def _scores_of(self, heads: Tensor, labels: Tensor | None) -> Tensor:
        return ask.score(self._scores, heads, labels, self._lengths, self._form)

    def _expectation(self, values: Tensor) -> Tensor:
        scores, lengths, form = self._question
        if values.dim() == scores.dim():
            return ask.expectation(scores, values, lengths, form, self._with_gradient)[0]
        wide = self._wide()
        if wide is not self:
            return self._rounded(wide._expectation(values.to(wide._scores.dtype)))  # type: ignore[no-any-return]
        edges = ask.marginals(scores, lengths, form)
        axes = tuple(range(-edge_axes(form), 0))
        return self._where_trees((torch.where(edges > 0.0, values, 0.0) * edges).sum(axes))  # type: ignore[no-any-return]

    def _hessian(self, directions: Tensor) -> Tensor:
        return ask.hessian(self._scores, directions, self._lengths, self._form)

    def _relative_scores(self) -> Tensor:
        return ask.relative_scores(self._scores.detach(), self._lengths, self._form)

    def _possible(self) -> Tensor:
        return ask.marginals(self._scores.detach(), self._lengths, self._form) > 0.0

    def _real_edges(self) -> Tensor:
        return ask.real_edges(*self._question)

    def _agreeing(self, heads: Tensor, labels: Tensor | None) -> Tensor:
        return ask.agreeing_edges(heads, labels, self._scores, self._form)

    def _has_trees(self) -> Tensor | None:
        if self._form & STRICT:
            return None
        return ask.log_partition(self._scores.detach(), self._lengths, self._form, False)[0] > -torch.inf

    def _expanded(self, batch: Sequence[int]) -> Self:
        return self if tuple(batch) == tuple(self.batch_shape) else self.expand(batch)  # type: ignore[attr-defined]

    def _array(self, given: Any) -> Tensor:
        return torch.as_tensor(given, device=self._scores.device)

    def _constant(self, array: Any) -> Tensor:
        return torch.as_tensor(array, device=self._scores.device)

    def _like_scores(self, numbers: Tensor) -> Tensor:
        return numbers.to(self._scores.dtype)

    def _full(self) -> Self:
        return self._in(self._scores if self._scores.dtype in FULL else self._scores.float())

    def _wide(self) -> Self:
        return self._in(widened(self._scores))

    def _for_many(self, heads: Tensor) -> Self:
        """In the widest type if a sentence has several trees: their gradients are summed up there, and rounded once."""
        several = heads.dim() - 1 > len(self.batch_shape)
        return self._wide() if several and self._may_have_derivative else self

    def _in(self, scores: Tensor) -> Self:
        """With these scores, the same in another type, and answers of that type."""
        if scores.dtype == self._dtype:
            return self
        return self._with(scores, self._lengths, dtype=scores.dtype)  # type: ignore[no-any-return]

    def _rounded(self, found: Any) -> Any:
        return [x.to(self._dtype) for x in found] if isinstance(found, list) else found.to(self._dtype)

    _integers = staticmethod(as_integers)
    _copied = staticmethod(copied)
    _fixed = staticmethod(Tensor.detach)
    _pad = staticmethod(pad)


class SignedProduct(torch.autograd.Function):
    """E[product of values], some of them negative: the NumPy side's value, and its gradient by the scores."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, values: Tensor, lengths: Tensor | None, form: int) -> Tensor:
        dist = distribution(scores, lengths, form)
        wide = values.detach().double().cpu().numpy()
        found, gradient = dist.product_expectation(wide, with_grad=True)
        ctx.save_for_backward(torch.from_numpy(gradient).to(scores))
        ctx.axes = edge_axes(form)
        return torch.from_numpy(np.asarray(found)).to(scores)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> Any:
        if ctx.needs_input_grad[1]:
            raise NotImplementedError("there is no derivative by values of which some are negative")
        (gradient,) = ctx.saved_tensors
        return slope[(..., *(None,) * ctx.axes)] * gradient, None, None, None
