"""Files: what `annotate` spends its time on, its memory, a killed run taken up again; CoNLL-U patched; the report."""

from __future__ import annotations

import argparse
import importlib.util
import io
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from report import Report, finish
from spantree import _core
from spantree.__main__ import main as spantree_command
from spantree.files import read_conllu
from spantree.view.report import ReportSentence, write_report

WORDS = 25
MEASURED = """
import resource, sys
from spantree.__main__ import main
code = main(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, file=sys.stderr)
raise SystemExit(code)
"""


def write_scores(path: Path, sentences: int) -> None:
    """Random scores, a sentence a row, ten thousand rows a group."""
    rng = np.random.default_rng(0)
    schema = pa.schema([("id", pa.string()), ("n", pa.int32()), ("scores", pa.list_(pa.float32()))])
    size = (WORDS + 1) ** 2
    with pq.ParquetWriter(path, schema) as writer:
        for first in range(0, sentences, 10_000):
            count = min(10_000, sentences - first)
            values = pa.array(3 * rng.standard_normal(count * size, np.float32))
            lists = pa.ListArray.from_arrays(pa.array(np.arange(count + 1, dtype=np.int32) * size), values)
            ids = pa.array([str(first + i) for i in range(count)])
            writer.write_table(pa.table([ids, pa.array(np.full(count, WORDS, np.int32)), lists], schema=schema))


