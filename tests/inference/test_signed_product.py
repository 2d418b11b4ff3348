"""E[product of values of either sign], against the list of all trees in rational arithmetic and with many digits."""

from __future__ import annotations

from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

import spantree
from spantree.zoo.enumerate_trees import enumerate_trees

ROOTS = ["single", "multi"]


def exact(scores, values, root):
    """The expectation, that of the magnitudes, and the gradient by the scores."""
    words = len(scores) - 1
    labels = range(scores.shape[2]) if scores.ndim == 3 else [None]
    with mp.workdps(500):
        trees = []
        for heads in enumerate_trees(words, root, False).tolist():
            choices = [[]]
            for dep in range(1, words + 1):
                edges = [(heads[dep], dep) if label is None else (heads[dep], dep, label) for label in labels]
                choices = [[*choice, edge] for choice in choices for edge in edges]
            trees += choices
        logs = [mp.fsum(mp.mpf(float(scores[edge])) for edge in tree) for tree in trees]
        top = max(logs)
        weights = [mp.exp(x - top) for x in logs]
        total = mp.fsum(weights)
        products = [mp.fprod(mp.mpf(float(values[edge])) for edge in tree) for tree in trees]
        mean = mp.fsum(w * p for w, p in zip(weights, products, strict=True)) / total
        size = mp.fsum(w * abs(p) for w, p in zip(weights, products, strict=True)) / total
        gradient = np.zeros(scores.shape, object)
        for tree, w, p in zip(trees, weights, products, strict=True):
            for edge in tree:
                gradient[edge] += w * (p - mean) / total
        return float(mean), float(size), gradient.astype(float)


def agrees(scores, values, root, **options):
    value, gradient = spantree.TreeDistribution(scores, root=root, **options).product_expectation(
        values, with_grad=True
    )
    mean, size, slope = exact(scores, values, root)
    np.testing.assert_allclose(value, mean, rtol=0, atol=1e-12 * size)
    np.testing.assert_allclose(gradient, slope, rtol=0, atol=1e-12 * (size + abs(mean)))


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("scale", [1.0, 30.0, 300.0, 3000.0])
def test_any_scale(scale, root):
    rng = np.random.default_rng(int(scale))
    for words in (1, 2, 3, 4):
        scores, values = rng.normal(scale=scale, size=(words + 1, words + 1)), rng.normal(size=(words + 1, words + 1))
        agrees(scores, values, root)


@pytest.mark.parametrize("root", ROOTS)
def test_labels(root):
    rng = np.random.default_rng(5)
    for scale in (1.0, 300.0):
        agrees(rng.normal(scale=scale, size=(4, 4, 2)), rng.normal(size=(4, 4, 2)), root, labelled=True)
    # Labels of one edge that cancel: the edge has a gradient all the same.
    values = np.ones((3, 3, 2))
    values[0, 1] = [1.0, -1.0]
    agrees(np.zeros((3, 3, 2)), values, root, labelled=True)
    # Those of all edges into a word: no change of the edges' weights by a factor would show it.
    values[:, 1] = [1.0, -1.0]
    agrees(np.zeros((3, 3, 2)), values, root, labelled=True)
    agrees(np.zeros((2, 2, 2)), values[:2, :2], root, labelled=True)
    scores = rng.normal(size=(4, 4))[..., np.newaxis].repeat(2, axis=-1)
    values = rng.normal(size=(4, 4, 2))
    values[:, 2] = [0.5, -0.5]
    agrees(scores, values, root, labelled=True)


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("far", [50.0, 800.0, 20_000.0])
def test_a_heavy_cycle(far, root):
    """Trees of like weight have edges that lie `far` apart: a determinant in so many digits fewer is 0."""
    scores = np.random.default_rng(1).normal(size=(4, 4))
    scores[1, 2] += far
    scores[2, 1] += far
    values = np.where(np.arange(16).reshape(4, 4) % 3, -1.5, 0.5)
    agrees(scores, values, root)


@pytest.mark.parametrize("root", ROOTS)
def test_trees_that_cancel(root):
    """The expectation is 0, its gradient is not."""
    scores = np.zeros((3, 3))
    values = np.ones((3, 3))
    values[1, 2] = -1.0 if root == "single" else -2.0
    agrees(scores, values, root)
    assert spantree.TreeDistribution(scores, root=root).product_expectation(values) == 0.0


def test_soft_masks():
    for mask in (-1e4, -1e9, -1e30):
        scores = np.random.default_rng(2).normal(size=(4, 4))
        scores[0] = mask  # every tree has such an edge, the likely ones one of them
        agrees(scores, np.array([[1, -2, 3, 1], [1, 1, -1, 2], [1, 5, 1, 1], [1, 1, 2, 1.0]]), "multi")


def test_integers_are_exact():
    """Of equal scores: a quotient of integers, by Bareiss's elimination of the Laplacian."""
    rng = np.random.default_rng(3)
    for words in (8, 15):
        values = rng.integers(-3, 4, size=(words + 1, words + 1))
        np.fill_diagonal(values, 0)
        matrix = [[Fraction(-int(values[h, d])) for d in range(1, words + 1)] for h in range(1, words + 1)]
        for d in range(words):
            matrix[d][d] = Fraction(int(values[:, d + 1].sum()))
        determinant = Fraction(1)
        for k in range(words):
            pivot = next(i for i in range(k, words) if matrix[i][k])
            matrix[k], matrix[pivot] = matrix[pivot], matrix[k]
            determinant *= matrix[k][k] * (1 if pivot == k else -1)
            for i in range(k + 1, words):
                factor = matrix[i][k] / matrix[k][k]
                matrix[i] = [a - factor * b for a, b in zip(matrix[i], matrix[k], strict=True)]
        ours = spantree.TreeDistribution(np.zeros(values.shape), root="multi").product_expectation(values)
        np.testing.assert_allclose(ours, float(determinant / (words + 1) ** (words - 1)), rtol=1e-10)


def test_there_is_a_limit_and_it_is_named(monkeypatch):
    monkeypatch.setattr("spantree._signed_product.MOST_DIGITS", 100)
    scores = np.zeros((3, 3))
    scores[1, 2] = scores[2, 1] = 500.0  # so 217 digits are needed
    values = np.array([[0, 1, 1], [0, 0, -1], [0, 1, 0.0]])
    with pytest.raises(ValueError, match="digits"):
        spantree.TreeDistribution(scores, root="multi").product_expectation(values)
