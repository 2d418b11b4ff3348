"""What PyTorch's and JAX's distributions share, against NumPy's: lists, names, half precision, no trees."""

from __future__ import annotations

import doctest
import inspect
import math
from itertools import islice

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import jax
import spantree
import spantree.jax
import spantree.torch
import torch

SIZES = [3, 5, 2, 4]


class Torch:
    module = spantree.torch
    make = spantree.torch.TreeDistribution
    array = staticmethod(torch.tensor)
    sharing = staticmethod(torch.from_numpy)
    half = torch.bfloat16

    @staticmethod
    def gradient(function, arrays):
        given = [torch.tensor(x, requires_grad=True) for x in arrays]
        return [x.numpy() for x in torch.autograd.grad(function(given), given)]

    @staticmethod
    def numpy(x):
        x = x.detach()
        return x.float().numpy() if x.dtype == torch.bfloat16 else x.numpy()


class Jax:
    module = spantree.jax
    make = spantree.jax.TreeDistribution
    array = staticmethod(jnp.asarray)
    sharing = staticmethod(np.asarray)
    half = jnp.bfloat16

    @staticmethod
    def gradient(function, arrays):
        return [np.asarray(x) for x in jax.grad(function)([jnp.asarray(x) for x in arrays])]

    @staticmethod
    def numpy(x):
        return np.asarray(x, np.float32 if x.dtype == jnp.bfloat16 else None)


@pytest.fixture(params=[Torch, Jax], ids=["torch", "jax"])
def front(request):
    with jax.enable_x64(True):
        yield request.param


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def close(found, expected, tolerance=1e-12):
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("layout", ["head_dep", "dep_head"])
@pytest.mark.parametrize("labels", [0, 2])
def test_a_list_in_gives_lists_out(front, rng, layout, labels):
    shapes = [(n, n, labels) if labels else (n, n) for n in SIZES]
    matrices, values = ([rng.normal(size=shape) for shape in shapes] for _ in range(2))
    options = {"labelled": labels > 0, "layout": layout}
    truth = spantree.TreeDistribution(matrices, **options)
    dist = front.make([front.array(matrix) for matrix in matrices], **options)
    given = [front.array(x) for x in values]
    for found, expected in zip(dist.marginals(), truth.marginals(), strict=True):
        close(front.numpy(found), expected)
    best, best_truth = dist.argmax(), truth.argmax()
    heads, heads_truth = (x.heads if labels else x for x in (best, best_truth))
    for found, expected in zip(heads, heads_truth, strict=True):
        np.testing.assert_array_equal(front.numpy(found), expected)
    for found, expected in (
        (dist.log_partition(), truth.log_partition()),
        (dist.entropy(), truth.entropy()),
        (dist.max(), truth.max()),
        (dist.score(best), truth.score(best_truth)),
        (dist.log_prob(best), truth.log_prob(best_truth)),
        (dist.expected_attachment(best), truth.expected_attachment(best_truth)),
        (dist.expectation(given), truth.expectation(values)),
        (dist.covariance(given, given), truth.covariance(values, values)),
        *zip(dist.topk(2).scores, truth.topk(2).scores, strict=True),
        (dist.renyi_entropy(2.0), truth.renyi_entropy(2.0)),
    ):
        close(front.numpy(found), expected)
    edges = dist.edges_of(best)
    assert [tuple(x.shape) for x in edges] == shapes
    assert sum(int(x.sum()) for x in edges) == sum(SIZES) - len(SIZES)
    close(front.numpy(dist[1].marginals()), truth[1].marginals())
    for found, expected in zip(dist[1:3].marginals(), truth[1:3].marginals(), strict=True):
        close(front.numpy(found), expected)
    slopes = front.gradient(lambda scores: front.make(scores, **options).log_partition().sum(), matrices)
    for found, expected in zip(slopes, truth.marginals(), strict=True):
        close(found, expected)


def test_lists_that_make_no_sense(front, rng):
    square, wide = (front.array(rng.normal(size=shape)) for shape in ((3, 3), (3, 4)))
    for scores, options in (([square, wide], {}), ([], {}), ([square], {"lengths": [2]})):
        with pytest.raises(ValueError, match=r"shape|no sentences|lengths"):
            front.make(scores, **options)


