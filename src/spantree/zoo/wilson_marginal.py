"""Wilson's sampler with a root drawn first by its marginal: unbiased.

Stanojevic, "Unbiased and Efficient Sampling of Dependency Trees", algorithm 3 and theorem 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._draws import Rng, cumulative, draw_from_marginals, read_k
from ._graph import IntArray, clean_scores
from ._walk import between_words, dependency_tree, refuse_endless, spanning_tree, words_that_end_walks
from .matrix_tree import invert


def wilson_marginal(scores: ArrayLike, k: int, rng: Rng = None) -> IntArray:
    """Independent draws, shape (k, n+1), from the distribution over trees with one root.

    Notes
    -----
    Unbiased. O(n^3) once, then `wilson` on the graph whose only root edge is the one drawn. That walk may leave the
    drawn word by its other edges, again and again, before it takes the way to ROOT: on equal weights about n^2 steps a
    tree, where `wilson_marginal_rooted` takes 2 n.

    The root edge is as accurate as the marginals of `matrix_tree`, which sharp scores break (negative ones are taken as
    0); the rest of the tree is exact given its root.

    Raises
    ------
    RuntimeError
        Rounding gave a marginal to a word that does not lead to all others, it was drawn, and the walk would never end.

    Examples
    --------
    >>> wilson_marginal([[0, 0, -np.inf], [0, 0, 0], [0, -np.inf, 0]], 2, rng=0)
    array([[-1,  0,  1],
           [-1,  0,  1]])
    """
    generator = np.random.default_rng(rng)
    inverse = invert(scores, "single")
    M, weights = inverse.marginals(), inverse.weights  # line 1
    theta = clean_scores(scores)
    ends_walks = words_that_end_walks(weights)
    without_root_edges = between_words(weights)
    heads = np.full((read_k(k), len(weights)), -1, dtype=np.int64)
    for t in heads if len(weights) > 1 else ():
        e = draw_from_marginals(M[0], generator)  # line 2
        refuse_endless(e, ends_walks)
        # lines 3 and 4: of the steps, only those from e know ROOT, in the proportions of the scores as given
        from_e = cumulative(np.exp(theta[:, e] - theta[:, e].max()))
        if from_e[0] == 0.0:
            raise FloatingPointError(f"the weight of edge 0 -> {e} underflows beside the best into word {e}")
        steps = [*without_root_edges[:e], from_e, *without_root_edges[e + 1 :]]
        t[:] = spanning_tree(steps, generator)
    return heads


def wilson_marginal_rooted(scores: ArrayLike, k: int, rng: Rng = None) -> IntArray:
    """`wilson_marginal` with the drawn word put in the tree at once, as `wilson_rc` does it.

    The graph of section 4.1, step 2, instead of line 3 of algorithm 3: the same distribution, without the walks from
    that word. The paper's order of times, below `wilson_reject`, is that of this form and not of line 3.

    Notes
    -----
    O(n^3) once, then steps as `wilson_rc`.

    Examples
    --------
    >>> wilson_marginal_rooted([[0, 0, -np.inf], [0, 0, 0], [0, -np.inf, 0]], 2, rng=0)
    array([[-1,  0,  1],
           [-1,  0,  1]])
    """
    generator = np.random.default_rng(rng)
    inverse = invert(scores, "single")
    M, weights = inverse.marginals(), inverse.weights
    ends_walks = words_that_end_walks(weights)
    steps = between_words(weights)
    heads = np.full((read_k(k), len(weights)), -1, dtype=np.int64)
    for t in heads if len(weights) > 1 else ():
        root_word = draw_from_marginals(M[0], generator)
        refuse_endless(root_word, ends_walks)
        t[:] = dependency_tree(root_word, steps, generator)
    return heads
