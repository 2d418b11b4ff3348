"""What draws depend on: the seed, and nothing else; and what may be handed in."""

from __future__ import annotations

import numpy as np
import pytest

import spantree
from oracle.chi_square import p_value
from oracle.listed import Listed
from sampling.draws import random_graph
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


# Trees are drawn from the solve that all other questions read, whether it was there before or not.

MANY = [np.random.default_rng(60 + i).normal(scale=1 + i % 3, size=(2 + i % 7,) * 2) for i in range(70)]


def ask_everything(dist):
    dist.log_partition(), dist.marginals(), dist.entropy()


@pytest.mark.parametrize("root", ["single", "multi"])
@pytest.mark.parametrize("projective", [False, True])
@pytest.mark.parametrize("sentences", [SENTENCES, MANY], ids=["few, kept", "many, not kept"])
def test_what_was_asked_before_does_not_matter(sentences, projective, root):
    for questions in ([ask_everything], [TreeDistribution.log_partition], [draws, ask_everything, draws]):
        fresh = TreeDistribution(sentences, root=root, projective=projective)
        asked = TreeDistribution(sentences, root=root, projective=projective)
        for ask in questions:
            ask(asked)
        for a, b in zip(draws(asked), draws(fresh), strict=True):
            for one, other in zip(a, b, strict=True):
                np.testing.assert_array_equal(one, other)


def test_what_was_asked_before_does_not_matter_to_special_sentences():
    """Scores far apart, soft masks, two parts: what the fast solve cannot do."""
    rng = np.random.default_rng(9)
    scores = rng.normal(size=(5, 7, 7))
    scores[0] *= 1e3
    scores[1] *= 1e6
    scores[2, :, 3] = -1e30
    scores[3, 1:, 4] = -np.inf
    asked = TreeDistribution(scores)
    ask_everything(asked)
    for a, b in zip(draws(asked), draws(TreeDistribution(scores)), strict=True):
        np.testing.assert_array_equal(a, b)
    for i, matrix in enumerate(scores):
        alone = TreeDistribution(matrix)
        np.testing.assert_array_equal(asked.sample(9, rng=3)[:, i], alone.sample(9, rng=3, first_sentence=i))


@pytest.mark.parametrize("projective", [False, True])
def test_a_kept_solve_is_what_is_drawn_from(projective):
    """Handed the solve of other scores, the core draws from those: it does not solve again."""
    scores = np.random.default_rng(70).normal(size=(2, 10, 10))
    ours, others = (TreeDistribution(matrix, projective=projective) for matrix in scores)
    expected = others.sample(20, rng=1)
    assert (ours.sample(20, rng=1) != expected).any()
    ask_everything(others)
    fresh = TreeDistribution(scores[0], projective=projective)
    fresh._solved._solution = others._solved._solution
    np.testing.assert_array_equal(fresh.sample(20, rng=1), expected)


def test_more_sentences_than_are_solved_at_a_time():
    scores = np.random.default_rng(10).normal(size=(1100, 4, 4))
    whole = TreeDistribution(scores)
    drawn = whole.sample(3, rng=2)
    np.testing.assert_array_equal(drawn[:, 600:], TreeDistribution(scores[600:]).sample(3, rng=2, first_sentence=600))
    distinct = whole.sample_without_replacement(3, rng=2)
    ask_everything(whole)
    np.testing.assert_array_equal(whole.sample(3, rng=2), drawn)
    np.testing.assert_array_equal(whole.sample_without_replacement(3, rng=2).heads, distinct.heads)
    np.testing.assert_array_equal(distinct.log_probs, whole.log_prob(distinct.heads))


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
    law = Listed(scores)
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
    with pytest.raises(ValueError, match='method must be "auto", '):
        dist.sample(2, method="trie")
    with pytest.raises(ValueError, match='method must be "auto", '):
        dist.sample_without_replacement(2, method="wilson")
    for k in (0, -1, 2.5, True):
        with pytest.raises(ValueError, match="k must be a positive integer"):
            dist.sample(k)
    with pytest.raises(ValueError, match="takes one sentence"):
        TreeDistribution(SENTENCES).iter_without_replacement()


# However a batch is cut: with numbers for its sentences, or seeds of their own.

PADDED, LENGTHS = padded(0.0)


def distribution(form, first, last, projective):
    """Sentences [first, last) in one of the forms scores may come in."""
    if form == "list":
        return TreeDistribution(SENTENCES[first:last], projective=projective)
    scores, lengths = PADDED[first:last], np.array(LENGTHS[first:last])
    if form == "two axes":
        scores, lengths = scores.reshape(-1, 1, 8, 8), lengths.reshape(-1, 1)
    return TreeDistribution(scores, lengths=lengths, projective=projective)


def by_sentence(form, heads):
    """A list of (k, n+1), without padding."""
    if form == "list":
        return heads
    return [
        rows[:, : n + 1] for rows, n in zip(np.moveaxis(heads.reshape(len(heads), -1, 8), 1, 0), LENGTHS, strict=True)
    ]


