"""All that a corpus job wants to know about many sentences, in one call: `annotate`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypedDict, overload

import numpy as np

from . import _decoding
from ._batch import Batch, rounded
from ._confidence import Facts, facts
from ._errors import describe_infeasible
from ._options import check_choice, check_flag, positive_integer
from .distribution import TreeDistribution

if TYPE_CHECKING:
    import numpy.typing as npt
    from typing_extensions import Unpack

    from ._options import Layout, ListOfFloats, ListOfInts, ListOfScores, OnInfeasible, RootMode, Scores
    from ._read import FloatArray, IntArray


class Annotations(TypedDict):
    """What `annotate` finds out about a batch. Keys are missing of what was not asked for."""

    heads: IntArray
    score: FloatArray
    error: npt.NDArray[np.object_]
    labels: IntArray
    head_probs: FloatArray
    label_probs: FloatArray
    runners_up: IntArray
    runner_up_probs: FloatArray
    log_odds: FloatArray
    log_prob: FloatArray
    margin: FloatArray
    entropy: FloatArray
    expected_attachment: FloatArray
    topk_heads: IntArray
    topk_scores: FloatArray
    topk_labels: IntArray


class AnnotationsOfList(TypedDict):
    """The same where the scores came as a list: lists with one entry for each sentence."""

    heads: ListOfInts
    score: ListOfFloats
    error: list[str | None]
    labels: ListOfInts
    head_probs: ListOfFloats
    label_probs: ListOfFloats
    runners_up: ListOfInts
    runner_up_probs: ListOfFloats
    log_odds: ListOfFloats
    log_prob: ListOfFloats
    margin: ListOfFloats
    entropy: ListOfFloats
    expected_attachment: ListOfFloats
    topk_heads: ListOfInts
    topk_scores: ListOfFloats
    topk_labels: ListOfInts


class _Options(TypedDict, total=False):
    """What `annotate` takes by keyword only."""

    confidence: bool
    k: int | None
    temperature: float
    mask: Any
    labelled: bool
    layout: Layout
    root_label: int | None
    on_infeasible: OnInfeasible


@overload
def annotate(
    scores: ListOfScores,
    lengths: npt.ArrayLike | None = None,
    root: RootMode = "single",
    projective: bool = False,
    **options: Unpack[_Options],
) -> AnnotationsOfList: ...
@overload
def annotate(
    scores: npt.ArrayLike,
    lengths: npt.ArrayLike | None = None,
    root: RootMode = "single",
    projective: bool = False,
    **options: Unpack[_Options],
) -> Annotations: ...
def annotate(
    scores: Scores,
    lengths: npt.ArrayLike | None = None,
    root: RootMode = "single",
    projective: bool = False,
    *,
    confidence: bool = True,
    k: int | None = None,
    temperature: float = 1.0,
    mask: Any = None,
    labelled: bool = False,
    layout: Layout = "head_dep",
    root_label: int | None = None,
    on_infeasible: OnInfeasible = "mask",
) -> Any:
    """Best trees, how sure they are, and k best trees of a batch, as a dict of arrays.

    Parameters
    ----------
    scores : array (..., n+1, n+1), or a list of (n+1, n+1) arrays
        As for `TreeDistribution`.
    lengths, root, projective, mask, labelled, layout, root_label, temperature : optional
        As for `TreeDistribution`.
    confidence : bool
        Whether probabilities are wanted too, not only trees.
    k : int, optional
        How many best trees are wanted.
    on_infeasible : {"mask", "raise"}
        With "mask", a sentence that has no tree, or a score that is NaN or +inf, and an item of a list that is no
        sentence's matrix, are told of in ``error`` and do not hold up the others. With "raise", they raise.

    Returns
    -------
    dict of arrays
        A list in the place of each array where the scores came as a list. ``heads (..., n+1)``, ``score (...)``,
        ``error (...)``: None or what is wrong with the sentence; ``labels`` if the scores are labelled. With
        `confidence`, what `Confidence` has, except that ``margin`` needs ``k=2`` or more. With `k`, ``topk_heads
        (k, ..., n+1)``, ``topk_scores (k, ...)`` and ``topk_labels``.

    Notes
    -----
    One solve for each sentence; no exception for what is wrong with one of them.

    Examples
    --------
    >>> import numpy as np, spantree
    >>> good, bad = np.array([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]]), np.full((2, 2), np.nan)
    >>> found = spantree.annotate([good, bad], k=2)
    >>> found["heads"]
    [array([-1,  2,  0]), array([-1, -1])]
    >>> found["error"]
    [None, 'sentence 1: the score of the edge 0 -> 1 is nan; scores must be finite, or -inf to forbid an edge']
    >>> found["head_probs"][0].round(3)
    array([  nan, 0.953, 0.953])
    >>> [round(float(margin), 1) for margin in found["margin"]]
    [3.0, nan]
    """
    trees = None if k is None else positive_integer("k", k)
    confidence = check_flag("confidence", confidence)
    check_choice("on_infeasible", on_infeasible, "raise", "mask")
    told: dict[int, str] = {}

    def read(given: Any, allowed: Any, label: int | None = root_label) -> Batch:
        return Batch.read(given, lengths, allowed, labelled, layout, temperature=temperature, root_label=label)

    if on_infeasible == "raise":
        batch = read(scores, mask)
        batch.refuse_bad_scores()
    else:
        batch = _read_what_can_be_read(read, scores, mask, labelled, told)
        batch = _without_bad_scores(batch, told)
    errors = [told.get(i) for i in range(len(batch))]
    dist: TreeDistribution[Any, Any, Any] = TreeDistribution.__new__(TreeDistribution)
    dist._set(root, projective, on_infeasible, temperature)
    dist._batch = batch
    best = dist._checked(_decoding.argmax(batch, dist._core_root, dist._projective, scored=True))
    if best.unattachable is not None:
        for i in np.flatnonzero(best.unattachable):
            errors[i] = errors[i] or describe_infeasible(batch, int(i), int(best.unattachable[i]), dist._tree_name())
    found = _columns(batch, best, errors)
    if confidence:
        found |= _confidence_columns(batch, facts(batch, dist._solved, best, dist._log_probs_of(best)))
    if trees is not None:
        decoded = _decoding.topk(batch, dist._core_root, dist._projective, trees)
        found |= _topk_columns(batch, decoded, trees)
        if confidence and trees > 1:
            found["margin"] = batch.scalars(dist._margins(decoded, trees))
    return found


def _read_what_can_be_read(
    read: Callable[..., Batch], scores: Any, mask: Any, labelled: bool, told: dict[int, str]
) -> Batch:
    """The batch; for what is no sentence's matrix a sentence without words, and in `told` what is wrong with it."""
    try:
        return read(scores, mask)
    except (TypeError, ValueError):
        masks_fit = mask is None or (isinstance(mask, (list, tuple)) and len(mask) == len(scores))
        if not isinstance(scores, (list, tuple)) or not scores or not masks_fit:
            raise
    read([], None)  # raises if options are wrong
    readable: list[Any] = list(scores)
    for i, item in enumerate(scores):
        try:
            read([item], None if mask is None else [mask[i]])
        except (TypeError, ValueError) as error:
            told[i] = str(error).replace("scores[0]", f"scores[{i}]")
    if labelled:
        counts = {i: np.shape(item)[2] for i, item in enumerate(scores) if i not in told}
        most = next(iter(counts.values()), 0)
        told |= {i: f"scores[{i}] has {n} labels, others have {most}" for i, n in counts.items() if n != most}
    good = [item for i, item in enumerate(scores) if i not in told]
    if not good:
        return read([np.zeros((1, 1, 1) if labelled else (1, 1))] * len(readable), None, None)
    example = read(good[:1], None)
    nothing = np.zeros((1, 1, *example.arrays[0].shape[2:]), example.dtype)
    for i in told:
        readable[i] = nothing
    masks = None if mask is None else [np.ones_like(readable[i], bool) if i in told else m for i, m in enumerate(mask)]
    return read(readable, masks)


