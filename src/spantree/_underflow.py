"""What is too small for a double is 0, also for who has NumPy raise an error at that."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
T = TypeVar("T")


def underflow_is_zero(quantity: Callable[P, T]) -> Callable[P, T]:
    """For functions that compute with weights and probabilities: trees may have next to none."""

    @functools.wraps(quantity)
    def computed(*args: P.args, **kwargs: P.kwargs) -> T:
        with np.errstate(under="ignore"):
            return quantity(*args, **kwargs)

    return computed
