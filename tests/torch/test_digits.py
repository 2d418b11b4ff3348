"""Derivatives have the digits of their type, whichever way torch asks for them: computed in double, rounded once."""

from __future__ import annotations

import pytest
from enumerated import KINDS, Enumerated

import spantree.torch
import torch
from spantree.torch import TreeDistribution, tree_crf_loss

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # torch's own, in forward mode


def by_backward(function, scores):
    scores = scores.clone().requires_grad_()
    function(scores).backward()
    return scores.grad


def by_backward_that_can_go_on(function, scores):
    scores = scores.clone().requires_grad_()
    return torch.autograd.grad(function(scores), scores, create_graph=True)[0].detach()


def by_forward_mode(function, scores):
    directions = torch.eye(scores.numel(), dtype=scores.dtype).reshape(-1, *scores.shape)
    slopes = [torch.func.jvp(function, (scores,), (direction,))[1] for direction in directions]
    return torch.stack(slopes).reshape(scores.shape)


def by_transform(function, scores):
    return torch.func.grad(function)(scores)


WAYS = [by_backward, by_backward_that_can_go_on, by_transform, by_forward_mode]


def questions(kind, other, heads, labels):
    def dist(scores):
        return TreeDistribution(scores, **kind)

    def trees(scores):
        several = None if labels is None else labels.expand(2, -1)
        return dist(scores).log_prob(heads.expand(2, -1), several).sum()

    return {
        "entropy": lambda s: dist(s).entropy(),
        "cross_entropy": lambda s: dist(s).cross_entropy(dist(other.to(s.dtype))),
        "kl": lambda s: dist(s).kl(dist(other.to(s.dtype))),
        "kl by q": lambda s: dist(other.to(s.dtype)).kl(dist(s)),
        "log_prob": lambda s: dist(s).log_prob(heads, labels),
        "log_prob of two": trees,
        "loss": lambda s: tree_crf_loss(
            s, heads, labels=labels, root=kind.get("root", "single"), projective=kind.get("projective", False)
        ),
    }


def truth(name, scores, other, kind, heads, labels):
    """The derivative by enumeration, in double."""
    scores = scores.double().clone().requires_grad_()
    p, q = Enumerated(scores, **kind), Enumerated(other.double(), **kind)
    of_tree = p.log_probs[p.agrees(heads, labels)].sum()
    value = {
        "entropy": lambda: p.entropy,
        "cross_entropy": lambda: -(p.probs * q.log_probs).sum(),
        "kl": lambda: (p.probs * (p.log_probs - q.log_probs)).sum(),
        "kl by q": lambda: (q.probs * (q.log_probs - p.log_probs)).sum(),
        "log_prob": lambda: of_tree,
        "log_prob of two": lambda: 2 * of_tree,
        "loss": lambda: -of_tree,
    }[name]()
    return torch.autograd.grad(value, scores)[0]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", ["single", "multi", "projective", "labelled"])
def test_rounded_once(kind, dtype, way):
    """Beside what all trees have in common: ROOT's edges 1,024 below all others, one of which every tree has."""
    kind, generator = KINDS[kind], torch.Generator().manual_seed(7)
    labels = 2 if kind.get("labelled") else None
    shape = (4, 4) if labels is None else (4, 4, labels)
    scores, other = (torch.randn(shape, generator=generator).to(dtype).float() for _ in range(2))
    lowered, shift = scores.clone(), 1024.0 if kind.get("root") != "multi" else 0.0
    lowered[0] = (lowered[0] - shift).to(dtype).float()
    scores = torch.cat([lowered[:1] + shift, lowered[1:]])  # what is left of them in this type
    heads = torch.tensor([-1, 2, 0, 2])
    gold = None if labels is None else torch.tensor([-1, 1, 0, 1])
    for name, ask in questions(kind, other, heads, gold).items():
        expected = truth(name, scores, other, kind, heads, gold)
        found = way(ask, lowered.to(dtype))
        assert found.dtype == dtype, name
        error = (found.double() - expected).abs().max() / expected.abs().max()
        assert error <= 1.01 * torch.finfo(dtype).eps, (name, error)


@pytest.mark.parametrize("way", [by_backward, by_backward_that_can_go_on, by_transform])
def test_a_mask_on_all_edges_of_root(way):
    """With one root they have a constant in common, which changes nothing."""
    generator = torch.Generator().manual_seed(0)
    scores, other = (torch.randn(5, 5, generator=generator) for _ in range(2))
    scores[0] = 0.0
    masked = scores.clone()
    masked[0] = -1e9
    for ask in (lambda s: TreeDistribution(s).entropy(), lambda s: TreeDistribution(s).kl(TreeDistribution(other))):
        torch.testing.assert_close(way(ask, masked), way(ask, scores.double()).float(), atol=1e-7, rtol=1e-6)


