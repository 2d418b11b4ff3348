"""Draws with replacement: the law, the fallback, the worst case.

Each statistical test rejects a correct sampler with probability at most 1e-9, and there are fewer than 1,000 in this
folder: all together raise a false alarm with probability below 1e-6. Seeds are fixed.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

import spantree
from oracle.chi_square import FALSE_ALARM, p_value
from oracle.listed import Listed
from sampling.draws import DRAWS, draw_with_budget, follows, random_graph
from spantree import TreeDistribution, zoo
from spantree.zoo.matrix_tree import log_partition, matrix_tree

WALKS = ("wilson-marginal", "wilson-reject")
METHODS = ("auto", *WALKS, "ancestral")

# Stanojevic (2022), figure 1: three trees of equal weight, two with root word 1 and one with root word 3.
FIGURE_1 = np.where([[0, 1, 0, 1], [0, 0, 1, 1], [0, 0, 0, 1], [0, 1, 0, 0]], 0.0, -np.inf)

GRAPHS = list(product((1, 2, 3, 4, 5), ("single", "multi"), (0.3, 1.0, 4.0), (0.0, 0.3)))


@pytest.mark.parametrize(("words", "root", "scale", "forbidden"), GRAPHS)
def test_law(words, root, scale, forbidden):
    """Sixty graphs by the automatic choice, and each of them by one of the other methods."""
    seed = GRAPHS.index((words, root, scale, forbidden))
    scores = random_graph(seed, words, scale, forbidden if words > 2 else 0.0, root)
    law = Listed(scores, root)
    dist = TreeDistribution(scores, root=root)
    assert follows(law, dist.sample(DRAWS, rng=seed))
    assert follows(law, dist.sample(DRAWS, rng=seed, method=METHODS[1 + seed % 3]))


@pytest.mark.parametrize(("words", "root", "scale"), list(product((3, 5), ("single", "multi"), (0.5, 4.0))))
def test_law_of_projective_trees(words, root, scale):
    scores = random_graph(100 + words, words, scale, 0.2, root, projective=True)
    heads = TreeDistribution(scores, root=root, projective=True).sample(DRAWS, rng=words)
    assert follows(Listed(scores, root, projective=True), heads)


@pytest.mark.parametrize("method", METHODS)
def test_law_on_figure_1(method):
    assert follows(Listed(FIGURE_1), TreeDistribution(FIGURE_1).sample(DRAWS, rng=1, method=method))


def test_biased_sampler_is_rejected():
    assert not follows(Listed(FIGURE_1), zoo.wilson_rc(FIGURE_1, 5_000, rng=1))


@pytest.mark.parametrize("seed", range(4))
def test_law_given_fallback_multi(seed):
    """Whether a walk ended in time says nothing about the tree."""
    scores = random_graph(200 + seed, 4, 2.0, root="multi")
    heads, fell_back = draw_with_budget(scores, DRAWS, root="multi", budget=5, seed=seed)
    assert 0.02 < fell_back.mean() < 0.98
    law = Listed(scores, "multi")
    assert follows(law, heads)
    assert follows(law, heads[fell_back])
    assert follows(law, heads[~fell_back])


@pytest.mark.parametrize("seed", range(4))
def test_law_given_fallback_single(seed):
    """By rejection the same holds; with the root word drawn first, it holds given the root word."""
    scores = random_graph(300 + seed, 4, 2.0)
    law = Listed(scores)
    heads, fell_back = draw_with_budget(scores, DRAWS, root="single", method="wilson_reject", budget=16, seed=seed)
    assert 0.01 < fell_back.mean() < 0.99
    assert follows(law, heads[fell_back])
    assert follows(law, heads[~fell_back])
    heads, fell_back = draw_with_budget(scores, DRAWS, root="single", method="wilson_marginal", budget=5, seed=seed)
    assert 0.02 < fell_back.mean() < 0.98
    assert follows(law, heads)
    for root_word in range(1, 5):
        given_root = np.where(np.arange(5) == root_word, scores, -np.inf)[:1]
        conditioned = Listed(np.vstack([given_root, scores[1:]]))
        for part in (fell_back, ~fell_back):
            chosen = heads[part & (heads[:, root_word] == 0)]
            assert len(chosen) == 0 or follows(conditioned, chosen)


def test_law_in_long_sentences():
    """More words than fit the short sentences' way of finding cycles; and the same words in both ways."""
    for words in (31, 32, 63, 64, 90):
        rng = np.random.default_rng(words)
        scores = rng.normal(size=(words + 1, words + 1)) * 2
        _, marginals = matrix_tree(scores)
        heads = TreeDistribution(scores).sample(20_000, rng=words)
        assert spantree.is_tree(heads).all()
        assert_frequencies(heads, marginals)


