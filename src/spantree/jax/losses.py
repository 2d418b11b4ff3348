"""Losses to train parsers with: exact, differentiable, none of them ever NaN."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import jax.numpy as jnp

from jax import Array

from .._options import Layout, OnInfeasible, RootMode
from . import _primitives as ask
from ._form import UNKNOWN
from .distribution import TreeDistribution

if TYPE_CHECKING:
    from typing_extensions import TypedDict, Unpack

    class Options(TypedDict, total=False):
        """What goes with scores into a `TreeDistribution`."""

        lengths: Any
        mask: Array | None
        root: RootMode
        projective: bool
        layout: Layout
        on_infeasible: OnInfeasible


Reduction = Literal["mean", "sum", "none"]


def tree_crf_loss(
    scores: Array,
    heads: Array,
    *,
    lengths: Any = None,
    mask: Array | None = None,
    layout: Layout = "head_dep",
    root: RootMode = "single",
    projective: bool = False,
    labels: Array | None = None,
    partial: bool = False,
    ignore_index: int | None = None,
    on_infeasible: OnInfeasible = "raise",
    reduction: Reduction = "mean",
) -> Array:
    """Negative log-likelihood of trees: the loss of a conditional random field.

    Parameters
    ----------
    scores : array (..., n+1, n+1), or (..., n+1, n+1, labels)
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
    array
        A number, or (...) without reduction. inf, with gradient 0, for a sentence whose gold tree is none.

    Examples
    --------
    >>> import jax.numpy as jnp, spantree.jax
    >>> round(float(spantree.jax.tree_crf_loss(jnp.zeros((2, 4, 4)), jnp.array([[-1, 0, 1, 1], [-1, 2, 0, 2]]))), 4)
    2.1972
    >>> round(float(spantree.jax.tree_crf_loss(jnp.zeros((4, 4)), jnp.array([-1, -100, 0, 2]), ignore_index=-100)), 4)
    1.5041
    """
    scores, heads = jnp.asarray(scores), jnp.asarray(heads)
    labelled = scores.ndim - heads.ndim == 2
    dist = TreeDistribution(
        scores,
        lengths=lengths,
        mask=mask,
        root=root,
        projective=projective,
        labelled=labelled,
        layout=layout,
        on_infeasible=on_infeasible,
    )
    if ignore_index is not None:
        partial = True
        heads = jnp.where(heads == ignore_index, UNKNOWN, heads)
        labels = None if labels is None else jnp.where(jnp.asarray(labels) == ignore_index, UNKNOWN, labels)
    if heads.shape[:-1] != dist.batch_shape:
        raise ValueError(f"heads must be {(*dist.batch_shape, *dist.event_shape)}, not {heads.shape}")
    _, heads, of_edges = dist._read_trees(heads, labels, partial)
    losses = ask.crf_loss(*dist._question[:2], heads, of_edges, dist._form, partial)
    return _reduced(losses, reduction)


def risk_loss(
    scores: Array,
    heads: Array,
    labels: Array | None = None,
    *,
    reduction: Reduction = "mean",
    **options: Unpack[Options],
) -> Array:
    """Minimum risk: the expected share of words with a wrong head (labelled scores: or a wrong label).

    Parameters
    ----------
    scores : array (..., n+1, n+1), or (..., n+1, n+1, labels)
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
    array
        A number, or (...) without reduction; between 0 and 1 for each sentence.

    Notes
    -----
    With attachment scores the risk is a sum over edges, so its expectation is exact: one minus the mean of the gold
    edges' marginals (Smith & Eisner 2006 minimise it by annealing).

    Examples
    --------
    >>> import jax.numpy as jnp, spantree.jax
    >>> round(float(spantree.jax.risk_loss(jnp.zeros((3, 3)), jnp.array([-1, 0, 1]))), 4)
    0.5
    """
    dist = TreeDistribution(scores, labelled=labels is not None, **options)
    return _reduced(dist.risk(heads, labels), reduction)


def generalized_expectation_loss(
    scores: Array,
    values: Array,
    target: Any,
    *,
    labelled: bool = False,
    reduction: Reduction = "mean",
    **options: Unpack[Options],
) -> Array:
    """Generalized expectation: half the squared distance of the expected features from what they should be.

    Parameters
    ----------
    scores : array (..., n+1, n+1), or (..., n+1, n+1, labels)
        As in `TreeDistribution`.
    values : array like the scores, or with one more axis of R features per edge
        Features of the edges.
    target : array (..., R), or (...) where `values` has one feature
        What their expectations should be.
    labelled : bool
        Whether the scores have an axis of labels.
    reduction : {"mean", "sum", "none"}
        Mean over sentences, their sum, or one loss for each.
    **options
        Keywords of `TreeDistribution`: `lengths`, `mask`, `root`, ...

    Returns
    -------
    array
        A number, or (...) without reduction.

    Notes
    -----
    For training without trees, on constraints such as "eighty percent of the verbs have a noun to their left"
    (Druck, Mann & McCallum 2009).

    Examples
    --------
    >>> import jax.numpy as jnp, spantree.jax
    >>> to_the_right = jnp.triu(jnp.ones((4, 4)), 1)
    >>> round(float(spantree.jax.generalized_expectation_loss(jnp.zeros((4, 4)), to_the_right, 3.0)), 4)
    0.5
    """
    dist = TreeDistribution(scores, labelled=labelled, **options)
    return _reduced(dist.generalized_expectation(values, target), reduction)


def entropy_loss(
    scores: Array, *, labelled: bool = False, reduction: Reduction = "mean", **options: Unpack[Options]
) -> Array:
    """Entropy regularisation: add it to a loss for sure distributions, subtract it for flat ones.

    Parameters
    ----------
    scores : array (..., n+1, n+1), or (..., n+1, n+1, labels)
        As in `TreeDistribution`.
    labelled : bool
        Whether the scores have an axis of labels.
    reduction : {"mean", "sum", "none"}
        Mean over sentences, their sum, or one entropy for each.
    **options
        Keywords of `TreeDistribution`: `lengths`, `mask`, `root`, ...

    Returns
    -------
    array
        A number, or (...) without reduction, in nats.

    Examples
    --------
    >>> import jax.numpy as jnp, spantree.jax
    >>> round(float(spantree.jax.entropy_loss(jnp.zeros((5, 4, 4)))), 4)  # nine trees each
    2.1972
    """
    return _reduced(TreeDistribution(scores, labelled=labelled, **options).entropy(), reduction)


def distillation_loss(
    student: Array,
    teacher: Array,
    *,
    temperature: float = 1.0,
    labelled: bool = False,
    reduction: Reduction = "mean",
    **options: Unpack[Options],
) -> Array:
    """Distillation: the KL divergence of the student's distribution over trees from the teacher's.

    Parameters
    ----------
    student, teacher : arrays (..., n+1, n+1), or (..., n+1, n+1, labels)
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
    array
        A number, or (...) without reduction. inf, with gradient 0, where the teacher has a tree that the student has
        not. Gradients flow to both; stop the teacher's to train the student alone.

    Examples
    --------
    >>> import jax.numpy as jnp, spantree.jax
    >>> teacher = jnp.array([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]])
    >>> round(float(spantree.jax.distillation_loss(jnp.zeros((3, 3)), teacher)), 4)
    0.5023
    """
    teaches, learns = (
        TreeDistribution(scores, labelled=labelled, temperature=temperature, **options) for scores in (teacher, student)
    )
    return temperature**2 * _reduced(teaches.kl(learns), reduction)


def hinge_loss(
    scores: Array,
    heads: Array,
    labels: Array | None = None,
    *,
    margin: float = 1.0,
    reduction: Reduction = "mean",
    **options: Unpack[Options],
) -> Array:
    """Structured hinge: how far the gold tree is from beating every other by a margin for each word that differs.

    Parameters
    ----------
    scores : array (..., n+1, n+1), or (..., n+1, n+1, labels)
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
    array
        A number, or (...) without reduction. inf, with gradient 0, for a sentence whose gold tree is none.

    Notes
    -----
    The maximum over trees of score plus cost, by cost-augmented decoding (the cost is a sum over edges too), less the
    gold tree's score (Taskar, Guestrin & Koller 2003).

    Examples
    --------
    >>> import jax.numpy as jnp, spantree.jax
    >>> spantree.jax.hinge_loss(jnp.zeros((3, 3)), jnp.array([-1, 0, 1]))
    Array(2., dtype=float32)
    """
    dist = TreeDistribution(scores, labelled=labels is not None, **options)
    gold = dist.score(heads, labels)
    costly = dist.with_scores(dist.scores + margin * ~dist.edges_of(heads, labels))
    losses = jnp.where(gold > -jnp.inf, costly.max() - jnp.where(gold > -jnp.inf, gold, 0.0), jnp.inf)
    return _reduced(losses, reduction)


def _reduced(losses: Array, reduction: Reduction) -> Array:
    if reduction == "mean":
        return jnp.mean(losses)
    if reduction == "sum":
        return jnp.sum(losses)
    if reduction == "none":
        return losses
    raise ValueError(f'reduction must be "mean", "sum" or "none", not {reduction!r}')
