"""The formulas and decoders that the experiments bring themselves, against enumeration."""

from __future__ import annotations

import numpy as np
import pytest

import spantree
from spantree import zoo
from spantree.experiments import root_edges
from spantree.experiments.expectations import distance_features
from spantree.experiments.many_digits import many_digit_reference
from spantree.experiments.please_mind_the_root import by_size, decode_both_ways
from spantree.experiments.root_mass import log_tries, wilson_rc_bias
from spantree.experiments.single_root_ways import ANY_ROOTS, ONE_ROOT
from spantree.experiments.timing import compare, each


def tree_scores(scores, trees):
    return scores[trees[:, 1:], np.arange(1, trees.shape[1])].sum(axis=1)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_equation_2_counts_trees(n):
    root_edge_counts = (zoo.enumerate_trees(n, root="multi") == 0).sum(axis=1)
    for r in range(1, n + 1):
        assert root_edges.probability(r, n) == pytest.approx((root_edge_counts == r).mean(), rel=1e-14)
    assert root_edges.mean_by_formula(n) == pytest.approx(2 * n / (n + 1), rel=1e-14)


def test_expected_cost_of_preselection_over_uniform_trees():
    sizes = [1, 2, 5, 20, 100, 300]
    cost = [root_edges.mean_by_formula(n) + 1 - root_edges.probability(1, n) for n in sizes]
    assert cost == pytest.approx([2 * n / (n + 1) + 1 - (n / (n + 1)) ** (n - 1) for n in sizes], rel=1e-12)
    assert sorted(cost) == cost
    assert cost[-1] < 3 - 1 / np.e < 2.64
    assert cost[-1] == pytest.approx(3 - 1 / np.e, abs=0.01)


def test_equation_2_on_long_sentences():
    assert root_edges.mean_by_formula(300) == pytest.approx(600 / 301, rel=1e-12)


@pytest.mark.parametrize(("ways", "root"), [(ANY_ROOTS, "multi"), (ONE_ROOT, "single")])
def test_every_decoder_finds_a_best_tree(ways, root):
    rng = np.random.default_rng(3)
    trees = zoo.enumerate_trees(4, root=root)
    for _ in range(30):
        scores = rng.normal(0.0, 2.0, (5, 5))
        best = tree_scores(scores, trees).max()
        for name, decoder in ways.items():
            heads = decoder(scores)
            assert spantree.is_tree(heads, root=root), name
            assert tree_scores(scores, heads[None])[0] == pytest.approx(best, rel=1e-12), name


@pytest.mark.parametrize("root", ["single", "multi"])
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_many_digit_reference(root, scale):
    scores = np.random.default_rng(4).normal(0.0, scale, (5, 5))
    trees = zoo.enumerate_trees(4, root=root)
    log_weights = tree_scores(scores, trees)
    expected_log_z = np.logaddexp.reduce(log_weights)
    expected = np.zeros((5, 5))
    np.add.at(expected, (trees[:, 1:], np.arange(1, 5)), np.exp(log_weights - expected_log_z)[:, None])
    log_z, marginals = many_digit_reference(scores, root)
    assert log_z == pytest.approx(expected_log_z, rel=1e-14)
    np.testing.assert_allclose(marginals, expected, rtol=1e-12, atol=0)


def test_bias_of_wilson_rc():
    scores = np.random.default_rng(5).normal(0.0, 1.5, (5, 5))
    trees = zoo.enumerate_trees(4)
    probs = np.exp(tree_scores(scores, trees) - zoo.log_partition(scores))
    root_word = (trees == 0).argmax(axis=1)
    root_share = np.exp(scores[0, root_word]) / np.exp(scores[0, 1:]).sum()
    given_root = probs / np.bincount(root_word, weights=probs)[root_word]
    assert wilson_rc_bias(scores) == pytest.approx(0.5 * np.abs(root_share * given_root - probs).sum(), rel=1e-12)


def test_log_tries():
    graphs = [np.zeros((n + 1, n + 1)) for n in (1, 2, 5)]
    np.testing.assert_allclose(np.exp(log_tries(graphs)), [((n + 1) / n) ** (n - 1) for n in (1, 2, 5)])


def test_every_edge_between_words_has_one_distance():
    features = distance_features(30)
    between_words = features[1:, 1:].sum(axis=2)
    np.testing.assert_array_equal(between_words, 1 - np.eye(30))
    assert features[5, 25].argmax() == features[5, 15].argmax() == 9
    assert features[6, 5].argmax() == 10
    assert features[25, 5].argmax() == 19


def test_what_the_root_constraint_changes():
    # the best tree hangs both words on ROOT; with one root, word 2 hangs on word 1
    two_roots = np.array([[0.0, 5.0, 4.0], [0.0, 0.0, 3.0], [0.0, 1.0, 0.0]])
    one_root = np.array([[0.0, 5.0, 0.0], [0.0, 0.0, 3.0], [0.0, 1.0, 0.0]])
    gold = np.array([-1, 0, 1])
    row = decode_both_ways([two_roots, one_root, one_root, one_root], [gold, gold, gold, np.array([-1, 2, 0])])
    assert (row["sentences"], row["malformed"], row["zoo_and_core_differ"]) == (4, 0.25, 0)
    assert (row["uas"], row["exact"]) == (5 / 8, 2 / 4)
    assert (row["change_uas"], row["change_exact"]) == (pytest.approx(1 / 5), pytest.approx(1 / 2))


def test_counting_roots():
    chain = np.array([[0.0, 5.0, 0.0], [0.0, 0.0, 3.0], [0.0, 1.0, 0.0]])
    star = np.array([[0.0, 5.0, 4.0], [0.0, 0.0, 3.0], [0.0, 1.0, 0.0]])
    row = root_edges.count_roots([chain, star, star, star])
    assert (row["mean"], row["several"], row["length"], row["zoo_and_core_differ"]) == (1.75, 0.75, 2.0, 0)


def test_averages_by_training_size():
    rows = [
        {"train_sentences": size, "malformed": rate, "change_uas": 0.0, "change_exact": change}
        for size, rate, change in ((999, 0.2, None), (20, 0.4, 0.1), (1000, 0.1, 0.3), (None, 1.0, 1.0))
    ]
    high, medium, low = by_size(rows)
    assert (high["treebanks"], high["malformed"]) == (0, None)
    assert (medium["treebanks"], medium["malformed"]) == (1, 0.1)
    assert (low["treebanks"], low["change_exact"]) == (2, 0.1)
    assert low["malformed"] == pytest.approx(0.3)


def test_compare_takes_turns_on_one_thread():
    turns = []

    def way(name):
        return each(lambda one: turns.append((name, spantree.get_threads())) or one)

    spantree.set_threads(2)
    try:
        timed = compare({"a": way("a"), "b": way("b")}, [1, 2], rounds=2)
        assert spantree.get_threads() == 2
    finally:
        spantree.set_threads(None)
    assert turns == [("a", 1), ("a", 1), ("b", 1), ("b", 1)] * 2
    assert timed["a"].results == [1, 2]
    assert timed["a"].seconds > 0
