"""Losses against sums over all trees, value and gradient; and what each of them promises."""

from __future__ import annotations

import pytest
from enumerated import KINDS, problem

import spantree.torch as st
import torch


def gradient(ask, scores):
    scores = scores.clone().requires_grad_()
    value = ask(scores)
    return value.detach(), torch.autograd.grad(value, scores)[0]


def check(p, ours, of_sentence):
    """The mean over sentences on both sides."""

    def by_enumeration(scores):
        return torch.stack([of_sentence(p.enumerated(i, scores), i) for i in range(3)]).mean()

    expected = gradient(by_enumeration, torch.where(p.scores.isnan(), 0.0, p.scores))
    for mine, right in zip(gradient(ours, p.scores), expected, strict=True):
        torch.testing.assert_close(mine, right, rtol=1e-11, atol=1e-11)


def options(p):
    return {"lengths": p.lengths, **{key: value for key, value in p.kind.items() if key != "labelled"}}


@pytest.mark.parametrize("kind", KINDS)
def test_crf_loss(kind):
    p = problem(kind)
    check(
        p,
        lambda s: st.tree_crf_loss(s, p.heads, labels=p.labels, **options(p)),
        lambda e, i: -e.log_probs[e.agrees(p.row(i, p.heads), p.row(i, p.labels))].sum(),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_crf_loss_of_partial_trees(kind):
    p = problem(kind)
    check(
        p,
        lambda s: st.tree_crf_loss(s, p.partial, partial=True, **options(p)),
        lambda e, i: -e.log_probs[e.agrees(p.row(i, p.partial))].logsumexp(0),
    )


def test_crf_loss_of_partial_labels():
    p = problem("labelled")
    labels = p.labels.clone()
    labels[:, 1] = -100
    heads = torch.where(p.partial == -2, -100, p.partial)
    for i, n in enumerate(p.lengths.tolist()):
        labels[i, n] = 1
    unknown = torch.where(labels == -100, -2, labels)
    check(
        p,
        lambda s: st.tree_crf_loss(s, heads, labels=labels, ignore_index=-100, **options(p)),
        lambda e, i: -e.log_probs[e.agrees(p.row(i, p.partial), p.row(i, unknown))].logsumexp(0),
    )


def test_crf_loss_reductions_and_layout():
    p = problem("single")
    losses = st.tree_crf_loss(p.scores, p.heads, lengths=p.lengths, reduction="none")
    assert losses.shape == (3,)
    torch.testing.assert_close(st.tree_crf_loss(p.scores, p.heads, lengths=p.lengths, reduction="sum"), losses.sum())
    turned = st.tree_crf_loss(p.scores.mT, p.heads, lengths=p.lengths, layout="dep_head", reduction="none")
    assert torch.equal(turned, losses)
    words = torch.arange(1, p.scores.shape[-1]) <= p.lengths[:, None]
    assert torch.equal(st.tree_crf_loss(p.scores, p.heads, mask=words, reduction="none"), losses)
    with pytest.raises(ValueError, match="reduction"):
        st.tree_crf_loss(p.scores, p.heads, lengths=p.lengths, reduction="median")
    with pytest.raises(ValueError, match="labels are needed"):
        st.tree_crf_loss(p.scores, p.heads, labels=p.heads)
    with pytest.raises(ValueError, match="must be"):
        st.tree_crf_loss(p.scores, p.heads[:, 1:])


def test_crf_loss_twice():
    """Its second derivative is that of log Z; of partial trees, less that of log Z given what is known."""
    for partial in (False, True):
        p = problem("single", padding=0.0)
        heads = p.partial if partial else p.heads
        assert torch.autograd.gradgradcheck(
            lambda s, p=p, heads=heads, partial=partial: st.tree_crf_loss(
                torch.where(p.scores == -torch.inf, -torch.inf, s), heads, lengths=p.lengths, partial=partial
            ),
            (torch.where(p.scores == -torch.inf, 0.0, p.scores).requires_grad_(),),
        )


def test_gold_that_is_no_tree():
    scores = torch.randn(3, 4, 4, dtype=torch.float64, requires_grad=True)
    heads = torch.tensor([[0, 2, 1, 0], [0, 0, 1, 1], [0, 0, 0, 1]])  # a cycle, a tree, two roots
    losses = st.tree_crf_loss(scores, heads, reduction="none")
    assert losses.isinf().tolist() == [True, False, True]
    (slope,) = torch.autograd.grad(losses[1] + losses.sum(), scores)
    assert not slope.isnan().any()
    assert slope[0].eq(0).all()
    assert slope[2].eq(0).all()
    hinge = st.hinge_loss(scores, heads, reduction="none")
    assert hinge.isinf().tolist() == [True, False, True]
    (slope,) = torch.autograd.grad(hinge.sum(), scores)
    assert slope[[0, 2]].eq(0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_risk(kind):
    p = problem(kind)
    check(
        p,
        lambda s: st.risk_loss(s, p.heads, p.labels, **options(p)),
        lambda e, i: e.mean(e.wrong(p.row(i, p.heads), p.row(i, p.labels))) / e.words,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_generalized_expectation(kind):
    p = problem(kind)
    target = torch.randn(3, 2).double()
    check(
        p,
        lambda s: st.generalized_expectation_loss(s, p.features, target, labelled="labelled" in kind, **options(p)),
        lambda e, i: sum(
            0.5 * (e.mean(e.sums(p.sentence(i, p.features)[..., r])) - target[i, r]) ** 2 for r in range(2)
        ),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_entropy(kind):
    p = problem(kind)
    check(p, lambda s: st.entropy_loss(s, labelled="labelled" in kind, **options(p)), lambda e, i: e.entropy)


@pytest.mark.parametrize("kind", KINDS)
def test_distillation(kind):
    p = problem(kind)

    def divergence(student, i):
        q = p.enumerated(i, p.other / 2)
        return 4 * q.mean(q.log_probs - student.log_probs)

    def cool(scores):
        return torch.stack([divergence(p.enumerated(i, scores / 2), i) for i in range(3)]).mean()

    ours = gradient(
        lambda s: st.distillation_loss(s, p.other, temperature=2.0, labelled="labelled" in kind, **options(p)), p.scores
    )
    for mine, right in zip(ours, gradient(cool, torch.where(p.scores.isnan(), 0.0, p.scores)), strict=True):
        torch.testing.assert_close(mine, right, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("kind", KINDS)
def test_hinge(kind):
    p = problem(kind)

    def hinge(e, i):
        gold = e.agrees(p.row(i, p.heads), p.row(i, p.labels))
        return (e.scores + 0.7 * e.wrong(p.row(i, p.heads), p.row(i, p.labels))).max() - e.scores[gold].sum()

    check(p, lambda s: st.hinge_loss(s, p.heads, p.labels, margin=0.7, **options(p)), hinge)
    far = torch.where(p.dist().edges_of(p.gold), 100.0, 0.0)
    assert st.hinge_loss(far, p.heads, p.labels, **options(p)) == 0.0


def test_crf_loss_backward_again():
    """The same gradient every time, whoever asked before, and whatever was done to what he got."""
    scores = torch.randn(3, 5, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64).requires_grad_()
    loss = st.tree_crf_loss(scores, torch.tensor([0, 0, 1, 2, 3]).expand(3, 5))
    expected = torch.autograd.grad(
        st.tree_crf_loss(scores, torch.tensor([0, 0, 1, 2, 3]).expand(3, 5), reduction="none").mean(), scores
    )[0]
    for factor in (1.0, 2.0, 1.0):
        (slope,) = torch.autograd.grad(factor * loss, scores, retain_graph=True)
        torch.testing.assert_close(slope, factor * expected, rtol=1e-13, atol=1e-13)
        slope.zero_()
    (batched,) = torch.autograd.grad(loss, scores, torch.tensor([1.0, 3.0]).double(), is_grads_batched=True)
    torch.testing.assert_close(batched, torch.stack([expected, 3 * expected]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_a_loss_as_part_of_others(dtype, reduction):
    """Its gradient follows the slope that comes back, the second time too, and can be differentiated in turn."""
    scores = torch.randn(3, 5, 5, dtype=dtype, generator=torch.Generator().manual_seed(0), requires_grad=True)
    lengths = torch.tensor([4, 3, 2])
    heads = st.TreeDistribution(scores.detach(), lengths=lengths).argmax()
    dist = st.TreeDistribution(scores.detach(), lengths=lengths)
    weight = 1 / 3 if reduction == "mean" else 1.0
    expected = weight * (dist.marginals() - dist.edges_of(heads).to(dtype))
    close = {"rtol": 1e-5, "atol": 1e-6} if dtype == torch.float32 else {"rtol": 1e-12, "atol": 1e-12}
    loss = st.tree_crf_loss(scores, heads, lengths=lengths, reduction=reduction)
    total = -weight * dist.log_prob(heads).sum()
    torch.testing.assert_close(loss.detach(), total, **close)
    with torch.no_grad():
        torch.testing.assert_close(
            st.tree_crf_loss(scores, heads, lengths=lengths, reduction=reduction), total, **close
        )
    for factor in (2.5, 1.0, -3.0):
        (found,) = torch.autograd.grad(factor * loss, scores, retain_graph=True)
        torch.testing.assert_close(found, factor * expected, **close)
    (first,) = torch.autograd.grad(2.5 * loss, scores, create_graph=True)
    torch.testing.assert_close(first.detach(), 2.5 * expected, **close)
    direction = torch.randn(3, 5, 5, dtype=dtype, generator=torch.Generator().manual_seed(1))
    (second,) = torch.autograd.grad((first * direction).sum(), scores)
    again = scores.detach().requires_grad_()
    moved = (st.TreeDistribution(again, lengths=lengths).marginals() * direction).sum()
    (expected_second,) = torch.autograd.grad(2.5 * weight * moved, again)
    torch.testing.assert_close(second, expected_second, **close)


def test_backward_again_gives_the_same_bits():
    """With retain_graph, as gradcheck wants it."""
    scores = torch.randn(3, 6, 6, dtype=torch.float64, requires_grad=True)
    heads = st.TreeDistribution(scores).sample()
    loss = 3.0 * st.tree_crf_loss(scores, heads)
    first, *others = (torch.autograd.grad(loss, scores, retain_graph=True)[0] for _ in range(3))
    assert all(torch.equal(first, other) for other in others)
