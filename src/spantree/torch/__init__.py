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

from .distribution import TreeDistribution
from .losses import tree_crf_loss

__all__ = ["TreeDistribution", "tree_crf_loss"]
