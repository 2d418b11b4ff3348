"""Trees in a terminal: arcs above the words, or a word a line."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .layout import LEFT_TO_RIGHT, checked_heads, checked_labels, in_line, levels, printable, runs_right_to_left, spread

_GAP = 2  # columns between words


def text_arcs(words: Sequence[str], heads: npt.ArrayLike, labels: Sequence[str] | None = None) -> str:
    """Draws a tree; every arc ends in an arrowhead above the dependent and has its label in its middle.

    Parameters
    ----------
    words : n strings
        Wide characters and combining marks take the columns they have in a terminal. Where most of them are written
        from right to left, so is the sentence: the first word stands on the right.
    heads : integers (n+1,)
        A negative head leaves the word without an arc.
    labels : n strings, optional

    Examples
    --------
    >>> from spantree.view import text_arcs
    >>> print(text_arcs(["She", "sleeps"], [-1, 2, 0]))
       ┌───────────┐
       │    ┌─────┐│
       │    ▼     │▼
    ROOT   She  sleeps
    >>> print(text_arcs(["She", "sleeps"], [-1, 2, 0], ["nsubj", "root"]))
       ┌────root─────┐
       │    ┌─nsubj─┐│
       │    ▼       │▼
    ROOT   She    sleeps
    """
    head_of = checked_heads(words, heads)
    names = ["", *map(printable, checked_labels(words, labels))]
    tokens = ["ROOT", *(printable(word) for word in words)]
    backwards = runs_right_to_left(words)
    order = list(reversed(range(len(tokens)))) if backwards else list(range(len(tokens)))
    column_of = {node: column for column, node in enumerate(order)}
    arcs = [(int(head), dep) for dep, head in enumerate(head_of) if dep > 0 and head >= 0]
    widths = [max(terminal_width(tokens[node]), 3) | 1 for node in order]  # odd, so that each has a middle column
    # A label has a line on either side; an arc leaves its head one column nearer to the dependent than the centre.
    wanted = [(column_of[head], column_of[dep], terminal_width(names[dep]) + 4) for head, dep in arcs if names[dep]]
    centres = [int(centre) for centre in spread(widths, _GAP, wanted)]
    starts = [centre - width // 2 for centre, width in zip(centres, widths, strict=True)]
    canvas_arcs = [_Arc(centres[column_of[head]], centres[column_of[dep]], names[dep]) for head, dep in arcs]
    for arc, level in zip(canvas_arcs, levels([(arc.left, arc.right) for arc in canvas_arcs]), strict=True):
        arc.level = level
    canvas = _Canvas(max((arc.level for arc in canvas_arcs), default=0) + 1, starts[-1] + widths[-1] + 1)
    for arc in sorted(canvas_arcs, key=lambda arc: arc.level):
        arc.draw(canvas)
    line, used = "", 0
    for start, width, node in zip(starts, widths, order, strict=True):
        spare = width - terminal_width(tokens[node])
        line += " " * (start + spare // 2 - used) + in_line(tokens[node])
        used = start + spare // 2 + terminal_width(tokens[node])
    return "\n".join([*canvas.lines(), (LEFT_TO_RIGHT if backwards else "") + line])


def text_rows(
    words: Sequence[str],
    heads: npt.ArrayLike,
    labels: Sequence[str] | None = None,
    probabilities: npt.ArrayLike | None = None,
) -> str:
    """A word a line with its head, label and the probability (n+1,) of that head: for long sentences, and for logs.

    Examples
    --------
    >>> from spantree.view import text_rows
    >>> print(text_rows(["She", "sleeps"], [-1, 2, 0], ["nsubj", "root"], [1, 0.97, 1]))
    1  She     nsubj  <- 2 sleeps   0.97
    2  sleeps  root   <- ROOT       1.00
    """
    head_of = checked_heads(words, heads)
    names = [printable(label) for label in checked_labels(words, labels)]
    shown = [printable(word) for word in words]
    chances = None if probabilities is None else np.asarray(probabilities, np.float64).tolist()
    rows = []
    for i, word in enumerate(shown, start=1):
        head = int(head_of[i])
        source = "-" if head < 0 else "<- ROOT" if head == 0 else f"<- {head} {in_line(shown[head - 1])}"
        chance = [] if chances is None else [f"{chances[i]:5.2f}"]
        label = [names[i - 1]] if labels is not None else []
        rows.append([str(i).rjust(len(str(len(words)))), in_line(word), *label, source, *chance])
    widths = [max(terminal_width(row[column]) for row in rows) for column in range(len(rows[0]))] if rows else []
    lines = (
        "  ".join(cell + " " * (width - terminal_width(cell)) for cell, width in zip(row, widths, strict=True))
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)


def terminal_width(text: str) -> int:
    """Columns in a terminal."""
    from wcwidth import wcswidth

    return max(wcswidth(text), 0)


class _Arc:
    """An arc leaves its head beside the centre, on the dependent's side, and arrives at the dependent's centre."""

    def __init__(self, head_centre: int, dep_centre: int, label: str) -> None:
        self.arrival = dep_centre
        self.departure = head_centre + (1 if head_centre < dep_centre else -1)
        self.left, self.right = sorted((self.arrival, self.departure))
        self.label = label
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
        if self.label:
            canvas.texts[top, (self.left + self.right + 1 - terminal_width(self.label)) // 2] = self.label


class _Canvas:
    """Cells that remember which of their four sides a line leaves by."""

    _SHAPES = " ╵╷│╴┘┐┤╶└┌├─┴┬┼"  # index: north 1, south 2, west 4, east 8

    def __init__(self, height: int, width: int) -> None:
        self.height = height
        self.cells = [[0] * width for _ in range(height)]
        self.arrowheads: set[int] = set()
        self.texts: dict[tuple[int, int], str] = {}

    def line(
        self, row: int, column: int, north: bool = False, south: bool = False, west: bool = False, east: bool = False
    ) -> None:
        self.cells[row][column] |= north + 2 * south + 4 * west + 8 * east

    def lines(self) -> list[str]:
        drawn = [[self._SHAPES[cell] for cell in row] for row in self.cells]
        for column in self.arrowheads:
            drawn[-1][column] = "▼"
        for (row, column), text in self.texts.items():
            drawn[row][column : column + terminal_width(text)] = [text] + [""] * (terminal_width(text) - 1)
        return ["".join(row).rstrip() for row in drawn]
