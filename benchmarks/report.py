"""Timing both sides of a comparison in one run, and saying which goals hold."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path


def best_times(
    *sides: Callable[[], object],
    before: Sequence[Callable[[], object]] = (),
    repeats: int = 7,
    seconds: float = 0.5,
    window: float = 0.004,
) -> list[float]:
    """Seconds per call of each side: the least over rounds in which the sides take turns, so that noise meets both.

    A turn is one call, or as many as fit in `window` seconds: a shared machine has such moments of quiet when it has no
    longer ones. At least `repeats` rounds, and more until `seconds` have gone by. `before` has a preparation for each
    side, or none: it is called before each of its turns and not timed.
    """
    prepare = before or [lambda: None for _ in sides]
    calls = []
    for side, get_ready in zip(sides, prepare, strict=True):
        get_ready()
        side()
        started = time.perf_counter()
        side()
        once = max(time.perf_counter() - started, 1e-9)
        calls.append(max(1, round(window / once)))
    best = [float("inf")] * len(sides)
    begun, rounds = time.perf_counter(), 0
    while rounds < repeats or time.perf_counter() - begun < seconds:
        rounds += 1
        for i, side in enumerate(sides):
            prepare[i]()
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

    def faster(
        self, what: str, ours: float, peer: float, goal: float, unit: float = 1.0, wide_only: bool = False
    ) -> None:
        """Goal: `peer` takes at least `goal` times as long as `ours`. `unit` divides both, e.g. sentences per call.

        A goal that is `wide_only` is stated for registers of 64 bytes; without them the line is for information.
        """
        wanted = f"at least {goal:g}x faster" + (", with AVX-512" if wide_only else "")
        holds = None if wide_only and not has_avx512() else peer / ours >= goal
        self._add(what, ours / unit, peer / unit, peer / ours, wanted, holds)

    def at_most(
        self, what: str, ours: float, yardstick: float, goal: float, unit: float = 1.0, wide_only: bool = False
    ) -> None:
        """Goal: `ours` takes at most `goal` times as long as `yardstick`; `wide_only` as above."""
        wanted = f"at most {goal:g}x" + (", with AVX-512" if wide_only else "")
        holds = None if wide_only and not has_avx512() else ours / yardstick <= goal
        self._add(what, ours / unit, yardstick / unit, ours / yardstick, wanted, holds)

    def bound(self, what: str, value: float, goal: float, unit: str) -> None:
        """Goal: `value` is at most `goal`."""
        self.rows.append((what, f"{value:.3g} {unit}", "", f"at most {goal:g} {unit}", _verdict(value <= goal)))

    def note(self, what: str, text: str) -> None:
        """A line without a goal."""
        self.rows.append((what, text, "", "", ""))

    def _add(self, what: str, ours: float, other: float, ratio: float, goal: str, holds: bool | None) -> None:
        self.rows.append((what, f"{_time(ours)} : {_time(other)}", f"{ratio:.2f}", goal, _verdict(holds)))

    @property
    def holds(self) -> bool:
        """Whether all goals hold."""
        return all(row[-1] != _verdict(False) for row in self.rows)

    def print(self) -> None:
        header = ("what", "ours : other side", "ratio", "goal", "")
        widths = [max(len(row[i]) for row in [header, *self.rows]) for i in range(5)]
        print(f"\n{self.title}\n")
        for row in [header, tuple("-" * width for width in widths), *self.rows]:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip(), flush=True)


def finish(reports: Iterable[Report]) -> int:
    """Print each report when it is done, and add it to the file SPANTREE_BENCH_JSON; 1 if some goal does not hold."""
    failed = False
    file = os.environ.get("SPANTREE_BENCH_JSON")
    for report in reports:
        report.print()
        if file:
            with open(file, "a", encoding="utf-8") as lines:
                print(json.dumps({"title": report.title, "rows": report.rows}, ensure_ascii=False), file=lines)
        failed |= not report.holds
    return int(failed)


def has_avx512() -> bool:
    """Whether registers of 64 bytes are there and in use."""
    flags = Path("/proc/cpuinfo")
    return "SPANTREE_VECTORS" not in os.environ and flags.exists() and "avx512vl" in flags.read_text()


def _verdict(holds: bool | None) -> str:
    return "not judged here" if holds is None else "holds" if holds else "DOES NOT HOLD"


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