@pytest.mark.parametrize("threads_used", [1, 2])
@pytest.mark.parametrize("projective", [False, True])
@pytest.mark.parametrize("form", ["padded", "two axes", "list"])
def test_numbered_sentences_do_not_mind_being_cut(form, projective, threads_used, threads):
    spantree.set_threads(threads_used)
    whole = distribution(form, 0, 6, projective)
    for cut in (1, 4):
        parts = [(distribution(form, 0, cut, projective), 0), (distribution(form, cut, 6, projective), cut)]
        for method in ("sample", "sample_without_replacement"):

            def draw(dist, first, method=method):
                drawn = getattr(dist, method)(4, rng=5, first_sentence=first)
                return drawn if method == "sample" else drawn.heads

            expected = draw(whole, 0)
            got = [draw(part, first) for part, first in parts]
            got = got[0] + got[1] if form == "list" else np.concatenate(got, axis=1)
            for a, b in zip(got, expected, strict=True):
                np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("threads_used", [1, 2])
@pytest.mark.parametrize("projective", [False, True])
@pytest.mark.parametrize("form", ["padded", "two axes", "list"])
def test_seeds_of_their_own(form, projective, threads_used, threads):
    """A sentence with a seed of its own gives what it gives alone with that seed."""
    spantree.set_threads(threads_used)
    dist = distribution(form, 0, 6, projective)
    seeds = np.array([3, 1, 4, 1, 5, 2**70], dtype=object)
    given = list(seeds) if form == "list" else seeds.reshape((6, 1) if form == "two axes" else 6)
    drawn = by_sentence(form, dist.sample(4, rng=given))
    sample = dist.sample_without_replacement(3, rng=given)
    distinct = by_sentence(form, sample.heads)
    for i, sentence in enumerate(SENTENCES):
        alone = TreeDistribution(sentence, projective=projective)
        np.testing.assert_array_equal(drawn[i], alone.sample(4, rng=seeds[i])[:, : len(sentence)])
        expected = alone.sample_without_replacement(3, rng=seeds[i])
        np.testing.assert_array_equal(distinct[i], expected.heads)
        keys = sample.keys[i] if form == "list" else sample.keys.reshape(3, 6)[:, i]
        np.testing.assert_array_equal(keys, expected.keys)


def test_labels_with_numbers_and_seeds():
    scores = np.random.default_rng(8).normal(size=(4, 5, 5, 3))
    whole = TreeDistribution(scores, labelled=True).sample(9, rng=2)
    part = TreeDistribution(scores[2:], labelled=True).sample(9, rng=2, first_sentence=2)
    np.testing.assert_array_equal(part.heads, whole.heads[:, 2:])
    np.testing.assert_array_equal(part.labels, whole.labels[:, 2:])
    seeded = TreeDistribution(scores, labelled=True).sample(9, rng=[7, 8, 9, 7])
    alone = TreeDistribution(scores[3], labelled=True).sample(9, rng=7)
    np.testing.assert_array_equal(seeded.heads[:, 3], alone.heads)
    np.testing.assert_array_equal(seeded.labels[:, 3], alone.labels)


@pytest.mark.parametrize("projective", [False, True])
@pytest.mark.parametrize("labels", [0, 2])
@pytest.mark.parametrize("method", ["wilson-marginal", "ancestral"])
def test_draws_that_are_cut(projective, labels, method):
    scores = np.random.default_rng(9).normal(size=(3, 6, 6, *([labels] * bool(labels))))
    dist = TreeDistribution(scores, labelled=labels > 0, projective=projective)
    whole = dist.sample(5000, rng=4, method=method)
    for first, count in ((0, 3), (7, 9), (4090, 20), (4096, 1), (4999, 1)):
        part = dist.sample(count, rng=4, method=method, first_tree=first)
        pairs = zip((part.heads, part.labels), (whole.heads, whole.labels), strict=True) if labels else [(part, whole)]
        for mine, expected in pairs:
            np.testing.assert_array_equal(mine, expected[first : first + count])


def test_iterator_is_the_same_stream():
    dist = TreeDistribution(SENTENCES[2])
    expected = dist.sample_without_replacement(20, rng=3, first_sentence=6).heads
    trees = dist.iter_without_replacement(rng=3, first_sentence=6)
    np.testing.assert_array_equal([next(trees).heads for _ in range(20)], expected)


def test_what_seeds_may_be():
    dist = TreeDistribution(PADDED, lengths=LENGTHS)
    with pytest.raises(ValueError, match=r"seeds of shape \(2,\)"):
        dist.sample(rng=[1, 2])
    with pytest.raises(TypeError, match="must be an integer, not float"):
        dist.sample(rng=[1.0] * 6)
    with pytest.raises(ValueError, match="must not be negative"):
        dist.sample(rng=[-1] * 6)
    with pytest.raises(ValueError, match="first_sentence must be 0 or more"):
        dist.sample(rng=1, first_sentence=-1)
    for number in (-1, 2**62):
        with pytest.raises(ValueError, match="first_tree must be 0 or more"):
            dist.sample(rng=1, first_tree=number)
    with pytest.raises(ValueError, match="goes with one rng"):
        dist.sample(rng=[1] * 6, first_sentence=2)
    with pytest.raises(TypeError):
        dist.sample(rng=1, first_sentence=1.5)
    assert TreeDistribution(np.zeros((0, 3, 3))).sample(2, rng=[]).shape == (2, 0, 3)
