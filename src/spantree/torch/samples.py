"""Trees drawn without replacement, as tensors, and what can be estimated from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import torch
from torch import Tensor

from .._estimators import _unordered_set_weights
from ._operator import constant


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Sample:
    """Different trees of each sentence, in the order in which they were drawn, without replacement.

    Where a sentence has fewer than k trees, it has all of them, and then heads are -1 and log-probabilities -inf.
    If the scores came as a list, heads, labels, log-probabilities and keys are lists of (k, n+1) or (k,).

    Attributes
    ----------
    heads : int64 tensor (k, ..., n+1)
    labels : int64 tensor (k, ..., n+1), or None
        If the scores are labelled; then it is labelled trees that are different.
    log_probs : tensor (k, ...)
        Each tree's exact log-probability under the distribution; differentiable by the scores.
    keys : tensor (k, ...)
        Gumbel keys, decreasing: the k largest of one independent key per tree, with location its log-probability.
    threshold : tensor (...)
        The next largest key; -inf if all trees were drawn.
    log_remaining : tensor (...)
        Log of the mass of the trees not drawn.

    Examples
    --------
    >>> import torch, spantree.torch
    >>> dist = spantree.torch.TreeDistribution(torch.tensor([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]]))
    >>> sample = dist.sample_without_replacement(2)
    >>> sample.estimate((sample.heads[:, 1] == 2).float())  # all trees were drawn: exact
    tensor(0.9526)
    """

    heads: Any
    labels: Any
    log_probs: Any
    keys: Any
    threshold: Tensor
    log_remaining: Tensor

    def __len__(self) -> int:
        return len(side_by_side(self.log_probs))

    def estimate(self, values: Tensor | list[Tensor] | Callable[..., Tensor]) -> Tensor:
        """An unbiased estimate of E[f(tree)].

        Parameters
        ----------
        values : tensor (k, ..., *shape), or a function
            f of every tree; or f itself, of all heads (labelled: and labels) at once. Of scores in a list: a list of
            ``(k, *shape)``, or f of the heads of one sentence.

        Returns
        -------
        tensor (..., *shape)
            Exact if all trees were drawn.

        Notes
        -----
        Every tree counts p / q, q = 1 - exp(-exp(log p - threshold)) the probability that a key exceeds the threshold
        (Kool, van Hoof & Welling 2019).

        Examples
        --------
        >>> import torch, spantree.torch
        >>> sample = spantree.torch.TreeDistribution(torch.zeros(4, 4)).sample_without_replacement(9)
        >>> sample.estimate(lambda heads: (heads == 0).sum(-1).float())
        tensor(1.0000)
        """
        if callable(values):
            values = of_trees(values, self.heads, self.labels)
        values, log_probs = side_by_side(values), side_by_side(self.log_probs)
        there = log_probs > -torch.inf
        log_p = torch.where(there, log_probs.detach(), 0.0).double()
        time = torch.where(there, log_p - self.threshold.double(), 0.0)
        # 1 - exp(-t) is t, to all digits, below exp(-37), and 1 above exp(5).
        log_seen = torch.where(time < -37.0, time, torch.log(-torch.expm1(-time.clamp(-37.0, 5.0).exp())))
        weights = torch.where(there, (log_p - log_seen).exp(), 0.0).to(log_probs.dtype)
        axes = (1,) * (values.dim() - weights.dim())
        wide = weights.reshape(*weights.shape, *axes)
        return (torch.where(wide > 0.0, values, 0.0) * wide).sum(0)

    def gradient_weights(self, values: Tensor | list[Tensor]) -> Any:
        """Weights for the score-function gradient: ``sum_i weight_i * grad log p(tree_i)`` is an unbiased grad E[f].

        Parameters
        ----------
        values : tensor (k, ...), or a list of tensors (k,)
            f of every tree.

        Returns
        -------
        tensor (k, ...), or a list of tensors (k,)
            Without gradient; 0 where there is no tree.

        Notes
        -----
        The unordered-set estimator with built-in baseline of Kool, van Hoof & Welling (2020); see
        `spantree.Sample.gradient_weights`.

        Examples
        --------
        >>> import torch, spantree.torch
        >>> dist = spantree.torch.TreeDistribution(torch.tensor([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]]))
        >>> sample = dist.sample_without_replacement(2)
        >>> sample.gradient_weights((sample.heads[:, 1] == 2).float()).abs()
        tensor([0.0452, 0.0452])
        """
        log_probs, f = side_by_side(self.log_probs), side_by_side(values)
        found = _gradient_weights(log_probs, self.log_remaining, f.expand(log_probs.shape))
        return list(found.unbind(1)) if isinstance(self.log_probs, list) else found

    def __repr__(self) -> str:
        return f"Sample({len(self)} trees, batch_shape: {tuple(self.threshold.shape)})"


def _weights_by_sentence(log_probs: Tensor, log_remaining: Tensor, values: Tensor) -> Tensor:
    """Of trees (k, ...), their sentences' remaining mass (...), and f of the trees (k, ...)."""
    k = len(log_probs)
    logs, f = (x.double().cpu().reshape(k, log_remaining.numel()).numpy() for x in (log_probs, values))
    rest = log_remaining.double().cpu().reshape(-1).tolist()
    columns: list[Any] = [_unordered_set_weights(logs[:, i], rest[i], f[:, i]) for i in range(len(rest))]
    weights = np.stack(columns, 1) if columns else np.zeros((k, 0))
    return torch.from_numpy(weights).reshape(log_probs.shape).to(log_probs)


_gradient_weights = constant(
    "unordered_set_weights", "Tensor log_probs, Tensor log_remaining, Tensor values", _weights_by_sentence, (1, 0, 1)
)


def side_by_side(numbers: Tensor | list[Tensor]) -> Tensor:
    """Of trees (k, ...), or of each sentence's (k, *shape) with an axis for the sentences."""
    return torch.stack(numbers, 1) if isinstance(numbers, list) else numbers


def of_trees(f: Callable[..., Tensor], heads: Any, labels: Any = None) -> Tensor:
    """f of all trees; of each sentence's, if they are in a list."""
    trees = (heads,) if labels is None else (heads, labels)
    return torch.stack([f(*tree) for tree in zip(*trees, strict=True)], 1) if isinstance(heads, list) else f(*trees)
