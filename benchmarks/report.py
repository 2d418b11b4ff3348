"""Timing both sides of a comparison in one run, and saying which goals hold."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field


def best_times(*sides: Callable[[], object], repeats: int = 7, least_seconds: float = 0.02) -> list[float]:
    """Seconds per call of each side: the least over rounds in which the sides take turns, so that noise meets both."""
    calls = []
    for side in sides:
        side()
        started = time.perf_counter()
        side()
        once = max(time.perf_counter() - started, 1e-9)
        calls.append(max(1, round(least_seconds / once)))
    best = [float("inf")] * len(sides)
    for _ in range(repeats):
        for i, side in enumerate(sides):
            started = time.perf_counter()
            for _ in range(calls[i]):
                side()
            best[i] = min(best[i], (time.perf_counter() - started) / calls[i])
    return best


@dataclass
class Report:
    """A table of measured ratios."""

    title: str
    rows: list[tuple[str, str, str, str, str]] = field(default_factory=list)

    def faster(self, what: str, ours: float, peer: float, goal: float, unit: float = 1.0) -> None:
        """Goal: `peer` takes at least `goal` times as long as `ours`. `unit` divides both, e.g. sentences per call."""
        self._add(what, ours / unit, peer / unit, peer / ours, f"at least {goal:g}x faster", peer / ours >= goal)

    def at_most(self, what: str, ours: float, yardstick: float, goal: float, unit: float = 1.0) -> None:
        """Goal: `ours` takes at most `goal` times as long as `yardstick`."""
        ratio = ours / yardstick
        self._add(what, ours / unit, yardstick / unit, ratio, f"at most {goal:g}x", ratio <= goal)

    def bound(self, what: str, value: float, goal: float, unit: str) -> None:
        """Goal: `value` is at most `goal`."""
        self.rows.append((what, f"{value:.3g} {unit}", "", f"at most {goal:g} {unit}", _verdict(value <= goal)))

    def _add(self, what: str, ours: float, other: float, ratio: float, goal: str, holds: bool) -> None:
        self.rows.append((what, f"{_time(ours)} : {_time(other)}", f"{ratio:.2f}", goal, _verdict(holds)))

    @property
    def holds(self) -> bool:
        """Whether all goals hold."""
        return all(row[-1] == _verdict(True) for row in self.rows)

    def print(self) -> None:
        header = ("what", "ours : other side", "ratio", "goal", "")
        widths = [max(len(row[i]) for row in [header, *self.rows]) for i in range(5)]
        print(f"\n{self.title}\n")
        for row in [header, tuple("-" * width for width in widths), *self.rows]:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _verdict(holds: bool) -> str:
    return "holds" if holds else "DOES NOT HOLD"


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
