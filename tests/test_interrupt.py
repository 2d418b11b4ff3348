"""Ctrl-C reaches a long call, on one thread and on several."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

# A parent that runs in the background may have SIGINT ignored; the script takes it back.
SCRIPT = """
import signal
import numpy as np, spantree
signal.signal(signal.SIGINT, signal.default_int_handler)
spantree.set_threads({threads})
scores = np.random.default_rng(0).normal(size=({sentences}, {nodes}, {nodes}))
dist = spantree.TreeDistribution(scores)
print("ready", flush=True)
while True:
    dist.{call}
"""


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("call", "sentences", "nodes"), [("argmax()", 2000, 101), ("topk(1_000_000)", 2, 41)], ids=["argmax", "topk"]
)
def test_ctrl_c(call, sentences, nodes, threads):
    check(SCRIPT.format(threads=threads, call=call, sentences=sentences, nodes=nodes))


def check(script):
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    finally:
        process.kill()
    assert errors.rstrip().endswith("KeyboardInterrupt")


# The same sentence ten thousand times, where it lies: minutes of work.
ANNOTATE = """
import signal
import numpy as np, spantree
from spantree._annotations import Options, annotate
from spantree._flat import FlatScores
signal.signal(signal.SIGINT, signal.default_int_handler)
spantree.set_threads({threads})
scores = np.random.default_rng(0).normal(size=301**2)
print("ready", flush=True)
annotate(FlatScores(scores, np.zeros(10_000, np.int64), np.full(10_000, 301)), Options(projective=True))
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_while_annotating(threads):
    check(ANNOTATE.format(threads=threads))
