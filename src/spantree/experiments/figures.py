"""Figures: one look for all experiments. This library's core is always drawn in the same black."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from ._extras import need
from ._types import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CORE = "black"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c8c00", "#999999")
"""Okabe and Ito's palette, which colour-blind readers can tell apart."""
MARKERS = "osD^vPX*"


def panels(columns: int) -> tuple[Figure, list[Axes]]:
    """A figure of so many plots side by side."""
    figure: Figure = need("matplotlib.figure").Figure(figsize=(4.6 * columns, 3.6), layout="constrained")
    axes = figure.subplots(1, columns, squeeze=False)[0]
    for one in axes:
        one.spines[["top", "right"]].set_visible(False)
        one.grid(alpha=0.25, linewidth=0.6)
    return figure, list(axes)


def curve(
    axes: Axes,
    points: Sequence[tuple[float, float]],
    label: str,
    place: int | Literal["core"],
    style: str = "-",
) -> None:
    """A line through the points; `place` in the palette, or "core" for this library."""
    core = place == "core"
    number = 0 if place == "core" else place
    axes.plot(
        [x for x, _ in points],
        [y for _, y in points],
        style,
        label=label,
        color=CORE if core else COLOURS[number % len(COLOURS)],
        marker="." if core else MARKERS[number % len(MARKERS)],
        markersize=5 if core else 4,
        linewidth=2 if core else 1.2,
    )


def time_curves(axes: Axes, rows: Sequence[Row], x: str, ways: Sequence[tuple[str, str]], unit: str) -> None:
    """Times of several ways over `x`, on a logarithmic scale.

    Parameters
    ----------
    axes : Axes
        Where.
    rows : sequence of Row
        With `x` and, under each way's key, seconds.
    x : str
        The key of the sizes.
    ways : sequence of (key, label)
        What to draw. Keys that start with "core" are drawn as such.
    unit : str
        What is timed, for the axis: "sentence", "tree".
    """
    cores = [key for key, _ in ways if key.startswith("core")]
    for number, (key, label) in enumerate(ways):
        points = [(float(row[x]), 1e3 * row[key]) for row in rows if row.get(key) is not None]
        if key in cores:
            curve(axes, points, label, "core", ("-", "--", ":", "-.")[cores.index(key)])
        else:
            curve(axes, points, label, number)
    axes.set_yscale("log")
    axes.set_ylabel(f"ms per {unit}")
    axes.legend(fontsize=7, framealpha=0.6)
