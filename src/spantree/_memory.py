"""Memory for copies of scores, which come and go with every batch."""

from __future__ import annotations

import numpy as np

from . import _core
from ._read import FloatArray

# Bytes. What is smaller the C library keeps for the next array by itself.
_WORTH_LENDING = 1 << 16


def like(scores: FloatArray) -> FloatArray:
    """An array of that shape and type, float32 or float64, in C order: a large one where one was before that has gone."""
    if scores.nbytes < _WORTH_LENDING:
        return np.empty(scores.shape, scores.dtype)
    return _core.lent_array(scores.shape, scores.dtype == np.float32)


def copy_of(scores: FloatArray) -> FloatArray:
    if scores.nbytes < _WORTH_LENDING:
        return np.array(scores, order="C")
    copy = like(scores)
    np.copyto(copy, scores)
    return copy
