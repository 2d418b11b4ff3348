"""The commonest questions without naming the class.

`decode`, `log_partition` and `marginals` read the scores where they lie; the others take a snapshot, like
`TreeDistribution`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from . import _core
from ._batch import Batch
from ._options import Layout, OnInfeasible, RootMode
from ._sampling import Method, Rng
from ._threads import get_threads
from ._trees import Trees
from .distribution import TreeDistribution

if TYPE_CHECKING:
    import numpy.typing as npt
    from typing_extensions import Unpack

    from ._options import ListOfFloats, ListOfInts, ListOfScores, MoreOptions, Scores
    from ._read import FloatArray, IntArray

# For comparing by identity, which takes no time: Python keeps one copy of such words. Another one takes the long way.
_SINGLE, _MULTI, _HEAD_DEP, _DEP_HEAD, _RAISE = "single", "multi", "head_dep", "dep_head", "raise"


@overload
def decode(
    scores: ListOfScores,
    lengths: npt.ArrayLike | None = None,
    root: RootMode = "single",
    projective: bool = False,
    *,
    labelled: Literal[False] = False,
    **options: Unpack[MoreOptions],
) -> ListOfInts: ...
@overload
def decode(
    scores: ListOfScores,
    lengths: npt.ArrayLike | None = None,
    root: RootMode = "single",
    projective: bool = False,
    *,
    labelled: Literal[True],
    **options: Unpack[MoreOptions],
) -> Trees[ListOfInts, ListOfFloats]: ...
@overload
def decode(
    scores: npt.ArrayLike,
    lengths: npt.ArrayLike | None = None,
    root: RootMode = "single",
    projective: bool = False,
    *,
    labelled: Literal[False] = False,
    **options: Unpack[MoreOptions],
) -> IntArray: ...
@overload
def decode(
    scores: npt.ArrayLike,
    lengths: npt.ArrayLike | None = None,
    root: RootMode = "single",
    projective: bool = False,
    *,
    labelled: Literal[True],
    **options: Unpack[MoreOptions],
) -> Trees[IntArray, FloatArray]: ...
def decode(
    scores: Scores,
    lengths: npt.ArrayLike | None = None,
    root: RootMode = "single",
    projective: bool = False,
    *,
    mask: Any = None,
    labelled: bool = False,
    layout: Layout = "head_dep",
    on_infeasible: OnInfeasible = "raise",
    temperature: float = 1.0,
    root_label: int | None = None,
) -> Any:
    """The best tree of each sentence: `TreeDistribution.argmax`.

    Parameters
    ----------
    scores : array (..., n+1, n+1), or a list of (n+1, n+1) arrays
        As for `TreeDistribution`.
    lengths, root, projective, mask, labelled, layout, on_infeasible, temperature, root_label : optional
        As for `TreeDistribution`.

    Returns
    -------
    int64 array (..., n+1), or Trees
        Heads; with labelled scores `Trees` with heads and labels. A list for a list.

    Examples
    --------
    >>> import numpy as np, spantree
    >>> spantree.decode([np.array([[0, 1.0], [0, 0]]), np.array([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]])])
    [array([-1,  0]), array([-1,  2,  0])]
    """
    if _is_plain(lengths, root, projective, mask, labelled, layout, on_infeasible, temperature, root_label):
        threads = get_threads() if type(scores) is list else 1
        heads = _core.decode_plain(scores, root is _SINGLE, layout is _DEP_HEAD, threads)
        if heads is not None:
            return heads
    return _distribution(
        scores, lengths, root, projective, mask, labelled, layout, on_infeasible, temperature, root_label, in_place=True
    ).argmax()


@overload
def topk(
    scores: ListOfScores,
    k: int,
    lengths: npt.ArrayLike | None = None,
    root: RootMode = "single",
    projective: bool = False,
    *,
    labelled: bool = False,
    **options: Unpack[MoreOptions],
) -> Trees[ListOfInts, ListOfFloats]: ...
@overload
def topk(
    scores: npt.ArrayLike,
    k: int,
    lengths: npt.ArrayLike | None = None,
    root: RootMode = "single",
    projective: bool = False,
    *,
    labelled: bool = False,
    **options: Unpack[MoreOptions],
) -> Trees[IntArray, FloatArray]: ...
def topk(
    scores: Scores,
    k: int,
    lengths: npt.ArrayLike | None = None,
    root: RootMode = "single",
    projective: bool = False,
    *,
    mask: Any = None,
    labelled: bool = False,
    layout: Layout = "head_dep",
    on_infeasible: OnInfeasible = "raise",
    temperature: float = 1.0,
    root_label: int | None = None,
) -> Any:
    """The k best trees of each sentence: `TreeDistribution.topk`.

    Parameters
    ----------
    scores : array (..., n+1, n+1), or a list of (n+1, n+1) arrays
        As for `TreeDistribution`.
    k : int
        How many.
    lengths, root, projective, mask, labelled, layout, on_infeasible, temperature, root_label : optional
        As for `TreeDistribution`.

    Returns
    -------
    Trees
        ``heads (k, ..., n+1)``, ``scores (k, ...)``, best first, and ``labels`` if the scores are labelled.

    Examples
    --------
    >>> import numpy as np, spantree
    >>> spantree.topk(np.array([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]]), 2).heads
    array([[-1,  2,  0],
           [-1,  0,  1]])
    """
    dist = _distribution(
        scores, lengths, root, projective, mask, labelled, layout, on_infeasible, temperature, root_label
    )
    return dist.topk(k)


@overload
def sample(
    scores: ListOfScores,
    k: int | None = None,
    lengths: npt.ArrayLike | None = None,
    root: RootMode = "single",
    projective: bool = False,
    *,
    rng: Rng = None,
    method: Method = "auto",
    first_sentence: int = 0,
    labelled: Literal[False] = False,
    **options: Unpack[MoreOptions],
) -> ListOfInts: ...
@overload
def sample(
    scores: ListOfScores,
    k: int | None = None,
    lengths: npt.ArrayLike | None = None,
    root: RootMode = "single",
    projective: bool = False,
    *,
    rng: Rng = None,
    method: Method = "auto",
    first_sentence: int = 0,
    labelled: Literal[True],
    **options: Unpack[MoreOptions],
) -> Trees[ListOfInts, ListOfFloats]: ...
@overload
def sample(
    scores: npt.ArrayLike,
    k: int | None = None,
    lengths: npt.ArrayLike | None = None,
    root: RootMode = "single",
    projective: bool = False,
    *,
    rng: Rng = None,
    method: Method = "auto",
    first_sentence: int = 0,
    labelled: Literal[False] = False,
    **options: Unpack[MoreOptions],
) -> IntArray: ...
@overload
def sample(
    scores: npt.ArrayLike,
    k: int | None = None,
    lengths: npt.ArrayLike | None = None,
    root: RootMode = "single",
    projective: bool = False,
    *,
    rng: Rng = None,
    method: Method = "auto",
    first_sentence: int = 0,
    labelled: Literal[True],
    **options: Unpack[MoreOptions],
) -> Trees[IntArray, FloatArray]: ...
def sample(
    scores: Scores,
    k: int | None = None,
    lengths: npt.ArrayLike | None = None,
    root: RootMode = "single",
    projective: bool = False,
    *,
    rng: Rng = None,
    method: Method = "auto",
    first_sentence: int = 0,
    mask: Any = None,
    labelled: bool = False,
    layout: Layout = "head_dep",
    on_infeasible: OnInfeasible = "raise",
    temperature: float = 1.0,
    root_label: int | None = None,
) -> Any:
    """Random trees of each sentence: `TreeDistribution.sample`.

    Parameters
    ----------
    scores : array (..., n+1, n+1), or a list of (n+1, n+1) arrays
        As for `TreeDistribution`.
    k : int, optional
        How many; one, without an axis for it, if not given.
    rng, method, first_sentence : optional
        As for `TreeDistribution.sample`.
    lengths, root, projective, mask, labelled, layout, on_infeasible, temperature, root_label : optional
        As for `TreeDistribution`.

    Returns
    -------
    int64 array (k, ..., n+1), or Trees
        Heads; with labelled scores `Trees` with heads and labels. A list for a list.

    Examples
    --------
    >>> import numpy as np, spantree
    >>> spantree.sample(np.array([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]]), 2, rng=0)
    array([[-1,  2,  0],
           [-1,  2,  0]])
    """
    dist = _distribution(
        scores, lengths, root, projective, mask, labelled, layout, on_infeasible, temperature, root_label
    )
    return dist.sample(k, rng=rng, method=method, first_sentence=first_sentence)


@overload
def log_partition(
    scores: ListOfScores,
    lengths: npt.ArrayLike | None = None,
    root: RootMode = "single",
    projective: bool = False,
    *,
    labelled: bool = False,
    **options: Unpack[MoreOptions],
) -> ListOfFloats: ...
@overload
def log_partition(
    scores: npt.ArrayLike,
    lengths: npt.ArrayLike | None = None,
    root: RootMode = "single",
    projective: bool = False,
    *,
    labelled: bool = False,
    **options: Unpack[MoreOptions],
) -> FloatArray: ...
def log_partition(
    scores: Scores,
    lengths: npt.ArrayLike | None = None,
    root: RootMode = "single",
    projective: bool = False,
    *,
    mask: Any = None,
    labelled: bool = False,
    layout: Layout = "head_dep",
    on_infeasible: OnInfeasible = "raise",
    temperature: float = 1.0,
    root_label: int | None = None,
) -> Any:
    """The log-partition log Z of each sentence: `TreeDistribution.log_partition`.

    Parameters
    ----------
    scores : array (..., n+1, n+1), or a list of (n+1, n+1) arrays
        As for `TreeDistribution`.
    lengths, root, projective, mask, labelled, layout, on_infeasible, temperature, root_label : optional
        As for `TreeDistribution`.

    Returns
    -------
    float array (...)
        A list for a list.

    Examples
    --------
    >>> import numpy as np, spantree
    >>> float(spantree.log_partition(np.array([[0, 3.0], [0, 0]])))
    3.0
    """
    if _is_plain(lengths, root, projective, mask, labelled, layout, on_infeasible, temperature, root_label):
        plain = _core.log_partition_plain(scores, root is _SINGLE, layout is _DEP_HEAD, get_threads())
        if plain is not None:
            return plain
    dist = _distribution(
        scores, lengths, root, projective, mask, labelled, layout, on_infeasible, temperature, root_label, in_place=True
    )
    dist._kept = solved = dist._solve(dist._batch, keep=False)
    value = solved.log_partition
    dist._check_feasible()
    return dist._batch.scalars(value)


@overload
def marginals(
    scores: ListOfScores,
    lengths: npt.ArrayLike | None = None,
    root: RootMode = "single",
    projective: bool = False,
    *,
    labelled: bool = False,
    **options: Unpack[MoreOptions],
) -> ListOfFloats: ...
@overload
def marginals(
    scores: npt.ArrayLike,
    lengths: npt.ArrayLike | None = None,
    root: RootMode = "single",
    projective: bool = False,
    *,
    labelled: bool = False,
    **options: Unpack[MoreOptions],
) -> FloatArray: ...
def marginals(
    scores: Scores,
    lengths: npt.ArrayLike | None = None,
    root: RootMode = "single",
    projective: bool = False,
    *,
    mask: Any = None,
    labelled: bool = False,
    layout: Layout = "head_dep",
    on_infeasible: OnInfeasible = "raise",
    temperature: float = 1.0,
    root_label: int | None = None,
) -> Any:
    """The probability of every edge: `TreeDistribution.marginals`.

    Parameters
    ----------
    scores : array (..., n+1, n+1), or a list of (n+1, n+1) arrays
        As for `TreeDistribution`.
    lengths, root, projective, mask, labelled, layout, on_infeasible, temperature, root_label : optional
        As for `TreeDistribution`.

    Returns
    -------
    float array like the scores
        A list for a list.

    Examples
    --------
    >>> import numpy as np, spantree
    >>> spantree.marginals(np.array([[0, 3.0], [0, 0]]))
    array([[0., 1.],
           [0., 0.]])
    """
    if _is_plain(lengths, root, projective, mask, labelled, layout, on_infeasible, temperature, root_label):
        plain = _core.marginals_plain(scores, root is _SINGLE, layout is _DEP_HEAD, get_threads())
        if plain is not None:
            return plain
    dist = _distribution(
        scores, lengths, root, projective, mask, labelled, layout, on_infeasible, temperature, root_label, in_place=True
    )
    dist._kept = solved = dist._solve(dist._batch, keep=False)
    found = solved.fresh_marginals()
    dist._check_feasible()
    return dist._batch.edges(found)


@overload
def entropy(
    scores: ListOfScores,
    lengths: npt.ArrayLike | None = None,
    root: RootMode = "single",
    projective: bool = False,
    *,
    labelled: bool = False,
    **options: Unpack[MoreOptions],
) -> ListOfFloats: ...
@overload
def entropy(
    scores: npt.ArrayLike,
    lengths: npt.ArrayLike | None = None,
    root: RootMode = "single",
    projective: bool = False,
    *,
    labelled: bool = False,
    **options: Unpack[MoreOptions],
) -> FloatArray: ...
def entropy(
    scores: Scores,
    lengths: npt.ArrayLike | None = None,
    root: RootMode = "single",
    projective: bool = False,
    *,
    mask: Any = None,
    labelled: bool = False,
    layout: Layout = "head_dep",
    on_infeasible: OnInfeasible = "raise",
    temperature: float = 1.0,
    root_label: int | None = None,
) -> Any:
    """Shannon entropy of each sentence in nats: `TreeDistribution.entropy`.

    Parameters
    ----------
    scores : array (..., n+1, n+1), or a list of (n+1, n+1) arrays
        As for `TreeDistribution`.
    lengths, root, projective, mask, labelled, layout, on_infeasible, temperature, root_label : optional
        As for `TreeDistribution`.

    Returns
    -------
    float array (...)
        A list for a list.

    Examples
    --------
    >>> import numpy as np, spantree
    >>> float(spantree.entropy(np.zeros((3, 3))).round(6))  # two trees, alike
    0.693147
    """
    dist = _distribution(
        scores, lengths, root, projective, mask, labelled, layout, on_infeasible, temperature, root_label
    )
    return dist.entropy()


@overload
def log_prob(
    scores: ListOfScores,
    heads: Any,
    lengths: npt.ArrayLike | None = None,
    root: RootMode = "single",
    projective: bool = False,
    *,
    labels: Any = None,
    labelled: bool = False,
    **options: Unpack[MoreOptions],
) -> ListOfFloats: ...
@overload
def log_prob(
    scores: npt.ArrayLike,
    heads: Any,
    lengths: npt.ArrayLike | None = None,
    root: RootMode = "single",
    projective: bool = False,
    *,
    labels: Any = None,
    labelled: bool = False,
    **options: Unpack[MoreOptions],
) -> FloatArray: ...
def log_prob(
    scores: Scores,
    heads: Any,
    lengths: npt.ArrayLike | None = None,
    root: RootMode = "single",
    projective: bool = False,
    *,
    labels: Any = None,
    mask: Any = None,
    labelled: bool = False,
    layout: Layout = "head_dep",
    on_infeasible: OnInfeasible = "raise",
    temperature: float = 1.0,
    root_label: int | None = None,
) -> Any:
    """The log-probability of a tree of each sentence: `TreeDistribution.log_prob`.

    Parameters
    ----------
    scores : array (..., n+1, n+1), or a list of (n+1, n+1) arrays
        As for `TreeDistribution`.
    heads : integers (..., n+1), or Trees
        One tree per sentence, or several along axes before.
    labels : integers like `heads`, optional
        Needed if the scores are labelled (or give `Trees`).
    lengths, root, projective, mask, labelled, layout, on_infeasible, temperature, root_label : optional
        As for `TreeDistribution`.

    Returns
    -------
    float array (...)
        -inf where heads is no tree. A list for a list.

    Examples
    --------
    >>> import numpy as np, spantree
    >>> float(np.exp(spantree.log_prob(np.zeros((3, 3)), [-1, 0, 1])).round(6))
    0.5
    """
    dist = _distribution(
        scores, lengths, root, projective, mask, labelled, layout, on_infeasible, temperature, root_label
    )
    return dist.log_prob(heads, labels)


@overload
def complete(
    scores: ListOfScores,
    heads: Any,
    lengths: npt.ArrayLike | None = None,
    root: RootMode = "single",
    projective: bool = False,
    *,
    labels: Any = None,
    labelled: Literal[False] = False,
    **options: Unpack[MoreOptions],
) -> tuple[ListOfInts, ListOfFloats]: ...
@overload
def complete(
    scores: ListOfScores,
    heads: Any,
    lengths: npt.ArrayLike | None = None,
    root: RootMode = "single",
    projective: bool = False,
    *,
    labels: Any = None,
    labelled: Literal[True],
    **options: Unpack[MoreOptions],
) -> tuple[Trees[ListOfInts, ListOfFloats], ListOfFloats]: ...
@overload
def complete(
    scores: npt.ArrayLike,
    heads: Any,
    lengths: npt.ArrayLike | None = None,
    root: RootMode = "single",
    projective: bool = False,
    *,
    labels: Any = None,
    labelled: Literal[False] = False,
    **options: Unpack[MoreOptions],
) -> tuple[IntArray, FloatArray]: ...
@overload
def complete(
    scores: npt.ArrayLike,
    heads: Any,
    lengths: npt.ArrayLike | None = None,
    root: RootMode = "single",
    projective: bool = False,
    *,
    labels: Any = None,
    labelled: Literal[True],
    **options: Unpack[MoreOptions],
) -> tuple[Trees[IntArray, FloatArray], FloatArray]: ...
def complete(
    scores: Scores,
    heads: Any,
    lengths: npt.ArrayLike | None = None,
    root: RootMode = "single",
    projective: bool = False,
    *,
    labels: Any = None,
    mask: Any = None,
    labelled: bool = False,
    layout: Layout = "head_dep",
    on_infeasible: OnInfeasible = "raise",
    temperature: float = 1.0,
    root_label: int | None = None,
) -> Any:
    """The best tree that agrees with a partial one, and its probability: `TreeDistribution.complete`.

    Parameters
    ----------
    scores : array (..., n+1, n+1), or a list of (n+1, n+1) arrays
        As for `TreeDistribution`.
    heads : integers (..., n+1)
        A partial tree for each sentence: known heads, and -2 where the head is unknown.
    labels : integers like `heads`, optional
        Known labels, and -2 where the label is unknown.
    lengths, root, projective, mask, labelled, layout, on_infeasible, temperature, root_label : optional
        As for `TreeDistribution`.

    Returns
    -------
    tree : int64 array (..., n+1), or Trees
        The best completion of each sentence.
    probability : float array (...)
        Of that tree.

    Examples
    --------
    >>> import numpy as np, spantree
    >>> spantree.complete(np.array([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]]), [-1, -2, 1])[0]
    array([-1,  0,  1])
    """
    dist = _distribution(
        scores, lengths, root, projective, mask, labelled, layout, on_infeasible, temperature, root_label
    )
    return dist.complete(heads, labels)


def _is_plain(
    lengths: npt.ArrayLike | None,
    root: RootMode,
    projective: bool,
    mask: Any,
    labelled: bool,
    layout: Layout,
    on_infeasible: OnInfeasible,
    temperature: float,
    root_label: int | None,
) -> bool:
    """Whether a call says nothing that the short way does not know: bindings/plain.cpp."""
    return (
        lengths is mask is root_label is None
        and projective is labelled is False
        and type(temperature) is float
        and temperature == 1.0
        and on_infeasible is _RAISE
        and (root is _SINGLE or root is _MULTI)
        and (layout is _HEAD_DEP or layout is _DEP_HEAD)
    )


def _distribution(
    scores: Scores,
    lengths: npt.ArrayLike | None,
    root: RootMode,
    projective: bool,
    mask: Any,
    labelled: bool,
    layout: Layout,
    on_infeasible: OnInfeasible,
    temperature: float,
    root_label: int | None = None,
    in_place: bool = False,
) -> TreeDistribution[Any, Any, Any]:
    """A distribution; if `in_place`, without a copy of the scores, for its best tree, log Z or marginals and no more.

    The search or the solve reads every score and reports bad ones, so these are not looked for before.
    """
    dist: TreeDistribution[Any, Any, Any] = TreeDistribution.__new__(TreeDistribution)
    dist._set(root, projective, on_infeasible, temperature)
    dist._batch = Batch.read(
        scores,
        lengths,
        mask,
        labelled,
        layout,
        in_place=in_place,
        temperature=temperature,
        root_label=root_label,
    )
    if not in_place:
        dist._batch.refuse_bad_scores()
    return dist
