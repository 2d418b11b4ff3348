"""Masks that every projective tree has to take: trees exchange them for one another, whatever their sizes."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import spantree
from oracle.law import BITS, Law, floats, to_float
from projective.many_digits import chart_in_many_digits

LARGEST = np.finfo(np.float64).max
MASKS = {
    "once, twice, three times": [-1e9, -2e9, -3e9],
    "of two sizes": [0, -1e9, -1e30],
    "near the largest double": [0, -1e30, -1.7e308],
    "nothing but": [-1e30, -1.7e308],
    "of many sizes": [-1e9, -1e30, -1e300, -1.7e308],
    "the least of either type": [0, float(np.finfo(np.float32).min), -LARGEST],
    "hardly masks": [0, -1e4, -1e5, -2e5],
    "a tenth more": [0, -1e12, -1.1e12, -1.2e12, -2.3e12],
    "of both signs": [-1e9, 1e9, -3e9, 0.5e9, -1e30],
    "that cancel": [-1e30, 1e30, -1e16, 1e16, 1],
    "as far as doubles go": [-LARGEST, 0, LARGEST],
}
SPREADS = {
    "any size": lambda rng, shape: -1e30 * rng.random(shape),
    "every size": lambda rng, shape: rng.choice([-1, 1], size=shape) * 10.0 ** rng.uniform(-300, 300, size=shape),
    "every smaller size": lambda rng, shape: rng.choice([-1, 1], size=shape) * 10.0 ** rng.uniform(-20, 20, size=shape),
    "whole multiples": lambda rng, shape: -1e30 * rng.integers(0, 100, size=shape),
}


def drawn(rng, name, shape):
    scores = SPREADS[name](rng, shape) if name in SPREADS else rng.choice(MASKS[name], size=shape)
    if rng.random() < 0.7:
        with np.errstate(over="ignore"):
            scores = np.clip(scores + rng.choice([1, 10]) * rng.normal(size=shape), -LARGEST, LARGEST)
    if rng.random() < 0.3:
        scores[rng.random(shape) < 0.2] = -np.inf
    return scores


@pytest.mark.parametrize("labels", [(), (2,)], ids=["unlabelled", "labelled"])
@pytest.mark.parametrize("root", ["single", "multi"])
@pytest.mark.parametrize("name", [*MASKS, *SPREADS])
def test_against_enumeration_in_integers(name, root, labels):
    rng = np.random.default_rng([len(root), len(labels), *name.encode()])
    for _ in range(60):
        words = int(rng.integers(2, 4 if labels else 5))
        scores = drawn(rng, name, (words + 1, words + 1, *labels))
        law = Law(scores, root=root, projective=True)
        if not law.feasible:
            continue
        dist = spantree.TreeDistribution(scores, root=root, projective=True, labelled=bool(labels))
        np.testing.assert_allclose(dist.marginals(), floats(law.marginals), rtol=0, atol=2e-12)
        np.testing.assert_allclose(dist.log_partition(), to_float(law.log_partition), rtol=1e-11, atol=1e-11)
        surprise = -law.log_probs
        entropy, gradient = dist.entropy(with_grad=True)
        np.testing.assert_allclose(entropy, to_float(law.mean(surprise)), rtol=2e-11, atol=2e-11)
        np.testing.assert_allclose(gradient, floats(law.slope(surprise)), rtol=0, atol=1e-10)
        best = to_float(-min(surprise[law.allowed]))
        np.testing.assert_allclose(dist.log_prob(dist.argmax()), best, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("root", ["single", "multi"])
@pytest.mark.parametrize("words", [8, 18])
@pytest.mark.parametrize("name", [*MASKS, *SPREADS])
def test_longer_sentences_in_many_digits(name, words, root):
    rng = np.random.default_rng([words, len(root), *name.encode()])
    scores = drawn(rng, name, (words + 1, words + 1))
    with mpmath.workdps(350):
        log_z, expected = chart_in_many_digits(scores, root)
        dist = spantree.TreeDistribution(scores, root=root, projective=True)
        np.testing.assert_allclose(dist.log_partition(), float(log_z), rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(dist.marginals(), expected.astype(np.float64), rtol=0, atol=1e-11)


@pytest.mark.parametrize("root", ["single", "multi"])
@pytest.mark.parametrize("name", ["once, twice, three times", "near the largest double", "that cancel", "any size"])
def test_random_trees_and_powers(name, root):
    """Law: no tree drawn is one without mass; entropies of order 1/2 and 2 are those of the weights' powers."""
    rng = np.random.default_rng([len(root), *name.encode()])
    for _ in range(20):
        scores = drawn(rng, name, (4, 4))
        law = Law(scores, root=root, projective=True)
        if not law.feasible:
            continue
        dist = spantree.TreeDistribution(scores, root=root, projective=True)
        heads = dist.sample(200, rng=3)
        drawn_trees = {law.index(tree) for tree in heads}
        assert min(to_float(law.probs[t]) for t in drawn_trees) > 1e-9  # 4,000 draws in all, 16 trees: alarm below 1e-4
        probs = floats(law.probs)
        np.testing.assert_allclose(dist.renyi_entropy(2.0), -np.log((probs**2).sum()), rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(dist.renyi_entropy(0.5), 2 * np.log((probs**0.5).sum()), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("words", [12, 56])
def test_a_chain_of_sums(words):
    """An edge costs what the words of its span do: all have other scores, and many of their sums are equal."""
    rng = np.random.default_rng(words)
    place = np.cumsum([0, *rng.integers(10**9, 2 * 10**9, size=words)]).astype(float)
    scores = np.minimum(place[:, np.newaxis] - place, 0.0)
    k = words // 2
    for head, dep in ((k, k + 2), (k + 1, k + 3), (k + 3, k + 1), (k + 2, k)):
        scores[head, dep] += 2.0**42  # two edges that all trees want, but they cross
    with mpmath.workdps(60):
        log_z, expected = chart_in_many_digits(scores, "multi")
    dist = spantree.TreeDistribution(scores, root="multi", projective=True)
    np.testing.assert_allclose(dist.marginals(), expected.astype(np.float64), rtol=0, atol=1e-13)
    np.testing.assert_allclose(dist.log_partition(), float(log_z), rtol=1e-15)


@pytest.mark.parametrize("root", ["single", "multi"])
@pytest.mark.parametrize("power", [1e-5, 1e-8, 1e-9, 1e-10, 1e-20])
def test_small_powers(power, root):
    """Of probabilities: masks that decide all are a few nats then, or nothing."""
    rng = np.random.default_rng(99)
    for _ in range(10):
        scores = rng.choice([-1e9, -2e9, -3e9, -5e9, 0, 1e9], size=(5, 5)) + rng.normal(size=(5, 5))
        law = Law(scores, root=root, projective=True)
        with mpmath.workdps(60):
            powers = [mpmath.exp(power * mpmath.ldexp(mpmath.mpf(int(x)), -BITS)) for x in law.log_probs]
            expected = mpmath.log(mpmath.fsum(powers)) / (1 - mpmath.mpf(power))
        dist = spantree.TreeDistribution(scores, root=root, projective=True)
        np.testing.assert_allclose(dist.renyi_entropy(power), float(expected), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("root", ["single", "multi"])
def test_trees_far_behind_stay_behind(root):
    """By 5,000 nats, where masks are taken for equal that differ by more."""
    scores = np.full((4, 4), -1e9)
    scores[0, 1] = scores[1, 2] = 0.0
    scores[1, 3], scores[2, 3] = -1e9 - 5000.0, -1e9
    law = Law(scores, root=root, projective=True)
    dist = spantree.TreeDistribution(scores, root=root, projective=True)
    np.testing.assert_allclose(dist.marginals(), floats(law.marginals), rtol=0, atol=1e-14)
    behind = [-1, 0, 1, 1]
    np.testing.assert_allclose(dist.log_prob(behind), to_float(law.log_probs[law.index(behind)]), rtol=1e-13)
