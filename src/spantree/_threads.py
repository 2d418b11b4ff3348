"""How many threads a batch is spread over."""

from __future__ import annotations

import os

from ._core import entries

_threads: int | None = None


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
    for the next call, no longer than it has worked and at most a fifth of a millisecond, and lets others run meanwhile.

    Examples
    --------
    >>> import spantree
    >>> before = spantree.set_threads(1)
    >>> spantree.get_threads()
    1
    >>> _ = spantree.set_threads(before)
    """
    global _threads
    if count is not None and (not isinstance(count, int) or isinstance(count, bool) or count < 1):
        raise ValueError(f"the number of threads must be a positive integer or None, not {count!r}")
    before, _threads = _threads, count
    entries.set_default_threads(count or 0)  # for hosts that ask the core by themselves
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


def _default_threads() -> int:
    wanted = os.environ.get("SPANTREE_THREADS")
    if wanted:
        if not wanted.isdecimal() or int(wanted) < 1:
            raise ValueError(f"SPANTREE_THREADS must be a positive integer, not {wanted!r}")
        return int(wanted)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