def _without_bad_scores(batch: Batch, told: dict[int, str]) -> Batch:
    """The batch with nothing allowed in sentences that have a bad score; says in `told` which that is."""
    if batch.core.first_bad(batch.threads) is None:
        return batch

    def change(i: int, matrix: FloatArray) -> None:
        bad = Batch(matrix[np.newaxis], (), None, batch.labelled, "head_dep").core.first_bad(1)
        if bad is not None:
            told[i] = batch.describe_bad_score(i, *bad[1:])
            matrix[...] = -np.inf

    return batch.with_matrices_changed(change)


def _columns(batch: Batch, best: _decoding.Decoded, errors: list[str | None]) -> dict[str, Any]:
    told: Any = errors
    if batch.leading is not None:
        told = np.array(errors, object).reshape(batch.leading)[()]
    found = {"heads": batch.nodes(best.heads), "score": batch.scalars(best.scores), "error": told}
    if best.labels is not None:
        found["labels"] = batch.nodes(best.labels)
    return found


def _confidence_columns(batch: Batch, found: Facts) -> dict[str, Any]:
    def per_word(flat: npt.NDArray[np.float64]) -> Any:
        return batch.nodes(rounded(flat, batch.dtype))

    columns = {
        "head_probs": per_word(found.head_probs),
        "runners_up": batch.nodes(found.runners_up),
        "runner_up_probs": per_word(found.runner_up_probs),
        "log_odds": per_word(found.log_odds),
        "log_prob": batch.scalars(found.log_prob),
        "entropy": batch.scalars(found.entropy),
        "expected_attachment": batch.scalars(found.expected_attachment),
    }
    if found.label_probs is not None:
        columns["label_probs"] = per_word(found.label_probs)
    return columns


def _topk_columns(batch: Batch, decoded: _decoding.Decoded, k: int) -> dict[str, Any]:
    columns = {"topk_heads": batch.nodes(decoded.heads, k), "topk_scores": batch.scalars(decoded.scores, k)}
    if decoded.labels is not None:
        columns["topk_labels"] = batch.nodes(decoded.labels, k)
    return columns
