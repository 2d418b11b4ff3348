"""Fitted temperatures and calibration errors: against definitions, enumeration and optima found otherwise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import spantree


@pytest.mark.parametrize(
    "options", [{}, {"root": "multi"}, {"projective": True}, {"labelled": True}, {"layout": "dep_head"}], ids=str
)
def test_the_fitted_temperature_is_the_likeliest(options):
    rng = np.random.default_rng(0)
    labels = (2,) if options.get("labelled") else ()
    scores = 3 * rng.normal(size=(30, 6, 6, *labels))
    lengths = rng.integers(1, 6, size=30)
    gold = spantree.sample(scores, lengths=lengths, temperature=1.7, rng=1, **options)
    found = spantree.fit_temperature(scores, gold, lengths, **options)

    def loss(log_temperature):
        dist = spantree.TreeDistribution(scores, lengths=lengths, temperature=np.exp(log_temperature), **options)
        return -dist.log_prob(gold).sum()

    want = np.exp(minimize_scalar(loss, bounds=(-3, 3), method="bounded", options={"xatol": 1e-9}).x)
    np.testing.assert_allclose(found, want, rtol=1e-5)
    matrices = [matrix[: n + 1, : n + 1] for matrix, n in zip(scores, lengths, strict=True)]
    if labels:
        gold = spantree.Trees(
            [row[: n + 1] for row, n in zip(gold.heads, lengths, strict=True)],
            labels=[row[: n + 1] for row, n in zip(gold.labels, lengths, strict=True)],
        )
    else:
        gold = [row[: n + 1] for row, n in zip(gold, lengths, strict=True)]
    np.testing.assert_allclose(spantree.fit_temperature(matrices, gold, **options), found, rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_far_from_one(scale):
    scores = np.random.default_rng(1).normal(size=(50, 7, 7))
    gold = spantree.sample(scores, rng=0)
    near = spantree.fit_temperature(scores, gold)
    np.testing.assert_allclose(spantree.fit_temperature(scores * scale, gold), near * scale, rtol=1e-5)


def test_no_likeliest_temperature():
    scores = np.random.default_rng(2).normal(size=(5, 6, 6))
    with pytest.raises(ValueError, match="falls to 0"):
        spantree.fit_temperature(scores, spantree.decode(scores))
    with pytest.raises(ValueError, match="score no better than trees on average"):
        spantree.fit_temperature(scores, spantree.decode(-scores))
    with pytest.raises(ValueError, match="no gold tree is a tree"):
        spantree.fit_temperature(scores, np.zeros((5, 6), int))
    with pytest.raises(ValueError, match="one tree per sentence"):
        spantree.fit_temperature(scores, np.zeros((2, 5, 6), int))


def test_calibration_by_definition():
    rng = np.random.default_rng(3)
    scores = 2 * rng.normal(size=(40, 6, 6))
    lengths = rng.integers(1, 6, size=40)
    gold = spantree.sample(scores, lengths=lengths, temperature=2.0, rng=0)
    dist = spantree.TreeDistribution(scores, lengths=lengths)
    heads, marginals = dist.argmax(), dist.marginals()
    probability, right, exact, tree_probability = [], [], [], np.exp(dist.log_prob(heads))
    for i, n in enumerate(lengths):
        deps = np.arange(1, n + 1)
        probability += list(marginals[i, heads[i, deps], deps])
        right += list(heads[i, deps] == gold[i, deps])
        exact.append((heads[i, deps] == gold[i, deps]).all())
    found = spantree.calibration(scores, gold, lengths, bins=8)
    for reliability, p, ok in ((found.words, probability, right), (found.sentences, tree_probability, exact)):
        p, ok = np.array(p), np.array(ok)
        assert reliability.count == len(p)
        assert reliability.accuracy == pytest.approx(ok.mean())
        assert reliability.mean_probability == pytest.approx(p.mean())
        error = 0.0
        for low, high, count, expected, accuracy in reliability.bins:
            inside = (p >= low) & ((p < high) | (high == 1.0))
            assert count == inside.sum()
            if count:
                assert expected == pytest.approx(p[inside].mean())
                assert accuracy == pytest.approx(ok[inside].mean())
                error += inside.mean() * abs(p[inside].mean() - ok[inside].mean())
        assert reliability.error == pytest.approx(error)
        surest = ok[np.argsort(-p, kind="stable")]
        for coverage, precision in reliability.precision_at_coverage:
            assert precision == pytest.approx(surest[: round(coverage * len(p))].mean())
    assert found.words.precision_at_coverage[-1].tolist() == [1.0, pytest.approx(np.mean(right))]
    fitted = spantree.fit_temperature(scores, gold, lengths)
    assert spantree.calibration(scores, gold, lengths, temperature=fitted).words.error < found.words.error


def test_nothing_to_calibrate():
    nothing = spantree.calibration(np.zeros((0, 3, 3)), np.zeros((0, 3), int))
    assert nothing.words.count == nothing.sentences.count == 0
    assert np.isnan(nothing.words.error)
    infeasible = np.full((1, 3, 3), -np.inf)
    assert spantree.calibration(infeasible, [[-1, 0, 1]]).sentences.count == 0


@pytest.mark.parametrize("scale", [1e-9, 1e9, 1e25, 1e100])
def test_the_fitted_temperature_follows_the_scale(scale):
    scores = 3.0 * np.random.default_rng(0).normal(size=(60, 7, 7))
    gold = spantree.sample(scores, temperature=1.7, rng=1)
    np.testing.assert_allclose(
        spantree.fit_temperature(scores * scale, gold) / scale, spantree.fit_temperature(scores, gold), rtol=1e-5
    )


@pytest.mark.parametrize("projective", [False, True])
@pytest.mark.parametrize("root", ["single", "multi"])
def test_masks_that_trees_have_to_take(root, projective):
    """Words 1 and 2 are masked for all but each other: every tree has a mask, or two. Sums of such scores are exact."""
    rng = np.random.default_rng(3)
    scores = np.round(rng.normal(size=(60, 4, 4)) * 3 * 2.0**10) / 2.0**10
    options = {"root": root, "projective": projective}
    masked = scores.copy()
    masked[:, [0, 3], 1] -= 2.0**40
    masked[:, [0, 3], 2] -= 2.0**40
    dist = spantree.TreeDistribution(masked, **options)
    gold = spantree.sample(masked, temperature=2.0, rng=0, **options)
    behind = dist.topk(16).scores - dist.max()
    of_gold = dist.score(gold) - dist.max()

    def loss(log_b):
        b = np.exp(log_b)
        return np.sum(np.log(np.exp(b * behind).sum(0)) - b * of_gold)

    expected = np.exp(-minimize_scalar(loss, bounds=(-3, 3), method="bounded", options={"xatol": 1e-9}).x)
    assert spantree.fit_temperature(masked, gold, **options) == pytest.approx(expected, rel=1e-5)


def test_tiny_scores_have_a_temperature():
    scores = np.random.default_rng(3).normal(size=(200, 5, 5))
    gold = spantree.sample(scores, rng=0)
    expected = spantree.fit_temperature(scores, gold)
    assert spantree.fit_temperature(1e-300 * scores, gold) == pytest.approx(1e-300 * expected, rel=1e-5)
