"""Threads change no bit: however many, whoever else is calling, and in a child of fork()."""

from __future__ import annotations

import os
import signal
import threading
import traceback

import numpy as np
import pytest

import spantree
from questions import assert_same_bits

# From Python 3.12 on there is a warning that other threads may hold locks: that is what is tested.
forks = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
PATIENCE = 30  # seconds; what takes longer is a deadlock


@pytest.fixture
def four_threads():
    spantree.set_threads(4)
    yield
    spantree.set_threads(None)


def batch(seed, count=64, words=30):
    """By default large enough to be worth several threads, whatever the question."""
    return np.random.default_rng(seed).normal(size=(count, words + 1, words + 1))


def answers(scores):
    return spantree.decode(scores), spantree.log_partition(scores), spantree.marginals(scores)


def answers_alone(scores):
    """From one thread."""
    before = spantree.set_threads(1)
    try:
        return answers(scores)
    finally:
        spantree.set_threads(before)


def threads_of_this_process():
    return len(os.listdir("/proc/self/task"))


def exit_code_of_child(work):
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(PATIENCE)
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def at_the_same_time(*calls):
    """Their results."""
    results = [None] * len(calls)
    start = threading.Barrier(len(calls))

    def run(i):
        start.wait()
        results[i] = calls[i]()

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * PATIENCE)
        assert not thread.is_alive()
    return results


@forks
def test_a_child_of_fork_has_threads_of_its_own(four_threads):
    scores = batch(0)
    expected = answers(scores)
    assert threads_of_this_process() >= 4

    def work(generations):
        assert threads_of_this_process() == 1
        for _ in range(3):
            assert_same_bits(answers(scores), expected)
        assert threads_of_this_process() >= 4
        if generations > 1:
            assert exit_code_of_child(lambda: work(generations - 1)) == 0

    for _ in range(3):
        assert exit_code_of_child(lambda: work(2)) == 0
    assert_same_bits(answers(scores), expected)


@forks
def test_a_child_of_fork_while_others_are_calling(four_threads):
    """Whatever was locked at that moment stays locked in the child."""
    scores, others = batch(0), batch(1)
    expected = answers(scores)
    done = threading.Event()

    def keep_calling():
        while not done.is_set():
            answers(others)

    def fork_again_and_again():
        try:
            return all(exit_code_of_child(lambda: assert_same_bits(answers(scores), expected)) == 0 for _ in range(30))
        finally:
            done.set()

    all_well, *_ = at_the_same_time(fork_again_and_again, keep_calling, keep_calling, keep_calling)
    assert all_well


def test_callers_do_not_disturb_each_other(four_threads):
    batches = [batch(seed, count=40 + 8 * seed, words=20 + 3 * seed) for seed in range(6)]
    expected = [answers_alone(scores) for scores in batches]

    def ask_repeatedly(scores):
        return [answers(scores) for _ in range(8)]

    calls = [lambda scores=scores: ask_repeatedly(scores) for scores in batches]
    for results, wanted in zip(at_the_same_time(*calls), expected, strict=True):
        for result in results:
            assert_same_bits(result, wanted)


def test_callers_of_one_distribution_do_not_disturb_each_other(four_threads):
    scores = batch(0)
    alone = spantree.TreeDistribution(scores)
    expected = alone.entropy(with_grad=True), alone.marginals(), alone.argmax()
    for _ in range(5):
        dist = spantree.TreeDistribution(scores)
        results = at_the_same_time(lambda dist=dist: dist.entropy(with_grad=True), dist.marginals, dist.argmax)
        assert_same_bits(results, expected)


@pytest.mark.parametrize("options", [{}, {"root": "multi"}, {"projective": True}], ids=str)
def test_any_number_of_threads(four_threads, options):
    scores = batch(2)
    scores[5, 3:, 4] = -np.inf
    scores[7] *= 500
    mixed = [*scores, *batch(3, count=3, words=90), *batch(4, count=20, words=4)]

    def everything(given):
        dist = spantree.TreeDistribution(given, **options)
        return [
            dist.argmax(),
            dist.max(),
            dist.topk(2),
            dist.log_partition(),
            dist.marginals(),
            dist.entropy(with_grad=True),
            dist.sample(2, rng=0),
            spantree.log_partition(given, **options),
            spantree.marginals(given, **options),
        ]

    for given in (scores, mixed):
        spantree.set_threads(1)
        expected = everything(given)
        for threads in (2, 3, 4, 7):
            spantree.set_threads(threads)
            assert_same_bits(everything(given), expected)


def test_numbers_of_threads():
    before = spantree.set_threads(np.int64(2))
    try:
        for wrong in (0, -1, True, 2.0, "2", 1 << 31, 1 << 70):
            with pytest.raises(ValueError, match="number of threads"):
                spantree.set_threads(wrong)
            assert spantree.get_threads() == 2
    finally:
        spantree.set_threads(before)
