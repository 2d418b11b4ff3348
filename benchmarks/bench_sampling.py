"""Sampling against the cost of the random numbers it cannot do without: n doubles from numpy.random.Generator."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import spantree
from report import Report, best_times, finish, seeded
from spantree import TreeDistribution
from trained_scores import treebanks
from two_threads import two_threads


def main() -> int:
    spantree.set_threads(1)
    questions = (with_replacement, without_replacement, labelled, peaked, growth, threads)
    return finish(*seeded(*questions))


def yardstick(words: int, trees: int) -> Callable[[], object]:
    """As many doubles as there are words in the trees, into memory that is there already."""
    generator, out = np.random.default_rng(0), np.empty(words * trees)
    return lambda: generator.random(out=out)


def solve(scores: np.ndarray) -> Callable[[], object]:
    """One marginals call on a fresh distribution."""
    return lambda: TreeDistribution(scores).marginals()


def with_replacement(rng: np.random.Generator) -> Report:
    report = Report(
        "With replacement, one sentence, set-up included, one thread, per tree; other side: n random doubles"
    )
    scores, trees = rng.normal(size=(41, 41)), 10_000
    ours, unit = best_times(lambda: spantree.sample(scores, trees, rng=1), yardstick(40, trees))
    report.at_most(f"random scores, n = 40, {trees:,} trees", ours, unit, 6, trees, wide_only=True)
    trees = 2_000
    for name, matrices in treebanks().items():
        matrix = sorted(matrices, key=len)[len(matrices) // 2]
        words = len(matrix) - 1
        ours, unit = best_times(lambda matrix=matrix: spantree.sample(matrix, trees, rng=1), yardstick(words, trees))
        report.at_most(f"{name}, n = {words}, {trees:,} trees", ours, unit, 8, trees)
    return report


def without_replacement(rng: np.random.Generator) -> Report:
    report = Report("Without replacement, random scores, n = 40, one thread, per tree; other side: with replacement")
    scores, trees = rng.normal(size=(41, 41)), 1_000
    dist = TreeDistribution(scores)
    ours, with_repeats = best_times(
        lambda: dist.sample_without_replacement(trees, rng=1), lambda: dist.sample(trees, rng=1)
    )
    report.at_most(f"{trees:,} trees", ours, with_repeats, 10, trees)
    return report


def labelled(rng: np.random.Generator) -> Report:
    report = Report("40 labels, float32, one thread; other side: without labels, and NumPy's logsumexp over the labels")
    for words in (20, 40):
        scores = rng.normal(size=(words + 1, words + 1, 40)).astype(np.float32)
        arcs = np.logaddexp.reduce(scores, axis=-1)

        def sum_labels(scores: np.ndarray = scores) -> np.ndarray:
            largest = scores.max(-1, keepdims=True)
            return np.log(np.exp(scores - largest).sum(-1)) + largest[..., 0]

        for trees, goal in ((1, 1), (10, 1), (1000, 2)):  # of many trees, drawing labels for each is most of the work
            ours, plain, one_pass = best_times(
                lambda s=scores, k=trees: spantree.sample(s, k, rng=1, labelled=True),
                lambda s=arcs, k=trees: spantree.sample(s, k, rng=1),
                sum_labels,
            )
            report.at_most(f"with replacement, n = {words}, {trees:,} trees", ours, plain + one_pass, goal)
            ours, plain, one_pass = best_times(
                lambda s=scores, k=trees: TreeDistribution(s, labelled=True).sample_without_replacement(k, rng=1),
                lambda s=arcs, k=trees: TreeDistribution(s).sample_without_replacement(k, rng=1),
                sum_labels,
            )
            report.at_most(f"without replacement, n = {words}, {trees:,} trees", ours, plain + one_pass, goal)
    return report


def threads(rng: np.random.Generator) -> Report:
    report = Report("Two threads; other side: one thread")
    sentences = 200
    dist = TreeDistribution(rng.normal(size=(sentences, 21, 21)))
    dist.marginals()  # solved once, before
    what = f"20 trees of each of {sentences} sentences, n = 20"
    two_threads(report, what, lambda: dist.sample(20, rng=1))
    two_threads(report, f"{what}, none twice", lambda: dist.sample_without_replacement(20, rng=1))
    return report


def peaked(_: np.random.Generator) -> Report:
    report = Report("O(n^3) methods, one thread, per tree; other side: one marginals call on the sentence")
    scores = np.random.default_rng(1).normal(size=(41, 41))
    dist, trees = TreeDistribution(scores), 200
    ours, marginals = best_times(lambda: dist.sample(trees, rng=1, method="ancestral"), solve(scores))
    report.at_most("ancestral, random scores, n = 40", ours / trees, marginals, 3)
    trained = [matrix for matrices in treebanks().values() for matrix in matrices if 25 <= len(matrix) <= 45]
    by_peak = sorted(
        trained, key=lambda matrix: -float(TreeDistribution(matrix).sample_without_replacement(1, rng=0).log_probs[0])
    )
    for matrix in by_peak[:3]:
        dist, words = TreeDistribution(matrix), len(matrix) - 1
        ours, marginals = best_times(lambda dist=dist: dist.sample(trees, rng=1, method="ancestral"), solve(matrix))
        report.at_most(f"ancestral, peaked sentence, n = {words}", ours / trees, marginals, 3)
        for method in ("auto", "trie", "beam"):
            ours, marginals = best_times(
                lambda dist=dist, method=method: dist.sample_without_replacement(trees, rng=1, method=method),
                solve(matrix),
            )
            report.at_most(f"without replacement, {method}, peaked sentence, n = {words}", ours / trees, marginals, 15)
    return report


def growth(rng: np.random.Generator) -> Report:
    report = Report("Without replacement, per tree: 100,000 trees; other side: 10,000 trees")
    for name, method, scores in (
        ("random, n = 40, auto", "auto", rng.normal(size=(41, 41))),
        ("random, n = 12, trie", "trie", rng.normal(size=(13, 13))),
        ("random, n = 12, beam", "beam", rng.normal(size=(13, 13))),
    ):
        dist = TreeDistribution(scores)
        few, many = best_times(
            lambda dist=dist, method=method: dist.sample_without_replacement(10_000, rng=1, method=method),
            lambda dist=dist, method=method: dist.sample_without_replacement(100_000, rng=1, method=method),
            repeats=2,
        )
        report.at_most(name, many / 100_000, few / 10_000, 1.5)
    return report


if __name__ == "__main__":
    raise SystemExit(main())
