"""Options that make no sense are refused by name, and none is taken for something else."""

from __future__ import annotations

import numpy as np
import pytest

import spantree

SCORES = np.random.default_rng(0).normal(size=(2, 4, 4))
LABELLED = np.random.default_rng(1).normal(size=(4, 4, 3))
HEADS = spantree.decode(SCORES)
DIST = spantree.TreeDistribution(SCORES)

NO_FLAGS = ["yes", "no", "", "True", 0, 1, 2, 1.0, None, [], [True], np.array([True]), np.ones(2), object()]
WITH_GRADIENT = {
    "max": lambda **given: DIST.max(**given),
    "score": lambda **given: DIST.score(HEADS, **given),
    "log_partition": lambda **given: DIST.log_partition(**given),
    "log_prob": lambda **given: DIST.log_prob(HEADS, **given),
    "entropy": lambda **given: DIST.entropy(**given),
    "cross_entropy": lambda **given: DIST.cross_entropy(DIST, **given),
    "kl": lambda **given: DIST.kl(DIST, **given),
    "renyi_entropy": lambda **given: DIST.renyi_entropy(2, **given),
    "norm": lambda **given: DIST.norm(2, **given),
    "expectation": lambda **given: DIST.expectation(SCORES, **given),
    "product_expectation": lambda **given: DIST.product_expectation(np.abs(SCORES), **given),
    "expected_attachment": lambda **given: DIST.expected_attachment(HEADS, **given),
    "risk": lambda **given: DIST.risk(HEADS, **given),
    "generalized_expectation": lambda **given: DIST.generalized_expectation(SCORES, 0.0, **given),
}
FLAGS = {
    "projective": lambda given: spantree.decode(SCORES, projective=given),
    "labelled": lambda given: spantree.decode(SCORES, labelled=given),
    "partial": lambda given: DIST.log_prob(HEADS, partial=given),
    "confidence": lambda given: spantree.annotate(SCORES, confidence=given),
}


@pytest.mark.parametrize("method", WITH_GRADIENT)
def test_with_grad_is_true_or_false(method):
    ask = WITH_GRADIENT[method]
    both = ' or "both"' if method in ("kl", "cross_entropy") else ""
    for given in NO_FLAGS:
        kind = ValueError if both and isinstance(given, str) else TypeError
        with pytest.raises(kind, match=f"with_grad must be True.*{both}, not"):
            ask(with_grad=given)
    np.testing.assert_array_equal(ask(with_grad=np.False_), ask(with_grad=False))
    for found, same in zip(ask(with_grad=np.True_), ask(with_grad=True), strict=True):
        np.testing.assert_array_equal(found, same)


def test_only_comparisons_have_both_gradients():
    with pytest.raises(TypeError, match="with_grad must be True or False, not 'both'"):
        DIST.entropy(with_grad="both")


@pytest.mark.parametrize("option", FLAGS)
def test_flags_are_true_or_false(option):
    for given in NO_FLAGS:
        with pytest.raises(TypeError, match=f"{option} must be True or False, not"):
            FLAGS[option](given)
    FLAGS[option](np.False_)


NO_NUMBERS = [
    True,
    False,
    np.True_,
    np.array(True),
    np.array(True, dtype=object),
    "2",
    b"2",
    np.array("2"),
    2j,
    [2.0],
    np.array([2.0]),
    None,
    object(),
]


@pytest.mark.parametrize(
    ("option", "ask"),
    [
        ("temperature", lambda given: spantree.TreeDistribution(SCORES, temperature=given)),
        ("temperature", lambda given: spantree.decode(SCORES, temperature=given)),
        ("temperature", lambda given: spantree.log_partition(SCORES, temperature=given)),
        ("temperature", lambda given: spantree.annotate(SCORES, temperature=given)),
        ("temperature", lambda given: spantree.calibration(SCORES, HEADS, temperature=given)),
        ("alpha", DIST.renyi_entropy),
        ("p", DIST.norm),
    ],
)
def test_numbers_are_numbers(option, ask):
    for given in NO_NUMBERS:
        with pytest.raises(TypeError, match=f"{option} must be a real number, not"):
            ask(given)
    for given in (2, np.float32(2.0), np.int8(2), np.array(2.0)):
        ask(given)


@pytest.mark.parametrize("option", ["first_sentence", "first_tree"])
def test_numbers_of_the_first_are_integers(option):
    for given in (True, np.True_, 1.0, "1", None, [1]):
        with pytest.raises(TypeError, match=f"{option} must be an integer, not"):
            DIST.sample(2, rng=0, **{option: given})
    with pytest.raises(ValueError, match=f"{option} must be 0 or more"):
        DIST.sample(2, rng=0, **{option: -1})
    for given in (np.int64(1), np.array(1)):
        DIST.sample(2, rng=0, **{option: given})


def test_ends_of_edges_are_integers():
    for edge in ((True, 2), (1, np.True_), (0.0, 1), ("0", 1), (0, 1, 1)):
        with pytest.raises(ValueError, match="include: an edge is a pair of integers"):
            DIST.condition(include=[edge])


