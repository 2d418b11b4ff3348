"""The door of the zoo: reading scores, and telling whether there is a tree."""

from __future__ import annotations

import numpy as np
import pytest
from decoding_battery import scores_of, trees

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
