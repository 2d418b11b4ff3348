"""Scores that break other code: no NaN anywhere, zero gradient for what cannot matter, errors that say why."""

from __future__ import annotations

import math

import numpy as np
import pytest

import spantree
import spantree.torch as st
import torch

KINDS = {
    "single": {},
    "multi": {"root": "multi"},
    "projective": {"projective": True},
    "labelled": {"labelled": True},
}


def scores_of(kind, nodes=5, sentences=3, dtype=torch.float64, seed=0):
    shape = (sentences, nodes, nodes, 2) if kind == "labelled" else (sentences, nodes, nodes)
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def everything(dist, other, values):
    """All differentiable numbers, by name."""
    best = dist.argmax()
    return {
        "log_partition": dist.log_partition(),
        "marginals": dist.marginals(),
        "entropy": dist.entropy(),
        "max": dist.max(),
        "score": dist.score(best),
        "log_prob": dist.log_prob(best),
        "risk": dist.risk(best),
        "expectation": dist.expectation(values),
        "covariance": dist.covariance(values, values),
        "generalized_expectation": dist.generalized_expectation(values, 0.5),
        "renyi 0.5": dist.renyi_entropy(0.5),
        "renyi 2": dist.renyi_entropy(2),
        "renyi inf": dist.renyi_entropy(math.inf),
        "norm": dist.norm(2),
        "cross_entropy": dist.cross_entropy(other),
        "kl": dist.kl(other),
        "kl by q": other.kl(dist),
    }


def gradients(numbers, scores):
    """Of each; infinite numbers count as 0."""
    found = {}
    for name, number in numbers.items():
        finite = torch.where(number.isfinite(), number, 0.0).sum()
        found[name] = torch.autograd.grad(finite, scores, retain_graph=True)[0]
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_sentences_without_a_tree(kind):
    """With on_infeasible="mask": log Z and scores -inf, marginals 0, means NaN, as with NumPy; gradients 0 always."""
    scores = scores_of(kind)
    scores[1, :, 2] = -torch.inf
    scores.requires_grad_()
    values = scores_of(kind, seed=1)
    other = scores_of(kind, seed=2)
    dist, second = (st.TreeDistribution(x, on_infeasible="mask", **KINDS[kind]) for x in (scores, other))
    numbers = everything(dist, second, values)
    slopes = gradients(numbers, scores)
    alone = [0, 2]
    rest = st.TreeDistribution(scores[alone], **KINDS[kind])
    expected = everything(rest, st.TreeDistribution(other[alone], **KINDS[kind]), values[alone])
    for name, number in numbers.items():
        assert not slopes[name].isnan().any(), name
        assert slopes[name][1].eq(0).all(), name
        torch.testing.assert_close(number[alone], expected[name], rtol=1e-14, atol=1e-14)
        if name in ("log_partition", "max", "score", "log_prob"):
            assert number[1] == -torch.inf, name
        elif name == "kl by q":
            assert number[1] == torch.inf
        elif name == "marginals":
            assert number[1].eq(0).all()
        else:
            assert number[1].isnan(), name
            squared = torch.autograd.grad(number.square().sum(), scores, retain_graph=True)[0]
            assert not squared.isnan().any(), name
            assert squared[1].eq(0).all(), name
    heads = dist.argmax().heads if kind == "labelled" else dist.argmax()
    assert heads[1].eq(-1).all()


@pytest.mark.parametrize("kind", KINDS)
def test_infeasible_errors(kind):
    scores = scores_of(kind)
    scores[1, :, 2] = -torch.inf
    dist = st.TreeDistribution(scores, **KINDS[kind])
    for ask in (
        dist.log_partition,
        dist.marginals,
        dist.entropy,
        dist.argmax,
        dist.max,
        dist.sample,
        dist.mbr,
        lambda: dist.topk(2),
        lambda: dist.sample_without_replacement(2),
        lambda: dist.kl(st.TreeDistribution(scores_of(kind), **KINDS[kind])),
    ):
        with pytest.raises(spantree.InfeasibleError, match=r"sentence 1 has no .*word 2 cannot be attached"):
            ask()


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_bad_scores(bad):
    scores = scores_of("single")
    scores[2, 1, 3] = bad
    for ask in ("log_partition", "marginals", "entropy", "argmax", "sample"):
        with pytest.raises(ValueError, match=f"sentence 2: the score of the edge 1 -> 3 is {bad}"):
            getattr(st.TreeDistribution(scores, on_infeasible="mask"), ask)()
    lengths = torch.tensor([4, 4, 2])
    assert st.TreeDistribution(scores, lengths=lengths).entropy().isfinite().all()
    heads = torch.tensor([-1, 0, 1, 1, 1]).expand(1, 3, 5)
    for reduction in ("mean", "none"):
        with pytest.raises(ValueError, match=rf"sentence \(0, 2\): the score of the edge 1 -> 3 is {bad}"):
            st.tree_crf_loss(scores[None], heads, reduction=reduction)