@pytest.mark.parametrize("shift", [1e3, 1e6, 1e9])
def test_second_derivatives_beside_what_edges_of_root_have_in_common(shift):
    """Scores are multiples of 2^-10, so that they can be shifted without rounding: nothing may change."""
    generator = torch.Generator().manual_seed(4)
    scores, other, along = ((torch.randn(6, 6, generator=generator).double() * 1024).round() / 1024 for _ in range(3))
    shifted = scores.clone()
    shifted[0] -= shift
    for ask in (
        lambda s: TreeDistribution(s).entropy(),
        lambda s: TreeDistribution(s).cross_entropy(TreeDistribution(other)),
        lambda s: TreeDistribution(other).kl(TreeDistribution(s)),
    ):

        def second(s, ask=ask):
            return torch.func.jvp(torch.func.grad(ask), (s,), (along,))[1]

        torch.testing.assert_close(second(shifted), second(scores), atol=1e-13, rtol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_what_a_tree_that_is_all_but_certain_still_has_to_learn(dtype):
    """1 less its probability is 1e-6, which none of these types has beside 1."""
    scores = torch.tensor([[0, 7.0, 0], [0, 0, 7.0], [0, 0, 0]], dtype=dtype)
    heads = torch.tensor([-1, 0, 1])
    expected = 1.0 / (1.0 + torch.tensor(14.0, dtype=torch.float64).exp())
    for ask in (
        lambda s: -tree_crf_loss(s, heads),
        lambda s: TreeDistribution(s).log_prob(heads),
        lambda s: TreeDistribution(s).log_prob(heads, partial=True),
        lambda s: TreeDistribution(s).log_prob(heads.expand(3, -1)).mean(),
    ):
        for way in WAYS[:3]:
            found = way(ask, scores)[0, 1].double()
            smallest = torch.finfo(dtype).tiny * torch.finfo(dtype).eps
            assert abs(found - expected) <= 2 * torch.finfo(dtype).eps * expected + smallest, way


@pytest.mark.parametrize("values", ["one", "several"])
def test_vmap_where_values_have_an_axis(values):
    generator = torch.Generator().manual_seed(3)
    scores = torch.randn(3, 4, 4, generator=generator, dtype=torch.float64)
    features = torch.randn(4, 4, 2, generator=generator, dtype=torch.float64)
    other = features[..., 0] if values == "one" else features
    for ask in (
        lambda s: TreeDistribution(s).covariance(features, other),
        lambda s: TreeDistribution(s).covariance(other, features),
        lambda s: TreeDistribution(s).covariance(features, "edges"),
        lambda s: TreeDistribution(s).covariance("edges", features),
        lambda s: TreeDistribution(s).second_moment(features, other),
        lambda s: TreeDistribution(s).expectation(features * s[..., None]),
        lambda s: TreeDistribution(s).generalized_expectation(features * s[..., None], 0.5),
    ):
        torch.testing.assert_close(torch.func.vmap(ask)(scores), torch.stack([ask(s) for s in scores]))


@pytest.mark.filterwarnings("ignore:Anomaly Detection:UserWarning")
def test_no_false_alarm():
    """Nothing on the way to a gradient is NaN where a sentence has no tree."""
    scores = torch.zeros(2, 3, 3)
    scores[0, :, 1] = -torch.inf
    ones = torch.ones(3, 3)
    for ask in (
        lambda s: TreeDistribution(s, on_infeasible="mask").norm(2.0),
        lambda s: TreeDistribution(s, on_infeasible="mask").second_moment(ones, ones),
        lambda s: TreeDistribution(s, on_infeasible="mask").generalized_expectation(ones, 0.0),
        lambda s: TreeDistribution(s, on_infeasible="mask").renyi_entropy(2.0),
        lambda s: TreeDistribution(s, on_infeasible="mask").entropy(),
        lambda s: spantree.torch.generalized_expectation_loss(s, ones, 0.0, on_infeasible="mask"),
    ):
        given = scores.clone().requires_grad_()
        with torch.autograd.detect_anomaly():
            ask(given).nan_to_num().sum().backward()
        assert given.grad.isfinite().all()


def test_best_trees_of_no_words():
    scores = torch.zeros(1, 1, requires_grad=True)
    assert TreeDistribution(scores).topk(2).scores.tolist() == [0.0, -torch.inf]


def test_constraints_say_what_they_are():
    dist = TreeDistribution(torch.zeros(3, 3))
    assert repr(dist.arg_constraints["scores"]) == "ScoresOf(event_dim=2)"
    assert repr(dist.support).startswith("TreesOf(TreeDistribution(")
