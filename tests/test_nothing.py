"""No sentences, no words, no features: nothing in, nothing out, and no error."""

from __future__ import annotations

import numpy as np
import pytest

import spantree
from questions import KINDS, arrays, ask_everything

NO_SENTENCES = [np.zeros((0, 4, 4)), np.zeros((2, 0, 4, 4)), np.zeros((0, 1, 1)), []]


@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("projective", [False, True])
@pytest.mark.parametrize("scores", NO_SENTENCES, ids=["batch", "batches", "without words", "list"])
def test_no_sentences_no_answers(scores, projective, labelled):
    listed = isinstance(scores, list)
    if labelled and not listed:
        scores = np.zeros((*scores.shape, 3))
    dist = spantree.TreeDistribution(scores, projective=projective, labelled=labelled)
    entropy, gradient = dist.entropy(with_grad=True)
    for edges in (dist.marginals(), gradient, dist.scores):
        assert np.shape(edges) == np.shape(scores)
    for numbers in (dist.log_partition(), dist.max(), entropy):
        assert np.shape(numbers) == dist.batch_shape
    best = dist.argmax()
    for with_grad in (False, True):
        for ask in (dist.score, dist.log_prob, dist.expected_attachment, dist.risk):
            assert all(array.size == 0 for array in arrays(ask(best, with_grad=with_grad)))
    assert all(array.size == 0 for array in arrays(ask_everything(dist, scores, dist)))
    assert len(dist[:0]) == 0
    for one_liner in (spantree.decode, spantree.marginals, spantree.log_partition, spantree.entropy):
        assert all(array.size == 0 for array in arrays(one_liner(scores, labelled=labelled, projective=projective)))
    several = spantree.Trees([] if listed else np.zeros((5, *dist.batch_shape, *(dist.event_shape or ())), int))
    if not labelled and not listed:
        assert dist.score(several).shape == (5, *dist.batch_shape)
        assert dist.log_prob(several, with_grad=True)[1].shape == (5, *scores.shape)


def test_sentences_without_words():
    dist = spantree.TreeDistribution(np.zeros((2, 1, 1)))
    assert dist.log_prob([[-1], [0]]).tolist() == [0.0, 0.0]
    assert dist.risk([[-1], [-1]]).tolist() == [0.0, 0.0]
    assert dist.entropy().tolist() == [0.0, 0.0]
    assert spantree.is_tree([[0], [-1]]).tolist() == [True, True]


@pytest.mark.parametrize("projective", [False, True])
def test_no_features(projective):
    scores = np.random.default_rng(0).normal(size=(2, 4, 4))
    for given, none in ((scores, scores[..., None][..., :0]), (list(scores), [m[..., None][..., :0] for m in scores])):
        dist = spantree.TreeDistribution(given, projective=projective)
        assert np.shape(dist.expectation(none)) == (2, 0)
        value, gradient = dist.expectation(none, with_grad=True)
        assert np.shape(value) == (2, 0)
        assert np.shape(gradient) == (2, 4, 4, 0)
        assert np.shape(dist.covariance(none, given)) == (2, 0)
        assert np.shape(dist.covariance(given, none)) == (2, 0)
        assert np.shape(dist.second_moment(none, none)) == (2, 0, 0)
        value, gradient = dist.generalized_expectation(none, np.zeros((2, 0)), with_grad=True)
        assert np.shape(gradient) == np.shape(given)
        assert not np.any(value)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_no_tree_no_warning(kind, dtype):
    """Sentences without a tree between others: warnings are errors here."""
    labels = (2,) if kind == "labelled" else ()
    scores = np.random.default_rng(0).normal(size=(3, 4, 4, *labels)).astype(dtype)
    scores[1] = -np.inf
    options = KINDS[kind] | {"on_infeasible": "mask"}
    dist, other = spantree.TreeDistribution(scores, **options), spantree.TreeDistribution(scores[::-1], **options)
    with_trees = spantree.TreeDistribution(np.zeros_like(scores), **options)
    for p, q in ((dist, other), (dist, with_trees), (with_trees, dist)):
        for answer in (p.kl(q, with_grad="both"), p.cross_entropy(q, with_grad="both")):
            assert len(answer) == 3
    for answer in (dist.entropy(), dist.renyi_entropy(0), dist.renyi_entropy(2), dist.kl(other)):
        assert np.isnan(answer[1])
    assert dist.confidence().log_prob[1] == -np.inf
    ask_everything(dist, np.abs(np.where(np.isfinite(scores), scores, 1)), with_trees)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_infinite_divergences_are_0(kind):
    """Where the other distribution lacks a tree; the sentence beside it does not mind. In a list too."""
    labels = (2,) if kind == "labelled" else ()
    p, q = np.random.default_rng(0).normal(size=(2, 2, 4, 4, *labels))
    q[0, 0, 1] = -np.inf
    for form in (np.asarray, list):
        of_p, of_q = (spantree.TreeDistribution(form(scores), **KINDS[kind]) for scores in (p, q))
        for value, *gradients in (of_p.kl(of_q, with_grad="both"), of_p.cross_entropy(of_q, with_grad="both")):
            assert np.isinf(value).tolist() == [True, False]
            for gradient in gradients:
                assert not np.any(gradient[0])
                assert np.isfinite(gradient[1]).all()
                assert np.any(gradient[1])
