"""The accuracy that each animal of inference states in its docstring is the one that is measured.

On twenty graphs of five words with several roots and root scores around -14 nats: the walk between words is long, and
the inverse of the Laplacian large. Exact values by going through all trees, with 50-digit probabilities.
"""

from __future__ import annotations

from collections import Counter

import mpmath
import numpy as np
import pytest
from tree_oracle import all_trees, random_scores

from spantree import zoo
from spantree.zoo.gradients import expectation_gradient
from spantree.zoo.matrix_tree import invert
from spantree.zoo.t2 import second_order as by_t2
from spantree.zoo.t2h import second_order as by_t2h
from spantree.zoo.t2v import second_order as by_t2v

N = 5
WORDS = np.arange(1, N + 1)
TRUE = np.ones((N + 1, N + 1), dtype=bool) & ~np.eye(N + 1, dtype=bool)
TRUE[:, 0] = False
GOLD, LABELS = np.array([-1, 0, 1, 2, 3, 1]), np.array([-1, 0, 1, 0, 1, 1])

STATED = {
    "matrix_tree: log Z": (zoo.matrix_tree, "2e-9"),
    "matrix_tree: marginals": (zoo.matrix_tree, "1e-9"),
    "adjugate_gradient": (zoo.adjugate_gradient, "1e-9"),
    "t1": (zoo.t1, "4e-9"),
    "t2": (zoo.t2, "2e-9"),
    "t2h": (zoo.t2h, "2e-9"),
    "t2v": (zoo.t2v, "6e-3"),
    "zeroth_order": (zoo.zeroth_order, "5e-7"),
    "renyi_entropy": (zoo.renyi_entropy, "4e-3"),
    "norm": (zoo.norm, "2e-4"),
    "entropy": (zoo.entropy, "2e-8"),
    "entropy_smith_eisner": (zoo.entropy_smith_eisner, "3e-8"),
    "kl": (zoo.kl, "6e-9"),
    "cross_entropy": (zoo.cross_entropy, "3e-8"),
    "risk": (zoo.risk, "1e-10"),
    "labelled_risk": (zoo.labelled_risk, "6e-11"),
    "entropy_gradient": (zoo.entropy_gradient, "8e-9"),
    "cross_entropy_gradient": (zoo.cross_entropy_gradient, "8e-9"),
    "kl_gradient": (zoo.kl_gradient, "6e-10"),
    "kl_gradient by q": (zoo.kl_gradient, "5e-9"),
    "risk_gradient": (zoo.risk_gradient, "2e-10"),
    "labelled_risk_gradient": (zoo.labelled_risk_gradient, "7e-11"),
    "generalized_expectation by T2": (zoo.generalized_expectation, "1e-9"),
    "generalized_expectation by T2v": (zoo.generalized_expectation, "9e-3"),
    "generalized_expectation_druck_smith": (zoo.generalized_expectation_druck_smith, "1e-9"),
    "mean_steps": (zoo.mean_steps, "2e-9"),
}


@pytest.fixture(scope="module")
def measured():
    errors = Counter()
    for seed in range(20):
        for name, (found, exact) in quantities(seed):
            error = np.abs(np.asarray(found) - exact).max()
            assert np.isfinite(error), name
            errors[name] = max(errors[name], float(error))
    return errors


