"""The best projective tree against enumeration, and what soft masks, huge scores and missing edges do to it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from projective.reference import (
    Sentences,
    argmax,
    is_projective_tree,
    projective_trees,
    random_sentences,
    tree_scores,
)

MODES = pytest.mark.parametrize("root", ["single", "multi"])
MASKS = [-1e4, -1e9, -1e30, float(np.finfo(np.float32).min), -1e300, float(np.finfo(np.float64).min)]


def exact_best(scores, trees):
    """The best trees in rational arithmetic."""
    deps = range(1, len(scores))
    finite = [tree for tree in trees if all(np.isfinite(scores[tree[d], d]) for d in deps)]
    totals = [sum(Fraction(float(scores[tree[d], d])) for d in deps) for tree in finite]
    return [tuple(tree) for tree, total in zip(finite, totals, strict=True) if total == max(totals)]


def quadratic_python_eisner(scores, root):
    """A second algorithm for longer sentences: memoised recursion on (i, j, head), no shared code or layout."""
    n = len(scores) - 1
    best = np.full((2, n + 1, n + 1), -np.inf)  # [0, i, j] headed by i; [1, i, j] headed by j
    half = np.full((2, n + 1, n + 1), -np.inf)
    for i in range(n + 1):
        best[:, i, i] = 0
    low = 1 if root == "single" else 0
    for width in range(1, n + 1):
        for i in range(low, n + 1 - width):
            j = i + width
            link = max(best[0, i, k] + best[1, k + 1, j] for k in range(i, j))
            half[0, i, j] = link + scores[i, j]
            half[1, i, j] = link + scores[j, i] if i > 0 else -np.inf
            best[0, i, j] = max(half[0, i, d] + best[0, d, j] for d in range(i + 1, j + 1))
            best[1, i, j] = max(best[1, i, d] + half[1, d, j] for d in range(i, j))
    if root == "multi":
        return best[0, 0, n]
    return max(best[1, 1, r] + scores[0, r] + best[0, r, n] for r in range(1, n + 1))


@MODES
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("density", [1.0, 0.5])
def test_optimal_on_small_sentences(root, dtype, density):
    sentences = [s.astype(dtype) for s in random_sentences(1, 180, density=density)]
    batch = Sentences(*sentences)
    heads, scores, unattachable = argmax(batch, root, threads=2)
    for i, (sentence, row) in enumerate(zip(sentences, batch.rows(heads), strict=True)):
        trees = projective_trees(len(sentence) - 1, root)
        totals = tree_scores(sentence.astype(np.float64), trees)
        if totals.max() == -np.inf:
            assert unattachable[i] in range(1, len(sentence))
            assert (row == -1).all()
            assert scores[i] == -np.inf
        else:
            assert unattachable[i] == 0
            np.testing.assert_array_equal(row, trees[totals.argmax()])
            assert scores[i] == pytest.approx(totals.max(), rel=1e-14)


@MODES
@pytest.mark.parametrize("words", [7, 8, 9, 15, 16, 17, 33, 50])
def test_optimal_on_longer_sentences(root, words):
    for scores in random_sentences(words, 3, words=(words,)):
        heads, value, _ = argmax(Sentences(scores), root)
        assert is_projective_tree(tuple(heads[1:]))
        assert root == "multi" or (heads == 0).sum() == 1
        assert value[0] == pytest.approx(quadratic_python_eisner(scores, root), rel=1e-13)


@MODES
@pytest.mark.parametrize("mask", MASKS)
def test_soft_masks_are_hard_masks(root, mask):
    agreements = 0
    for sentence in random_sentences(3, 120, words=(3, 5, 6, 12), density=0.6):
        hard_heads, _, unattachable = argmax(Sentences(sentence), root)
        soft_heads, _, still = argmax(Sentences(np.where(np.isneginf(sentence), mask, sentence)), root)
        assert still[0] == 0
        if unattachable[0] == 0:
            agreements += 1
            np.testing.assert_array_equal(hard_heads, soft_heads)
    assert agreements > 30


@MODES
@pytest.mark.parametrize("size", [1e9, 1e30, 1e300])
def test_exact_where_large_scores_are_in_the_tree(root, size):
    """A large score, wanted or unavoidable, hides no difference between the small ones."""
    rng = np.random.default_rng(4)
    for sentence in random_sentences(5, 60, words=(2, 3, 4, 5)):
        large = np.where(rng.random(sentence.shape) < 0.5, rng.choice([-size, size], sentence.shape), 0.0)
        scores = np.where(large == 0, sentence, large)
        heads, _, _ = argmax(Sentences(scores), root)
        assert tuple(heads) in exact_best(scores, projective_trees(len(scores) - 1, root))


@MODES
@pytest.mark.parametrize("value", [0.0, 1.0, -1.0, 0.1, 1e300, -1e300])
def test_all_equal_scores(root, value):
    for words in range(1, 30):
        heads, _, unattachable = argmax(Sentences(np.full((words + 1, words + 1), value)), root)
        assert unattachable[0] == 0
        assert is_projective_tree(tuple(heads[1:]))


@MODES
def test_tiny_sentences(root):
    nan = np.nan
    heads, scores, unattachable = argmax(Sentences(np.full((1, 1), nan), np.array([[nan, 2.5], [nan, nan]])), root)
    assert heads.tolist() == [-1, -1, 0]
    assert scores.tolist() == [0.0, 2.5]
    assert unattachable.tolist() == [0, 0]


def test_unattachable_word_is_to_blame():
    """Allowing any head for the word that is named makes the sentence feasible whenever one word can."""
    blamed = 0
    for root in ("single", "multi"):
        for sentence in random_sentences(6, 200, words=(3, 4, 5), density=0.45):
            unattachable = int(argmax(Sentences(sentence), root)[2][0])
            if not unattachable:
                continue
            trees = projective_trees(len(sentence) - 1, root)
            deps = np.arange(1, len(sentence))
            missing = np.isneginf(sentence[trees[:, 1:], deps])
            fewest = missing[missing.sum(axis=1) == missing.sum(axis=1).min()]
            assert fewest[:, unattachable - 1].any()
            blamed += 1
    assert blamed > 50


def test_crossing_is_what_makes_it_infeasible():
    scores = np.full((5, 5), -np.inf)
    scores[0, 3] = scores[3, 1] = scores[1, 4] = scores[3, 2] = scores[4, 2] = 0.0  # 1 -> 4 crosses ROOT -> 3
    assert argmax(Sentences(scores), "single")[2].tolist() == [4]


@MODES
def test_layouts_threads_and_neighbours_change_nothing(root):
    sentences = list(random_sentences(7, 24, words=(5, 20, 21, 40)))
    batch = Sentences(*sentences)
    heads, scores, _ = argmax(batch, root)
    for threads in (2, 5):
        for result, expected in zip(argmax(Sentences(*sentences), root, threads), (heads, scores), strict=False):
            np.testing.assert_array_equal(result, expected)
    for sentence, row in zip(sentences, batch.rows(heads), strict=True):
        for view in (sentence, np.asfortranarray(sentence)):
            np.testing.assert_array_equal(argmax(Sentences(view), root)[0], row)


def test_a_long_chain():
    words = 600
    scores = np.full((words + 1, words + 1), -1.0)
    scores[np.arange(words), np.arange(1, words + 1)] = 1.0
    for root in ("single", "multi"):
        heads, value, _ = argmax(Sentences(scores), root)
        np.testing.assert_array_equal(heads, np.arange(-1, words))
        assert value[0] == words
