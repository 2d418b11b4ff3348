"""Entropy and the gradient of a generalized expectation, the old ways and the new.

Zmigrod, Vieira and Cotterell (2021), "Efficient Computation of Expectations under Spanning Tree Distributions": Table 1
(entropy by T1 against Smith and Eisner's n determinants, by treebank) and section 6.4 (the gradient of the GE criterion
by T2 and by T2v, which is reverse mode, against T2h, which materialises the covariances as Druck and Smith did).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import spantree
from spantree import zoo
from spantree.zoo.t2v import second_order as by_t2v

from . import figures
from ._types import FloatArray, IntArray, Row
from .lab import Lab
from .report import Section
from .sentences import mean_length
from .tables import Column, Table
from .timing import compare, each

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PUBLISHED_ENTROPY_SPEEDUP = [(9.23, 4.1), (12.45, 5.4), (17.56, 7.3), (24.65, 10.2), (36.05, 15.1)]
"""Mean length and speed-up of T1 over Smith and Eisner in Table 1."""
PUBLISHED_GE_SPEEDUP = 9.0
"""Of T2 over T2h on English, section 6.4."""

FEATURES = 20

SECOND_ORDER = {"t2h": "T2h", "t2": "T2", "t2v": "T2v"}
"""The ways of the zoo to the gradient, each by the algorithm it is named after."""

ENTROPY_COLUMNS = [
    Column("treebank", "treebank"),
    Column("sentences", "sentences"),
    Column("length", "mean length", ".1f"),
    Column("nats_per_word", "entropy, nats / word", ".4f"),
    Column("smith_eisner", "Smith & Eisner, s", ".2e"),
    Column("t1", "T1, s", ".2e"),
    Column("core", "core, s", ".2e"),
    Column("core_batch", "core, one batch, s", ".2e"),
    Column("t1_speedup", "T1 speed-up", ".1f"),
    Column("core_speedup", "core speed-up", ".0f"),
    Column("worst_difference", "largest difference, nats", ".0e"),
]

GE_COLUMNS = [
    Column("treebank", "treebank"),
    Column("sentences", "sentences"),
    Column("length", "mean length", ".1f"),
    *(Column(way, f"{label}, s", ".2e") for way, label in SECOND_ORDER.items()),
    Column("core", "core, s", ".2e"),
    Column("t2_speedup", "T2 speed-up", ".1f"),
    Column("t2v_speedup", "T2v speed-up", ".1f"),
    Column("core_speedup", "core speed-up", ".0f"),
    *(Column(f"{way}_difference", f"{label} and core, difference", ".0e") for way, label in SECOND_ORDER.items()),
]


def conduct(lab: Lab) -> list[Section]:
    """Both tables, treebank by treebank."""
    entropy_rows = entropy(lab)
    ge_rows = generalized_expectation(lab)
    return [
        Section(
            "entropy",
            "Entropy: T1 against Smith & Eisner (Table 1)",
            Table(ENTROPY_COLUMNS, entropy_rows),
            draw_entropy(entropy_rows),
        ),
        Section(
            "gradient",
            "Gradient of the GE criterion: T2 and T2v against T2h (section 6.4)",
            Table(GE_COLUMNS, ge_rows),
            draw_gradient(ge_rows),
        ),
    ]


def entropy(lab: Lab) -> list[Row]:
    """Entropy of the sentences of each treebank."""
    setting: Row = {"at_most": lab.choose(100, 3), "rounds": lab.choose(7, 1)}

    def measure(unit: Row, rng: np.random.Generator) -> Row:
        treebank = lab.treebank(unit["treebank"])
        sentences = [treebank.scores[i] for i in chosen_sentences(treebank.uniform, unit["at_most"], rng)]
        return time_entropy(sentences, unit["rounds"])

    return lab.measure("entropy", [{**unit, **setting} for unit in lab.treebank_units()], measure)


def time_entropy(sentences: Sequence[FloatArray], rounds: int) -> Row:
    """Seconds per sentence of each way, and the entropy per word."""
    ways = {
        "smith_eisner": each(zoo.entropy_smith_eisner),
        "t1": each(zoo.entropy),
        "core": each(lambda scores: spantree.TreeDistribution(scores).entropy()),
        "core_batch": lambda batch: spantree.TreeDistribution(list(batch)).entropy(),
    }
    timed = compare(ways, sentences, rounds)
    entropies = np.array([timed[name].results for name in ways], dtype=np.float64)
    words = sum(len(scores) - 1 for scores in sentences)
    return {
        "sentences": len(sentences),
        "length": mean_length(sentences),
        "nats_per_word": float(entropies[2].sum() / words),
        **{name: timed[name].seconds for name in ways},
        "t1_speedup": timed["smith_eisner"].seconds / timed["t1"].seconds,
        "core_speedup": timed["smith_eisner"].seconds / timed["core"].seconds,
        "worst_difference": float(np.ptp(entropies, axis=0).max()),
    }


def generalized_expectation(lab: Lab) -> list[Row]:
    """GE objective and gradient of the sentences of each treebank, with the gold tree's features as the target."""
    setting: Row = {"at_most": lab.choose(40, 2), "longest": lab.choose(60, 20), "rounds": lab.choose(3, 1)}

    def measure(unit: Row, rng: np.random.Generator) -> Row:
        treebank = lab.treebank(unit["treebank"])
        lengths = treebank.lengths()
        usable = treebank.uniform & (lengths >= 5) & (lengths <= unit["longest"])
        chosen = chosen_sentences(usable, unit["at_most"], rng)
        return time_gradient([treebank.scores[i] for i in chosen], [treebank.gold[i] for i in chosen], unit["rounds"])

    return lab.measure("GE gradient", [{**unit, **setting} for unit in lab.treebank_units()], measure)