def test_lists_beside_a_list(front, rng):
    """Each has an entry for each sentence, of its size: nothing is cut off, and nothing stands for several."""
    dist = front.make([front.array(rng.normal(size=(n, n))) for n in (3, 5)])
    rows = {n: front.array(np.arange(n) - 1) for n in (3, 4, 5, 6)}
    matrices = {n: front.array(rng.normal(size=(n, n))) for n in (3, 4, 5)}
    for name, ask, fitting in (
        ("heads", dist.log_prob, rows),
        ("heads", dist.score, rows),
        ("heads", lambda given: dist.condition(heads=given), rows),
        ("values", dist.expectation, matrices),
        ("scores", dist.with_scores, matrices),
        (
            "mask",
            lambda given: front.make(
                [matrices[3], matrices[5]], mask=[front.array(np.ones(m.shape, bool)) for m in given]
            ),
            matrices,
        ),
    ):
        ask([fitting[3], fitting[5]])
        with pytest.raises(ValueError, match=rf"^{name} must be a list with one entry for each of the 2 sentences"):
            ask([fitting[5]])
        for wrong in set(fitting) - {3}:
            with pytest.raises(
                ValueError, match=rf"^{name}\[0\] has shape \({wrong}, ?{wrong if fitting is matrices else ''}\)"
            ):
                ask([fitting[wrong], fitting[5]])


@pytest.mark.parametrize("labels", [0, 2])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("layout", ["head_dep", "dep_head"])
def test_losses_of_a_list(front, rng, labels, reduction, layout):
    """As of each sentence alone, with its gradients."""
    shapes = [(n, n, labels) if labels else (n, n) for n in SIZES]
    matrices, teacher, values = ([rng.normal(size=shape) for shape in shapes] for _ in range(3))
    masks = [rng.random(shape) < 0.9 for shape in shapes]
    for mask in masks:
        mask[0] = True
    options = {"labelled": labels > 0, "layout": layout}
    best = spantree.TreeDistribution(matrices, mask=None, **options).argmax()
    of_words, of_labels = (best.heads, best.labels) if labels else (best, None)
    heads = [front.array(row) for row in of_words]
    partial = [front.array(np.where(np.arange(len(row)) == 1, -100, row)) for row in of_words]
    allowed, wanted = [front.array(mask) for mask in masks], rng.normal(size=len(SIZES))
    named = None if of_labels is None else [front.array(row) for row in of_labels]
    features, taught = ([front.array(matrix) for matrix in given] for given in (values, teacher))

    def at(given, i):
        return None if given is None else given[i]

    module, more = front.module, {"root": "multi", "layout": layout}
    losses = {
        "crf": lambda scores, i: module.tree_crf_loss(
            scores, at(heads, i), labels=at(named, i), reduction=reduction, **more
        ),
        "crf of partial trees": lambda scores, i: module.tree_crf_loss(
            scores,
            at(partial, i),
            labels=at(named, i),
            ignore_index=-100,
            reduction=reduction,
            mask=at(allowed, i),
            **more,
        ),
        "risk": lambda scores, i: module.risk_loss(scores, at(heads, i), at(named, i), reduction=reduction, **more),
        "hinge": lambda scores, i: module.hinge_loss(scores, at(heads, i), at(named, i), reduction=reduction, **more),
        "entropy": lambda scores, i: module.entropy_loss(scores, labelled=labels > 0, reduction=reduction, **more),
        "distillation": lambda scores, i: module.distillation_loss(
            scores, at(taught, i), labelled=labels > 0, reduction=reduction, **more
        ),
        "expectation": lambda scores, i: module.generalized_expectation_loss(
            scores, at(features, i), front.array(wanted[i]), labelled=labels > 0, reduction=reduction, **more
        ),
    }
    everything = slice(None)
    for name, loss in losses.items():
        alone = [front.numpy(loss(front.array(matrix), i)) for i, matrix in enumerate(matrices)]
        together = front.numpy(loss([front.array(matrix) for matrix in matrices], everything))
        combine = {"mean": np.mean, "sum": np.sum, "none": np.array}[reduction]
        np.testing.assert_allclose(together, combine(alone), rtol=1e-12, err_msg=name)
        slopes = front.gradient(lambda given, loss=loss: loss(given, everything).sum(), matrices)
        share = len(SIZES) if reduction == "mean" else 1
        for i, (found, matrix) in enumerate(zip(slopes, matrices, strict=True)):
            (expected,) = front.gradient(lambda given, loss=loss, i=i: loss(given[0], i).sum(), [matrix])
            np.testing.assert_allclose(found, expected / share, rtol=1e-11, atol=1e-14, err_msg=name)


def test_losses_of_lists_that_do_not_fit(front, rng):
    scores = [front.array(rng.normal(size=(n, n))) for n in (3, 4)]
    heads = [front.array(np.arange(n) - 1) for n in (3, 4)]
    loss = front.module.tree_crf_loss
    for given, error in (
        ((scores, heads[:1]), "one entry for each of the 2 sentences"),
        ((scores, heads[::-1]), r"heads\[0\] has shape \(4,\); its last axis must be 3"),
        ((scores, front.array(np.zeros((2, 3), np.int64))), "heads.* must be"),
        ((front.array(np.zeros((2, 4, 4))), heads), "tensors, or lists|shape"),
        (([], []), "no sentences in the list"),
    ):
        with pytest.raises((TypeError, ValueError), match=error):
            loss(*given)
    with pytest.raises(ValueError, match="lengths"):
        loss(scores, heads, lengths=[2, 3])


