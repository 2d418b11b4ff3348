"""Where a sentence has no tree, every question names it and a word that cannot be attached."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import spantree
from oracle.battery import KINDS, arguments
from oracle.forms import FORMS
from oracle.sentence import Sentence
from oracle.trees import all_trees

BAD = 1  # which sentence has no tree


def batch_without_a_tree(labels, dtype):
    """Word 2 of the second sentence, and all words of the fourth, cannot be attached."""
    rng = np.random.default_rng(labels)
    shapes = [(n, n, labels) if labels else (n, n) for n in (4, 3, 2, 4)]
    matrices = [rng.normal(size=shape).astype(dtype) for shape in shapes]
    matrices[BAD][:, 2] = -np.inf
    matrices[3][...] = -np.inf
    return [Sentence(f"sentence {i}", scores) for i, scores in enumerate(matrices)]


def questions(dist, form, batch):
    values = form.edges([np.ones(sentence.scores.shape) for sentence in batch])
    heads = form.nodes([all_trees(sentence.words, "single", True)[0] for sentence in batch])
    gold = (heads, heads) if batch[0].labels else (heads,)
    yield from (dist.argmax, dist.max, dist.mbr, dist.marginals, dist.log_partition, dist.entropy)
    yield from (lambda: dist.topk(2), lambda: dist.sample(2, rng=0), lambda: dist.sample_without_replacement(2, rng=0))
    yield from (lambda: dist.log_prob(*gold), lambda: dist.kl(dist), lambda: dist.cross_entropy(dist))
    yield from (lambda: dist.renyi_entropy(2.0), lambda: dist.renyi_entropy(np.inf), lambda: dist.norm(2.0))
    yield from (lambda: dist.expectation(values), lambda: dist.product_expectation(values))
    yield from (lambda: dist.covariance(values, values), lambda: dist.second_moment(values, "edges"))
    yield from (lambda: dist.expected_attachment(*gold), lambda: dist.risk(*gold))
    yield lambda: dist.generalized_expectation(values, 0.0)
    yield lambda: dist.entropy(with_grad=True)


@pytest.mark.parametrize("labels", [0, 2])
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_every_question_names_the_sentence_and_a_word(form, labels):
    for kind in KINDS:
        everything = batch_without_a_tree(labels, np.float64)
        batch = next(batch for batch in form.batches(everything) if any(one is everything[BAD] for one in batch))
        at = [one is everything[BAD] for one in batch].index(True)
        given = arguments(form, batch, kind) | {"on_infeasible": "raise"}
        name = {"one": "the sentence", "two axes": r"sentence \(0, 1\)"}.get(form.kind, f"sentence {at}")
        dist = spantree.TreeDistribution(**given)
        one_liners = [partial(f, **given) for f in (spantree.decode, spantree.marginals, spantree.log_partition)]
        for ask in [*questions(dist, form, batch), *one_liners]:
            with pytest.raises(spantree.InfeasibleError, match=name) as caught:
                ask()
            assert caught.value.sentence == at
            assert caught.value.word == 2, "the only word that cannot be attached"
            assert "word 2" in str(caught.value)


@pytest.mark.parametrize("labels", [0, 2])
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_gradients_are_zero_where_there_is_no_tree(form, labels):
    """Zero, not NaN: what is multiplied by a mask afterwards stays finite."""
    for kind in KINDS:
        for batch in form.batches(batch_without_a_tree(labels, np.float64)):
            dist = spantree.TreeDistribution(**arguments(form, batch, kind))
            values = form.edges([np.full(sentence.scores.shape, 0.5) for sentence in batch])
            for ask in (
                dist.entropy,
                dist.log_partition,
                partial(dist.product_expectation, values),
                partial(dist.expectation, values),
                partial(dist.generalized_expectation, values, 0.0),
                partial(dist.renyi_entropy, 2.0),
                partial(dist.norm, 2.0),
                partial(dist.kl, dist),
            ):
                _, gradients = ask(with_grad=True)
                assert np.isfinite(np.concatenate([np.ravel(part) for part in gradients])).all(), ask


def test_covariances_with_edges_are_nan_at_edges_only():
    scores = np.zeros((2, 4, 4))
    scores[1, :, 2] = -np.inf
    dist = spantree.TreeDistribution(scores, lengths=[3, 2], on_infeasible="mask")
    found = dist.covariance(np.ones((2, 4, 4)), "edges")
    np.testing.assert_array_equal(np.isnan(found[1]), [[0, 1, 1, 0], [0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]])
    assert np.isfinite(found[0]).all()
