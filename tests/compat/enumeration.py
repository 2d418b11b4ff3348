"""All trees of a small sentence with their probabilities: what the stand-ins are compared with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spantree import zoo


@dataclass
class Enumerated:
    """One sentence: scores ``[head, dependent]`` (n+1, n+1), or (n+1, n+1, L) with labels summed out."""

    scores: np.ndarray
    root: str
    projective: bool = False

    @cached_property
    def heads(self):
        return zoo.enumerate_trees(len(self.scores) - 1, self.root, self.projective)

    @cached_property
    def totals(self):
        edges = np.logaddexp.reduce(self.scores, axis=2) if self.scores.ndim == 3 else self.scores
        words = np.arange(1, len(self.scores))
        return edges[self.heads[:, 1:], words].sum(axis=1)

    @property
    def log_partition(self):
        return np.logaddexp.reduce(self.totals)

    @property
    def log_probs(self):
        return self.totals - self.log_partition

    @property
    def entropy(self):
        return -(np.exp(self.log_probs) * self.log_probs).sum()

    def cross_entropy(self, other):
        return -(np.exp(self.log_probs) * other.log_probs).sum()

    @property
    def matrices(self):
        """0/1 matrices of all trees, [head, dependent]."""
        nodes = np.arange(len(self.scores))
        return (self.heads[:, None, :] == nodes[:, None]).astype(float)

    @property
    def marginals(self):
        return np.einsum("t,thd->hd", np.exp(self.log_probs), self.matrices)

    def best(self, k):
        order = np.argsort(-self.totals)[:k]
        return self.heads[order], self.totals[order]
