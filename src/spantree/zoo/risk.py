"""Expected attachment error, by T1.

Zmigrod, Vieira and Cotterell, "Efficient Computation of Expectations under Spanning Tree Distributions",
section 6.1 and equation (33).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._graph import Root
from .t1 import t1


def risk(scores: ArrayLike, gold: ArrayLike, root: Root = "single") -> float:
    """Expected share of words with a wrong head: one minus T1 with ``r = 1/n`` on the gold edges.

    Parameters
    ----------
    scores : array_like, shape (n+1, n+1)
        Log-weights ``[head, dependent]``.
    gold : array_like of int, shape (n+1,)
        Gold heads; ``gold[0]`` is ignored.
    root : {"single", "multi"}, default "single"
        How many edges may leave ROOT (the gold tree need not obey).

    Returns
    -------
    float
        0 for a sentence without words.

    Notes
    -----
    O(n^3). Accuracy as `t1`.

    Examples
    --------
    >>> print(round(risk(np.zeros((3, 3)), [-1, 0, 1]), 12))
    0.5
    """
    heads = np.asarray(gold)
    n = len(heads) - 1
    if heads.shape != (len(np.asarray(scores)),) or ((heads[1:] < 0) | (heads[1:] > n)).any():
        raise ValueError(f"gold must hold the heads of {len(np.asarray(scores)) - 1} words, not {heads}")
    if n == 0:
        return 0.0
    r = np.zeros((n + 1, n + 1))
    r[heads[1:], np.arange(1, n + 1)] = 1.0 / n
    return 1.0 - float(t1(scores, r, root))
