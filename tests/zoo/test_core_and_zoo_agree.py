"""Inference in the core and in the zoo: two ways to the same numbers, on sentences too long to enumerate."""

from __future__ import annotations

import numpy as np
import pytest

import spantree
from spantree import zoo

ROOTS = ["single", "multi"]
CLOSE = {"rtol": 1e-9, "atol": 1e-11}


@pytest.fixture(params=[7, 18])
def sentence(request):
    rng = np.random.default_rng(request.param)
    shape = (request.param + 1, request.param + 1)
    return rng.normal(size=shape), rng.normal(size=shape), rng.normal(size=(*shape, 3)), rng.normal(size=(*shape, 2))


@pytest.mark.parametrize("root", ROOTS)
def test_first_order(sentence, root):
    scores, other, r, _ = sentence
    dist = spantree.TreeDistribution(scores, root=root)
    log_z, marginals = zoo.matrix_tree(scores, root=root)
    np.testing.assert_allclose(dist.log_partition(), log_z, **CLOSE)
    np.testing.assert_allclose(dist.marginals(), marginals, **CLOSE)
    np.testing.assert_allclose(dist.expectation(r), zoo.t1(scores, r, root=root), **CLOSE)
    np.testing.assert_allclose(dist.entropy(), zoo.entropy(scores, root=root), **CLOSE)
    np.testing.assert_allclose(dist.entropy(), zoo.entropy_smith_eisner(scores, root=root), **CLOSE)
    np.testing.assert_allclose(
        dist.kl(spantree.TreeDistribution(other, root=root)), zoo.kl(scores, other, root=root), **CLOSE
    )
    gold = dist.argmax()
    np.testing.assert_allclose(dist.risk(gold), zoo.risk(scores, gold, root=root), **CLOSE)


@pytest.mark.parametrize("root", ROOTS)
def test_zeroth_and_second_order(sentence, root):
    scores, _, r, s = sentence
    dist = spantree.TreeDistribution(scores, root=root)
    np.testing.assert_allclose(dist.renyi_entropy(2.0), zoo.renyi_entropy(scores, 2.0, root=root), **CLOSE)
    np.testing.assert_allclose(dist.norm(3.0), zoo.norm(scores, 3.0, root=root), **CLOSE)
    for algorithm in (zoo.t2, zoo.t2v, zoo.t2h):
        np.testing.assert_allclose(dist.second_moment(r, s), algorithm(scores, r, s, root=root), **CLOSE)
    target = np.ones(3)
    value, gradient = dist.generalized_expectation(r, target, with_grad=True)
    for algorithm in (zoo.generalized_expectation, zoo.generalized_expectation_druck_smith):
        expected, expected_gradient = algorithm(scores, r, target, root=root)
        np.testing.assert_allclose(value, expected, **CLOSE)
        np.testing.assert_allclose(gradient, expected_gradient, **CLOSE)
