"""Sampling without replacement with a list of the trees drawn.

Zmigrod, Vieira and Cotterell, "Efficient Sampling of Dependency Structures", section 5, lemma 4 and figure 7.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._draws import Rng, draw_from_marginals, read_k
from ._graph import FloatArray, IntArray, Root
from .colbourn import condition, edge_marginals
from .laplacian import laplacian
from .matrix_tree import invert


def swor_zmigrod(scores: ArrayLike, k: int, rng: Rng = None, root: Root = "single") -> tuple[IntArray, FloatArray]:
    """Distinct trees in the order drawn, each from the distribution over the trees not drawn before.

    Returns
    -------
    heads : IntArray, shape (k, n+1)
    log_probs : FloatArray, shape (k,)
        Log-probabilities under the full distribution.

    Raises
    ------
    FloatingPointError
        All mass is drawn as far as rounding tells, as it is for `k` beyond the number of trees; or Z overflows.

    Notes
    -----
    O(k n^3 + k^2 n): each decision goes through the list of drawn trees that agree with the decisions before it. Z_D of
    the figure, the sum of the masses left, is not kept: a draw divides them by their own sum.

    The mass left on an edge is its marginal minus the mass drawn (equation (23)). Once nearly all mass is drawn that
    difference is rounding error: the tail comes out in a wrong order, heads without any tree left are drawn and trees
    come twice. `swor_zmigrod_robust` counts what is left, `trie_swor` never subtracts. The figure does not say what to
    do with differences that rounding made negative; they are drawn as 0. Z is a plain number, of weights scaled so that
    the largest into each word is 1; it overflows at some 140 words of equal weights.

    Examples
    --------
    >>> heads, log_probs = swor_zmigrod(np.zeros((3, 3)), 2, rng=0)
    >>> sorted(heads.tolist()), np.exp(log_probs).round(12)
    ([[-1, 0, 1], [-1, 2, 0]], array([0.5, 0.5]))
    """
    generator = np.random.default_rng(rng)
    inverse = invert(scores, root)
    w, graph_L, graph_B = inverse.weights, laplacian(inverse.weights, root), inverse.B
    with np.errstate(over="ignore"):
        graph_Z = float(np.exp(inverse.log_det))
    if not np.isfinite(graph_Z):
        raise FloatingPointError("Z is too large for a double")
    heads = np.full((read_k(k), len(w)), -1, dtype=np.int64)
    drawn_weights = np.zeros(len(heads))
    for number, t in enumerate(heads):
        D, Z = np.arange(number), graph_Z  # lines 7 to 9; D as rows of `heads`
        L, B = graph_L.copy(), graph_B.copy()
        for j in range(1, len(t)):
            # sample_edge', lines 18 to 23
            m = Z * edge_marginals(w, B, j, root)
            m -= np.bincount(heads[D, j], weights=drawn_weights[D], minlength=len(t))
            t[j] = draw_from_marginals(m, generator)
            # condition', lines 26 to 34
            Z *= condition(w, L, B, int(t[j]), j, root)
            D = D[heads[D, j] == t[j]]
        drawn_weights[number] = w[t[1:], np.arange(1, len(t))].prod()
    with np.errstate(divide="ignore"):
        return heads, np.log(drawn_weights) - inverse.log_det