def test_what_is_no_score():
    with pytest.raises(TypeError, match="must be a tensor, not ndarray"):
        st.TreeDistribution(np.zeros((3, 3)))
    for given in ((np.zeros((3, 3)), torch.zeros(3).long()), (torch.zeros(3, 3), [0, 0, 1])):
        with pytest.raises(TypeError, match="must be tensors"):
            st.tree_crf_loss(*given)
    with pytest.raises(ValueError, match=r"shape \(3, 4\)"):
        st.TreeDistribution(torch.zeros(3, 4))
    with pytest.raises(ValueError, match="root"):
        st.TreeDistribution(torch.zeros(3, 3), root="none")
    with pytest.raises(ValueError, match="lengths have shape"):
        st.TreeDistribution(torch.zeros(2, 3, 3), lengths=[2])
    with pytest.raises(ValueError, match="sentence 1"):
        st.TreeDistribution(torch.zeros(2, 3, 3), lengths=[2, 3]).entropy()
    with pytest.raises(ValueError, match="padding at the end"):
        st.TreeDistribution(torch.zeros(3, 3), mask=torch.tensor([False, True]))
    assert st.TreeDistribution(torch.zeros(3, 3, dtype=torch.int64)).marginals().dtype == torch.float64


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("soft", [-1e9, -1e30, -torch.inf])
def test_masks(kind, soft):
    """A soft mask gives what a hard one gives, gradient 0 at masked edges included."""
    allowed = torch.rand(scores_of(kind).shape, generator=torch.Generator().manual_seed(3)) < 0.6
    allowed[:, 0, 1] = True
    for d in range(2, 5):
        allowed[:, d - 1, d] = True  # a chain is left
    scores, other, values = (scores_of(kind, seed=seed) for seed in range(3))
    leaf = scores.clone().requires_grad_()
    hard = st.TreeDistribution(leaf, mask=allowed, **KINDS[kind])
    second = st.TreeDistribution(other, mask=allowed, **KINDS[kind])
    expected = everything(hard, second, values)
    expected_slopes = gradients(expected, leaf)
    masked = torch.where(allowed, scores, soft).requires_grad_()
    numbers = everything(
        st.TreeDistribution(masked, **KINDS[kind]),
        st.TreeDistribution(torch.where(allowed, other, soft), **KINDS[kind]),
        values,
    )
    slopes = gradients(numbers, masked)
    for name, number in numbers.items():
        torch.testing.assert_close(number, expected[name], rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(slopes[name], expected_slopes[name], rtol=1e-10, atol=1e-10)
        if name != "renyi 0.5":
            assert slopes[name][~allowed].eq(0).all(), name


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [30.0, 300.0, 1e5])
def test_any_scale(kind, scale):
    """No NaN, nothing negative, marginals that sum to 1; the loss and its gradient are those of double precision."""
    for dtype in (torch.float32, torch.float64):
        scores = (scale * scores_of(kind, dtype=dtype)).requires_grad_()
        dist = st.TreeDistribution(scores, **KINDS[kind])
        second = st.TreeDistribution(scale * scores_of(kind, seed=1, dtype=dtype), **KINDS[kind])
        numbers = everything(dist, second, scores_of(kind, seed=2, dtype=dtype))
        for name, slope in gradients(numbers, scores).items():
            assert not numbers[name].isnan().any(), name
            assert not slope.isnan().any(), name
        marginals = numbers["marginals"]
        assert (marginals >= 0).all()
        axes = (1, 3) if kind == "labelled" else (1,)
        torch.testing.assert_close(marginals.sum(axes)[:, 1:], torch.ones(3, 4, dtype=dtype))
        # twice
        (slope,) = torch.autograd.grad(dist.entropy().sum(), scores, create_graph=True)
        (second_slope,) = torch.autograd.grad(slope.square().sum(), scores)
        assert not second_slope.isnan().any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("filler", [math.nan, math.inf, -math.inf, 1e300])
