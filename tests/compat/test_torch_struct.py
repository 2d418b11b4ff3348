"""The stand-in for torch-struct's dependency distributions, against enumeration: root scores on the diagonal."""

from __future__ import annotations

import numpy as np
import pytest

import torch
from oracle.listed import Listed
from spantree.compat.torch_struct import (
    DependencyCRF,
    DepTree,
    NonProjectiveDependencyCRF,
    convert,
    deptree_nonproj,
    deptree_part,
    unconvert,
)

LENGTHS = [4, 2, 1]
CLASSES = pytest.mark.parametrize("cls", [NonProjectiveDependencyCRF, DependencyCRF])
ROOTS = pytest.mark.parametrize("multiroot", [False, True])


def with_root(matrix):
    """[head, dependent] with ROOT as node 0, of a matrix with root scores on the diagonal."""
    n = len(matrix)
    scores = np.full((n + 1, n + 1, *matrix.shape[2:]), -np.inf)
    scores[1:, 1:] = matrix
    scores[0, 1:] = matrix[range(n), range(n)]
    scores[range(1, n + 1), range(1, n + 1)] = -np.inf
    return scores


def on_diagonal(matrices):
    """The way back, for 0/1 or marginal matrices (..., n+1, n+1)."""
    moved = matrices[..., 1:, 1:].copy()
    n = moved.shape[-1]
    moved[..., range(n), range(n)] = matrices[..., 0, 1:]
    return moved


def batch(seed, cls, multiroot, labels=()):
    potentials = np.random.default_rng(seed).normal(size=(3, 4, 4, *labels))
    root = "multi" if multiroot else "single"
    edges = np.logaddexp.reduce(potentials, axis=3) if labels else potentials
    trees = [
        Listed(with_root(matrix[:n, :n]), root, cls is DependencyCRF) for matrix, n in zip(edges, LENGTHS, strict=True)
    ]
    for matrix, n in zip(potentials, LENGTHS, strict=True):
        matrix[n:], matrix[:, n:] = 1e9, -1e9
    return cls(torch.tensor(potentials), torch.tensor(LENGTHS), multiroot=multiroot), trees


@CLASSES
@ROOTS
@pytest.mark.parametrize("labels", [(), (3,)])
def test_numbers(cls, multiroot, labels):
    dist, trees = batch(0, cls, multiroot, labels)
    np.testing.assert_allclose(dist.partition, [tree.log_partition for tree in trees], rtol=1e-12)
    for found, tree, n in zip(dist.marginals, trees, LENGTHS, strict=True):
        pairs = found.sum(-1) if labels else found
        np.testing.assert_allclose(pairs[:n, :n], on_diagonal(tree.marginals), atol=1e-13)
        assert (found[n:] == 0).all()
        assert (found[:, n:] == 0).all()


@CLASSES
@ROOTS
def test_comparisons(cls, multiroot):
    dist, trees = batch(1, cls, multiroot)
    other, other_trees = batch(2, cls, multiroot)
    pairs = list(zip(trees, other_trees, strict=True))
    np.testing.assert_allclose(dist.entropy, [tree.entropy for tree in trees], atol=1e-13)
    np.testing.assert_allclose(dist.cross_entropy(other), [p.cross_entropy(q) for p, q in pairs], atol=1e-12)
    np.testing.assert_allclose(dist.kl(other), [p.cross_entropy(q) - p.entropy for p, q in pairs], atol=1e-12)
    np.testing.assert_allclose(dist.count, [len(tree.heads) for tree in trees], rtol=1e-12)


@CLASSES
@ROOTS
def test_best_trees(cls, multiroot):
    dist, trees = batch(3, cls, multiroot)
    kmax, topk = dist.kmax(3), dist.topk(3)
    assert topk.shape == (3, 3, 4, 4)
    np.testing.assert_allclose(dist.max, [tree.scores.max() for tree in trees])
    for i, (tree, n) in enumerate(zip(trees, LENGTHS, strict=True)):
        order = np.argsort(-tree.scores)[:3]
        np.testing.assert_allclose(kmax[: len(order), i], tree.scores[order])
        np.testing.assert_array_equal(topk[: len(order), i, :n, :n], on_diagonal(tree.indicator[order]))
        assert (topk[len(order) :, i] == 0).all()
        assert torch.equal(dist.argmax[i], topk[0, i])
        assert torch.equal(dist.mode[i], topk[0, i])


@CLASSES
@ROOTS
@pytest.mark.parametrize("labels", [(), (3,)])
def test_samples_and_their_probabilities(cls, multiroot, labels):
    dist, trees = batch(4, cls, multiroot, labels)
    torch.manual_seed(0)
    drawn = dist.sample((20,))
    assert drawn.shape == (20, 3, 4, 4, *labels)
    log_probs = dist.log_prob(drawn)
    for i, (tree, n) in enumerate(zip(trees, LENGTHS, strict=True)):
        matrices = on_diagonal(tree.indicator)
        for event, log_prob in zip(drawn[:, i], log_probs[:, i], strict=True):
            pairs = (event.sum(-1) if labels else event)[:n, :n].numpy()
            assert event.sum() == n
            (which,) = np.flatnonzero((matrices == pairs).all(axis=(1, 2)))
            potentials = dist.log_potentials[i].numpy()
            total = potentials[event.numpy() == 1].sum() if labels else tree.scores[which]
            np.testing.assert_allclose(log_prob, total - tree.log_partition, atol=1e-12)


