"""Log-partition, marginals and their derivatives against enumeration and 400-digit arithmetic, at every scale."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import spantree
from projective.many_digits import chart_in_many_digits
from projective.reference import (
    Sentences,
    Solved,
    argmax,
    covariances,
    log_partition,
    marginals,
    projective_trees,
    random_sentences,
    tree_scores,
)

MODES = pytest.mark.parametrize("root", ["single", "multi"])


class Enumerated:
    """The distribution as a table of all trees, in 400 digits."""

    def __init__(self, scores, root):
        self.shape = scores.shape
        self.deps = np.arange(1, len(scores))
        trees = projective_trees(len(scores) - 1, root)
        self.trees = trees[np.isfinite(tree_scores(scores, trees))]
        weights = [
            mpmath.exp(mpmath.fsum(map(mpmath.mpf, scores[tree[1:], self.deps].tolist()))) for tree in self.trees
        ]
        self.total = mpmath.fsum(weights)
        self.log_partition = mpmath.log(self.total)
        self.probability = [weight / self.total for weight in weights]

    def per_edge(self, tree_values):
        """Sums, over the trees that have an edge, a number per tree."""
        result = np.full(self.shape, mpmath.mpf(0), dtype=object)
        for tree, value in zip(self.trees, tree_values, strict=True):
            result[tree[1:], self.deps] += value
        return result

    def marginals(self):
        return self.per_edge(self.probability)

    def sums(self, values):
        return [mpmath.fsum(map(mpmath.mpf, values[tree[1:], self.deps].tolist())) for tree in self.trees]

    def expectation(self, values):
        return mpmath.fsum(p * x for p, x in zip(self.probability, self.sums(values), strict=True))

    def covariances(self, values):
        mean = self.expectation(values)
        return self.per_edge([p * (x - mean) for p, x in zip(self.probability, self.sums(values), strict=True)])

    def third(self, u, g):
        """E[(u - E u) (g - E g) (edge - E edge)]"""
        mean_u, mean_g = self.expectation(u), self.expectation(g)
        both = [(x - mean_u) * (y - mean_g) for x, y in zip(self.sums(u), self.sums(g), strict=True)]
        mean = mpmath.fsum(p * x for p, x in zip(self.probability, both, strict=True))
        return self.per_edge([p * (x - mean) for p, x in zip(self.probability, both, strict=True)])

    def entropy(self):
        return -mpmath.fsum(p * mpmath.log(p) for p in self.probability)


@pytest.fixture(autouse=True)
def many_digits():
    with mpmath.workdps(400):
        yield


def assert_relative(found, expected, tolerance, floor=1e-250):
    """Entry by entry; entries below the floor may be anything from 0 up to twice it."""
    for x, y in zip(np.ravel(found), np.ravel(expected), strict=True):
        if abs(y) > floor:
            assert abs(mpmath.mpf(float(x)) - y) <= tolerance * abs(y), (x, y)
        else:
            assert abs(x) <= 2 * floor


def assert_marginals_are_probabilities(found):
    assert (found >= 0).all()
    assert (found[:, 0] == 0).all()
    assert (np.diagonal(found) == 0).all()
    np.testing.assert_allclose(found[:, 1:].sum(axis=0), 1.0, rtol=1e-14)


@MODES
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("density", [1.0, 0.6])
@pytest.mark.parametrize("scale", [1.0, 100.0, 2000.0])
def test_log_partition_and_marginals_by_enumeration(root, dtype, density, scale):
    for raw in random_sentences(21, 14, words=(1, 2, 3, 4, 5), density=density):
        scores = (scale * raw).astype(dtype)
        log_z, found = marginals(scores, root)
        trees = projective_trees(len(scores) - 1, root)
        if not np.isfinite(tree_scores(scores.astype(float), trees)).any():
            assert log_z == -np.inf
            assert (found == 0).all()
            continue
        exact = Enumerated(scores.astype(float), root)
        assert abs(log_z - exact.log_partition) <= 1e-13 * max(1, abs(exact.log_partition))
        assert_marginals_are_probabilities(found)
        assert_relative(found, exact.marginals(), 1e-13)
        assert log_partition(Sentences(scores), root)[0] == log_z


@MODES
@pytest.mark.parametrize(("words", "scale"), [(17, 1), (26, 10), (12, 50), (20, 100), (22, 300), (14, 2000)])
def test_longer_sentences_at_every_scale(root, words, scale):
    for raw in random_sentences(22, 1, words=(words,)):
        scores = scale * raw
        exact_log_z, exact = chart_in_many_digits(scores, root)
        log_z, found = marginals(scores, root)
        assert abs(log_z - exact_log_z) <= 1e-14 * abs(exact_log_z)
        assert_marginals_are_probabilities(found)
        assert_relative(found, exact, 1e-12)


def test_the_two_references_agree():
    scores = next(random_sentences(23, 1, words=(5,)))
    for root in ("single", "multi"):
        table = Enumerated(scores, root)
        log_z, found = chart_in_many_digits(scores, root)
        assert abs(log_z - table.log_partition) < 1e-50
        assert max(abs(x) for x in np.ravel(found - table.marginals())) < 1e-50


@MODES
@pytest.mark.parametrize("words", [1, 2, 5, 8, 40, 299, 300, 450])
def test_counts_of_trees(root, words):
    """With all scores 0, Z counts trees: C(3n, n) / (2n + 1) with several roots, C(3n - 2, n - 1) / n with one."""
    log_z = log_partition(Sentences(np.zeros((words + 1, words + 1))), root)[0]
    multi = mpmath.binomial(3 * words, words) / (2 * words + 1)
    single = mpmath.binomial(3 * words - 2, words - 1) / words
    assert abs(log_z - mpmath.log(multi if root == "multi" else single)) <= 1e-13 * max(1, log_z)


@MODES
def test_structural_zeros(root):
    """A chain of forced edges, a word that only ROOT can take, and a bridge: certain edges are certain."""
    chain = np.full((6, 6), -np.inf)
    chain[np.arange(5), np.arange(1, 6)] = [1.0, -700.0, 3.0, -2000.0, 5.0]
    log_z, found = marginals(chain, root)
    assert log_z == 1.0 - 700.0 + 3.0 - 2000.0 + 5.0
    np.testing.assert_array_equal(found, np.isfinite(chain))
    assert (covariances(chain, root, np.arange(36.0).reshape(6, 6)) == 0).all()
    scores = np.random.default_rng(24).normal(size=(6, 6))
    scores[1:, 3] = -np.inf
    assert marginals(scores, root)[1][0, 3] == 1.0
    scores[:3, 5] = -np.inf
    exact = Enumerated(scores, root)
    assert_relative(marginals(scores, root)[1], exact.marginals(), 1e-13)


@MODES
@pytest.mark.parametrize("mask", [-1e4, -1e9, -1e30, -1e300])
def test_soft_masks(root, mask):
    """Masked edges have no mass where a tree can do without them, and cost what they say where none can."""
    for hard in random_sentences(25, 10, words=(3, 5, 9), density=0.6):
        soft = np.where(np.isneginf(hard), mask, hard)
        hard_log_z, hard_marginals = marginals(hard, root)
        log_z, found = marginals(soft, root)
        if hard_log_z > -np.inf:
            assert log_z == pytest.approx(hard_log_z, rel=1e-13)
            np.testing.assert_allclose(found, hard_marginals, rtol=1e-12)
        else:
            assert_marginals_are_probabilities(found)
            assert log_z == pytest.approx(argmax(Sentences(soft), root)[1][0], rel=1e-3)


@MODES
def test_layout_and_padding(root):
    for scores in random_sentences(26, 3, words=(4, 9, 30)):
        log_z, found = marginals(scores, root)
        transposed_log_z, transposed = marginals(scores, root, dep_major=True)
        assert log_z == transposed_log_z
        np.testing.assert_array_equal(found, transposed.reshape(scores.shape).T)


@MODES
@pytest.mark.parametrize("scale", [1.0, 30.0, 300.0, 2000.0])
def test_covariances_by_enumeration(root, scale):
    """Relative to the exact covariances even where nearly all mass is in one tree."""
    rng = np.random.default_rng(27)
    for raw in random_sentences(28, 8, words=(1, 2, 3, 4, 5), density=0.9):
        scores = scale * raw
        if marginals(scores, root)[0] == -np.inf:
            continue
        exact = Enumerated(scores, root)
        directions = [rng.normal(size=scores.shape), rng.normal(size=scores.shape)]
        found = covariances(scores, root, *directions)
        for direction, result in zip(directions, found, strict=True):
            expected = exact.covariances(direction)
            tolerance = 1e-12 if scale > 1 else 1e-13
            largest = max(abs(x) for x in np.ravel(expected))
            for x, y in zip(np.ravel(result), np.ravel(expected), strict=True):
                assert abs(mpmath.mpf(float(x)) - y) <= max(tolerance * largest, 1e-290)


@MODES
def test_derivatives_of_entropy_and_expectations(root):
    """The entropy, log Z - E[score], has the gradient -Cov(edge, score); E[values] has Cov(edge, values)."""
    rng = np.random.default_rng(29)
    for scores in random_sentences(30, 8, words=(2, 3, 4, 5), density=0.9):
        log_z, found = marginals(scores, root)
        if log_z == -np.inf:
            continue
        exact = Enumerated(scores, root)
        entropy = -mpmath.fsum(p * mpmath.log(p) for p in exact.probability)
        edges = np.where(found > 0, scores, 0.0)
        assert abs(log_z - (found * edges).sum() - entropy) <= 1e-13
        gradient = -covariances(scores, root, scores)[0]  # rubbish on the diagonal, -inf where edges are forbidden
        log_p = [mpmath.log(p) for p in exact.probability]
        expected = exact.per_edge([-p * (x + entropy) for p, x in zip(exact.probability, log_p, strict=True)])
        np.testing.assert_allclose(gradient, expected.astype(float), rtol=0, atol=1e-14)
        values = rng.normal(size=scores.shape)
        assert abs((found * values).sum() - exact.expectation(values)) <= 1e-13


@MODES
@pytest.mark.parametrize("scale", [1.0, 40.0])
def test_covariances_of_longer_sentences_by_differences(root, scale):
    """Central differences of the 400-digit marginals along the direction."""
    rng = np.random.default_rng(31)
    scores = scale * next(random_sentences(32, 1, words=(13,)))
    direction = rng.normal(size=scores.shape)
    step = 2.0**-20
    up, down = (chart_in_many_digits(scores + sign * step * direction, root)[1] for sign in (1, -1))
    expected = (up - down) / (2 * step)
    np.testing.assert_allclose(covariances(scores, root, direction)[0], expected.astype(float), rtol=0, atol=1e-9)


@MODES
def test_covariance_is_symmetric(root):
    rng = np.random.default_rng(33)
    for scores in random_sentences(34, 3, words=(7, 24, 41)):
        r, s = rng.normal(size=(2, *scores.shape))
        cov_r, cov_s = covariances(scores, root, r, s)
        assert (cov_r * s).sum() == pytest.approx((cov_s * r).sum(), rel=1e-11)
        np.testing.assert_allclose(cov_r.sum(axis=0), 0, atol=1e-14)
        assert (cov_r * r).sum() > 0


@MODES
def test_neighbours_in_a_batch_change_no_bit(root):
    sentences = list(random_sentences(35, 12, words=(1, 6, 20, 7, 7, 33)))
    sentences += [500 * s for s in sentences]
    batch = Sentences(*sentences)
    together = log_partition(batch, root)
    alone = [log_partition(Sentences(s), root)[0] for s in sentences]
    np.testing.assert_array_equal(together, alone)


@MODES
def test_tiny_and_infeasible(root):
    infeasible = np.full((3, 3), -np.inf)
    infeasible[0, 1] = 0.0
    log_z = log_partition(Sentences(np.full((1, 1), np.nan), np.array([[np.nan, 2.0], [1.0, 7.0]]), infeasible), root)
    assert log_z.tolist() == [0.0, 2.0, -np.inf]
    assert marginals(np.array([[np.nan]]), root)[1].tolist() == [[0.0]]
    assert (covariances(infeasible, root, np.ones((3, 3))) == 0).all()


def in_many_digits(scores):
    return np.array([[mpmath.mpf(x) for x in row] for row in scores.tolist()], dtype=object)


def differences(scores, root, *directions):
    """The derivative of the marginals along one direction, or the mixed one along two, by central differences."""
    step = mpmath.mpf(10) ** -60
    if not directions:
        return chart_in_many_digits(scores, root)[1]
    first, *others = (in_many_digits(direction) for direction in directions)
    up, down = (differences(scores + sign * step * first, root, *others) for sign in (1, -1))
    return (up - down) / (2 * step)


def assert_close(found, expected, tolerance):
    for x, y in zip(np.ravel(found), np.ravel(expected), strict=True):
        assert abs(mpmath.mpf(float(x)) - y) <= tolerance, (x, y)


@MODES
@pytest.mark.parametrize("scale", [1.0, 30.0, 300.0])
def test_third_derivatives_by_enumeration(root, scale):
    rng = np.random.default_rng(61)
    for raw in random_sentences(62, 8, words=(1, 2, 3, 4, 5), density=0.9):
        scores = scale * raw
        solved = Solved(scores, root)
        u, g = rng.normal(size=(2, *scores.shape))
        if solved.rest == -np.inf:
            assert (solved.third(u, g) == 0).all()
            continue
        exact = Enumerated(scores, root)
        assert_close(solved.hessian(g)[0], exact.covariances(g), 1e-14)
        assert_close(solved.third(u, g), exact.third(u, g), 3e-14)
        assert abs(solved.entropy() - exact.entropy()) <= 1e-14


@MODES
@pytest.mark.parametrize("scale", [1.0, 20.0, 100.0, 300.0])
def test_derivatives_of_longer_sentences_in_many_digits(root, scale):
    rng = np.random.default_rng(63)
    scores = scale * next(random_sentences(64, 1, words=(9,)))
    u, g = rng.uniform(-1, 1, size=(2, *scores.shape))
    solved, exact = Solved(scores, root), in_many_digits(scores)
    assert_close(solved.hessian(g)[0], differences(exact, root, g), 1e-14)
    assert_close(solved.third(u, g), differences(exact, root, u, g), 1e-13)


@MODES
@pytest.mark.parametrize("scale", [1.0, 200.0])
def test_derivatives_with_labels(root, scale):
    """Labels are parallel edges: each labelled tree is listed."""
    rng = np.random.default_rng(65)
    words, labels = 3, 2
    scores = scale * rng.normal(size=(words + 1, words + 1, labels))
    scores[1, 2, 0] = scores[0, 3, 1] = -np.inf
    u, g = rng.normal(size=(2, *scores.shape))
    trees = projective_trees(words, root)[:, 1:]
    choices = np.array(list(np.ndindex(*[labels] * words)))
    edges = [(tree, np.arange(1, words + 1), choice) for tree in trees for choice in choices]
    edges = [edge for edge in edges if np.isfinite(scores[edge]).all()]
    weights = [mpmath.exp(mpmath.fsum(map(mpmath.mpf, scores[edge].tolist()))) for edge in edges]
    probability = [weight / mpmath.fsum(weights) for weight in weights]

    def mean(values):
        return mpmath.fsum(p * x for p, x in zip(probability, values, strict=True))

    def per_edge(values):
        result = np.full(scores.shape, mpmath.mpf(0), dtype=object)
        for edge, p, x in zip(edges, probability, values, strict=True):
            result[edge] += p * x
        return result

    def centred(values):
        average = mean(values)
        return [x - average for x in values]

    sum_u, sum_g = (centred([mpmath.fsum(map(mpmath.mpf, r[edge].tolist())) for edge in edges]) for r in (u, g))
    solved = Solved(scores, root, labelled=True)
    assert abs(solved.log_partition - mpmath.log(mpmath.fsum(weights))) <= 1e-13 * max(1, abs(solved.log_partition))
    assert_relative(solved.marginals(), per_edge([mpmath.mpf(1)] * len(edges)), 1e-13)
    assert_close(solved.hessian(g)[0], per_edge(sum_g), 1e-14)
    assert_close(solved.third(u, g), per_edge(centred([x * y for x, y in zip(sum_u, sum_g, strict=True)])), 1e-13)
    assert abs(solved.entropy() - mean([-mpmath.log(p) for p in probability])) <= 1e-14
    transposed = Solved(scores, root, dep_major=True, labelled=True)
    np.testing.assert_array_equal(
        transposed.hessian(g.swapaxes(0, 1))[0], solved.hessian(g)[0].swapaxes(0, 1), strict=True
    )


@MODES
@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_a_direction_s_company_changes_no_bit(root, scale):
    rng = np.random.default_rng(66)
    scores = scale * next(random_sentences(67, 1, words=(11,)))
    directions = rng.normal(size=(7, *scores.shape))
    solved = Solved(scores, root)
    together = solved.hessian(*directions)
    for direction, result in zip(directions, together, strict=True):
        np.testing.assert_array_equal(solved.hessian(direction)[0], result)
        np.testing.assert_array_equal(solved.expectation(direction)[1], result)


@MODES
@pytest.mark.parametrize("labels", [(), (3,)])
@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_entropy_has_the_same_bits_asked_first_and_later(root, labels, scale):
    scores = scale * np.random.default_rng(7).normal(size=(5, 12, 12, *labels))
    scores[2, :, 4] = -np.inf  # no tree

    def distribution():
        options = {"root": root, "projective": True, "labelled": bool(labels), "on_infeasible": "mask"}
        return spantree.TreeDistribution(scores, **options)

    value, gradient = distribution().entropy(with_grad=True)
    assert np.array_equal(np.isnan(value), np.arange(5) == 2)
    np.testing.assert_array_equal(distribution().entropy(), value)
    for first_question in ("marginals", "log_partition"):
        later = distribution()
        getattr(later, first_question)()
        for after in later.entropy(with_grad=True), later.entropy(with_grad=True):
            np.testing.assert_array_equal(after[0], value)
            np.testing.assert_array_equal(after[1], gradient)


@MODES
def test_values_of_edges_that_no_tree_has_do_not_matter(root):
    rng = np.random.default_rng(68)
    scores = rng.normal(size=(6, 6))
    scores[2, 4] = -np.inf
    scores[[1, 2, 4, 5], 3] = -1e9  # soft masks: 0 -> 3 alone is left
    solved = Solved(scores, root)
    impossible = solved.marginals() == 0
    assert impossible[[1, 2, 4, 5], 3].all()
    values = rng.normal(size=scores.shape)
    expected = solved.expectation(np.where(impossible, 0.0, values)), solved.third(values, values)
    for rubbish in (np.nan, np.inf, -np.inf):
        given = np.where(impossible, rubbish, values)
        total, gradient = solved.expectation(given)
        assert total == expected[0][0]
        np.testing.assert_array_equal(gradient, expected[0][1])
        np.testing.assert_array_equal(solved.third(given, given), expected[1])


def test_no_exponent_is_clamped():
    """Of the two trees, one is exp(1e12) times likelier than the other."""
    scores = np.array([[0, -1e12, -2e12], [0, 0, 0], [0, 0, 0.0]])
    for root in ("single", "multi"):
        np.testing.assert_array_equal(marginals(scores, root)[1], [[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    dist = spantree.TreeDistribution(scores, projective=True)
    assert (dist.sample(200, rng=0) == [-1, 0, 1]).all()


@MODES
def test_a_large_score_common_to_a_column(root):
    """A padding word masked by -1e30 instead of `lengths`: it hangs on all others alike, and changes no probability."""
    inner = np.array([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]])
    scores = np.full((4, 4), -1e30)
    scores[:3, :3] = inner
    u, g = np.random.default_rng(69).normal(size=(2, 4, 4))
    exact = Enumerated(np.where(scores < -1e29, 0.0, scores), root)
    if root == "multi":  # ROOT, too, may take the word
        assert len(exact.trees) > 7
    solved = Solved(scores, root)
    trees = [tree for tree in projective_trees(3, root) if root == "multi" or tree[3] != 0]
    weights = [mpmath.exp(mpmath.fsum(scores[h, d] for d, h in enumerate(tree[1:3], 1))) for tree in trees]
    probability = [weight / mpmath.fsum(weights) for weight in weights if weight > 0]
    assert abs(solved.entropy() + mpmath.fsum(p * mpmath.log(p) for p in probability)) <= 1e-14
    assert solved.log_partition < -0.9e30
    assert np.isfinite(solved.third(u, g)).all()


@MODES
def test_infeasible_sentences(root):
    scores = np.full((3, 3), -np.inf)
    scores[0, 1] = 0.0
    solved = Solved(scores, root)
    assert solved.rest == -np.inf
    assert np.isnan(solved.entropy())
    total, gradient = solved.expectation(np.ones((3, 3)))
    assert np.isnan(total)
    for zero in (gradient, solved.marginals(), solved.hessian(np.ones((3, 3))), solved.third(scores, scores)):
        assert (zero == 0).all()
