"""Cross-entropy and divergence from a distribution with soft masks, expectations of values as large: against integers.

What a mask of -1e30 adds to a gradient may be anything from nothing to all of it: as likely as trees have the edge.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import spantree
from oracle.law import BITS, Law, floats, in_units, to_float

KINDS = {
    "single": {},
    "multi": {"root": "multi"},
    "projective": {"projective": True},
    "projective, multi": {"projective": True, "root": "multi"},
    "labelled": {"labelled": True},
    "labelled, projective": {"labelled": True, "projective": True},
    "labelled, projective, multi": {"labelled": True, "projective": True, "root": "multi"},
}


def drawn(rng, kind, scale, mask):
    shape = (4, 4, 2) if "labelled" in kind else (4, 4)
    p, q = scale * rng.normal(size=shape), rng.normal(size=shape)
    return p, np.where(rng.random(shape) < 0.4, mask, q)


def laws(kind, *scores):
    options = {name: value for name, value in KINDS[kind].items() if name != "labelled"}
    return [Law(x, **options) for x in scores]


def masked_mass(law, other, mask):
    """The probability of trees with a mask. How often trees enter a set of words is a sum of marginals, 1 for all but
    these trees: if they have less than rounding errors of it, nothing is known of them."""
    return to_float(sum(law.probs[other.log_probs < in_units(mask / 2, BITS)]))


def assert_close(found, gradient, law, of_tree):
    """To rounding errors of the mean magnitude."""
    mean = to_float(law.mean(of_tree))
    magnitude = max(to_float(law.mean(abs(of_tree))), 1.0)
    np.testing.assert_allclose(found, mean, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(gradient, floats(law.slope(of_tree)), rtol=0, atol=4e-10 * magnitude)


@pytest.mark.parametrize("mask", [-1e5, -1e9, -1e30, -1e300])
@pytest.mark.parametrize("scale", [1.0, 30.0, 300.0])
@pytest.mark.parametrize("kind", KINDS)
def test_cross_entropy_and_divergence(kind, scale, mask):
    rng = np.random.default_rng([int(scale), int(np.log10(-mask))])
    for _ in range(16):
        p, q = drawn(rng, kind, scale, mask)
        of_p, of_q = laws(kind, p, q)
        if "multi" in kind and 0.0 < masked_mass(of_p, of_q, mask) < 1e-12:
            continue
        dists = [spantree.TreeDistribution(x, **KINDS[kind]) for x in (p, q)]
        assert_close(*dists[0].cross_entropy(dists[1], with_grad=True), of_p, -of_q.log_probs)
        value, gradient = dists[0].kl(dists[1], with_grad=True)
        assert_close(value, gradient, of_p, of_p.log_probs - of_q.log_probs)


@pytest.mark.parametrize("mask", [-1e5, -1e9, -1e30, -1.7e308])
@pytest.mark.parametrize("kind", KINDS)
def test_masks_that_all_trees_pay(kind, mask):
    """p forbids what q demands: all or most of its trees pay masks. What they pay alike is no part of a gradient, which
    is right to rounding errors of how much trees differ, not of the masks."""
    rng = np.random.default_rng([len(kind), int(np.log10(-mask))])
    for _ in range(24):
        p, q = drawn(rng, kind, rng.choice([1.0, 10.0]), mask)
        forbidden = rng.random((4, 4)) < 0.4
        p[forbidden] = -np.inf
        q[rng.random((4, 4)) < np.where(forbidden, 0.2, 0.5)] = mask
        of_p, of_q = laws(kind, p, q)
        surprise = -of_q.log_probs
        if not of_p.allowed.any() or 0.0 < mass_beyond_the_least(of_p, surprise, mask) < 1e-12:
            continue
        dists = [spantree.TreeDistribution(x, **KINDS[kind]) for x in (p, q)]
        assert_close_to_differences(*dists[0].cross_entropy(dists[1], with_grad=True), of_p, surprise)
        surplus = np.where(of_p.allowed, of_p.log_probs - of_q.log_probs, 0)
        assert_close_to_differences(*dists[0].kl(dists[1], with_grad=True), of_p, surplus)


def assert_close_to_differences(found, gradient, law, of_tree):
    """To rounding errors of how much trees differ; there is no gradient of what is infinite."""
    mean = law.mean(of_tree)
    np.testing.assert_allclose(found, to_float(mean), rtol=1e-11)
    if np.isfinite(found):
        spread = max(to_float(law.mean(abs(of_tree - mean))), 1.0)
        np.testing.assert_allclose(gradient, floats(law.slope(of_tree)), rtol=0, atol=4e-10 * spread)


NO = -np.inf
EQUALLY_MANY = {  # p, q, where M is the mask, and the kind of trees
    "here or there, not crossing": (
        [[0, NO, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 2, NO, 0]],
        [[0, "M", "M", "M"], [0, 0, "M", 0], [0, "M", 0, 0], [0, 0, 0, 0]],
        "projective",
    ),
    "one of two, not crossing": (
        [[0, 0, 0, 0], [0, 0, 0, 0], [0, 1, NO, 0], [0, 0, NO, 0]],
        [[0, 0, 0, 0], [0, 0, "M", 0], [0, "M", 0, 0], [0, 0, 0, 0]],
        "projective, multi",
    ),
    "one root for want of another": (
        [[0, -1e4, -1e4], [0, 0, 0.08], [0, 0.53, 0]],
        [[0, -1.41, -1.26], [0, 0, "M"], [0, "M", 0]],
        "multi",
    ),
    "the same, not crossing": (
        [[0, -1e4, -1e4], [0, 0, 0.08], [0, 0.53, 0]],
        [[0, -1.41, -1.26], [0, 0, "M"], [0, "M", 0]],
        "projective, multi",
    ),
}


@pytest.mark.parametrize("mask", [-1e9, -1e30, -1e300])
@pytest.mark.parametrize("name", EQUALLY_MANY)
def test_equally_many_masks_in_other_words(name, mask):
    """All trees of p pay as many masks, but not for the same words."""
    p, q, kind = EQUALLY_MANY[name]
    p, q = np.array(p, float), np.array([[mask if x == "M" else x for x in row] for row in q], float)
    of_p, of_q = laws(kind, p, q)
    dists = [spantree.TreeDistribution(x, **KINDS[kind]) for x in (p, q)]
    assert_close_to_differences(*dists[0].cross_entropy(dists[1], with_grad=True), of_p, -of_q.log_probs)
    surplus = np.where(of_p.allowed, of_p.log_probs - of_q.log_probs, 0)
    assert_close_to_differences(*dists[0].kl(dists[1], with_grad=True), of_p, surplus)


FLOAT32_MIN = float(np.finfo(np.float32).min)


@cache
def paid_in_different_words(kind, sizes):
    """Scores of p and of q, and which of several masks an edge has in both, -1 for none. Every tree of p has one or two
    of each, not always for the same words; some trees are rare."""
    rng, found = np.random.default_rng(1), []
    words, density = (3, 0.7) if "labelled" in kind else (4, 0.6)
    shape = (words + 1, words + 1, 2) if "labelled" in kind else (words + 1, words + 1)
    edges = laws(kind, np.zeros(shape))[0].edges
    while len(found) < 30:
        which = np.where(rng.random(shape) < density, rng.integers(sizes, size=shape), -1)
        p, q = 4 * rng.normal(size=shape), 2 * rng.normal(size=shape)
        of_trees = which.ravel()[edges]
        paid = np.choose(of_trees + 1, [0, 1, 100]).sum(1)  # one of the second outweighs all of the first
        has = [of_trees[paid == paid.min()] == size for size in range(sizes)]
        if all(1 <= x[0].sum() <= 2 and (x != x[0]).any() for x in has):
            found.append((p, q, which))
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("masks", [[-1e9], [-1e12], [-1e15], [-1e30], [FLOAT32_MIN], [-1e9, -1e30]], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_equally_many_masks_also_of_rare_trees(kind, masks, dtype):
    """All trees of p pay as many: masks are no part of the answer, nor of either gradient."""
    rounding = 1e-6 if dtype == np.float32 else 5e-12
    for *scores, which in paid_in_different_words(kind, len(masks)):
        p, q = (np.choose(which + 1, [x, *masks]).astype(dtype) for x in scores)
        of_p, of_q = laws(kind, p, q)
        dists = [spantree.TreeDistribution(x, **KINDS[kind]) for x in (p, q)]
        for compare, of_tree in (("cross_entropy", -of_q.log_probs), ("kl", of_p.log_probs - of_q.log_probs)):
            value, by_p, by_q = getattr(dists[0], compare)(dists[1], with_grad="both")
            alone, mean = getattr(dists[0], compare)(dists[1]), to_float(of_p.mean(of_tree))
            np.testing.assert_allclose([value, alone], mean, rtol=rounding, atol=rounding)
            np.testing.assert_allclose(by_p, floats(of_p.slope(of_tree)), rtol=0, atol=rounding * max(mean, 1.0))
            np.testing.assert_allclose(by_q, floats(of_q.marginals - of_p.marginals), rtol=0, atol=rounding)


def mass_beyond_the_least(law, surprise, mask):
    """The probability of trees that pay a mask more than they must."""
    least = min(surprise[[prob > 0 for prob in law.probs]])
    return to_float(sum(law.probs[surprise > least + in_units(-mask / 2, BITS)]))


@pytest.mark.parametrize("kind", KINDS)
def test_sums_of_the_largest_doubles(kind):
    """A tree may have several of the least double among its scores, and the mean be a double all the same."""
    rng = np.random.default_rng(5)
    for _ in range(12):
        p, q = drawn(rng, kind, 10.0, np.finfo(float).min)
        of_p, of_q = laws(kind, p, q)
        if 0.0 < mass_beyond_the_least(of_p, -of_q.log_probs, -1e308) < 1e-12:
            continue
        dists = [spantree.TreeDistribution(x, **KINDS[kind]) for x in (p, q)]
        expected = to_float(of_p.mean(of_p.log_probs - of_q.log_probs))
        np.testing.assert_allclose(dists[0].kl(dists[1]), expected, rtol=1e-9)


@pytest.mark.parametrize("large", [1e9, 1e30, -1e200])
@pytest.mark.parametrize("kind", KINDS)
def test_expectations_of_large_values(kind, large):
    """One large value, on whatever edge, in a batch with others that have none."""
    rng = np.random.default_rng(7)
    scores = [drawn(rng, kind, scale, 0.0)[0] for scale in (1.0, 30.0, 100.0)]
    values = rng.normal(size=np.shape(scores))
    values[1, 2, 1] = values[2, 0, 3] = large
    dist = spantree.TreeDistribution(np.stack(scores), **KINDS[kind])
    found, gradients = dist.expectation(values, with_grad=True)
    for law, value, gradient, given in zip(laws(kind, *scores), found, gradients, values, strict=True):
        in_integers = np.array([in_units(x, BITS) for x in given.ravel()], object)
        assert_close(value, gradient, law, law.sums(in_integers))


@pytest.mark.parametrize("kind", KINDS)
def test_large_values_among_several(kind):
    """Ten values at once, one of them large in one sentence: all are what they are alone."""
    rng = np.random.default_rng(8)
    scores = np.stack([drawn(rng, kind, scale, 0.0)[0] for scale in (1.0, 30.0, 100.0)])
    values = rng.normal(size=(*scores.shape, 10))
    values[1, 2, 1, ..., 4] = values[2, 0, 3, ..., 4] = -1e30
    dist = spantree.TreeDistribution(scores, **KINDS[kind])
    found, gradients = dist.expectation(values, with_grad=True)
    for r in range(10):
        value, gradient = dist.expectation(np.ascontiguousarray(values[..., r]), with_grad=True)
        size = 1e-13 * max(1.0, abs(gradient).max())
        np.testing.assert_allclose(found[:, r], value, rtol=1e-13)
        np.testing.assert_allclose(gradients[..., r], gradient, rtol=0, atol=size)


def test_scores_beyond_the_range_of_log_z():
    """q has every tree, and its log Z is below the least double."""
    p, q = spantree.TreeDistribution(np.zeros((3, 3))), spantree.TreeDistribution(np.full((3, 3), np.finfo(float).min))
    for value, *gradients in (p.kl(q, with_grad="both"), p.cross_entropy(q, with_grad="both")):
        np.testing.assert_allclose(gradients, 0.0, atol=1e-15)
        assert value in (0.0, pytest.approx(np.log(2.0)))
    without = spantree.TreeDistribution(np.full((3, 3), -np.inf), on_infeasible="mask")
    assert p.kl(without) == np.inf


def test_labels_of_edges_that_structure_forbids():
    """1 -> 3 has a score, but 3 is the only head of 1: no tree has it, whatever values stand there."""
    forced = np.array([[0, -np.inf, 2, 0], [0, -np.inf, 2, 2], [0, -np.inf, 1, 0], [0, 0, 0, 2.0]])
    other, values = np.zeros((4, 4)), np.ones((4, 4))
    other[1, 3], values[1, 3] = -np.inf, np.inf
    plain, p = spantree.TreeDistribution(forced), spantree.TreeDistribution(forced[..., None], labelled=True)
    q, plain_q = spantree.TreeDistribution(other[..., None], labelled=True), spantree.TreeDistribution(other)
    for found, expected in (
        (p.kl(q, with_grad=True), plain.kl(plain_q, with_grad=True)),
        (p.cross_entropy(q, with_grad=True), plain.cross_entropy(plain_q, with_grad=True)),
        (p.expectation(values[..., None], with_grad=True), plain.expectation(values, with_grad=True)),
    ):
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-13)
        np.testing.assert_allclose(found[1][..., 0], expected[1], rtol=0, atol=1e-14)
    assert p.covariance(values[..., None], values[..., None]) == pytest.approx(0.0, abs=1e-14)
    assert p.second_moment(values[..., None], values[..., None]) == pytest.approx(9.0)


def test_as_many_edges_are_not_the_same_edges():
    """4 x 4 edges of 4 labels, or 8 x 8 of one."""
    few = spantree.TreeDistribution(np.zeros((1, 4, 4, 4)), labelled=True)
    many = spantree.TreeDistribution(np.zeros((1, 8, 8, 1)), lengths=[3], labelled=True)
    for compare in ("kl", "cross_entropy"):
        with pytest.raises(ValueError, match="different sentences"):
            getattr(few, compare)(many, with_grad=True)


@pytest.mark.parametrize("mask", [-1e4, -2e4, -1e9, -1e30, -1e300])
@pytest.mark.parametrize("kind", KINDS)
def test_what_the_other_forbids_is_infinite(kind, mask):
    """Beside soft masks too, and without a gradient; where it forbids nothing that p has, all is as if it did not."""
    rng = np.random.default_rng([len(kind), int(np.log10(-mask))])
    infinite = 0
    for _ in range(60):
        p, q = drawn(rng, kind, 1.0, mask)
        p[rng.random(p.shape) < 0.3] = -np.inf
        q[rng.random(q.shape) < 0.1] = -np.inf
        of_p, of_q = laws(kind, p, q)
        if not of_p.allowed.any() or not of_q.allowed.any():
            continue
        dists = [spantree.TreeDistribution(x, **KINDS[kind]) for x in (p, q)]
        forbidden = (of_p.allowed & ~of_q.allowed).any()
        infinite += forbidden
        for compare in (dists[0].kl, dists[0].cross_entropy):
            value, by_p, by_q = compare(dists[1], with_grad="both")
            assert np.isinf(value) == forbidden
            assert np.isfinite(by_p).all()
            assert np.isfinite(by_q).all()
            assert not forbidden or not (by_p.any() or by_q.any())
    assert infinite > 10


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_other_was_asked_before_changes_nothing(kind):
    """What is needed of it is solved for that alone, or read from what it has kept: the same to a rounding error."""
    rng = np.random.default_rng(0)
    for mask in (-3.0, -1e5, -1e30):
        p, q = drawn(rng, kind, 1.0, mask)
        dist = spantree.TreeDistribution(p, **KINDS[kind])
        answers = []
        for ask in (lambda d: None, lambda d: d.log_partition(), lambda d: d.sample(1, rng=0), lambda d: d.entropy()):
            other = spantree.TreeDistribution(q, **KINDS[kind])
            ask(other)
            answers.append([*dist.kl(other, with_grad=True), *dist.cross_entropy(other, with_grad="both")])
            answers[-1].append(other.log_partition())
        for answer in answers[1:]:
            for found, expected in zip(answer, answers[0], strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
