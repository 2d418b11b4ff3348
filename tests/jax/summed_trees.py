"""Distributions as lists of all their trees, in JAX operations: values and derivatives of every order."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax.nn import logsumexp

from oracle.trees import all_labelled_trees, all_trees

KINDS = {
    "single": {},
    "multi": {"root": "multi"},
    "projective": {"projective": True},
    "projective-multi": {"projective": True, "root": "multi"},
    "labelled": {"labelled": True},
    "labelled-multi": {"labelled": True, "root": "multi"},
    "labelled-projective": {"labelled": True, "projective": True},
}
LENGTHS = np.array([3, 2, 1])
NODES = 5  # one more than the longest sentence needs


class Summed:
    """One sentence's distribution. Scores (n+1, n+1), or (n+1, n+1, labels); `allowed` says which edges are."""

    def __init__(self, scores, allowed, root="single", projective=False, labelled=False):
        self.words = len(scores) - 1
        if labelled:
            heads, labels = all_labelled_trees(self.words, scores.shape[2], root, projective)
        else:
            heads = all_trees(self.words, root, projective)
            labels = None
        heads = np.asarray(heads)
        deps = np.arange(1, self.words + 1)
        self.where = (heads[:, 1:], deps) if labels is None else (heads[:, 1:], deps, np.asarray(labels)[:, 1:])
        kept = allowed[self.where].all(1)
        self.where = tuple(x[kept] if x.ndim > 1 else x for x in self.where)
        self.scores = self.sums(scores)
        self.log_z = logsumexp(self.scores)
        self.log_probs = self.scores - self.log_z
        self.probs = jnp.exp(self.log_probs)
        self.shape = scores.shape

    def sums(self, values):
        """Of each tree."""
        return values[self.where].sum(1)

    def mean(self, of_tree):
        return jnp.sum(self.probs * of_tree)

    def agrees(self, heads, labels=None):
        """Which trees agree with a partial one."""
        found = ((self.where[0] == heads[1:]) | (heads[1:] == -2)).all(1)
        return found if labels is None else found & ((self.where[2] == labels[1:]) | (labels[1:] == -2)).all(1)

    def agrees_count(self, heads, labels=None):
        """How many words of each tree have that head, and label."""
        found = self.where[0] == heads[1:]
        return (found if labels is None else found & (self.where[2] == labels[1:])).sum(1)

    @property
    def marginals(self):
        deps = np.broadcast_to(self.where[1], self.where[0].shape)
        where = (self.where[0], deps, *self.where[2:])
        return jnp.zeros(self.shape).at[where].add(jnp.broadcast_to(self.probs[:, None], deps.shape))


def problem(kind, seed=0, padding=np.nan):
    """Scores of three sentences and others', values of edges; gold trees and labels, and partial trees.

    The second sentence has a forbidden edge; where there is no edge stands `padding`.
    """
    rng = np.random.default_rng(seed)
    shape = (3, NODES, NODES, 2) if "labelled" in kind else (3, NODES, NODES)
    scores, other, values = rng.normal(size=(3, *shape))
    scores[1, 0, 2] = other[1, 0, 2] = -np.inf
    inside = np.zeros(shape, dtype=bool)
    heads, partial = np.zeros((3, NODES), np.int32), np.full((3, NODES), -2, np.int32)
    for i, n in enumerate(LENGTHS):
        inside[i, : n + 1, 1 : n + 1] = True
        inside[i, range(NODES), range(NODES)] = False
        heads[i, 1 : n + 1] = np.arange(n)  # a chain
        partial[i, n] = n - 1
    labels = rng.integers(0, 2, size=(3, NODES)).astype(np.int32) if "labelled" in kind else None
    scores, other = (np.where(inside, x, padding) for x in (scores, other))
    return scores, other, values, heads, labels, partial


def summed(kind, scores, allowed):
    """One `Summed` for each sentence."""
    return [
        Summed(scores[i, : n + 1, : n + 1], allowed[i, : n + 1, : n + 1], **KINDS[kind]) for i, n in enumerate(LENGTHS)
    ]
