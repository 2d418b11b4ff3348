"""`stanza.models.common.chuliu_edmonds`: the best tree of one sentence, and the cycles among heads.

>>> import numpy as np
>>> from spantree.compat.stanza import chuliu_edmonds_one_root
>>> chuliu_edmonds_one_root(np.array([[0, 0, 0], [1, 0, 5], [2, 3, 0.0]]))  # [dependent, head]
array([0, 2, 0])
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .._oneliners import decode
from .._options import RootMode


def chuliu_edmonds_one_root(scores: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """The best tree with one edge out of ROOT.

    Parameters
    ----------
    scores : array_like, shape (n+1, n+1)
        ``[dependent, head]``, node 0 is ROOT. -inf forbids an edge.

    Returns
    -------
    ndarray of int64, shape (n+1,)
        Heads; 0 for ROOT.
    """
    return _best_heads(scores, "single")


def chuliu_edmonds(scores: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """The best tree, several edges out of ROOT allowed. Unlike the original, it does not write into `scores`.

    Parameters
    ----------
    scores : array_like, shape (n+1, n+1)
        ``[dependent, head]``, node 0 is ROOT. -inf forbids an edge.

    Returns
    -------
    ndarray of int64, shape (n+1,)
        Heads; 0 for ROOT.
    """
    return _best_heads(scores, "multi")


def tarjan(tree: npt.ArrayLike) -> list[npt.NDArray[np.bool_]]:
    """The cycles of a head vector, in the order of their first words. O(n).

    Parameters
    ----------
    tree : array_like of int, shape (n+1,)
        Head of each node; 0 for ROOT.

    Returns
    -------
    list of ndarray of bool, shape (n+1,)
        One for each cycle of two nodes or more, True at its nodes.

    Examples
    --------
    >>> tarjan([0, 3, 1, 2])
    [array([False,  True,  True,  True])]
    """
    heads = np.asarray(tree)
    nodes = len(heads)
    walk_of = [-1] * nodes  # the walk, named after its first node, that came to this node first
    cycles = []
    for start in range(nodes):
        node = start
        while 0 <= node < nodes and walk_of[node] < 0:
            walk_of[node] = start
            node = int(heads[node])
        if 0 <= node < nodes and walk_of[node] == start and heads[node] != node:
            cycles.append(_around(heads, node))
    return sorted(cycles, key=lambda cycle: int(cycle.argmax()))


def _best_heads(scores: npt.ArrayLike, root: RootMode) -> npt.NDArray[np.int64]:
    heads = decode(scores, root=root, layout="dep_head")
    heads[0] = 0
    return heads


def _around(heads: npt.NDArray[Any], start: int) -> npt.NDArray[np.bool_]:
    cycle = np.zeros(len(heads), dtype=bool)
    node = start
    while not cycle[node]:
        cycle[node] = True
        node = int(heads[node])
    return cycle
