"""What a distribution can be asked, for tests that must hold whatever the question is."""

from __future__ import annotations

import numpy as np

import spantree

KINDS = {"plain": {}, "multi": {"root": "multi"}, "projective": {"projective": True}, "labelled": {"labelled": True}}
FORMS = ["one", "padded", "listed"]
LAYOUTS = ["head_dep", "dep_head"]


def in_form(matrices, form, layout="head_dep", filler=np.nan):
    """[head, dep] matrices as a caller may hand them in, and what he has to say about it. One: the first of them."""
    if layout == "dep_head":
        matrices = [matrix.swapaxes(0, 1).copy() for matrix in matrices]
    if form != "padded":
        return matrices[0] if form == "one" else matrices, {"layout": layout}
    nodes = [len(matrix) for matrix in matrices]
    padded = np.full((len(nodes), *[max(nodes) + 2] * 2, *matrices[0].shape[2:]), filler, matrices[0].dtype)
    for i, matrix in enumerate(matrices):
        padded[i, : nodes[i], : nodes[i]] = matrix
    return padded, {"layout": layout, "lengths": np.array(nodes) - 1}


def ask_everything(dist, values, other):
    """Every answer, in a fixed order. `values` are numbers per edge, `other` a distribution over the same sentences."""
    best = dist.argmax()
    return [
        best,
        dist.max(),
        dist.topk(3),
        dist.score(best),
        dist.log_partition(),
        dist.log_partition(with_grad=True),
        dist.log_prob(best),
        dist.marginals(),
        dist.entropy(),
        dist.entropy(with_grad=True),
        dist.cross_entropy(other, with_grad=True),
        dist.kl(other, with_grad=True),
        *(dist.renyi_entropy(alpha, with_grad=True) for alpha in (0, 0.5, 1, np.inf)),
        *(dist.norm(p, with_grad=True) for p in (2, np.inf)),
        dist.expectation(values, with_grad=True),
        dist.product_expectation(values, with_grad=True),
        dist.covariance(values, values),
        dist.second_moment(values, "edges"),
        dist.expected_attachment(best, with_grad=True),
        dist.generalized_expectation(values, 1.0, with_grad=True),
        dist.mbr(),
        dist.sample(3, rng=0),
        dist.sample_without_replacement(2, rng=0).heads,
        dist.condition(exclude=[(0, 2)]).marginals(),
    ]


def arrays(answer):
    """The arrays that an answer consists of; numbers are arrays of their own."""
    if isinstance(answer, spantree.Trees):
        answer = [part for part in (answer.heads, answer.scores, answer.labels) if part is not None]
    if isinstance(answer, (list, tuple)):
        return [array for part in answer for array in arrays(part)]
    return [np.asarray(answer)]


def assert_same_bits(answer, expected):
    for got, wanted in zip(arrays(answer), arrays(expected), strict=True):
        np.testing.assert_array_equal(got, wanted, strict=True)
