"""What scores and heads must be, as `torch.distributions` asks for it."""

from __future__ import annotations

from typing import Any

from torch.distributions import constraints

import torch
from torch import Tensor


class ScoresOf(constraints.Constraint):
    """Numbers or -inf, but in column 0 and on the diagonal, where anything may stand."""

    def __init__(self, event_dim: int) -> None:
        self.event_dim = event_dim

    def __repr__(self) -> str:
        return f"ScoresOf(event_dim={self.event_dim})"

    def check(self, value: Tensor) -> Tensor:
        fine = ~(value.isnan() | (value == torch.inf))
        nodes = torch.arange(value.shape[-self.event_dim], device=value.device)
        edge = (nodes != nodes.unsqueeze(-1)) & (nodes > 0)
        fine = fine | ~(edge.unsqueeze(-1) if self.event_dim == 3 else edge)
        return fine.flatten(-self.event_dim).all(-1)


class TreesOf(constraints.Constraint):
    """Heads that are a tree of a distribution."""

    is_discrete = True
    event_dim = 1

    def __init__(self, dist: Any) -> None:
        self._dist = dist

    def __repr__(self) -> str:
        return f"TreesOf({self._dist!r})"

    def check(self, value: Any) -> Tensor:
        with torch.no_grad():
            return self._dist.score(value) > -torch.inf  # type: ignore[no-any-return]