def assert_frequencies(heads, marginals):
    """Edge frequencies against marginals: the largest of all deviations."""
    k, words = len(heads), heads.shape[1] - 1
    counts = np.zeros((words + 1, words + 1))
    np.add.at(counts, (heads[:, 1:], np.arange(1, words + 1)), 1)
    expected = k * marginals
    usual = (expected > 25) & (k - expected > 25)
    z = (counts - expected)[usual] / np.sqrt(expected * (1 - marginals))[usual]
    assert (
        np.abs(z).max(initial=0.0) < stats.norm.isf(FALSE_ALARM / 2 / max(1, z.size)) * 1.2
    )  # binomial tails are wider
    rare = expected <= 25
    assert (stats.poisson.sf(counts[rare] - 1, expected[rare] * (1 + 1e-9)) > FALSE_ALARM / rare.sum()).all()


def test_edge_frequencies_on_trained_scores(trained_sentences):
    for scores in trained_sentences:
        marginals = matrix_tree(scores.astype(float))[1].clip(0.0, 1.0)
        heads = TreeDistribution(scores).sample(1_000_000 // len(trained_sentences), rng=3)
        assert_frequencies(heads, marginals)


def endless(words=8):
    """Pairs of words that are each other's head but for one time in 1e12."""
    scores = np.full((words + 1, words + 1), -30.0)
    for word in range(1, words, 2):
        scores[word, word + 1] = scores[word + 1, word] = 0.0
    return scores


@pytest.mark.parametrize("root", ["single", "multi"])
@pytest.mark.parametrize("method", METHODS)
def test_walks_that_would_take_ages(root, method):
    scores = endless(4)
    assert follows(Listed(scores, root), TreeDistribution(scores, root=root).sample(20_000, rng=2, method=method))


@pytest.mark.parametrize("method", METHODS)
def test_slow_given_some_root_words_only(method):
    """Words 3 and 4 are a trap unless one of them is the root."""
    scores = random_graph(5, 4)
    scores[[1, 2], 3:] = -40.0
    scores[0, 1:] = [-3.0, -5.0, -38.0, -37.0]
    assert follows(Listed(scores), TreeDistribution(scores).sample(DRAWS, rng=4, method=method))


@pytest.mark.parametrize("scale", [1, 30, 100, 300, 1000])
@pytest.mark.parametrize("root", ["single", "multi"])
def test_any_range_of_scores(scale, root):
    """The law at scales where weights are far out of the range of doubles; two trees a hair apart keep their odds."""
    for seed in range(3):
        scores = random_graph(seed, 5, scale, root=root)
        best, second = TreeDistribution(scores, root=root).topk(2).heads
        differ = np.flatnonzero(best != second)[0]
        gap = TreeDistribution(scores, root=root).score(np.stack([best, second]))
        scores[second[differ], differ] += gap[0] - gap[1]
        law = Listed(scores, root)
        for method in METHODS:
            assert follows(law, TreeDistribution(scores, root=root).sample(2_000, rng=seed, method=method))


@pytest.mark.parametrize("root", ["single", "multi"])
@pytest.mark.parametrize(("scale", "tolerance"), [(1, 1e-12), (20, 1e-12), (300, 2e-11)])
def test_product_of_conditionals_is_the_probability(root, scale, tolerance):
    """By 1e-12, or what remains of it when two numbers of several thousands are subtracted."""
    from spantree import _core
    from spantree._batch import Batch

    rng = np.random.default_rng(scale)
    scores = rng.normal(scale=scale, size=(31, 31))
    dist = TreeDistribution(scores, root=root)
    sample = dist.sample_without_replacement(20, rng=0)
    product_of = np.empty(1)
    batch = Batch.read(scores)
    for heads, log_prob in zip(sample.heads, sample.log_probs, strict=True):
        _core.conditional_log_probs(batch.core, getattr(_core.Root, root), heads, product_of)
        assert abs(product_of[0] - log_prob) < tolerance
    if scale == 1:
        np.testing.assert_allclose(sample.log_probs, dist.score(sample.heads) - log_partition(scores, root), atol=1e-12)


def test_soft_masks():
    """Edges at -1e30 are used only where no tree can do without, and then in proportion."""
    for mask in (-1e4, -1e9, -1e30):
        scores = random_graph(3, 4)
        hard = scores.copy()
        scores[2, [1, 3]] = mask
        hard[2, [1, 3]] = -np.inf
        for method in METHODS:
            assert follows(Listed(hard), TreeDistribution(scores).sample(20_000, rng=1, method=method))


def test_conditioned_and_masked():
    scores = random_graph(8, 4)
    dist = TreeDistribution(scores).condition(include=[(2, 1)], exclude=[(0, 3)])
    allowed = scores.copy()
    allowed[[0, 1, 3, 4], 1] = -np.inf
    allowed[0, 3] = -np.inf
    forced_root = TreeDistribution(scores).condition(include=[(0, 4)])
    only_root = scores.copy()
    only_root[1:, 4] = -np.inf
    for method in METHODS:
        assert follows(Listed(allowed), dist.sample(20_000, rng=1, method=method))
        assert follows(Listed(only_root), forced_root.sample(20_000, rng=1, method=method))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equally_likely_labels_are_the_first_bits_of_what_is_drawn(dtype):
    """Of 2^k labels, however many: where the numbers drawn begin like the labels' bounds, too."""
    bits, words = 16, 3

    def drawn(k):
        return TreeDistribution(np.zeros((words + 1, words + 1, 2**k), dtype), labelled=True).sample(300, rng=3)

    finest = drawn(bits)
    for k in (0, 1, 3, 4, 5, 9, 12, 15):
        trees = drawn(k)
        np.testing.assert_array_equal(trees.heads, finest.heads)
        np.testing.assert_array_equal(trees.labels[:, 1:], finest.labels[:, 1:] >> bits - k)


def test_labels():
    """Trees with labels, jointly: against the law of (heads, labels)."""
    rng = np.random.default_rng(0)
    labels = 3
    scores = rng.normal(size=(4, 4, labels)) * 2
    scores[1, 2, 0] = scores[2, 3, 1] = -np.inf
    law = Listed(np.logaddexp.reduce(scores, axis=-1))
    label_probs = np.exp(scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True))
    dep = np.arange(1, 4)
    for projective in (False, True):
        trees = TreeDistribution(scores, labelled=True, projective=projective).sample(DRAWS, rng=5)
        assert (trees.labels[:, 0] == -1).all()
        tree_law = law if not projective else Listed(np.logaddexp.reduce(scores, axis=-1), projective=True)
        tree = tree_law.index(trees.heads)
        code = trees.labels[:, 1:] @ labels ** np.arange(3)
        joint = np.zeros((len(tree_law), labels**3))
        for code_of, combination in enumerate(product(range(labels), repeat=3)):
            at = (np.array(combination[::-1]) * 1)[None, :]
            joint[:, code_of] = tree_law.probs * label_probs[tree_law.heads[:, 1:], dep, at].prod(1)
        counts = np.zeros_like(joint)
        np.add.at(counts, (tree, code), 1)
        assert p_value(counts, joint) > FALSE_ALARM