@CLASSES
def test_no_tree_has_no_probability(cls):
    dist = cls(torch.zeros(1, 3, 3), multiroot=False)
    cycle = DepTree.to_parts(torch.tensor([[2, 1, 0]]))
    two_roots = DepTree.to_parts(torch.tensor([[0, 0, 2]]))
    two_heads = DepTree.to_parts(torch.tensor([[0, 1, 1]]))
    two_heads[0, 1, 2] = 1
    for event in (cycle, two_roots, two_heads, torch.zeros(1, 3, 3)):
        assert dist.log_prob(event) == -torch.inf
    assert dist.log_prob(DepTree.to_parts(torch.tensor([[0, 1, 1]]))) > -torch.inf


@CLASSES
def test_a_distribution_of_torch(cls):
    potentials = torch.randn((2, 3, 3, 4), generator=torch.Generator().manual_seed(0))
    dist, other = cls(potentials), cls(potentials.flip(0))
    assert isinstance(dist, torch.distributions.Distribution)
    assert dist.batch_shape == torch.Size([2])
    assert dist.event_shape == torch.Size([3, 3, 4])
    assert torch.equal(torch.distributions.kl_divergence(dist, other), dist.kl(other))
    assert torch.equal(dist.perplexity(), dist.entropy.exp())
    assert repr(dist) == f"{cls.__name__}(log_potentials: (2, 3, 3, 4), multiroot={dist.multiroot})"


def test_a_distribution_keeps_its_roots():
    """There, `multiroot` is kept with the class: the second distribution changes the first."""
    first = DependencyCRF(torch.zeros(1, 3, 3), multiroot=False)
    DependencyCRF(torch.zeros(1, 3, 3), multiroot=True)
    assert first.count == 7


@pytest.mark.parametrize("labels", [(), (2,)])
def test_diagonal_to_row_and_back(labels):
    potentials = torch.randn(2, 3, 3, *labels, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    moved = convert(potentials)
    assert (moved[:, :, 0] == -1e9).all()
    np.testing.assert_array_equal(
        np.where(moved == -1e9, -np.inf, moved), [with_root(matrix) for matrix in potentials.numpy()]
    )
    assert torch.equal(unconvert(moved), potentials)


def test_heads_to_parts_and_back():
    heads = torch.tensor([[2, 0, 2], [0, 1, 3]])
    parts = DepTree.to_parts(heads, lengths=torch.tensor([3, 2]))
    assert parts.tolist() == [[[0, 0, 0], [1, 1, 1], [0, 0, 0]], [[1, 1, 0], [0, 0, 0], [0, 0, 0]]]
    assert DepTree.from_parts(parts)[0].tolist() == [[2, 0, 2], [0, 1, 0]]
    dist = NonProjectiveDependencyCRF(torch.zeros(2, 3, 3))
    assert torch.equal(dist.to_event(heads, None), DepTree.to_parts(heads))
    assert dist.from_event(parts)[0].tolist() == [[2, 0, 2], [0, 1, 0]]


@ROOTS
def test_functions(multiroot):
    dist, _ = batch(5, NonProjectiveDependencyCRF, multiroot)
    assert torch.equal(deptree_part(dist.log_potentials, multiroot, dist.lengths), dist.partition)
    assert torch.equal(deptree_nonproj(dist.log_potentials, multiroot, dist.lengths), dist.marginals)


@CLASSES
def test_gradients(cls):
    potentials = torch.randn(2, 3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    potentials.requires_grad_()
    (gradient,) = torch.autograd.grad(cls(potentials).partition.sum(), potentials)
    torch.testing.assert_close(gradient, cls(potentials).marginals)
    event = cls(potentials).argmax
    assert torch.autograd.gradcheck(lambda x: cls(x).log_prob(event), potentials)
    assert torch.autograd.gradcheck(lambda x: cls(x).marginals, potentials)


@pytest.mark.parametrize("crf", [NonProjectiveDependencyCRF, DependencyCRF])
def test_gumbel_crf(crf):
    """A tree of the distribution, with the gradient of the marginals at the temperature."""
    torch.manual_seed(0)
    potentials = torch.randn(3, 4, 4, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(3, 4, 4, dtype=torch.float64)
    dist = crf(potentials, torch.tensor([4, 3, 2]))
    tree = dist.gumbel_crf(0.5)
    assert ((tree == 0) | (tree == 1)).all()
    assert (dist.log_prob(tree) > -torch.inf).all()
    (found,) = torch.autograd.grad((tree * weights).sum(), potentials)
    soft = crf(potentials / 0.5, torch.tensor([4, 3, 2])).marginals
    (expected,) = torch.autograd.grad((soft * weights).sum(), potentials)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    drawn = {tuple(dist.gumbel_crf()[0].flatten().tolist()) for _ in range(50)}
    assert len(drawn) > 1
