"""`TreeDistribution(projective=True)`: the same methods, every form of input."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import spantree
from projective.reference import projective_trees, random_sentences, tree_scores


@pytest.mark.parametrize("root", ["single", "multi"])
def test_best_trees_of_padded_and_ragged_batches(root):
    sentences = list(random_sentences(51, 8, words=(2, 5, 3, 4)))
    padded = np.zeros((8, 6, 6))
    for row, scores in zip(padded, sentences, strict=True):
        row[: len(scores), : len(scores)] = np.nan_to_num(scores, posinf=0.0)
    lengths = np.array([len(scores) - 1 for scores in sentences])
    best = spantree.TreeDistribution(padded, lengths=lengths, root=root, projective=True)
    transposed = spantree.TreeDistribution(
        [scores.T for scores in sentences], root=root, projective=True, layout="dep_head"
    )
    heads, top = best.argmax(), transposed.topk(3)
    for i, scores in enumerate(sentences):
        trees = projective_trees(len(scores) - 1, root)
        order = np.argsort(-tree_scores(scores, trees))
        np.testing.assert_array_equal(heads[i, : len(scores)], trees[order[0]])
        assert (heads[i, len(scores) :] == -1).all()
        np.testing.assert_array_equal(top.heads[i][: len(order)], trees[order[:3]])


def test_iteration_and_scores():
    scores = next(random_sentences(52, 1, words=(4,)))
    dist = spantree.TreeDistribution(scores, projective=True)
    trees = list(dist.iter_best())
    assert len(trees) == len(projective_trees(4, "single"))
    assert all(a.scores >= b.scores for a, b in itertools.pairwise(trees))
    assert all(dist.score(tree.heads) == pytest.approx(float(tree.scores), rel=1e-14) for tree in trees)
    assert dist.score([-1, 3, 4, 0, 3]) == -np.inf  # a tree, but 4 -> 2 crosses 3 -> 1


def test_a_sentence_whose_only_trees_cross_has_none():
    scores = np.full((5, 5), -np.inf)
    scores[0, 3] = scores[3, 1] = scores[1, 4] = scores[3, 2] = 0.0
    assert spantree.decode(scores).tolist() == [-1, 3, 3, 0, 1]
    with pytest.raises(spantree.InfeasibleError, match="word 4"):
        spantree.decode(scores, projective=True)
