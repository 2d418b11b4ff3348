"""For the zoo's tests: all trees of a graph, and a chi-square test for samplers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oracle.chi_square import p_value
from oracle.listed import Listed
from spantree.zoo._graph import clean_scores

FALSE_ALARM = 1e-4
"""Probability that a chi-square test of a correct sampler fails, were its seed not fixed."""


class Trees(NamedTuple):
    """All trees of a graph."""

    heads: np.ndarray
    """(T, n+1), without the trees that use a forbidden edge."""
    probs: np.ndarray
    """(T,)."""
    log_z: float

    def total(self, values):
        """Sum of `values` (n+1, n+1, ...) over the edges of each tree: (T, ...)."""
        words = np.arange(1, self.heads.shape[1])
        return np.asarray(values)[self.heads[:, 1:], words].sum(axis=1)

    def marginals(self):
        """Probability of each edge, (n+1, n+1)."""
        nodes = self.heads.shape[1]
        marginals = np.zeros((nodes, nodes))
        for tree, prob in zip(self.heads, self.probs, strict=True):
            marginals[tree[1:], np.arange(1, nodes)] += prob
        return marginals

    def index(self, heads):
        """Row of each of `heads` (k, n+1) in this list; -1 for what is no tree of the graph."""
        rows = {tuple(tree): row for row, tree in enumerate(self.heads.tolist())}
        return np.array([rows.get(tuple(tree), -1) for tree in np.asarray(heads).tolist()])


def all_trees(scores, root) -> Trees:
    """All that the scores allow."""
    listed = Listed(clean_scores(scores), root)
    return Trees(listed.heads, listed.probs, listed.log_partition)


def sampler_p_value(trees: Trees, heads: np.ndarray) -> float:
    """Chi-square test of draws with replacement; draws that are no tree of the graph fail outright."""
    rows = trees.index(heads)
    assert (rows >= 0).all(), "a draw is no tree of the graph"
    return p_value(np.bincount(rows, minlength=len(trees.probs)), trees.probs)


def random_scores(n: int, seed: int, forbid: float = 0.0, scale: float = 1.0) -> np.ndarray:
    """Gaussian scores with rubbish where it must be ignored; a share `forbid` of the edges is forbidden."""
    rng = np.random.default_rng(seed)
    scores = scale * rng.normal(size=(n + 1, n + 1))
    scores[rng.random(scores.shape) < forbid] = -np.inf
    scores[:, 0] = np.nan
    np.fill_diagonal(scores, np.inf)
    return scores


def graphs(root, sizes=(1, 2, 3, 4, 5)):
    """Dense and sparse graphs of each size that have a tree."""
    for n in sizes:
        yield random_scores(n, seed=n)
        sparse = [random_scores(n, seed, forbid=0.5) for seed in range(40)]
        feasible = [scores for scores in sparse if has_tree(scores, root)]
        yield from feasible[:3]


def has_tree(scores, root) -> bool:
    """Whether there is one among all."""
    return Listed(clean_scores(scores), root).feasible
