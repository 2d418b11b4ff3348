"""The stand-in for SuPar's structures, against enumeration: ``[dependent, head]``, lens, 0 at ROOT, -1 unknown."""

from __future__ import annotations

import numpy as np
import pytest

import torch
from oracle.listed import Listed
from spantree.compat.supar import DependencyCRF, MatrixTree, chuliu_edmonds, mst, tarjan

LENS = [4, 2, 1]
CLASSES = pytest.mark.parametrize("cls", [MatrixTree, DependencyCRF])
ROOTS = pytest.mark.parametrize("multiroot", [False, True])


def batch(seed, cls, multiroot):
    """Scores of sentences of different lengths, huge numbers in the padding; and their trees."""
    scores = np.random.default_rng(seed).normal(size=(3, 5, 5))
    root = "multi" if multiroot else "single"
    trees = [
        Listed(matrix[: n + 1, : n + 1].T, root, cls is DependencyCRF) for matrix, n in zip(scores, LENS, strict=True)
    ]
    for matrix, n in zip(scores, LENS, strict=True):
        matrix[n + 1 :], matrix[:, n + 1 :] = 1e9, -1e9
    return cls(torch.tensor(scores), torch.tensor(LENS), multiroot), trees


def padded(rows):
    return [row.tolist() + [0] * (5 - len(row)) for row in rows]


@CLASSES
@ROOTS
def test_numbers(cls, multiroot):
    dist, trees = batch(0, cls, multiroot)
    other, other_trees = batch(1, cls, multiroot)
    pairs = list(zip(trees, other_trees, strict=True))
    for found, expected in [
        (dist.log_partition, [tree.log_partition for tree in trees]),
        (dist.max, [tree.scores.max() for tree in trees]),
        (dist.entropy, [tree.entropy for tree in trees]),
        (dist.cross_entropy(other), [p.cross_entropy(q) for p, q in pairs]),
        (dist.kl(other), [p.cross_entropy(q) - p.entropy for p, q in pairs]),
    ]:
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
    for marginals, tree, n in zip(dist.marginals, trees, LENS, strict=True):
        np.testing.assert_allclose(marginals[: n + 1, : n + 1], tree.marginals.T, atol=1e-13)
        assert (marginals[n + 1 :] == 0).all()
        assert (marginals[:, n + 1 :] == 0).all()


@CLASSES
@ROOTS
def test_best_trees(cls, multiroot):
    dist, trees = batch(2, cls, multiroot)
    best = [tree.heads[tree.scores.argmax()].clip(0) for tree in trees]
    assert dist.argmax.tolist() == dist.mode.tolist() == padded(best)
    kmax, topk = dist.kmax(3), dist.topk(3)
    assert kmax.shape == (3, 3)
    assert topk.shape == (3, 5, 3)
    for i, tree in enumerate(trees):
        order = np.argsort(-tree.scores)[:3]
        heads, totals = tree.heads[order], tree.scores[order]
        np.testing.assert_allclose(kmax[i, : len(totals)], totals)
        assert (kmax[i, len(totals) :] == -torch.inf).all()
        assert topk[i, :, : len(totals)].T.tolist() == padded(heads.clip(0))
        assert (topk[i, :, len(totals) :] == 0).all()


