"""Memory for copies of scores, which come and go with every batch."""

from __future__ import annotations

import numpy as np

from . import _core
from ._read import FloatArray

# Bytes. What is smaller the C library keeps for the next array by itself.
_WORTH_LENDING = 1 << 16


def copy_of(scores: FloatArray) -> FloatArray:
    """In C order, of float32 or float64; a large one lies where one lay before that has gone."""
    if scores.nbytes < _WORTH_LENDING:
        return np.array(scores, order="C")
    copy = _core.lent_array(scores.shape, scores.dtype == np.float32)
    np.copyto(copy, scores)
    return copy
