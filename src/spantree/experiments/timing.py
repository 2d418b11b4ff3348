"""Times of several ways to do the same, taken in turns and on one thread.

They are processor seconds, which other people's work on the machine hardly touches. Still only ratios within one call
of `compare` mean much: the ways share the machine and the moment.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import get_clock_info, process_time
from typing import Any, NamedTuple, TypeAlias

import spantree

from ._extras import need

Way: TypeAlias = Callable[[Sequence[Any]], Sequence[Any]]
"""From the inputs to one result for each."""


class Timed(NamedTuple):
    """What a way took and what it gave."""

    seconds: float
    """Of the processor for one input, in the quickest of the rounds."""
    results: Sequence[Any]
    """One for each input, in the last round."""


def each(function: Callable[[Any], Any]) -> Way:
    """The way that calls `function` on one input after the other.

    Examples
    --------
    >>> each(abs)([1, -2])
    [1, 2]
    """
    return lambda inputs: [function(one) for one in inputs]


def compare(ways: Mapping[str, Way], inputs: Sequence[Any], rounds: int) -> dict[str, Timed]:
    """Run every way on all inputs, `rounds` times in turns, and keep the quickest round of each.

    Parameters
    ----------
    ways : mapping of str to Way
        What to compare, by name.
    inputs : sequence
        Given to each way as a whole.
    rounds : int
        At least 1. In turns, so that a slow spell of the machine meets all ways alike.

    Examples
    --------
    >>> timed = compare({"built in": each(abs), "by hand": each(lambda x: x if x > 0 else -x)}, [3, -4], rounds=2)
    >>> timed["by hand"].results
    [3, 4]
    """
    seconds = dict.fromkeys(ways, math.inf)
    results: dict[str, Sequence[Any]] = {}
    tick = get_clock_info("process_time").resolution
    with one_thread():
        for _ in range(rounds):
            for name, way in ways.items():
                start = process_time()
                results[name] = way(inputs)
                elapsed = max(process_time() - start, tick)
                seconds[name] = min(seconds[name], elapsed / len(inputs))
    return {name: Timed(seconds[name], results[name]) for name in ways}


@contextmanager
def one_thread() -> Iterator[None]:
    """Let the core and the linear algebra behind NumPy use one thread each."""
    before = spantree.set_threads(1)
    try:
        with need("threadpoolctl").threadpool_limits(limits=1):
            yield
    finally:
        spantree.set_threads(before)
