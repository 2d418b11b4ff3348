"""A batch of distributions is indexed like an array of its shape."""

from __future__ import annotations

import numpy as np
import pytest

import spantree

LENGTHS = np.arange(24).reshape(2, 3, 4) % 8


@pytest.fixture
def scores():
    return np.random.default_rng(0).normal(size=(2, 3, 4, 8, 8))


@pytest.mark.parametrize(
    "index",
    [
        0,
        -1,
        np.int64(1),
        slice(None),
        slice(None, None, -1),
        slice(5, 9),
        ...,
        (),
        (1, 2),
        (1, 2, -3),
        (..., 0),
        (0, ..., 1),
        (slice(None), [0, 2]),
        ([1, 0, 1], [2, 2, 0]),
        [1, 0, 0],
        np.array([[0, 1], [1, 0]]),
        (None, 1),
        np.array([False, True]),
        LENGTHS > 3,
        (1, np.array([True, False, True])),
        np.empty(0, int),
    ],
    ids=str,
)
def test_like_an_array(scores, index):
    dist = spantree.TreeDistribution(scores, lengths=LENGTHS)
    part, numbers = dist[index], np.arange(24).reshape(2, 3, 4)[index]
    assert part.batch_shape == np.shape(numbers)
    np.testing.assert_array_equal(part.lengths, LENGTHS[index])
    for answer, whole in [
        (part.argmax(), dist.argmax()),
        (part.log_partition(), dist.log_partition()),
        (part.marginals(), dist.marginals()),
        (part.scores, scores),
    ]:
        np.testing.assert_array_equal(answer, whole.reshape(24, *whole.shape[3:])[numbers])


@pytest.mark.parametrize("index", [2, (0, 3), (0, 0, 0, 0), (..., 0, 0, 0, 0), 1.0, "0", np.ones(3, bool)], ids=str)
def test_what_no_array_allows(scores, index):
    with pytest.raises(IndexError):
        spantree.TreeDistribution(scores, lengths=LENGTHS)[index]


@pytest.mark.parametrize("layout", ["head_dep", "dep_head"])
@pytest.mark.parametrize(
    "index", [[0, 2], np.array([True, False, True, False]), -1, slice(1, 3), [-1], [], ..., np.array(2)], ids=str
)
def test_lists(index, layout):
    rng = np.random.default_rng(1)
    matrices = [rng.normal(size=(n + 1, n + 1)) for n in (3, 5, 1, 4)]
    dist = spantree.TreeDistribution(matrices, layout=layout)
    numbers = np.arange(4)[index]
    part = dist[index]
    assert part.batch_shape == np.shape(numbers)
    heads = part.argmax() if np.ndim(numbers) else [part.argmax()]
    for tree, i in zip(heads, np.ravel(numbers), strict=True):
        np.testing.assert_array_equal(tree, dist.argmax()[i])
    with pytest.raises(IndexError, match="a list of sentences has one axis"):
        dist[[[0, 1]]]
    with pytest.raises(IndexError):
        dist[0, 0]


def test_one_sentence_has_no_parts():
    dist = spantree.TreeDistribution(np.zeros((3, 3)))
    with pytest.raises(TypeError, match="has no length"):
        len(dist)
    with pytest.raises(TypeError, match="has no parts"):
        iter(dist)
    with pytest.raises(IndexError):
        dist[0]
    assert dist[...].batch_shape == ()


def test_sequence_of_sentences(scores):
    dist = spantree.TreeDistribution(scores[0, 0], lengths=[3, 0, 7, 5])
    assert len(dist) == 4
    for part, heads in zip(dist, dist.argmax(), strict=True):
        np.testing.assert_array_equal(part.argmax(), heads)
    assert repr(dist[0]) == "TreeDistribution(3 words, single root, float64)"
    assert repr(dist) == "TreeDistribution(4 sentences of 0 to 7 words, single root, float64)"


def test_what_it_shows(scores):
    dist = spantree.TreeDistribution(scores, lengths=LENGTHS, root="multi", projective=True)
    assert (dist.batch_shape, dist.event_shape, dist.root, dist.projective) == ((2, 3, 4), (8,), "multi", True)
    np.testing.assert_array_equal(dist.mode, dist.argmax())
    with pytest.raises(ValueError, match="read-only"):
        dist.scores[...] = 0
    ragged = spantree.TreeDistribution([np.zeros((3, 3)), np.zeros((2, 2))])
    assert (ragged.batch_shape, ragged.event_shape) == ((2,), [(3,), (2,)])
    assert ragged.lengths.tolist() == [2, 1]
    turned = scores.swapaxes(-1, -2)
    np.testing.assert_array_equal(spantree.TreeDistribution(turned, layout="dep_head").scores, turned)
