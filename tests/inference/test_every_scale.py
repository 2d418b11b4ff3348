"""Against references with as many digits as it takes: the error of marginals is relative, at every scale of scores."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

import spantree
from oracle.laplacian import exact, exact_gradient
from questions import KINDS

ROOTS = ["single", "multi"]
SOFT_MASKS = [-1e4, -1e9, -1e30, float(np.finfo(np.float32).min), -1e300]


def worst_errors(ours, marginals):
    """Largest relative error of marginals above 1e-250, and largest absolute error of all."""
    relative = absolute = 0.0
    for h in range(len(ours)):
        for d in range(1, len(ours)):
            error = abs(marginals[h, d] - mp.mpf(float(ours[h, d])))
            absolute = max(absolute, float(error))
            if marginals[h, d] > mp.mpf(10) ** -250:
                relative = max(relative, float(error / marginals[h, d]))
    return relative, absolute


def check_shape(marginals):
    assert (marginals >= 0).all()
    np.testing.assert_allclose(marginals[:, 1:].sum(axis=0), 1.0, atol=1e-14)


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize(
    ("scale", "n", "digits"), [(1, 30, 200), (10, 30, 400), (50, 30, 1500), (100, 20, 2000), (300, 14, 4000)]
)
def test_marginals_and_log_partition(scale, n, digits, root):
    rng = np.random.default_rng(scale)
    scores = rng.normal(size=(n + 1, n + 1)) * scale
    dist = spantree.TreeDistribution(scores, root=root)
    marginals, log_z = exact(scores, root, digits)
    relative, _ = worst_errors(dist.marginals(), marginals)
    assert relative < 1e-11
    assert abs(log_z - mp.mpf(float(dist.log_partition()))) < 1e-12 * abs(log_z)
    check_shape(dist.marginals())


@pytest.mark.parametrize("root", ROOTS)
def test_scale_two_thousand(root):
    rng = np.random.default_rng(2000)
    scores = rng.normal(size=(7, 7)) * 2000
    dist = spantree.TreeDistribution(scores, root=root)
    marginals, log_z = exact(scores, root, 14000)
    assert worst_errors(dist.marginals(), marginals)[1] < 1e-10
    assert abs(log_z - mp.mpf(float(dist.log_partition()))) < 1e-12 * abs(log_z)
    check_shape(dist.marginals())


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("scale", [1, 10, 50, 300, 2000, 1e5])
def test_long_sentences_stay_distributions(scale, root):
    rng = np.random.default_rng(int(scale))
    scores = rng.normal(size=(3, 36, 36)) * scale
    dist = spantree.TreeDistribution(scores, root=root)
    marginals = dist.marginals()
    assert (marginals >= 0).all()
    np.testing.assert_allclose(marginals[:, :, 1:].sum(axis=1), 1.0, atol=1e-13)
    if root == "single":
        np.testing.assert_allclose(marginals[:, 0].sum(axis=1), 1.0, atol=1e-12)
    assert (dist.log_partition() >= dist.max() - 1e-9 * np.abs(dist.max())).all()
    assert (dist.entropy() >= -1e-9 * scale).all()


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize(
    ("scale", "n", "digits"), [(1, 9, 120), (5, 8, 200), (30, 7, 400), (100, 6, 900), (400, 5, 3000)]
)
def test_gradients(scale, n, digits, root):
    rng = np.random.default_rng([scale, n])
    scores, values = rng.normal(size=(2, n + 1, n + 1))
    scores *= scale
    _, gradient = spantree.TreeDistribution(scores, root=root).expectation(values, with_grad=True)
    expected = exact_gradient(scores, values, root, digits)
    np.testing.assert_allclose(gradient[:, 1:], expected[:, 1:], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("root", ROOTS)
def test_sticky_words(root):
    """Two words that hold on to each other: a walk takes 1e20 steps to get away."""
    rng = np.random.default_rng(1)
    scores, values = rng.normal(size=(2, 9, 9))
    scores[1, 2] = scores[2, 1] = 46.0
    marginals, log_z = exact(scores, root, 200)
    dist = spantree.TreeDistribution(scores, root=root)
    assert worst_errors(dist.marginals(), marginals)[0] < 1e-13
    np.testing.assert_allclose(float(dist.log_partition()), float(log_z), rtol=1e-14)
    _, gradient = dist.expectation(values, with_grad=True)
    np.testing.assert_allclose(gradient[:, 1:], exact_gradient(scores, values, root, 200)[:, 1:], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("mask", SOFT_MASKS)
def test_soft_masks(mask, root):
    """Where a tree without masked edges exists, soft masks are as good as hard ones."""
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(13, 13))
    masked = rng.random(scores.shape) < 0.4
    soft, hard = np.where(masked, mask, scores), np.where(masked, -np.inf, scores)
    soft_dist, hard_dist = spantree.TreeDistribution(soft, root=root), spantree.TreeDistribution(hard, root=root)
    np.testing.assert_allclose(soft_dist.marginals(), hard_dist.marginals(), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(soft_dist.log_partition(), hard_dist.log_partition(), rtol=1e-14)
    np.testing.assert_allclose(soft_dist.entropy(), hard_dist.entropy(), rtol=1e-12)


def childless_words(rng, masked):
    masked[1 + rng.permutation(len(masked) - 1)[: rng.integers(1, len(masked) - 1)]] = True


def a_word_without_heads(rng, masked):
    masked[1:, rng.integers(1, len(masked))] = True


def all_but_one_tree(rng, masked):
    words = np.arange(1, len(masked))
    heads = spantree.decode(rng.normal(size=masked.shape))[1:]
    masked[...] = True
    masked[heads, words] = False


def two_halves_and_a_bridge(rng, masked):
    half = len(masked) // 2
    masked[1 : half + 1, half + 1 :] = masked[half + 1 :, 1 : half + 1] = True
    masked[rng.integers(1, half + 1), rng.integers(half + 1, len(masked))] = False


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("mask", SOFT_MASKS)
@pytest.mark.parametrize(
    "pattern",
    [childless_words, a_word_without_heads, all_but_one_tree, two_halves_and_a_bridge],
    ids=lambda f: f.__name__,
)
def test_soft_masks_that_leave_few_ways(pattern, mask, root):
    """Masked in places where a walk that must leave a word, or enter it, has no other way."""
    rng = np.random.default_rng(5)
    for n in (2, 3, 4, 5, 8, 13, 20):
        scores = rng.normal(size=(n + 1, n + 1))
        masked = np.zeros(scores.shape, bool)
        pattern(rng, masked)
        soft = spantree.TreeDistribution(np.where(masked, mask, scores), root=root)
        hard = spantree.TreeDistribution(np.where(masked, -np.inf, scores), root=root)
        np.testing.assert_allclose(soft.marginals(), hard.marginals(), rtol=1e-12, atol=1e-300)
        np.testing.assert_allclose(soft.log_partition(), hard.log_partition(), rtol=1e-12, atol=1e-12)
        (entropy, gradient), (hard_entropy, hard_gradient) = soft.entropy(with_grad=True), hard.entropy(with_grad=True)
        np.testing.assert_allclose(entropy, hard_entropy, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(gradient, hard_gradient, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("mask", SOFT_MASKS)
def test_all_labels_of_an_edge_masked(mask):
    """Equal labels have equal shares, whatever all of them score."""
    scores = np.zeros((2, 2, 4))
    scores[0, 1] = mask
    np.testing.assert_allclose(spantree.marginals(scores, labelled=True)[0, 1], 0.25, rtol=1e-14)


def test_only_masked_trees():
    """All edges of a word are masked softly: its column cancels."""
    rng = np.random.default_rng(4)
    scores = rng.normal(size=(8, 8))
    masked = scores.copy()
    masked[:, 3] = -1e30
    equal = scores.copy()
    equal[:, 3] = 0.0
    np.testing.assert_allclose(spantree.marginals(masked), spantree.marginals(equal), rtol=1e-12)
    assert spantree.log_partition(masked) == -1e30


@pytest.mark.parametrize("value", [np.inf, np.finfo(float).max, -np.finfo(float).max])
@pytest.mark.parametrize("kind", KINDS)
def test_huge_values_give_no_warning(kind, value):
    """Sums and products of them may be infinite or NaN; warnings are errors here."""
    shape = (2, 4, 4, 2) if kind == "labelled" else (2, 4, 4)
    rng = np.random.default_rng(0)
    dist = spantree.TreeDistribution(rng.normal(size=shape), **KINDS[kind])
    for values in (np.full(shape, value), np.where(rng.random(shape) < 0.5, value, 1.0)):
        dist.expectation(values, with_grad=True)
        dist.covariance(values, values), dist.covariance(values, "edges")
        dist.second_moment(values, values), dist.second_moment(values, "edges")
        dist.generalized_expectation(values, 1.0, with_grad=True)
        dist.generalized_expectation(values, -np.finfo(float).max, with_grad=True)
