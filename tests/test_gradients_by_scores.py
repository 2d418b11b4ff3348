"""Gradients of the quantities that belong to a tree, and by the second of two distributions: against differences."""

from __future__ import annotations

import numpy as np
import pytest

import spantree
from questions import FORMS, KINDS, LAYOUTS, in_form

STEP = 1e-5


def sentences(seed, kind):
    rng = np.random.default_rng(seed)
    labels = (2,) if kind == "labelled" else ()
    return [rng.normal(size=(n + 1, n + 1, *labels)) for n in (3, 2)]


def parts(x, form):
    return x if form == "listed" else [x]


def differences(value, scores, form):
    """The derivative of the sum of all values by every score."""
    slopes = []
    for array in parts(scores, form):
        slope = np.zeros(array.shape)
        for where in np.ndindex(array.shape):
            before = array[where]
            sums = []
            for step in (STEP, -STEP):
                array[where] = before + step
                sums.append(np.sum([np.sum(part) for part in parts(value(scores), form)]))
            array[where] = before
            slope[where] = (sums[0] - sums[1]) / (2 * STEP)
        slopes.append(slope)
    return slopes


def assert_gradient(value, gradient, scores, form):
    for found, want in zip(parts(gradient, form), differences(value, scores, form), strict=True):
        np.testing.assert_allclose(found, want, atol=1e-8)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMS)
def test_of_trees(form, kind, layout):
    scores, options = in_form(sentences(0, kind), form, layout, filler=0.0)
    options |= KINDS[kind] | {"temperature": 0.5}
    dist = spantree.TreeDistribution(scores, **options)
    tree = dist.sample(rng=1)
    asks = {
        "max": lambda dist, **grad: dist.max(**grad),
        "score": lambda dist, **grad: dist.score(tree, **grad),
        "log_prob": lambda dist, **grad: dist.log_prob(tree, **grad),
        "entropy": lambda dist, **grad: dist.entropy(**grad),
        "log_partition": lambda dist, **grad: dist.log_partition(**grad),
    }
    for name, ask in asks.items():
        value, gradient = ask(dist, with_grad=True)
        np.testing.assert_array_equal(np.hstack(parts(value, form)), np.hstack(parts(ask(dist), form)), err_msg=name)
        assert_gradient(lambda x, ask=ask: ask(spantree.TreeDistribution(x, **options)), gradient, scores, form)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMS)
def test_by_both_of_two_distributions(form, kind, layout):
    (scores, options), (others, _) = (in_form(sentences(seed, kind), form, layout, filler=0.0) for seed in range(2))
    options |= KINDS[kind]
    p = spantree.TreeDistribution(scores, **options)
    q = spantree.TreeDistribution(others, **options, temperature=2.0)
    for name in ("kl", "cross_entropy"):
        value, by_p, by_q = getattr(p, name)(q, with_grad="both")
        alone, by_p_alone = getattr(p, name)(q, with_grad=True)
        for a, b in ((value, alone), (by_p, by_p_alone)):
            for x, y in zip(parts(a, form), parts(b, form), strict=True):
                np.testing.assert_array_equal(x, y)
        assert_gradient(
            lambda x, name=name: getattr(spantree.TreeDistribution(x, **options), name)(q), by_p, scores, form
        )
        assert_gradient(
            lambda x, name=name: getattr(p, name)(spantree.TreeDistribution(x, **options, temperature=2.0)),
            by_q,
            others,
            form,
        )


