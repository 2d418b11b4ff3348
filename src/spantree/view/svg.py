"""A tree as SVG: arcs by nesting above the words, other likely heads dashed below them, each word's head entropy.

    the arrow ends at the dependent; an arc stands above all arcs inside it; its label interrupts it at the apex, where
    no other arc crosses it
    width and opacity say how probable the arc is; ROOT is an arrow from above
    H = -sum_h p(h) log p(h), the entropy of a word's head, is a bar below the word, full at log n

Only shapes and text: no scripts, no fonts, no references. Lines take the colour of the text around them (inline), or
follow the reader's light or dark setting (a file of its own).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from .._options import check_flag, real_number
from .layout import (
    IntArray,
    checked_heads,
    checked_labels,
    checked_marginals,
    free_place,
    in_line,
    levels,
    printable,
    runs_right_to_left,
    spread,
)

WORD, _LABEL = 15.0, 11.0  # font sizes in pixels; all other lengths are in pixels too
_GAP = 14.0  # between words
_EDGE = 20.0  # on either side: half a label on ROOT's edge
_STEP = 22.0  # from one level of arcs to the next: a line of labels
_SLOT = 7.0  # between two arcs at the same word: an arrowhead
_ROUND = 9.0  # radius of an arc's corners
_STROKE = 3.5  # half an arrowhead

OTHER = "#c8641c"  # lines of other heads on a page of any colour: contrast above 3.9 on white and on black
ENTROPY = "#8860d0"

_STYLE = (
    "<style>:root{color-scheme:light dark;color:#1a1a1a}.others{color:#a84c0c}"
    "@media(prefers-color-scheme:dark){:root{color:#e8e8e8}.others{color:#f09a55}}</style>"
)


def tree_svg(
    words: Sequence[str],
    heads: npt.ArrayLike,
    labels: Sequence[str] | None = None,
    *,
    marginals: npt.ArrayLike | None = None,
    threshold: float = 0.1,
    standalone: bool = True,
) -> str:
    """Draws a tree.

    Parameters
    ----------
    words : n strings
    heads : integers (n+1,)
        Drawn above the words. A negative head leaves the word without an arc.
    labels : n strings, optional
    marginals : (n+1, n+1), optional
        Probability of each edge ``[head, dep]``. Gives arcs their width, draws other heads of probability `threshold`
        and above below the words, and adds the strip of entropies.
    threshold : float
    standalone : bool
        A file of its own, which follows the reader's light or dark setting; or a part of a page, in the page's colour.

    Returns
    -------
    str

    Examples
    --------
    >>> from spantree.view import tree_svg
    >>> picture = tree_svg(["She", "sleeps"], [-1, 2, 0], ["nsubj", "root"])
    >>> "<title>sleeps → She (nsubj)</title>" in picture
    True
    """
    threshold, standalone = real_number("threshold", threshold), check_flag("standalone", standalone)
    head_of = checked_heads(words, heads)
    names = checked_labels(words, labels)
    chances = None if marginals is None else checked_marginals(words, marginals)
    shown = [printable(word) for word in words]
    above = [Arc(int(head), dep, names[dep - 1]) for dep, head in enumerate(head_of) if dep > 0 and head >= 0]
    below = [] if chances is None else _others(head_of, chances, threshold)
    if chances is not None:
        for arc in above:
            arc.probability = float(chances[arc.head, arc.dep])
    row = Row(shown, [*above, *below])
    top, bottom = height(above), height(below)
    base = top + 6
    foot = base + WORD + (22 if chances is not None else 10)
    parts = [arc.drawn(base, -1, shown, "currentColor") for arc in placed(row, above)]
    others = [arc.drawn(foot, 1, shown, "currentColor" if standalone else OTHER) for arc in placed(row, below)]
    if others:
        parts += [f'<g class="others" color="{OTHER}">' if standalone else "<g>", *others, "</g>"]
    parts += [_word(row, i, word, base) for i, word in enumerate(shown)]
    if chances is not None:
        parts += [_entropy(row, i, word, chances[:, i + 1], base + WORD + 11) for i, word in enumerate(shown)]
    tall = foot + bottom
    about = escape("Dependency tree: " + " ".join(shown))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{row.width:.0f}" height="{tall:.0f}" '
        f'viewBox="0 0 {row.width:.0f} {tall:.0f}" role="img" aria-label="{about}" '
        f'font-family="system-ui, sans-serif" font-size="{WORD:g}" fill="currentColor">'
        f"{_STYLE if standalone else ''}{''.join(parts)}</svg>"
    )


@dataclass(slots=True)
class Arc:
    """An edge, and where `placed` puts it."""

    head: int
    dep: int
    label: str
    probability: float | None = None
    dashed: bool = False
    level: int = 1
    head_x: float = 0.0
    dep_x: float = 0.0
    label_x: float = 0.0

    @property
    def text(self) -> str:
        """What stands at the apex: an arrow that comes from nowhere says from where."""
        return self.label or ("ROOT" if self.head == 0 else "")

    @property
    def apex(self) -> float:
        """How high it goes."""
        return _ROUND + self.level * _STEP - 8

    @property
    def text_width(self) -> float:
        """With a little room on either side."""
        return _text_width(self.text, _LABEL) + 8 if self.text else 0.0

    def drawn(self, base: float, up: int, words: list[str], colour: str) -> str:
        """Lines, arrowhead, label and what a pointer is told. `up` is -1 above the words, 1 below."""
        p = 1.0 if self.probability is None else self.probability
        apex = base + up * self.apex
        tip = base + up * 2
        width, middle = self.text_width, self.label_x
        if self.head == 0:
            lines = f"M{self.dep_x:.1f} {apex - up * 8:.1f}V{tip + up * 2 * _STROKE:.1f}"
        else:
            left, right = sorted((self.head_x, self.dep_x))
            r = min(_ROUND, (right - left) / 2)
            turn = apex - up * r
            starts = [tip + up * 2 * _STROKE if x == self.dep_x else base for x in (left, right)]
            lines = (
                f"M{left:.1f} {starts[0]:.1f}V{turn:.1f}Q{left:.1f} {apex:.1f} {left + r:.1f} {apex:.1f}"
                f"H{max(middle - width / 2, left + r):.1f}"
                f"M{min(middle + width / 2, right - r):.1f} {apex:.1f}H{right - r:.1f}"
                f"Q{right:.1f} {apex:.1f} {right:.1f} {turn:.1f}V{starts[1]:.1f}"
            )
        x = self.dep_x
        arrow = f"M{x:.1f} {tip:.1f}l{-_STROKE} {up * 2 * _STROKE:g}h{2 * _STROKE:g}z"
        label = escape(printable(self.label))
        text = (
            f'<text x="{middle:.1f}" y="{apex + 0.35 * _LABEL:.1f}" font-size="{_LABEL:g}" text-anchor="middle">'
            f"{escape(printable(self.text))}</text>"
            if self.text
            else ""
        )
        head = "ROOT" if self.head == 0 else words[self.head - 1]
        chance = "" if self.probability is None else f" {self.probability:.3f}"
        named = f" ({label})" if label and not self.dashed else ""
        dashes = ' stroke-dasharray="4 3"' if self.dashed else ""
        return (
            f"<g><title>{escape(in_line(head))} → {escape(in_line(words[self.dep - 1]))}{named}{chance}</title>"
            f'<g opacity="{0.7 + 0.3 * p:.2f}">'
            f'<path d="{lines}" fill="none" stroke="{colour}" stroke-width="{0.8 + 1.0 * p:.2f}"{dashes}/>'
            f'<path d="{arrow}" fill="{colour}"/></g>{text}</g>'
        )


def _others(heads: IntArray, chances: npt.NDArray[np.float64], threshold: float) -> list[Arc]:
    """The heads that are not in the tree but likely enough."""
    edges = np.argwhere(chances[:, 1:] >= max(threshold, 1e-12)).tolist()
    return [
        Arc(head, dep + 1, f"{chances[head, dep + 1]:.2f}", float(chances[head, dep + 1]), dashed=True)
        for head, dep in edges
        if head != heads[dep + 1] and head != dep + 1
    ]


class Row:
    """The words in a row, far enough apart for the labels of their arcs."""

    def __init__(self, words: list[str], arcs: list[Arc]) -> None:
        n = len(words)
        self.backwards = runs_right_to_left(words)
        self.widths = [max(_text_width(word, WORD), 14.0) for word in words]
        ends = [
            max(over, under) for over, under in zip(*(_ends(arcs, n, dashed) for dashed in (False, True)), strict=True)
        ]
        widths = [max(width, _SLOT * ends[i + 1]) for i, width in enumerate(self.widths)]
        wanted = [
            (
                arc.head - 1,
                arc.dep - 1,
                _text_width(arc.label, _LABEL) + 20 + _SLOT * (ends[arc.head] + ends[arc.dep]) / 2,
            )
            for arc in arcs
            if arc.head > 0
        ]
        roots = [
            (arc.dep - 1, arc.dep - 1 + side, _text_width(arc.text, _LABEL) / 2 + 12)
            for arc in arcs
            for side in (-1, 1)
            if arc.head == 0 and 0 <= arc.dep - 1 + side < n
        ]
        centres = spread(widths, _GAP, wanted + roots)
        self.width = (centres[-1] + widths[-1] / 2 if n else 0.0) + 2 * _EDGE
        self.centres = [(self.width - c - _EDGE) if self.backwards else c + _EDGE for c in centres]


def _ends(arcs: list[Arc], n: int, dashed: bool) -> list[int]:
    """How many arcs end at each node, above the words or, dashed, below."""
    count = [0] * (n + 1)
    for arc in arcs:
        if arc.dashed is dashed:
            count[arc.head] += 1
            count[arc.dep] += 1
    return count


def placed(row: Row, arcs: list[Arc]) -> list[Arc]:
    """Gives each arc its level, its two ends (at a word, the higher an arc the nearer to the word's middle) and the
    place of its label."""
    spans = [tuple(sorted((row.centres[arc.head - 1], row.centres[arc.dep - 1]))) for arc in arcs if arc.head > 0]
    heights = iter(levels(spans))  # type: ignore[arg-type]
    for arc in arcs:
        arc.level = next(heights) if arc.head > 0 else 0
    highest = max((arc.level for arc in arcs), default=0)
    for arc in arcs:
        arc.level = arc.level or highest + 1
    ends: list[list[tuple[float, Arc, bool]]] = [[] for _ in row.centres]
    for arc in arcs:
        here = row.centres[arc.dep - 1]
        there = here if arc.head == 0 else row.centres[arc.head - 1]
        ends[arc.dep - 1].append((_place(here, there, arc.level), arc, True))
        if arc.head > 0:
            ends[arc.head - 1].append((_place(there, here, arc.level), arc, False))
    for centre, at_word in zip(row.centres, ends, strict=True):
        at_word.sort(key=lambda end: end[0])
        for i, (_, arc, arrives) in enumerate(at_word):
            x = centre + _SLOT * (i - (len(at_word) - 1) / 2)
            if arrives:
                arc.dep_x = x
            else:
                arc.head_x = x
    for arc in arcs:
        left, right = sorted((arc.head_x, arc.dep_x))
        higher = [x for one in arcs if one.level > arc.level for x in ((one.head_x,) * (one.head > 0) + (one.dep_x,))]
        arc.label_x = free_place(left, right, arc.text_width, higher) if arc.head > 0 else arc.dep_x
    return arcs


def _place(here: float, there: float, level: int) -> float:
    """Where an arc's end stands among all at a word: low arcs outside, high ones inside, ROOT's in the middle."""
    return 0.0 if here == there else (1.0 if there > here else -1.0) / level


def height(arcs: list[Arc]) -> float:
    """Room for arcs: known before they are placed, from their levels by nodes."""
    spans = [(float(min(arc.head, arc.dep)), float(max(arc.head, arc.dep))) for arc in arcs if arc.head > 0]
    most = max(levels(spans), default=0) + any(arc.head == 0 for arc in arcs)
    return 0.0 if most == 0 else _ROUND + most * _STEP + 8


def _word(row: Row, i: int, word: str, base: float) -> str:
    direction = ' direction="rtl"' if row.backwards else ""
    return f'<text x="{row.centres[i]:.1f}" y="{base + WORD:.1f}" text-anchor="middle"{direction}>{escape(word)}</text>'


def _entropy(row: Row, i: int, word: str, chances: npt.NDArray[np.float64], y: float) -> str:
    p = chances[chances > 0]
    entropy = float(-(p * np.log(p)).sum()) + 0.0
    n = len(chances) - 1
    share = min(entropy / np.log(n), 1.0) if n > 1 else 0.0
    width = row.widths[i]
    left = row.centres[i] - width / 2
    return (
        f"<g><title>{escape(word)}: entropy of its head {entropy:.3f} nats</title>"
        f'<rect x="{left:.1f}" y="{y:.1f}" width="{width:.1f}" height="4" rx="2" opacity=".15"/>'
        f'<rect x="{left:.1f}" y="{y:.1f}" width="{width * share:.1f}" height="4" rx="2" fill="{ENTROPY}"/></g>'
    )


def _text_width(text: Any, size: float) -> float:
    """About how wide a text is in a common font: wide characters are square, marks take no room."""
    from unicodedata import category, east_asian_width

    ems = 0.0
    for character in text:
        if category(character) not in ("Mn", "Me", "Cf"):
            wide = east_asian_width(character) in "WF"
            ems += 1.02 if wide else 0.72 if character.isupper() or character in "mwMW" else 0.57
    return ems * size
