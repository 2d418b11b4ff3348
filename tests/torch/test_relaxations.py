"""Relaxations: what they return exactly, and that estimates of gradients are unbiased.

Statistical tests: fixed seeds; the bound is five standard errors of the mean, coordinate by coordinate. With another
seed there is a false alarm of 6e-7 for each, and of less than 3e-5 for all coordinates of a test.
"""

from __future__ import annotations

import pytest
from enumerated import Enumerated

import spantree.torch as st
import torch

DRAWS = 500


def scores_of(labelled=False, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shape = (4, 4, 2) if labelled else (4, 4)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def assert_unbiased(draws, expected):
    """Draws (D, ...) of something whose mean should be `expected`."""
    error = draws.std(0) / len(draws) ** 0.5
    assert ((draws.mean(0) - expected).abs() <= 5 * error + 1e-12).all()


@pytest.mark.parametrize("labelled", [False, True])
def test_straight_through(labelled):
    scores = scores_of(labelled).requires_grad_()
    dist = st.TreeDistribution(scores, labelled=labelled)
    weights = torch.randn(scores.shape).double()
    (expected,) = torch.autograd.grad((dist.marginals() * weights).sum(), scores)
    for tree in ("sample", "argmax"):
        generator = torch.Generator().manual_seed(1)
        edges = st.straight_through(dist, tree=tree, generator=generator)
        found = dist.argmax() if tree == "argmax" else dist.sample(generator=torch.Generator().manual_seed(1))
        torch.testing.assert_close(edges.detach(), dist.edges_of(found).double(), rtol=0, atol=0)
        (slope,) = torch.autograd.grad((edges * weights).sum(), scores)
        torch.testing.assert_close(slope, expected, rtol=0, atol=0)


@pytest.mark.parametrize("labelled", [False, True])
def test_perturb_and_marginals(labelled):
    scores = scores_of(labelled).requires_grad_()
    dist = st.TreeDistribution(scores, labelled=labelled, root="multi")
    soft = st.perturb_and_marginals(dist, temperature=0.3, generator=torch.Generator().manual_seed(2))
    noise = -torch.empty_like(scores).exponential_(generator=torch.Generator().manual_seed(2)).log()
    enumerated = Enumerated((scores + noise) / 0.3, root="multi", labelled=labelled)
    torch.testing.assert_close(soft, enumerated.marginals, rtol=1e-10, atol=1e-12)
    weights = torch.randn(scores.shape).double()
    ours, expected = (torch.autograd.grad((x * weights).sum(), scores)[0] for x in (soft, enumerated.marginals))
    torch.testing.assert_close(ours, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("relaxed", [st.perturb_and_marginals, st.implicit_mle])
def test_noise_is_never_infinite(relaxed):
    """Of this seed's exponential variables, one is 0 in half precision."""
    scores = torch.zeros(32, 41, 41, dtype=torch.float16)
    assert (torch.empty_like(scores).exponential_(generator=torch.Generator().manual_seed(20)) == 0).any()
    dist = st.TreeDistribution(scores)
    for seed in range(20, 24):
        soft = relaxed(dist, generator=torch.Generator().manual_seed(seed))
        assert soft.dtype == torch.float16
        torch.testing.assert_close(soft.float().sum(-2)[:, 1:], torch.ones(32, 40), rtol=0, atol=2e-2)


@pytest.mark.parametrize("relaxed", [st.straight_through, st.perturb_and_marginals, st.implicit_mle])
def test_lists_in_lists_out(relaxed):
    scores = scores_of().requires_grad_()
    dist = st.TreeDistribution([scores, scores[:3, :3]], layout="dep_head")
    soft = relaxed(dist, generator=torch.Generator().manual_seed(2))
    assert [x.shape for x in soft] == [(4, 4), (3, 3)]
    for x in soft:
        torch.testing.assert_close(x.detach().sum(-1)[1:], torch.ones(len(x) - 1).double())
    torch.autograd.grad(sum((x * torch.randn(x.shape)).sum() for x in soft), scores)


def test_cold_perturbed_marginals_are_a_tree():
    dist = st.TreeDistribution(scores_of())
    soft = st.perturb_and_marginals(dist, temperature=1e-3, generator=torch.Generator().manual_seed(3))
    noise = -torch.empty_like(dist.scores).exponential_(generator=torch.Generator().manual_seed(3)).log()
    best = dist.with_scores(dist.scores + noise).argmax()
    torch.testing.assert_close(soft, dist.edges_of(best).double(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("labelled", [False, True])
def test_implicit_mle(labelled):
    scores = scores_of(labelled).requires_grad_()
    dist = st.TreeDistribution(scores, labelled=labelled, layout="dep_head")
    edges = st.implicit_mle(dist, step=3.0, generator=torch.Generator().manual_seed(4))
    inner = scores.detach().transpose(0, 1)
    noise = -torch.empty_like(inner).exponential_(generator=torch.Generator().manual_seed(4)).log()

    def best(moved):
        e = Enumerated(moved, labelled=labelled)
        tree = int(e.scores.argmax())
        flat = st.TreeDistribution(moved, labelled=labelled)
        return flat.edges_of(e.heads[tree], None if e.labels is None else e.labels[tree]).double().transpose(0, 1)

    assert torch.equal(edges, best(inner + noise))
    weights = torch.randn(scores.shape).double()
    (slope,) = torch.autograd.grad((edges * weights).sum(), scores)
    better = best(inner + noise - 3.0 * weights.transpose(0, 1))
    torch.testing.assert_close(slope, (edges - better).detach() / 3.0, rtol=0, atol=0)


def value_and_slope(scores, parameter):
    """E[f] and its gradients by the scores and by the parameter that f is multiplied by, by enumeration."""
    e = Enumerated(scores)
    mean = e.mean(parameter * f_of(e.heads))
    return mean.detach(), *torch.autograd.grad(mean, (scores, parameter))


def f_of(heads):
    return (heads[..., 1] == 0).double() * 2 + ((heads[..., 2] == 3) & (heads[..., 3] == 1)) * 5 - 1


@pytest.mark.parametrize("estimate", [st.score_function, st.unordered_set])
def test_unbiased(estimate):
    parameter = torch.tensor(1.5, dtype=torch.float64, requires_grad=True)
    scores = scores_of().requires_grad_()
    many = scores.detach().expand(DRAWS, 4, 4).clone().requires_grad_()
    generator = torch.Generator().manual_seed(5)
    values = estimate(st.TreeDistribution(many), lambda heads: parameter * f_of(heads), 3, generator=generator)
    (slopes, by_parameter) = torch.autograd.grad(values.sum(), (many, parameter))
    value, slope, slope_by_parameter = value_and_slope(scores, parameter)
    assert_unbiased(values.detach(), value)
    assert_unbiased(slopes, slope)
    assert_unbiased(values.detach() / parameter.detach(), slope_by_parameter)
    torch.testing.assert_close(by_parameter / DRAWS, (values / parameter).mean().detach())


def test_unordered_set_of_all_trees_is_exact():
    parameter = torch.tensor(1.5, dtype=torch.float64, requires_grad=True)
    scores = scores_of().requires_grad_()
    for k in (9, 12):  # three words have nine trees
        value = st.unordered_set(st.TreeDistribution(scores), lambda heads: parameter * f_of(heads), k)
        slopes = torch.autograd.grad(value, (scores, parameter))
        expected, *expected_slopes = value_and_slope(scores, parameter)
        for mine, right in zip((value.detach(), *slopes), (expected, *expected_slopes), strict=True):
            torch.testing.assert_close(mine, right, rtol=1e-10, atol=1e-10)


def test_one_tree_has_no_baseline():
    dist = st.TreeDistribution(scores_of())
    for estimate in (st.score_function, st.unordered_set):
        with pytest.raises(ValueError, match="at least 2"):
            estimate(dist, f_of, 1)


def test_labelled_values():
    """f sees labels too: the mean over the trees that were drawn, and over all 72 that there are."""
    dist = st.TreeDistribution(scores_of(labelled=True), labelled=True)

    def second_labels(heads, labels):
        return labels[..., 1:].sum(-1).double()

    drawn = dist.sample(4, generator=torch.Generator().manual_seed(0))
    mean = st.score_function(dist, second_labels, 4, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(mean, second_labels(drawn.heads, drawn.labels).mean())
    torch.testing.assert_close(st.unordered_set(dist, second_labels, 72), dist.marginals()[..., 1].sum())
