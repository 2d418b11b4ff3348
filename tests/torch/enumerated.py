"""Distributions as lists of all their trees, in differentiable operations: values and derivatives of every order.

And the questions that both sides are asked.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import spantree.torch
import torch
from oracle.trees import all_labelled_trees, all_trees
from spantree import Trees

KINDS = {
    "single": {},
    "multi": {"root": "multi"},
    "projective": {"projective": True},
    "projective-multi": {"projective": True, "root": "multi"},
    "labelled": {"labelled": True},
    "labelled-multi": {"labelled": True, "root": "multi"},
    "labelled-projective": {"labelled": True, "projective": True},
}


class Enumerated:
    """One sentence's distribution. Scores (n+1, n+1), or (n+1, n+1, labels)."""

    def __init__(self, scores, root="single", projective=False, labelled=False):
        self.words, self.labelled = len(scores) - 1, labelled
        if labelled:
            heads, labels = all_labelled_trees(self.words, scores.shape[2], root, projective)
            self.heads, self.labels = torch.tensor(heads), torch.tensor(labels)
        else:
            self.heads, self.labels = torch.tensor(all_trees(self.words, root, projective)), None
        self.shape = scores.shape
        allowed = self.sums((scores == -torch.inf).double()) == 0
        self.heads = self.heads[allowed]
        self.labels = None if self.labels is None else self.labels[allowed]
        self.scores = self.sums(scores)
        self.log_z = self.scores.logsumexp(0)
        self.log_probs = self.scores - self.log_z
        self.probs = self.log_probs.exp()

    def sums(self, values):
        """Of each tree."""
        deps = torch.arange(1, self.words + 1)
        if self.labelled:
            return values[self.heads[:, 1:], deps, self.labels[:, 1:]].sum(1)
        return values[self.heads[:, 1:], deps].sum(1)

    def agrees(self, heads, labels=None):
        """Which trees agree with a partial one."""
        found = ((self.heads == heads) | (heads == -2))[:, 1:].all(1)
        return found if labels is None else found & ((self.labels == labels) | (labels == -2))[:, 1:].all(1)

    def wrong(self, heads, labels=None):
        """How many words of each tree have another head or label."""
        differ = self.heads != heads
        return (differ if labels is None else differ | (self.labels != labels))[:, 1:].sum(1).double()

    @property
    def marginals(self):
        deps = torch.arange(1, self.words + 1).expand(len(self.heads), -1)
        where = (self.heads[:, 1:], deps) if self.labels is None else (self.heads[:, 1:], deps, self.labels[:, 1:])
        return torch.zeros(self.shape).double().index_put(where, self.probs[:, None].expand_as(deps), accumulate=True)

    def mean(self, of_tree):
        return (self.probs * of_tree).sum()

    @property
    def entropy(self):
        return -self.mean(self.log_probs)


@dataclass
class Problem:
    """A padded batch, and its sentences one by one, cut from it."""

    kind: dict
    lengths: torch.Tensor
    scores: torch.Tensor
    other: torch.Tensor
    values: torch.Tensor
    features: torch.Tensor
    heads: torch.Tensor
    labels: torch.Tensor | None
    partial: torch.Tensor

    def dist(self, scores=None, other=False):
        scores = (self.other if other else self.scores) if scores is None else scores
        return spantree.torch.TreeDistribution(scores, lengths=self.lengths, **self.kind)

    @property
    def gold(self):
        return self.heads if self.labels is None else Trees(self.heads, labels=self.labels)

    def sentence(self, i, edges):
        n = int(self.lengths[i])
        return edges[i, : n + 1, : n + 1]

    def enumerated(self, i, scores):
        return Enumerated(self.sentence(i, scores), **self.kind)

    def row(self, i, nodes):
        return None if nodes is None else nodes[i, : int(self.lengths[i]) + 1]


def problem(name, seed=0, padding=math.nan):
    """Three sentences of different lengths; the second has forbidden edges. Where there is no edge stands `padding`."""
    kind = KINDS[name]
    generator = torch.Generator().manual_seed(seed)
    labelled = kind.get("labelled", False)
    lengths = torch.tensor([3, 2, 1] if labelled else [4, 3, 1])
    nodes = int(lengths.max()) + 2
    shape = (3, nodes, nodes, 2) if labelled else (3, nodes, nodes)

    def normal(*more):
        return torch.randn(*shape, *more, generator=generator, dtype=torch.float64)

    scores, other, values, features = normal(), normal(), normal(), normal(2)
    scores[1, 0, 2] = -torch.inf
    other[1, 0, 2] = -torch.inf
    inside = torch.zeros(shape, dtype=torch.bool)
    for i, n in enumerate(lengths.tolist()):
        inside[i, : n + 1, 1 : n + 1] = True
        inside[i, range(nodes), range(nodes)] = False
    heads, labels = torch.zeros(3, nodes, dtype=torch.int64), None
    partial = torch.full((3, nodes), -2)
    for i, n in enumerate(lengths.tolist()):
        heads[i, 1 : n + 1] = torch.arange(n)  # a chain
        partial[i, n] = n - 1
    if labelled:
        labels = torch.randint(0, 2, (3, nodes), generator=generator)
    scores, other = (torch.where(inside, x, padding) for x in (scores, other))
    return Problem(kind, lengths, scores, other, values, features, heads, labels, partial)


