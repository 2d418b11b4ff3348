"""Decoding against ufal.chu_liu_edmonds, numpy.argmax and networkx; how the cost grows; threads, labels, k best."""

from __future__ import annotations

from functools import partial
from importlib.metadata import version

import networkx as nx
import numpy as np
from ufal.chu_liu_edmonds import chu_liu_edmonds

import spantree
from report import Report, best_times, finish, seeded
from trained_scores import padded_batches, treebanks
from two_threads import two_threads

SENTENCES = 200


def main() -> int:
    spantree.set_threads(1)
    questions = (speed, threads, trained, growth, best_k, labels, hostile)
    return finish(*seeded(*questions))


def ufal_input(scores: np.ndarray) -> np.ndarray:
    """What ufal wants: [dep, head] in double, NaN into ROOT."""
    turned = np.ascontiguousarray(scores.T, dtype=np.float64)
    turned[0] = np.nan
    return turned


def speed(rng: np.random.Generator) -> Report:
    peer = f"ufal.chu_liu_edmonds {version('ufal.chu_liu_edmonds')}, which cannot ask for one root"
    report = Report(f"One root, batches of {SENTENCES} random sentences, one thread, per sentence; other side: {peer}")
    for n in (20, 40, 80):
        scores = rng.random((SENTENCES, n + 1, n + 1))
        turned = [ufal_input(matrix) for matrix in scores]
        ours, theirs = best_times(
            lambda scores=scores: spantree.decode(scores),
            lambda turned=turned: [chu_liu_edmonds(matrix) for matrix in turned],
        )
        report.faster(f"random, n = {n}", ours, theirs, 10, SENTENCES)

    scores = rng.random((SENTENCES, 21, 21))
    (batch,) = best_times(lambda: spantree.decode(scores))
    alone = np.mean(
        [best_times(lambda matrix=matrix: spantree.decode(matrix), seconds=0.05)[0] for matrix in scores[:40]]
    )
    report.bound(
        "a call on one 20-word sentence, beyond its share of a batch", (alone - batch / SENTENCES) * 1e6, 5, "us"
    )
    return report


def threads(rng: np.random.Generator) -> Report:
    report = Report("Two threads against one, one root, random scores")
    for count, n in ((2000, 40), (500, 80), (4000, 20)):
        scores = rng.random((count, n + 1, n + 1))
        two_threads(report, f"decode {count} sentences, n = {n}", partial(spantree.decode, scores))
    for count, n, k in ((40, 20, 20), (20, 40, 20)):
        scores = rng.random((count, n + 1, n + 1))
        two_threads(report, f"{k} best of {count} sentences, n = {n}", partial(spantree.topk, scores, k))
    return report


def trained(_: np.random.Generator) -> Report:
    report = Report(
        f"One root, trained scores (float32), padded batches of {SENTENCES} sentences of like length, one thread"
    )
    found = treebanks()
    for n in (20, 40, 80):
        around = [matrix for matrices in found.values() for matrix in matrices if abs(len(matrix) - 1 - n) <= n / 10]
        compare_trained(report, f"all treebanks, n = {n} +- 10%", around)
    for name, matrices in found.items():
        compare_trained(report, name, matrices)
    return report


def compare_trained(report: Report, name: str, matrices: list[np.ndarray]) -> None:
    if matrices:
        batches = padded_batches(matrices, SENTENCES)
        count = sum(len(lengths) for _, lengths in batches)
        turned = [ufal_input(matrix) for matrix in matrices if len(matrix) > 1]
        ours, greedy, theirs = best_times(
            lambda batches=batches: [spantree.decode(scores, lengths) for scores, lengths in batches],
            lambda batches=batches: [np.argmax(scores, axis=-2) for scores, _ in batches],
            lambda turned=turned: [chu_liu_edmonds(matrix) for matrix in turned],
            repeats=5,
        )
        if name.startswith("all"):
            report.faster(f"{name}: ufal", ours, theirs, 10, count)
        report.at_most(f"{name}: numpy.argmax(scores, axis=-2)", ours, greedy, 3, count)