def test_what_is_refused(front):
    """In the words of the NumPy side; numbers in the place of flags would mean the opposite of an additive mask."""
    scores, square = (front.array(np.zeros((2, 4, 4), dtype)) for dtype in (np.float64, bool))
    for mask, error in (
        (np.zeros((2, 4, 4)), "mask must be boolean"),
        (np.ones((2, 3), np.int64), "mask must be boolean"),
        (np.ones((1, 4, 4), bool), r"mask has shape \(1, 4, 4\); of edges it must be \(2, 4, 4\), of words \(2, 3\)"),
        (np.ones((2, 4, 1), bool), r"mask has shape \(2, 4, 1\)"),
        (np.ones((3, 3), bool), r"mask has shape \(3, 3\)"),
        (np.ones((2, 7), bool), r"mask has shape \(2, 7\)"),
    ):
        with pytest.raises(ValueError, match=error):
            front.make(scores, mask=front.array(mask))
        with pytest.raises(ValueError, match=r"mask|shape"):
            spantree.TreeDistribution(np.zeros((2, 4, 4)), mask=mask)
    for numbers in (square, front.array(np.zeros((3, 3), np.complex128))):
        with pytest.raises(TypeError, match="scores must be real numbers"):
            front.make(numbers)
    for heads in (np.zeros((2, 4)), np.zeros((2, 4), bool)):
        for ask in (front.module.tree_crf_loss, lambda s, h: front.make(s).log_prob(h)):
            with pytest.raises(ValueError, match="must be integers"):
                ask(scores, front.array(heads))


def test_root_label_and_names(front, rng):
    scores = rng.normal(size=(2, 4, 4, 3))
    names, words = ["root", "obj", "det"], [["a", "b", "c"], ["d", "e", "f"]]
    options = {"labelled": True, "labels": names, "words": words}
    truth = spantree.TreeDistribution(scores, root_label="root", **options)
    dist = front.make(front.array(scores), root_label="root", **options)
    close(front.numpy(dist.marginals()), truth.marginals())
    assert dist.explain() == truth.explain()
    assert dist[1].explain() == truth[1].explain()
    assert "word 1" not in dist[0].explain()
    np.testing.assert_array_equal(dist.confidence().head_probs, truth.confidence().head_probs)
    by_number = front.make(front.array(scores), labelled=True, root_label=2)
    close(
        front.numpy(by_number.marginals()), spantree.TreeDistribution(scores, labelled=True, root_label=2).marginals()
    )
    for wrong in ("nsubj", 3, -1, True):
        with pytest.raises(ValueError, match="root_label"):
            front.make(front.array(scores), root_label=wrong, **options)
    with pytest.raises(ValueError, match="labelled=True"):
        front.make(front.array(scores[..., 0]), root_label=0)


def test_half_precision_is_rounded_once(front, rng):
    """Numbers in bfloat16 are those of the same scores in float32, rounded."""
    scores = 4.0 * rng.normal(size=(2, 5, 5)).astype(ml_dtypes.bfloat16).astype(np.float32)
    full = front.array(scores)
    half = full.to(front.half) if front is Torch else full.astype(front.half)
    in_full, in_half = front.make(full), front.make(half)
    gold = front.array(np.array([[-1, 0, 1, 1, 2], [-1, 2, 0, 2, 3]]))
    for ask in (
        lambda dist: dist.log_partition(),
        lambda dist: dist.marginals(),
        lambda dist: dist.entropy(),
        lambda dist: dist.max(),
        lambda dist: dist.score(gold),
        lambda dist: dist.log_prob(gold),
        lambda dist: dist.risk(gold),
        lambda dist: dist.renyi_entropy(0.5),
        lambda dist: dist.norm(3.0),
        lambda dist: dist.kl(dist.with_scores(0.5 * dist.scores)),
        lambda dist: dist.expectation(dist.scores),
        lambda dist: dist.covariance(dist.scores, dist.scores),
        lambda dist: dist.topk(2).scores,
        lambda dist: front.module.hinge_loss(dist.scores, gold),
    ):
        found, expected = ask(in_half), front.numpy(ask(in_full))
        assert found.dtype == front.half
        rounded = expected.astype(ml_dtypes.bfloat16).astype(np.float32)
        np.testing.assert_array_equal(front.numpy(found), rounded)
    np.testing.assert_array_equal(front.numpy(in_half.argmax()), front.numpy(in_full.argmax()))


def several(front, values):
    return front.array(np.stack([values, -values[..., ::-1, :]], -1))


