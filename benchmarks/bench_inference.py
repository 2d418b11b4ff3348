"""Inference against batched numpy.linalg, whose Laplacians are built beforehand, for free."""

from __future__ import annotations

import numpy as np

import spantree
from report import Report, best_times

SENTENCES = 64


def main() -> None:
    spantree.set_threads(1)
    rng = np.random.default_rng(0)
    for report in (against_linalg(rng), gradients(rng), growth(rng)):
        report.print()


def laplacians(scores: np.ndarray) -> np.ndarray:
    """Several roots allowed: the cheaper of the two to build, the same to factorise."""
    weights = np.exp(scores)
    result = -weights[:, 1:, 1:]
    words = np.arange(result.shape[1])
    result[:, words, words] = 0.0
    result[:, words, words] = weights[:, 0, 1:] - result.sum(axis=1)
    return result


def against_linalg(rng: np.random.Generator) -> Report:
    report = Report(
        f"Batches of {SENTENCES}, float64, one thread, per sentence; other side: numpy.linalg {np.__version__}"
    )
    for n in (10, 20, 40, 80, 160):
        scores = rng.normal(size=(SENTENCES, n + 1, n + 1))
        matrices = laplacians(scores)
        log_z, marginals, slogdet, inverse = best_times(
            lambda scores=scores: spantree.log_partition(scores),
            lambda scores=scores: spantree.marginals(scores),
            lambda matrices=matrices: np.linalg.slogdet(matrices),
            lambda matrices=matrices: (np.linalg.slogdet(matrices), np.linalg.inv(matrices)),
            repeats=20,
        )
        short = n <= 40
        report.faster(f"log Z, n = {n}, against slogdet", log_z, slogdet, 3 if short else 1, SENTENCES)
        report.faster(f"marginals, n = {n}, against slogdet + inv", marginals, inverse, 4 if short else 1, SENTENCES)
    return report


def gradients(rng: np.random.Generator) -> Report:
    report = Report("Entropy with gradient; other side: marginals")
    for n in (10, 20, 40):
        scores = rng.normal(size=(SENTENCES, n + 1, n + 1))
        entropy, marginals = best_times(
            lambda scores=scores: spantree.TreeDistribution(scores).entropy(with_grad=True),
            lambda scores=scores: spantree.marginals(scores),
        )
        report.at_most(f"n = {n}", entropy, marginals, 2.5, SENTENCES)
    return report


def growth(rng: np.random.Generator) -> Report:
    report = Report("Cost grows as n^3; other side: half the length")
    for n in (40, 80, 160, 320):
        long, short = rng.normal(size=(8, 2 * n + 1, 2 * n + 1)), rng.normal(size=(8, n + 1, n + 1))
        ours, half = best_times(
            lambda scores=long: spantree.marginals(scores), lambda scores=short: spantree.marginals(scores), repeats=3
        )
        report.at_most(f"marginals, n = {2 * n}", ours, half, 10, 8)
    return report


if __name__ == "__main__":
    main()
