"""The k best projective trees against sorting all of them."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from projective.reference import (
    ROOTS,
    Sentences,
    argmax,
    is_projective_tree,
    projective_trees,
    random_sentences,
    topk,
    tree_scores,
)
from spantree import _core

MODES = pytest.mark.parametrize("root", ["single", "multi"])


def assert_all_trees_in_order(scores, root):
    """Every tree without a forbidden edge comes once, best first; then padding."""
    trees = projective_trees(len(scores) - 1, root)
    totals = tree_scores(scores, trees)
    k = int(np.isfinite(totals).sum())
    heads, _, values, unattachable = topk(Sentences(scores), root, k + 2)
    assert (unattachable[0] == 0) == (k > 0)
    assert sorted(map(tuple, heads[:k])) == sorted(map(tuple, trees[np.isfinite(totals)]))
    assert (np.diff(values[:k, 0]) <= 0).all()
    np.testing.assert_allclose(values[:k, 0], np.sort(totals[np.isfinite(totals)])[::-1], rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(values[:k, 0], tree_scores(scores, heads[:k]), rtol=1e-13, atol=1e-13)
    assert (heads[k:] == -1).all()
    assert np.isneginf(values[k:]).all()


@MODES
@pytest.mark.parametrize("density", [1.0, 0.6])
def test_all_trees_in_order(root, density):
    for scores in random_sentences(11, 30, words=(1, 2, 3, 4, 5, 6), density=density):
        assert_all_trees_in_order(scores, root)


@MODES
def test_all_trees_in_order_when_many_tie(root):
    rng = np.random.default_rng(12)
    for words in (2, 3, 4, 5):
        assert_all_trees_in_order(np.zeros((words + 1, words + 1)), root)
        assert_all_trees_in_order(rng.integers(-1, 2, (words + 1, words + 1)).astype(float), root)
        assert_all_trees_in_order(rng.integers(-1, 2, (words + 1, words + 1)) * 0.1, root)


@MODES
def test_soft_masks_sort_behind_everything_else(root):
    """With masks of any size, trees come by the number of masked edges, then by the rest of the score: exactly."""
    rng = np.random.default_rng(13)
    for mask in (-1e9, -1e30, -1e300):
        for scores in random_sentences(14, 6, words=(3, 4)):
            masked = np.where(rng.random(scores.shape) < 0.4, mask, scores)
            trees = projective_trees(len(scores) - 1, root)
            heads, _, _, _ = topk(Sentences(masked), root, len(trees))
            deps = range(1, len(scores))
            totals = [sum(Fraction(float(masked[tree[d], d])) for d in deps) for tree in heads]
            assert len({tuple(tree) for tree in heads}) == len(trees)
            assert totals == sorted(totals, reverse=True)


def labelled_trees(scores, root):
    """Every labelled tree with its score."""
    words, labels = scores.shape[0] - 1, scores.shape[2]
    for tree in projective_trees(words, root):
        for choice in itertools.product(range(labels), repeat=words):
            total = sum(scores[tree[d], d, label] for d, label in enumerate(choice, 1))
            if np.isfinite(total):
                yield total, tuple(tree), (-1, *choice)


@MODES
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_all_labelled_trees_in_order(root, dtype):
    rng = np.random.default_rng(15)
    for words, labels, ties in [(1, 4, False), (2, 3, True), (3, 2, False), (3, 3, False), (3, 2, True), (4, 2, False)]:
        scores = rng.normal(size=(words + 1, words + 1, labels))
        if ties:
            scores = np.sign(scores)
        scores[rng.random(scores.shape) < 0.1] = -np.inf
        scores = scores.astype(dtype)
        expected = sorted(labelled_trees(scores.astype(float), root), reverse=True)
        k = len(expected)
        heads, found_labels, values, _ = topk(Sentences(scores, labelled=True), root, k + 1, labelled=True)
        found = list(zip(map(tuple, heads), map(tuple, found_labels), strict=True))
        assert sorted(found[:k]) == sorted((tree, choice) for _, tree, choice in expected)
        np.testing.assert_allclose(values[:k, 0], [total for total, _, _ in expected], rtol=1e-13, atol=1e-13)
        assert (heads[k] == -1).all()
        assert (found_labels[k] == -1).all()


@MODES
def test_labelled_argmax_is_the_first(root):
    rng = np.random.default_rng(16)
    for words in (1, 2, 7, 20):
        sentences = Sentences(rng.normal(size=(words + 1, words + 1, 5)), labelled=True)
        heads, labels, values, _ = topk(sentences, root, 1, labelled=True)
        row, label_row = np.empty(words + 1, np.int64), np.empty(words + 1, np.int64)
        score = np.empty(1)
        assert _core.argmax(sentences.batch, ROOTS[root], True, 1, row, label_row, score) is None
        np.testing.assert_array_equal(row, heads[0])
        np.testing.assert_array_equal(label_row, labels[0])
        assert score[0] == values[0, 0]


@MODES
def test_longer_sentences(root):
    """Prefix property, no repeats, only projective trees, and the first is the best."""
    for scores in random_sentences(17, 4, words=(12, 25, 40)):
        sentences = Sentences(scores)
        heads, _, values, _ = topk(sentences, root, 300)
        np.testing.assert_array_equal(heads[0], argmax(sentences, root)[0])
        np.testing.assert_array_equal(topk(sentences, root, 40)[0], heads[:40])
        assert len({tuple(tree) for tree in heads}) == 300
        assert all(is_projective_tree(tuple(tree[1:])) for tree in heads)
        assert root == "multi" or ((heads == 0).sum(axis=1) == 1).all()
        assert (np.diff(values[:, 0]) <= 0).all()
        np.testing.assert_allclose(values[:, 0], tree_scores(scores, heads), rtol=1e-13)


@MODES
def test_one_at_a_time_until_none_is_left(root):
    scores = next(random_sentences(18, 1, words=(5,)))
    sentences = Sentences(scores)
    count = len(projective_trees(5, root))
    expected, _, values, _ = topk(sentences, root, count)
    stream = _core.iter_best(sentences.batch, 0, ROOTS[root], True)
    row = np.empty(6, np.int64)
    for rank in range(count):
        assert stream.next(row, None) == values[rank, 0]
        np.testing.assert_array_equal(row, expected[rank])
    assert stream.next(row, None) is None
    assert stream.next(row, None) is None


@MODES
def test_batches_with_tiny_and_infeasible_sentences(root):
    infeasible = np.full((4, 4), -np.inf)
    infeasible[0, 1] = infeasible[1, 3] = 0.0
    sentences = Sentences(np.zeros((1, 1)), np.zeros((2, 2)), infeasible, np.zeros((3, 3)))
    for threads in (1, 3):
        heads, _, values, unattachable = topk(sentences, root, 2, threads=threads)
        assert unattachable.tolist() == [0, 0, 2, 0]
        empty, one, none, two = sentences.rows(heads[0])
        assert empty.tolist() == [-1]
        assert one.tolist() == [-1, 0]
        assert none.tolist() == [-1] * 4
        assert sorted(two.tolist()).count(-1) == 1
        assert values[0].tolist() == [0, 0, -np.inf, 0]
        assert values[1].tolist() == [-np.inf, -np.inf, -np.inf, 0]


def test_a_long_chain_needs_no_deep_recursion():
    words = 300
    scores = np.full((words + 1, words + 1), -1.0)
    scores[np.arange(words), np.arange(1, words + 1)] = 1.0
    heads, _, values, _ = topk(Sentences(scores), "single", 5)
    np.testing.assert_array_equal(heads[0], np.arange(-1, words))
    assert values[:, 0].tolist() == [300.0, 298.0, 298.0, 298.0, 298.0]
