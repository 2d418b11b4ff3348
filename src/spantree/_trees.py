"""`Trees`: trees, and what is known about them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from ._read import FloatArray, IntArray

    Ints = TypeVar("Ints", default=IntArray)  # arrays, or lists of them if the scores came as a list
    Floats = TypeVar("Floats", default=FloatArray)  # likewise
else:
    from typing import TypeVar

    Ints, Floats = TypeVar("Ints"), TypeVar("Floats")


@dataclass(frozen=True, slots=True, eq=False)
class Trees(Generic[Ints, Floats]):
    """Trees and what is known about them; lists of arrays where the scores came as a list.

    Unpacks, and is indexed, like a tuple of the parts that are there, in the order heads, scores, labels.

    Attributes
    ----------
    heads : int64 array (..., n+1)
        Head of each word; -1 at ROOT, in the padding, and everywhere if there is no such tree.
    scores : float array (...), or None
        Score of each tree; -inf if there is no such tree.
    labels : int64 array (..., n+1), or None
        Label of each word's edge if the scores are labelled; -1 where heads is.
    decodes : int64 array, or None
        For each sentence, how many unconstrained decodings a search under constraints took.

    Examples
    --------
    >>> import numpy as np, spantree
    >>> heads, scores = spantree.topk(np.array([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]]), 2)
    >>> scores
    array([7., 4.])
    """

    heads: Ints
    scores: Floats = None  # type: ignore[assignment]
    labels: Ints = None  # type: ignore[assignment]
    decodes: IntArray = None  # type: ignore[assignment]

    def _parts(self) -> tuple[Ints | Floats, ...]:
        return tuple(part for part in (self.heads, self.scores, self.labels) if part is not None)

    def __iter__(self) -> Iterator[Ints | Floats]:
        return iter(self._parts())

    def __len__(self) -> int:
        return len(self._parts())

    def __getitem__(self, index: int) -> Ints | Floats:
        return self._parts()[index]


LABELS_NEED_HEADS = "labels are those of the edges from the given heads; give heads too, -2 where they are unknown"


def parts_of(heads: Any, labels: Any) -> tuple[Any, Any]:
    """Heads and labels as they were given, apart or as `Trees`."""
    if not isinstance(heads, Trees):
        return heads, labels
    if heads.labels is not None and labels is not None:
        raise ValueError("labels were given twice: with the trees, and on their own")
    return heads.heads, heads.labels if labels is None else labels