def test_a_batch_is_a_sequence_that_ends(front, rng):
    scores = rng.normal(size=(3, 4, 4))
    dist = front.make(front.array(scores))
    assert [front.numpy(one.max()).item() for one in islice(dist, 5)] == front.numpy(dist.max()).tolist()
    for outside in (3, -4):
        with pytest.raises(IndexError, match="out of bounds"):
            dist[outside]


PUT_TOGETHER = {  # of several answers, which must not be rounded in between
    "renyi_entropy near 1": lambda dist, front, v: dist.renyi_entropy(1.001),
    "renyi_entropy nearer": lambda dist, front, v: dist.renyi_entropy(0.99998),
    "renyi_entropy": lambda dist, front, v: dist.renyi_entropy(2.5),
    "norm": lambda dist, front, v: dist.norm(3.0),
    "expectation": lambda dist, front, v: dist.expectation(several(front, v))[..., 1],
    "covariance": lambda dist, front, v: dist.covariance(several(front, v), front.array(v))[:, 0],
    "second_moment": lambda dist, front, v: dist.second_moment(front.array(v), front.array(v)),
    "product_expectation": lambda dist, front, v: dist.product_expectation(front.array(abs(v))),
    "generalized_expectation": lambda dist, front, v: dist.generalized_expectation(several(front, v), 0.5),
}


@pytest.mark.parametrize("quantity", PUT_TOGETHER)
def test_single_precision_is_rounded_once(front, rng, quantity):
    """The numbers of the same scores in double, rounded; and their gradients."""
    scores, values = 3.0 * rng.normal(size=(4, 9, 9)).astype(np.float32), rng.normal(size=(4, 9, 9)).astype(np.float32)
    ask = PUT_TOGETHER[quantity]
    in_double, in_single = (
        front.numpy(ask(front.make(front.array(s)), front, v))
        for s, v in ((scores.astype(float), values.astype(float)), (scores, values))
    )
    assert in_single.dtype == np.float32
    np.testing.assert_allclose(in_single, in_double, rtol=1.2e-7)
    by_double, by_single = (
        front.gradient(lambda given, v=v: ask(front.make(given[0]), front, v).sum(), [s])[0]
        for s, v in ((scores.astype(float), values.astype(float)), (scores, values))
    )
    np.testing.assert_allclose(by_single, by_double, rtol=0, atol=2e-7 * abs(by_double).max())


def test_means_over_no_trees_are_nan_with_gradient_0(front, rng):
    scores, values = rng.normal(size=(3, 4, 4)), rng.normal(size=(3, 4, 4))
    scores[1, :, 2] = -np.inf
    truth = spantree.TreeDistribution(scores, on_infeasible="mask")
    gold = np.array([[-1, 0, 1, 1]] * 3)
    for ask in (
        lambda dist, v, g: dist.entropy(),
        lambda dist, v, g: dist.renyi_entropy(0.5),
        lambda dist, v, g: dist.renyi_entropy(math.inf),
        lambda dist, v, g: dist.norm(2),
        lambda dist, v, g: dist.expectation(v),
        lambda dist, v, g: dist.covariance(v, v),
        lambda dist, v, g: dist.second_moment(v, v),
        lambda dist, v, g: dist.risk(g),
        lambda dist, v, g: dist.generalized_expectation(v, 0.5),
        lambda dist, v, g: dist.product_expectation(abs(v)),
    ):

        def squared(parts, ask=ask):
            dist = front.make(parts[0], on_infeasible="mask")
            return (ask(dist, front.array(values), front.array(gold)) ** 2).sum()

        dist = front.make(front.array(scores), on_infeasible="mask")
        found = front.numpy(ask(dist, front.array(values), front.array(gold)))
        close(found, ask(truth, values, gold))
        assert np.isnan(found[1])
        (slope,) = front.gradient(squared, [scores])
        assert not np.isnan(slope).any()
        assert not slope[1].any()
        assert slope[0].any()


def test_sentences_without_a_tree_add_nothing_to_losses(front, rng):
    scores, values = rng.normal(size=(3, 4, 4)), rng.normal(size=(3, 4, 4))
    scores[1, :, 2] = -np.inf
    others = [0, 2]
    gold = np.array([[-1, 0, 1, 1]] * 3)
    options = {"on_infeasible": "mask", "reduction": "sum"}
    for loss in (
        lambda s, v, g: front.module.risk_loss(s, g, **options),
        lambda s, v, g: front.module.generalized_expectation_loss(s, v, 0.5, **options),
        lambda s, v, g: front.module.entropy_loss(s, **options),
        lambda s, v, g: front.module.distillation_loss(s, s + v, **options),
    ):

        def of_scores(parts, loss=loss):
            return loss(parts[0], front.array(values), front.array(gold))

        found = front.numpy(of_scores([front.array(scores)]))
        parts = (front.array(part[others]) for part in (scores, values, gold))
        close(found, front.numpy(loss(*parts)))
        (slope,) = front.gradient(of_scores, [scores])
        assert np.isfinite(slope).all()
        assert not slope[1].any()
        assert slope[0].any()