@CLASSES
@ROOTS
def test_log_prob(cls, multiroot):
    dist, trees = batch(3, cls, multiroot)
    rows = [tree.heads[len(tree.heads) // 2] for tree in trees]
    arcs = torch.tensor(padded([row.clip(0) for row in rows]))
    chosen = [len(tree.heads) // 2 for tree in trees]
    np.testing.assert_allclose(dist.log_prob(arcs), [t.log_probs[i] for t, i in zip(trees, chosen, strict=True)])
    np.testing.assert_allclose(dist.score(arcs), [t.scores[i] for t, i in zip(trees, chosen, strict=True)])
    arcs[:, 1] = -1
    sums = [
        np.logaddexp.reduce(tree.scores[(tree.heads[:, 2:] == row[2:]).all(axis=1)])
        for tree, row in zip(trees, rows, strict=True)
    ]
    np.testing.assert_allclose(dist.score(arcs, partial=True), sums, rtol=1e-12)
    log_z = [tree.log_partition for tree in trees]
    np.testing.assert_allclose(dist.log_prob(arcs, partial=True), np.subtract(sums, log_z), atol=1e-13)


@CLASSES
def test_no_tree_has_no_probability(cls):
    dist, _ = batch(4, cls, False)
    assert (
        dist.log_prob(torch.tensor([[0, 2, 1, 4, 3], [0, 0, 0, 0, 0], [0, 0, 0, 0, 0]])).tolist()[:2] == [-np.inf] * 2
    )


def test_a_crossing_tree_is_none_of_the_projective_ones():
    crossing = torch.tensor([[0, 3, 0, 2, 2]])  # 3 -> 1 crosses ROOT -> 2
    assert DependencyCRF(torch.zeros(1, 5, 5)).log_prob(crossing) == -torch.inf
    assert MatrixTree(torch.zeros(1, 5, 5)).log_prob(crossing) > -torch.inf


@CLASSES
@ROOTS
def test_samples_are_trees(cls, multiroot):
    dist, trees = batch(5, cls, multiroot)
    torch.manual_seed(0)
    for _ in range(20):
        for drawn, tree, n in zip(dist.sample(), trees, LENS, strict=True):
            assert drawn.sum() == n
            assert (tree.indicator == drawn[: n + 1, : n + 1].T.numpy()).all(axis=(1, 2)).any()


@CLASSES
def test_gradients(cls):
    scores = torch.randn(2, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    dist = cls(scores)
    (gradient,) = torch.autograd.grad(dist.log_partition.sum(), scores)
    torch.testing.assert_close(gradient, dist.marginals)
    assert torch.autograd.gradcheck(lambda x: cls(x).marginals, scores)
    assert torch.autograd.gradcheck(lambda x: cls(x).entropy, scores)
    assert torch.autograd.gradcheck(lambda x: cls(x).log_prob(dist.argmax), scores)


def test_the_callers_tensor_stays():
    scores = torch.randn(2, 4, 4, generator=torch.Generator().manual_seed(0))
    before = scores.clone()
    dist = MatrixTree(scores)
    _ = dist.marginals, dist.argmax
    mask = torch.tensor([[False, True, True, True], [False, True, True, False]])
    mst(scores, mask)
    assert torch.equal(scores, before)
    assert not scores.requires_grad
    assert dist.log_partition.dtype == torch.float32
    assert repr(dist) == "MatrixTree(multiroot=False)"
    assert dist.mask.tolist() == [[False, True, True, True]] * 2
    assert dist.lens.tolist() == [3, 3]


@CLASSES
def test_a_distribution_of_torch(cls):
    dist, trees = batch(8, cls, multiroot=True)
    other, _ = batch(9, cls, multiroot=True)
    assert isinstance(dist, torch.distributions.Distribution)
    assert dist.batch_shape == torch.Size([3])
    assert dist.event_shape == torch.Size([5])
    assert torch.equal(torch.distributions.kl_divergence(dist, other), dist.kl(other))
    np.testing.assert_allclose(dist.perplexity(), np.exp([tree.entropy for tree in trees]), rtol=1e-12)
    assert dist.support.check(dist.argmax).all()
    assert not dist.support.check(torch.tensor([[0, 2, 1, 0, 0]])).any()


def test_chuliu_edmonds():
    for n in (1, 2, 5):
        scores = np.random.default_rng(n).normal(size=(n + 1, n + 1))
        trees, given = Listed(scores.T, "multi"), torch.tensor(scores)
        assert chuliu_edmonds(given).tolist() == trees.heads[trees.scores.argmax()].clip(0).tolist()
        assert torch.equal(given, torch.tensor(scores))


@pytest.mark.parametrize(
    ("heads", "cycles"),  # as SuPar 1.1.4 gives them
    [
        ([2, 5, 0, 3, 1], [[2, 5, 1]]),
        ([2, 1, 4, 3, 0], [[2, 1], [4, 3]]),
        ([1, 0], []),
        ([3, 1, 2, 1], [[3, 2, 1]]),
        ([], []),
    ],
)
def test_tarjan(heads, cycles):
    assert list(tarjan(heads)) == cycles


@ROOTS
def test_mst(multiroot):
    dist, _ = batch(6, MatrixTree, multiroot)
    assert mst(dist.scores, dist.mask, multiroot).tolist() == dist.argmax.tolist()


@ROOTS
def test_sharp_scores(multiroot):
    """Where the original's log Z is NaN, or its marginals far from [0, 1]: score by score a hundred nats apart."""
    scores = 100 * np.random.default_rng(7).normal(size=(40, 6, 6))
    dist = MatrixTree(torch.tensor(scores), multiroot=multiroot)
    for i, matrix in enumerate(scores):
        trees = Listed(matrix.T, "multi" if multiroot else "single")
        np.testing.assert_allclose(dist.log_partition[i], trees.log_partition, rtol=1e-14)
        np.testing.assert_allclose(dist.marginals[i], trees.marginals.T, atol=1e-13)
        np.testing.assert_allclose(dist.entropy[i], trees.entropy, atol=1e-12)
