"""Every quantity, its gradient and its second derivative, against sums over all trees."""

from __future__ import annotations

import pytest
from enumerated import KINDS, QUESTIONS, problem

import torch


def derivatives(ask, scores, weights, directions):
    """Value, gradient of its weighted sum, and gradient of that one's product with directions."""
    scores = scores.clone().requires_grad_()
    value = ask(scores)
    (gradient,) = torch.autograd.grad((value * weights).sum(), scores, create_graph=True)
    if not gradient.requires_grad:
        return value.detach(), gradient, torch.zeros_like(gradient)
    (second,) = torch.autograd.grad((gradient * directions).sum(), scores, allow_unused=True)
    return value.detach(), gradient.detach(), torch.zeros_like(gradient) if second is None else second


def compare(ours, expected):
    for mine, right in zip(ours, expected, strict=True):
        torch.testing.assert_close(mine, right, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_derivatives(kind, question):
    of_dist, of_sentence = QUESTIONS[question]
    p = problem(kind)
    weights, directions = torch.randn(3).double(), torch.randn(p.scores.shape).double()
    ours = derivatives(lambda scores: of_dist(p.dist(scores), p), p.scores, weights, directions)

    def by_enumeration(scores):
        return torch.stack([of_sentence(p.enumerated(i, scores), p, i) for i in range(3)])

    numbers = torch.where(p.scores.isnan(), 0.0, p.scores)
    compare(ours, derivatives(by_enumeration, numbers, weights, directions))


@pytest.mark.parametrize("kind", KINDS)
def test_derivatives_of_marginals(kind):
    p = problem(kind)
    weights, directions = torch.randn(2, *p.scores.shape).double()
    ours = derivatives(lambda scores: p.dist(scores).marginals(), p.scores, weights, directions)

    def by_enumeration(scores):
        result = torch.zeros(p.scores.shape).double()
        for i, n in enumerate(p.lengths.tolist()):
            result[i, : n + 1, : n + 1] = p.enumerated(i, scores).marginals
        return result

    compare(ours, derivatives(by_enumeration, torch.where(p.scores.isnan(), 0.0, p.scores), weights, directions))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("question", QUESTIONS)
def test_other_layout(kind, question):
    """Transposed scores and values: the same numbers, and gradients transposed."""
    of_dist, _ = QUESTIONS[question]
    p, q = problem(kind), problem(kind)
    q.scores, q.other, q.values, q.features = (x.transpose(1, 2) for x in (p.scores, p.other, p.values, p.features))
    q.kind = {**p.kind, "layout": "dep_head"}
    weights, directions = torch.randn(3).double(), torch.randn(p.scores.shape).double()
    value, gradient, second = derivatives(lambda s: of_dist(p.dist(s), p), p.scores, weights, directions)
    turned = derivatives(lambda s: of_dist(q.dist(s), q), q.scores, weights, directions.transpose(1, 2))
    compare(turned, (value, gradient.transpose(1, 2), second.transpose(1, 2)))


@pytest.mark.parametrize("kind", ["single", "labelled-multi"])
@pytest.mark.parametrize(
    "question", ["expectation", "expectations", "covariance", "covariances", "product_expectation"]
)
def test_by_values(kind, question):
    """The same by the values of the edges instead of their scores."""
    of_dist, of_sentence = QUESTIONS[question]
    p = problem(kind)
    name = "features" if question in ("expectations", "covariances") else "values"
    start = getattr(p, name)
    weights, directions = torch.randn(3).double(), torch.randn(start.shape).double()

    def ask(values):
        setattr(p, name, values)
        return of_dist(p.dist(), p)

    def by_enumeration(values):
        setattr(p, name, values)
        return torch.stack([of_sentence(p.enumerated(i, p.scores), p, i) for i in range(3)])

    compare(derivatives(ask, start, weights, directions), derivatives(by_enumeration, start, weights, directions))


def test_renyi_entropies_near_one():
    """Where the difference of logarithms has no digits the series has them: a line through both sides."""
    dist = problem("single").dist()
    slope = dist.renyi_entropy(1.001) - dist.renyi_entropy(0.999)
    for distance in (1e-12, 1e-7, 5e-6):
        for alpha in (1 - distance, 1 + distance):
            expected = dist.entropy() + slope * (alpha - 1) / 0.002
            torch.testing.assert_close(dist.renyi_entropy(alpha), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_trees(kind):
    p = problem(kind)
    dist = p.dist()
    numpy = dist.numpy()
    for ours, theirs in ((dist.argmax(), numpy.argmax()), (dist.mbr(), numpy.mbr()), (dist.mode, numpy.mode)):
        for mine, right in zip(ours, theirs, strict=True) if "labelled" in kind else [(ours, theirs)]:
            assert torch.equal(mine, torch.as_tensor(right))
    ours, theirs = dist.topk(4), numpy.topk(4)
    assert torch.equal(ours.heads, torch.as_tensor(theirs.heads))
    torch.testing.assert_close(ours.scores, torch.as_tensor(theirs.scores), rtol=0, atol=0)
    best, probability = dist.complete(p.partial)
    expected, expected_probability = numpy.complete(p.partial.numpy())
    heads, right = (best.heads, expected.heads) if "labelled" in kind else (best, expected)
    assert torch.equal(heads, torch.as_tensor(right))
    torch.testing.assert_close(probability, torch.as_tensor(expected_probability))


def test_conditions():
    p = problem("single")
    dist, numpy = p.dist(), p.dist().numpy()
    given = dist[0].condition(include=[(1, 2)], exclude=[(0, 1)])
    expected = numpy[0].condition(include=[(1, 2)], exclude=[(0, 1)])
    torch.testing.assert_close(given.log_partition(), torch.as_tensor(expected.log_partition()))
    torch.testing.assert_close(
        dist.condition(heads=p.partial).entropy(), torch.as_tensor(numpy.condition(heads=p.partial.numpy()).entropy())
    )


def test_edges_as_features():
    """Covariances with all edges are the Hessian's columns, in the place that the NumPy side gives them."""
    for kind in ("single", "labelled"):
        p = problem(kind)
        dist, numpy = p.dist(), p.dist().numpy()
        for r, s in ((p.values, "edges"), ("edges", p.values), (p.features, "edges"), ("edges", p.features)):
            ours = dist.covariance(r, s)
            theirs = numpy.covariance(*(x if isinstance(x, str) else x.numpy() for x in (r, s)))
            torch.testing.assert_close(ours, torch.as_tensor(theirs), rtol=1e-12, atol=1e-12)
    with pytest.raises(ValueError, match="n\\^4"):
        dist.covariance("edges", "edges")


@pytest.mark.parametrize("kind", KINDS)
def test_beyond_the_third(kind):
    """The fourth and the fifth derivative of log Z, along one direction after the other."""
    p = problem(kind)
    directions = torch.randn(4, *p.scores.shape).double()

    def fifth(log_z, scores):
        scores = scores.clone().requires_grad_()
        slope = log_z(scores).sum()
        for direction in directions:
            (slope,) = torch.autograd.grad(slope, scores, create_graph=True)
            slope = (slope * direction).sum()
        return slope.detach(), torch.autograd.grad(slope, scores)[0]

    numbers = torch.where(p.scores.isnan(), 0.0, p.scores)
    expected = fifth(lambda scores: torch.stack([p.enumerated(i, scores).log_z for i in range(3)]), numbers)
    compare(fifth(lambda scores: p.dist(scores).log_partition(), p.scores), expected)
