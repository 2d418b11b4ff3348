"""What sharp scores do to the matrix-tree theorem, and to this library's solve.

Gaussian scores of growing standard deviation; log Z and marginals by determinant and inverse (`matrix_tree` of the
zoo) and by the core's elimination without subtraction, against many-digit arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

import spantree
from spantree import zoo
from spantree._options import RootMode

from . import figures
from ._types import FloatArray, Row
from .lab import Lab
from .many_digits import many_digit_reference
from .report import Section
from .tables import Column, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SMALLEST, LARGEST = 1e-17, 1e3
"""What is drawn; errors outside it are drawn at its ends."""

RELATIVE_FROM = 1e-300
"""Marginals below it are left out of the largest relative error: below 2e-308, doubles lose digits."""

COLUMNS = [
    Column("root", "roots"),
    Column("scale", "scale, nats"),
    Column("graphs", "graphs"),
    Column("lu_marginal", "LU: marginals, abs.", ".0e"),
    Column("lu_log_z", "LU: log Z", ".0e"),
    Column("lu_refused", "LU: refused"),
    Column("core_marginal", "core: marginals, abs.", ".0e"),
    Column("core_marginal_relative", f"core: marginals above {RELATIVE_FROM:g}, rel.", ".0e"),
    Column("core_log_z", "core: log Z", ".0e"),
]


def conduct(lab: Lab) -> list[Section]:
    """Worst errors by scale, with one root and with several."""
    scales = lab.choose([1, 2, 5, 10, 20, 30, 50, 70, 100, 200], [1, 20, 100])
    setting: Row = {"n": lab.choose(12, 4), "graphs": lab.choose(10, 2)}
    units = [{"root": root, "scale": scale, **setting} for root in ("single", "multi") for scale in scales]

    def measure(unit: Row, rng: np.random.Generator) -> Row:
        shape = (unit["graphs"], unit["n"] + 1, unit["n"] + 1)
        return worst_errors(list(rng.normal(0.0, unit["scale"], shape)), unit["root"])

    rows = lab.measure("errors", units, measure)
    title = "Worst errors by scale of the scores: LU and the core's solve"
    return [Section("errors", title, Table(COLUMNS, rows), draw(rows))]


def worst_errors(graphs: Sequence[FloatArray], root: RootMode) -> Row:
    """The largest errors over some graphs; the zoo's where it does not refuse to answer."""
    lu_marginal, lu_log_z, refused = [], [], 0
    core_marginal, core_relative, core_log_z = [], [], []
    for scores in graphs:
        log_z, marginals = many_digit_reference(scores, root)
        dist = spantree.TreeDistribution(scores, root=root)
        errors = np.abs(dist.marginals() - marginals)
        core_marginal.append(errors.max())
        large = marginals > RELATIVE_FROM
        core_relative.append((errors[large] / marginals[large]).max())
        core_log_z.append(abs(float(dist.log_partition()) - log_z))
        try:
            zoo_log_z, zoo_marginals = zoo.matrix_tree(scores, root)
        except (FloatingPointError, np.linalg.LinAlgError):
            refused += 1
            continue
        lu_marginal.append(np.abs(zoo_marginals - marginals).max())
        lu_log_z.append(abs(zoo_log_z - log_z))
    return {
        "lu_marginal": float(max(lu_marginal)) if lu_marginal else None,
        "lu_log_z": float(max(lu_log_z)) if lu_log_z else None,
        "lu_refused": refused,
        "core_marginal": float(max(core_marginal)),
        "core_marginal_relative": float(max(core_relative)),
        "core_log_z": float(max(core_log_z)),
    }


def draw(rows: Sequence[Row]) -> Figure:
    """Errors of marginals and of log Z over the scale."""
    figure, (marginals, log_z) = figures.panels(2)
    for axes, what, title in ((marginals, "marginal", "marginals, absolute"), (log_z, "log_z", "log Z, nats")):
        for place, (root, label) in enumerate((("single", "one root"), ("multi", "several roots"))):
            of_root = [row for row in rows if row["root"] == root]
            style = ("-", "--")[place]
            figures.curve(axes, drawable(of_root, f"lu_{what}"), f"LU, {label}", place, style)
            figures.curve(axes, drawable(of_root, f"core_{what}"), f"core, {label}", "core", style)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("standard deviation of the scores, nats")
        axes.set_ylabel("largest error")
        axes.set_title(title, fontsize=10)
        axes.legend(fontsize=7)
    return figure


def drawable(rows: Sequence[Row], key: str) -> list[tuple[float, float]]:
    """The errors over the scale, where there are any, brought into the figure."""
    return [(row["scale"], min(max(row[key], SMALLEST), LARGEST)) for row in rows if row[key] is not None]
