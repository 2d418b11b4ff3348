"""The best trees are best in real arithmetic, and scores are the nearest numbers to the true sums."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import spantree
from decoding.hostile import FAMILIES, best_exact, exact_scores, nearest, trees
from spantree import zoo

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in cast")  # sums beyond float32

ROOTS = ["single", "multi"]
EVERY_KIND = pytest.mark.parametrize(
    ("root", "projective"), [(root, projective) for root in ROOTS for projective in (False, True)]
)
FAMILY = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
DTYPE = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def rounded(x, dtype):
    """The nearest double to a fraction, then, if asked for, the nearest float32."""
    with np.errstate(over="ignore"):
        return dtype(nearest(x))


def check(scores, root, projective, labelled):
    """All trees, in order, with their scores, by every way to get at them."""
    dtype = scores.dtype.type
    expected = exact_scores(scores, root, projective, labelled)
    dist = spantree.TreeDistribution(scores, root=root, projective=projective, labelled=labelled, on_infeasible="mask")
    k = len(expected)
    top = dist.topk(k + 1)
    labels = top.labels if labelled else np.where(top.heads < 0, -1, 0)
    found = [(tuple(map(int, heads)), tuple(map(int, row))) for heads, row in zip(top.heads, labels, strict=True)][:k]
    assert (top.heads[k] == -1).all()
    assert len(set(found)) == k
    assert set(found) == set(expected)
    totals = [expected[tree] for tree in found]
    assert totals == sorted(totals, reverse=True)
    if k == 0:
        assert dist.max() == -np.inf
        return
    np.testing.assert_array_equal(top.scores[:k], [rounded(total, dtype) for total in totals])
    assert not np.isnan(top.scores).any()

    best = dist.argmax()
    np.testing.assert_array_equal(best.heads if labelled else best, top.heads[0])
    if labelled:
        np.testing.assert_array_equal(best.labels, top.labels[0])
    assert dist.max() == top.scores[0]
    given = spantree.Trees(top.heads[:k], labels=top.labels[:k]) if labelled else top.heads[:k]
    np.testing.assert_array_equal(dist.score(given), top.scores[:k])
    for tree, heads in zip(dist.iter_best(), top.heads[: min(k, 40)], strict=False):
        np.testing.assert_array_equal(tree.heads, heads)


@EVERY_KIND
@DTYPE
@FAMILY
def test_every_tree_in_order(family, dtype, root, projective):
    rng = np.random.default_rng(1)
    for n, repeats in ((1, 2), (2, 6), (3, 6), (4, 2), (5, 1)):
        for _ in range(repeats):
            check(family(rng, (n + 1, n + 1), dtype).astype(dtype), root, projective, labelled=False)


@EVERY_KIND
@DTYPE
@FAMILY
def test_every_labelled_tree_in_order(family, dtype, root, projective):
    rng = np.random.default_rng(2)
    for n, labels, repeats in ((1, 5, 2), (2, 3, 3), (3, 2, 2)):
        for _ in range(repeats):
            check(family(rng, (n + 1, n + 1, labels), dtype).astype(dtype), root, projective, labelled=True)


@EVERY_KIND
@DTYPE
@FAMILY
def test_the_best_of_many(family, dtype, root, projective):
    """A batch of five-word sentences: the best tree, and its score."""
    rng = np.random.default_rng(3)
    scores = family(rng, (12, 6, 6), dtype).astype(dtype)
    dist = spantree.TreeDistribution(scores, root=root, projective=projective, on_infeasible="mask")
    for matrix, heads, score in zip(scores, dist.argmax(), dist.max(), strict=True):
        expected = exact_scores(matrix, root, projective, False)
        best = max(expected.values(), default=None)
        if best is None:
            assert (heads == -1).all()
        else:
            assert expected[tuple(map(int, heads)), (-1, 0, 0, 0, 0, 0)] == best
            assert score == rounded(best, dtype)


def exact_weight(scores, heads):
    return sum((Fraction(float(scores[heads[dep], dep])) for dep in range(1, len(scores))), Fraction(0))


@EVERY_KIND
@DTYPE
@FAMILY
def test_longer_sentences_against_rational_numbers(family, dtype, root, projective):
    rng = np.random.default_rng(4)
    for n in (8, 12, 17) if root == "multi" or projective else (8, 11):
        scores = family(rng, (n + 1, n + 1), dtype).astype(dtype)
        heads = spantree.decode(scores, root=root, projective=projective, on_infeasible="mask")
        best = best_exact(scores, root, projective)
        if best is None:
            assert (heads == -1).all()
        else:
            assert spantree.is_tree(heads, root=root)
            assert not projective or spantree.is_projective(heads)
            assert exact_weight(scores, heads) == best


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e5, 1e300])
def test_longer_sentences_against_the_zoo(scale, root):
    decoder = zoo.gabow_tarjan if root == "single" else zoo.tarjan
    for n, scores in ((n, np.random.default_rng(n).normal(size=(n + 1, n + 1))) for n in (20, 45, 120)):
        np.testing.assert_array_equal(spantree.decode(scores * scale, root=root), decoder(scores), err_msg=str(n))


@pytest.mark.parametrize("root", ROOTS)
@FAMILY
def test_no_exchange_of_edges_improves_the_best(family, root):
    """Of longer sentences: the second best, in real numbers, is no better than the best, nor the third than it."""
    rng = np.random.default_rng(5)
    for n in (12, 30):
        scores = family(rng, (n + 1, n + 1), np.float64).astype(np.float64)
        dist = spantree.TreeDistribution(scores, root=root, on_infeasible="mask")
        top = dist.topk(6)
        rows = top.heads[top.heads[:, 1] >= 0]
        totals = [exact_weight(scores, heads) for heads in rows]
        assert totals == sorted(totals, reverse=True)
        if len(rows):
            np.testing.assert_array_equal(top.scores[: len(rows)], [nearest(total) for total in totals])
            np.testing.assert_array_equal(dist.argmax(), rows[0])
            without = [dist.condition(exclude=[(int(rows[0][dep]), dep)]) for dep in range(1, n + 1)]
            others = [other.argmax() for other in without]
            best = [exact_weight(scores, heads) for heads in others if heads[1] >= 0]
            assert max(best, default=None) == (totals[1] if len(totals) > 1 else None)


def test_one_unit_in_the_last_place():
    scores = 1 + 2.0**-52 * np.array([[2, 2, 3], [1, 3, 2], [3, 0, 3]])
    assert spantree.decode(scores).tolist() == [-1, 0, 1]


@DTYPE
def test_scores_far_below_another(dtype):
    """Beside a score of 1 the others, a few units of 2^-53, differ by less than they are rounded off."""
    rng = np.random.default_rng(9)
    sentences, words = 4000, 5
    exact = rng.integers(1, 8, (sentences, words + 1, words + 1))
    exact[rng.random(exact.shape) < 0.4] = 0
    exact[:, 0, 1] = 1 << 53
    candidates = np.array(trees(words, "single", False))[:, 1:]
    found = spantree.decode((exact * 2.0**-53).astype(dtype))[:, 1:]
    deps = np.arange(1, words + 1)
    for matrix, heads in zip(exact, found, strict=True):
        assert matrix[heads, deps].sum() == matrix[candidates, deps].sum(-1).max()


def test_sums_along_a_thousand_nested_cycles():
    """Word 1 and the words after it take each other, one by one: cycles in cycles, each of which loses all that it can.

    Only the last word leads out of them, and it needs the one edge from ROOT. By taking that, word 1 would gain more
    than a thousand times the largest score.
    """
    words = 1500
    scores = np.full((words + 1, words + 1), -np.inf)
    largest = 1.875  # nearly a power of two, and a whole number of units
    chain = np.arange(1, words - 1)
    scores[1, chain + 1] = largest
    scores[chain + 1, chain] = -largest
    scores[0, 1] = -1.0
    scores[0, words] = scores[words, words - 1] = -largest
    expected = np.append(-1, np.arange(2, words + 2))
    expected[words] = 0
    np.testing.assert_array_equal(spantree.decode(scores), expected)


def test_scores_below_the_reach_of_a_scale():
    scores = np.random.default_rng(6).normal(size=(20, 6, 6))
    tiny = scores * 1e-305
    for matrix, heads in zip(tiny, spantree.decode(tiny), strict=True):
        expected = exact_scores(matrix, "single", False, False)
        assert expected[tuple(map(int, heads)), (-1, 0, 0, 0, 0, 0)] == max(expected.values())


def test_partial_sums_may_overflow():
    largest = np.finfo(np.float64).max
    scores = np.full((4, 4), -np.inf)
    scores[0, 1], scores[1, 2], scores[1, 3] = largest, largest, -largest
    dist = spantree.TreeDistribution(scores)
    heads = [-1, 0, 1, 1]
    assert dist.max() == dist.score(heads) == dist.topk(1).scores[0] == largest
    scores[1, 3] = -np.inf
    scores[2, 3] = largest
    assert spantree.TreeDistribution(scores).max() == np.inf
    assert spantree.TreeDistribution(-np.where(np.isfinite(scores), scores, np.inf)).max() == -np.inf


@pytest.mark.parametrize("terms", [1, 2, 3, 10, 100, 1000])
def test_scores_are_correctly_rounded(terms):
    """One chain of words: the score is the sum of its edges, as math.fsum has it."""
    rng = np.random.default_rng(terms)
    for magnitude in (0, 10, 200):
        for _ in range(20):
            values = rng.normal(size=terms) * 10.0 ** rng.integers(-magnitude, magnitude + 1, terms)
            if terms > 2:
                values[1] = -values[0] * (1 + rng.integers(-1, 2) * 2.0**-52)
                values[2] = abs(values[0]) * 2.0**-53  # halfway between two doubles, but for the rest
            scores = np.full((terms + 1, terms + 1), -np.inf)
            scores[np.arange(terms), np.arange(1, terms + 1)] = values
            chain = np.arange(-1, terms)
            assert spantree.TreeDistribution(scores).score(chain) == math.fsum(values)


def test_sums_halfway_between_two_doubles():
    """Of numbers that are multiples of 2^-50, one sum in eight is a tie: it goes to the even one."""
    rng = np.random.default_rng(8)
    ties = 0
    for _ in range(400):
        values = rng.integers(2**50, 2**53, 12) * 2.0**-50
        scores = np.full((13, 13), -np.inf)
        scores[np.arange(12), np.arange(1, 13)] = values
        exact = sum(map(Fraction, values))
        ties += abs(exact - Fraction(nearest(exact))) == Fraction(math.ulp(nearest(exact))) / 2
        assert spantree.TreeDistribution(scores).score(np.arange(-1, 12)) == nearest(exact)
    assert ties > 20


@EVERY_KIND
@DTYPE
def test_ties_fall_the_same_way_in_every_form(dtype, root, projective):
    """Alone, in a batch, in either layout, shifted by a power of two, as the first of the k best."""
    rng = np.random.default_rng(7)
    scores = (rng.integers(-2, 3, (30, 8, 8)) * 0.1).astype(dtype)
    options = {"root": root, "projective": projective}
    together = spantree.decode(scores, **options)
    np.testing.assert_array_equal(spantree.topk(scores, 3, **options).heads[0], together)
    np.testing.assert_array_equal(spantree.decode(scores * dtype(2**20), **options), together)
    np.testing.assert_array_equal(spantree.decode(scores.astype(np.float64), **options), together)
    turned = np.ascontiguousarray(scores.swapaxes(1, 2))
    np.testing.assert_array_equal(spantree.decode(turned, layout="dep_head", **options), together)
    for matrix, heads in zip(scores, together, strict=True):
        np.testing.assert_array_equal(spantree.decode(matrix, **options), heads)
