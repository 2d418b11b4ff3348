"""Copies of scores lie in memory that is used again: never while anybody still looks at it."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import spantree

forks = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")

SHAPES = [(40, 16, 16), (10, 41, 41), (300, 9, 9), (8, 16, 16, 9)]  # 80 KB and more, so that it is lent


def made(rng, shape, dtype):
    scores = rng.normal(size=shape).astype(dtype)
    return scores, spantree.TreeDistribution(scores, labelled=len(shape) == 4)


def address(dist):
    return dist._batch.arrays.__array_interface__["data"][0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_distributions_that_live_at_the_same_time_do_not_share_memory(dtype):
    rng = np.random.default_rng(0)
    alive = []
    for step in range(60):
        alive.append(made(rng, SHAPES[rng.integers(len(SHAPES))], dtype))
        if step % 3 == 2:
            del alive[rng.integers(len(alive))]
    for scores, dist in alive:
        np.testing.assert_array_equal(dist.marginals(), spantree.marginals(scores, labelled=scores.ndim == 4))


def test_memory_that_has_been_given_back_is_lent_again():
    rng = np.random.default_rng(0)
    _, dist = made(rng, (40, 32, 32), np.float64)
    before = address(dist)
    del dist
    _, other = made(rng, (80, 32, 32), np.float32)  # as many bytes
    assert address(other) == before


def test_what_is_read_from_a_distribution_keeps_its_memory():
    rng = np.random.default_rng(0)
    scores, dist = made(rng, (40, 16, 16), np.float64)
    one = dist[3]
    del dist
    others = [made(rng, (40, 16, 16), np.float64) for _ in range(3)]
    np.testing.assert_array_equal(one.marginals(), spantree.marginals(scores[3]))
    assert len(others) == 3


def test_masks_and_labels_of_the_root_do_not_reach_the_given_scores():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(40, 16, 16, 9))
    given = scores.copy()
    mask = rng.random(scores.shape) < 0.9
    dist = spantree.TreeDistribution(given, labelled=True, mask=mask, root_label=2)
    np.testing.assert_array_equal(given, scores)
    expected = np.where(mask, scores, -np.inf)
    expected[:, 1:, :, 2] = expected[:, 0, :, :2] = expected[:, 0, :, 3:] = -np.inf
    np.testing.assert_array_equal(dist.log_partition(), spantree.log_partition(expected, labelled=True))


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
@forks
def test_a_child_of_fork_lends_too():
    rng = np.random.default_rng(0)
    scores, dist = made(rng, (40, 32, 32), np.float64)
    expected = dist.log_partition()
    child = os.fork()
    if child == 0:
        same = spantree.TreeDistribution(scores).log_partition()
        del dist
        os._exit(0 if np.array_equal(same, expected) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


IN_MANY_THREADS = """
import ctypes, gc, threading
import numpy as np, spantree

def resident():
    with open("/proc/self/statm") as pages:
        return int(pages.read().split()[1]) * 4096

spantree.set_threads(1)
scores = np.random.default_rng(0).normal(size=(701, 701))
spantree.TreeDistribution(scores[:11, :11]).entropy(with_grad=True)
before, together = resident(), threading.Barrier(12)

def ask():
    dist = spantree.TreeDistribution(scores)
    together.wait()
    dist.entropy(with_grad=True)

threads = [threading.Thread(target=ask) for _ in range(12)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
del threads
gc.collect()
ctypes.CDLL(None).malloc_trim(0)  # what the C library keeps is not ours
print((resident() - before) >> 20)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="Linux says how much memory a process has")
def test_scratch_memory_of_threads_that_are_gone_goes_back():
    """Each of twelve takes 42 MB; 128 MB of scratch and 32 MB of copies may stay."""
    done = subprocess.run([sys.executable, "-c", IN_MANY_THREADS], capture_output=True, text=True, check=True)
    assert int(done.stdout) <= 128 + 32 + 16
