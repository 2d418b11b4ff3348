"""Options that make no sense are refused by name, in the words of the NumPy side."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import jax
import spantree.jax
import spantree.torch
import torch

NO_FLAGS = ["yes", "no", "", 0, 1, 2, 1.0, None, [], [True], np.array([True]), np.ones(2)]
NO_NUMBERS = [True, False, np.True_, np.array(True), "2", b"2", 2j, [2.0], None]
NO_INTEGERS = [True, np.True_, 1.5, "1", [1]]
SCORES = np.random.default_rng(0).normal(size=(2, 4, 4))
LABELLED = np.random.default_rng(1).normal(size=(4, 4, 3))
HEADS = spantree.decode(SCORES)


class Torch:
    module = spantree.torch
    array = staticmethod(torch.tensor)

    @staticmethod
    def sample(dist, shape):
        return dist.sample(shape)


class Jax:
    module = spantree.jax
    array = staticmethod(jnp.asarray)

    @staticmethod
    def sample(dist, shape):
        return dist.sample(jax.random.key(0), shape)


@pytest.fixture(params=[Torch, Jax], ids=["torch", "jax"])
def front(request):
    with jax.enable_x64(True):
        yield request.param


@pytest.fixture
def dist(front):
    return front.module.TreeDistribution(front.array(SCORES))


def refused(option, ask, givens, kind="must be", errors=(TypeError, ValueError)):
    for given in givens:
        with pytest.raises(errors, match=f"^{option} {kind}"):
            ask(given)


def test_flags(front, dist):
    scores, heads = front.array(SCORES), front.array(HEADS)
    make, module = front.module.TreeDistribution, front.module
    for option, ask in (
        ("projective", lambda given: make(scores, projective=given)),
        ("labelled", lambda given: make(scores, labelled=given)),
        ("projective", lambda given: module.tree_crf_loss(scores, heads, projective=given)),
        ("partial", lambda given: module.tree_crf_loss(scores, heads, partial=given)),
        ("partial", lambda given: dist.log_prob(heads, partial=given)),
        ("labelled", lambda given: module.entropy_loss(scores, labelled=given)),
    ):
        refused(option, ask, NO_FLAGS, "must be True or False, not", TypeError)
        ask(np.False_)
    assert make(scores, projective=np.True_).projective


def test_words(front, dist):
    scores, heads = front.array(SCORES), front.array(HEADS)
    make, module = front.module.TreeDistribution, front.module
    words = [None, True, 1, "Single", "hd", ["mean"], b"mean", np.array(["mean", "sum"])]
    refused("root", lambda given: make(scores, root=given), words)
    refused("layout", lambda given: make(scores, layout=given), words)
    refused("on_infeasible", lambda given: make(scores, on_infeasible=given), words)
    for loss in (
        lambda given: module.tree_crf_loss(scores, heads, reduction=given),
        lambda given: module.risk_loss(scores, heads, reduction=given),
        lambda given: module.entropy_loss(scores, reduction=given),
        lambda given: module.hinge_loss(scores, heads, reduction=given),
        lambda given: module.distillation_loss(scores, scores, reduction=given),
        lambda given: module.generalized_expectation_loss(scores, scores, 0.0, reduction=given),
    ):
        refused("reduction", loss, words, 'must be "mean", "sum" or "none", not', ValueError)


def test_numbers(front, dist):
    scores, heads = front.array(SCORES), front.array(HEADS)
    make, module = front.module.TreeDistribution, front.module
    for option, ask in (
        ("temperature", lambda given: make(scores, temperature=given)),
        ("temperature", lambda given: module.distillation_loss(scores, scores, temperature=given)),
        ("alpha", dist.renyi_entropy),
        ("p", dist.norm),
        ("margin", lambda given: module.hinge_loss(scores, heads, margin=given)),
    ):
        refused(option, ask, NO_NUMBERS, "must be a real number, not", TypeError)
        for given in (2, np.float32(2.0), np.array(2.0), front.array(2.0)):
            ask(given)
    for given in (0.0, -1.0, np.inf, np.nan, np.float32(-1.0), front.array(-1.0)):
        with pytest.raises(ValueError, match="temperature must be positive and finite"):
            make(scores, temperature=given)
    for given in (-1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="margin must be at least 0 and finite"):
            module.hinge_loss(scores, heads, margin=given)


def test_integers(front, dist):
    scores, heads = front.array(SCORES), front.array(HEADS)
    refused("k", dist.topk, NO_INTEGERS)
    refused(
        "ignore_index",
        lambda given: front.module.tree_crf_loss(scores, heads, ignore_index=given),
        NO_INTEGERS,
        "must be an integer, not",
        TypeError,
    )
    refused(
        "sample_shape",
        lambda given: front.sample(dist, given),
        [True, np.True_, 1.5, "12", (True,), (2, 1.5), (2, -1), -1, None],
    )
    for shape in (2, np.int64(2), (2,), [2], np.array([2])):
        assert tuple(front.sample(dist, shape).shape) == (2, 2, 4)


@pytest.mark.parametrize("number", [1.0, 2.0])
def test_temperatures_may_be_learned(front, number):
    """Arrays of the library's own may have a gradient, and be traced."""

    def sharpness(temperature):
        return front.module.TreeDistribution(front.array(SCORES), temperature=temperature).max().sum()

    if front is Torch:
        given = torch.tensor(number, requires_grad=True)
        (slope,) = torch.autograd.grad(sharpness(given), given)
    else:
        slope = jax.jit(jax.grad(sharpness))(number)
    best = spantree.TreeDistribution(SCORES).max().sum()
    np.testing.assert_allclose(float(slope), -best / number**2, rtol=1e-6)


