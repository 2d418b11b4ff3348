"""The stand-in for ufal.chu_liu_edmonds gives what the original gives, and a tree or an error where that goes wrong."""

from __future__ import annotations

import numpy as np
import pytest
from ufal import chu_liu_edmonds as original

import spantree
from spantree.compat.ufal import chu_liu_edmonds


@pytest.mark.parametrize("forbidden", [0.0, 0.3])
def test_as_the_original(forbidden):
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = rng.integers(0, 20)
        scores = rng.normal(size=(n + 1, n + 1))
        scores[:, 1:][rng.random((n + 1, n)) < forbidden] = np.nan
        heads, score = chu_liu_edmonds(scores)
        expected_heads, expected_score = original.chu_liu_edmonds(scores)
        assert heads == expected_heads
        assert score == pytest.approx(expected_score, abs=1e-12)
        assert [type(head) for head in heads] == [int] * (n + 1)
        assert type(score) is float


def test_a_word_without_head_hangs_on_root_at_minus_infinity():
    rng = np.random.default_rng(1)
    for _ in range(50):
        scores = rng.normal(size=(7, 7))
        scores[rng.integers(1, 7)] = np.nan
        assert chu_liu_edmonds(scores) == original.chu_liu_edmonds(scores)


def test_a_cycle_that_root_cannot_enter_is_an_error():
    nan = np.nan
    with pytest.raises(spantree.InfeasibleError):
        chu_liu_edmonds([[0, 0, 0, 0], [nan, nan, 1, nan], [nan, 1, nan, nan], [1, 1, 1, nan]])


def test_row_0_and_the_diagonal_are_ignored():
    scores = np.random.default_rng(2).normal(size=(5, 5))
    expected = chu_liu_edmonds(scores)
    scores[0], scores[range(5), range(5)] = np.nan, 1e9
    assert chu_liu_edmonds(scores) == expected
    assert original.chu_liu_edmonds(scores)[0] == expected[0]  # its score is off by 2e-8: 1e9 was added to it


def test_the_callers_array_stays():
    scores = np.full((4, 4), np.nan)
    scores[1:, 0] = 1.0
    scores.flags.writeable = False
    assert chu_liu_edmonds(scores) == ([-1, 0, 0, 0], 3.0)
    assert np.isnan(scores[1, 2])
