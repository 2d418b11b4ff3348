"""How the time of a sample grows with the sentence: walks against ancestral sampling.

Zmigrod, Vieira and Cotterell (2021), "Efficient Sampling of Dependency Structures", Figure 6: `wilson_rc` and
`colbourn` on random complete graphs, with the slopes of the lines through their logarithms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

import spantree
from spantree import zoo

from . import figures
from ._types import FloatArray, Row
from .lab import Lab
from .random_graphs import log_weights
from .report import Section
from .tables import Column, Table
from .timing import Way, compare, each

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PUBLISHED_SLOPES = {"colbourn": 1.42, "wilson_rc": 1.14}

WAYS = {
    "colbourn": "Colbourn",
    "wilson_rc": "WilsonRC",
    "core_ancestral": "core, ancestral",
    "core_wilson": "core, Wilson-marginal",
}

COLUMNS = [
    Column("n", "words"),
    Column("graphs", "graphs"),
    Column("samples", "trees of each"),
    *(Column(way, f"{label}, s / tree", ".2e") for way, label in WAYS.items()),
    Column("invalid", "heads that are no tree"),
]

SLOPE_COLUMNS = [
    Column("way", "sampler"),
    Column("slope", "slope", ".2f"),
    Column("published", "published slope", ".2f"),
]


def conduct(lab: Lab) -> list[Section]:
    """Times by size, and slopes."""
    setting: Row = {"graphs": lab.choose(100, 2), "samples": lab.choose(20, 3), "rounds": lab.choose(2, 1)}
    sizes = lab.choose([5, 10, 20, 40, 60, 80, 100], [4, 8])

    def measure(unit: Row, rng: np.random.Generator) -> Row:
        return time_samplers(log_weights(rng, unit["n"], unit["graphs"]), unit["samples"], unit["rounds"], rng)

    rows = lab.measure("samples by size", [{"n": n, **setting} for n in sizes], measure)
    slopes = [
        {"way": label, "slope": slope(rows, way), "published": PUBLISHED_SLOPES.get(way)} for way, label in WAYS.items()
    ]
    return [
        Section("sizes", "Time of one tree by sentence length (Figure 6)", Table(COLUMNS, rows), draw(rows)),
        Section("slopes", "Slopes of the lines through the logarithms (Figure 6)", Table(SLOPE_COLUMNS, slopes)),
    ]


def time_samplers(graphs: Sequence[FloatArray], samples: int, rounds: int, rng: np.random.Generator) -> Row:
    """Seconds per tree of each sampler."""
    ways: dict[str, Way] = {
        "colbourn": each(lambda scores: zoo.colbourn(scores, samples, rng)),
        "wilson_rc": each(lambda scores: zoo.wilson_rc(scores, samples, rng)),
        "core_ancestral": each(lambda scores: spantree.sample(scores, samples, rng=rng, method="ancestral")),
        "core_wilson": each(lambda scores: spantree.sample(scores, samples, rng=rng, method="wilson-marginal")),
    }
    timed = compare(ways, graphs, rounds)
    trees = np.concatenate([heads for way in ways for heads in timed[way].results])
    return {
        **{way: timed[way].seconds / samples for way in ways},
        "invalid": int(np.count_nonzero(~spantree.is_tree(trees))),
    }


def slope(rows: Sequence[Row], way: str) -> float:
    """Of the line through log time over log size.

    Examples
    --------
    >>> print(round(slope([{"n": 2, "t": 8.0}, {"n": 4, "t": 64.0}], "t"), 12))
    3.0
    """
    return float(np.polyfit(np.log([row["n"] for row in rows]), np.log([row[way] for row in rows]), 1)[0])


def draw(rows: Sequence[Row]) -> Figure:
    """Time over size, both logarithmic."""
    figure, (axes,) = figures.panels(1)
    figures.time_curves(axes, rows, "n", list(WAYS.items()), "tree")
    axes.set_xscale("log")
    axes.set_xlabel("words")
    return figure
