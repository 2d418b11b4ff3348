"""Ctrl-C reaches a long call, on one thread and on several."""

from __future__ import annotations

import copy
import pickle
import signal
import subprocess
import sys

import numpy as np
import pytest

import spantree

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


# Numbers of 87,000 digits: hours of work. A timer stands for Ctrl-C, so that it comes when long products are under way.
MANY_DIGITS = """
import signal
import numpy as np, spantree
signal.signal(signal.SIGPROF, signal.default_int_handler)
scores = np.zeros((101, 101))
first = np.arange(1, 100, 2)
scores[first, first + 1] = scores[first + 1, first] = 4000.0
dist = spantree.TreeDistribution(scores, root="multi")
signs = np.random.default_rng(0).choice([-1.0, 1.0], scores.shape)
signal.setitimer(signal.ITIMER_PROF, 2.0)
try:
    dist.product_expectation(signs, with_grad={with_grad})
except KeyboardInterrupt:
    print("stopped", dist.expectation(np.ones(scores.shape)))
"""


@pytest.mark.parametrize("with_grad", [False, True])
def test_ctrl_c_among_many_digits(with_grad):
    script = MANY_DIGITS.format(with_grad=with_grad)
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30)
    stopped, edges = result.stdout.split()
    assert stopped == "stopped"
    assert float(edges) == pytest.approx(100.0)


@pytest.mark.parametrize("projective", [False, True])
@pytest.mark.parametrize(
    "options", [{}, {"where": lambda heads: True}, {"exactly": 1, "limit": 10**9}], ids=["all", "where", "exactly"]
)
def test_a_stream_of_trees_that_was_interrupted_says_so(projective, options):
    """Nobody takes it for one that has no tree left."""

    def interrupt(number, frame):
        raise KeyboardInterrupt

    dist = spantree.TreeDistribution(np.zeros((41, 41)), root="multi", projective=projective)
    draws = dist.iter_without_replacement(rng=0)
    for trees in (dist.iter_best(**options), draws):
        before = signal.signal(signal.SIGALRM, interrupt)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            with pytest.raises(KeyboardInterrupt):
                for _ in trees:
                    pass
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        try:  # between two steps it goes on
            answer = str(next(trees).heads)
        except RuntimeError as error:
            answer = str(error)
        assert answer.startswith(("[-1 ", "these trees were ended by a KeyboardInterrupt"))


def test_a_function_that_fails_ends_the_stream():
    def where(heads):
        raise KeyError("no such word")

    trees = spantree.TreeDistribution(np.zeros((4, 4))).iter_best(where=where)
    with pytest.raises(KeyError):
        next(trees)
    with pytest.raises(RuntimeError, match="ended by a KeyError"):
        next(trees)


@pytest.mark.parametrize("take", [copy.copy, copy.deepcopy, pickle.dumps])
def test_streams_of_trees_are_not_copied(take):
    """Two would take each other's trees."""
    dist = spantree.TreeDistribution(np.zeros((4, 4)))
    for trees in (dist.iter_best(), dist.iter_without_replacement(rng=0)):
        with pytest.raises(TypeError, match="cannot be copied"):
            take(trees)
