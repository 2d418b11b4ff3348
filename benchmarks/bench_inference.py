"""Inference: against batched numpy.linalg, on trained and on sharp scores, with labels, and on two threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

import spantree
from report import Report, best_times, finish, seeded
from trained_scores import treebanks
from two_threads import two_threads

SENTENCES = 64
Scores = list[npt.NDArray[np.floating]] | npt.NDArray[np.floating]


def main() -> int:
    spantree.set_threads(1)
    questions = (against_linalg, gradients, growth, trained, sharp, masked, labels, threads)
    return finish(*seeded(*questions))


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
        )
        short = n <= 40
        report.faster(f"log Z, n = {n}, against slogdet", log_z, slogdet, 3 if short else 1, SENTENCES, True)
        report.faster(
            f"marginals, n = {n}, against slogdet + inv", marginals, inverse, 4 if short else 1, SENTENCES, True
        )
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


def entropy_with_gradient(scores: Scores) -> object:
    return spantree.TreeDistribution(scores).entropy(with_grad=True)


QUESTIONS: dict[str, Callable[[Scores], object]] = {
    "marginals": spantree.marginals,
    "entropy with gradient": entropy_with_gradient,
}


def trained(rng: np.random.Generator) -> Report:
    """A whole treebank in one call, and its slowest sentence among those of its length."""
    report = Report("Scores of trained parsers; other side: normal scores of the same lengths, or the fastest sentence")
    for name, matrices in treebanks().items():
        normal = [rng.normal(size=matrix.shape).astype(np.float32) for matrix in matrices]
        for question, ask in QUESTIONS.items():
            ours, other = best_times(lambda ask=ask, m=matrices: ask(m), lambda ask=ask, m=normal: ask(m))
            report.at_most(f"{name}, {question}", ours, other, 1.15, len(matrices))
        by_length: dict[int, list[npt.NDArray[np.float32]]] = {}
        for matrix in matrices:
            by_length.setdefault(len(matrix), []).append(matrix)
        worst = (0.0, 0.0, 1.0)
        for length, alike in by_length.items():
            if length < 6 or len(alike) < 3:
                continue
            times = best_times(
                *(lambda m=matrix: spantree.marginals([m]) for matrix in alike), repeats=15, seconds=0, window=0.0003
            )
            slowest, fastest = max(times), min(times)
            worst = max(worst, (slowest / fastest, slowest, fastest))
        if worst[0]:
            report.at_most(f"{name}, slowest sentence of a length", worst[1], worst[2], 3)
    return report


def sharp(rng: np.random.Generator) -> Report:
    report = Report("Normal scores of other standard deviations, n = 40, marginals; other side: standard deviation 1")
    scores = rng.normal(size=(SENTENCES, 41, 41))
    for deviation, goal in ((50.0, 1.5), (100.0, 3.0), (300.0, 15.0)):
        ours, other = best_times(
            lambda s=scores * deviation: spantree.marginals(s), lambda: spantree.marginals(scores), repeats=10
        )
        report.at_most(f"standard deviation {deviation:g}", ours, other, goal, SENTENCES)
    return report


def masked(rng: np.random.Generator) -> Report:
    """Constraints that cut a sentence in two: they once left the fast path."""
    report = Report("Masks, n = 40, marginals and entropy with gradient; other side: nothing masked")
    scores = rng.normal(size=(SENTENCES, 41, 41))
    padding, leaf, root = scores.copy(), scores.copy(), scores.copy()
    padding[:, -2:, :] = padding[:, :, -2:] = -1e30
    leaf[:, 11] = -np.inf
    root[:, 0] = root[:, :, 7] = -np.inf
    root[:, 0, 7] = 0.0
    for name, hidden in (
        ("two words of padding at -1e30", padding),
        ("a word is nobody's head", leaf),
        ("a set root", root),
    ):
        for question, ask in QUESTIONS.items():
            ours, other = best_times(lambda ask=ask, m=hidden: ask(m), lambda ask=ask: ask(scores))
            report.at_most(f"{name}, {question}", ours, other, 1.5, SENTENCES)
    return report


def log_sum_exp(scores: np.ndarray) -> np.ndarray:
    largest = scores.max(axis=-1, keepdims=True)
    return np.log(np.exp(scores - largest).sum(axis=-1)) + largest[..., 0]


def softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights


def labels(rng: np.random.Generator) -> Report:
    report = Report("Labels, from scores to the answer; other side: NumPy doing the label step alone, or marginals")
    sentences = 16
    for dtype in (np.float32, np.float64):
        for count in (8, 40):
            for n in (20, 40):
                scores = rng.normal(size=(sentences, n + 1, n + 1, count)).astype(dtype)

                def distribution(scores: np.ndarray = scores) -> spantree.TreeDistribution:
                    return spantree.TreeDistribution(scores, labelled=True)

                log_z, sums, marginals, shares, entropy, kept = best_times(
                    lambda s=scores: spantree.log_partition(s, labelled=True),
                    lambda s=scores: log_sum_exp(s),
                    lambda s=scores: spantree.marginals(s, labelled=True),
                    lambda s=scores: softmax(s),
                    lambda d=distribution: d().entropy(with_grad=True),
                    lambda d=distribution: d().marginals(),
                )
                what = f"{dtype.__name__}, {count} labels, n = {n}"
                report.faster(f"log Z, {what}", log_z, sums, 2, sentences)
                report.faster(f"marginals, {what}", marginals, shares, 1.5, sentences)
                report.at_most(f"entropy with gradient, {what}", entropy, kept, 3, sentences)
    return report


def threads(rng: np.random.Generator) -> Report:
    report = Report("Marginals on two threads; other side: on one")
    for sentences, n in ((2000, 20), (500, 40), (128, 80)):
        scores = rng.normal(size=(sentences, n + 1, n + 1))
        two_threads(report, f"{sentences} sentences of {n} words", partial(spantree.marginals, scores))
    return report


if __name__ == "__main__":
    raise SystemExit(main())
