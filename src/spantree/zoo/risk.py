"""Expected attachment error, unlabelled and labelled, by T1.

Zmigrod, Vieira and Cotterell, "Efficient Computation of Expectations under Spanning Tree Distributions",
section 6.1 and equation (33), which gives the attachment *score*; the risk is one minus it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._graph import FloatArray, Root
from .matrix_tree import labelled_matrix_tree
from .t1 import t1


def risk(scores: ArrayLike, gold: ArrayLike, root: Root = "single") -> float:
    """Expected share of words with a wrong head: one minus T1 with ``r = 1/n`` on the gold edges.

    Parameters
    ----------
    gold : array_like of int, shape (n+1,)
        Gold heads; ``gold[0]`` is ignored. The gold tree need not obey `root`.

    Returns
    -------
    float
        0 for a sentence without words.

    Notes
    -----
    O(n^3). Accuracy on the graphs of `t1`: 1e-10.

    Examples
    --------
    >>> print(round(risk(np.zeros((3, 3)), [-1, 0, 1]), 12))
    0.5
    """
    r = gold_values(gold, len(np.asarray(scores)))
    return 1.0 - float(t1(scores, r, root)) if len(r) > 1 else 0.0


def labelled_risk(scores: ArrayLike, gold: ArrayLike, labels: ArrayLike, root: Root = "single") -> float:
    """Expected share of words with a wrong head or a wrong label.

    Parameters
    ----------
    scores : array_like, shape (n+1, n+1, Y)
        Log-weights of labelled edges.
    gold, labels : array_like of int, shape (n+1,)
        Gold heads and gold labels, 0 to Y-1; entry 0 is ignored.

    Notes
    -----
    O(n^3 + n^2 Y). Accuracy on the graphs of `t1`: 6e-11.

    Examples
    --------
    >>> print(round(labelled_risk(np.zeros((3, 3, 2)), [-1, 0, 1], [-1, 1, 0]), 12))
    0.75
    """
    r = labelled_gold_values(gold, labels, np.shape(scores))
    _, marginals = labelled_matrix_tree(scores, root)
    return 1.0 - float((marginals * r).sum()) if len(r) > 1 else 0.0


def gold_values(gold: ArrayLike, nodes: int) -> FloatArray:
    """Equation (33), (n+1, n+1)."""
    heads = np.asarray(gold)
    n = nodes - 1
    if heads.shape != (nodes,) or ((heads[1:] < 0) | (heads[1:] > n)).any():
        raise ValueError(f"gold must hold the heads of {n} words, not {heads}")
    r = np.zeros((nodes, nodes))
    r[heads[1:], np.arange(1, nodes)] = 1.0 / max(n, 1)
    return r


def labelled_gold_values(gold: ArrayLike, labels: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """Equation (33) for labelled edges, (n+1, n+1, Y)."""
    if len(shape) != 3 or shape[0] != shape[1]:
        raise ValueError(f"labelled scores must have shape (n+1, n+1, Y), not {shape}")
    names = np.asarray(labels)
    if names.shape != shape[:1] or ((names[1:] < 0) | (names[1:] >= shape[2])).any():
        raise ValueError(f"labels must hold the labels, 0 to {shape[2] - 1}, of {shape[0] - 1} words, not {names}")
    r = np.zeros(shape)
    words = np.arange(1, shape[0])
    r[:, words, names[1:]] = gold_values(gold, shape[0])[:, words]
    return r
