"""What must not matter, to the last bit or up to rounding."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spantree

ROOTS = ["single", "multi"]


def everything(dist):
    entropy, gradient = dist.entropy(with_grad=True)
    return dist.log_partition(), dist.marginals(), entropy, gradient


def random_sentences(rng, lengths, scale=1.0):
    return [rng.normal(size=(n + 1, n + 1)) * scale for n in lengths]


@st.composite
def sentences(draw):
    n = draw(st.integers(1, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    scores = rng.normal(size=(n + 1, n + 1)) * draw(st.sampled_from([0.1, 1.0, 10.0, 100.0]))
    scores[rng.random(scores.shape) < draw(st.sampled_from([0.0, 0.0, 0.3]))] = -np.inf
    return scores, rng


def solved(scores, root):
    """The distribution, or None where there is no tree."""
    dist = spantree.TreeDistribution(scores, root=root, on_infeasible="mask")
    return None if np.isneginf(dist.log_partition()) else dist


@pytest.mark.parametrize("root", ROOTS)
def test_company_and_padding_change_no_bit(root):
    rng = np.random.default_rng(0)
    lengths = [*range(1, 21), *[40] * 9, 33, 35, 38, 100, *[10] * 20]
    matrices = random_sentences(rng, lengths)
    alone = [everything(spantree.TreeDistribution(matrix, root=root)) for matrix in matrices]
    listed = everything(spantree.TreeDistribution(matrices, root=root))
    for i, results in enumerate(alone):
        for one, many in zip(results, listed, strict=True):
            np.testing.assert_array_equal(one, many[i])
    width = max(lengths) + 4
    padded = np.full((len(lengths), width, width), np.nan)
    for matrix, row in zip(matrices, padded, strict=True):
        row[: len(matrix), : len(matrix)] = matrix
    order = rng.permutation(len(lengths))
    shuffled = everything(spantree.TreeDistribution(padded[order], lengths=np.array(lengths)[order], root=root))
    for place, i in enumerate(order):
        n = lengths[i] + 1
        for one, many in zip(alone[i], shuffled, strict=True):
            if np.ndim(one):
                np.testing.assert_array_equal(one, many[place, :n, :n])
                assert not many[place, n:].any()
                assert not many[place, :, n:].any()
            else:
                assert one == many[place]


@pytest.mark.parametrize("projective", [False, True])
@pytest.mark.parametrize("labels", [0, 3])
def test_padding_changes_no_bit_of_moments(labels, projective):
    rng = np.random.default_rng(6)
    last = (labels,) if labels else ()
    lengths = [*range(1, 9), 20]
    matrices = [rng.normal(size=(n + 1, n + 1, *last)) for n in lengths]
    features = [rng.normal(size=(*matrix.shape, 3)) for matrix in matrices]
    padded = np.zeros((len(lengths), 25, 25, *last))
    padded_features = np.zeros((*padded.shape, 3))
    for i, (matrix, values) in enumerate(zip(matrices, features, strict=True)):
        padded[i, : len(matrix), : len(matrix)] = matrix
        padded_features[i, : len(matrix), : len(matrix)] = values
    options = {"labelled": labels > 0, "projective": projective}
    dist = spantree.TreeDistribution(padded, lengths=lengths, **options)
    together = dist.covariance(padded_features, padded_features), dist.second_moment(padded_features, padded_features)
    for i, (matrix, values) in enumerate(zip(matrices, features, strict=True)):
        alone = spantree.TreeDistribution(matrix, **options)
        np.testing.assert_array_equal(alone.covariance(values, values), together[0][i])
        np.testing.assert_array_equal(alone.second_moment(values, values), together[1][i])


def test_threads_change_no_bit():
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(40, 31, 31))
    try:
        spantree.set_threads(1)
        one = everything(spantree.TreeDistribution(scores))
        spantree.set_threads(3)
        three = everything(spantree.TreeDistribution(scores))
    finally:
        spantree.set_threads(None)
    for a, b in zip(one, three, strict=True):
        np.testing.assert_array_equal(a, b)


def test_order_of_questions_changes_no_bit():
    rng = np.random.default_rng(2)
    scores = rng.normal(size=(9, 13, 13))
    first, second = spantree.TreeDistribution(scores), spantree.TreeDistribution(scores)
    marginals = first.marginals()
    entropy = second.entropy()
    np.testing.assert_array_equal(second.marginals(), marginals)
    np.testing.assert_array_equal(first.entropy(), entropy)
    np.testing.assert_array_equal(spantree.log_partition(scores), first.log_partition())


@pytest.mark.parametrize("root", ROOTS)
def test_forms_of_input(root):
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(2, 3, 11, 11))
    expected = everything(spantree.TreeDistribution(scores, root=root))
    turned = everything(spantree.TreeDistribution(scores.swapaxes(-1, -2), root=root, layout="dep_head"))
    strided = everything(spantree.TreeDistribution(np.repeat(scores, 2, axis=-1)[..., ::2], root=root))
    for a, b, c in zip(expected, turned, strided, strict=True):
        np.testing.assert_array_equal(a, b.swapaxes(-1, -2) if np.ndim(b) == 4 else b)
        np.testing.assert_array_equal(a, c)
    assert expected[0].shape == (2, 3)
    assert expected[1].shape == scores.shape
    single = spantree.TreeDistribution(scores.astype(np.float32), root=root)
    assert {single.log_partition().dtype, single.marginals().dtype, single.entropy().dtype} == {np.dtype(np.float32)}
    double = spantree.TreeDistribution(scores.astype(np.float32).astype(np.float64), root=root)
    np.testing.assert_array_equal(single.marginals(), double.marginals().astype(np.float32))


@pytest.mark.parametrize("labels", [3, 8, 40])
@pytest.mark.parametrize("scale", [1, 20, 1e6])
def test_labelled_floats_are_rounded_once_too(labels, scale):
    """Labels are summed out and shared in doubles, whatever the scores are: the same numbers, rounded once."""
    scores = np.random.default_rng(labels).normal(size=(6, 14, 14, labels)).astype(np.float32) * np.float32(scale)
    single = spantree.TreeDistribution(scores, labelled=True)
    double = spantree.TreeDistribution(scores.astype(np.float64), labelled=True)
    np.testing.assert_array_equal(single.marginals(), double.marginals().astype(np.float32))
    np.testing.assert_array_equal(single.log_partition(), double.log_partition().astype(np.float32))
    np.testing.assert_array_equal(single.entropy(), double.entropy().astype(np.float32))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(sentences(), st.sampled_from(ROOTS), st.floats(-50, 50))
def test_a_column_constant_only_shifts_log_partition(sentence, root, constant):
    scores, rng = sentence
    dist = solved(scores, root)
    if dist is None:
        return
    word = rng.integers(1, len(scores))
    moved = scores.copy()
    moved[:, word] += constant
    other = solved(moved, root)
    np.testing.assert_allclose(other.log_partition(), dist.log_partition() + constant, rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(other.marginals(), dist.marginals(), rtol=1e-10, atol=1e-200)
    np.testing.assert_allclose(other.entropy(), dist.entropy(), rtol=1e-9, atol=1e-10)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(sentences(), st.sampled_from(ROOTS))
def test_relabelling_words_permutes_the_answer(sentence, root):
    scores, rng = sentence
    order = np.concatenate([[0], 1 + rng.permutation(len(scores) - 1)])
    dist, other = solved(scores, root), solved(scores[np.ix_(order, order)], root)
    assert (dist is None) == (other is None)
    if dist is None:
        return
    np.testing.assert_allclose(other.log_partition(), dist.log_partition(), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(other.marginals(), dist.marginals()[np.ix_(order, order)], rtol=1e-10, atol=1e-200)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(sentences(), st.sampled_from(ROOTS))
def test_conditioning_agrees_with_marginals(sentence, root):
    scores, rng = sentence
    dist = solved(scores, root)
    if dist is None:
        return
    head, dep = (int(x) for x in rng.permutation(np.argwhere(dist.marginals() > 1e-12))[0])
    given_edge = dist.condition(include=[(head, dep)])
    log_marginal = np.log(dist.marginals()[head, dep])
    np.testing.assert_allclose(given_edge.log_partition() - dist.log_partition(), log_marginal, rtol=1e-9, atol=1e-10)
    if dist.marginals()[head, dep] < 1 - 1e-6:
        without = dist.condition(exclude=[(head, dep)])
        mixture = np.exp(log_marginal) * given_edge.marginals() - np.expm1(log_marginal) * without.marginals()
        np.testing.assert_allclose(mixture, dist.marginals(), rtol=1e-8, atol=1e-12)


def test_structural_zeros_by_hand():
    """ROOT's only child is forced; two words hang on it; a bridge leads to a pair that only knows each other."""
    scores = np.full((6, 6), -np.inf)
    scores[0, 1] = 0.3
    scores[1, 2] = scores[1, 3] = scores[2, 3] = 0.0
    scores[3, 4] = 1.0
    scores[4, 5] = scores[5, 4] = 2.0
    dist = spantree.TreeDistribution(scores)
    expected = np.zeros((6, 6))
    expected[0, 1] = expected[1, 2] = expected[3, 4] = expected[4, 5] = 1.0
    expected[1, 3] = expected[2, 3] = 0.5
    np.testing.assert_allclose(dist.marginals(), expected, rtol=1e-15)
    np.testing.assert_allclose(dist.log_partition(), 0.3 + np.log(2) + 1.0 + 2.0, rtol=1e-15)
    np.testing.assert_allclose(dist.entropy(), np.log(2), rtol=1e-13)


