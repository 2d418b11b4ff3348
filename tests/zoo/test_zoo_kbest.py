"""The k best trees are the first k of all trees sorted by score."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from decoding_battery import FAMILIES, normal, scores_of, trees

from spantree.zoo import EdgeList, NoTreeError, camerini_kbest, is_tree, kbest, reweighting_kbest
from spantree.zoo._graph import FloatArray, Root, clean_scores
from spantree.zoo.camerini_kbest import best, next_edge

both_roots = pytest.mark.parametrize("root", ["single", "multi"])
Family = Callable[[np.random.Generator, int], FloatArray]


@both_roots
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_against_enumeration(root: Root, family: Family) -> None:
    rng = np.random.default_rng(11)
    for n, k in [(1, 2), (2, 4), (3, 5), (3, 30), (4, 20), (4, 150), (5, 40)]:
        scores = family(rng, n)
        everything = trees(n, root)
        ranked = np.sort(scores_of(scores, everything))[::-1]
        ranked = ranked[ranked > -np.inf]
        if len(ranked) == 0:
            with pytest.raises(NoTreeError):
                kbest(scores, k, root=root)
            continue
        heads, found = kbest(scores, k, root=root)
        assert heads.shape == (k, n + 1)
        assert heads.dtype == np.int64
        assert found.shape == (k,)
        assert found.dtype == np.float64
        exist = min(k, len(ranked))
        np.testing.assert_allclose(found[:exist], ranked[:exist], rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(found[:exist], scores_of(scores, heads[:exist]))
        assert (np.diff(found[:exist]) <= 0).all()
        assert len(np.unique(heads[:exist], axis=0)) == exist
        assert all(is_tree(tree, root) for tree in heads[:exist])
        assert (heads[exist:] == -1).all()
        assert (found[exist:] == -np.inf).all()


def test_next_is_right_about_each_of_several_best_trees() -> None:
    rng = np.random.default_rng(16)
    others = 0
    for _ in range(25):
        w = clean_scores(rng.integers(0, 3, size=(5, 5)))
        everything = trees(4, "multi")
        ranked = scores_of(w, everything)
        for A in everything[ranked == ranked.max()]:
            others += not np.array_equal(A, best(w))
            following = next_edge(w, A)
            assert following is not None
            (u, v), delta = following
            assert A[v] == u
            rest = ranked[(everything != A).any(axis=1)].max()
            assert ranked[everything[:, v] != u].max() == rest == ranked.max() - delta
    assert others > 20


def test_a_graph_where_the_best_tree_of_a_class_changes_with_the_class() -> None:
    # once an edge is required, ties are broken otherwise and NEXT meets another best tree than the one it
    # is asked about
    scores = np.array(
        [[0, 3, 1, 2, 1], [0, 0, 2, 0, 1], [0, 0, 0, 3, 2], [0, 3, 1, 0, 0], [0, 1, 2, 3, 0]],
        dtype=np.float64,
    )
    heads, found = camerini_kbest(scores, 125)
    assert len(np.unique(heads, axis=0)) == 125
    np.testing.assert_array_equal(found, np.sort(scores_of(scores, trees(4, "multi")))[::-1])


@both_roots
def test_a_longer_list_begins_with_the_shorter_one(root: Root) -> None:
    scores = normal(np.random.default_rng(12), 9)
    heads, found = kbest(scores, 30, root=root)
    for k in (0, 1, 7):
        np.testing.assert_array_equal(kbest(scores, k, root=root)[0], heads[:k])
        np.testing.assert_array_equal(kbest(scores, k, root=root)[1], found[:k])


def test_one_root_by_reweighting() -> None:
    rng = np.random.default_rng(13)
    for n in (6, 12):
        scores = normal(rng, n)
        for found, expected in zip(reweighting_kbest(scores, 40), kbest(scores, 40, root="single"), strict=True):
            np.testing.assert_array_equal(found, expected)
    few = reweighting_kbest(normal(rng, 3), 12)
    assert few[0][8].min() == -1 < few[0][8].max()
    assert (few[0][9:] == -1).all()
    assert (few[1][9:] == -np.inf).all()
    assert reweighting_kbest(np.zeros((1, 1)), 2)[1].tolist() == [0.0, -np.inf]
    with pytest.raises(TypeError, match="matrix"):
        reweighting_kbest(EdgeList(1, *np.zeros((2, 0), dtype=int), np.zeros(0)), 1)  # type: ignore[arg-type]


def test_soft_masks_do_not_disturb_the_trees_without_them() -> None:
    rng = np.random.default_rng(14)
    scores = normal(rng, 5)
    masked = rng.random(scores.shape) < 0.3
    masked[0, 1] = False
    for root in ("single", "multi"):
        forbidden = np.where(masked, -np.inf, scores)
        count = np.isfinite(scores_of(forbidden, trees(5, root))).sum()
        assert count > 10
        expected, _ = kbest(forbidden, count, root=root)
        np.testing.assert_array_equal(kbest(np.where(masked, -1e30, scores), count, root=root)[0], expected)


@both_roots
def test_the_empty_sentence_has_the_empty_tree(root: Root) -> None:
    heads, found = kbest(np.zeros((1, 1)), 2, root=root)
    assert heads.tolist() == [[-1], [-1]]
    assert found.tolist() == [0.0, -np.inf]


def test_arguments_that_make_no_sense() -> None:
    with pytest.raises(ValueError, match="negative"):
        kbest(np.zeros((3, 3)), -1)
    with pytest.raises(ValueError, match="root"):
        kbest(np.zeros((3, 3)), 1, root="both")  # type: ignore[arg-type]