def growth(rng: np.random.Generator) -> Report:
    report = Report("One root, random scores, one thread: how the cost grows")
    sizes = [100, 200, 400, 800, 1400, 2000]
    for dtype in (np.float32, np.float64):
        for layout in ("head_dep", "dep_head"):
            times = []
            for n in sizes:
                scores = [rng.random((n + 1, n + 1)).astype(dtype) for _ in range(max(3, 1000 // n))]
                decode = partial(spantree.decode, layout=layout)
                (seconds,) = best_times(lambda scores=scores, decode=decode: [decode(x) for x in scores], repeats=5)
                times.append(seconds / len(scores))
            exponent = np.polyfit(np.log(sizes), np.log(times), 1)[0]
            report.bound(f"fitted exponent of n, n = 100 to 2,000, {dtype.__name__}, {layout}", exponent, 2.2, "")
    return report


def best_k(rng: np.random.Generator) -> Report:
    peer = f"networkx {nx.__version__}, ArborescenceIterator"
    report = Report(
        f"The k best trees, one root, random scores, n = 40, one thread; other side: the best tree, or {peer}"
    )
    scores = rng.random((20, 41, 41))
    best, twenty, hundred, thousand = best_times(
        lambda: spantree.decode(scores),
        lambda: spantree.topk(scores, 20),
        lambda: spantree.topk(scores[:5], 100),
        lambda: spantree.topk(scores[:2], 1000),
        repeats=5,
    )
    report.at_most("20 best against the best", twenty, best, 80, 20)
    report.at_most("a tree of 1,000 best against one of 100 best", thousand / 2000, hundred / 500, 1.3)

    matrix = scores[0]
    graph = nx.DiGraph()
    words = range(1, 41)
    graph.add_weighted_edges_from((h, d, matrix[h, d]) for h in range(41) for d in words if h != d)

    def theirs() -> None:
        trees = nx.ArborescenceIterator(graph, minimum=False)
        for _, _tree in zip(range(3), trees, strict=False):
            pass

    ours, other = best_times(lambda: spantree.topk(matrix, 3, root="multi"), theirs, repeats=1, seconds=0)
    report.faster("3 best, several roots, against networkx", ours, other, 1000)
    return report


def labels(rng: np.random.Generator) -> Report:
    """With labels: at most what it costs without, and one pass over the scores, here numpy.max over the labels."""
    report = Report("Labels: against the same without labels and numpy.max(scores, axis=-1), batches of 20 sentences")
    for dtype in (np.float32, np.float64):
        for n in (20, 40):
            for count in (8, 40):
                scores = rng.random((20, n + 1, n + 1, count)).astype(dtype)
                plain = scores.max(axis=-1)
                distribution = spantree.TreeDistribution(scores, labelled=True)
                unlabelled = spantree.TreeDistribution(plain)
                tree, tree_plain, best, best_plain, one_pass = best_times(
                    lambda dist=distribution: dist.argmax(),
                    lambda dist=unlabelled: dist.argmax(),
                    lambda dist=distribution: dist.topk(10),
                    lambda dist=unlabelled: dist.topk(10),
                    lambda scores=scores: scores.max(axis=-1),
                )
                what = f"{dtype.__name__}, n = {n}, {count} labels"
                report.at_most(f"best tree, {what}", tree, tree_plain + one_pass, 1.0, 20)
                report.at_most(f"10 best, {what}", best, best_plain + one_pass, 1.0, 20)
    return report


def hostile(rng: np.random.Generator) -> Report:
    """Scores that need care, against ordinary ones."""
    report = Report("Scores that need care, n = 40, batches of 200 sentences; other side: random scores")
    ordinary = rng.normal(size=(SENTENCES, 41, 41))
    masked = np.where(rng.random(ordinary.shape) < 0.3, -1e9, ordinary)
    ties = rng.integers(0, 3, ordinary.shape).astype(np.float64)
    for projective in (False, True):
        decode = partial(spantree.decode, projective=projective)
        plain, soft, equal = best_times(
            lambda decode=decode: decode(ordinary),
            lambda decode=decode: decode(masked),
            lambda decode=decode: decode(ties),
        )
        kind = "projective" if projective else "any tree"
        report.at_most(f"{kind}: 30 % of the edges at -1e9", soft, plain, 1.5, SENTENCES)
        report.at_most(f"{kind}: many equal scores", equal, plain, 2, SENTENCES)
    return report


if __name__ == "__main__":
    raise SystemExit(main())
