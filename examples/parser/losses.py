"""Losses of a batch: edge scores (B, n+1, n+1) and gold trees in, mean loss per sentence or word out.

A tree with labels has probability p(tree) times the product of p(label | edge): as labels are normalised edge by edge,
the labelled tree CRF splits exactly into a tree CRF of the edges and a cross entropy of the gold edges' labels.
"""

from __future__ import annotations

from collections.abc import Callable

from data import Batch

import spantree.torch
import torch
from torch import Tensor


def head_selection(edges: Tensor, labels: Tensor, batch: Batch) -> Tensor:
    """Each word chooses its head on its own: cross entropy over heads. Knows nothing of trees."""
    log_probs = without_loops_and_padding(edges, batch.lengths).log_softmax(dim=1)
    return (_gold(log_probs, batch) + _gold_labels(labels, batch)).neg()[batch.mask].mean()


def tree_crf(edges: Tensor, labels: Tensor, batch: Batch) -> Tensor:
    """Negative log-likelihood of the labelled gold tree among all trees with one root, per word."""
    trees = spantree.torch.tree_crf_loss(edges, batch.heads, lengths=batch.lengths, reduction="sum")
    return (trees - _gold_labels(labels, batch)[batch.mask].sum()) / batch.lengths.sum()


def crf_and_risk(edges: Tensor, labels: Tensor, batch: Batch) -> Tensor:
    """Tree CRF plus the expected share of words with a wrong head or label (one minus the expected LAS)."""
    marginals = spantree.torch.TreeDistribution(edges, lengths=batch.lengths).marginals()
    right = _gold(marginals, batch) * _gold_labels(labels, batch).exp()
    return tree_crf(edges, labels, batch) + (1 - right[batch.mask]).mean()


def log_determinant(edges: Tensor, labels: Tensor, batch: Batch) -> Tensor:
    """The same value as `tree_crf`, from the determinant of a Laplacian (Koo et al. 2007): for comparison only."""
    words = batch.mask
    edge = words[:, None, :] & (words[:, :, None] | (torch.arange(edges.shape[-1]) == 0)[:, None])
    weights = edges.masked_fill(~edge | torch.eye(edges.shape[-1], dtype=torch.bool), -torch.inf).exp()
    inner = weights[:, 1:, 1:]
    laplacian = torch.diag_embed(inner.sum(dim=1) + ~words[:, 1:]) - inner
    laplacian = torch.cat([weights[:, :1, 1:], laplacian[:, 1:]], dim=1)
    trees = (torch.linalg.slogdet(laplacian).logabsdet - (_gold(edges, batch) * batch.mask).sum(dim=1)).sum()
    return (trees - _gold_labels(labels, batch)[batch.mask].sum()) / batch.lengths.sum()


def without_loops_and_padding(edges: Tensor, lengths: Tensor) -> Tensor:
    """Edge scores with -inf where a word would be its own head, or padding the head."""
    nodes = edges.shape[-1]
    no_head = torch.eye(nodes, dtype=torch.bool) | (torch.arange(nodes) > lengths[:, None])[:, :, None]
    return edges.masked_fill(no_head, -torch.inf)


def _gold(values: Tensor, batch: Batch) -> Tensor:
    """What stands at the gold edges, (B, n+1)."""
    return values.take_along_dim(batch.heads[:, None, :], dim=1).squeeze(1)


def _gold_labels(labels: Tensor, batch: Batch) -> Tensor:
    """Log-probabilities of the gold labels of the gold edges, (B, n+1)."""
    return labels.take_along_dim(batch.labels[..., None], dim=-1).squeeze(-1)


LOSSES: dict[str, Callable[[Tensor, Tensor, Batch], Tensor]] = {
    "head-selection": head_selection,
    "tree-crf": tree_crf,
    "crf-risk": crf_and_risk,
    "log-determinant": log_determinant,
}
