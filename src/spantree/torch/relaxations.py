"""Gradients through discrete trees: relaxations of the tree, and estimates of the gradient of an expectation.

A tree is drawn, something downstream is computed from it, and the scores should learn. What goes downstream is a tensor
of edges like the scores, or a number f(tree):

    straight_through         a tree; its gradient is that of the marginals            biased, one solve
    perturb_and_marginals    marginals of randomly perturbed scores                   no tree, but differentiable
    implicit_mle             the best tree of perturbed scores                        biased, one more decoding
    score_function           f of trees with replacement, others as the baseline      unbiased
    unordered_set            f of different trees                                     unbiased, less variance
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor

from .._front.form import LABELLED, divided
from .._options import check_choice, number_from_0, positive_integer, positive_number
from .._trees import Trees
from . import _questions as ask
from ._door import divisor, widened
from .distribution import TreeDistribution
from .samples import of_trees, side_by_side


def straight_through(
    dist: TreeDistribution, *, tree: Literal["sample", "argmax"] = "sample", generator: torch.Generator | None = None
) -> Tensor:
    """The edges of a tree, with the gradient of the marginals.

    Parameters
    ----------
    dist : TreeDistribution
        Where the tree comes from.
    tree : {"sample", "argmax"}
        A random tree, or the best one.
    generator : torch.Generator, optional
        Where random bits come from.

    Returns
    -------
    tensor like the scores
        1 at the edges of the tree, 0 elsewhere.

    Notes
    -----
    The straight-through estimator of Bengio, Léonard & Courville (2013), with the marginals in the place of the
    probabilities of independent choices.

    Examples
    --------
    >>> import torch, spantree.torch
    >>> scores = torch.tensor([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]], requires_grad=True)
    >>> edges = spantree.torch.straight_through(spantree.torch.TreeDistribution(scores), tree="argmax")
    >>> edges.detach()
    tensor([[0., 0., 1.],
            [0., 0., 0.],
            [0., 1., 0.]])
    >>> edges[2, 1].backward()
    >>> scores.grad[2, 1]  # the variance of that edge
    tensor(0.0452)
    """
    check_choice("tree", tree, "sample", "argmax")
    found = dist.argmax() if tree == "argmax" else dist.sample(generator=generator)
    edges, marginals = dist.edges_of(found), dist.marginals()
    if isinstance(marginals, list):
        return [_with_slope(tree.to(of.dtype), of) for tree, of in zip(edges, marginals, strict=True)]
    return _with_slope(edges.to(marginals.dtype), marginals)


def perturb_and_marginals(
    dist: TreeDistribution, *, temperature: float = 1.0, generator: torch.Generator | None = None
) -> Tensor:
    """Marginals of the distribution with Gumbel noise on every edge's score.

    Parameters
    ----------
    dist : TreeDistribution
        Whose scores are perturbed.
    temperature : float
        What perturbed scores are divided by: towards 0 the marginals become a tree.
    generator : torch.Generator, optional
        Where the noise comes from.

    Returns
    -------
    tensor like the scores
        Random, and differentiable by the scores.

    Notes
    -----
    A stochastic softmax trick (Paulus et al. 2020); Corro & Titov (2019) perturb and parse.

    Examples
    --------
    >>> import torch, spantree.torch
    >>> scores = torch.zeros(4, 4, requires_grad=True)
    >>> soft = spantree.torch.perturb_and_marginals(spantree.torch.TreeDistribution(scores), temperature=0.5)
    >>> torch.allclose(soft.sum(0)[1:], torch.ones(3))
    True
    """
    by = divisor(temperature)
    wide = widened(dist._scores)
    perturbed = divided(torch, wide + _gumbel(wide, generator), by)
    return dist._with(perturbed, dist._lengths).marginals()


def implicit_mle(
    dist: TreeDistribution,
    *,
    step: float = 10.0,
    temperature: float = 1.0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """The edges of the best tree of perturbed scores, with the gradient of implicit maximum likelihood estimation.

    Parameters
    ----------
    dist : TreeDistribution
        Whose scores are perturbed.
    step : float
        How far the scores move against the incoming gradient to find the tree that would have been better.
    temperature : float
        What the Gumbel noise is multiplied by; 0 is none.
    generator : torch.Generator, optional
        Where the noise comes from.

    Returns
    -------
    tensor like the scores
        1 at the edges of the tree, 0 elsewhere.

    Notes
    -----
    Backward, with g the incoming gradient: ``(best(scores + noise) - best(scores + noise - step * g)) / step``
    (I-MLE: Niepert, Minervini & Franceschi 2021).

    Examples
    --------
    >>> import torch, spantree.torch
    >>> scores = torch.tensor([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]], requires_grad=True)
    >>> edges = spantree.torch.implicit_mle(spantree.torch.TreeDistribution(scores), temperature=0.0)
    >>> edges[2, 1].backward()
    >>> scores.grad
    tensor([[ 0.0000, -0.1000,  0.1000],
            [ 0.0000,  0.0000, -0.1000],
            [ 0.0000,  0.1000,  0.0000]])
    """
    step, temperature = positive_number("step", step), number_from_0("temperature", temperature)
    scores, lengths, form = dist._question
    noise = (temperature * _gumbel(widened(scores), generator)).to(scores.dtype)
    return dist._edges_out(_ImplicitMLE.apply(scores, noise, lengths, form, step))  # type: ignore[no-any-return]


class _ImplicitMLE(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(scores: Tensor, noise: Tensor, lengths: Tensor | None, form: int, step: float) -> Tensor:
        return _best_edges(scores + noise, lengths, form)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        scores, noise, lengths, ctx.form, ctx.step = inputs
        ctx.save_for_backward(scores, noise, lengths, output)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Any:
        scores, noise, lengths, edges = ctx.saved_tensors
        better = _best_edges(scores + noise - ctx.step * gradient, lengths, ctx.form)
        return (edges - better) / ctx.step, None, None, None, None


def _best_edges(scores: Tensor, lengths: Tensor | None, form: int) -> Tensor:
    heads, labels = ask.argmax(scores, lengths, form)
    agrees = ask.agreeing_edges(heads, labels if form & LABELLED else None, scores, form)
    return (agrees & ask.real_edges(scores, lengths, form)).to(scores.dtype)


def score_function(
    dist: TreeDistribution,
    f: Callable[..., Tensor],
    k: int,
    *,
    generator: torch.Generator | None = None,
) -> Tensor:
    """An unbiased estimate of E[f(tree)], and with it of its gradient, from k independent trees.

    Parameters
    ----------
    dist : TreeDistribution
        What trees are drawn from.
    f : function
        Of heads ``(k, ..., n+1)`` (labelled: and labels) to numbers ``(k, ...)``; it may have parameters of its own. Of
        scores in a list, of the heads of one sentence.
    k : int
        How many trees; at least 2.
    generator : torch.Generator, optional
        Where random bits come from.

    Returns
    -------
    tensor (...)
        The mean of f. Its gradient by the scores is the score-function gradient, in which the mean of the other trees
        is every tree's baseline (Kool, van Hoof & Welling 2019).

    Examples
    --------
    >>> import torch, spantree.torch
    >>> scores = torch.zeros(2, 4, 4, requires_grad=True)
    >>> dist = spantree.torch.TreeDistribution(scores)
    >>> spantree.torch.score_function(dist, lambda heads: (heads[..., 1] == 0).float(), 16).sum().backward()
    >>> scores.grad.shape
    torch.Size([2, 4, 4])
    """
    if positive_integer("k", k) < 2:
        raise ValueError(f"k must be at least 2, so that trees can be each other's baseline, not {k!r}")
    trees = dist.sample(k, generator=generator)
    values = of_trees(f, trees.heads, trees.labels) if isinstance(trees, Trees) else of_trees(f, trees)
    others = (values.sum(0) - values) / (k - 1)
    return _with_gradient(values.mean(0), (values - others).detach() / k, dist.log_prob(trees))


def unordered_set(
    dist: TreeDistribution,
    f: Callable[..., Tensor],
    k: int,
    *,
    generator: torch.Generator | None = None,
) -> Tensor:
    """An unbiased estimate of E[f(tree)], and with it of its gradient, from k different trees.

    Parameters
    ----------
    dist : TreeDistribution
        What trees are drawn from, without replacement.
    f : function
        Of heads ``(k, ..., n+1)`` (labelled: and labels) to numbers ``(k, ...)``; it may have parameters of its own. Of
        scores in a list, of the heads of one sentence.
    k : int
        How many trees; at least 2. Where there are fewer, the result is exact; f is called with heads -1 for what is
        missing, and what it says of them does not matter.
    generator : torch.Generator, optional
        Where random bits come from.

    Returns
    -------
    tensor (...)
        The importance-weighted mean of f. Its gradient by the scores is that of the unordered-set estimator with
        built-in baseline (Kool, van Hoof & Welling 2020).

    Examples
    --------
    >>> import torch, spantree.torch
    >>> scores = torch.zeros(4, 4, requires_grad=True)
    >>> dist = spantree.torch.TreeDistribution(scores)
    >>> spantree.torch.unordered_set(dist, lambda heads: (heads[..., 1] == 0).float(), 9).detach()  # all trees: exact
    tensor(0.3333)
    """
    if positive_integer("k", k) < 2:
        raise ValueError(f"k must be at least 2, so that trees can be each other's baseline, not {k!r}")
    sample = dist.sample_without_replacement(k, generator=generator)
    values, log_probs = of_trees(f, sample.heads, sample.labels), side_by_side(sample.log_probs)
    weights = side_by_side(sample.gradient_weights(values))
    return _with_gradient(sample.estimate(values), weights, torch.where(log_probs > -torch.inf, log_probs, 0.0))


def _with_gradient(value: Tensor, weights: Tensor, log_probs: Tensor) -> Tensor:
    """The value, with the gradient of the weighted sum of log-probabilities on top of its own."""
    return _with_slope(value, (weights * log_probs).sum(0))


def _with_slope(value: Tensor, of: Tensor) -> Tensor:
    """The value, to the last bit, with the gradient of something else on top of its own."""
    return value + (of - of.detach())


def _gumbel(like: Tensor, generator: torch.Generator | None) -> Tensor:
    """Standard Gumbel noise, minus the logarithm of a standard exponential variable, for the widest type: in half
    precision such a variable can be 0."""
    return -torch.empty_like(like, requires_grad=False).exponential_(generator=generator).log()
