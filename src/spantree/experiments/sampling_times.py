"""How long samplers take, with and without replacement.

Stanojevic (2022), "Unbiased and Efficient Sampling of Dependency Trees": Figures 2, 3 and 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

import spantree
from spantree import zoo

from . import figures
from ._types import FloatArray, Row
from .lab import Lab
from .random_graphs import log_weights
from .report import Section
from .sentences import length_classes, mean_length, members, some
from .tables import Column, Table
from .timing import Way, compare, each

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WITH_REPLACEMENT = {
    "colbourn": "Colbourn",
    "wilson_marginal": "WilsonMarginal",
    "wilson_marginal_rooted": "WilsonMarginal, rooted",
    "wilson_reject": "WilsonReject",
    "core_ancestral": "core, ancestral",
    "core": "core",
}

WITHOUT_REPLACEMENT = {
    "swor_zmigrod": "Zmigrod et al.",
    "swor_zmigrod_robust": "Zmigrod et al., robust",
    "trie_swor": "Trie-SWOR",
    "sbs_swor": "SBS-SWOR",
    "core_beam": "core, beam",
    "core_trie": "core, trie",
    "core": "core",
}

PUBLISHED_WORDS = 14
"""Of the sentences of Figure 3."""

LONGEST_WALK = 1000.0
"""Expected steps per word beyond which a walk is not worth waiting for."""


def with_replacement(lab: Lab) -> Section:
    """Figure 2: trees drawn with replacement from random and from trained weights."""
    setting: Row = {"graphs": lab.choose(10, 2), "samples": lab.choose(100, 3), "rounds": lab.choose(2, 1)}
    sizes = lab.choose([10, 20, 30, 40, 60, 80], [4, 8])
    units: list[Row] = [{"weights": "random", "n": n, **setting} for n in sizes]
    trained = lab.best_trained
    if trained is not None:
        classes = length_classes(trained, width=10, fewest=lab.choose(5, 1))[: lab.choose(None, 2)]
        units += [
            {"weights": "trained", "treebank": trained.name, "checksum": trained.checksum, **one.unit(), **setting}
            for one in classes
        ]

    def measure(unit: Row, rng: np.random.Generator) -> Row:
        if unit["weights"] == "random":
            graphs = log_weights(rng, unit["n"], unit["graphs"])
        else:
            sentences = members(lab.treebank(unit["treebank"]), unit["shortest"], unit["longest"])
            graphs = some([scores for scores in sentences if walkable(scores)], unit["graphs"], rng)
        return time_with_replacement(graphs, unit["samples"], unit["rounds"], rng)

    rows = lab.measure("with replacement", units, measure)
    columns = [
        Column("weights", "weights"),
        Column("length", "mean length", ".1f"),
        Column("samples", "trees of each"),
        *(Column(way, f"{label}, s / tree", ".2e") for way, label in WITH_REPLACEMENT.items()),
        Column("invalid", "heads that are no tree"),
    ]
    figure = draw_by_weights(rows)
    return Section("with-replacement", "Sampling with replacement (Figure 2)", Table(columns, rows), figure)


def walkable(scores: FloatArray) -> bool:
    """Whether Wilson's walk, repeated until the tree has one root, can be expected to end within reason."""
    return zoo.mean_steps(scores) * zoo.mean_tries(scores) <= LONGEST_WALK * (len(scores) - 1)


def time_with_replacement(graphs: Sequence[FloatArray], samples: int, rounds: int, rng: np.random.Generator) -> Row:
    """Seconds per tree of each sampler."""
    ways: dict[str, Way] = {
        "colbourn": each(lambda scores: zoo.colbourn(scores, samples, rng)),
        "wilson_marginal": each(lambda scores: zoo.wilson_marginal(scores, samples, rng)),
        "wilson_marginal_rooted": each(lambda scores: zoo.wilson_marginal_rooted(scores, samples, rng)),
        "wilson_reject": each(lambda scores: zoo.wilson_reject(scores, samples, rng)),
        "core_ancestral": each(lambda scores: spantree.sample(scores, samples, rng=rng, method="ancestral")),
        "core": each(lambda scores: spantree.sample(scores, samples, rng=rng)),
    }
    timed = compare(ways, graphs, rounds)
    invalid = sum(np.count_nonzero(~spantree.is_tree(trees)) for way in ways for trees in timed[way].results)
    return {
        "length": mean_length(graphs),
        **{way: timed[way].seconds / samples for way in ways},
        "invalid": int(invalid),
    }


