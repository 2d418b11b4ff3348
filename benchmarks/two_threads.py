"""Two threads against one. The goal is for batches of a millisecond of work and more."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import spantree
from report import Report, best_times

GOAL = 1.85
SECONDS = 4.0  # on a shared machine, two cores are seldom quiet at the same time


def two_threads(report: Report, what: str, ask: Callable[[], object]) -> None:
    """One line of the report. On one thread, `ask` takes a millisecond or more: the line says how long."""

    def get_ready(threads: int) -> None:
        spantree.set_threads(threads)
        ask()  # after the other side's turn, a thread may sleep, and the caches hold what one core had

    two, one = best_times(ask, ask, before=[partial(get_ready, 2), partial(get_ready, 1)], seconds=SECONDS)
    spantree.set_threads(1)
    report.faster(what, two, one, GOAL)
