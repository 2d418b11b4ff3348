"""How much of the mass of all trees lies on trees with one root: what rejection costs.

Stanojevic (2022), "Unbiased and Efficient Sampling of Dependency Trees", section 4.3.1 and Figure 7. WilsonReject needs
Z_T / Z_D tries on average, spanning over dependency trees: ((n+1)/n)^(n-1) < e if trees of both kinds weigh the same on
average. Beside it stand, on trained scores, the steps of one walk and the bias that WilsonRC would have.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

import spantree
from spantree import zoo

from . import figures
from ._types import FloatArray, Row
from .lab import Lab
from .random_graphs import LAWS, log_weights
from .report import Section
from .tables import Column, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PUBLISHED_TRIES = 1.06
"""Mean tries on English by a well-trained parser, section 4.3.1."""

BINS = np.linspace(0.0, 2.0, 41)
"""Of the histograms of w_T / w_D; what lies beyond is counted in no bin."""

RANDOM_COLUMNS = [
    Column("law", "law of the weights"),
    Column("n", "words"),
    Column("graphs", "graphs"),
    Column("tries", "Z_T / Z_D, mean", ".3f"),
    Column("most_tries", "largest", ".3f"),
    Column("equal_weights", "for equal weights", ".3f"),
    Column("ratio", "mean w_T / w_D", ".4f"),
    Column("ratio_deviation", "std. dev.", ".4f"),
    Column("worst_difference", "zoo and core, largest rel. difference", ".0e"),
]

TRAINED_COLUMNS = [
    Column("treebank", "treebank"),
    Column("train_sentences", "train"),
    Column("sentences", "sentences"),
    Column("median_tries", "tries, median", ".3f"),
    Column("ninety_tries", "90 %", ".3g"),
    Column("most_tries", "largest", ".3g"),
    Column("mean_tries", "mean", ".3g"),
    Column("single_root_mass", "over 95 % of mass on one root", ".1%"),
    Column("most_steps", "steps per word, largest", ".3g"),
    Column("wilson_rc_bias", "WilsonRC, mean total variation", ".3f"),
    Column("worst_difference", "log Z_T / Z_D, zoo and core, largest difference", ".0e"),
]


def random_weights(lab: Lab) -> list[Section]:
    """Z_T / Z_D by size and law of the weights."""
    units = [
        {"law": law, "n": n, "graphs": lab.choose(10_000, 20)}
        for law in LAWS
        for n in lab.choose([2, 5, 10, 20, 50, 100], [2, 5])
    ]

    def measure(unit: Row, rng: np.random.Generator) -> Row:
        n = unit["n"]
        # a thousand graphs at a time: all of them would not fit in memory
        batches = [min(1000, unit["graphs"] - start) for start in range(0, unit["graphs"], 1000)]
        graphs: list[FloatArray] = []
        ratios = []
        for size in batches:
            graphs = log_weights(rng, n, size, unit["law"])
            ratios.append(np.exp(log_tries(graphs)))
        tries = np.concatenate(ratios)
        some_zoo_tries = np.array([zoo.mean_tries(scores) for scores in graphs[-100:]])
        equal_weights = ((n + 1) / n) ** (n - 1)
        return {
            "histogram": np.histogram(tries / equal_weights, BINS)[0].tolist(),
            "tries": float(tries.mean()),
            "most_tries": float(tries.max()),
            "equal_weights": equal_weights,
            "ratio": float(tries.mean() / equal_weights),
            "ratio_deviation": float(tries.std() / equal_weights),
            "worst_difference": float(np.abs(some_zoo_tries / tries[-len(some_zoo_tries) :] - 1).max()),
        }

    rows = lab.measure("Z_T / Z_D", units, measure)
    title = "Z_T / Z_D on random weights (section 4.3.1, the bound e)"
    return [
        Section("random-tries", title, Table(RANDOM_COLUMNS, rows), draw_random(rows)),
        Section("random-ratios", "Distribution of w_T / w_D over graphs (Figure 7)", figure=draw_ratios(rows)),
    ]


def trained_weights(lab: Lab) -> Section:
    """Mean tries of WilsonReject by treebank."""

    def measure(unit: Row, rng: np.random.Generator) -> Row:
        treebank = lab.treebank(unit["treebank"])
        graphs = [scores for scores, uniform in zip(treebank.scores, treebank.uniform, strict=True) if uniform]
        graphs = graphs[: unit["at_most"]]
        log_ratio = log_tries(graphs)
        zoo_log_ratio = [zoo.log_partition(scores, "multi") - zoo.log_partition(scores, "single") for scores in graphs]
        tries = np.exp(log_ratio)
        return {
            "train_sentences": treebank.train_sentences,
            "sentences": len(graphs),
            "median_tries": float(np.median(tries)),
            "ninety_tries": float(np.quantile(tries, 0.9)),
            "most_tries": float(tries.max()),
            "mean_tries": float(tries.mean()),
            "single_root_mass": float((tries < 1 / 0.95).mean()),
            "most_steps": max(zoo.mean_steps(scores) / (len(scores) - 1) for scores in graphs),
            "wilson_rc_bias": float(np.mean([wilson_rc_bias(scores) for scores in graphs])),
            "worst_difference": float(np.abs(log_ratio - zoo_log_ratio).max()),
        }

    units = [{**unit, "at_most": lab.choose(None, 10)} for unit in lab.treebank_units()]
    rows = lab.measure("tries", units, measure)
    rows.sort(key=lambda row: -(row["train_sentences"] or 0))
    title = "Tries of WilsonReject on trained weights (section 4.3.1)"
    return Section("trained-tries", title, Table(TRAINED_COLUMNS, rows), draw_trained(rows))


def log_tries(graphs: Sequence[FloatArray]) -> FloatArray:
    """log of Z_T / Z_D of each graph, by the core."""
    batch = list(graphs)
    several = np.asarray(spantree.log_partition(batch, root="multi"), dtype=np.float64)
    return several - np.asarray(spantree.log_partition(batch), dtype=np.float64)


def wilson_rc_bias(scores: FloatArray) -> float:
    """Total variation between what WilsonRC draws from and the tree distribution.

    Given the root edge both are the same, so it is that between root weights, normalised, and root marginals.

    Examples
    --------
    >>> from spantree.experiments.sampling_bias import figure_1_scores
    >>> print(round(wilson_rc_bias(figure_1_scores()), 12))
    0.166666666667
    """
    weights = np.exp(scores[0, 1:] - scores[0, 1:].max())
    marginals = spantree.TreeDistribution(scores).marginals()[0, 1:]
    return 0.5 * float(np.abs(weights / weights.sum() - marginals).sum())


def draw_random(rows: Sequence[Row]) -> Figure:
    """Mean Z_T / Z_D and the ratio of average weights with its spread, over the number of words."""
    figure, (tries, ratios) = figures.panels(2)
    for number, law in enumerate(LAWS):
        of_law = [row for row in rows if row["law"] == law]
        figures.curve(tries, [(row["n"], row["tries"]) for row in of_law], law, number)
        ratios.errorbar(
            [row["n"] * 1.04**number for row in of_law],
            [row["ratio"] for row in of_law],
            [row["ratio_deviation"] for row in of_law],
            color=figures.COLOURS[number],
            marker=figures.MARKERS[number],
            markersize=4,
            linewidth=1,
            capsize=2,
            label=law,
        )
    equal = [(row["n"], row["equal_weights"]) for row in rows if row["law"] == rows[0]["law"]]
    figures.curve(tries, equal, "equal weights", 7, "--")
    tries.axhline(math.e, color=figures.CORE, linewidth=1, linestyle=":", label="e")
    tries.set_ylabel("mean of Z_T / Z_D")
    ratios.set_ylabel("w_T / w_D, mean ± std. dev.")
    for axes in (tries, ratios):
        axes.set_xscale("log")
        axes.set_xlabel("words")
        axes.legend(fontsize=7)
    return figure


def draw_ratios(rows: Sequence[Row]) -> Figure:
    """One panel for each law of the weights, in it one histogram for each number of words."""
    figure, panels = figures.panels(len(LAWS))
    for axes, law in zip(panels, LAWS, strict=True):
        for number, row in enumerate(row for row in rows if row["law"] == law):
            share = np.array(row["histogram"]) / row["graphs"] / (BINS[1] - BINS[0])
            axes.stairs(share, BINS, color=figures.COLOURS[number], label=f"{row['n']} words")
        axes.set_xlabel("w_T / w_D")
        axes.set_ylabel("density over graphs")
        axes.set_title(law, fontsize=10)
        axes.set_yscale("log")
    panels[0].legend(fontsize=7)
    return figure


def draw_trained(rows: Sequence[Row]) -> Figure:
    """Median, 90 % quantile and largest expected number of tries of each treebank."""
    figure, (axes,) = figures.panels(1)
    places = range(len(rows))
    keys = {"median_tries": "median", "ninety_tries": "90 %", "most_tries": "largest"}
    for number, (key, label) in enumerate(keys.items()):
        axes.plot(
            [row[key] for row in rows], places, figures.MARKERS[number], color=figures.COLOURS[number], label=label
        )
    axes.axvline(PUBLISHED_TRIES, color=figures.COLOURS[7], linestyle="--", label="published mean, English")
    axes.set_yticks(places, [row["treebank"].removeprefix("UD_") for row in rows], fontsize=7)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("expected tries of WilsonReject")
    axes.legend(fontsize=7)
    return figure
