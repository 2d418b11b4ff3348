"""Answers are the same, whatever the caller has NumPy do about numbers that are too small, too large or undefined."""

from __future__ import annotations

import numpy as np
import pytest
from decoding_battery import trees

import spantree
from questions import KINDS, ask_everything, assert_same_bits

WORDS = 3
LEAST, MOST = np.finfo(np.float64).min, np.finfo(np.float64).max


def one_unlikely_edge(rng, shape):
    scores = np.zeros(shape)
    scores[0, 2] = -725.0  # exp of it is no normal double
    return scores


SCORES = {
    "one unlikely edge": one_unlikely_edge,
    "tiny": lambda rng, shape: rng.normal(size=shape) * 1e-310,
    "far apart": lambda rng, shape: rng.normal(size=shape) * 400.0,
    "huge": lambda rng, shape: rng.normal(size=shape) * 1e305,
    "largest": lambda rng, shape: rng.choice([LEAST, MOST], shape),
    "soft masks": lambda rng, shape: rng.choice([LEAST, -1e30, -740.0, 0.0, 1e-310], shape),
    "forbidden": lambda rng, shape: np.where(rng.random(shape) < 0.2, -np.inf, rng.normal(size=shape) * 300.0),
}
VALUES = {"ordinary": 1.0, "tiny": 1e-310, "small": 1e-200, "large": 1e300}
ONE_ROOT = {"at_most": 1, "limit": 1000}


def ask_the_rest(dist, values, scores, gold, options):
    """What `ask_everything` leaves out."""
    both = np.stack([values, values[::-1]], -1)
    crossing = not options.get("projective")
    sample = dist.sample_without_replacement(3, rng=0)
    return [
        *(dist.renyi_entropy(alpha, with_grad=True) for alpha in (1e-300, 0.999, 1.001, 2, 1e300)),
        *(dist.norm(p, with_grad=True) for p in (1e-300, 0.5, 1, 1e300)),
        *(dist.product_expectation(given, with_grad=True) for given in (np.abs(values), values)[: 1 + crossing]),
        dist.covariance(both, "edges"),
        dist.second_moment(both, both),
        dist.expectation(both, with_grad=True),
        dist.log_prob(np.where(np.arange(WORDS + 1) == 2, -2, dist.topk(1).heads[0]), partial=True),
        dist.risk(gold, with_grad=True),
        sample.log_probs,
        sample.estimate(lambda *tree: 1e-300),
        dist.confidence().log_odds,
        dist.topk(2, **ONE_ROOT),
        spantree.entropy(scores, temperature=3.0, **options),
        spantree.calibration(scores, gold, **options).words.error,
    ]


@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("kind", KINDS)
def test_answers_do_not_depend_on_errstate(kind, scores):
    rng = np.random.default_rng(0)
    options = {"on_infeasible": "mask", **KINDS[kind]}
    shape = (WORDS + 1, WORDS + 1, 2) if kind == "labelled" else (WORDS + 1, WORDS + 1)
    given, others = SCORES[scores](rng, shape), rng.normal(size=shape)
    for size in VALUES.values():
        values = rng.normal(size=shape) * size
        answers = []
        for state in ("ignore", "raise"):
            with np.errstate(all=state):
                dist, other = (spantree.TreeDistribution(x, **options) for x in (given, others))
                gold = other.argmax()
                known = {name: x for name, x in options.items() if name != "on_infeasible"}
                answers.append(ask_everything(dist, np.abs(values), other))
                answers[-1] += ask_the_rest(dist, values, given, gold, known)
        assert_same_bits(*answers)


@pytest.mark.parametrize("root", ["single", "multi"])
def test_against_enumeration(root):
    rng = np.random.default_rng(1)
    scores = one_unlikely_edge(rng, (WORDS + 1, WORDS + 1))
    heads = trees(WORDS, root)[:, 1:]
    weights = np.exp(scores[heads, np.arange(1, WORDS + 1)].sum(axis=1))
    probabilities = weights / weights.sum()
    values = rng.normal(size=scores.shape) * 1e-3
    of_trees = values[heads, np.arange(1, WORDS + 1)]
    sums, products = of_trees.sum(axis=1), of_trees.prod(axis=1)
    dist = spantree.TreeDistribution(scores, root=root)
    with np.errstate(all="raise"):
        moment, covariance = dist.second_moment(values, values), dist.covariance(values, values)
        product, _ = dist.product_expectation(values, with_grad=True)
        renyi, _ = dist.renyi_entropy(2.0, with_grad=True)
        norm, _ = dist.norm(2.0, with_grad=True)
    assert moment == pytest.approx(probabilities @ sums**2, rel=1e-12)
    assert covariance == pytest.approx(probabilities @ sums**2 - (probabilities @ sums) ** 2, rel=1e-9)
    assert product == pytest.approx(probabilities @ products, rel=1e-12)
    assert renyi == pytest.approx(-np.log(probabilities @ probabilities), rel=1e-12)
    assert norm == pytest.approx(np.sqrt(probabilities @ probabilities), rel=1e-12)


def test_best_trees_that_are_unlikely():
    """Of 260 words without any preference: no tree has a probability that is a double."""
    scores = np.zeros((261, 261))
    dist = spantree.TreeDistribution(scores)
    best = dist.argmax()
    with np.errstate(all="raise"):
        assert dist.explain().startswith("best tree 0%")
        assert dist.norm(np.inf) == dist.complete(best)[1] == 0.0
        assert spantree.calibration(scores, best).sentences.mean_probability == 0.0
