"""Trees in PyTorch: the same distribution, with tensors in and out and gradients through everything that has one.

>>> import torch, spantree.torch
>>> scores = torch.tensor([[0, 1, 2], [0, 0, 3], [0, 1.5, 0]], requires_grad=True)
>>> spantree.torch.tree_crf_loss(scores, torch.tensor([-1, 0, 1])).backward()
>>> scores.grad.round(decimals=3)
tensor([[ 0.0000, -0.3780,  0.3780],
        [ 0.0000,  0.0000, -0.3780],
        [ 0.0000,  0.3780,  0.0000]])
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError("spantree.torch needs PyTorch: pip install 'spantree[torch]'") from error

from .device import solve_on_device
from .distribution import TreeDistribution
from .losses import (
    distillation_loss,
    entropy_loss,
    generalized_expectation_loss,
    hinge_loss,
    risk_loss,
    tree_crf_loss,
)
from .relaxations import implicit_mle, perturb_and_marginals, score_function, straight_through, unordered_set
from .samples import Sample

__all__ = [
    "Sample",
    "TreeDistribution",
    "distillation_loss",
    "entropy_loss",
    "generalized_expectation_loss",
    "hinge_loss",
    "implicit_mle",
    "perturb_and_marginals",
    "risk_loss",
    "score_function",
    "solve_on_device",
    "straight_through",
    "tree_crf_loss",
    "unordered_set",
]
