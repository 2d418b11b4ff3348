"""How many roots the best unconstrained tree has, and how long decoders with one root take.

Stanojevic and Cohen (2021), "A Root of a Problem": Figure 2 is counted in `root_edges`; Figures 3 to 6, 11 and 13 are
drawn from one measurement of all decoders on the same graphs. Random weights are uniform on (0, 1); trained weights
are those of the treebank with the largest training set.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

import spantree

from . import figures, root_edges
from ._types import FloatArray, Row
from .lab import Lab
from .random_graphs import raw_uniform
from .report import Section
from .sentences import length_classes, mean_length, members, some
from .single_root_ways import ANY_ROOTS, ONE_ROOT
from .tables import Column, Table
from .timing import Way, compare, each

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CORE_ANY_ROOTS = "core, any roots"
CORE = "core"
CORE_BATCH = "core, one batch"

PANELS = {
    "any-roots": (
        "Decoders for any number of roots (Figure 3)",
        ("trained", "random"),
        (*ANY_ROOTS, CORE_ANY_ROOTS),
    ),
    "one-root": (
        "Decoders for one root, without ArcMax (Figure 4)",
        ("trained", "random"),
        ("Gabow-Tarjan", "Preselection", "Reweighting", CORE),
    ),
    "arcmax": (
        "Decoders for one root, with ArcMax (Figure 5)",
        ("trained",),
        ("ArcMax + Gabow-Tarjan", "ArcMax + Preselection", "ArcMax + Reweighting", CORE),
    ),
    "arcmax-place": (
        "ArcMax before the single-root step, or inside (Figure 6)",
        ("trained",),
        ("ArcMax + Reweighting", "Reweighting, ArcMax inside", "ArcMax + Preselection", "Preselection, ArcMax inside"),
    ),
    "combinations": (
        "Preselection and reweighting around Tarjan and CLE (Figure 11)",
        ("trained", "random"),
        ("Preselection", "Preselection with CLE", "Reweighting", "Reweighting with CLE"),
    ),
    "stanza": (
        "Against Stanza's way: preselection with CLE (Figure 13)",
        ("trained", "random"),
        ("Preselection with CLE", "ArcMax + Reweighting", CORE, CORE_BATCH),
    ),
}
"""For each figure its title, the weights and the decoders it shows."""

COLUMNS = [
    Column("weights", "weights"),
    Column("length", "mean length", ".1f"),
    Column("sentences", "sentences"),
    *(Column(way, way, ".2e") for way in (*ANY_ROOTS, CORE_ANY_ROOTS, *ONE_ROOT, CORE, CORE_BATCH)),
    Column("worst_gap", "largest difference of scores", ".0e"),
]


def conduct(lab: Lab) -> list[Section]:
    """Count root edges, then time all decoders on the same graphs."""
    rows = decoding_times(lab)
    return [
        root_edges.count(lab),
        Section("times", "Seconds per sentence of all decoders", Table(COLUMNS, rows)),
        *(Section(name, title, figure=draw(rows, weights, ways)) for name, (title, weights, ways) in PANELS.items()),
    ]


def decoding_times(lab: Lab) -> list[Row]:
    """One row for each length, random and trained."""
    setting: Row = {"graphs": lab.choose(20, 2), "rounds": lab.choose(5, 1)}
    sizes = lab.choose([5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100], [4, 8])
    units = [{"weights": "random", "n": n, **setting} for n in sizes]
    trained = lab.best_trained
    if trained is not None:
        classes = length_classes(trained, width=10, fewest=lab.choose(5, 1))[: lab.choose(None, 2)]
        units += [
            {"weights": "trained", "treebank": trained.name, "checksum": trained.checksum, **one.unit(), **setting}
            for one in classes
        ]

    def measure(unit: Row, rng: np.random.Generator) -> Row:
        if unit["weights"] == "random":
            graphs = raw_uniform(rng, unit["n"], unit["graphs"])
        else:
            treebank = lab.treebank(unit["treebank"])
            graphs = some(members(treebank, unit["shortest"], unit["longest"]), unit["graphs"], rng)
        return time_decoders(graphs, unit["rounds"])

    return lab.measure("decoding times", units, measure)


def time_decoders(graphs: Sequence[FloatArray], rounds: int) -> Row:
    """Seconds per graph of each decoder, and the largest difference of scores between trees that are all to be best."""
    any_roots: dict[str, Way] = {name: each(decoder) for name, decoder in ANY_ROOTS.items()}
    any_roots[CORE_ANY_ROOTS] = each(lambda scores: spantree.decode(scores, root="multi"))
    one_root: dict[str, Way] = {name: each(decoder) for name, decoder in ONE_ROOT.items()}
    one_root[CORE] = each(spantree.decode)
    one_root[CORE_BATCH] = lambda batch: spantree.decode(list(batch))
    timed = compare({**any_roots, **one_root}, graphs, rounds)
    return {
        "length": mean_length(graphs),
        "sentences": len(graphs),
        "worst_gap": max(
            score_gap(graphs, [timed[name].results for name in any_roots], "multi"),
            score_gap(graphs, [timed[name].results for name in one_root], "single"),
        ),
        **{name: time.seconds for name, time in timed.items()},
    }


def score_gap(graphs: Sequence[FloatArray], trees_of_ways: Sequence[Sequence[np.ndarray]], root: str) -> float:
    """How far apart the scores are that several ways reach on the same graph, at most."""
    dist = spantree.TreeDistribution(list(graphs), root="single" if root == "single" else "multi")
    scores = np.array([dist.score(list(trees)) for trees in trees_of_ways])
    return float(np.ptp(scores, axis=0).max())


def draw(rows: Sequence[Row], weights: Sequence[str], ways: Sequence[str]) -> Figure:
    """Times over sentence lengths, one panel for each kind of weights that was measured."""
    shown = [kind for kind in weights if any(row["weights"] == kind for row in rows)] or ["random"]
    figure, axes = figures.panels(len(shown))
    for panel, kind in zip(axes, shown, strict=True):
        measured = [row for row in rows if row["weights"] == kind]
        figures.time_curves(panel, measured, "length", [(way, way) for way in ways], "sentence")
        panel.set_xlabel("words")
        panel.set_title(f"{kind} weights", fontsize=10)
    return figure
