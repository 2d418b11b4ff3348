"""Ctrl-C stops whatever draws, also one tree of a long sentence that needs numbers with an exponent of their own."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

# A parent that runs in the background may have SIGINT ignored; the script takes it back. One of these calls takes half
# a minute and more, so that a call that has to end before it hears anything would not end in time.
SCRIPT = """
import signal
import numpy as np, spantree
signal.signal(signal.SIGINT, signal.default_int_handler)
scores = {scale} * np.random.default_rng(0).normal(size=({nodes}, {nodes}))
dist = spantree.TreeDistribution(scores)
print("ready", flush=True)
{call}
print("done", flush=True)
"""
CALLS = {
    "sample": ("dist.sample(10**7, rng=0)", 41, 1),
    "ancestral": ("dist.sample(2000, rng=0, method='ancestral')", 401, 300),
    "walks": ("dist.sample_without_replacement(10**7, rng=0)", 41, 1),
    "trie": ("dist.sample_without_replacement(1000, rng=0, method='trie')", 401, 300),
    "beam": ("dist.sample_without_replacement(1000, rng=0, method='beam')", 401, 300),
    "iterator": ("trees = dist.iter_without_replacement(rng=0)\nfor _ in range(1000): next(trees)", 401, 300),
}


@pytest.mark.parametrize("name", CALLS)
def test_ctrl_c(name):
    call, nodes, scale = CALLS[name]
    script = SCRIPT.format(call=call, nodes=nodes, scale=scale)
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=30)
    finally:
        process.kill()
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert not output
