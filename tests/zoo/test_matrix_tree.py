"""Laplacians, log Z and marginals against enumeration, and where the inverse breaks."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tree_oracle import all_trees, graphs, has_tree, random_scores

from spantree import zoo
from spantree.zoo._support import possible_edges

ROOTS = ("single", "multi")


@pytest.mark.parametrize("root", ROOTS)
def test_log_partition_and_marginals_are_those_of_enumeration(root):
    for scores in graphs(root):
        trees = all_trees(scores, root)
        log_z, marginals = zoo.matrix_tree(scores, root=root)
        assert log_z == pytest.approx(trees.log_z, abs=1e-12)
        np.testing.assert_allclose(marginals, trees.marginals(), atol=1e-12)


@pytest.mark.parametrize("n", range(1, 12))
def test_determinants_count_trees_as_cayley_does(n):
    ones = np.ones((n + 1, n + 1))
    ones[:, 0] = 0
    np.fill_diagonal(ones, 0)
    assert np.linalg.det(zoo.laplacian(ones, "multi")) == pytest.approx((n + 1) ** (n - 1))
    assert np.linalg.det(zoo.laplacian(ones, "single")) == pytest.approx(n ** (n - 1))


@pytest.mark.parametrize("root", ROOTS)
def test_pullback_is_the_adjoint_of_the_laplacian(root):
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(6, 6))
    weights[:, 0] = 0
    np.fill_diagonal(weights, 0)
    matrix = rng.normal(size=(5, 5))
    pulled = zoo.laplacian_pullback(matrix, root)
    assert (zoo.laplacian(weights, root) * matrix).sum() == pytest.approx((weights * pulled).sum())
    assert not pulled[:, 0].any()
    assert not pulled.diagonal().any()


@pytest.mark.parametrize("root", ROOTS)
def test_labelled_marginals_are_those_of_enumeration(root):
    n, labels = 3, 2
    scores = np.random.default_rng(1).normal(size=(n + 1, n + 1, labels))
    scores[1, 2, 0] = scores[0, 3, 0] = scores[0, 3, 1] = -np.inf
    scores[:, 0] = np.nan
    scores[2, 2] = np.nan
    expected = np.zeros(scores.shape)
    z = 0.0
    for heads in zoo.enumerate_trees(n, root=root):
        for labelling in itertools.product(range(labels), repeat=n):
            edges = [(heads[j], j, labelling[j - 1]) for j in range(1, n + 1)]
            weight = np.exp(sum(scores[edge] for edge in edges))
            z += weight
            for edge in edges:
                expected[edge] += weight
    log_z, marginals = zoo.labelled_matrix_tree(scores, root=root)
    assert log_z == pytest.approx(np.log(z))
    np.testing.assert_allclose(marginals, expected / z, atol=1e-14)


def test_large_scores_neither_overflow_nor_lose_digits():
    scores = random_scores(4, seed=7)
    for root in ROOTS:
        log_z, marginals = zoo.matrix_tree(scores, root=root)
        moved_log_z, moved = zoo.matrix_tree(scores + 1e4, root=root)
        assert moved_log_z == pytest.approx(log_z + 4e4, rel=1e-14)
        np.testing.assert_allclose(moved, marginals, atol=1e-11)
    far_root = scores.copy()
    far_root[0, 1:] += 2000.0
    np.testing.assert_allclose(zoo.matrix_tree(far_root)[1], zoo.matrix_tree(scores)[1], atol=1e-11)


@pytest.mark.parametrize("root", ROOTS)
def test_possible_edges_are_those_some_tree_uses(root):
    infeasible = 0
    for seed in range(150):
        scores = random_scores(4, seed, forbid=0.55)
        if not has_tree(scores, root):
            infeasible += 1
            with pytest.raises(zoo.NoTreeError):
                zoo.matrix_tree(scores, root=root)
            continue
        used = all_trees(scores, root).marginals() > 0
        edges = np.zeros((5, 5), dtype=bool)
        edges[:, 1:] = np.isfinite(np.where(np.eye(5, dtype=bool), -np.inf, scores))[:, 1:]
        np.testing.assert_array_equal(possible_edges(edges, root), used)
    assert 10 < infeasible < 140


def test_the_empty_sentence_has_one_tree():
    for root in ROOTS:
        log_z, marginals = zoo.matrix_tree([[0.0]], root=root)
        assert log_z == 0.0
        assert marginals.tolist() == [[0.0]]


@pytest.mark.parametrize(("root", "scale"), [("multi", 20.0), ("single", 50.0)])
def test_sharp_scores_break_the_inverse(root, scale):
    """The docstring's limit: fine at 1 nat, negative marginals and a wrong log Z when sharp."""
    smooth_error, sharp_error, log_z_error, lowest = 0.0, 0.0, 0.0, 0.0
    for seed in range(10):
        smooth = random_scores(5, seed)
        error = zoo.matrix_tree(smooth, root=root)[1] - all_trees(smooth, root).marginals()
        smooth_error = max(smooth_error, np.abs(error).max())
        sharp = scale * smooth
        trees = all_trees(sharp, root)
        log_z, marginals = zoo.matrix_tree(sharp, root=root)
        sharp_error = max(sharp_error, np.abs(marginals - trees.marginals()).max())
        log_z_error = max(log_z_error, abs(log_z - trees.log_z))
        lowest = min(lowest, marginals.min())
    assert smooth_error < 1e-13
    assert sharp_error > 0.1
    assert log_z_error > 0.05
    if root == "multi":
        assert lowest < -1e-6


def test_a_laplacian_singular_to_working_precision_is_refused():
    outcomes = []
    for seed in range(10):
        try:
            zoo.matrix_tree(random_scores(5, seed, scale=60.0))
            outcomes.append("silent")
        except np.linalg.LinAlgError:
            outcomes.append("refused")
    assert "refused" in outcomes


def test_weights_that_underflow_on_every_tree_are_refused():
    scores = [[0, -800, -800], [0, 0, 0], [0, 0, 0]]
    with pytest.raises(FloatingPointError, match="too far apart"):
        zoo.matrix_tree(scores, root="multi")
    assert zoo.matrix_tree(scores, root="single")[0] == pytest.approx(np.log(2) - 800)


def test_unknown_root_and_wrong_shape_are_refused():
    with pytest.raises(ValueError, match="root"):
        zoo.matrix_tree(np.zeros((3, 3)), root="double")
    with pytest.raises(ValueError, match="shape"):
        zoo.labelled_matrix_tree(np.zeros((3, 3)))
