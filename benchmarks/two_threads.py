"""Two threads against one. The goal is for batches of a millisecond of work and more."""

from __future__ import annotations

from collections.abc import Callable

import spantree
from report import Report, best_times

GOAL = 1.85


def two_threads(report: Report, what: str, ask: Callable[[], object]) -> None:
    """One line of the report. On one thread, `ask` takes a millisecond or more: the line says how long."""

    def on(threads: int) -> None:
        spantree.set_threads(threads)
        ask()

    two, one = best_times(lambda: on(2), lambda: on(1))
    spantree.set_threads(1)
    report.faster(what, two, one, GOAL)