def test_padding_never_matters(kind, filler):
    scores, values = scores_of(kind), scores_of(kind, seed=1)
    lengths = torch.tensor([4, 2, 3])
    inside = torch.zeros(scores.shape, dtype=torch.bool)
    for i, n in enumerate(lengths.tolist()):
        inside[i, : n + 1, 1 : n + 1] = True
        inside[i, range(5), range(5)] = False
    found = []
    for fill in (0.0, filler):
        leaf = torch.where(inside, scores, fill).requires_grad_()
        dist = st.TreeDistribution(leaf, lengths=lengths, **KINDS[kind])
        second = st.TreeDistribution(torch.where(inside, values, fill), lengths=lengths, **KINDS[kind])
        numbers = everything(dist, second, torch.where(inside, values, fill))
        found.append((numbers, gradients(numbers, leaf)))
    for name, number in found[0][0].items():
        assert torch.equal(number, found[1][0][name]), name
        assert torch.equal(found[0][1][name], found[1][1][name]), name
        assert found[1][1][name][~inside].eq(0).all(), name


def test_nothing_at_all():
    """No sentences, no words."""
    for shape in ((0, 4, 4), (2, 1, 1), (0, 1, 1), (2, 0, 3, 3)):
        scores = torch.zeros(shape, dtype=torch.float64, requires_grad=True)
        dist = st.TreeDistribution(scores)
        for number in (dist.log_partition(), dist.entropy(), dist.max(), dist.marginals()):
            assert number.eq(0).all()
        dist.entropy().sum().backward()
        assert scores.grad.eq(0).all()
        assert dist.sample((2,)).shape == (2, *shape[:-1])
        assert dist.argmax().eq(-1).all()
    assert st.TreeDistribution(torch.zeros(1, 1)).risk(torch.tensor([-1])) == 0.0


def test_inputs_are_never_changed():
    scores = scores_of("single")
    copy = scores.clone()
    dist = st.TreeDistribution(scores, mask=torch.ones(3, 5, 5, dtype=torch.bool), temperature=2.0)
    everything(dist, dist, scores)
    assert torch.equal(scores, copy)
    assert not scores.requires_grad


def test_values_of_impossible_edges():
    """Whatever they are."""
    scores = scores_of("single")
    scores[:, 2, 1] = -torch.inf
    scores.requires_grad_()
    values = scores_of("single", seed=1)
    expected = st.TreeDistribution(scores).expectation(values)
    expected_slope = torch.autograd.grad(expected.sum(), scores)[0]
    for bad in (math.nan, math.inf):
        values[:, 2, 1] = bad
        for given in (values, torch.stack([values, values], -1)):
            found = st.TreeDistribution(scores).expectation(given)
            found = found[..., 0] if given.dim() == 4 else found
            torch.testing.assert_close(found, expected)
            torch.testing.assert_close(torch.autograd.grad(found.sum(), scores)[0], expected_slope)


def test_known_heads_that_contradict():
    scores = scores_of("single").requires_grad_()
    heads = torch.tensor([[-1, 2, 1, -2, -2], [-1, -2, -2, -2, -2], [-1, 0, 0, -2, -2]])  # a cycle, nothing, two roots
    log_prob = st.TreeDistribution(scores).log_prob(heads, partial=True)
    assert log_prob.tolist() == [-math.inf, 0.0, -math.inf]
    (slope,) = torch.autograd.grad(log_prob.sum(), scores)
    assert slope[[0, 2]].eq(0).all()
    torch.testing.assert_close(slope[1], torch.zeros(5, 5).double(), rtol=0, atol=1e-15)
    assert st.tree_crf_loss(scores, torch.where(heads == -1, -2, heads), reduction="none")[1] == math.inf


def test_every_copy_of_an_expanded_tensor_has_its_gradient():
    for leaf in (False, True):
        base = scores_of("single", sentences=1)[0]
        x = base.expand(3, 5, 5).requires_grad_() if leaf else base.requires_grad_().expand(3, 5, 5)
        weights = torch.tensor([1.0, 2.0, 3.0]).double()
        (found,) = torch.autograd.grad((st.TreeDistribution(x).log_partition() * weights).sum(), x)
        torch.testing.assert_close(found, weights[:, None, None] * st.TreeDistribution(base.detach()).marginals())


def test_whatever_is_made_of_an_infinite_loss():
    """A gold tree that is none moves nothing."""
    for reduction in ("mean", "sum", "none"):
        x = torch.zeros(2, 3, 3, requires_grad=True)
        gold = torch.tensor([[-1, 0, 0], [-1, 0, 0]])
        st.tree_crf_loss(x, gold, reduction=reduction).exp().sum().backward()
        assert torch.equal(x.grad, torch.zeros_like(x)), reduction
