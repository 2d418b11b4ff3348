"""Wilson's sampler with a root drawn first by weight: biased.

Zmigrod, Vieira and Cotterell, "Efficient Sampling of Dependency Structures", figure 3 and (corrected) theorem
2; the bias was found by Stanojevic, "Unbiased and Efficient Sampling of Dependency Trees", section 4.1 and
appendix E.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._draws import Rng, cumulative, draw, read_k
from ._graph import IntArray, read_scores
from ._walk import between_words, dependency_tree, refuse_endless, words_that_end_walks
from .matrix_tree import scale_columns


def wilson_rc(scores: ArrayLike, k: int, rng: Rng = None) -> IntArray:
    """Independent draws, shape (k, n+1), of trees with one root, from a **biased** distribution.

    Notes
    -----
    The root edge is drawn in proportion to its weight instead of its marginal, so a tree ``t`` with root edge
    ``e`` has probability ``w(e) / sum of root weights * w(t) / weight of all trees with e``. Right only if
    root weights happen to be proportional to root marginals. Kept because it is published and because its
    bias is an experiment; `wilson_marginal` and `wilson_reject` are the cures.

    Time as `wilson` on the words alone. The paper's O(H) holds for roots drawn from the stationary distribution; for
    others `mean_hitting_time` says what the steps are, which H does not bound.

    Raises
    ------
    RuntimeError
        The word drawn as the root does not lead to all others. The published walk would never end.

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
    theta = read_scores(scores, "single")
    scaled, _ = scale_columns(theta, "single")
    weights = np.exp(scaled)
    heads = np.full((read_k(k), len(theta)), -1, dtype=np.int64)
    if len(theta) == 1:
        return heads
    roots = cumulative(np.exp(theta[0] - theta[0].max()))
    ends_walks = words_that_end_walks(weights)
    steps = between_words(weights)
    for t in heads:
        root_word = draw(roots, generator)
        refuse_endless(root_word, ends_walks)
        t[:] = dependency_tree(root_word, steps, generator)
    return heads
