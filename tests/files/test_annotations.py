"""One call of the core says, bit for bit, what the library says about each sentence question by question."""

from __future__ import annotations

import functools
import itertools
import math
import operator

import numpy as np
import pytest

import spantree
from spantree import _core
from spantree._annotations import Options, annotate
from spantree._flat import joined

KINDS = list(itertools.product(("single", "multi"), (False, True), (0, 1, 3), (np.float32, np.float64)))
WANTED = list(itertools.product((False, True), (False, True), (1, 3)))


def sentences(labels, dtype, seed=0):
    """More than the core takes at a time, in no order: forbidden edges, none at all, sharp scores, a NaN, no words."""
    rng = np.random.default_rng(seed)
    scores = [2 * rng.normal(size=(n + 1, n + 1, max(labels, 1))) for n in rng.integers(0, 9, 90)]
    for i in range(0, 60, 3):
        scores[i][rng.random(scores[i].shape) < 0.3] = -np.inf
    scores[70] = 1e6 * rng.normal(size=(6, 6, max(labels, 1)))
    scores[71], scores[72] = np.zeros((2, 4, 4, max(labels, 1)))
    scores[71][:, 2], scores[72][1, 2, -1] = -np.inf, np.nan
    return [(one if labels else one[..., 0]).astype(dtype) for one in scores]


def turned(one, layout):
    return one.swapaxes(0, 1) if layout == "dep_head" else one


class Asked:
    """One sentence, asked question by question: trees with log-probability, P(head) and log-odds; entropy; k best."""

    def __init__(self, one, dtype, labels, layout, **options):
        self.labels, self.nodes = labels, len(one)
        keywords = {**options, "layout": layout, "labelled": labels > 0}
        nothing = np.full(len(one), -1)
        self.tree = self.mbr = ((nothing, nothing), -math.inf, np.full((len(one), 2), np.nan, dtype))
        self.entropy, self.best, self.error = math.nan, [((nothing, nothing), -math.inf)] * 3, None
        try:
            dist = spantree.TreeDistribution(one, **keywords)
            best = dist.argmax()
        except ValueError as error:
            self.error = str(error)
            return
        # in double: for the numbers that are not rounded to the type of the scores, or rounded at the end
        self.exact = spantree.TreeDistribution(one.astype(np.float64), **keywords)
        self.entropy = float(self.exact.entropy())
        marginals = turned(self.exact.marginals(), layout).reshape(len(one), len(one), max(labels, 1))
        by_head = [[in_turn(of_labels) for of_labels in row] for row in marginals.tolist()]
        self.tree, self.mbr = (self.about(self.rows(tree), by_head, dtype) for tree in (best, dist.mbr()))
        trees = dist.topk(3)
        rows = zip(trees.heads, trees.labels if labels else trees.heads, strict=True)
        there = np.isfinite(trees.scores)
        self.best = [
            (tree, self.log_prob(tree) if is_there else -math.inf) for tree, is_there in zip(rows, there, strict=True)
        ]

    def rows(self, tree):
        return (tree.heads, tree.labels) if self.labels else (tree, tree)

    def log_prob(self, tree):
        return float(self.exact.log_prob(*tree[: 2 if self.labels else 1]))

    def about(self, tree, by_head, dtype):
        pairs = [(math.nan, math.nan)]
        for dep in range(1, self.nodes):
            chosen = by_head[tree[0][dep]][dep]
            others = in_turn(by_head[head][dep] for head in range(self.nodes) if head != tree[0][dep])
            pairs.append((min(chosen, 1.0), log(chosen) - log(others)))
        with np.errstate(over="ignore"):
            return tree, self.log_prob(tree), np.array(pairs).astype(dtype)


def log(p):
    return math.log(p) if p else -math.inf


def in_turn(numbers):
    """Their sum, rounded after each: from Python 3.12 on `sum` carries along what rounding loses."""
    return functools.reduce(operator.add, numbers, 0.0)


@pytest.mark.parametrize(("root", "projective", "labels", "dtype"), KINDS)
def test_the_bits_of_separate_calls(root, projective, labels, dtype):
    scores = sentences(labels, dtype)
    for layout, temperature in itertools.product(("head_dep", "dep_head"), (1.0, 0.7)):
        which = {"root": root, "projective": projective, "temperature": temperature}
        expected = [Asked(one, dtype, labels, layout, **which) for one in scores]
        for mbr, confidence, k in WANTED:
            wanted = {"mbr": mbr, "confidence": confidence, "k": k}
            found = annotate(joined(scores), Options(labelled=labels > 0, layout=layout, **which, **wanted))
            assert (found.head_probs is None, found.best is None) == (not confidence, k == 1)
            assert found.errors.keys() == {i for i, asked in enumerate(expected) if asked.error is not None}
            check(found, expected, mbr)


