"""Scores as directions of derivatives, where a constant for each word, and one for ROOT's edges, changes nothing."""

from __future__ import annotations

from typing import Any

from .form import LABELLED, SINGLE_ROOT, edge_axes


def relative_to_best(xp: Any, scores: Any, fixed: Any, possible: Any, rows: Any, form: int) -> Any:
    """Scores of possible edges less the best one of their word; with one root, ROOT's less the best of those too.

    0 for other edges. `fixed` are the scores without a gradient, `rows` the numbers of the heads.
    """
    axes = tuple(range(-edge_axes(form), 0))
    rows = rows.reshape(-1, *(1,) * (len(axes) - 1))
    possible = possible & (scores > -xp.inf)
    one_root = bool(form & SINGLE_ROOT)

    def highest(which: Any, of: Any, axes: Any) -> Any:
        found = xp.amax(xp.where(which, of, -xp.inf), axes, keepdims=True)
        return xp.where(found > -xp.inf, found, 0.0)

    best = highest(possible & (rows >= one_root), fixed, axes[::2] if form & LABELLED else axes[:1])
    relative = scores - best
    if one_root:
        # What is left of ROOT's may be as large as a mask. Less the highest of it: its two parts, each for itself.
        left = fixed - best
        is_highest = possible & (rows == 0) & (left == highest(possible & (rows == 0), left, axes))
        its_score = highest(is_highest, fixed, axes)
        its_best = highest(is_highest & (fixed == its_score), xp.broadcast_to(best, fixed.shape), axes)
        relative = xp.where(rows == 0, (scores - its_score) - (best - its_best), relative)
    return xp.where(possible, relative, 0.0)
