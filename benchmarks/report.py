"""Timing both sides of a comparison in one run, and saying which goals hold."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from pathlib import Path

import numpy as np


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


class Goal(Enum):
    """What a line says of its two numbers."""

    FASTER = "at least {goal:g}x faster"
    AT_MOST = "at most {goal:g}x"
    BOUND = "at most {goal:g} {unit}"
    NONE = ""


@dataclass(frozen=True)
class Line:
    """Something measured, with the other side of the comparison if there is one, and what is wanted of it."""

    what: str
    kind: Goal
    ours: float = 0.0
    other: float = 0.0
    goal: float = 0.0
    divisor: float = 1.0
    unit: str = ""
    wide_only: bool = False
    text: str = ""

    @property
    def ratio(self) -> float:
        return self.other / self.ours if self.kind is Goal.FASTER else self.ours / self.other

    @property
    def holds(self) -> bool | None:
        """None if it is not judged on this machine, or has no goal."""
        if self.kind is Goal.NONE or (self.wide_only and not has_avx512()):
            return None
        if self.kind is Goal.BOUND:
            return self.ours <= self.goal
        return self.ratio >= self.goal if self.kind is Goal.FASTER else self.ratio <= self.goal

    @property
    def has_times(self) -> bool:
        """Whether both numbers are times: noise makes these longer, never shorter."""
        return self.kind in (Goal.FASTER, Goal.AT_MOST)

    def least(self, again: Line) -> Line:
        """With the least times of both measurements, each side's for itself. What is no time stays as it was found."""
        if not self.has_times:
            return self
        return replace(self, ours=min(self.ours, again.ours), other=min(self.other, again.other))

    def cells(self) -> tuple[str, str, str, str, str]:
        if self.kind is Goal.NONE:
            return self.what, self.text, "", "", ""
        wanted = self.kind.value.format(goal=self.goal, unit=self.unit) + (", with AVX-512" if self.wide_only else "")
        if self.kind is Goal.BOUND:
            return self.what, f"{self.ours:.3g} {self.unit}", "", wanted, _verdict(self.holds)
        times = f"{_time(self.ours / self.divisor)} : {_time(self.other / self.divisor)}"
        return self.what, times, f"{self.ratio:.2f}", wanted, _verdict(self.holds)


@dataclass
class Report:
    """A table of measured ratios."""

    title: str
    lines: list[Line] = field(default_factory=list)

    def faster(
        self, what: str, ours: float, peer: float, goal: float, unit: float = 1.0, wide_only: bool = False
    ) -> None:
        """Goal: `peer` takes at least `goal` times as long as `ours`. `unit` divides both, e.g. sentences per call.

        A goal that is `wide_only` is stated for registers of 64 bytes; without them the line is for information.
        """
        self.lines.append(Line(what, Goal.FASTER, ours, peer, goal, unit, wide_only=wide_only))

    def at_most(
        self, what: str, ours: float, yardstick: float, goal: float, unit: float = 1.0, wide_only: bool = False
    ) -> None:
        """Goal: `ours` takes at most `goal` times as long as `yardstick`; `wide_only` as above."""
        self.lines.append(Line(what, Goal.AT_MOST, ours, yardstick, goal, unit, wide_only=wide_only))

    def bound(self, what: str, value: float, goal: float, unit: str) -> None:
        """Goal: `value` is at most `goal`."""
        self.lines.append(Line(what, Goal.BOUND, value, 0.0, goal, unit=unit))

    def note(self, what: str, text: str) -> None:
        """A line without a goal."""
        self.lines.append(Line(what, Goal.NONE, text=text))

    @property
    def holds(self) -> bool:
        """Whether all goals hold."""
        return all(line.holds is not False for line in self.lines)

    @property
    def is_worth_another_look(self) -> bool:
        return any(line.has_times and line.holds is False for line in self.lines)

    def least(self, again: Report) -> Report:
        """The same table, measured again, with the least times of both."""
        return Report(self.title, [line.least(other) for line, other in zip(self.lines, again.lines, strict=True)])

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        return [line.cells() for line in self.lines]

    def print(self) -> None:
        header = ("what", "ours : other side", "ratio", "goal", "")
        rows = self.rows()
        widths = [max(len(row[i]) for row in [header, *rows]) for i in range(5)]
        print(f"\n{self.title}\n")
        for row in [header, tuple("-" * width for width in widths), *rows]:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip(), flush=True)


def seeded(*questions: Callable[[np.random.Generator], Report]) -> list[Callable[[], Report]]:
    """Tables of which each has random numbers of its own, the same every time."""
    return [partial(lambda question: question(np.random.default_rng(0)), question) for question in questions]


def finish(*tables: Callable[[], Report]) -> int:
    """Measure each table, print it, and add it to the file SPANTREE_BENCH_JSON; 1 if some goal does not hold.

    On a shared machine one side may have had all the luck for the half second of a line: a table with a ratio that does
    not hold is measured again, up to twice, and the least times count, each side's for itself.
    """
    failed = False
    file = os.environ.get("SPANTREE_BENCH_JSON")
    for table in tables:
        report = table()
        for _ in range(2):
            if report.is_worth_another_look:
                report = report.least(table())
        report.print()
        if file:
            with open(file, "a", encoding="utf-8") as lines:
                print(json.dumps({"title": report.title, "rows": report.rows()}, ensure_ascii=False), file=lines)
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