def check(found, expected, mbr):
    trees = [asked.mbr if mbr else asked.tree for asked in expected]
    assert found.heads.tolist() == np.concatenate([heads for (heads, _), *_ in trees]).tolist()
    if found.labels is not None:
        assert found.labels.tolist() == np.concatenate([labels for (_, labels), *_ in trees]).tolist()
    for i, why in found.errors.items():
        assert expected[i].error in (f"the sentence {why}", f"the sentence: {why}")
    if found.head_probs is not None:
        assert found.log_prob.tolist() == [log_prob for _, log_prob, _ in trees]
        np.testing.assert_array_equal(found.entropy, [asked.entropy for asked in expected])
        pairs = np.concatenate([pairs for *_, pairs in trees])
        np.testing.assert_array_equal(found.head_probs, pairs[:, 0])
        np.testing.assert_array_equal(found.log_odds, pairs[:, 1])
        assert found.head_probs.dtype == found.log_odds.dtype == pairs.dtype
    if found.best is not None:
        for t in range(3):
            best = [asked.best[t] for asked in expected]
            assert found.best.log_probs[t].tolist() == [log_prob for _, log_prob in best]
            assert found.best.heads[t].tolist() == np.concatenate([heads for (heads, _), _ in best]).tolist()
            if found.best.labels is not None:
                assert found.best.labels[t].tolist() == np.concatenate([labels for (_, labels), _ in best]).tolist()


@pytest.mark.parametrize("labels", [0, 2])
@pytest.mark.parametrize("projective", [False, True])
def test_any_number_of_threads(labels, projective):
    scores = joined(sentences(labels, np.float32))
    options = {"labelled": labels > 0, "projective": projective, "k": 2, "temperature": 1.5}
    alone = annotate(scores, Options(one_thread=True, **options))
    before = spantree.get_threads()
    spantree.set_threads(4)
    try:
        together = annotate(scores, Options(**options))
    finally:
        spantree.set_threads(before)
    for column in ("heads", "labels", "head_probs", "log_odds", "log_prob", "entropy"):
        np.testing.assert_array_equal(getattr(alone, column), getattr(together, column))
    np.testing.assert_array_equal(alone.best.log_probs, together.best.log_probs)
    assert alone.errors == together.errors


def test_sentences_that_fill_more_than_a_piece_each():
    """Long ones alone, and some that share the lanes of a solve although there is too much of them for the cache."""
    rng = np.random.default_rng(0)
    scores = [rng.normal(size=(n + 1, n + 1)) for n in (200, 100, 100, 196, 100, 3, 100, 100, 100, 100, 100, 100)]
    found = annotate(joined(scores), Options())
    for i, one in enumerate(scores):
        dist = spantree.TreeDistribution(one)
        assert found.rows(found.heads)[i].tolist() == dist.argmax().tolist()
        assert found.entropy[i] == dist.entropy()


class Places:
    """Room for what the core says about some sentences, and the call."""

    def __init__(self, values, starts, nodes, labels=0, temperature=1.0, k=0):
        count = max(int(np.clip(nodes, 0, 99).sum()), 1)
        self.heads = np.empty(count, np.int64)
        self.status = np.empty(len(nodes), np.int32)
        trees = [np.empty(max(k, 0) * count, np.int64) for _ in range(2)]
        log_probs = np.empty(max(k, 0) * len(nodes))
        tree_labels = np.empty(count, np.int64) if labels else None
        root = _core.Root.single
        places = (np.array(starts), np.array(nodes), labels, False, None, None, None)
        given = (values, *places, root, False, 1, temperature, False, False, k)
        _core.annotate(*given, self.heads, tree_labels, None, None, None, None, *trees, log_probs, self.status)


@pytest.mark.parametrize(
    ("starts", "nodes", "labels"),
    [
        ([-1], [2], 0),
        ([0], [0], 0),
        ([0], [4], 0),
        ([6], [2], 0),
        ([0, 5], [2, 3], 0),
        ([0], [2], 3),
        ([10], [1], 0),
        ([2**62], [2**31], 0),
        ([0], [2**31], 0),
        ([0, 4], [2], 0),
        ([0], [2], -1),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_places_outside_of_the_scores(starts, nodes, labels, dtype):
    with pytest.raises(ValueError):
        Places(np.zeros(9, dtype), starts, nodes, labels)


@pytest.mark.parametrize("asked", [{"temperature": 0.0}, {"temperature": math.nan}, {"k": -1}])
def test_what_makes_no_sense(asked):
    with pytest.raises(ValueError):
        Places(np.zeros(4), [0], [2], **asked)
    with pytest.raises(ValueError):
        Places(np.zeros(4, np.int64), [0], [2])