def test_of_several_trees_and_of_none():
    scores = np.random.default_rng(0).normal(size=(2, 4, 4))
    dist = spantree.TreeDistribution(scores, lengths=[3, 2])
    trees = np.array([[[-1, 0, 1, 2], [-1, 2, 0, 9]], [[-1, 2, 1, 0], [-1, 0, 1, 9]]])  # the third has a cycle
    value, gradient = dist.log_prob(trees, with_grad=True)
    assert value.shape == (2, 2)
    assert gradient.shape == (2, 2, 4, 4)
    assert value[1, 0] == -np.inf
    assert not gradient[1, 0].any()
    for k, i in [(0, 0), (0, 1), (1, 1)]:
        n = dist.lengths[i]
        edges = np.zeros((4, 4))
        edges[trees[k, i, 1 : n + 1], np.arange(1, n + 1)] = 1.0
        np.testing.assert_allclose(gradient[k, i], edges - dist.marginals()[i])
        np.testing.assert_array_equal(dist.score(trees, with_grad=True)[1][k, i], edges)
    masked = spantree.TreeDistribution(np.full((3, 3), -np.inf), on_infeasible="mask")
    for ask in (masked.max, lambda **grad: masked.log_prob([-1, 0, 1], **grad)):
        value, gradient = ask(with_grad=True)
        assert value == -np.inf
        assert not gradient.any()


def test_single_precision_is_rounded_once():
    """Scores of a million leave no digits behind the point in single precision; the difference needs them."""
    scores = (np.random.default_rng(0).normal(size=(4, 4)) + 1e6).astype(np.float32)
    dist, double = spantree.TreeDistribution(scores), spantree.TreeDistribution(scores.astype(np.float64))
    trees = dist.topk(9).heads
    np.testing.assert_array_equal(dist.log_prob(trees), double.log_prob(trees).astype(np.float32), strict=True)
    np.testing.assert_allclose(np.exp(dist.log_prob(trees)).sum(), 1.0, rtol=1e-6)


def test_what_does_not_fit_in_single_precision_is_infinite():
    dist = spantree.TreeDistribution(np.full((3, 3), 3e38, np.float32))
    assert dist.max() == np.inf
    assert dist.score([-1, 0, 1]) == np.inf


@pytest.mark.parametrize("mask", [-1e9, -1e30, np.finfo(np.float64).min])
def test_divergences_where_the_other_masks_every_tree(mask):
    """Every tree of p has one edge that q masks: its divergence is as large as the mask, and has no gradient."""
    edges = [[0, -np.inf, 0.0, mask], [0, 0, 1.0, -np.inf], [0, 1.0, 0, mask], [0, -np.inf, 0.0, 0]]
    p = spantree.TreeDistribution(np.array(edges), root="multi")
    q = spantree.TreeDistribution(np.where(np.isneginf(edges), 0.3, edges), root="multi")
    for ask in (p.kl, p.cross_entropy):
        value, gradient = ask(q, with_grad=True)
        np.testing.assert_allclose(value, -mask, rtol=1e-8)
        np.testing.assert_allclose(gradient, 0.0, atol=1e-15 * -mask)


def test_divergences_where_the_other_has_no_tree():
    """inf: there is a tree that the other has not; NaN where there is none at all."""
    scores = np.zeros((3, 3, 3))
    scores[2] = -np.inf
    others = np.zeros((3, 3, 3))
    others[1:] = -np.inf
    p, q = (spantree.TreeDistribution(x, on_infeasible="mask") for x in (scores, others))
    for ask, least in ((p.kl, 0.0), (p.cross_entropy, np.log(2.0))):
        value, gradient, by_other = ask(q, with_grad="both")
        np.testing.assert_allclose(value, [least, np.inf, np.nan], atol=1e-15)
        assert not gradient[1:].any()
        assert not by_other[1:].any()
    with pytest.raises(ValueError, match="with_grad must be"):
        p.kl(q, with_grad="Both")


@pytest.mark.parametrize("temperature", [0.3, 7.0, 1e-46, 1e39])
@pytest.mark.parametrize("quantity", ["log_partition", "entropy"])
def test_temperature_and_single_precision(quantity, temperature):
    """Divided by it in double, and rounded once."""
    scores = np.random.default_rng(0).normal(size=(6, 6)).astype(np.float32)
    low, full = (spantree.TreeDistribution(x, temperature=temperature) for x in (scores, scores.astype(np.float64)))
    with np.errstate(over="ignore", under="ignore"):
        expected = [np.asarray(x).astype(np.float32) for x in getattr(full, quantity)(with_grad=True)]
    for found, rounded in zip(getattr(low, quantity)(with_grad=True), expected, strict=True):
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, rounded)
