"""`ufal.chu_liu_edmonds`: the best tree of one sentence, several root edges allowed.

>>> import numpy as np
>>> from spantree.compat.ufal import chu_liu_edmonds
>>> chu_liu_edmonds(np.array([[0, 0, 0], [1, 0, 5], [2, 3, 0.0]]))  # [dependent, head]
([-1, 2, 0], 7.0)
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..distribution import TreeDistribution


def chu_liu_edmonds(score_matrix: npt.ArrayLike) -> tuple[list[int], float]:
    """The best tree and its score, as ``ufal.chu_liu_edmonds.chu_liu_edmonds`` gives them.

    Parameters
    ----------
    score_matrix : array_like, shape (n+1, n+1)
        ``[dependent, head]``, node 0 is ROOT; row 0 and the diagonal are ignored. NaN (or -inf) forbids an edge.

    Returns
    -------
    heads : list of int
        Head of each word; -1 for ROOT.
    tree_score : float
        Sum of the scores of the tree's edges. -inf if some word has no head at all: as there, it is put under ROOT.

    Raises
    ------
    InfeasibleError
        Every word has a head, but there is no tree. (The original, by its code, writes outside of its memory.)

    Examples
    --------
    >>> chu_liu_edmonds([[0, 0, 0], [float("nan"), 0, 5], [2, 3, 0]])
    ([-1, 2, 0], 7.0)
    """
    scores = np.array(score_matrix, dtype=np.float64)
    scores[np.isnan(scores)] = -np.inf
    no_head = _words_without_head(scores)
    scores[no_head, 0] = 0.0
    best = TreeDistribution(scores, root="multi", layout="dep_head")
    return best.argmax().tolist(), -np.inf if no_head.size else float(best.max())


def _words_without_head(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.intp]:
    forbidden = np.isneginf(scores)
    np.fill_diagonal(forbidden, True)
    return 1 + np.flatnonzero(forbidden[1:].all(axis=1))
