"""The best tree is best: against enumeration, against a second algorithm, and for scores of every magnitude."""

from __future__ import annotations

import numpy as np
import pytest
from decoding_battery import FAMILIES, integer_ties, many_roots, normal, scores_of, trees

import spantree
from spantree import zoo

ROOTS = ["single", "multi"]
SOFT_MASKS = [-1e4, -1e9, -1e30, float(np.finfo(np.float32).min), -1e300]


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_batch_against_enumeration(family, n, dtype, root):
    rng = np.random.default_rng(n)
    scores = np.stack([family(rng, n) for _ in range(40)]).astype(dtype)
    dist = spantree.TreeDistribution(scores, root=root, on_infeasible="mask")
    heads, best = dist.argmax(), dist.max()
    assert best.dtype == dtype
    assert heads.dtype == np.int64
    everything = trees(n, root)
    for matrix, tree, score in zip(scores, heads, best, strict=True):
        totals = scores_of(matrix.astype(np.float64), everything)
        np.testing.assert_allclose(score, totals.max(), rtol=1e-6 if dtype == np.float32 else 1e-13, atol=1e-13)
        if np.isfinite(score):
            assert (everything == tree).all(axis=1).any()
            np.testing.assert_allclose(scores_of(matrix.astype(np.float64), tree[None]), totals.max(), atol=1e-12)
        else:
            assert (tree == -1).all()


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("n", [10, 23, 40, 65])
@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_longer_sentences_against_the_zoo(n, scale, root):
    rng = np.random.default_rng(n)
    decoder = zoo.gabow_tarjan if root == "single" else zoo.tarjan
    for scores in rng.normal(scale=scale, size=(8, n + 1, n + 1)):
        scores[rng.random(scores.shape) < 0.1] = -np.inf
        np.testing.assert_array_equal(spantree.decode(scores, root=root), decoder(scores))


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("family", [normal, integer_ties, many_roots], ids=lambda family: family.__name__)
@pytest.mark.parametrize("n", [256, 257, 263, 264, 287, 300, 513])
def test_long_sentences_in_either_layout(n, family, dtype, root):
    """Beyond 256 words, what lies in rows of heads is turned first."""
    rng = np.random.default_rng(n)
    for forbidden in (0.0, 0.1, 0.97):
        scores = family(rng, n).astype(dtype)
        scores[rng.random(scores.shape) < forbidden] = -np.inf
        expected = (zoo.gabow_tarjan if root == "single" else zoo.tarjan)(scores)
        scores[:, 0] = rng.choice([np.nan, np.inf, -np.inf, 1e30], size=n + 1)
        scores[np.diag_indices(n + 1)] = rng.choice([np.nan, np.inf, -np.inf, 1e30], size=n + 1)
        padded = np.full((n + 4, n + 4), np.nan, dtype)
        padded[: n + 1, : n + 1] = scores
        by_heads = spantree.TreeDistribution(scores, root=root)
        by_deps = spantree.TreeDistribution(scores.T.copy(), root=root, layout="dep_head")
        within_padding = spantree.TreeDistribution(padded[None], lengths=[n], root=root)
        heads = by_heads.argmax()
        np.testing.assert_array_equal(by_deps.argmax(), heads)
        np.testing.assert_array_equal(within_padding.argmax()[0, : n + 1], heads)
        assert by_heads.max() == by_deps.max() == within_padding.max()[0] == by_heads.score(expected)
        if family is not integer_ties:
            np.testing.assert_array_equal(heads, expected)


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("mask", [*SOFT_MASKS, "mixed", "added"])
def test_soft_masks_are_as_good_as_forbidding(mask, root):
    rng = np.random.default_rng(3)
    compared = 0
    for n in (3, 4, 5, 12, 30):
        for _ in range(40):
            scores = rng.normal(size=(n + 1, n + 1))
            masked = rng.random(scores.shape) < (0.5 if n < 12 else 0.8)
            hard = spantree.TreeDistribution(np.where(masked, -np.inf, scores), root=root, on_infeasible="mask")
            if hard.max() == -np.inf:
                continue
            compared += 1
            penalty = rng.choice(SOFT_MASKS, size=scores.shape) if mask == "mixed" else mask
            soft = scores + np.where(masked, -1e9, 0.0) if mask == "added" else np.where(masked, penalty, scores)
            np.testing.assert_array_equal(spantree.decode(soft, root=root), hard.argmax())
    assert compared > 60


