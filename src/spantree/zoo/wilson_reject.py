"""Wilson's sampler repeated until the tree has one root: unbiased.

Stanojevic, "Unbiased and Efficient Sampling of Dependency Trees", algorithm 4 and theorem 2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._draws import Rng, read_k
from ._graph import IntArray, read_scores
from ._walk import spanning_tree, stochastic_graph
from .matrix_tree import log_partition
from .wilson import spanning_weights


def wilson_reject(scores: ArrayLike, k: int, rng: Rng = None) -> IntArray:
    """Independent draws, shape (k, n+1), from the distribution over trees with one root.

    Notes
    -----
    Unbiased, and no inverse, so no accuracy is lost on sharp scores. `mean_tries` runs of `wilson` for each
    tree: below about e for random weights, near 1 for trained ones, and without bound where ROOT likes
    several words: scores made by adding x nats to the root edges need about exp(x (n - 1)) tries.

    Examples
    --------
    >>> wilson_reject([[0, 0, -np.inf], [0, 0, 0], [0, -np.inf, 0]], 2, rng=0)
    array([[-1,  0,  1],
           [-1,  0,  1]])
    """
    generator = np.random.default_rng(rng)
    read_scores(scores, "single")
    steps = stochastic_graph(spanning_weights(scores))
    heads = np.empty((read_k(k), len(steps)), dtype=np.int64)
    for t in heads:
        t[:] = spanning_tree(steps, generator)
        while len(t) > 1 and np.count_nonzero(t == 0) != 1:
            t[:] = spanning_tree(steps, generator)
    return heads


def mean_tries(scores: ArrayLike) -> float:
    """Expected runs of `wilson` for one tree: Z with several roots over Z with one (section 4.3.1).

    Notes
    -----
    O(n^3). For equal weights ``((n + 1) / n)^(n - 1)``, which is below e.

    Examples
    --------
    >>> print(round(mean_tries(np.zeros((4, 4))), 6))
    1.777778
    """
    return float(np.exp(log_partition(scores, "multi") - log_partition(scores, "single")))
