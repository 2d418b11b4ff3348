"""Partial trees against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from decoding_battery import scores_of, trees

import spantree

ROOTS = ["single", "multi"]


def agreeing(everything, partial):
    return (everything == partial)[:, 1:] | (np.asarray(partial)[1:] == -2)


@pytest.mark.parametrize("projective", [False, True])
@pytest.mark.parametrize("root", ROOTS)
def test_sums_and_best_completions(root, projective):
    rng = np.random.default_rng(0)
    everything = trees(4, root, projective)
    for _ in range(20):
        scores = rng.normal(size=(5, 5))
        scores[rng.random(scores.shape) < 0.1] = -np.inf
        dist = spantree.TreeDistribution(scores, root=root, projective=projective, on_infeasible="mask")
        if dist.max() == -np.inf:
            continue
        partial = np.where(rng.random(5) < 0.5, -2, everything[rng.integers(len(everything))])
        partial[0] = rng.integers(-3, 5)  # does not matter
        kept = agreeing(everything, partial).all(axis=1)
        weights = np.exp(scores_of(scores, everything))
        share = weights[kept].sum() / weights.sum()
        with np.errstate(divide="ignore"):
            np.testing.assert_allclose(dist.log_prob(partial, partial=True), np.log(share), rtol=1e-12, atol=1e-12)
        given = dist.condition(heads=partial)
        tree, probability = dist.complete(partial)
        np.testing.assert_array_equal(tree, given.argmax())
        if share == 0.0:
            assert probability == 0.0
            assert (tree == -1).all()
            continue
        best = weights[kept].max()
        np.testing.assert_allclose(probability, best / weights.sum(), rtol=1e-12)
        np.testing.assert_allclose(np.exp(dist.score(tree)), best, rtol=1e-12)
        assert agreeing(tree[None], partial).all()
        edges = spantree.heads_to_edges(everything)
        want = np.einsum("t,thd->hd", np.where(kept, weights, 0.0), edges) / weights[kept].sum()
        np.testing.assert_allclose(given.marginals(), want, atol=1e-12)
        _, gradient = dist.log_prob(partial, partial=True, with_grad=True)
        np.testing.assert_allclose(gradient, want - dist.marginals(), atol=1e-12)
        again, _ = spantree.complete(scores, partial, root=root, projective=projective)
        np.testing.assert_array_equal(again, tree)


def labelled_trees(n, labels, root):
    for heads in trees(n, root):
        for chosen in np.ndindex(*[labels] * n):
            yield heads, np.array([-1, *chosen])


@pytest.mark.parametrize("root", ROOTS)
def test_labels(root):
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(4, 4, 2))
    dist = spantree.TreeDistribution(scores, labelled=True, root=root)
    everything = list(labelled_trees(3, 2, root))
    heads, labels = (np.stack(part) for part in zip(*everything, strict=True))
    deps = np.arange(1, 4)
    weights = np.exp(scores[heads[:, 1:], deps, labels[:, 1:]].sum(axis=1))
    for partial, known in [
        ([-1, -2, 0, -2], None),
        ([-1, -2, 0, -2], [-1, -2, -2, -2]),
        ([-1, -2, 0, -2], [-1, 1, -2, 0]),
        ([-1, 2, 0, 2], [-1, 0, 1, -2]),
    ]:
        kept = agreeing(heads, partial).all(axis=1)
        if known is not None:
            kept &= agreeing(labels, known).all(axis=1)
        np.testing.assert_allclose(
            np.exp(dist.log_prob(partial, known, partial=True)), weights[kept].sum() / weights.sum(), rtol=1e-12
        )
        tree, probability = dist.complete(partial, known)
        np.testing.assert_allclose(probability, weights[kept].max() / weights.sum(), rtol=1e-12)
        i = np.flatnonzero(kept)[weights[kept].argmax()]
        np.testing.assert_array_equal(tree.heads, heads[i])
        np.testing.assert_array_equal(tree.labels, labels[i])


def test_batches_and_lists():
    rng = np.random.default_rng(2)
    scores = rng.normal(size=(3, 5, 5))
    lengths = np.array([4, 2, 3])
    partial = np.array([[0, 2, -2, -2, -2], [0, -2, -2, 7, 7], [0, -2, -2, 1, 7]])
    dist = spantree.TreeDistribution(scores, lengths=lengths)
    listed = spantree.TreeDistribution([m[: n + 1, : n + 1] for m, n in zip(scores, lengths, strict=True)])
    rows = [row[: n + 1] for row, n in zip(partial, lengths, strict=True)]
    np.testing.assert_array_equal(dist.log_prob(partial, partial=True), listed.log_prob(rows, partial=True))
    assert dist.log_prob(partial, partial=True)[1] == 0.0
    for tree, padded in zip(listed.complete(rows)[0], dist.complete(partial)[0], strict=True):
        np.testing.assert_array_equal(tree, padded[: len(tree)])
    several = np.stack([partial, np.full_like(partial, -2)])
    value, gradient = dist.log_prob(several, partial=True, with_grad=True)
    assert value.shape == (2, 3)
    assert gradient.shape == (2, 3, 5, 5)
    np.testing.assert_allclose(value[1], 0.0, atol=1e-12)
    np.testing.assert_allclose(gradient[1], 0.0, atol=1e-12)


def test_what_is_no_partial_tree():
    dist = spantree.TreeDistribution(np.zeros((4, 4)))
    assert dist.log_prob([-1, 9, -2, -2], partial=True) == -np.inf
    assert dist.log_prob([-1, 2, 1, -2], partial=True) == -np.inf  # a cycle
    for heads in ([-1, 9, -2, -2], [-1, 1, -2, -2], [-1, -2, -1, -2]):
        with pytest.raises(ValueError, match=r"the sentence: the head or label of word [12] is none"):
            dist.condition(heads=heads)
    with pytest.raises(spantree.InfeasibleError):
        dist.complete([-1, 2, 1, -2])
