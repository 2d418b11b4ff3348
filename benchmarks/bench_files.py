"""Files: what `annotate` spends its time on, its memory, a killed run taken up again; CoNLL-U patched; the report."""

from __future__ import annotations

import argparse
import functools
import io
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

import spantree
from report import Report, finish
from spantree.__main__ import main as spantree_command
from spantree.files import open_scores, read_conllu
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


def useful_share(scores: Path, target: Path) -> float:
    """The share of the processor's time that goes to reading, to the library's questions and to writing."""

    def seconds(work: Callable[[], object]) -> float:
        started = time.process_time()
        work()
        return time.process_time() - started

    def read() -> list[npt.NDArray[np.float32]]:
        with open_scores(scores) as file:
            return [np.stack(batch.scores) for batch in file.batches]

    def ask(stacks: list[npt.NDArray[np.float32]]) -> None:
        for stack in stacks:
            dist = spantree.TreeDistribution(stack)
            dist.log_prob(dist.argmax())
            dist.marginals()
            dist.entropy()

    command = ["annotate", str(scores), "--confidence", "-j", "1", "-o", str(target)]
    spantree_command(command)  # imports
    whole = seconds(lambda: spantree_command(command))
    reading = seconds(read)
    asking = seconds(functools.partial(ask, read()))
    table = pq.read_table(target)
    writing = 2 * seconds(lambda: pq.write_table(table, target.with_suffix(".again")))  # shards, and all of them joined
    print(f"  processor time: {whole:.2f} s; reading {reading:.2f}, the core {asking:.2f}, writing {writing:.2f}")
    return (reading + asking + writing) / whole


def bench_annotate(report: Report, folder: Path, sentences: int) -> None:
    scores = folder / "scores.parquet"
    write_scores(scores, sentences)
    arguments = ["annotate", str(scores), "--confidence", "-j", "1", "-o"]
    share = useful_share([*arguments, str(folder / "profiled.parquet")])
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
    best = float("inf")
    for _ in range(5):
        started = time.process_time()
        for piece in read_conllu(data[i : i + (1 << 20)] for i in range(0, len(data), 1 << 20)):
            piece.patched(heads)
        best = min(best, time.process_time() - started)
    report.bound("CoNLL-U read and patched: seconds for 30 MB", 30 * best / (len(data) / 1e6), 1, "s")


def bench_report(report: Report) -> None:
    rng = np.random.default_rng(0)
    words = [f"word{i}" for i in range(WORDS)]
    scores = rng.normal(size=(1000, WORDS + 1, WORDS + 1)).astype(np.float32) * 3
    page = io.BytesIO()
    write_report((ReportSentence(str(i), words, one) for i, one in enumerate(scores)), page, title="bench")
    report.bound(f"report of 1,000 sentences of {WORDS} words", len(page.getvalue()) / 1e6, 5, "MB")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sentences", type=int, default=100_000)
    sentences = parser.parse_args().sentences
    report = Report("Files")
    bench_conllu(report)
    bench_report(report)
    with tempfile.TemporaryDirectory() as folder:
        bench_annotate(report, Path(folder), sentences)
    return finish([report])


if __name__ == "__main__":
    raise SystemExit(main())
