"""The stand-in for Stanza's decoder: the best tree, by enumeration and by a second algorithm; cycles."""

from __future__ import annotations

import numpy as np
import pytest

from spantree import zoo
from spantree.compat.stanza import chuliu_edmonds, chuliu_edmonds_one_root, tarjan

DECODERS = {"single": chuliu_edmonds_one_root, "multi": chuliu_edmonds}


def total(scores, heads):
    words = np.arange(1, scores.shape[-1])
    return scores[words, heads[..., 1:]].sum(axis=-1)


@pytest.mark.parametrize("root", DECODERS)
@pytest.mark.parametrize("shift", [-5.0, 0.0, 5.0])  # Stanza's own fails on positive scores
def test_the_best_tree(root, shift):
    rng = np.random.default_rng(0)
    trees = zoo.enumerate_trees(5, root)
    for _ in range(50):
        scores = rng.normal(size=(6, 6)) + shift
        heads = DECODERS[root](scores)
        np.testing.assert_array_equal(heads[1:], trees[total(scores, trees).argmax()][1:])
        assert heads[0] == 0
        assert heads.dtype == np.int64


@pytest.mark.parametrize(
    "soft_mask", [-1e4, -1e15, -1e30]
)  # 1e15 times the length drowns the scores that it is added to
def test_soft_masks(soft_mask):
    rng = np.random.default_rng(1)
    for _ in range(50):
        scores = rng.normal(size=(20, 20))
        scores[rng.random(scores.shape) < 0.3] = soft_mask
        expected = zoo.gabow_tarjan(np.where(scores == soft_mask, -np.inf, scores).T)
        np.testing.assert_array_equal(chuliu_edmonds_one_root(scores)[1:], expected[1:])


def test_the_callers_array_stays():
    scores = np.random.default_rng(2).normal(size=(4, 4))
    before = scores.copy()
    chuliu_edmonds(scores)
    np.testing.assert_array_equal(scores, before)


def test_cycles():
    """A node is on a cycle if following heads from it comes back to it; each cycle once, by its first node."""
    rng = np.random.default_rng(3)
    for _ in range(300):
        heads = rng.integers(0, 8, size=8)
        expected = []
        for node in range(8):
            path = [node]
            while heads[path[-1]] not in path:
                path.append(int(heads[path[-1]]))
            if heads[path[-1]] == node and len(path) > 1 and min(path) == node:
                expected.append(sorted(path))
        assert [np.flatnonzero(cycle).tolist() for cycle in tarjan(heads)] == expected


def test_no_cycle_and_one_of_all_words():
    assert tarjan([0, 4, 4, 4, 0]) == []
    n = 100_000  # no recursion
    (cycle,) = tarjan([0, *range(2, n), 1])
    assert cycle.sum() == n - 1