def test_a_temperature_is_one_number(front):
    """However many axes it has, it adds none to the scores."""
    scores = front.array(SCORES)
    alone = front.module.TreeDistribution(scores, temperature=2.0).log_partition()
    for shape in ((), (1,), (1, 1, 1, 1)):
        dist = front.module.TreeDistribution(scores, temperature=front.array(np.full(shape, 2.0)))
        np.testing.assert_array_equal(dist.log_partition(), alone)
    for shape in ((2,), (2, 1, 1), (0,)):
        with pytest.raises(TypeError, match=r"^temperature must be a real number"):
            front.module.TreeDistribution(scores, temperature=front.array(np.full(shape, 2.0)))


def test_sizes_may_be_arrays(front, dist):
    for size in (np.array(2), front.array(2), np.int8(2)):
        assert dist.topk(size).heads.shape[0] == 2
        assert tuple(front.sample(dist, size).shape) == (2, 2, 4)
        assert tuple(front.sample(dist, (size, 1)).shape) == (2, 1, 2, 4)


def test_edges_of_a_condition(front, dist):
    labelled = front.module.TreeDistribution(front.array(LABELLED), labelled=True)
    for option in ("include", "exclude"):
        for edge in ((True, 2), (0.0, 1), (0, 1, 1), (0,), 1, "ab"):
            with pytest.raises(ValueError, match=f"^{option}: an edge is a pair of integers"):
                dist.condition(**{option: [edge]})
        for edge in ((-1, 2), (4, 2), (1, 1), (2, 0), (0, 4)):
            with pytest.raises(ValueError, match=f"^{option}: .* no edge {edge[0]} -> {edge[1]}"):
                dist.condition(**{option: [edge]})
        with pytest.raises(ValueError, match=f"^{option}: .* no label 3"):
            labelled.condition(**{option: [(0, 1, 3)]})
    assert int(dist.condition(include=[(1, 2)]).argmax()[0, 2]) == 1
    for edges in (np.array([[1, 2]]), front.array([[1, 2]]), [front.array([1, 2])], (1, 2), front.array([1, 2])):
        assert int(dist.condition(include=edges).argmax()[0, 2]) == 1


def test_names_of_labels(front):
    make, scores = front.module.TreeDistribution, front.array(LABELLED)
    with pytest.raises(ValueError, match="labels: the labels 0 and 2 have the same name, 'a'"):
        make(scores, labelled=True, labels=["a", "b", "a"])
    with pytest.raises(ValueError, match="labels must be a list of 3 names"):
        make(scores, labelled=True, labels=["a", "b"])
    with pytest.raises(ValueError, match="labels must be a list of 3 names"):
        make(scores, labelled=True, labels="abc")
    with pytest.raises(ValueError, match="names of labels need labelled scores"):
        make(scores[..., 0], labels=["a"])


def test_relaxations():
    dist = spantree.torch.TreeDistribution(torch.tensor(SCORES))

    def first(heads):
        return heads[..., 1].double()

    def shift(**given):
        return spantree.torch.implicit_mle(dist, **given)

    refused("tree", lambda given: spantree.torch.straight_through(dist, tree=given), [None, True, "best", ["argmax"]])
    for ask in (spantree.torch.perturb_and_marginals, spantree.torch.implicit_mle):
        refused("temperature", lambda given, ask=ask: ask(dist, temperature=given), [*NO_NUMBERS, -1.0, np.nan, np.inf])
    refused("step", lambda given: shift(step=given), [*NO_NUMBERS, 0.0, -1.0, np.nan, np.inf])
    for ask in (spantree.torch.score_function, spantree.torch.unordered_set):
        refused("k", lambda given, ask=ask: ask(dist, first, given), [*NO_INTEGERS, 1, 0, 2.0])
    refused("expand", dist.enumerate_support, NO_FLAGS, "must be True or False, not", TypeError)
    refused(
        "validate_args",
        lambda given: spantree.torch.TreeDistribution(torch.tensor(SCORES), validate_args=given),
        [given for given in NO_FLAGS if given is not None],
        "must be True or False, not",
        TypeError,
    )


def test_orders_have_no_gradient():
    """A derivative that would silently be missing is an error: orders are numbers."""
    dist = spantree.torch.TreeDistribution(torch.tensor(SCORES))
    order = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    for option, ask in (("alpha", dist.renyi_entropy), ("p", dist.norm)):
        refused(option, ask, [order], kind="must be a number; nothing has a gradient")
        ask(order.detach())
    by_jax = spantree.jax.TreeDistribution(jnp.asarray(SCORES))
    for ask in (by_jax.renyi_entropy, by_jax.norm):
        with pytest.raises(TypeError, match="must be a real number"):
            jax.grad(lambda order, ask=ask: ask(order).sum())(2.0)