def quantities(seed):
    """What the animals find on one graph, and what is right."""
    scores = np.where(TRUE, random_scores(N, seed), 0.0)
    scores[0] -= 14.0
    r = np.where(TRUE, np.random.default_rng(seed).normal(size=scores.shape), 0.0)
    other = scores + 0.5 * r
    p, q = all_trees(scores, "multi"), all_trees(other, "multi")
    log_p, log_q = p.total(scores) - p.log_z, q.total(other) - q.log_z

    def covariance(values):
        """With each edge, of a quantity of trees: the gradient of its expectation if that is a sum over edges."""
        edges = np.zeros_like(scores)
        np.add.at(edges, (p.heads[:, 1:], WORDS), (p.probs * (values - p.probs @ values))[:, None])
        return edges

    log_z, marginals = zoo.matrix_tree(scores, root="multi")
    yield "matrix_tree: log Z", (log_z, p.log_z)
    yield "matrix_tree: marginals", (marginals, p.marginals())
    z, by_weights = zoo.adjugate_gradient(scores, root="multi")
    yield "adjugate_gradient", (np.where(TRUE, np.exp(scores), 0.0) * by_weights / z, p.marginals())
    yield "mean_steps", (zoo.mean_steps(scores) / mean_steps(scores), 1.0)

    values = p.total(r)
    yield "t1", (zoo.t1(scores, r, root="multi"), p.probs @ values)
    inverse = invert(scores, "multi")
    for name, second_order in (("t2", by_t2), ("t2h", by_t2h), ("t2v", by_t2v)):
        yield name, (expectation_gradient(inverse, r, second_order)[1], covariance(values))
    yield "zeroth_order", (zoo.zeroth_order(scores, np.exp(r), root="multi"), p.probs @ np.exp(values))
    yield "renyi_entropy", (zoo.renyi_entropy(scores, 2.0, root="multi"), -np.log((p.probs**2).sum()))
    yield "norm", (zoo.norm(scores, 2.0, root="multi"), np.sqrt((p.probs**2).sum()))

    for name, animal in (("entropy", zoo.entropy), ("entropy_smith_eisner", zoo.entropy_smith_eisner)):
        yield name, (animal(scores, root="multi"), -p.probs @ log_p)
    yield "entropy_gradient", (zoo.entropy_gradient(scores, root="multi")[1], -covariance(log_p))
    yield "cross_entropy", (zoo.cross_entropy(scores, other, root="multi"), -p.probs @ log_q)
    yield "cross_entropy_gradient", (zoo.cross_entropy_gradient(scores, other, root="multi")[1], -covariance(log_q))
    divergence, by_p, by_q = zoo.kl_gradient(scores, other, root="multi")
    yield "kl", (divergence, p.probs @ (log_p - log_q))
    yield "kl_gradient", (by_p, covariance(log_p - log_q))
    yield "kl_gradient by q", (by_q, q.marginals() - p.marginals())

    right = (p.heads == GOLD)[:, 1:].mean(axis=1)
    risk, gradient = zoo.risk_gradient(scores, GOLD, root="multi")
    yield "risk", (risk, 1.0 - p.probs @ right)
    yield "risk_gradient", (gradient, -covariance(right))
    share = np.array([0.25, 0.75])
    right_label = (p.heads == GOLD)[:, 1:] @ share[LABELS[1:]] / N
    risk, gradient = zoo.labelled_risk_gradient(scores[:, :, None] + np.log(share), GOLD, LABELS, root="multi")
    yield "labelled_risk", (risk, 1.0 - p.probs @ right_label)
    yield "labelled_risk_gradient", (gradient.sum(axis=2), -covariance(right_label))

    f = np.stack([r, r.T], axis=-1)
    gap = np.array([0.6, 0.8])
    wanted = p.probs @ p.total(f) - gap
    for name, animal in (
        ("by T2", zoo.generalized_expectation),
        ("by T2v", lambda *args, root: zoo.generalized_expectation(*args, root=root, second_order=by_t2v)),
    ):
        found = animal(scores, f, wanted, root="multi")[1]
        yield f"generalized_expectation {name}", (found, covariance(p.total(f) @ gap))
    found = zoo.generalized_expectation_druck_smith(scores, f, wanted, root="multi")[1]
    yield "generalized_expectation_druck_smith", (found, covariance(p.total(f) @ gap))


def mean_steps(scores):
    """The sum over words of L[j, j] times the same of the inverse, with fifty digits."""
    with mpmath.workdps(50):
        w = mpmath.matrix(np.where(TRUE, scores, -np.inf).tolist()).apply(mpmath.exp)
        total = [mpmath.fsum(w[i, j] for i in range(N + 1)) for j in range(N + 1)]
        L = mpmath.matrix(N, N)
        for i in range(N):
            for j in range(N):
                L[i, j] = total[j + 1] if i == j else -w[i + 1, j + 1]
        inverse = L**-1
        return float(mpmath.fsum(total[j + 1] * inverse[j, j] for j in range(N)))


@pytest.mark.parametrize("name", STATED)
def test_the_accuracy_that_the_docstring_states(name, measured):
    """Within a factor of ten, either way: other libraries of linear algebra round otherwise."""
    animal, stated = STATED[name]
    assert stated in animal.__doc__
    assert float(stated) / 10 < measured[name] < float(stated) * 10