def without_replacement(lab: Lab) -> Section:
    """Figure 3: distinct trees of sentences of 14 words, by their number."""
    setting: Row = {"n": PUBLISHED_WORDS, "graphs": lab.choose(5, 1), "rounds": lab.choose(2, 1)}
    units = [{"k": k, **setting} for k in lab.choose([10, 30, 100, 300, 1000], [2, 5])]
    rows = _measure_without_replacement(lab, "without replacement", units, list(WITHOUT_REPLACEMENT))
    figure, (axes,) = figures.panels(1)
    figures.time_curves(axes, rows, "k", list(WITHOUT_REPLACEMENT.items()), "tree")
    axes.set_xscale("log")
    axes.set_xlabel(f"distinct trees of {PUBLISHED_WORDS} words")
    title = f"Sampling without replacement, {PUBLISHED_WORDS} words (Figure 3)"
    return Section("without-replacement", title, _swor_table(rows, list(WITHOUT_REPLACEMENT)), figure)


def without_replacement_by_length(lab: Lab) -> Section:
    """Figure 5: a fixed number of distinct trees, by the length of the sentence."""
    setting: Row = {"k": lab.choose(100, 3), "graphs": lab.choose(3, 1), "rounds": 1}
    units = [{"n": n, **setting} for n in lab.choose([10, 20, 30, 40, 50, 60], [4, 8])]
    ways = [way for way in WITHOUT_REPLACEMENT if not way.startswith("swor_zmigrod")]
    rows = _measure_without_replacement(lab, "without replacement by length", units, ways)
    figure, (axes,) = figures.panels(1)
    figures.time_curves(axes, rows, "n", list(WITHOUT_REPLACEMENT.items()), "tree")
    axes.set_xlabel("words")
    title = "Sampling without replacement, by length (Figure 5)"
    return Section("without-replacement-lengths", title, _swor_table(rows, ways), figure)


def _measure_without_replacement(lab: Lab, kind: str, units: Sequence[Row], ways: Sequence[str]) -> list[Row]:
    def measure(unit: Row, rng: np.random.Generator) -> Row:
        return time_without_replacement(
            log_weights(rng, unit["n"], unit["graphs"]), unit["k"], ways, unit["rounds"], rng
        )

    return lab.measure(kind, units, measure)


def time_without_replacement(
    graphs: Sequence[FloatArray], k: int, names: Sequence[str], rounds: int, rng: np.random.Generator
) -> Row:
    """Seconds per tree of each sampler, and how many of their trees are no trees or came twice."""

    def by_core(method: Literal["auto", "trie", "beam"]) -> Way:
        return each(
            lambda scores: spantree.TreeDistribution(scores).sample_without_replacement(k, rng=rng, method=method)
        )

    ways: dict[str, Way] = {
        "swor_zmigrod": each(lambda scores: zoo.swor_zmigrod(scores, k, rng)),
        "swor_zmigrod_robust": each(lambda scores: zoo.swor_zmigrod_robust(scores, k, rng)),
        "trie_swor": each(lambda scores: zoo.trie_swor(scores, k, rng)),
        "sbs_swor": each(lambda scores: zoo.sbs_swor(scores, k, rng)),
        "core_beam": by_core("beam"),
        "core_trie": by_core("trie"),
        "core": by_core("auto"),
    }
    timed = compare({name: ways[name] for name in names}, graphs, rounds)
    samples = [
        sample.heads if name.startswith("core") else sample[0] for name in names for sample in timed[name].results
    ]
    return {
        **{name: timed[name].seconds / k for name in names},
        "invalid": int(sum(np.count_nonzero(~spantree.is_tree(heads)) for heads in samples)),
        "repeated": int(sum(len(heads) - len(np.unique(heads, axis=0)) for heads in samples)),
    }


def _swor_table(rows: Sequence[Row], ways: Sequence[str]) -> Table:
    columns = [
        Column("n", "words"),
        Column("k", "trees"),
        *(Column(way, f"{WITHOUT_REPLACEMENT[way]}, s / tree", ".2e") for way in ways),
        Column("invalid", "heads that are no tree"),
        Column("repeated", "trees drawn twice"),
    ]
    return Table(columns, rows)


def draw_by_weights(rows: Sequence[Row]) -> Figure:
    """Time over length, one panel for random and one for trained weights, if there are any."""
    kinds = list(dict.fromkeys(row["weights"] for row in rows))
    figure, axes = figures.panels(len(kinds))
    for panel, kind in zip(axes, kinds, strict=True):
        measured = [row for row in rows if row["weights"] == kind]
        figures.time_curves(panel, measured, "length", list(WITH_REPLACEMENT.items()), "tree")
        panel.set_xlabel("words")
        panel.set_title(f"{kind} weights", fontsize=10)
    return figure