class Stopwatch:
    """The processor's time inside of some functions, while they are watched."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._inside = False

    @contextmanager
    def running(self, what: str) -> Iterator[None]:
        if self._inside:  # one of the functions calls another
            yield
            return
        self._inside, started = True, time.process_time()
        try:
            yield
        finally:
            self.seconds[what] = self.seconds.get(what, 0.0) + time.process_time() - started
            self._inside = False

    def watched(self, what: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **options: Any) -> Any:
            with self.running(what):
                return function(*arguments, **options)

        return timed

    def watched_iterator(self, what: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **options: Any) -> Any:
            items = iter(self.watched(what, function)(*arguments, **options))
            while True:
                with self.running(what):
                    item = next(items, None)
                if item is None:
                    return
                yield item

        return timed


def useful_share(scores: Path, target: Path) -> float:
    """The share of the processor's time that `annotate` spends inside of the core, and in reading and writing Parquet.

    All of it measured in one run. Everything else is Python: columns to sentences, and answers to columns.
    """
    watch = Stopwatch()
    places: list[tuple[str, Any, str]] = []
    for owner in (_core, *(kind for kind in vars(_core).values() if isinstance(kind, type))):
        names = [name for name in vars(owner) if name[0] != "_" and callable(getattr(owner, name))]
        places += [("the core", owner, name) for name in names if not isinstance(getattr(owner, name), type)]
    places += [("the core", _core, "Solved")]  # its constructor solves
    places += [("reading", pq, "read_table"), ("reading", pq, "read_schema")]
    places += [("writing", pq, "write_table"), ("writing", os, "fsync")]
    places += [("writing", pq.ParquetWriter, name) for name in ("write_table", "close")]
    command = ["annotate", str(scores), "--confidence", "-j", "1", "-o", str(target)]
    spantree_command(command)  # imports
    with ExitStack() as stack:
        for what, owner, name in places:
            stack.enter_context(patch.object(owner, name, watch.watched(what, getattr(owner, name))))
        reading = watch.watched_iterator("reading", pq.ParquetFile.iter_batches)
        stack.enter_context(patch.object(pq.ParquetFile, "iter_batches", reading))
        started = time.process_time()
        spantree_command(command)
        whole = time.process_time() - started
    parts = ", ".join(f"{what} {seconds / whole:.0%}" for what, seconds in watch.seconds.items())
    print(f"  annotate: {whole:.2f} s of processor time; {parts}")
    return sum(watch.seconds.values()) / whole


def bench_annotate(report: Report, folder: Path, sentences: int) -> None:
    scores = folder / "scores.parquet"
    write_scores(scores, sentences)
    arguments = ["annotate", str(scores), "--confidence", "-j", "1", "-o"]
    share = useful_share(scores, folder / "profiled.parquet")
    report.bound(
        f"annotate {sentences} sentences: time not in the core, reading or writing", 100 * (1 - share), 20, "%"
    )
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *arguments, str(folder / "whole.parquet")], capture_output=True, check=True
    )
    seconds = time.perf_counter() - started
    report.bound(f"annotate {sentences} sentences: peak memory", float(done.stderr.split()[-1]), 500, "MB")
    print(f"  annotate: {sentences / seconds:,.0f} sentences/s on one thread, start-up included")
    target = folder / "killed.parquet"
    running = subprocess.Popen([sys.executable, "-c", MEASURED, *arguments, str(target)], stderr=subprocess.DEVNULL)
    while running.poll() is None and len(list(folder.glob("killed.parquet.parts/part-*"))) < max(
        1, sentences // 8192 // 2
    ):
        time.sleep(0.01)
    running.send_signal(signal.SIGKILL)
    running.wait()
    subprocess.run(
        [sys.executable, "-c", MEASURED, *arguments, str(target), "--resume"], capture_output=True, check=True
    )
    same = target.read_bytes() == (folder / "whole.parquet").read_bytes()
    report.bound("  killed half-way and taken up again: other bytes", 0.0 if same else 1.0, 0, "files")


def bench_conllu(report: Report) -> None:
    rng = np.random.default_rng(0)
    line = "{}\tword\tlemma\tNOUN\tNN\tCase=Nom|Number=Sing\t{}\tnsubj:pass\t_\tSpaceAfter=No\n"
    sentence = "# sent_id = x\n" + "".join(line.format(i, i - 1) for i in range(1, 18)) + "\n"
    data = (sentence * 12_000).encode()
    heads = np.array([-1, *rng.integers(0, 18, 17)])
    keys = {"HeadProb": ["0.8765"] * 17, "HeadMargin": ["1.23"] * 17}
    for what, misc in (("heads", None), ("heads and two keys of MISC", keys)):
        best = float("inf")
        for _ in range(5):
            started = time.process_time()
            for piece in read_conllu(data[i : i + (1 << 20)] for i in range(0, len(data), 1 << 20)):
                piece.patched(heads, misc=misc)
            best = min(best, time.process_time() - started)
        report.bound(f"CoNLL-U read, {what} patched: seconds for 30 MB", 30 * best / (len(data) / 1e6), 1, "s")


def bench_report(report: Report) -> None:
    rng = np.random.default_rng(0)
    words = [f"word{i}" for i in range(WORDS)]
    scores = rng.normal(size=(1000, WORDS + 1, WORDS + 1)).astype(np.float32) * 3
    page = io.BytesIO()
    write_report((ReportSentence(str(i), words, one) for i, one in enumerate(scores)), page, title="bench")
    report.bound(f"report of 1,000 sentences of {WORDS} words", len(page.getvalue()) / 1e6, 5, "MB")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        path.write_bytes(page.getvalue())
        seconds = opening_seconds(path)
    if seconds is not None:
        report.bound("  opened in Chromium, first sentence drawn", seconds, 2, "s")


def opening_seconds(page: Path) -> float | None:
    """From the request to the end of the page's script, which draws the list and the first tree; the best of three."""
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver is None or importlib.util.find_spec("selenium") is None:
        print("  opening the report is not measured: that needs Chromium, its driver and selenium")
        return None
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    window = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        times = []
        for _ in range(3):
            window.get(page.as_uri())
            assert window.execute_script("return document.querySelectorAll('#picture .arc').length") > 0
            times.append(window.execute_script("return performance.getEntriesByType('navigation')[0].loadEventEnd"))
    finally:
        window.quit()
    return float(min(times)) / 1000


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sentences", type=int, default=100_000)
    sentences = parser.parse_args().sentences
    return finish(partial(files, sentences))


def files(sentences: int) -> Report:
    report = Report("Files")
    bench_conllu(report)
    bench_report(report)
    with tempfile.TemporaryDirectory() as folder:
        bench_annotate(report, Path(folder), sentences)
    return report


if __name__ == "__main__":
    raise SystemExit(main())
