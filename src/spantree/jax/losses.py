"""Losses to train parsers with: exact, differentiable, none of them ever NaN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

from jax import Array

from .._front import losses
from .._front.form import UNKNOWN
from .._front.losses import Reduction
from .._front.told import in_jax
from .._options import Layout, OnInfeasible, RootMode, check_flag, integer
from . import _primitives as ask
from .distribution import TreeDistribution


def tree_crf_loss(
    scores: Array | Sequence[Array],
    heads: Array | Sequence[Any],
    *,
    lengths: Any = None,
    mask: Any = None,
    layout: Layout = "head_dep",
    root: RootMode = "single",
    projective: bool = False,
    labels: Array | Sequence[Any] | None = None,
    partial: bool = False,
    ignore_index: int | None = None,
    on_infeasible: OnInfeasible = "raise",
    reduction: Reduction = "mean",
) -> Array:
    """Negative log-likelihood of trees: the loss of a conditional random field.

    Parameters
    ----------
    scores : array (..., n+1, n+1), or (..., n+1, n+1, labels); or a list of matrices of different sizes
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
    if isinstance(scores, (list, tuple)) and all(hasattr(matrix, "shape") for matrix in scores):
        labelled = any(matrix.ndim - jnp.ndim(tree) == 2 for matrix, tree in zip(scores, heads, strict=False))
    else:
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
    partial = check_flag("partial", partial)
    gold = dist._nodes_in(heads, "heads")
    of_edges = None if labels is None else dist._nodes_in(labels, "labels")
    if ignore_index is not None:
        partial, ignore_index = True, integer("ignore_index", ignore_index)
        gold = jnp.where(gold == ignore_index, UNKNOWN, gold)
        of_edges = None if of_edges is None else jnp.where(of_edges == ignore_index, UNKNOWN, of_edges)
    if gold.shape[:-1] != dist.batch_shape:
        raise ValueError(f"heads must be {(*dist.batch_shape, *dist.event_shape)}, not {gold.shape}")
    _, gold, of_edges = dist._read_trees(gold, of_edges, partial)
    if of_edges is None:
        of_edges = jnp.full_like(gold, UNKNOWN) if labelled else gold[..., :0]
    full = dist._full()
    each = ask.crf_loss(*full._question[:2], gold, of_edges, dist._form, partial)
    return dist._rounded(losses.reduced(each, reduction))  # type: ignore[no-any-return]


risk_loss, generalized_expectation_loss, entropy_loss, distillation_loss, hinge_loss = (
    losses.bound(loss, TreeDistribution, Array, __name__, in_jax(loss.__doc__))
    for loss in (
        losses.risk_loss,
        losses.generalized_expectation_loss,
        losses.entropy_loss,
        losses.distillation_loss,
        losses.hinge_loss,
    )
)
