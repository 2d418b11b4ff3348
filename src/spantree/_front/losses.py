"""Losses that are a line each once there is a distribution: written once, bound to that of each front end."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, get_args

import numpy as np

from .._options import check_choice, number_from_0

P = ParamSpec("P")
Reduction = Literal["mean", "sum", "none"]
R = TypeVar("R")


def bound(
    loss: Callable[Concatenate[Any, P], Any], of: type, array: type[R], module: str, doc: str | None
) -> Callable[P, R]:
    """A loss of what `of` makes of scores: a function of the module, whose results are of type `array`."""

    @functools.wraps(loss)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return loss(of, *args, **kwargs)  # type: ignore[no-any-return]

    signature = inspect.signature(loss)
    _, *rest = signature.parameters.values()
    call.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
    call.__module__, call.__doc__ = module, doc
    return call


def check_reduction(reduction: Reduction) -> None:
    check_choice("reduction", reduction, *get_args(Reduction))


def reduced(losses: Any, reduction: Reduction) -> Any:
    check_reduction(reduction)
    return losses if reduction == "none" else losses.mean() if reduction == "mean" else losses.sum()


def risk_loss(
    of: Any,
    scores: Any,
    heads: Any,
    labels: Any = None,
    *,
    reduction: Reduction = "mean",
    **options: Any,
) -> Any:
    """Minimum risk: the expected share of words with a wrong head (labelled scores: or a wrong label).

    Parameters
    ----------
    scores : numbers (..., n+1, n+1), or (..., n+1, n+1, labels)
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
    numbers
        A number, or (...) without reduction; between 0 and 1 for each sentence, 0 if it has no tree.

    Notes
    -----
    With attachment scores the risk is a sum over edges, so its expectation is exact: one minus the mean of the gold
    edges' marginals (Smith & Eisner 2006 minimise it by annealing).

    Examples
    --------
    >>> import torch, spantree.torch
    >>> float(spantree.torch.risk_loss(torch.zeros((3, 3)), torch.asarray([-1, 0, 1])))
    0.5
    """
    dist = of(scores, labelled=labels is not None, **options)
    return reduced(dist._where_trees(dist.risk(heads, labels), 0.0), reduction)


def generalized_expectation_loss(
    of: Any,
    scores: Any,
    values: Any,
    target: Any,
    *,
    labelled: bool = False,
    reduction: Reduction = "mean",
    **options: Any,
) -> Any:
    """Generalized expectation: half the squared distance of the expected features from what they should be.

    Parameters
    ----------
    scores : numbers
        As for `entropy_loss`.
    values : like the scores, or with one more axis of R features per edge
        Features of the edges.
    target : numbers (..., R), or (...) where `values` has one feature
        What their expectations should be.
    labelled, reduction, **options : optional
        As for `entropy_loss`.

    Returns
    -------
    numbers
        A number, or (...) without reduction; 0 for a sentence that has no tree.

    Notes
    -----
    For training without trees, on constraints such as "eighty percent of the verbs have a noun to their left"
    (Druck, Mann & McCallum 2009).

    Examples
    --------
    >>> import torch, spantree.torch
    >>> to_the_right = torch.triu(torch.ones((4, 4)), 1)
    >>> round(float(spantree.torch.generalized_expectation_loss(torch.zeros((4, 4)), to_the_right, 3.0)), 4)
    0.5
    """
    dist = of(scores, labelled=labelled, **options)
    return reduced(dist._where_trees(dist.generalized_expectation(values, target), 0.0), reduction)


def entropy_loss(of: Any, scores: Any, *, labelled: bool = False, reduction: Reduction = "mean", **options: Any) -> Any:
    """Entropy regularisation: add it to a loss for sure distributions, subtract it for flat ones.

    Parameters
    ----------
    scores : numbers (..., n+1, n+1), or (..., n+1, n+1, labels)
        As in `TreeDistribution`.
    labelled : bool
        Whether the scores have an axis of labels.
    reduction : {"mean", "sum", "none"}
        Mean over sentences, their sum, or one number for each.
    **options
        Keywords of `TreeDistribution`: `lengths`, `mask`, `root`, ...

    Returns
    -------
    numbers
        A number, or (...) without reduction, in nats; 0 for a sentence that has no tree.

    Examples
    --------
    >>> import torch, spantree.torch
    >>> round(float(spantree.torch.entropy_loss(torch.zeros((5, 4, 4)))), 4)  # nine trees each
    2.1972
    """
    dist = of(scores, labelled=labelled, **options)
    return reduced(dist._where_trees(dist.entropy(), 0.0), reduction)


def distillation_loss(
    of: Any,
    student: Any,
    teacher: Any,
    *,
    temperature: float = 1.0,
    labelled: bool = False,
    reduction: Reduction = "mean",
    **options: Any,
) -> Any:
    """Distillation: the KL divergence of the student's distribution over trees from the teacher's.

    Parameters
    ----------
    student, teacher : numbers
        Their scores, as for `entropy_loss`.
    temperature : float
        Both are divided by it, and the loss is multiplied by its square, so that the gradient keeps its size (Hinton,
        Vinyals & Dean 2015).
    labelled, reduction, **options : optional
        As for `entropy_loss`.

    Returns
    -------
    numbers
        A number, or (...) without reduction. inf, with gradient 0, where the teacher has a tree that the student has
        not; 0 where the teacher has none. Gradients flow to both; stop the teacher's to train the student alone.

    Examples
    --------
    >>> import torch, spantree.torch
    >>> teacher = torch.asarray([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]])
    >>> round(float(spantree.torch.distillation_loss(torch.zeros((3, 3)), teacher)), 4)
    0.5023
    """
    teaches, learns = (
        of(scores, labelled=labelled, temperature=temperature, **options) for scores in (teacher, student)
    )
    return temperature**2 * reduced(teaches._where_trees(teaches.kl(learns), 0.0), reduction)


def hinge_loss(
    of: Any,
    scores: Any,
    heads: Any,
    labels: Any = None,
    *,
    margin: float = 1.0,
    reduction: Reduction = "mean",
    **options: Any,
) -> Any:
    """Structured hinge: how far the gold tree is from beating every other by a margin for each word that differs.

    Parameters
    ----------
    scores, heads, labels, reduction, **options
        As for `risk_loss`.
    margin : float
        Cost of a wrong head (or label).

    Returns
    -------
    numbers
        A number, or (...) without reduction. inf, with gradient 0, for a sentence whose gold tree is none.

    Notes
    -----
    The maximum over trees of score plus cost, by cost-augmented decoding (the cost is a sum over edges too), less the
    gold tree's score (Taskar, Guestrin & Koller 2003).

    Examples
    --------
    >>> import torch, spantree.torch
    >>> float(spantree.torch.hinge_loss(torch.zeros((3, 3)), torch.asarray([-1, 0, 1])))
    2.0
    """
    if isinstance(margin, float) or not hasattr(margin, "dtype") or isinstance(margin, (np.generic, np.ndarray)):
        margin = number_from_0("margin", margin)  # others may be traced
    given = of(scores, labelled=labels is not None, **options)
    dist = given._wide()
    gold = dist.score(heads, labels)
    where, is_tree = of._xp.where, gold > -math.inf
    costs = where(dist._edges_of(heads, labels), dist._scores, dist._scores + margin)
    costly = dist._with(costs, dist._lengths)
    return given._rounded(reduced(where(is_tree, costly.max() - where(is_tree, gold, 0.0), math.inf), reduction))
