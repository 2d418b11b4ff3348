"""Losses to train parsers with: exact, differentiable, none of them ever NaN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .._front import losses
from .._front.form import UNKNOWN
from .._front.losses import Reduction
from .._front.ragged import stack_nodes
from .._options import Layout, OnInfeasible, RootMode, check_flag, integer
from . import _questions as ask
from ._door import pad, read, read_list
from .distribution import TreeDistribution


def tree_crf_loss(
    scores: Tensor | Sequence[Tensor],
    heads: Tensor | Sequence[Any],
    *,
    lengths: Any = None,
    mask: Any = None,
    layout: Layout = "head_dep",
    root: RootMode = "single",
    projective: bool = False,
    labels: Tensor | Sequence[Any] | None = None,
    partial: bool = False,
    ignore_index: int | None = None,
    on_infeasible: OnInfeasible = "raise",
    reduction: Reduction = "mean",
) -> Tensor:
    """Negative log-likelihood of trees: the loss of a conditional random field.

    Parameters
    ----------
    scores : tensor (..., n+1, n+1), or (..., n+1, n+1, labels); or a list of matrices of different sizes
        As in `TreeDistribution`, and `lengths`, `mask`, `layout`, `root`, `projective` and `on_infeasible` too. That
        edges have labels is seen from `heads`, which has two axes less then.
    heads : integers (..., n+1)
        The gold trees. What stands at ROOT and in the padding does not matter. A list, if the scores are one.
    lengths, mask, layout, root, projective, on_infeasible : optional
        As in `TreeDistribution`.
    labels : integers like `heads`, optional
        Gold labels, with labelled scores.
    partial : bool
        Whether heads (and labels) may be -2, unknown: the loss is then that of all completions together. Without
        labels, all of them are unknown.
    ignore_index : int, optional
        Another number that says that a head or a label is unknown, such as -100.
    reduction : {"mean", "sum", "none"}
        Mean over sentences, their sum, or one loss for each.

    Returns
    -------
    tensor
        A number, or (...) without reduction. inf, with gradient 0, for a sentence whose gold tree is none.

    Examples
    --------
    >>> import torch, spantree.torch
    >>> spantree.torch.tree_crf_loss(torch.zeros(2, 4, 4), torch.tensor([[-1, 0, 1, 1], [-1, 2, 0, 2]]))
    tensor(2.1972)
    >>> spantree.torch.tree_crf_loss(torch.zeros(4, 4), torch.tensor([-1, -100, 0, 2]), ignore_index=-100)
    tensor(1.5041)
    >>> sizes = [torch.zeros(3, 3), torch.zeros(4, 4)]
    >>> spantree.torch.tree_crf_loss(sizes, [torch.tensor([-1, 0, 1]), torch.tensor([-1, 0, 1, 1])], reduction="none")
    tensor([0.6931, 2.1972])
    """
    if isinstance(scores, (list, tuple)):
        scores, heads, labels, lengths, mask = _padded(scores, heads, labels, lengths, mask)
    if not (
        isinstance(scores, Tensor) and isinstance(heads, Tensor) and (labels is None or isinstance(labels, Tensor))
    ):
        raise TypeError("scores, heads and labels must be tensors, or lists, all of them")
    labelled = scores.dim() - heads.dim() == 2
    scores, lengths, form = read(scores, lengths, mask, root, projective, labelled, layout, on_infeasible)
    partial = check_flag("partial", partial)
    if ignore_index is not None:
        partial, ignore_index = True, integer("ignore_index", ignore_index)
        heads = heads.masked_fill(heads == ignore_index, UNKNOWN)
        labels = None if labels is None else labels.masked_fill(labels == ignore_index, UNKNOWN)
    wanted = scores.shape[: -2 if labelled else -1]
    if heads.shape != wanted or (labels is not None and labels.shape != wanted):
        raise ValueError(f"heads (and labels) must be {tuple(wanted)}, not {tuple(heads.shape)}")
    if labelled is (labels is None) and not (partial and labelled):
        raise ValueError("labels are needed with labelled scores, and only with them")
    losses.check_reduction(reduction)
    if reduction != "none":
        return ask.total_crf_loss(scores, heads, labels, lengths, form, partial, reduction == "mean")
    with_gradient = torch.is_grad_enabled() and scores.requires_grad
    return ask.crf_loss(scores, heads, labels, lengths, form, partial, with_gradient)[0]


def _padded(
    scores: Sequence[Any], heads: Any, labels: Any, lengths: Any, mask: Any
) -> tuple[Tensor, Any, Any, Tensor, Tensor | None]:
    """Scores, heads, labels, lengths and mask of sentences in lists as those of one batch."""
    batch, lengths, allowed, sizes = read_list(scores, lengths, mask)

    def stacked(nodes: Any, name: str) -> Any:
        if not isinstance(nodes, (list, tuple)):
            return nodes
        rows = [torch.as_tensor(row, device=batch.device) for row in nodes]
        return stack_nodes(rows, sizes, name, pad, torch.stack)

    return batch, stacked(heads, "heads"), stacked(labels, "labels"), lengths, allowed


risk_loss, generalized_expectation_loss, entropy_loss, distillation_loss, hinge_loss = (
    losses.bound(loss, TreeDistribution, Tensor, __name__, loss.__doc__)
    for loss in (
        losses.risk_loss,
        losses.generalized_expectation_loss,
        losses.entropy_loss,
        losses.distillation_loss,
        losses.hinge_loss,
    )
)
