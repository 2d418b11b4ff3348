"""Counts what an animal does, whatever the machine: interpreted instructions, and elements of arrays touched.

Times say little about costs and nothing reproducibly. Here every bytecode instruction executed in the zoo counts one,
and every NumPy operation on a counted array counts the elements of its largest operand or result. Counted are the
matrix that the door hands out and all that is made from it; linear algebra counts the cube of its order.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from contextlib import contextmanager

import numpy as np

from spantree import zoo
from spantree.zoo import _graph

ZOO_FOLDER = str(zoo.__path__[0])


class Counted(np.ndarray):
    """An array whose operations are counted."""

    touched = 0

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        result = getattr(ufunc, method)(
            *map(plain, inputs), **{key: plain_deep(value) for key, value in kwargs.items()}
        )
        count(*inputs, result)
        return counted(result)

    def __array_function__(self, func, types, args, kwargs):
        if func in (np.linalg.inv, np.linalg.slogdet, np.linalg.svd, np.linalg.det):
            Counted.touched += len(args[0]) ** 3
        elif func is np.argsort or func is np.lexsort or func is np.unique:
            size = plain(args[0]).size if isinstance(args[0], np.ndarray) else plain(args[0][0]).size
            Counted.touched += int(size * max(np.log2(max(size, 1)), 1))
        result = func(*map(plain_deep, args), **{key: plain_deep(value) for key, value in kwargs.items()})
        count(*(one for one in args if isinstance(one, np.ndarray)), result)
        return counted(result)

    def __getitem__(self, key):
        result = counted(plain(self)[plain_deep(key)])
        count(result)
        return result

    def __setitem__(self, key, value):
        key = plain_deep(key)
        count(plain(self)[key])
        plain(self)[key] = plain(value)


for _name in ("sum", "max", "min", "argmax", "argmin", "any", "all", "prod", "copy", "astype", "tolist", "ravel"):

    def _method(self, *args, _name=_name, **kwargs):
        count(self)
        return counted(getattr(plain(self), _name)(*args, **kwargs))

    setattr(Counted, _name, _method)


def plain(array):
    return array.view(np.ndarray) if isinstance(array, Counted) else array


def plain_deep(value):
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        return type(value)(plain_deep(one) for one in value)
    return plain(value)


def counted(value):
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(counted(one) for one in value)
    return value.view(Counted) if type(value) is np.ndarray and value.ndim else value


def count(*arrays):
    Counted.touched += max((one.size for one in arrays if isinstance(one, np.ndarray)), default=1)


def operations(call) -> int:
    """What `call` does in the zoo."""
    instructions = 0

    def trace(frame, event, arg):
        nonlocal instructions
        if not frame.f_code.co_filename.startswith(ZOO_FOLDER):
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        if event == "opcode":
            instructions += 1
        return trace

    before = Counted.touched
    with counted_door():
        outer = sys.gettrace()
        sys.settrace(trace)
        try:
            call()
        finally:
            sys.settrace(outer)
    return instructions + Counted.touched - before


@contextmanager
def counted_door():
    """Let `clean_scores` hand out counted matrices, everywhere in the zoo, and count its own work."""
    original = _graph.clean_scores

    def clean(scores):
        w = original(scores)
        Counted.touched += w.size
        return counted(w)

    modules = [importlib.import_module(f"spantree.zoo.{module.name}") for module in pkgutil.iter_modules(zoo.__path__)]
    holders = [module for module in modules if getattr(module, "clean_scores", None) is original]
    for module in holders:
        module.clean_scores = clean
    try:
        yield
    finally:
        for module in holders:
            module.clean_scores = original


def growth(call, sizes) -> float:
    """The exponent p of the cost n^p between the last two of `sizes`, for `call(n)` that makes the call to count."""
    small, large = sizes[-2:]
    return float(np.log(operations(call(large)) / operations(call(small))) / np.log(large / small))
