"""Where things stand in a picture of a tree: how high each arc is, how wide a text, which way it runs."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
LEFT_TO_RIGHT = "\u200e"


def checked_heads(words: Sequence[str], heads: npt.ArrayLike) -> IntArray:
    """Heads (n+1,) as integers; ValueError if they do not fit the words. A head below 0 is no arc."""
    head_of = np.asarray(heads)
    if head_of.dtype.kind not in "iu" or head_of.shape != (len(words) + 1,):
        raise ValueError(f"{len(words)} words need {len(words) + 1} heads, not an array of shape {head_of.shape}")
    if any(int(head) > len(words) or int(head) == dep for dep, head in enumerate(head_of) if dep > 0):
        raise ValueError("a head is no other node of the sentence")
    return head_of.astype(np.int64)


def checked_labels(words: Sequence[str], labels: Sequence[str] | None) -> list[str]:
    """A label for each word, empty without labels."""
    if labels is None:
        return [""] * len(words)
    if len(labels) != len(words):
        raise ValueError(f"{len(words)} words need {len(words)} labels, not {len(labels)}")
    return list(labels)


def checked_marginals(words: Sequence[str], marginals: Any) -> npt.NDArray[np.float64]:
    values = np.asarray(marginals, np.float64)
    if values.shape != (len(words) + 1,) * 2:
        raise ValueError(f"{len(words)} words need marginals of shape {(len(words) + 1,) * 2}, not {values.shape}")
    return values


def levels(spans: Sequence[tuple[float, float]]) -> list[int]:
    """How high each arc is, from 1: above all arcs inside it, and on no level of one that it crosses.

    >>> levels([(1, 2), (2, 3), (1, 3), (0, 2)])
    [1, 1, 3, 2]
    """
    height = [0] * len(spans)
    placed: list[int] = []
    for i in sorted(range(len(spans)), key=lambda i: (spans[i][1] - spans[i][0], spans[i])):
        left, right = spans[i]
        inside = [height[j] for j in placed if left <= spans[j][0] and spans[j][1] <= right]
        crossed = {height[j] for j in placed if spans[j][0] < right and left < spans[j][1]}
        level = max(inside, default=0) + 1
        while level in crossed:
            level += 1
        height[i] = level
        placed.append(i)
    return height


def free_place(left: float, right: float, width: float, crossing: Sequence[float]) -> float:
    """The middle of a label of this width on a line from `left` to `right`: as near to the line's middle as it can be
    where nothing crosses the label. The line's middle, if there is no such place.

    >>> free_place(0, 100, 20, []), free_place(0, 100, 20, [45, 58]), free_place(0, 30, 20, [15])
    (50.0, 35.0, 15.0)
    """
    middle = (left + right) / 2
    beside = (x + side * width / 2 for x in crossing for side in (-1, 1))
    free = [
        place
        for place in (middle, *beside)
        if left <= place - width / 2
        and place + width / 2 <= right
        and all(abs(place - x) >= width / 2 - 1e-9 for x in crossing)
    ]
    return min(free, key=lambda place: abs(place - middle), default=middle)


def runs_right_to_left(words: Sequence[str]) -> bool:
    """Whether most letters are of a script that is written from right to left.

    >>> runs_right_to_left(["שלום", "ok"]), runs_right_to_left(["ok"])
    (True, False)
    """
    kinds = [unicodedata.bidirectional(character) for word in words for character in word]
    return sum(kind in ("R", "AL") for kind in kinds) > sum(kind == "L" for kind in kinds)


def in_line(word: str) -> str:
    """A word to stand in a line of Latin text: after right-to-left letters a mark, so that only they are turned around.

    >>> in_line("ok"), in_line("שלום") == "שלום" + LEFT_TO_RIGHT
    ('ok', True)
    """
    turned = any(unicodedata.bidirectional(character) in ("R", "AL") for character in word)
    return word + LEFT_TO_RIGHT if turned else word


def printable(text: str) -> str:
    """A text that moves no cursor, turns no line around and breaks no XML: such characters are shown as �.

    >>> printable("a\\tb\\x1b[2J")
    'a�b�[2J'
    """
    return "".join("�" if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") or c in _NOT_SHOWN else c for c in text)


_NOT_SHOWN = frozenset("\ufffe\uffff\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u061c")


def spread(widths: Sequence[float], gap: float, wanted: Sequence[tuple[int, int, float]]) -> list[float]:
    """The centres of boxes in a row, `gap` apart, or more: boxes i < j stand at least so far apart, centre to centre.

    >>> spread([4, 4, 4], 2, [(0, 1, 10)])
    [2.0, 12.0, 18.0]
    """
    centres: list[float] = []
    at_least: list[list[tuple[int, float]]] = [[] for _ in widths]
    for i, j, distance in wanted:
        at_least[max(i, j)].append((min(i, j), distance))
    for j, width in enumerate(widths):
        nearest = width / 2 if j == 0 else centres[j - 1] + (widths[j - 1] + width) / 2 + gap
        centres.append(max([nearest, *(centres[i] + distance for i, distance in at_least[j])]))
    return centres