def time_gradient(sentences: Sequence[FloatArray], gold: Sequence[IntArray], rounds: int) -> Row:
    """Seconds per sentence of each way to the value and gradient of the GE criterion."""
    problems = []
    for scores, heads in zip(sentences, gold, strict=True):
        features = distance_features(len(scores) - 1)
        problems.append((scores, features, features[heads[1:], np.arange(1, len(heads))].sum(axis=0)))

    def by_core(problem: tuple[FloatArray, FloatArray, FloatArray]) -> Any:
        scores, features, target = problem
        return spantree.TreeDistribution(scores).generalized_expectation(features, target, with_grad=True)

    def by_reverse_mode(problem: tuple[FloatArray, FloatArray, FloatArray]) -> Any:
        scores, features, target = problem
        return zoo.generalized_expectation(scores, features, target, second_order=by_t2v)

    ways = {
        "t2h": each(lambda problem: zoo.generalized_expectation_druck_smith(*problem)),
        "t2": each(lambda problem: zoo.generalized_expectation(*problem)),
        "t2v": each(by_reverse_mode),
        "core": each(by_core),
    }
    timed = compare(ways, problems, rounds)
    return {
        **{
            f"{way}_difference": max(
                float(np.abs(gradient - core).max())
                for (_, gradient), (_, core) in zip(timed[way].results, timed["core"].results, strict=True)
            )
            for way in SECOND_ORDER
        },
        "sentences": len(sentences),
        "length": mean_length(sentences),
        **{name: timed[name].seconds for name in ways},
        "t2_speedup": timed["t2h"].seconds / timed["t2"].seconds,
        "t2v_speedup": timed["t2h"].seconds / timed["t2v"].seconds,
        "core_speedup": timed["t2h"].seconds / timed["core"].seconds,
    }


def distance_features(n: int) -> FloatArray:
    """Twenty indicators of an edge: how far left or right of its head the dependent is, 1 to 9 words or more.

    Returns
    -------
    FloatArray, shape (n+1, n+1, 20)
        Root edges have no feature.

    Examples
    --------
    >>> features = distance_features(3)
    >>> [int(features[head, 2].argmax()) for head in (1, 3)], float(features[0].sum())
    ([0, 10], 0.0)
    """
    head, dependent = np.meshgrid(np.arange(1, n + 1), np.arange(1, n + 1), indexing="ij")
    distance = np.minimum(np.abs(dependent - head), FEATURES // 2)
    feature = distance - 1 + np.where(dependent > head, 0, FEATURES // 2)
    features = np.zeros((n + 1, n + 1, FEATURES))
    edges = head != dependent
    features[head[edges], dependent[edges], feature[edges]] = 1.0
    return features


def chosen_sentences(usable: np.ndarray, most: int, rng: np.random.Generator) -> IntArray:
    """The indices of at most so many usable sentences, chosen at random, in order."""
    return np.sort(rng.permutation(np.flatnonzero(usable))[:most])


def draw_entropy(rows: Sequence[Row]) -> Figure:
    """Times, and the speed-ups of Table 1, over the mean length of the treebank's sentences."""
    figure, (times, ratios) = figures.panels(2)
    rows = sorted(rows, key=lambda row: float(row["length"]))
    ways = [("smith_eisner", "Smith & Eisner"), ("t1", "T1"), ("core", "core"), ("core_batch", "core, one batch")]
    figures.time_curves(times, rows, "length", ways, "sentence")
    figures.curve(ratios, [(row["length"], row["t1_speedup"]) for row in rows], "T1", 1)
    figures.curve(ratios, PUBLISHED_ENTROPY_SPEEDUP, "T1, published", 7, "--")
    figures.curve(ratios, [(row["length"], row["core_speedup"]) for row in rows], "core", "core")
    _speedups(ratios, "Smith & Eisner")
    times.set_xlabel("mean words of the treebank's sentences")
    return figure


def draw_gradient(rows: Sequence[Row]) -> Figure:
    """Times and speed-ups over the mean length of the treebank's sentences."""
    figure, (times, ratios) = figures.panels(2)
    rows = sorted(rows, key=lambda row: float(row["length"]))
    figures.time_curves(times, rows, "length", [*SECOND_ORDER.items(), ("core", "core")], "sentence")
    figures.curve(ratios, [(row["length"], row["t2_speedup"]) for row in rows], "T2", 1)
    figures.curve(ratios, [(row["length"], row["t2v_speedup"]) for row in rows], "T2v", 2)
    figures.curve(ratios, [(row["length"], row["core_speedup"]) for row in rows], "core", "core")
    ratios.axhline(PUBLISHED_GE_SPEEDUP, color=figures.COLOURS[7], linestyle="--", label="T2, published (English)")
    _speedups(ratios, "T2h")
    times.set_xlabel("mean words of the sentences")
    return figure


def _speedups(axes: Any, slower: str) -> None:
    axes.set_yscale("log")
    axes.set_xlabel("mean words of the treebank's sentences")
    axes.set_ylabel(f"times faster than {slower}")
    axes.legend(fontsize=8)