def test_soft_mask_on_the_way_to_the_root_word():
    # A word gives up ROOT even for a masked head while cycles are contracted; small differences between root edges must
    # survive the size of the mask.
    tiny = 1e-9
    scores = np.full((4, 4), -1e30)
    scores[0, 1:] = [0.0, tiny, 0.0]
    scores[1, 2] = scores[2, 1] = scores[2, 3] = scores[3, 2] = 1.0
    np.testing.assert_array_equal(spantree.decode(scores), [-1, 2, 0, 2])


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("magnitude", [1e-300, 1e-8, 1e5, 1e15, 1e150, 1e300])
def test_scale_of_the_scores_does_not_matter(magnitude, root):
    rng = np.random.default_rng(4)
    scores = rng.integers(-8, 8, size=(50, 7, 7)).astype(np.float64) + rng.integers(0, 8, size=(50, 7, 7)) / 8
    power = 2.0 ** np.round(np.log2(magnitude))  # so that scaling rounds nothing
    np.testing.assert_array_equal(spantree.decode(scores, root=root), spantree.decode(scores * power, root=root))


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("shift", [-1e3, 1e3, 1e12, -1e12])
def test_adding_to_a_column_changes_no_tree(shift, root):
    rng = np.random.default_rng(5)
    scores = rng.integers(-100, 100, size=(50, 9, 9)).astype(np.float64)
    shifted = scores.copy()
    shifted[:, :, 3] += shift
    plain = spantree.TreeDistribution(scores, root=root)
    moved = spantree.TreeDistribution(shifted, root=root)
    np.testing.assert_array_equal(plain.max(), moved.max() - shift)


def test_one_root_where_several_would_score_more():
    scores = np.array([[0, 10, 10, 10], [0, 0, 1, 1], [0, 2, 0, 3], [0, 1, 1, 0.0]])
    np.testing.assert_array_equal(spantree.decode(scores, root="multi"), [-1, 0, 0, 0])
    np.testing.assert_array_equal(spantree.decode(scores), [-1, 2, 0, 2])


@pytest.mark.parametrize("root", ROOTS)
def test_a_chain_of_5000_words(root):
    """Greedy closes a cycle at the end of the chain, and contracting it the next, 5,000 deep."""
    n = 5000
    scores = np.full((n + 1, n + 1), -50.0, np.float32)
    scores[np.arange(n), np.arange(1, n + 1)] = -1.0
    scores[np.arange(2, n + 1), np.arange(1, n)] = 0.0
    dist = spantree.TreeDistribution(scores, root=root)
    np.testing.assert_array_equal(dist.argmax(), np.r_[-1, np.arange(2, n + 1), 0])
    assert dist.max() == -50.0


def test_no_words_and_one_word():
    assert spantree.decode(np.zeros((1, 1))).tolist() == [-1]
    assert spantree.TreeDistribution(np.zeros((1, 1))).max() == 0.0
    assert spantree.decode(np.zeros((2, 2))).tolist() == [-1, 0]
    assert spantree.decode(np.zeros((0, 5, 5))).shape == (0, 5)
    assert spantree.decode([]) == []
    assert spantree.TreeDistribution(np.zeros((0, 5, 5))).max().shape == (0,)


@pytest.mark.parametrize("root", ROOTS)
def test_same_tree_whatever_the_company(root):
    """Ties fall the same way alone, in a batch, in either layout, in a list, and on any number of threads."""
    rng = np.random.default_rng(6)
    scores = rng.integers(0, 3, size=(300, 21, 21)).astype(np.float64)
    together = spantree.decode(scores, root=root)
    try:
        spantree.set_threads(2)
        np.testing.assert_array_equal(spantree.decode(scores, root=root), together)
        np.testing.assert_array_equal(spantree.decode(list(scores), root=root), together)
        transposed = np.ascontiguousarray(scores.swapaxes(1, 2))
        np.testing.assert_array_equal(spantree.decode(transposed, root=root, layout="dep_head"), together)
    finally:
        spantree.set_threads(None)
    for i in range(0, 300, 37):
        np.testing.assert_array_equal(spantree.decode(scores[i], root=root), together[i])
        np.testing.assert_array_equal(spantree.decode(scores[i].astype(np.float32), root=root), together[i])
