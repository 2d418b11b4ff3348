"""The law of a sentence's trees in doubles: arrays with one entry per tree that the scores allow."""

from __future__ import annotations

import numpy as np

from oracle.law import Law, floats, to_float


class Listed:
    """`heads` (T, n+1), -1 at ROOT, and for each tree its score and probability."""

    def __init__(self, scores: np.ndarray, root: str = "single", projective: bool = False) -> None:
        law = Law(scores, root, projective)
        self.feasible = law.feasible
        self.heads = law.heads[law.allowed]
        self.scores = self.sums(np.asarray(scores, np.float64))
        if self.feasible:
            self.log_partition = to_float(law.log_partition)
            self.probs = floats(law.probs[law.allowed])
            self.log_probs = floats(law.log_probs[law.allowed])
            self.marginals = floats(law.marginals)
            self.entropy = -self.mean(self.log_probs)
        self._codes = _codes(self.heads)
        self._order = np.argsort(self._codes)

    def __len__(self) -> int:
        return len(self.heads)

    def sums(self, values: np.ndarray) -> np.ndarray:
        """The sum of each tree's values, of edges."""
        return values[self.heads[:, 1:], np.arange(1, len(values))].sum(1)

    @property
    def indicator(self) -> np.ndarray:
        """Which edges each tree has, (T, n+1, n+1)."""
        nodes = self.heads.shape[1]
        has = np.zeros((len(self), nodes, nodes))
        has[np.arange(len(self))[:, None], self.heads[:, 1:], np.arange(1, nodes)] = 1.0
        return has

    def mean(self, of_tree: np.ndarray) -> float:
        """0 times infinity is 0."""
        return float(np.sum(self.probs[self.probs > 0] * of_tree[self.probs > 0]))

    def cross_entropy(self, other: Listed) -> float:
        return -self.mean(other.log_probs)

    def covariance_with_edges(self, of_tree: np.ndarray) -> np.ndarray:
        of_tree = np.where(self.probs > 0, of_tree, 0.0)
        return np.tensordot(self.probs * (of_tree - self.probs @ of_tree), self.indicator, 1)

    def index(self, heads: np.ndarray) -> np.ndarray:
        """Which tree each row of heads is; fails if one is none."""
        codes = _codes(heads)
        at = self._order[np.searchsorted(self._codes, codes, sorter=self._order).clip(max=len(self) - 1)]
        assert (self._codes[at] == codes).all(), "not a tree of the sentence"
        return at


def _codes(heads: np.ndarray) -> np.ndarray:
    """A number for each row."""
    words = heads.shape[-1] - 1
    return heads[..., 1:] @ (words + 1) ** np.arange(words)