def test_conditions(front, rng):
    scores = rng.normal(size=(2, 4, 4))
    truth, dist = spantree.TreeDistribution(scores), front.make(front.array(scores))
    partial = np.array([[-1, -2, 1, -2], [-1, 2, -2, -2]])
    for given in ({"include": [(1, 2)]}, {"exclude": [(0, 1), (3, 2)]}, {"include": [(2, 3)], "exclude": [(2, 1)]}):
        close(front.numpy(dist.condition(**given).marginals()), truth.condition(**given).marginals())
    found, expected = dist.condition(heads=front.array(partial)), truth.condition(heads=partial)
    close(front.numpy(found.marginals()), expected.marginals())
    tree, probability = dist.complete(front.array(partial))
    tree_truth, probability_truth = truth.complete(partial)
    np.testing.assert_array_equal(front.numpy(tree), tree_truth)
    close(front.numpy(probability), probability_truth)


def test_losses_say_what_they_are():
    for module in (spantree.torch, spantree.jax):
        loss = module.hinge_loss
        assert loss.__module__ == f"{module.__name__}.losses"
        assert "margin" in loss.__doc__
        assert next(iter(inspect.signature(loss).parameters)) == "scores"


def test_help_has_examples_of_its_own_library(front):
    """What is inherited counts; names of the other library do not stand there. Shared ones run in both."""
    mine, other = ("jax", "torch") if front is Jax else ("torch", "jax")
    methods = [getattr(front.make, name) for name in dir(front.make) if not name.startswith("_")]
    asked = [*methods, *(getattr(front.module, name) for name in front.module.__all__)]
    texts = {inspect.getdoc(x) or "": inspect.unwrap(x).__module__ for x in asked if callable(x)}
    assert not [text for text in texts if f"spantree.{other}" in text or f"import {other}" in text]
    shared = [text for text, module in texts.items() if "_front" in module and f"spantree.{mine}" in text]
    assert len(shared) > 15
    with jax.enable_x64(False):
        for text in shared:
            example = doctest.DocTestParser().get_doctest(text, {}, text.splitlines()[0], None, None)
            assert doctest.DocTestRunner().run(example).failed == 0


def test_constraints(front, rng):
    """As with NumPy: one tree, the best of each, one after the other."""
    matrices = [rng.normal(size=(n, n, 3)) for n in SIZES]
    sets = [{0, 1}, {"c"}]
    options = {"labelled": True, "labels": ["a", "b", "c"], "root": "multi"}
    truth = spantree.TreeDistribution(matrices, **options)
    dist = front.make([front.array(matrix) for matrix in matrices], **options)
    for ours, theirs in (
        (dist.argmax(at_most_one=sets), truth.argmax(at_most_one=sets)),
        (dist.topk(3, at_most_one=sets, at_most=1), truth.topk(3, at_most_one=sets, at_most=1)),
    ):
        for mine, right in zip(ours, theirs, strict=True):
            assert isinstance(mine, list)
            for x, y in zip(mine, right, strict=True):
                close(front.numpy(x), y)
    one, of_one = dist[1], truth[1]
    found = [(*map(front.numpy, tree),) for tree, _ in zip(one.iter_best(exactly=2), range(5), strict=False)]
    expected = [tuple(tree) for tree, _ in zip(of_one.iter_best(exactly=2), range(5), strict=False)]
    for mine, right in zip(found, expected, strict=True):
        for x, y in zip(mine, right, strict=True):
            close(x, y)
    first = next(one.iter_best(where=lambda heads, labels: front.numpy(heads)[1] == 3))
    assert front.numpy(first.heads)[1] == 3
    batch = front.make(front.array(rng.normal(size=(2, 5, 5))))
    assert batch.argmax(limit=100).shape == (2, 5)
    with pytest.raises(TypeError, match="at_most_two"):
        batch.argmax(at_most_two=[{0}])


@pytest.mark.parametrize("labels", [0, 2])
def test_a_list_without_replacement(front, rng, labels):
    """A list in gives lists out, and what is estimated from them does not depend on it."""
    matrices = [rng.normal(size=(n, n, labels) if labels else (n, n)) for n in SIZES]
    dist = front.make([front.array(matrix) for matrix in matrices], labelled=labels > 0)
    sample = without_replacement(front, dist, 3)
    padded = without_replacement(front, dist._with(dist._scores, dist._lengths, type(dist._names)()), 3)
    assert [x.shape for x in sample.heads] == [(3, n) for n in SIZES]
    assert [x.shape for x in sample.log_probs] == [x.shape for x in sample.keys] == [(3,)] * len(SIZES)
    assert (sample.labels is not None) == bool(labels)
    for i, n in enumerate(SIZES):
        for mine, right in ((sample.heads, padded.heads[:, i, :n]), (sample.log_probs, padded.log_probs[:, i])):
            close(front.numpy(mine[i]), front.numpy(right))

    def left(heads, labels=None):
        return (heads[..., 1] == 0) * 1.0 + (0.0 if labels is None else labels[..., 1] * 0.5)

    of_each = [left(*tree) for tree in zip(*(x for x in (sample.heads, sample.labels) if x is not None), strict=True)]
    for f in (left, of_each):
        close(front.numpy(sample.estimate(f)), front.numpy(padded.estimate(left)))
    if front is Torch:
        together = torch.stack(of_each, 1)
        weights = sample.gradient_weights(of_each)
        close(torch.stack(weights, 1), padded.gradient_weights(together))
        for estimate in (spantree.torch.score_function, spantree.torch.unordered_set):
            assert estimate(dist, left, 2).shape == (len(SIZES),)


