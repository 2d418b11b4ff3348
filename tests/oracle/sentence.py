"""One sentence of the battery: its scores, what is asked about it, and its laws, each found once."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from oracle.law import Law
from oracle.trees import all_trees

TREES = 6  # asked about by `score` and `log_prob`


class Sentence:
    """Scores [head, dep(, label)] and, drawn from their bytes, values, gold trees and a second distribution."""

    def __init__(self, name: str, scores: np.ndarray) -> None:
        self.name, self.scores = name, scores
        self.words = len(scores) - 1
        self.labels = scores.shape[2] if scores.ndim == 3 else 0
        self.answers: dict[Any, Any] = {}
        self._laws: dict[tuple[Any, ...], Law] = {}

    def law(self, root: str, projective: bool, of: str = "scores", power: float = 1.0) -> Law:
        """Of the scores, or of the second distribution's; probabilities may be raised to a power."""
        key = (root, projective, of, power)
        if key not in self._laws:
            law = Law(getattr(self, of), root, projective)
            self._laws[key] = law if power == 1.0 else law.raised(power)
        return self._laws[key]

    def _rng(self, what: str) -> np.random.Generator:
        nothing_read = np.nan_to_num(self.scores.astype(np.float64)).tobytes()
        return np.random.default_rng(list(nothing_read[::7]) + list(what.encode()))

    def _numbers(self, what: str, *more: int) -> np.ndarray:
        """NaN in column 0 and on the diagonal, where no edge is."""
        numbers = self._rng(what).normal(size=(*self.scores.shape, *more))
        numbers[:, 0] = numbers[np.arange(self.words + 1), np.arange(self.words + 1)] = np.nan
        return numbers

    @cached_property
    def other(self) -> np.ndarray:
        """Ordinary scores; or the same ones changed a little; or some forbidden; or masks that trees must use."""
        rng = self._rng("other")
        noise = rng.normal(size=self.scores.shape).astype(self.scores.dtype)
        way = rng.integers(4)
        if way == 0:
            return noise
        if way == 1:
            with np.errstate(over="ignore", invalid="ignore"):
                changed = self.scores + noise
            return np.where(np.isfinite(changed), changed, self.scores)
        if way == 2:
            noise[rng.random(noise.shape) < 0.1] = -np.inf
            return noise
        noise[0] = -1e9
        noise[:, rng.integers(1, self.words + 1) if self.words else 0] -= 1e9
        return noise

    @cached_property
    def conditions(self) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
        """Edges that must, and that must not, be in the tree: one for every second sentence, and one."""
        rng = self._rng("conditions")
        edges = [(h, d) for d in range(1, self.words + 1) for h in range(self.words + 1) if h != d]
        if not edges:
            return [], []
        chosen = [edges[i] for i in rng.integers(len(edges), size=2)]
        if self.labels and rng.random() < 0.5:
            chosen = [(*edge, int(rng.integers(self.labels))) for edge in chosen]
        return chosen[:1] if rng.random() < 0.5 else [], chosen[1:]

    @cached_property
    def conditioned(self) -> np.ndarray:
        scores = self.scores.copy()
        include, exclude = self.conditions
        for edge in include:
            kept = scores[edge].copy()
            scores[:, edge[1]] = -np.inf
            scores[edge] = kept
        for edge in exclude:
            scores[edge] = -np.inf
        return scores

    @cached_property
    def partial(self) -> tuple[np.ndarray, np.ndarray]:
        """Heads and labels of a tree, -2 where they are unknown."""
        rng = self._rng("partial")
        every = all_trees(self.words, "single" if rng.random() < 0.8 else "multi", False)
        heads = every[rng.integers(len(every))].copy()
        labels = rng.integers(0, max(self.labels, 1), size=heads.shape)
        heads[rng.random(heads.shape) < 0.6] = -2
        labels[rng.random(heads.shape) < 0.6] = -2
        heads[0] = labels[0] = rng.choice([-2, -1, 0])
        return heads, labels

    @cached_property
    def completed(self) -> np.ndarray:
        """Scores of the edges that agree with `partial`."""
        heads, labels = self.partial
        scores = np.full_like(self.scores, -np.inf)
        for dep in range(1, self.words + 1):
            head = slice(None) if heads[dep] == -2 else int(heads[dep])
            agree = (head, dep) if not self.labels or labels[dep] == -2 else (head, dep, int(labels[dep]))
            scores[agree] = self.scores[agree]
        return scores

    @cached_property
    def one_tree(self) -> tuple[np.ndarray, np.ndarray]:
        """Heads and labels of one of `trees`, mostly a tree."""
        heads, labels = self.trees
        return heads[0], labels[0]

    @cached_property
    def values(self) -> np.ndarray:
        return self._numbers("values")

    @cached_property
    def features(self) -> np.ndarray:
        return self._numbers("features", 2)

    @cached_property
    def more_features(self) -> np.ndarray:
        return self._numbers("more", 3)

    @cached_property
    def factors(self) -> np.ndarray:
        """Not negative, some of them 0."""
        numbers = np.exp(self._numbers("factors"))
        return np.where(self._rng("zeros").random(numbers.shape) < 0.1, 0.0, numbers)

    @cached_property
    def target(self) -> np.ndarray:
        return self._rng("target").normal(size=2)

    @cached_property
    def gold(self) -> tuple[np.ndarray, np.ndarray]:
        """Heads and labels; rubbish at ROOT; some heads are no node, some labels no label."""
        rng = self._rng("gold")
        heads = rng.integers(0, self.words + 1, size=self.words + 1)
        labels = rng.integers(0, max(self.labels, 1), size=self.words + 1)
        if rng.random() < 0.2:
            heads[-1] = rng.choice([-1, -2, self.words + 1, 10**9])
            labels[-1] = rng.choice([-1, self.labels, 10**9])
        return heads, labels

    @cached_property
    def trees(self) -> tuple[np.ndarray, np.ndarray]:
        """Heads and labels (TREES, n+1): trees of several roots, crossing too, then no trees at all."""
        rng = self._rng("trees")
        every = all_trees(self.words, "multi", False)
        one_root = all_trees(self.words, "single", False)
        heads = np.concatenate(
            [one_root[rng.integers(len(one_root), size=TREES - 2)], every[rng.integers(len(every), size=2)]]
        )
        labels = rng.integers(0, max(self.labels, 1), size=heads.shape)
        heads[:, 0] = rng.choice([0, -1, 99], size=TREES)
        labels[:, 0] = rng.choice([0, -1, 99], size=TREES)
        if self.words:
            heads[-1, -1] = rng.choice([-1, self.words, self.words + 1, -5])
            if self.labels and rng.random() < 0.5:
                labels[-2, -1] = rng.choice([-1, self.labels])
        return heads, labels