def test_two_components():
    """Single root: a tree cannot join them. Several roots: the two are independent."""
    scores = np.full((5, 5), -np.inf)
    scores[0, 1:] = 0.0
    scores[1, 2] = scores[2, 1] = scores[3, 4] = scores[4, 3] = 0.0
    with pytest.raises(spantree.InfeasibleError):
        spantree.log_partition(scores)
    np.testing.assert_allclose(spantree.log_partition(scores, root="multi"), 2 * np.log(3), rtol=1e-14)


def test_a_batch_with_special_sentences_changes_nobody_else():
    rng = np.random.default_rng(5)
    scores = rng.normal(size=(16, 9, 9))
    plain = everything(spantree.TreeDistribution(scores))
    scores[3] *= 500
    scores[5, 1:, 4] = -np.inf
    scores[9] = -np.inf
    mixed = everything(spantree.TreeDistribution(scores, on_infeasible="mask"))
    others = [i for i in range(16) if i not in (3, 5, 9)]
    for a, b in zip(plain, mixed, strict=True):
        np.testing.assert_array_equal(a[others], b[others])
    assert mixed[0][9] == -np.inf
    np.testing.assert_array_equal(mixed[1][5, 1:, 4], 0.0)


def test_distributions_that_cannot_be_compared():
    p = spantree.TreeDistribution(np.zeros((3, 3)))
    with pytest.raises(ValueError, match="same sentences"):
        p.kl(spantree.TreeDistribution(np.zeros((4, 4))))
    with pytest.raises(ValueError, match="agree in root"):
        p.kl(spantree.TreeDistribution(np.zeros((3, 3)), root="multi"))


def test_signs():
    """Sharp distributions: what rounding errors leave is no probability above 1 and no entropy below 0."""
    rng = np.random.default_rng(11)
    scores = rng.normal(size=(2000, 3, 3)) * 10.0 ** rng.uniform(-2, 3, (2000, 1, 1))
    scores[rng.random(scores.shape) < 0.2] -= 1e4
    for projective in (False, True):
        dist = spantree.TreeDistribution(scores, projective=projective)
        assert (dist.entropy() >= 0.0).all()
        assert (dist.entropy(with_grad=True)[0] >= 0.0).all()
        assert (dist.renyi_entropy(2.0) >= 0.0).all()
        assert (dist.log_prob(dist.argmax()) <= 0.0).all()
        assert (dist.complete(np.full((2000, 3), -2))[1] <= 1.0).all()