# Of the distribution and the problem; of one sentence's enumeration, the problem and the sentence's number.
QUESTIONS = {
    "log_partition": (lambda d, p: d.log_partition(), lambda e, p, i: e.log_z),
    "entropy": (lambda d, p: d.entropy(), lambda e, p, i: e.entropy),
    "max": (lambda d, p: d.max(), lambda e, p, i: e.scores.max()),
    "topk": (
        lambda d, p: d.topk(2).scores[1].where(p.lengths > 1, 0.0),
        lambda e, p, i: e.scores.topk(2).values[1] if p.lengths[i] > 1 else e.log_z * 0,
    ),
    "score": (
        lambda d, p: d.score(p.gold),
        lambda e, p, i: e.scores[e.agrees(p.row(i, p.heads), p.row(i, p.labels))].sum(),
    ),
    "log_prob": (
        lambda d, p: d.log_prob(p.gold),
        lambda e, p, i: e.log_probs[e.agrees(p.row(i, p.heads), p.row(i, p.labels))].sum(),
    ),
    "partial log_prob": (
        lambda d, p: d.log_prob(p.partial, partial=True),
        lambda e, p, i: e.log_probs[e.agrees(p.row(i, p.partial))].logsumexp(0),
    ),
    "renyi 0": (lambda d, p: d.renyi_entropy(0), lambda e, p, i: e.log_z * 0 + math.log(len(e.heads))),
    "renyi 2": (lambda d, p: d.renyi_entropy(2), lambda e, p, i: -(2 * e.log_probs).logsumexp(0)),
    "renyi 1": (lambda d, p: d.renyi_entropy(1), lambda e, p, i: e.entropy),
    "renyi inf": (lambda d, p: d.renyi_entropy(math.inf), lambda e, p, i: -e.log_probs.max()),
    "norm": (lambda d, p: d.norm(3), lambda e, p, i: (e.probs**3).sum() ** (1 / 3)),
    "norm inf": (lambda d, p: d.norm(math.inf), lambda e, p, i: e.probs.max()),
    "expectation": (lambda d, p: d.expectation(p.values), lambda e, p, i: e.mean(e.sums(p.sentence(i, p.values)))),
    "expectations": (
        lambda d, p: d.expectation(p.features)[..., 1],
        lambda e, p, i: e.mean(e.sums(p.sentence(i, p.features)[..., 1])),
    ),
    "product_expectation": (
        lambda d, p: d.product_expectation(p.values.exp()),
        lambda e, p, i: e.mean(e.sums(p.sentence(i, p.values)).exp()),
    ),
    "covariance": (
        lambda d, p: d.covariance(p.values, p.features)[..., 0],
        lambda e, p, i: covariance(e, p.sentence(i, p.values), p.sentence(i, p.features)[..., 0]),
    ),
    "covariances": (
        lambda d, p: d.covariance(p.features, p.features)[..., 0, 1],
        lambda e, p, i: covariance(e, p.sentence(i, p.features)[..., 0], p.sentence(i, p.features)[..., 1]),
    ),
    "second_moment": (
        lambda d, p: d.second_moment(p.features, p.values)[..., 1],
        lambda e, p, i: e.mean(e.sums(p.sentence(i, p.values)) * e.sums(p.sentence(i, p.features)[..., 1])),
    ),
    "risk": (
        lambda d, p: d.risk(p.gold),
        lambda e, p, i: e.mean(e.wrong(p.row(i, p.heads), p.row(i, p.labels))) / e.words,
    ),
    "generalized_expectation": (
        lambda d, p: d.generalized_expectation(p.features, 0.25),
        lambda e, p, i: sum(0.5 * (e.mean(e.sums(p.sentence(i, p.features)[..., r])) - 0.25) ** 2 for r in (0, 1)),
    ),
    "cross_entropy": (
        lambda d, p: d.cross_entropy(p.dist(other=True)),
        lambda e, p, i: -e.mean(p.enumerated(i, p.other).log_probs),
    ),
    "cross_entropy by q": (
        lambda d, p: p.dist(other=True).cross_entropy(d),
        lambda e, p, i: -p.enumerated(i, p.other).mean(e.log_probs),
    ),
    "kl": (
        lambda d, p: d.kl(p.dist(other=True)),
        lambda e, p, i: e.mean(e.log_probs - p.enumerated(i, p.other).log_probs),
    ),
    "kl by q": (
        lambda d, p: torch.distributions.kl_divergence(p.dist(other=True), d),
        lambda e, p, i: p.enumerated(i, p.other).mean(p.enumerated(i, p.other).log_probs - e.log_probs),
    ),
}


def covariance(e, r, s):
    of_r, of_s = e.sums(r), e.sums(s)
    return e.mean(of_r * of_s) - e.mean(of_r) * e.mean(of_s)
