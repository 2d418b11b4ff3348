"""Heads vectors: trees or not, projective or not, as matrices, and their scores."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from decoding_battery import trees

import spantree


def every_heads_vector(n):
    return np.array([(-1, *heads) for heads in itertools.product(range(n + 1), repeat=n)])


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("root", ["single", "multi"])
def test_is_tree_on_every_heads_vector(n, root):
    everything = every_heads_vector(n)
    real = {tuple(tree) for tree in trees(n, root)}
    want = [tuple(heads) in real for heads in everything]
    np.testing.assert_array_equal(spantree.is_tree(everything, root=root), want)
    projective = {tuple(tree) for tree in trees(n, "multi", True)}
    np.testing.assert_array_equal(
        spantree.is_projective(everything), [tuple(heads) in projective for heads in everything]
    )


def test_projective_on_longer_trees():
    everything = trees(6, "multi")
    projective = {tuple(tree) for tree in trees(6, "multi", True)}
    np.testing.assert_array_equal(
        spantree.is_projective(everything), [tuple(heads) in projective for heads in everything]
    )


def test_what_is_no_tree():
    assert spantree.is_tree([-1])
    assert spantree.is_tree([0, 0])  # what stands at ROOT does not matter
    assert spantree.is_tree([7, 2, 0])
    assert not spantree.is_tree([-1, 1])
    assert not spantree.is_tree([-1, 5])
    assert not spantree.is_tree([-1, -1])
    assert not spantree.is_tree([-1, -1, 0])
    assert spantree.is_tree([-1, 0, -1])  # padding
    assert spantree.is_tree(np.array([[[-1, 2, 0]]])).shape == (1, 1)
    assert spantree.is_tree([]) == []  # a list without sentences
    for bad in ([0.5, 1.0], 3):
        with pytest.raises(ValueError, match="heads"):
            spantree.is_tree(bad)
    with pytest.raises(ValueError, match="root must be"):
        spantree.is_tree([-1, 0], root="two")


def test_lists_in_lists_out():
    heads = [np.array([-1, 2, 0]), np.array([0, 0]), np.array([-1, 2, 3, 1])]
    assert spantree.is_tree(heads) == [True, True, False]
    assert spantree.is_tree([[-1, 2, 0], [0, 0]]) == [True, True]
    assert spantree.is_tree(heads[:1]) == [True]
    assert spantree.is_projective(heads) == [True, True, False]
    edges = spantree.heads_to_edges(heads)
    assert [matrix.shape for matrix in edges] == [(3, 3), (2, 2), (4, 4)]
    for tree, again in zip(heads, spantree.edges_to_heads(edges), strict=True):
        np.testing.assert_array_equal(again[1:], tree[1:])
    assert spantree.explain_tree(heads) == [None, None, NO_ROOT_IN_A_CYCLE]


def test_lengths_instead_of_padding():
    heads = [[0, 2, 0, 0], [9, 0, 3, 1], [0, 0, -1, 0], [0, -1, 5, 5]]
    assert spantree.is_tree(heads, lengths=[2, 3, 3, 0]).tolist() == [True, True, False, True]
    assert spantree.is_projective(heads, lengths=[2, 3, 3, 0]).tolist() == [True, True, False, True]
    assert spantree.is_tree([np.array(row) for row in heads], lengths=[2, 3, 3, 0]) == [True, True, False, True]
    assert spantree.explain_tree(heads, lengths=[2, 3, 3, 0])[:2] == [None, None]
    with pytest.raises(ValueError, match="lengths must lie between 0 and 3"):
        spantree.is_tree(heads, lengths=[2, 3, 4, 0])
    with pytest.raises(ValueError, match="lengths has shape"):
        spantree.is_tree(heads, lengths=3)


NO_ROOT_IN_A_CYCLE = "the heads of words 1, 2 and 3 go round in a cycle: 1 -> 2 -> 3 -> 1; no word hangs on ROOT"


@pytest.mark.parametrize(
    ("heads", "why"),
    [
        ([-1, 2, 3, 1], NO_ROOT_IN_A_CYCLE),
        ([-1, 0, 2], "word 2 is its own head"),
        ([-1, 0, 3, 2, 3], "the heads of words 2 and 3 go round in a cycle: 2 -> 3 -> 2"),
        ([-1, 5, 0], "word 1 has head 5, which is no node of a sentence of 2 words"),
        ([-1, 0, 0, 1, 0], "3 words hang on ROOT, 1, 2 and 4, where one may"),
        ([-1, -1, -1], "no word has a head"),
        ([-1, -1, 0], "word 1 has head -1, which is no node of a sentence of 2 words"),
        ([5, 2, 0, -1], None),
        ([-1], None),
    ],
)
def test_why_it_is_no_tree(heads, why):
    assert spantree.explain_tree(heads) == why


@pytest.mark.parametrize("root", ["single", "multi"])
def test_there_is_an_explanation_for_what_is_no_tree(root):
    everything = every_heads_vector(4)
    explained = spantree.explain_tree(everything, root)
    np.testing.assert_array_equal([why is None for why in explained], spantree.is_tree(everything, root))
    for heads, why in zip(everything, explained, strict=True):
        if why and "cycle: " in why:
            cycle = [int(word) for word in why.split("cycle: ")[1].split(";")[0].split(" -> ")]
            assert cycle[0] == cycle[-1]
            assert all(heads[dep] == head for dep, head in itertools.pairwise(cycle))


def test_matrices_and_back():
    heads = trees(4, "multi")
    edges = spantree.heads_to_edges(heads)
    assert edges.shape == (len(heads), 5, 5)
    assert (edges.sum(axis=(1, 2)) == 4).all()
    for dep in range(1, 5):
        np.testing.assert_array_equal(edges[np.arange(len(heads)), heads[:, dep], dep], 1)
    np.testing.assert_array_equal(spantree.edges_to_heads(edges), heads)
    np.testing.assert_array_equal(spantree.edges_to_heads(edges.astype(np.float32)), heads)
    np.testing.assert_array_equal(spantree.edges_to_heads(spantree.heads_to_edges([-1, 0, -1])), [-1, 0, -1])


def test_bad_matrices():
    with pytest.raises(ValueError, match="square"):
        spantree.edges_to_heads(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="zeros and ones"):
        spantree.edges_to_heads(np.full((2, 2), 0.5))
    with pytest.raises(ValueError, match="node 2 has more than one head"):
        spantree.edges_to_heads([[0, 0, 1], [0, 0, 1], [0, 0, 0]])
    with pytest.raises(ValueError, match="between -1 and 1"):
        spantree.heads_to_edges([-1, 2])


@pytest.mark.parametrize("root", ["single", "multi"])
@pytest.mark.parametrize("projective", [False, True])
def test_score_of_every_heads_vector(root, projective):
    n = 4
    scores = np.random.default_rng(0).normal(size=(n + 1, n + 1))
    scores[2, 3] = -np.inf
    dist = spantree.TreeDistribution(scores, root=root, projective=projective)
    real = {tuple(tree) for tree in trees(n, root, projective)}
    everything = every_heads_vector(n)
    found = dist.score(everything)
    for heads, score in zip(everything, found, strict=True):
        want = scores[heads[1:], np.arange(1, n + 1)].sum() if tuple(heads) in real else -np.inf
        np.testing.assert_allclose(score, want, rtol=1e-13)


def test_score_shapes_and_padding():
    scores = np.random.default_rng(1).normal(size=(3, 5, 5)).astype(np.float32)
    dist = spantree.TreeDistribution(scores, lengths=[4, 2, 0])
    best = dist.argmax()
    np.testing.assert_array_equal(dist.score(best), dist.max())
    assert dist.score(best).dtype == np.float32
    garbage = best.copy()
    garbage[1, 3:] = 77
    np.testing.assert_array_equal(dist.score(garbage), dist.max())
    assert dist.score(np.stack([[best, best]])).shape == (1, 2, 3)
    one = spantree.TreeDistribution(scores[0])
    assert one.score(best[0]) == dist.max()[0]
    assert np.ndim(one.score(best[0])) == 0


def test_score_of_bad_heads():
    dist = spantree.TreeDistribution(np.zeros((2, 4, 4)))
    with pytest.raises(ValueError, match=r"heads has shape \(2, 3\); it must end with \(2, 4\)"):
        dist.score(np.zeros((2, 3), int))
    with pytest.raises(ValueError, match="heads must be integers"):
        dist.score(np.zeros((2, 4)))
    with pytest.raises(ValueError, match="labels are needed"):
        spantree.TreeDistribution(np.zeros((4, 4, 2)), labelled=True).score([-1, 0, 1, 2])
    with pytest.raises(ValueError, match="labels are needed"):
        spantree.TreeDistribution(np.zeros((4, 4))).score([-1, 0, 1, 2], labels=[-1, 0, 0, 0])
    ragged = spantree.TreeDistribution([np.zeros((3, 3)), np.zeros((2, 2))])
    with pytest.raises(ValueError, match="a list with one entry for each of the 2 sentences"):
        ragged.score([[-1, 0, 1]])
    with pytest.raises(ValueError, match=r"heads\[1\] has shape \(3,\); its last axis must be 2"):
        ragged.score([[-1, 0, 1], [-1, 0, 1]])


def test_labels_out_of_range_are_no_tree():
    dist = spantree.TreeDistribution(np.zeros((3, 3, 2)), labelled=True)
    found = dist.score([[-1, 0, 1]] * 3, labels=[[-1, 1, 0], [-1, 2, 0], [-1, -1, 0]])
    assert found.tolist() == [0.0, -np.inf, -np.inf]


@pytest.mark.parametrize(
    "given",
    [
        np.ma.masked_array([[0, 1], [0, 0]], mask=[[0, 1], [0, 0]]),
        np.array([[0, 1j], [0, 0]]),
        [["0", "1"], ["0", "0"]],
    ],
)
def test_adjacency_matrices_are_of_numbers(given):
    with pytest.raises(ValueError, match="adjacency matrix"):
        spantree.edges_to_heads(given)


def test_trees_are_taken_as_they_come_out():
    """Labelled trees, and several a sentence: heads count, not what comes with them."""
    scores = np.random.default_rng(5).normal(size=(3, 5, 5, 2))
    dist = spantree.TreeDistribution(scores, labelled=True)
    for found in (dist.argmax(), dist.topk(2), dist.sample_without_replacement(2, rng=0)):
        assert spantree.is_tree(found).shape == found.heads.shape[:-1]
        assert spantree.is_tree(found).all()
        np.testing.assert_array_equal(spantree.is_projective(found), spantree.is_projective(found.heads))
        np.testing.assert_array_equal(spantree.heads_to_edges(found), spantree.heads_to_edges(found.heads))
        assert spantree.explain_tree(found) == spantree.explain_tree(found.heads)


def test_labels_are_given_once():
    dist = spantree.TreeDistribution(np.zeros((4, 4, 2)), labelled=True)
    best = dist.argmax()
    for ask in (dist.score, dist.log_prob, dist.expected_attachment, dist.risk, dist.complete):
        with pytest.raises(ValueError, match="labels were given twice"):
            ask(best, labels=best.labels)
    apart = spantree.Trees(best.heads)
    assert dist.log_prob(apart, labels=best.labels) == dist.log_prob(best)
    with pytest.raises(ValueError, match="give heads too"):
        dist.condition(labels=best.labels)
    with pytest.raises(TypeError, match="not None"):
        dist.complete(None)
