"""The packages that only the experiments need, imported when they are needed."""

from __future__ import annotations

import importlib
from typing import Any


class MissingExtraError(ImportError):
    """A package that the experiments need is not installed."""


def need(module: str) -> Any:
    """Import a module of the extra ``spantree[experiments]``, or say how to get it.

    Examples
    --------
    >>> need("json").dumps([1])
    '[1]'
    >>> need("no_such_module")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    spantree.experiments._extras.MissingExtraError: the experiments need no_such_module: pip install...
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as missing:
        raise MissingExtraError(f"the experiments need {missing.name}: pip install 'spantree[experiments]'") from None
