"""The bias of WilsonRC on the smallest graph that shows it.

Stanojevic (2022), "Unbiased and Efficient Sampling of Dependency Trees", Figure 1: three trees of equal weight over the
words A, B, C, two of them with root A and one with root C.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

import spantree
from spantree import zoo

from . import figures
from ._types import FloatArray, IntArray, Row
from .lab import Lab
from .report import Section
from .tables import Column, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Sampler: TypeAlias = Callable[[FloatArray, int, np.random.Generator], IntArray]

TREES = {"A(B, C)": (-1, 0, 1, 1), "A(B(C))": (-1, 0, 1, 2), "C(A(B))": (-1, 3, 1, 0)}
"""The three trees of Figure 1, b to d, as heads."""

SAMPLERS: dict[str, Sampler] = {
    "WilsonRC": zoo.wilson_rc,
    "WilsonMarginal": zoo.wilson_marginal,
    "WilsonReject": zoo.wilson_reject,
    "Colbourn": zoo.colbourn,
    "core, Wilson-marginal": lambda scores, k, rng: spantree.sample(scores, k, rng=rng, method="wilson-marginal"),
    "core, Wilson-reject": lambda scores, k, rng: spantree.sample(scores, k, rng=rng, method="wilson-reject"),
    "core, ancestral": lambda scores, k, rng: spantree.sample(scores, k, rng=rng, method="ancestral"),
}

COLUMNS = [
    Column("sampler", "sampler"),
    Column("samples", "trees drawn"),
    *(Column(tree, tree, ".4f") for tree in TREES),
    Column("variation", "total variation from uniform", ".4f"),
]


def figure_1_scores() -> FloatArray:
    """The graph of Figure 1a: its edges score 0, all others are forbidden.

    Examples
    --------
    >>> print(round(np.exp(zoo.log_partition(figure_1_scores())), 12))
    3.0
    """
    scores = np.full((4, 4), -np.inf)
    for heads in TREES.values():
        scores[list(heads[1:]), [1, 2, 3]] = 0.0
    return scores


def bias(lab: Lab) -> Section:
    """How often each sampler draws each of the three trees."""
    samples = lab.choose(50_000, 200)
    units = [{"sampler": sampler, "samples": samples} for sampler in SAMPLERS]

    def measure(unit: Row, rng: np.random.Generator) -> Row:
        heads = SAMPLERS[unit["sampler"]](figure_1_scores(), unit["samples"], rng)
        shares = {tree: float((heads == tree_heads).all(axis=1).mean()) for tree, tree_heads in TREES.items()}
        return {**shares, "variation": 0.5 * sum(abs(share - 1 / 3) for share in shares.values())}

    rows = lab.measure("bias", units, measure)
    title = "WilsonRC's bias: shares of three trees of equal weight (Figure 1)"
    return Section("bias", title, Table(COLUMNS, rows), draw(rows))


def draw(rows: Sequence[Row]) -> Figure:
    """A group of bars for each sampler, one for each tree; a line where they should end."""
    figure, (axes,) = figures.panels(1)
    places = np.arange(len(rows))
    for number, tree in enumerate(TREES):
        axes.bar(
            places + 0.27 * (number - 1), [row[tree] for row in rows], 0.25, color=figures.COLOURS[number], label=tree
        )
    axes.axhline(1 / 3, color=figures.CORE, linewidth=1, linestyle="--", label="unbiased")
    axes.set_xticks(places, [str(row["sampler"]).replace(", ", ",\n") for row in rows], rotation=60, fontsize=7)
    axes.set_ylabel("share of trees drawn")
    axes.legend(fontsize=7)
    return figure
