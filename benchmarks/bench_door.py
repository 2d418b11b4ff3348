"""What comes before and after the work: importing, one small call, a list instead of padded batches."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

import spantree
from report import Report, best_times, finish, seeded
from trained_scores import padded_batches

SENTENCES = 400


def main() -> int:
    spantree.set_threads(1)
    return finish(*seeded(calls), imports)


def calls(rng: np.random.Generator) -> Report:
    report = Report(f"Calls, one thread; other side of a list: the same {SENTENCES} sentences padded in buckets of 50")
    for dtype in (np.float32, np.float64):
        name = dtype.__name__
        sentence = rng.normal(size=(11, 11)).astype(dtype)
        (once,) = best_times(lambda sentence=sentence: spantree.decode(sentence))
        report.bound(f"decode one sentence of 10 words, {name}", once * 1e6, 2, "us")
        matrices = [rng.normal(size=(n + 1, n + 1)).astype(dtype) for n in rng.integers(10, 31, size=SENTENCES)]
        batches = padded_batches(matrices, 50)
        listed, padded = best_times(
            lambda matrices=matrices: spantree.decode(matrices),
            lambda batches=batches: [spantree.decode(scores, lengths) for scores, lengths in batches],
        )
        report.at_most(f"decode a list of sentences of 10 to 30 words, {name}", listed, padded, 1.5, SENTENCES)
    return report


def imports() -> Report:
    report = Report("Importing, in a new process; other side: importing NumPy")

    def seconds(module: str) -> float:
        script = f"import time; t = time.process_time(); import {module}; print(time.process_time() - t)"
        return float(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout)

    ours, numpys = float("inf"), float("inf")
    for _ in range(15):
        ours, numpys = min(ours, seconds("spantree")), min(numpys, seconds("numpy"))
    report.at_most("import spantree", ours, numpys, 1.3)
    return report


if __name__ == "__main__":
    raise SystemExit(main())
