"""What draws depend on: the seed, and nothing else; and what may be handed in."""

from __future__ import annotations

import numpy as np
import pytest

import spantree
from sampling.law import Law, p_value, random_graph
from spantree import TreeDistribution


@pytest.fixture
def threads():
    yield
    spantree.set_threads(None)


SENTENCES = [random_graph(30 + i, words, 2.0) for i, words in enumerate((3, 1, 6, 2, 5, 6))]


def padded(filler):
    scores = np.full((6, 8, 8), filler)
    for matrix, sentence in zip(scores, SENTENCES, strict=True):
        matrix[: len(sentence), : len(sentence)] = sentence
    return scores, [len(sentence) - 1 for sentence in SENTENCES]


def draws(dist):
    """Trees by every method, as lists."""
    results = [
        dist.sample(7, rng=1, method=method) for method in ("auto", "wilson-marginal", "wilson-reject", "ancestral")
    ]
    for method in ("auto", "trie", "beam"):
        sample = dist.sample_without_replacement(4, rng=1, method=method)
        results += [sample.heads, sample.keys]
    return results


def test_neither_threads_nor_padding_nor_form_matter(threads):
    spantree.set_threads(1)
    scores, lengths = padded(0.0)
    expected = draws(TreeDistribution(scores, lengths=lengths))
    spantree.set_threads(3)
    other, _ = padded(1e9)
    for again in (scores, other, scores.reshape(2, 3, 8, 8)):
        shape = again.shape[:-2]
        got = draws(TreeDistribution(again, lengths=np.reshape(lengths, shape)))
        for a, b in zip(got, expected, strict=True):
            np.testing.assert_array_equal(a.reshape(b.shape), b)
    for a, b in zip(draws(TreeDistribution(SENTENCES)), expected, strict=True):
        for i, rows in enumerate(a):
            np.testing.assert_array_equal(rows, b[:, i, : len(SENTENCES[i])] if b.ndim == 3 else b[:, i])


def test_float32_and_layout():
    scores = SENTENCES[2].astype(np.float32)
    plain = TreeDistribution(scores).sample(50, rng=3)
    np.testing.assert_array_equal(TreeDistribution(scores.astype(float)).sample(50, rng=3), plain)
    turned = TreeDistribution(np.ascontiguousarray(scores.T), layout="dep_head")
    np.testing.assert_array_equal(turned.sample(50, rng=3), plain)
    assert TreeDistribution(scores).sample_without_replacement(2, rng=0).log_probs.dtype == np.float32


def test_fewer_draws_are_the_first_of_more():
    dist = TreeDistribution(SENTENCES[2])
    for method in ("auto", "wilson-reject", "ancestral"):
        np.testing.assert_array_equal(dist.sample(3, rng=4, method=method), dist.sample(9, rng=4, method=method)[:3])
    np.testing.assert_array_equal(dist.sample(rng=4), dist.sample(1, rng=4)[0])


def test_seeds():
    dist = TreeDistribution(SENTENCES[2])
    assert (dist.sample(50, rng=1) != dist.sample(50, rng=2)).any()
    assert (dist.sample(50) != dist.sample(50)).any()
    first, second = np.random.default_rng(5), np.random.default_rng(5)
    drawn = dist.sample(50, rng=first)
    np.testing.assert_array_equal(drawn, dist.sample(50, rng=second))
    assert (dist.sample(50, rng=first) != drawn).any()
    assert first.random() != second.random()  # it has moved on
    with pytest.raises(TypeError, match="a numpy"):
        dist.sample(rng="seed")
    with pytest.raises(ValueError, match="negative"):
        dist.sample(rng=-1)


def test_sentences_of_a_batch_are_independent():
    scores = random_graph(40, 3)
    law = Law(scores)
    heads = TreeDistribution(np.stack([scores, scores])).sample(100_000, rng=6)
    first, second = law.index(heads[:, 0]), law.index(heads[:, 1])
    counts = np.zeros((len(law), len(law)))
    np.add.at(counts, (first, second), 1)
    assert p_value(counts, law.probs[:, None] * law.probs) > 1e-9
    counts[:] = 0  # nor do the trees of one sentence depend on each other
    np.add.at(counts, (first[:-1], first[1:]), 1)
    assert p_value(counts, law.probs[:, None] * law.probs) > 1e-9


def test_shapes():
    scores, lengths = padded(0.0)
    dist = TreeDistribution(scores.reshape(3, 2, 8, 8), lengths=np.reshape(lengths, (3, 2)))
    assert dist.sample(rng=0).shape == (3, 2, 8)
    assert dist.sample(5, rng=0).shape == (5, 3, 2, 8)
    sample = dist.sample_without_replacement(5, rng=0)
    assert sample.heads.shape == (5, 3, 2, 8)
    assert sample.log_probs.shape == sample.keys.shape == (5, 3, 2)
    assert sample.threshold.shape == sample.log_remaining.shape == (3, 2)
    assert repr(sample) == "Sample(5 trees for each of 6 sentences)"
    assert TreeDistribution([]).sample(2, rng=0) == []
    assert spantree.sample(np.zeros((1, 1)), 3, rng=0).tolist() == [[-1]] * 3


def test_infeasible():
    scores = np.zeros((2, 4, 4))
    scores[1, :, 2] = -np.inf
    with pytest.raises(spantree.InfeasibleError, match="sentence 1 has no tree with one root: word 2"):
        TreeDistribution(scores).sample(2)
    with pytest.raises(spantree.InfeasibleError):
        TreeDistribution(scores).sample_without_replacement(2)
    dist = TreeDistribution(scores, on_infeasible="mask")
    for method in ("auto", "wilson-reject", "ancestral"):
        heads = dist.sample(3, rng=0, method=method)
        assert (heads[:, 1] == -1).all()
        assert spantree.is_tree(heads[:, 0]).all()
    two_closed_parts = np.full((5, 5), -np.inf)
    two_closed_parts[0, 1:] = two_closed_parts[1, 2] = two_closed_parts[2, 1] = 0.0
    two_closed_parts[3, 4] = two_closed_parts[4, 3] = 0.0
    with pytest.raises(spantree.InfeasibleError):
        TreeDistribution(two_closed_parts).sample()
    TreeDistribution(two_closed_parts, root="multi").sample()


def test_bad_arguments():
    dist = TreeDistribution(SENTENCES[0])
    with pytest.raises(ValueError, match="method must be one of"):
        dist.sample(2, method="trie")
    with pytest.raises(ValueError, match="method must be one of"):
        dist.sample_without_replacement(2, method="wilson")
    for k in (0, -1, 2.5, True):
        with pytest.raises(ValueError, match="k must be a positive integer"):
            dist.sample(k)
    with pytest.raises(ValueError, match="takes one sentence"):
        TreeDistribution(SENTENCES).iter_without_replacement()