@pytest.mark.parametrize("names", [["nsubj", "obj", "nsubj"], ["1", "root", 1]])
def test_two_labels_of_one_name(names):
    with pytest.raises(ValueError, match=r"labels: the labels 0 and 2 have the same name, '(nsubj|1)'"):
        spantree.TreeDistribution(LABELLED, labelled=True, labels=names)
    with pytest.raises(ValueError, match="have the same name"):
        spantree.TreeDistribution(LABELLED, labelled=True, labels=names, root_label=names[0])


RAGGED = [[1, 2], [3]]
LABELLED_DIST = spantree.TreeDistribution(LABELLED, labelled=True)


@pytest.mark.parametrize(
    ("option", "ask"),
    [
        ("k", DIST.topk),
        ("k", DIST.sample),
        ("k", DIST.sample_without_replacement),
        ("temperature", lambda given: spantree.TreeDistribution(SCORES, temperature=given)),
        ("bins", lambda given: spantree.calibration(SCORES, HEADS, bins=given)),
        ("limit", lambda given: DIST.argmax(limit=given)),
        ("mask", lambda given: spantree.TreeDistribution(SCORES, mask=given)),
        ("mask", lambda given: spantree.decode(SCORES, mask=given)),
        ("first_sentence", lambda given: DIST.sample(2, rng=0, first_sentence=given)),
        ("first_tree", lambda given: DIST.sample(2, rng=0, first_tree=given)),
        ("alpha", DIST.renyi_entropy),
        ("p", DIST.norm),
    ],
)
def test_rows_of_different_lengths_are_refused_by_name(option, ask):
    with pytest.raises((TypeError, ValueError), match=f"^{option} (must be|is no array)"):
        ask(RAGGED)


def test_scores_with_rows_of_different_lengths_are_refused_beside_a_mask():
    with pytest.raises(ValueError, match=r"^scores is no array"):
        spantree.decode(RAGGED, mask=np.ones((2, 2), bool))


@pytest.mark.parametrize("given", [5, 5.0, True, np.array("abc"), object(), "abc", b"abc"], ids=repr)
def test_lists_are_lists(given):
    one = spantree.TreeDistribution(SCORES[0])
    for option, ask in (
        ("words", lambda: spantree.TreeDistribution(SCORES[0], words=given)),
        ("words", lambda: spantree.TreeDistribution(SCORES, words=given)),
        ("words", lambda: spantree.TreeDistribution(SCORES, words=[given, given])),
        ("words", lambda: one.explain(given)),
        ("labels", lambda: spantree.TreeDistribution(LABELLED, labelled=True, labels=given)),
        ("labels", lambda: spantree.TreeDistribution(LABELLED, labelled=True, labels=given, root_label="a")),
        ("at_most_one", lambda: LABELLED_DIST.argmax(at_most_one=given)),
        ("at_most_one", lambda: LABELLED_DIST.argmax(at_most_one=[given])),
    ):
        with pytest.raises(ValueError, match=f"^{option} must be a list of .*, not"):
            ask()


def test_a_group_of_labels_is_not_none():
    with pytest.raises(ValueError, match=r"^at_most_one must be a list of groups of labels, .*, not None"):
        LABELLED_DIST.argmax(at_most_one=[None])


def test_lists_may_be_anything_that_has_entries():
    names = ["a", "b", "c"]
    for given in (tuple(names), np.array(names), iter(names)):
        assert "'a b c'" in repr(spantree.TreeDistribution(SCORES[0], words=given))
    assert "(a, b, c)" in repr(spantree.TreeDistribution(LABELLED, labelled=True, labels=iter(names), root_label="b"))
    expected = LABELLED_DIST.topk(5, at_most_one=[{0}, {1, 2}])
    found = LABELLED_DIST.topk(5, at_most_one=iter([np.array([0]), (1, 2)]))
    np.testing.assert_array_equal(found.heads, expected.heads)


@pytest.mark.parametrize("given", [5, "a", [len]])
def test_where_is_a_function(given):
    with pytest.raises(TypeError, match=r"^where must be a function, not"):
        DIST[0].iter_best(where=given)


@pytest.mark.parametrize("labelled", [False, True])
def test_a_mask_of_no_words(labelled):
    scores = np.zeros((1, 1, 2) if labelled else (1, 1))
    for given in ([], (), np.zeros(0, bool)):
        assert spantree.TreeDistribution(scores, labelled=labelled, mask=given).log_partition() == 0.0
        np.testing.assert_array_equal(spantree.log_partition(scores, labelled=labelled, mask=given), 0.0)
    batch = np.stack([scores, scores])
    np.testing.assert_array_equal(spantree.log_partition(batch, labelled=labelled, mask=[[], []]), [0.0, 0.0])
    with pytest.raises(ValueError, match="mask has 0 words; the matrices have room for 3"):
        spantree.decode(SCORES[0], mask=[])