def without_replacement(front, dist, k):
    if front is Jax:
        return dist.sample_without_replacement(jax.random.key(3), k)
    return dist.sample_without_replacement(k, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("question", ["kl", "cross_entropy"])
def test_no_gradient_where_the_other_lacks_a_tree(front, rng, question):
    """There the value is inf, and a masked loss must not get NaN from it; the sentence beside it does not mind."""
    p, q = rng.normal(size=(2, 2, 5, 5))
    q[0, 0, 1] = -math.inf
    where = front.make._xp.where

    def loss(given):
        value = getattr(front.make(given[0]), question)(front.make(given[1]))
        return where(value < math.inf, value, 0.0).sum()

    for gradient in front.gradient(loss, [p, q]):
        assert (gradient[0] == 0.0).all()
        assert np.isfinite(gradient[1]).all()
        assert abs(gradient[1]).max() > 0.0


@pytest.mark.parametrize("mask", [-1e4, -1e9, -1e12, -1e30])
@pytest.mark.parametrize("root", ["single", "multi"])
def test_what_all_trees_have_in_common_costs_no_digits(front, mask, root):
    """Every tree has one edge from ROOT, and all of these are masked alike."""
    scores = np.array([[0, mask, mask], [0, 0, -1.25], [0, 0.71, 0]])
    wanted = spantree.TreeDistribution(scores, root=root)
    for name, order in [("renyi_entropy", x) for x in (0.0, 1e-6, 0.5, 0.995, 1 + 1e-7, 1.005, 2.0, 50.0)] + [
        ("norm", x) for x in (0.5, 1.0, 1.5, 3.0)
    ]:
        value, gradient = getattr(wanted, name)(order, with_grad=True)
        found = getattr(front.make(front.array(scores), root=root), name)(order)
        np.testing.assert_allclose(front.numpy(found), value, rtol=1e-10)  # sums of scores of 1e4 are right to 4e-12
        (slope,) = front.gradient(
            lambda x, name=name, order=order: getattr(front.make(x[0], root=root), name)(order), [scores]
        )
        np.testing.assert_allclose(slope, gradient, atol=1e-11)
    if root == "single":
        values = np.array([[0, 2, 3], [0, 0, 5], [0, 7, 0.0]])
        value, gradient = wanted.product_expectation(values, with_grad=True)
        found = front.make(front.array(scores)).product_expectation(front.array(values))
        np.testing.assert_allclose(front.numpy(found), value, rtol=1e-12)
        (slope,) = front.gradient(lambda x: front.make(x[0]).product_expectation(front.array(values)), [scores])
        np.testing.assert_allclose(slope, gradient, atol=1e-11)


def test_renyi_entropies_on_both_sides_of_where_they_are_found_otherwise(front):
    scores = np.random.default_rng(5).normal(size=(2, 7, 7))
    wanted = spantree.TreeDistribution(scores)
    for order in (0.99 - 1e-9, 0.99 + 1e-9, 1.01 - 1e-9, 1.01 + 1e-9):
        found = front.make(front.array(scores)).renyi_entropy(order)
        np.testing.assert_allclose(front.numpy(found), wanted.renyi_entropy(order), rtol=1e-12)


@pytest.mark.parametrize("zeros", [[(0, 1)], [(1, 2), (0, 3)], [(0, 1), (2, 1), (3, 1)]])
def test_products_are_differentiable_by_values_of_zero(front, zeros):
    """A product's mean is linear in each value; so is its slope, which is what it is without the value."""
    rng = np.random.default_rng(1)
    scores, values = rng.normal(size=(4, 4)), rng.uniform(0.5, 2.0, size=(4, 4))
    for edge in zeros:
        values[edge] = 0.0
    dist = spantree.TreeDistribution(scores)
    found = front.make(front.array(scores)).product_expectation(front.array(values))
    np.testing.assert_allclose(front.numpy(found), dist.product_expectation(values), rtol=1e-12)
    (slope,) = front.gradient(lambda x: front.make(front.array(scores)).product_expectation(x[0]), [values])
    for head in range(4):
        for dep in range(4):
            with_one, without = values.copy(), values.copy()
            with_one[head, dep], without[head, dep] = 1.0, 0.0
            wanted = dist.product_expectation(with_one) - dist.product_expectation(without)
            np.testing.assert_allclose(slope[head, dep], wanted, rtol=1e-9, atol=1e-12)


def test_products_where_there_is_no_tree(front):
    scores = np.zeros((2, 3, 3))
    scores[1] = -np.inf
    for values in (np.ones((2, 3, 3)), -np.ones((2, 3, 3))):
        if front is Jax and values[0, 0, 0] < 0.0:
            continue  # it takes none that are negative
        make = lambda x, values=values: front.make(x, on_infeasible="mask").product_expectation(front.array(values))  # noqa: E731
        assert np.isnan(front.numpy(make(front.array(scores)))).tolist() == [False, True]
        (slope,) = front.gradient(lambda x, make=make: make(x[0])[0], [scores])
        np.testing.assert_array_equal(slope[1], 0.0)


def aligned(array):
    """The same numbers at an address at which JAX, too, would look at them in place."""
    room = np.empty(array.nbytes + 64, np.uint8)
    start = -room.ctypes.data % 64
    mine = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    mine[...] = array
    return mine


@pytest.mark.parametrize("options", [{}, {"layout": "dep_head"}, {"labelled": True}, {"temperature": 0.5}], ids=str)
def test_a_distribution_is_a_snapshot(front, rng, options):
    mine = aligned(rng.normal(size=(2, 6, 6, 3) if "labelled" in options else (2, 6, 6)))
    lengths = aligned(np.array([5, 4]))
    dist = front.make(front.sharing(mine), lengths=front.sharing(lengths), **options)
    expected = spantree.TreeDistribution(mine.copy(), lengths=lengths.copy(), **options).marginals()
    mine[...] = rng.normal(size=mine.shape)
    lengths[...] = 2
    close(front.numpy(dist.marginals()), expected)
    assert np.asarray(dist.lengths).tolist() == [5, 4]


def test_other_scores_are_copied_too(front, rng):
    mine = aligned(rng.normal(size=(2, 6, 6)))
    dist = front.make(front.array(np.zeros((2, 6, 6))), layout="dep_head").with_scores(front.sharing(mine))
    expected = spantree.TreeDistribution(mine.copy(), layout="dep_head").marginals()
    mine[...] = 0.0
    close(front.numpy(dist.marginals()), expected)


@pytest.mark.parametrize("kind", ["bfloat16", "float32"])
@pytest.mark.parametrize("question", ["log_prob", "score"])
def test_gradients_of_many_trees_are_rounded_once(front, rng, kind, question):
    """3,000 trees of one sentence, each with a weight of its own."""
    scores = rng.normal(size=(6, 6)).astype(kind)
    dist = spantree.TreeDistribution(scores.astype(np.float64))
    trees, weights = dist.sample(3000, rng=1), rng.normal(size=3000)
    expected = np.zeros((6, 6))
    for words in range(1, 6):
        np.add.at(expected, (trees[:, words], words), weights)
    if question == "log_prob":
        expected -= weights.sum() * dist.marginals()

    def weighted(given):
        low = given[0].to(front.half) if front is Torch else given[0].astype(front.half)
        numbers = getattr(front.make(low if kind == "bfloat16" else given[0]), question)(front.array(trees))
        return (numbers * front.array(weights)).sum()

    (found,) = front.gradient(weighted, [scores.astype(np.float32)])
    two_units = 2.0 * float(ml_dtypes.finfo(kind).eps)
    np.testing.assert_allclose(found, expected, rtol=0, atol=two_units * abs(expected).max())


@pytest.mark.parametrize("half", [True, False], ids=["half precision", "float32"])
def test_temperature_rounds_nothing(front, rng, half):
    """Scores divided by it are no numbers of the caller's type, and are not made such."""
    scores = rng.normal(size=(4, 6, 6)).astype(ml_dtypes.bfloat16 if half else np.float32)
    low = front.array(scores.astype(np.float32))
    if half:
        low = low.to(front.half) if front is Torch else low.astype(front.half)
    dist = front.make(low, temperature=0.7)
    truth = spantree.TreeDistribution(scores.astype(np.float64), temperature=0.7)
    other, of_truth = front.make(low), spantree.TreeDistribution(scores.astype(np.float64))
    best = truth.argmax()
    answers = {
        "log_partition": (dist.log_partition(), truth.log_partition()),
        "marginals": (dist.marginals(), truth.marginals()),
        "entropy": (dist.entropy(), truth.entropy()),
        "log_prob": (dist.log_prob(front.array(best)), truth.log_prob(best)),
        "score": (dist.score(front.array(best)), truth.score(best)),
        "max": (dist.max(), truth.max()),
        "topk": (dist.topk(3).scores, truth.topk(3).scores),
        "kl": (dist.kl(other), truth.kl(of_truth)),
        "cross_entropy": (other.cross_entropy(dist), of_truth.cross_entropy(truth)),
        "renyi_entropy": (dist.renyi_entropy(2), truth.renyi_entropy(2)),
        "risk": (dist.risk(front.array(best)), truth.risk(best)),
        "scores": (dist.scores[..., 1:], scores[..., 1:].astype(np.float64) / 0.7),
    }
    for name, (found, expected) in answers.items():
        assert found.dtype == low.dtype, name
        rounded = expected.astype(scores.dtype).astype(np.float32)
        np.testing.assert_array_equal(front.numpy(found), rounded, err_msg=name)
    assert front.numpy(dist[0].log_partition()) == front.numpy(dist.log_partition())[0]


@pytest.mark.parametrize("hidden", ["column 0", "a mask", "-inf", "padding"])
def test_gradient_by_temperature_beside_what_is_no_number(front, rng, hidden):
    """Of entropies, which depend on the temperature: by differences of NumPy's."""
    scores, options = rng.normal(size=(4, 4)), {}
    if hidden == "column 0":
        scores[:, 0] = [-np.inf, np.inf, np.nan, 0.0]
    elif hidden == "a mask":
        options["mask"] = np.arange(16).reshape(4, 4) != 6
    elif hidden == "-inf":
        scores[1, 2] = -np.inf
    else:
        scores[3] = scores[:, 3] = np.nan
        options["lengths"] = 2
    (found,) = front.gradient(
        lambda given: front.make(front.array(scores), temperature=given[0], **options).entropy(), [np.array(1.5)]
    )
    ends = [spantree.TreeDistribution(scores, temperature=t, **options).entropy() for t in (1.5 + 1e-5, 1.5 - 1e-5)]
    close(found, (ends[0] - ends[1]) / 2e-5, 1e-7)


def test_gradients_by_targets_and_features_of_a_batch_with_an_infeasible_sentence(front, rng):
    scores = rng.normal(size=(2, 3, 3))
    scores[0, :, 1] = -np.inf
    values = rng.normal(size=(2, 3, 3, 2))

    def loss(given):
        target, features = given
        dist = front.make(front.array(scores), on_infeasible="mask")
        criterion = dist.generalized_expectation(features, target)
        moments = dist.second_moment(features, features)
        return criterion[1] + moments[1].sum()

    by_target, by_features = front.gradient(loss, [np.array([0.5, 0.25]), values])
    assert np.isfinite(by_target).all()
    assert np.isfinite(by_features).all()
    mean = spantree.TreeDistribution(scores[1]).expectation(values[1])
    close(by_target, np.array([0.5, 0.25]) - mean)
    assert not by_features[0].any()


@pytest.mark.parametrize("root", ["single", "multi"])
@pytest.mark.parametrize("projective", [False, True])
@pytest.mark.parametrize("labels", [0, 2])
def test_products_beside_masks_that_trees_must_take(front, root, projective, labels):
    """Which ones a tree takes, differs from tree to tree: nothing that columns have in common can be taken off."""
    rng = np.random.default_rng([labels, projective, root == "multi"])
    for mask in (-1e4, -1e9, -1e30):
        for _ in range(8):
            scores = rng.normal(size=(4, 4, labels) if labels else (4, 4))
            scores[rng.random(scores.shape) < 0.5] = mask
            values = 2.0 * rng.random(scores.shape)
            options = {"root": root, "projective": projective, "labelled": labels > 0}
            expected, slope = spantree.TreeDistribution(scores, **options).product_expectation(values, with_grad=True)
            given = front.array(scores)
            close(front.numpy(front.make(given, **options).product_expectation(front.array(values))), expected, 1e-11)
            (found,) = front.gradient(
                lambda s, v=values, o=options: front.make(s[0], **o).product_expectation(front.array(v)), [scores]
            )
            close(found, slope, 1e-10)


def test_targets_of_generalized_expectations(front):
    """Arrays of anybody's, lists and numbers; a shape that is not that of the expectations is refused."""
    rng = np.random.default_rng(3)
    scores, features, target = rng.normal(size=(2, 4, 4)), rng.normal(size=(2, 4, 4, 3)), rng.normal(size=(2, 3))
    dist = front.make(front.array(scores))
    expected = spantree.TreeDistribution(scores).generalized_expectation(features, target)
    for given in (target, target.tolist(), front.array(target)):
        found = dist.generalized_expectation(front.array(features), given)
        np.testing.assert_allclose(front.numpy(found), expected, rtol=1e-6)
    with pytest.raises(ValueError, match="target has shape"):
        dist.generalized_expectation(front.array(features[..., 0]), np.zeros(7))
