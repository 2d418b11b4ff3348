"""Best trees under constraints that an edge alone cannot express, exactly, by branching on decodings without them.

A search keeps sets of trees, each given by a matrix in which edges are forbidden, in the order of their best tree
(without constraints: a bound). It takes the first. If its best tree keeps all constraints, no other set has a better
one: this is the next tree, and the rest of the set is cut into parts that first disagree with it in word 1, in word 2,
and so on (Lawler 1972). If not, the set is cut into parts that each rule out what was wrong, and that together still
hold every tree that keeps the constraints. Every part is one decoding. How many it takes depends on the scores; there
is a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _decoding
from ._batch import Batch
from ._best_first import BestFirst
from ._options import read_list

if TYPE_CHECKING:
    from . import _core
    from ._read import FloatArray, IntArray

# What a constraint makes of a set of trees whose best tree (heads, labels) breaks it: None if it does not.
Cut = Callable[["FloatArray", "IntArray", "IntArray | None"], "list[FloatArray] | None"]


class SearchLimitError(RuntimeError):
    """A search under constraints took more decodings than allowed."""


@dataclass(slots=True)
class Found:
    """A tree that keeps all constraints, its score, and the decodings it took up to here."""

    heads: IntArray
    labels: IntArray | None
    score: float
    decodes: int


def best_trees(
    batch: Batch, i: int, root: _core.Root, projective: bool, cuts: Sequence[Cut], limit: int
) -> Iterator[Found]:
    """Trees of sentence i that no cut objects to, best first. O(n^2) for a decoding, n of them for a tree."""
    from heapq import heappop, heappush  # not all search

    decodes, labelled = 0, batch.labelled
    queue: list[tuple[float, BestFirst, int, FloatArray, IntArray, IntArray | None]] = []

    def add(matrix: FloatArray) -> None:
        nonlocal decodes
        if decodes == limit:
            raise SearchLimitError(f"no answer after {limit} decodings; allow more of them, or constrain less")
        decodes += 1
        found = _decoding.argmax(
            Batch(matrix[np.newaxis], (), None, labelled, "head_dep"), root, projective, scored=True
        )
        if found.unattachable is None:
            rank = BestFirst(matrix, found.heads, found.labels)
            heappush(queue, (-float(found.scores[0]), rank, decodes, matrix, found.heads, found.labels))

    add(_edges_only(batch, i))
    while queue:
        score, _, _, matrix, heads, labels = heappop(queue)
        parts = next((parts for cut in cuts if (parts := cut(matrix, heads, labels)) is not None), None)
        if parts is None:
            yield Found(heads, labels, -score, decodes)
            parts = _all_but(matrix, heads, labels)
        for part in parts:
            add(part)


def _edges_only(batch: Batch, i: int) -> FloatArray:
    """Scores of a sentence without padding, in double, -inf where there is no edge: on the diagonal, in column 0."""
    nodes = int(batch.lengths[i]) + 1
    matrix = np.array(batch.arrays[i][:nodes, :nodes], np.float64)
    matrix[:, 0] = -np.inf
    matrix[np.arange(nodes), np.arange(nodes)] = -np.inf
    return matrix


def _all_but(matrix: FloatArray, heads: IntArray, labels: IntArray | None) -> list[FloatArray]:
    """Trees that first disagree with a tree in word 1, in word 2, ..."""
    parts = []
    agreed = matrix.copy()
    for dep in range(1, len(matrix)):
        edge = (heads[dep], dep) if labels is None else (heads[dep], dep, labels[dep])
        part = agreed.copy()
        part[edge] = -np.inf
        if part[:, dep].max() > -np.inf:
            parts.append(part)
        kept = agreed[edge]
        agreed[:, dep] = -np.inf
        agreed[edge] = kept
    return parts


def at_most_one(group: Collection[int]) -> Cut:
    """No head has two dependents with labels of `group`.

    Where a head has, of two such dependents one must not be: either the first is not, or it is and no other may be.
    """
    members = np.array(sorted(group))

    def cut(matrix: FloatArray, heads: IntArray, labels: IntArray | None) -> list[FloatArray] | None:
        assert labels is not None
        seen: dict[int, int] = {}
        for dep in np.flatnonzero(np.isin(labels, members)).tolist():
            head = int(heads[dep])
            if head in seen:
                return _with_and_without(matrix, head, seen[head], members)
            seen[head] = dep
        return None

    return cut


def _with_and_without(matrix: FloatArray, head: int, dep: int, group: IntArray) -> list[FloatArray]:
    without = matrix.copy()
    without[head, dep, group] = -np.inf
    alone = matrix.copy()
    kept = matrix[head, dep, group]
    alone[:, dep] = -np.inf
    alone[head, :, group] = -np.inf
    alone[head, dep, group] = kept
    return [without, alone]


def number_of_roots(fewest: int, most: int) -> Cut:
    """From `fewest` to `most` edges leave ROOT.

    Too many, r1 ... rk: a tree that keeps to it is without r1, or with r1 and without r2, ..., or with the first `most`
    of them and no other. Too few: it has the first other word as a root, or not the first but the second, ...
    """

    def cut(matrix: FloatArray, heads: IntArray, labels: IntArray | None) -> list[FloatArray] | None:
        roots = [dep for dep in range(1, len(matrix)) if heads[dep] == 0]
        if fewest <= len(roots) <= most or len(matrix) == 1:
            return None
        parts = []
        if len(roots) > most:
            for i in range(most):
                part = _fixed_roots(matrix, roots[:i])
                part[0, roots[i]] = -np.inf
                parts.append(part)
            last = _fixed_roots(matrix, roots[:most])
            last[0, [dep for dep in range(1, len(matrix)) if dep not in roots[:most]]] = -np.inf
            return [*parts, last]
        others = [dep for dep in range(1, len(matrix)) if dep not in roots]
        for i, dep in enumerate(others):
            part = _fixed_roots(matrix, [dep])
            part[0, others[:i]] = -np.inf
            parts.append(part)
        return parts

    return cut


def _fixed_roots(matrix: FloatArray, roots: list[int]) -> FloatArray:
    """A copy in which these words hang on ROOT."""
    fixed = matrix.copy()
    fixed[1:, roots] = -np.inf
    return fixed


def read_cuts(
    root: str,
    groups: Sequence[Collection[Any]] | None,
    exactly: int | None,
    at_most: int | None,
    labelled: bool,
    label_number: Callable[[Any, str], int],
) -> list[Cut]:
    """The constraints that a caller asks for."""
    cuts = []
    if groups is not None:
        if not labelled:
            raise ValueError("at_most_one needs labelled scores")
        wanted = "at_most_one must be a list of groups of labels, such as [{3}, {1, 2}]"
        for group in read_list(wanted, groups):
            cuts.append(at_most_one({label_number(label, "at_most_one") for label in read_list(wanted, group)}))
    for name, number in (("exactly", exactly), ("at_most", at_most)):
        if number is not None:
            if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < 1:
                raise ValueError(f"{name} is a number of edges that leave ROOT, at least 1, not {number!r}")
            if root == "single" and name == "exactly" and number != 1:
                raise ValueError(f'{number} edges that leave ROOT need root="multi"')
            if root == "multi":
                cuts.append(number_of_roots(int(number) if name == "exactly" else 1, int(number)))
    return cuts


@dataclass(slots=True)
class KBest:
    """Flat heads, labels and scores of k trees per sentence, as from `_decoding.topk`.

    And how many trees of each sentence there are among them, and the decodings that these took.
    """

    heads: IntArray
    labels: IntArray | None
    scores: Any
    counts: IntArray
    decodes: IntArray


def k_best(batch: Batch, root: _core.Root, projective: bool, cuts: Sequence[Cut], k: int, limit: int) -> KBest:
    """The k best trees of each sentence that no cut objects to; -1 and -inf where there are fewer."""
    count = len(batch)
    heads = np.full((k, batch.core.row_size), -1)
    labels = np.full((k, batch.core.row_size), -1) if batch.labelled else None
    scores = np.full((k, count), -np.inf)
    counts, decodes = np.zeros((2, count), np.int64)
    start = 0
    for i in range(count):
        found = best_trees(batch, i, root, projective, cuts, limit)
        here = slice(start, start + int(batch.lengths[i]) + 1)
        start += len(batch.arrays[i])
        for rank, tree in zip(range(k), found, strict=False):
            heads[rank, here] = tree.heads
            if labels is not None:
                labels[rank, here] = tree.labels
            scores[rank, i] = tree.score
            counts[i], decodes[i] = rank + 1, tree.decodes
    return KBest(heads, labels, scores, counts, decodes)


def padded(batch: Batch, tree: Found) -> tuple[IntArray, Any, IntArray | None]:
    """Heads, score and labels of the only sentence's tree, as wide as its matrix."""
    rows = []
    for row in (tree.heads, tree.labels):
        wide = None if row is None else np.full(batch.core.row_size, -1)
        if wide is not None:
            wide[: len(tree.heads)] = row
        rows.append(wide)
    assert rows[0] is not None
    return rows[0], batch.number(tree.score), rows[1]


def wanted(trees: Iterator[Any], where: Callable[..., bool], limit: int) -> Generator[Any, None, None]:
    """Those of the trees for which where(heads), or where(heads, labels), is true."""
    refused = 0
    for tree in trees:
        if where(tree.heads) if tree.labels is None else where(tree.heads, tree.labels):
            refused = 0
            yield tree
        elif (refused := refused + 1) == limit:
            raise SearchLimitError(f"where refused {limit} trees in a row; allow more, or ask for less")
