"""The door of the zoo: reading scores, and telling whether there is a tree."""

from __future__ import annotations

import numpy as np
import pytest
from decoding_battery import normal, scores_of, trees

from spantree.zoo._contract import contract, expand
from spantree.zoo._graph import NoTreeError, Root, clean_scores, reachable, require_tree, tree_score


def test_only_true_edges_are_left() -> None:
    scores = np.arange(9.0).reshape(3, 3)
    w = clean_scores(scores)
    no = -np.inf
    np.testing.assert_array_equal(w, [[no, 1, 2], [no, no, 5], [no, 7, no]])
    assert scores[0, 0] == 0
    assert not np.shares_memory(w, scores)


def test_tree_score_adds_the_edges() -> None:
    assert tree_score(clean_scores(np.arange(9.0).reshape(3, 3)), np.array([-1, 2, 0])) == 7 + 2


@pytest.mark.parametrize("root", ["single", "multi"])
def test_feasibility_against_enumeration(root: Root) -> None:
    rng = np.random.default_rng(15)
    outcomes = set()
    for n in (1, 2, 3, 4, 5):
        for _ in range(150):
            scores = np.where(rng.random((n + 1, n + 1)) < 1.3 / (n + 1), 0.0, -np.inf)
            exists = scores_of(scores, trees(n, root)).max() > -np.inf
            outcomes.add((n, exists))
            if exists:
                require_tree(clean_scores(scores), root)
            else:
                with pytest.raises(NoTreeError, match="word"):
                    require_tree(clean_scores(scores), root)
    assert len(outcomes) == 10


def test_the_word_that_cannot_be_attached_is_named() -> None:
    scores = np.zeros((4, 4))
    scores[:, 2] = -np.inf
    with pytest.raises(NoTreeError, match="word 2 cannot be reached"):
        require_tree(clean_scores(scores), "multi")


def test_reachability_on_a_chain() -> None:
    edges = np.eye(5, k=1, dtype=np.bool_)
    assert reachable(edges, 2).tolist() == [False, False, True, True, True]


def test_every_tree_of_a_contracted_graph_expands_to_a_tree_of_its_weight() -> None:
    """Corollary 1 of "Please Mind the Root", for a cycle that need not be critical."""
    rng = np.random.default_rng(16)
    for cycle in ([1, 2], [3, 1, 4], [2, 4, 1, 3]):
        w = clean_scores(normal(rng, 5))
        contracted = w.copy()
        heads = np.zeros(6, dtype=np.int64)
        heads[cycle] = np.roll(cycle, 1)
        contraction = contract(contracted, heads, np.array(cycle))
        # what leaves the graph hangs from ROOT meanwhile, and weighs nothing
        contracted[0, cycle[1:]] = 0.0
        left = [tree for tree in trees(5, "multi") if tree_score(contracted, tree) > -np.inf]
        assert len(left) == (7 - len(cycle)) ** (5 - len(cycle))
        for tree in left:
            expanded = tree.copy()
            expand(expanded, contraction)
            assert (trees(5, "multi") == expanded).all(axis=1).any()
            assert tree_score(w, expanded) == pytest.approx(tree_score(contracted, tree))
