"""How many edges leave ROOT in the best unconstrained tree.

Stanojevic and Cohen (2021), "A Root of a Problem", section 3: Equation 2 and Figure 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import TYPE_CHECKING

import numpy as np

import spantree
from spantree import zoo

from . import figures
from ._types import FloatArray, Row
from .lab import Lab
from .random_graphs import raw_uniform
from .report import Section
from .sentences import length_classes, mean_length, members
from .tables import Column, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RANDOM = "random"

COLUMNS = [
    Column("weights", "weights"),
    Column("length", "mean length", ".1f"),
    Column("sentences", "sentences"),
    Column("mean", "root edges, mean", ".3f"),
    Column("deviation", "std. dev.", ".3f"),
    Column("several", "more than one", ".1%"),
    Column("formula", "mean by Equation 2", ".3f"),
    Column("zoo_and_core_differ", "sentences where zoo and core differ"),
]


def probability(r: int, n: int) -> float:
    """P(r; n) of Equation 2: a uniformly random spanning tree over ROOT and n words has r root edges.

    Examples
    --------
    Of the three trees over two words, one has two root edges.

    >>> print(round(probability(2, 2), 12))
    0.333333333333
    """
    # in integers, because the powers of long sentences overflow a double
    trees, all_trees = comb(n, r) * r * int(n ** (n - r)), n * int((n + 1) ** (n - 1))
    return trees / all_trees


def mean_by_formula(n: int) -> float:
    """The mean of Equation 2, which is 2n / (n + 1).

    Examples
    --------
    >>> print(round(mean_by_formula(9), 12))
    1.8
    """
    return sum(r * probability(r, n) for r in range(1, n + 1))


def count(lab: Lab) -> Section:
    """Count root edges on random graphs by size and on every treebank by length."""
    sizes = lab.choose([2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100], [2, 5, 10])
    random_units = [{"weights": RANDOM, "n": n, "graphs": lab.choose(400, 30)} for n in sizes]
    trained_units = [
        {"weights": treebank.name, "checksum": treebank.checksum, **one.unit()}
        for treebank in lab.treebanks
        for one in length_classes(treebank, width=10, fewest=lab.choose(10, 1))[: lab.choose(None, 2)]
    ]

    def measure_random(unit: Row, rng: np.random.Generator) -> Row:
        formula = mean_by_formula(unit["n"])
        return {**count_roots(raw_uniform(rng, unit["n"], unit["graphs"])), "formula": formula}

    def measure_trained(unit: Row, rng: np.random.Generator) -> Row:
        return count_roots(members(lab.treebank(unit["weights"]), unit["shortest"], unit["longest"]))

    random_rows = lab.measure("root edges", random_units, measure_random)
    trained_rows = lab.measure("root edges", trained_units, measure_trained)
    return Section(
        "root-edges",
        "Root edges of the best unconstrained tree (Figure 2, Equation 2)",
        Table(COLUMNS, random_rows + trained_rows),
        draw(lab, random_rows, trained_rows),
    )


def count_roots(graphs: Sequence[FloatArray]) -> Row:
    """Statistics of the number of root edges of the core's best trees, and how often the zoo's have another number."""
    roots = np.array([np.count_nonzero(heads == 0) for heads in spantree.decode(list(graphs), root="multi")])
    zoo_roots = np.array([np.count_nonzero(zoo.tarjan(scores) == 0) for scores in graphs])
    return {
        "length": mean_length(graphs),
        "sentences": len(graphs),
        "mean": float(roots.mean()),
        "deviation": float(roots.std()),
        "several": float((roots > 1).mean()),
        "zoo_and_core_differ": int(np.count_nonzero(roots != zoo_roots)),
    }


def draw(lab: Lab, random_rows: Sequence[Row], trained_rows: Sequence[Row]) -> Figure:
    """Mean and spread on random graphs, the formula, and the treebanks with the largest and smallest training sets."""
    figure, (axes,) = figures.panels(1)
    lengths = [row["length"] for row in random_rows]
    figures.curve(axes, [(row["length"], row["mean"]) for row in random_rows], "random weights", 1)
    axes.fill_between(
        lengths,
        [row["mean"] - row["deviation"] for row in random_rows],
        [row["mean"] + row["deviation"] for row in random_rows],
        color=figures.COLOURS[1],
        alpha=0.15,
        linewidth=0,
    )
    figures.curve(axes, [(row["length"], row["formula"]) for row in random_rows], "uniform trees, Equation 2", 7, "--")
    by_training = sorted(lab.treebanks, key=lambda treebank: treebank.train_sentences or 0)
    for place, treebank in zip(
        (0, 2), dict.fromkeys(t.name for t in (by_training[-1:] + by_training[:1])), strict=False
    ):
        points = [(row["length"], row["mean"]) for row in trained_rows if row["weights"] == treebank]
        figures.curve(axes, points, f"trained, {treebank.removeprefix('UD_')}", place)
    axes.set_xlabel("words")
    axes.set_ylabel("root edges")
    axes.legend(fontsize=8)
    return figure
