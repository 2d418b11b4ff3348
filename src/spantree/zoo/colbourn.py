"""Ancestral sampling: the heads of the words one after the other, each from its marginal given those before.

Colbourn et al. (1996), weighted and with one root by Zmigrod, Vieira and Cotterell, "Efficient Sampling of
Dependency Structures", section 4 and figure 5.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._draws import Rng, draw_from_marginals, read_k
from ._graph import FloatArray, IntArray, Root
from .laplacian import laplacian
from .matrix_tree import invert


def colbourn(scores: ArrayLike, k: int, rng: Rng = None, root: Root = "single") -> IntArray:
    """Independent draws, shape (k, n+1): dependency trees (``"single"``) or spanning trees (``"multi"``).

    Notes
    -----
    Unbiased. O(n^3) for each tree whatever the graph: n times `sample_edge`, O(n), and `condition`, O(n^2). The figure
    draws one tree; here lines 3 and 4, the Laplacian and its inverse, are computed once for all `k`.

    Each update divides by the probability of the head chosen, so errors grow along the tree as it takes unlikely edges:
    after the inverse itself this is the second way to lose all digits on sharp scores. A head that no tree has left may
    keep some 1e-17 and be drawn with that probability; `colbourn_robust` excludes it. Marginals that rounding made
    negative are drawn as 0, and none left positive is a ``FloatingPointError``: the figure does not say what to do.

    Examples
    --------
    >>> colbourn([[0, 0, -np.inf], [0, 0, 0], [0, -np.inf, 0]], 2, rng=0)
    array([[-1,  0,  1],
           [-1,  0,  1]])
    """
    generator = np.random.default_rng(rng)
    inverse = invert(scores, root)  # lines 3 and 4
    w, graph_L, graph_B = inverse.weights, laplacian(inverse.weights, root), inverse.B
    heads = np.full((read_k(k), len(w)), -1, dtype=np.int64)
    for t in heads:
        L, B = graph_L.copy(), graph_B.copy()
        for j in range(1, len(t)):
            t[j] = draw_from_marginals(edge_marginals(w, B, j, root), generator)
            condition(w, L, B, int(t[j]), j, root)
    return heads


def edge_marginals(w: FloatArray, B: FloatArray, j: int, root: Root) -> FloatArray:
    """Equation (15), or footnote 8 for spanning trees: the ``m`` of `sample_edge`, lines 23 to 27; (n+1,), O(n)."""
    column = B[:, j - 1].copy()
    root_entry = column[0] if root == "single" else column[j - 1]
    if root == "single":
        column[0] = 0.0
    m: FloatArray = w[:, j] * np.concatenate([[root_entry], column[j - 1] - column])
    return m


def condition(w: FloatArray, L: FloatArray, B: FloatArray, i: int, j: int, root: Root) -> float:
    """Decide that the head of `j` is `i`: `condition` of figure 5, in place; O(n^2).

    Row ``j`` of ``L^-1`` is *column* ``j`` of ``B`` = ``L^-T``; line 37 prints a row.

    Returns
    -------
    float
        ``1 + u^T B[:, j]``, by which Z changes (equation (25)): the probability of the edge.

    Raises
    ------
    FloatingPointError
        That probability is lost in rounding.
    """
    u = conditioned_column(w[i, j], i, j, len(L), root) - L[:, j - 1]  # lines 32 to 35
    L[:, j - 1] += u
    u_B = u @ B
    ratio = float(1.0 + u_B[j - 1])
    if not ratio > 0.0:
        raise FloatingPointError(f"the probability of edge {i} -> {j} is lost in rounding")
    B -= np.outer(B[:, j - 1], u_B) / ratio
    return ratio


def conditioned_column(weight: float, i: int, j: int, n: int, root: Root) -> FloatArray:
    """Column `j` of the Laplacian of a graph whose only edge into `j` is ``i -> j``: lemma 3, shape (n,).

    Examples
    --------
    >>> conditioned_column(2.0, 3, 2, 3, "single"), conditioned_column(2.0, 0, 2, 3, "single")
    (array([ 0.,  2., -2.]), array([2., 0., 0.]))
    """
    column = np.zeros(n)
    if i > 0:
        column[i - 1] = -weight
    column[j - 1] = weight
    if root == "single":
        column[0] = 0.0
        if i == 0:
            column[:] = 0.0
            column[0] = weight
    return column
