"""The stand-in for SynJax's spanning trees, against enumeration: directed or not, lengths that count the root."""

from __future__ import annotations

import numpy as np
import pytest

from oracle.listed import Listed
from spantree.compat.synjax import SpanningTreeCRF

LENGTHS = np.array([5, 3, 2])
SETTINGS = pytest.mark.parametrize(
    ("directed", "projective", "single_root_edge"),
    [(d, p, s) for d in (True, False) for p in (True, False) for s in (True, False)],
)


def batch(seed, directed, projective, single_root_edge):
    potentials = np.random.default_rng(seed).normal(size=(3, 5, 5))
    trees = []
    for matrix, nodes in zip(potentials, LENGTHS, strict=True):
        inner = matrix[:nodes, :nodes]
        scores = inner if directed else (inner + inner.T) / 2
        trees.append(Listed(scores, "single" if single_root_edge else "multi", projective))
        matrix[nodes:], matrix[:, nodes:] = 1e9, 1e9
    settings = {"directed": directed, "projective": projective, "single_root_edge": single_root_edge}
    return SpanningTreeCRF(potentials, lengths=LENGTHS, **settings), trees


def events(tree, directed):
    matrices = tree.indicator
    return matrices if directed else matrices + matrices.swapaxes(1, 2)


@SETTINGS
def test_numbers(directed, projective, single_root_edge):
    crf, trees = batch(0, directed, projective, single_root_edge)
    other, other_trees = batch(1, directed, projective, single_root_edge)
    pairs = list(zip(trees, other_trees, strict=True))
    for found, expected in [
        (crf.log_partition(), [tree.log_partition for tree in trees]),
        (crf.log_count(), [np.log(len(tree.heads)) for tree in trees]),
        (crf.entropy(), [tree.entropy for tree in trees]),
        (crf.cross_entropy(other), [p.cross_entropy(q) for p, q in pairs]),
        (crf.kl_divergence(other), [p.cross_entropy(q) - p.entropy for p, q in pairs]),
    ]:
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    for found, tree, nodes in zip(crf.marginals(), trees, LENGTHS, strict=True):
        expected = np.tensordot(np.exp(tree.log_probs), events(tree, directed), 1)
        np.testing.assert_allclose(found[:nodes, :nodes], expected, atol=1e-13)
        assert (found[nodes:] == 0).all()
        assert (found[:, nodes:] == 0).all()
    np.testing.assert_allclose(np.exp(crf.log_marginals()), crf.marginals())


@SETTINGS
def test_best_trees(directed, projective, single_root_edge):
    crf, trees = batch(2, directed, projective, single_root_edge)
    best, score = crf.argmax_and_max()
    assert best.dtype == np.float32
    matrices, scores = crf.top_k(3)
    assert matrices.shape == (3, 3, 5, 5)
    for i, (tree, nodes) in enumerate(zip(trees, LENGTHS, strict=True)):
        order = np.argsort(-tree.scores)[:3]
        np.testing.assert_array_equal(matrices[: len(order), i, :nodes, :nodes], events(tree, directed)[order])
        np.testing.assert_allclose(scores[: len(order), i], tree.scores[order])
        assert (matrices[len(order) :, i] == 0).all()
        np.testing.assert_array_equal(best[i], matrices[0, i])
        np.testing.assert_allclose(score[i], tree.scores.max())


@SETTINGS
def test_samples_and_their_probabilities(directed, projective, single_root_edge):
    crf, trees = batch(3, directed, projective, single_root_edge)
    drawn = crf.sample(np.array([0, 7], dtype=np.uint32), (2, 5))  # as a JAX key is
    assert drawn.shape == (2, 5, 3, 5, 5)
    np.testing.assert_array_equal(drawn, crf.sample(np.array([0, 7]), (2, 5)))
    distinct, log_probs, gumbels = crf.sample_without_replacement(0, 4)
    assert (np.diff(gumbels[:, 0]) < 0).all()
    for i, (tree, nodes) in enumerate(zip(trees, LENGTHS, strict=True)):
        all_events = events(tree, directed)

        def which(event, all_events=all_events, nodes=nodes):
            return np.flatnonzero((all_events == event[:nodes, :nodes]).all(axis=(1, 2)))

        chosen = np.array([which(event) for event in drawn[:, :, i].reshape(10, 5, 5)])
        assert chosen.shape == (10, 1)
        np.testing.assert_allclose(crf.log_prob(drawn)[:, :, i].ravel(), tree.log_probs[chosen[:, 0]], atol=1e-12)
        np.testing.assert_allclose(
            crf.unnormalized_log_prob(drawn)[:, :, i].ravel(), tree.scores[chosen[:, 0]], atol=1e-12
        )
        found = [which(event) for event in distinct[: len(tree.heads), i]]
        assert len(set(map(int, np.concatenate(found)))) == min(4, len(tree.heads))
        np.testing.assert_allclose(log_probs[: len(found), i], tree.log_probs[np.concatenate(found)], atol=1e-12)


def test_samplers_by_name():
    crf = SpanningTreeCRF(np.zeros((4, 4)), directed=True, projective=False, single_root_edge=True)
    for algorithm in ("colbourn", "wilson"):
        np.testing.assert_array_equal(crf.sample(0, 5, algorithm=algorithm), crf.sample(0, 5))
    with pytest.raises(ValueError, match='algorithm must be "colbourn" or "wilson", not'):
        crf.sample(0, algorithm="Wilson")


def test_no_tree_has_no_probability():
    settings = {"projective": False, "single_root_edge": False}
    directed = SpanningTreeCRF(np.zeros((3, 3)), directed=True, **settings)
    for edges in ([(1, 2), (2, 1)], [(0, 1)], [(0, 1), (0, 2), (1, 2)], [(0, 1), (1, 2), (2, 0)]):
        event = np.zeros((3, 3))
        event[tuple(np.transpose(edges))] = 1
        assert directed.log_prob(event) == -np.inf
    undirected = SpanningTreeCRF(np.zeros((3, 3)), directed=False, **settings)
    assert undirected.log_prob(1 - np.eye(3)) == -np.inf  # a cycle
    path = np.array([[0, 0, 1], [0, 0, 1], [1, 1, 0]])
    assert undirected.log_prob(path) == pytest.approx(-np.log(3))


def test_temperature_and_parts_of_a_batch():
    crf, _ = batch(4, True, False, True)
    np.testing.assert_allclose(crf.with_temperature(2.0).log_potentials, crf.log_potentials / 2)
    np.testing.assert_array_equal(crf[1].marginals(), crf.marginals()[1])
    assert crf[1].batch_shape == ()
    assert crf.batch_ndim == 1
    assert crf.event_shape == (5, 5)
    cold = crf.sample(0, 50, temperature=1e-3)
    np.testing.assert_array_equal(cold, np.broadcast_to(crf.argmax(), cold.shape))
    with pytest.raises(ValueError, match="undirected"):
        crf.kl_divergence(batch(4, False, False, True)[0])
