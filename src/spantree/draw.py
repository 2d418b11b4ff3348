"""Trees as text: arcs above the words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy.typing as npt

from ._batch import _read_integers

_GAP = 2  # columns between words


def text_arcs(words: Sequence[str], heads: npt.ArrayLike) -> str:
    """Draws a tree; every arc ends in an arrowhead above the dependent.

    Parameters
    ----------
    words : n strings
    heads : integers (n+1,)

    Examples
    --------
    >>> from spantree.draw import text_arcs
    >>> print(text_arcs(["She", "sleeps"], [-1, 2, 0]))
       ┌──────────┐
       │   ┌─────┐│
       │   ▼     │▼
    ROOT  She  sleeps
    """
    head_of = _read_integers(heads, "heads")
    if head_of.shape != (len(words) + 1,):
        raise ValueError(f"{len(words)} words need {len(words) + 1} heads, not an array of shape {head_of.shape}")
    if any(not 0 <= int(head) <= len(words) for head in head_of[1:]):
        raise ValueError("a head is no node of the sentence")
    tokens = ["ROOT", *words]
    widths = [max(len(token), 3) for token in tokens]
    starts = [sum(widths[:i]) + _GAP * i for i in range(len(tokens))]
    centres = [start + width // 2 for start, width in zip(starts, widths, strict=True)]
    arcs = [_Arc(int(head), dep, centres) for dep, head in enumerate(head_of) if dep > 0]
    _stack(arcs)
    canvas = _Canvas(max((arc.level for arc in arcs), default=0) + 1, starts[-1] + widths[-1])
    for arc in sorted(arcs, key=lambda arc: arc.level):
        arc.draw(canvas)
    labels = "".join(token.center(width) + " " * _GAP for token, width in zip(tokens, widths, strict=True))
    return "\n".join([*canvas.lines(), labels.rstrip()])


class _Arc:
    """An arc leaves its head beside the centre, on the dependent's side, and arrives at the dependent's centre."""

    def __init__(self, head: int, dep: int, centres: list[int]) -> None:
        self.arrival = centres[dep]
        self.departure = centres[head] + (1 if head < dep else -1)
        self.left, self.right = sorted((self.arrival, self.departure))
        self.level = 0

    def draw(self, canvas: _Canvas) -> None:
        top = canvas.height - 1 - self.level
        for column in range(self.left, self.right + 1):
            canvas.line(top, column, west=column > self.left, east=column < self.right)
        for column in (self.left, self.right):
            canvas.line(top, column, south=True)
            for row in range(top + 1, canvas.height):
                canvas.line(row, column, north=True, south=True)
        canvas.arrowheads.add(self.arrival)


def _stack(arcs: list[_Arc]) -> None:
    """Gives each arc the lowest level above all shorter arcs that it overlaps."""
    for i, arc in enumerate(ordered := sorted(arcs, key=lambda arc: (arc.right - arc.left, arc.left))):
        below = [other.level for other in ordered[:i] if other.left <= arc.right and arc.left <= other.right]
        arc.level = max(below, default=0) + 1


class _Canvas:
    """Cells that remember which of their four sides a line leaves by."""

    _SHAPES = " ╵╷│╴┘┐┤╶└┌├─┴┬┼"  # index: north 1, south 2, west 4, east 8

    def __init__(self, height: int, width: int) -> None:
        self.height = height
        self.cells = [[0] * width for _ in range(height)]
        self.arrowheads: set[int] = set()

    def line(
        self, row: int, column: int, north: bool = False, south: bool = False, west: bool = False, east: bool = False
    ) -> None:
        self.cells[row][column] |= north + 2 * south + 4 * west + 8 * east

    def lines(self) -> list[str]:
        drawn = [[self._SHAPES[cell] for cell in row] for row in self.cells]
        for column in self.arrowheads:
            drawn[-1][column] = "▼"
        return ["".join(row).rstrip() for row in drawn]
