"""Losses to train parsers with: exact, differentiable, none of them ever NaN."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor

from .._options import Layout, OnInfeasible, RootMode
from . import _questions as ask
from ._door import read
from ._kernels import UNKNOWN
from .distribution import TreeDistribution

if TYPE_CHECKING:
    from typing_extensions import TypedDict, Unpack

    class Options(TypedDict, total=False):
        """What goes with scores into a `TreeDistribution`."""

        lengths: Any
        mask: Tensor | None
        root: RootMode
        projective: bool
        layout: Layout
        on_infeasible: OnInfeasible


Reduction = Literal["mean", "sum", "none"]


def tree_crf_loss(
    scores: Tensor,
    heads: Tensor,
    *,
    lengths: Any = None,
    mask: Tensor | None = None,
    layout: Layout = "head_dep",
    root: RootMode = "single",
    projective: bool = False,
    labels: Tensor | None = None,
    partial: bool = False,
    ignore_index: int | None = None,
    on_infeasible: OnInfeasible = "raise",
    reduction: Reduction = "mean",
) -> Tensor:
    """Negative log-likelihood of trees: the loss of a conditional random field.

    Parameters
    ----------
    scores : tensor (..., n+1, n+1), or (..., n+1, n+1, labels)
        As in `TreeDistribution`, and `lengths`, `mask`, `layout`, `root`, `projective` and `on_infeasible` too. That
        edges have labels is seen from `heads`, which has two axes less then.
    heads : integers (..., n+1)
        The gold trees. What stands at ROOT and in the padding does not matter.
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
    """
    labelled = scores.dim() - heads.dim() == 2
    door = read(
        scores,
        lengths,
        mask,
        root=root,
        projective=projective,
        labelled=labelled,
        layout=layout,
        on_infeasible=on_infeasible,
    )
    if ignore_index is not None:
        partial = True
        heads = heads.masked_fill(heads == ignore_index, UNKNOWN)
        labels = None if labels is None else labels.masked_fill(labels == ignore_index, UNKNOWN)
    if heads.shape != door.scores.shape[: heads.dim()] or (labels is not None and labels.shape != heads.shape):
        raise ValueError(
            f"heads (and labels) must be {tuple(door.scores.shape[: heads.dim()])}, not {tuple(heads.shape)}"
        )
    if labelled != (labels is not None) and not (partial and labelled):
        raise ValueError("labels are needed with labelled scores, and only with them")
    if reduction in ("mean", "sum"):
        return ask.total_crf_loss(door.scores, heads, labels, door.lengths, door.form, partial, reduction == "mean")
    with_gradient = torch.is_grad_enabled() and door.scores.requires_grad
    losses = ask.crf_loss(door.scores, heads, labels, door.lengths, door.form, partial, with_gradient)[0]
    return _reduced(losses, reduction)


def risk_loss(
    scores: Tensor,
    heads: Tensor,
    labels: Tensor | None = None,
    *,
    reduction: Reduction = "mean",
    **options: Unpack[Options],
) -> Tensor:
    """Minimum risk: the expected share of words with a wrong head (labelled scores: or a wrong label).

    Parameters
    ----------
    scores : tensor (..., n+1, n+1), or (..., n+1, n+1, labels)
        As in `TreeDistribution`; that edges have labels is seen from `labels`.
    heads : integers (..., n+1)
        The gold trees; they may be no trees at all.
    labels : integers like `heads`, optional
        Gold labels, with labelled scores.
    reduction : {"mean", "sum", "none"}
        Mean over sentences, their sum, or one loss for each.
    **options
        Keywords of `TreeDistribution`: `lengths`, `mask`, `root`, ...

    Returns
    -------
    tensor
        A number, or (...) without reduction; between 0 and 1 for each sentence.

    Notes
    -----
    With attachment scores the risk is a sum over edges, so its expectation is exact: one minus the mean of the gold
    edges' marginals (Smith & Eisner 2006 minimise it by annealing).

    Examples
    --------
    >>> import torch, spantree.torch
    >>> spantree.torch.risk_loss(torch.zeros(3, 3), torch.tensor([-1, 0, 1]))
    tensor(0.5000)
    """
    dist = TreeDistribution(scores, labelled=labels is not None, **options)
    return _reduced(dist.risk(heads, labels), reduction)


def generalized_expectation_loss(
    scores: Tensor,
    values: Tensor,
    target: Any,
    *,
    labelled: bool = False,
    reduction: Reduction = "mean",
    **options: Unpack[Options],
) -> Tensor:
    """Generalized expectation: half the squared distance of the expected features from what they should be.

    Parameters
    ----------
    scores : tensor (..., n+1, n+1), or (..., n+1, n+1, labels)
        As in `TreeDistribution`.
    values : tensor like the scores, or with one more axis of R features per edge
        Features of the edges.
    target : tensor (..., R), or (...) where `values` has one feature
        What their expectations should be.
    labelled : bool
        Whether the scores have an axis of labels.
    reduction : {"mean", "sum", "none"}
        Mean over sentences, their sum, or one loss for each.
    **options
        Keywords of `TreeDistribution`: `lengths`, `mask`, `root`, ...

    Returns
    -------
    tensor
        A number, or (...) without reduction.

    Notes
    -----
    For training without trees, on constraints such as "eighty percent of the verbs have a noun to their left"
    (Druck, Mann & McCallum 2009).

    Examples
    --------
    >>> import torch, spantree.torch
    >>> to_the_right = torch.ones(4, 4).triu(1)
    >>> spantree.torch.generalized_expectation_loss(torch.zeros(4, 4), to_the_right, 3.0)
    tensor(0.5000)
    """
    dist = TreeDistribution(scores, labelled=labelled, **options)
    return _reduced(dist.generalized_expectation(values, target), reduction)


def entropy_loss(
    scores: Tensor, *, labelled: bool = False, reduction: Reduction = "mean", **options: Unpack[Options]
) -> Tensor:
    """Entropy regularisation: add it to a loss for sure distributions, subtract it for flat ones.

    Parameters
    ----------
    scores : tensor (..., n+1, n+1), or (..., n+1, n+1, labels)
        As in `TreeDistribution`.
    labelled : bool
        Whether the scores have an axis of labels.
    reduction : {"mean", "sum", "none"}
        Mean over sentences, their sum, or one entropy for each.
    **options
        Keywords of `TreeDistribution`: `lengths`, `mask`, `root`, ...

    Returns
    -------
    tensor
        A number, or (...) without reduction, in nats.

    Examples
    --------
    >>> import torch, spantree.torch
    >>> spantree.torch.entropy_loss(torch.zeros(5, 4, 4))  # nine trees each
    tensor(2.1972)
    """
    return _reduced(TreeDistribution(scores, labelled=labelled, **options).entropy(), reduction)


def distillation_loss(
    student: Tensor,
    teacher: Tensor,
    *,
    temperature: float = 1.0,
    labelled: bool = False,
    reduction: Reduction = "mean",
    **options: Unpack[Options],
) -> Tensor:
    """Distillation: the KL divergence of the student's distribution over trees from the teacher's.

    Parameters
    ----------
    student, teacher : tensors (..., n+1, n+1), or (..., n+1, n+1, labels)
        Their scores, as in `TreeDistribution`.
    temperature : float
        Both are divided by it, and the loss is multiplied by its square, so that the gradient keeps its size (Hinton,
        Vinyals & Dean 2015).
    labelled : bool
        Whether the scores have an axis of labels.
    reduction : {"mean", "sum", "none"}
        Mean over sentences, their sum, or one loss for each.
    **options
        Keywords of `TreeDistribution`: `lengths`, `mask`, `root`, ...

    Returns
    -------
    tensor
        A number, or (...) without reduction. inf, with gradient 0, where the teacher has a tree that the student has
        not. Gradients flow to both; detach the teacher to train the student alone.

    Examples
    --------
    >>> import torch, spantree.torch
    >>> teacher = torch.tensor([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]])
    >>> spantree.torch.distillation_loss(torch.zeros(3, 3), teacher)
    tensor(0.5023)
    """
    teaches, learns = (
        TreeDistribution(scores, labelled=labelled, temperature=temperature, **options) for scores in (teacher, student)
    )
    return temperature**2 * _reduced(teaches.kl(learns), reduction)


def hinge_loss(
    scores: Tensor,
    heads: Tensor,
    labels: Tensor | None = None,
    *,
    margin: float = 1.0,
    reduction: Reduction = "mean",
    **options: Unpack[Options],
) -> Tensor:
    """Structured hinge: how far the gold tree is from beating every other by a margin for each word that differs.

    Parameters
    ----------
    scores : tensor (..., n+1, n+1), or (..., n+1, n+1, labels)
        As in `TreeDistribution`; that edges have labels is seen from `labels`.
    heads : integers (..., n+1)
        The gold trees.
    labels : integers like `heads`, optional
        Gold labels, with labelled scores.
    margin : float
        Cost of a wrong head (or label).
    reduction : {"mean", "sum", "none"}
        Mean over sentences, their sum, or one loss for each.
    **options
        Keywords of `TreeDistribution`: `lengths`, `mask`, `root`, ...

    Returns
    -------
    tensor
        A number, or (...) without reduction. inf, with gradient 0, for a sentence whose gold tree is none.

    Notes
    -----
    The maximum over trees of score plus cost, by cost-augmented decoding (the cost is a sum over edges too), less the
    gold tree's score (Taskar, Guestrin & Koller 2003).

    Examples
    --------
    >>> import torch, spantree.torch
    >>> spantree.torch.hinge_loss(torch.zeros(3, 3), torch.tensor([-1, 0, 1]))
    tensor(2.)
    """
    dist = TreeDistribution(scores, labelled=labels is not None, **options)
    gold = dist.score(heads, labels)
    costly = dist.with_scores(torch.where(dist.edges_of(heads, labels), dist.scores, dist.scores + margin))
    is_tree = gold > -torch.inf
    return _reduced(torch.where(is_tree, costly.max() - torch.where(is_tree, gold, 0.0), torch.inf), reduction)


def _reduced(losses: Tensor, reduction: Reduction) -> Tensor:
    if reduction == "mean":
        return losses.mean()
    if reduction == "sum":
        return losses.sum()
    if reduction == "none":
        return losses
    raise ValueError(f'reduction must be "mean", "sum" or "none", not {reduction!r}')
