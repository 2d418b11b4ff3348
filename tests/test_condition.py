"""Conditioning on edges: the best tree among those that remain."""

from __future__ import annotations

import numpy as np
import pytest
from decoding_battery import scores_of, trees

import spantree


@pytest.mark.parametrize("root", ["single", "multi"])
def test_against_enumeration(root):
    rng = np.random.default_rng(0)
    everything = trees(5, root)
    for _ in range(30):
        scores = rng.normal(size=(6, 6))
        included = everything[rng.integers(len(everything))]
        deps = rng.choice(np.arange(1, 6), size=2, replace=False)
        include = [(included[dep], dep) for dep in deps]
        exclude = [(head, dep) for head, dep in rng.integers([0, 1], 6, size=(3, 2)) if head != dep]
        kept = np.ones(len(everything), bool)
        for head, dep in include:
            kept &= everything[:, dep] == head
        for head, dep in exclude:
            kept &= everything[:, dep] != head
        dist = spantree.TreeDistribution(scores, root=root, on_infeasible="mask").condition(include, exclude)
        best = scores_of(scores, everything[kept]).max(initial=-np.inf)
        np.testing.assert_allclose(dist.max(), best)


def test_batches_lists_and_labels():
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(3, 5, 5))
    dist = spantree.TreeDistribution(scores)
    shared = dist.condition(include=[(0, 2), (2, 3)])
    assert (shared.argmax()[:, 2] == 0).all()
    assert (shared.argmax()[:, 3] == 2).all()
    for edges in (np.array([[0, 2], [2, 3]]), [np.array([0, 2]), (np.array(2), 3)]):
        np.testing.assert_array_equal(dist.condition(include=edges).argmax(), shared.argmax())
    alone = dist.condition(include=[(0, 2)]).argmax()
    for edge in ((0, 2), [0, 2], np.array([0, 2])):
        np.testing.assert_array_equal(dist.condition(include=edge).argmax(), alone)
    each = dist.condition(include=[[(0, 1)], [(0, 2)], []], exclude=[[], [], [(0, 1), (0, 2), (0, 3)]])
    assert [tree.tolist().index(0) for tree in each.argmax()] == [1, 2, 4]
    ragged = spantree.TreeDistribution([scores[0], scores[1, :4, :4]]).condition(exclude=[(0, 1)])
    assert all(tree[1] != 0 for tree in ragged.argmax())
    labelled = spantree.TreeDistribution(rng.normal(size=(4, 4, 3)), labelled=True)
    best = labelled.condition(include=[(0, 2, 1)], exclude=[(2, 1)]).argmax()
    assert (best.heads[2], best.labels[2]) == (0, 1)
    assert best.heads[1] == 3
    turned = spantree.TreeDistribution(scores.swapaxes(1, 2), layout="dep_head").condition(include=[(0, 2), (2, 3)])
    np.testing.assert_array_equal(turned.argmax(), shared.argmax())


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([(1, 1)], r"no edge 1 -> 1"),
        ([(0, 9)], r"no edge 0 -> 9"),
        ([(0, 0)], r"no edge 0 -> 0"),
        ([(1, 2, 3)], r"an edge is a pair"),
        ([(0.5, 2)], r"an edge is a pair"),
        ([[(0, 1)]], r"lists of edges for 1 sentences; the batch has 2"),
    ],
)
def test_bad_edges(edges, message):
    with pytest.raises(ValueError, match=message):
        spantree.TreeDistribution(np.zeros((2, 4, 4))).condition(include=edges)


def test_bad_label():
    with pytest.raises(ValueError, match="no label 2"):
        spantree.TreeDistribution(np.zeros((4, 4, 2)), labelled=True).condition(include=[(0, 1, 2)])


def test_impossible_conditions_leave_no_tree():
    dist = spantree.TreeDistribution(np.zeros((4, 4))).condition(include=[(1, 2), (2, 1)])
    with pytest.raises(spantree.InfeasibleError):
        dist.argmax()
