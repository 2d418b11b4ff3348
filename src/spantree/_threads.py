"""How many threads a batch is spread over."""

from __future__ import annotations

import operator
import os
from typing import Any

from ._core import entries

_threads: int | None = None


_MOST = 1 << 16  # more than any machine has cores


def set_threads(count: int | None) -> int | None:
    """Sets the number of threads that batches are spread over.

    Parameters
    ----------
    count : int or None
        How many; None goes back to the default, which is the environment variable ``SPANTREE_THREADS``, or else every
        core this process may run on. Results do not depend on it.

    Returns
    -------
    int or None
        What was set before.

    Notes
    -----
    Threads are started when they are first needed, and sleep between calls. A thread that has just worked stays awake
    for the next call, no longer than it has worked and at most a millisecond, and lets others run meanwhile.

    Examples
    --------
    >>> import spantree
    >>> before = spantree.set_threads(1)
    >>> spantree.get_threads()
    1
    >>> _ = spantree.set_threads(before)
    """
    global _threads
    before, _threads = _threads, None if count is None else _checked(count)
    entries.set_default_threads(_threads or 0)  # for hosts that ask the core by themselves
    return before


def get_threads() -> int:
    """The number of threads that a batch is spread over now.

    Returns
    -------
    int
        What `set_threads` set, or the default.

    Examples
    --------
    >>> import spantree
    >>> spantree.get_threads() >= 1
    True
    """
    return _threads if _threads is not None else _default_threads()


def _checked(count: Any) -> int:
    if isinstance(count, bool) or not hasattr(count, "__index__") or not 1 <= operator.index(count) <= _MOST:
        raise ValueError(f"the number of threads must be a positive integer up to {_MOST:,}, or None, not {count!r}")
    return operator.index(count)


def _default_threads() -> int:
    wanted = os.environ.get("SPANTREE_THREADS")
    if wanted:
        if not wanted.isdecimal() or not 1 <= int(wanted) <= _MOST:
            raise ValueError(f"SPANTREE_THREADS must be a positive integer up to {_MOST:,}, not {wanted!r}")
        return int(wanted)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
