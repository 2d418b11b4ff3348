"""The commonest calls without naming the class. Everything `TreeDistribution` takes, they take by keyword."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from ._decoding import Trees
from ._sampling import Method, Rng
from .distribution import RootMode, TreeDistribution

Scores = npt.ArrayLike | Sequence[npt.ArrayLike]


def decode(
    scores: Scores,
    lengths: npt.ArrayLike | None = None,
    root: RootMode = "single",
    projective: bool = False,
    **options: Any,
) -> Any:
    """The best tree of each sentence: `TreeDistribution.argmax`.

    Examples
    --------
    >>> import numpy as np, spantree
    >>> spantree.decode([np.array([[0, 1.0], [0, 0]]), np.array([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]])])
    [array([-1,  0]), array([-1,  2,  0])]
    """
    return TreeDistribution._for_one_question(scores, lengths, root, projective, **options).argmax()


def sample(
    scores: Scores,
    k: int | None = None,
    lengths: npt.ArrayLike | None = None,
    root: RootMode = "single",
    projective: bool = False,
    *,
    rng: Rng = None,
    method: Method = "auto",
    **options: Any,
) -> Any:
    """k random trees of each sentence: `TreeDistribution.sample`.

    Examples
    --------
    >>> import numpy as np, spantree
    >>> spantree.sample(np.array([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]]), 2, rng=0)
    array([[-1,  2,  0],
           [-1,  2,  0]])
    """
    dist = TreeDistribution(scores, lengths=lengths, root=root, projective=projective, **options)
    return dist.sample(k, rng=rng, method=method)


def topk(
    scores: Scores,
    k: int,
    lengths: npt.ArrayLike | None = None,
    root: RootMode = "single",
    projective: bool = False,
    **options: Any,
) -> Trees:
    """The k best trees of each sentence: `TreeDistribution.topk`.

    Examples
    --------
    >>> import numpy as np, spantree
    >>> spantree.topk(np.array([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]]), 2).heads
    array([[-1,  2,  0],
           [-1,  0,  1]])
    """
    return TreeDistribution(scores, lengths=lengths, root=root, projective=projective, **options).topk(k)


def log_partition(
    scores: Scores,
    lengths: npt.ArrayLike | None = None,
    root: RootMode = "single",
    projective: bool = False,
    **options: Any,
) -> Any:
    """log Z of each sentence: `TreeDistribution.log_partition`.

    Examples
    --------
    >>> import numpy as np, spantree
    >>> float(spantree.log_partition(np.array([[0, 3.0], [0, 0]])))
    3.0
    """
    return TreeDistribution._for_one_question(scores, lengths, root, projective, **options)._log_partition_only()


def marginals(
    scores: Scores,
    lengths: npt.ArrayLike | None = None,
    root: RootMode = "single",
    projective: bool = False,
    **options: Any,
) -> Any:
    """The probability of every edge: `TreeDistribution.marginals`.

    Examples
    --------
    >>> import numpy as np, spantree
    >>> spantree.marginals(np.array([[0, 3.0], [0, 0]]))
    array([[0., 1.],
           [0., 0.]])
    """
    return TreeDistribution._for_one_question(scores, lengths, root, projective, **options)._marginals_only()
