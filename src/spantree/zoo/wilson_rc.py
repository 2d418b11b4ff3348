"""Wilson's sampler with a root drawn first by weight: biased.

Zmigrod, Vieira and Cotterell, "Efficient Sampling of Dependency Structures", figure 3 and (corrected) theorem
2; the bias was found by Stanojevic, "Unbiased and Efficient Sampling of Dependency Trees", section 4.1 and
appendix E.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._draws import Rng, cumulative, draw, read_k
from ._graph import IntArray, clean_scores, require_tree
from ._support import root_words
from ._walk import dependency_tree, stochastic_graph
from .matrix_tree import scale_columns


def wilson_rc(scores: ArrayLike, k: int, rng: Rng = None) -> IntArray:
    """Independent draws of trees with one root, from a **biased** distribution.

    Parameters
    ----------
    scores : array_like, shape (n+1, n+1)
        Log-weights ``[head, dependent]``.
    k : int
        Number of trees.
    rng : None, int or numpy.random.Generator
        Source of randomness.

    Returns
    -------
    IntArray, shape (k, n+1)
        Heads.

    Raises
    ------
    NoTreeError, FloatingPointError
        As `wilson`.

    Notes
    -----
    The root edge is drawn in proportion to its weight instead of its marginal, so a tree ``t`` with root edge
    ``e`` has probability ``w(e) / sum of root weights * w(t) / weight of all trees with e``. Right only if
    root weights happen to be proportional to root marginals. Kept because it is published and because its
    bias is an experiment; `wilson_marginal` and `wilson_reject` are the cures.

    Time as `wilson` on the words alone. The published algorithm does not end if the drawn word cannot lead to
    all others; such words are left out of the draw here.

    Examples
    --------
    Three trees of equal weight, two of them with root word 1; yet word 3 is the root half of the time.

    >>> from spantree.zoo.matrix_tree import matrix_tree
    >>> allowed = np.array([[0, 1, 0, 1], [0, 0, 1, 1], [0, 0, 0, 1], [0, 1, 0, 0]])
    >>> scores = np.where(allowed, 0.0, -np.inf)
    >>> print(matrix_tree(scores)[1][0, 3].round(3))
    0.333
    >>> print((wilson_rc(scores, 1000, rng=0)[:, 3] == 0).mean().round(1))
    0.5
    """
    generator = np.random.default_rng(rng)
    theta = clean_scores(scores)
    require_tree(theta, "single")
    k = read_k(k)
    if len(theta) == 1:
        return np.full((k, 1), -1, dtype=np.int64)
    weights, _ = scale_columns(theta, "single")
    usable = np.where(root_words(weights > 0.0), theta[0], -np.inf)
    roots = cumulative(np.exp(usable - usable.max()))
    weights[0] = 0.0
    steps = stochastic_graph(weights)
    heads = [dependency_tree(draw(roots, generator), steps, generator) for _ in range(k)]
    return np.array(heads, dtype=np.int64).reshape(k, len(theta))
