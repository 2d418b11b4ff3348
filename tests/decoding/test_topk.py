"""The k best trees: all of them, once each, in order."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from decoding_battery import FAMILIES, scores_of, trees

import spantree

ROOTS = ["single", "multi"]


def assert_k_best(found: spantree.Trees, expected: np.ndarray) -> None:
    """`expected`: the scores of all trees, in any order, -inf for those that do not exist."""
    wanted = np.sort(expected[np.isfinite(expected)])[::-1]
    k = len(found.scores)
    count = min(k, len(wanted))
    np.testing.assert_allclose(found.scores[:count], wanted[:count], rtol=1e-12, atol=1e-12)
    assert (np.diff(found.scores[:count]) <= 0).all()
    assert (found.scores[count:] == -np.inf).all()
    assert (found.heads[count:] == -1).all()
    rows = found.heads[:count] if found.labels is None else np.concatenate([found.heads, found.labels], axis=1)[:count]
    assert len(np.unique(rows, axis=0)) == count


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_all_trees_in_order(family, n, root):
    rng = np.random.default_rng(n)
    everything = trees(n, root)
    for _ in range(6 if n == 5 else 15):
        scores = family(rng, n)
        dist = spantree.TreeDistribution(scores, root=root, on_infeasible="mask")
        found = dist.topk(len(everything) + 2)
        assert_k_best(found, scores_of(scores, everything))
        np.testing.assert_array_equal(dist.score(found.heads[np.isfinite(found.scores)]) >= found.scores[-1], True)


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("mask", [-1e4, -1e9, -1e30])
def test_order_survives_soft_masks(mask, root):
    rng = np.random.default_rng(8)
    for _ in range(10):
        scores = rng.normal(size=(5, 5))
        masked = rng.random(scores.shape) < 0.4
        hard = spantree.TreeDistribution(np.where(masked, -np.inf, scores), root=root, on_infeasible="mask").topk(64)
        soft = spantree.topk(np.where(masked, mask, scores), 64, root=root)
        count = np.isfinite(hard.scores).sum()
        np.testing.assert_array_equal(soft.heads[:count], hard.heads[:count])
        assert (soft.scores[count:] < mask / 2).all()


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("ties", [False, True])
def test_labelled_trees_are_enumerated_with_their_labels(ties, root):
    rng = np.random.default_rng(9)
    labels = 3
    for n in (1, 2, 3):
        everything = trees(n, root)
        for forbidden in (0.0, 0.3):
            scores = rng.normal(size=(n + 1, n + 1, labels))
            if ties:
                scores = np.round(scores)
            scores[rng.random(scores.shape) < forbidden] = -np.inf
            words = np.arange(1, n + 1)
            totals = np.concatenate(
                [
                    scores[everything[:, 1:], words, np.array(choice)].sum(axis=1)
                    for choice in itertools.product(range(labels), repeat=n)
                ]
            )
            dist = spantree.TreeDistribution(scores, root=root, labelled=True, on_infeasible="mask")
            found = dist.topk(len(totals) + 1)
            assert_k_best(found, totals)
            existing = np.isfinite(found.scores)
            trees_found = spantree.Trees(found.heads[existing], labels=found.labels[existing])
            if existing.any():
                np.testing.assert_allclose(dist.score(trees_found), found.scores[existing], atol=1e-12)
                best = dist.argmax()
                np.testing.assert_allclose(dist.score(best), found.scores[0], atol=1e-12)
                assert dist.max() == found.scores[0]


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("n", [12, 30, 90])
def test_fewer_best_trees_are_a_prefix_of_more(n, root):
    scores = np.random.default_rng(n).normal(size=(3, n + 1, n + 1))
    few, many = spantree.topk(scores, 7, root=root), spantree.topk(scores, 60, root=root)
    np.testing.assert_array_equal(few.heads, many.heads[:7])
    np.testing.assert_array_equal(few.heads[0], spantree.decode(scores, root=root))
    np.testing.assert_array_equal(spantree.is_tree(many.heads, root=root), True)
    assert (np.diff(many.scores, axis=0) <= 0).all()
    for sentence in range(3):
        assert len(np.unique(many.heads[:, sentence], axis=0)) == 60


@pytest.mark.parametrize("root", ROOTS)
def test_second_best_is_the_best_without_one_of_its_edges(root):
    """An independent way to the second best: forbid each edge of the best tree in turn."""
    for scores in np.random.default_rng(10).normal(size=(5, 26, 26)):
        dist = spantree.TreeDistribution(scores, root=root)
        best = dist.argmax()
        without = [dist.condition(exclude=[(best[dep], dep)]).max() for dep in range(1, 26)]
        np.testing.assert_allclose(dist.topk(2).scores[1], max(without), rtol=1e-13)


@pytest.mark.parametrize("root", ROOTS)
def test_the_first_is_the_best_tree_even_among_equals(root):
    rng = np.random.default_rng(13)
    scores = rng.integers(0, 2, size=(60, 9, 9)).astype(np.float64)
    np.testing.assert_array_equal(spantree.topk(scores, 2, root=root).heads[0], spantree.decode(scores, root=root))
    labelled = rng.integers(0, 2, size=(60, 6, 6, 3)).astype(np.float64)
    first, best = (
        spantree.topk(labelled, 1, root=root, labelled=True),
        spantree.decode(labelled, root=root, labelled=True),
    )
    np.testing.assert_array_equal(first.heads[0], best.heads)
    np.testing.assert_array_equal(first.labels[0], best.labels)


@pytest.mark.parametrize("projective", [False, True])
@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_tree_is_the_first_of_two(dtype, root, projective):
    """Among equals, beside huge scores, without a tree: whatever finds a single tree, nobody sees the difference."""
    rng = np.random.default_rng(14)
    for labels in ((), (3,)):
        shape = (40, 7, 7, *labels)
        equals = rng.integers(0, 2, size=shape).astype(dtype)
        forbidden = np.where(rng.random(shape) < (0.6 if labels == () else 0.85), -np.inf, equals).astype(dtype)
        huge = (equals + rng.normal(size=shape) * 10.0 ** rng.integers(-30, 30, size=shape)).astype(dtype)
        for scores in (equals, forbidden, huge):
            dist = spantree.TreeDistribution(
                scores, root=root, projective=projective, labelled=labels != (), on_infeasible="mask"
            )
            one, two = dist.topk(1), dist.topk(2)
            np.testing.assert_array_equal(one.heads, two.heads[:1])
            np.testing.assert_array_equal(one.scores, two.scores[:1])
            if labels:
                np.testing.assert_array_equal(one.labels, two.labels[:1])
            none = np.isneginf(one.scores)
            assert none.any() == (scores is forbidden)
            assert not none.all()


def test_lazily_until_none_is_left():
    scores = np.random.default_rng(11).normal(size=(5, 5)).astype(np.float32)
    dist = spantree.TreeDistribution(scores)
    one_by_one = list(dist.iter_best())
    together = dist.topk(64)
    assert len(one_by_one) == 64
    np.testing.assert_array_equal([tree.heads for tree in one_by_one], together.heads)
    np.testing.assert_array_equal([tree.scores for tree in one_by_one], together.scores)
    assert one_by_one[0].scores.dtype == np.float32


def test_lazy_trees_outlive_the_distribution():
    best_first = spantree.TreeDistribution(np.random.default_rng(12).normal(size=(30, 30))).iter_best()
    scores = [tree.scores for tree in itertools.islice(best_first, 50)]
    assert (np.diff(scores) <= 0).all()


def test_no_words():
    found = spantree.topk(np.zeros((1, 1)), 2)
    assert found.heads.tolist() == [[-1], [-1]]
    assert found.scores.tolist() == [0.0, -np.inf]
    assert spantree.topk(np.zeros((0, 3, 3)), 2).heads.shape == (2, 0, 3)
    assert spantree.topk([], 2).heads == []


@pytest.mark.parametrize("k", [0, -1, 1.5, True, "2"])
def test_k_must_be_a_positive_integer(k):
    with pytest.raises(ValueError, match="k must be a positive integer"):
        spantree.topk(np.zeros((3, 3)), k)


def test_iter_best_takes_one_sentence():
    with pytest.raises(ValueError, match="one sentence"):
        spantree.TreeDistribution(np.zeros((2, 3, 3))).iter_best()
