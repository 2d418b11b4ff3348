"""Brute force is itself checked against counting formulas and against filtering all head vectors."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
import pytest

from spantree.zoo import enumerate_trees, is_projective_tree, is_tree
from spantree.zoo._graph import Root

both_roots = pytest.mark.parametrize("root", ["single", "multi"])


@pytest.mark.parametrize("n", range(1, 8))
def test_counts_of_cayley(n: int) -> None:
    assert len(enumerate_trees(n, root="multi")) == (n + 1) ** (n - 1)
    assert len(enumerate_trees(n, root="single")) == n ** (n - 1)


@pytest.mark.parametrize("n", range(1, 9))
def test_counts_of_projective_trees(n: int) -> None:
    assert len(enumerate_trees(n, root="multi", projective=True)) == comb(3 * n, n) // (2 * n + 1)
    assert len(enumerate_trees(n, root="single", projective=True)) == comb(3 * n - 2, n - 1) // n


@both_roots
@pytest.mark.parametrize("n", range(5))
def test_all_head_vectors_filtered_give_the_same_list_in_the_same_order(n: int, root: Root) -> None:
    vectors = [[-1, *heads] for heads in product(range(n + 1), repeat=n)]
    assert enumerate_trees(n, root=root).tolist() == [v for v in vectors if is_tree(v, root)]
    projective = [v for v in vectors if is_projective_tree(v, root)]
    assert enumerate_trees(n, root=root, projective=True).tolist() == projective


@both_roots
def test_the_projective_check_against_the_definition(root: Root) -> None:
    for heads in enumerate_trees(5, root=root):
        assert is_projective_tree(heads, root) == _every_word_under_an_edge_descends_from_its_head(heads)


def _every_word_under_an_edge_descends_from_its_head(
    heads: np.ndarray[tuple[int], np.dtype[np.int64]],
) -> bool:
    def descends(word: int, ancestor: int) -> bool:
        while word not in (0, ancestor):
            word = int(heads[word])
        return word == ancestor

    return all(
        descends(between, int(head))
        for dependent, head in list(enumerate(heads))[1:]
        for between in range(min(dependent, int(head)) + 1, max(dependent, int(head)))
    )


@pytest.mark.parametrize(
    "heads", [[-1, 1], [-1, 2, 1], [-1, 0, 3], [-1, -1], [0, 0], [-1, 0, 0], [-1, 2, 3, 1, 0], [1, 0]]
)
def test_head_vectors_that_are_no_single_root_trees(heads: list[int]) -> None:
    assert not is_tree(heads)
    assert not is_projective_tree(heads)


def test_the_empty_tree() -> None:
    for root in ("single", "multi"):
        for projective in (False, True):
            heads = enumerate_trees(0, root=root, projective=projective)
            assert heads.tolist() == [[-1]]
            assert heads.dtype == np.int64
            assert is_projective_tree(heads[0], root)


def test_arguments_that_make_no_sense() -> None:
    with pytest.raises(ValueError, match="negative"):
        enumerate_trees(-1)
    with pytest.raises(ValueError, match="root"):
        enumerate_trees(2, root="both")  # type: ignore[arg-type]
