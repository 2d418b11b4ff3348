"""Inputs belong to the caller, and so do results: neither is written to, nor kept to answer from."""

from __future__ import annotations

import numpy as np
import pytest

import spantree
from questions import FORMS, KINDS, arrays, ask_everything, assert_same_bits, in_form

DTYPES = [np.float64, np.float32]
WORDS = (5, 5, 3, 5, 5, 4, 5, 12)


def sentences(seed, kind, dtype):
    rng = np.random.default_rng(seed)
    labels = (2,) if kind == "labelled" else ()
    return [rng.normal(size=(n + 1, n + 1, *labels)).astype(dtype) for n in WORDS]


def overwrite(answer):
    for array in arrays(answer):
        if array.flags.writeable:
            array[...] = -7
    if isinstance(answer, list):
        answer.clear()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMS)
def test_answers_may_be_overwritten(form, kind, dtype):
    (scores, options), (others, _), (values, _) = (
        in_form(sentences(seed, kind, dtype), form, filler=1.0) for seed in range(3)
    )
    values = [abs(part) for part in values] if form == "listed" else abs(values)
    dist, other, untouched = (
        spantree.TreeDistribution(given, **options, **KINDS[kind]) for given in (scores, others, scores)
    )
    expected = ask_everything(untouched, values, other)
    for _ in range(2):
        for answer, wanted in zip(ask_everything(dist, values, other), expected, strict=True):
            assert_same_bits(answer, wanted)
            overwrite(answer)


@pytest.mark.parametrize(
    "question",
    [
        lambda dist: dist.argmax(),
        lambda dist: dist.max(),
        lambda dist: dist.topk(2),
        lambda dist: dist.log_partition(),
        lambda dist: dist.log_partition(with_grad=True),
        lambda dist: dist.marginals(),
        lambda dist: dist.entropy(),
        lambda dist: dist.entropy(with_grad=True),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMS)
def test_a_question_asked_twice(form, kind, question):
    """Asked first, so that its answer is what the solve has just written."""
    scores, options = in_form(sentences(0, kind, np.float64), form)
    dist = spantree.TreeDistribution(scores, **options, **KINDS[kind])
    overwrite(question(dist))
    untouched = spantree.TreeDistribution(scores, **options, **KINDS[kind])
    assert_same_bits(question(dist), question(untouched))
    assert_same_bits(dist.log_partition(), untouched.log_partition())
    assert_same_bits(dist.marginals(), untouched.marginals())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMS)
def test_inputs_stay_as_they_were(form, kind, dtype):
    given = [in_form(sentences(seed, kind, dtype), form, filler=1.0) for seed in range(3)]
    (scores, options), (others, other_options), (values, _) = given
    for array in arrays(values):
        np.abs(array, out=array)
    before = [array.copy() for array in arrays([scores, others, values])]
    lengths = options.get("lengths", np.empty(0)).copy()
    dist = spantree.TreeDistribution(scores, **options, **KINDS[kind])
    other = spantree.TreeDistribution(others, **other_options, **KINDS[kind])
    answers = ask_everything(dist, values, other)
    for one_liner in (spantree.decode, spantree.log_partition, spantree.marginals):
        answers.append(one_liner(scores, **options, **KINDS[kind]))
    assert_same_bits([scores, others, values], before)
    np.testing.assert_array_equal(options.get("lengths", np.empty(0)), lengths)
    for answer in arrays(answers):
        assert not any(np.shares_memory(answer, array) for array in arrays([scores, others, values]))


def test_masks_values_and_trees_stay_as_they_were():
    scores = np.random.default_rng(4).normal(size=(3, 6, 6))
    mask = np.random.default_rng(5).random(scores.shape) < 0.9
    gold = spantree.decode(scores)
    given = [scores, mask, gold]
    before = [array.copy() for array in given]
    dist = spantree.TreeDistribution(scores, mask=mask, on_infeasible="mask")
    dist.score(gold), dist.log_prob(gold), dist.expected_attachment(gold, with_grad=True), dist.risk(gold)
    assert_same_bits(given, before)
