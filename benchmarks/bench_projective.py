"""Sums over projective trees, and samples of them."""

from __future__ import annotations

import numpy as np

import spantree
from report import Report, best_times, finish, seeded

SENTENCES = 64
TREES = 200


def main() -> int:
    spantree.set_threads(1)
    return finish(*seeded(gradients, covariances, samples))


def distribution(scores: np.ndarray, **options: bool) -> spantree.TreeDistribution:
    return spantree.TreeDistribution(scores, projective=True, **options)


def gradients(rng: np.random.Generator) -> Report:
    report = Report("Entropy with gradient; other side: marginals")
    for n in (10, 20, 40):
        for scale in (1, 30):
            scores = scale * rng.normal(size=(SENTENCES, n + 1, n + 1))
            entropy, marginals = best_times(
                lambda scores=scores: distribution(scores).entropy(with_grad=True),
                lambda scores=scores: spantree.marginals(scores, projective=True),
            )
            report.at_most(f"n = {n}, scores of standard deviation {scale}", entropy, marginals, 2.5, SENTENCES)
    return report


def covariances(rng: np.random.Generator) -> Report:
    report = Report("Covariance of 16 features with 16; other side: gradients of their expectations one by one")
    for n in (10, 20, 40):
        scores = rng.normal(size=(SENTENCES, n + 1, n + 1))
        features = rng.normal(size=(SENTENCES, n + 1, n + 1, 16))

        def one_by_one(scores: np.ndarray = scores, features: np.ndarray = features) -> None:
            dist = distribution(scores)
            for feature in np.moveaxis(features, -1, 0):
                dist.expectation(feature, with_grad=True)

        covariance, gradients = best_times(
            lambda scores=scores, features=features: distribution(scores).covariance(features, features),
            one_by_one,
            repeats=3,
        )
        report.at_most(f"n = {n}", covariance, gradients, 0.75, SENTENCES)
    return report


def samples(rng: np.random.Generator) -> Report:
    report = Report(f"{TREES} trees a sentence, without replacement; other side: with replacement")
    for n in (10, 20, 40):
        for scale, labels in ((1, 0), (5, 0), (1, 20)):
            shape = (8, n + 1, n + 1, labels) if labels else (8, n + 1, n + 1)
            scores = scale * rng.normal(size=shape)
            dist = distribution(scores, labelled=labels > 0)
            without, replaced = best_times(
                lambda dist=dist: dist.sample_without_replacement(TREES, rng=0),
                lambda dist=dist: dist.sample(TREES, rng=0),
            )
            what = f"n = {n}, standard deviation {scale}" + (f", {labels} labels" if labels else "")
            report.at_most(what, without, replaced, 10, 8 * TREES)
    return report


if __name__ == "__main__":
    raise SystemExit(main())
