"""NaN and +inf are refused by name wherever they matter, whoever is asked, and ignored wherever they do not."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import spantree
from questions import FORMS, KINDS, LAYOUTS, ask_everything, assert_same_bits, in_form

ONE_LINERS = [
    spantree.decode,
    spantree.log_partition,
    spantree.marginals,
    partial(spantree.topk, k=2),
    partial(spantree.sample, k=2, rng=0),
]
BAD = [np.nan, np.inf]
DTYPES = [np.float32, np.float64]


def sentences(rng, count, words, kind, dtype):
    """Every third has a word less."""
    labels = (3,) if kind == "labelled" else ()
    sizes = [words + 1 - (i % 3 == 2) for i in range(count)]
    return [rng.normal(size=(size, size, *labels)).astype(dtype) for size in sizes]


def message_from_all(scores, options):
    """What the constructor says of the scores, and every one-liner after it."""
    with pytest.raises(ValueError) as refused:
        spantree.TreeDistribution(scores, **options)
    for one_liner in ONE_LINERS:
        with pytest.raises(ValueError) as also_refused:
            one_liner(scores, **options)
        assert str(also_refused.value) == str(refused.value), one_liner
    return str(refused.value)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("words", [3, 12])
@pytest.mark.parametrize("count", [1, 9, 20])
def test_the_first_bad_score_is_named(count, words, kind, dtype, layout):
    rng = np.random.default_rng(count + words)
    label = (1,) if kind == "labelled" else ()
    where = " with label 1" if kind == "labelled" else ""
    for edge in [(0, 1), (0, words - 1), (1, 2), (2, 1), (words - 1, 1), (1, words - 1)]:
        for value in BAD:
            matrices = sentences(rng, count, words, kind, dtype)
            bad = int(rng.integers(count))
            for i in range(bad, count, 2):
                matrices[i][(words - 1, words - 2, *label)] = np.nan  # later in the sentence, or in a later one
            matrices[bad][(*edge, *label)] = value
            for form in FORMS:
                scores, options = in_form(matrices[bad:] if form == "one" else matrices, form, layout)
                name = "the sentence" if form == "one" else f"sentence {bad}"
                message = message_from_all(scores, options | KINDS[kind])
                assert message.startswith(f"{name}: the score of the edge {edge[0]} -> {edge[1]}{where} is {value};")


def backgrounds(rng, words):
    shape = (words + 1, words + 1)
    yield "normal", rng.normal(size=shape)
    yield "sharp", rng.normal(size=shape) * 2000
    yield "forbidden", np.where(rng.random(shape) < 0.5, -np.inf, rng.normal(size=shape))
    yield "all forbidden", np.full(shape, -np.inf)
    yield "masked", np.where(rng.random(shape) < 0.5, -1e30, rng.normal(size=shape))


@pytest.mark.parametrize("company", [0, 8])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("words", [1, 2, 3, 4, 5, 9, 17])
def test_no_other_score_hides_a_bad_one(words, kind, company):
    """Zero weights, weights out of range and sentences without a tree included."""
    rng = np.random.default_rng(words)
    labels = (2,) if kind == "labelled" else ()
    edges = [(head, dep) for head in range(words + 1) for dep in range(1, words + 1) if head != dep]
    for head, dep in edges if words < 5 else rng.permutation(edges)[:12]:
        for background, matrix in backgrounds(rng, words):
            for value in BAD:
                good = rng.normal(size=(company, *matrix.shape, *labels))
                scores = np.stack([*good, np.broadcast_to(matrix.T, (*labels, *matrix.shape)).T])
                scores[(-1, head, dep, *[-1 for _ in labels])] = value
                message = message_from_all(scores, KINDS[kind])
                assert f"sentence {company}: the score of the edge {head} -> {dep}" in message, background


@pytest.mark.parametrize("kind", KINDS)
def test_a_bad_score_is_worse_than_a_missing_tree(kind):
    matrices = sentences(np.random.default_rng(0), 9, 6, kind, np.float64)
    matrices[2][...] = -np.inf
    matrices[7][1, 2] = np.nan
    for form in ("padded", "listed"):
        scores, options = in_form(matrices, form)
        assert message_from_all(scores, options | KINDS[kind]).startswith("sentence 7: the score of the edge 1 -> 2")
        options["on_infeasible"] = "mask"
        assert message_from_all(scores, options | KINDS[kind]).startswith("sentence 7: the score of the edge 1 -> 2")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_in_a_long_sentence(dtype, layout):
    scores = np.random.default_rng(0).normal(size=(301, 301)).astype(dtype)
    for edge in [(0, 1), (0, 300), (1, 2), (1, 300), (300, 1), (300, 299), (150, 151), (296, 300), (299, 296)]:
        for value in BAD:
            bad = scores.copy()
            bad[edge] = value
            given, options = in_form([bad], "one", layout)
            for call in (spantree.TreeDistribution, spantree.decode):
                with pytest.raises(ValueError, match=rf"the edge {edge[0]} -> {edge[1]} is {value}"):
                    call(given, **options)


def test_the_first_of_many_whoever_finds_it():
    """Enough scores for several threads to look at."""
    scores = np.random.default_rng(1).normal(size=(400, 21, 21))
    scores[[390, 211, 101, 399, 250], 3, 5] = np.nan
    try:
        spantree.set_threads(4)
        for _ in range(5):
            assert message_from_all(scores, {}).startswith("sentence 101:")
    finally:
        spantree.set_threads(None)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMS)
def test_diagonal_column_zero_and_padding_change_no_bit(form, kind, dtype, layout):
    rng = np.random.default_rng(2)
    clean = [
        [m for words in (3, 12) for m in sentences(rng, 6, words, kind, dtype)] for _ in ("scores", "others", "values")
    ]
    if kind in ("projective", "labelled"):  # products of negative values are for the others only
        clean[2] = [abs(matrix) for matrix in clean[2]]

    def answers(garbage):
        given = []
        for matrices in clean:
            dirty = [matrix.copy() for matrix in matrices]
            for matrix in dirty:
                matrix[:, 0] = garbage
                matrix[np.arange(len(matrix)), np.arange(len(matrix))] = garbage
            given.append(in_form(dirty[5:] if form == "one" else dirty, form, layout, filler=garbage))
        (scores, options), (others, _), (values, _) = given
        options |= KINDS[kind]
        dist, other = spantree.TreeDistribution(scores, **options), spantree.TreeDistribution(others, **options)
        return [
            *ask_everything(dist, values, other),
            *(one_liner(scores, **options) for one_liner in ONE_LINERS),
        ]

    expected = answers(0.0)
    for garbage in (np.nan, np.inf, -np.inf, 1e38):
        for answer, wanted in zip(answers(dtype(garbage)), expected, strict=True):
            assert_same_bits(answer, wanted)
