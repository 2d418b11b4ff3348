"""Two threads against one, and what the machine has to give: two processes that share nothing, at the same time.

The goal is for batches of a millisecond of work and more. Where a second core is not all ours, two processes show it.
"""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np

import spantree
from report import Report, best_times

GOAL = 1.85
SECONDS = 4.0  # on a shared machine, two cores are seldom quiet at the same time


def two_threads(report: Report, what: str, ask: Callable[[], object]) -> None:
    """Two lines of the report. On one thread, `ask` takes a millisecond or more: the first line says how long."""

    def get_ready(threads: int) -> None:
        spantree.set_threads(threads)
        ask()  # after the other side's turn, a thread may sleep, and the caches hold what one core had

    with Companion.asking(ask) as companion:

        def both_at_once() -> None:
            companion.start()
            ask()
            companion.wait()

        def get_both_ready() -> None:
            get_ready(1)
            both_at_once()

        ready = [partial(get_ready, 2), partial(get_ready, 1), get_both_ready]
        two, one, both = best_times(ask, ask, both_at_once, before=ready, seconds=SECONDS)
    spantree.set_threads(1)
    report.faster(what, two, one, GOAL)
    report.note("    two processes, each asking that at the same time", f"{2 * one / both:.2f} times one's work")


class Companion:
    """A process that asks whenever it is told to. It spins while it is wanted, and sleeps when it is not."""

    PATIENCE = 2e-3  # seconds

    def __init__(self) -> None:
        self._shared = np.frombuffer(mmap.mmap(-1, 4096), dtype=np.int64)  # [0]: asked for, [64]: done, [128]: awake
        self._asleep, self._alarm = os.pipe()

    @classmethod
    @contextmanager
    def asking(cls, ask: Callable[[], object]) -> Iterator[Companion]:
        companion = cls()
        child = os.fork()
        if child == 0:
            os.close(companion._alarm)
            companion._serve(ask)
        os.close(companion._asleep)
        try:
            yield companion
        finally:
            os.close(companion._alarm)  # it reads the end of the pipe
            os.waitpid(child, 0)

    def start(self) -> None:
        self._shared[0] += 1

    def wait(self) -> None:
        while self._shared[64] != self._shared[0]:
            if not self._shared[128]:
                self._shared[128] = 1
                os.write(self._alarm, b"!")

    def _serve(self, ask: Callable[[], object]) -> None:
        spantree.set_threads(1)
        while os.read(self._asleep, 1):
            wanted_last = time.perf_counter()
            while time.perf_counter() - wanted_last < self.PATIENCE:
                if self._shared[64] != self._shared[0]:
                    ask()
                    self._shared[64] += 1
                    wanted_last = time.perf_counter()
            self._shared[128] = 0
        os._exit(0)
