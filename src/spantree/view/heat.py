"""Edge probabilities as a heat map, heads down and dependents across: a picture for sentences too long for arcs."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
import numpy.typing as npt

from .._options import check_flag, real_number
from .layout import checked_heads, checked_marginals, in_line, printable
from .svg import _STYLE, OTHER, _text_width

_CELL = 14.0
_FONT = 10.0
_LEAST = 0.005  # less cannot be seen


def heat_map(
    words: Sequence[str],
    marginals: npt.ArrayLike,
    heads: npt.ArrayLike | None = None,
    *,
    threshold: float = _LEAST,
    standalone: bool = True,
) -> str:
    """Draws the probability of every edge as SVG; the edges of a tree are framed.

    Parameters
    ----------
    words : n strings
    marginals : (n+1, n+1), ``[head, dep]``
    heads : integers (n+1,), optional
    threshold : float
        Edges of less probability are left out, unless they are in the tree.

    Examples
    --------
    >>> from spantree.view import heat_map
    >>> "<title>ROOT → Go 1.000</title>" in heat_map(["Go"], [[0, 1], [0, 0]])
    True
    """
    threshold, standalone = real_number("threshold", threshold), check_flag("standalone", standalone)
    chances = checked_marginals(words, marginals)
    head_of = None if heads is None else checked_heads(words, heads)
    names = ["ROOT", *(printable(word) for word in words)]
    n = len(words)
    edge = max(_text_width(name, _FONT) for name in names) + 8
    width, height = edge + n * _CELL + 10, edge + (n + 1) * _CELL + 10
    right, foot = edge + n * _CELL, edge + (n + 1) * _CELL
    across = "".join(f"M{edge} {edge + i * _CELL}H{right}" for i in range(n + 2))
    down = "".join(f"M{edge + i * _CELL} {edge}V{foot}" for i in range(n + 1))
    itself = "".join(f"M{edge + i * _CELL} {edge + (i + 1) * _CELL}l{_CELL} {_CELL}" for i in range(n))
    parts = [
        f'<path d="{across}{down}" fill="none" stroke="currentColor" stroke-opacity=".12"/>'
        f'<path d="{itself}" fill="none" stroke="currentColor" stroke-opacity=".3"/>'
    ]
    for i, name in enumerate(names):
        middle = edge + (i + 0.5) * _CELL
        parts.append(f'<text x="{edge - 4}" y="{middle + 3.5}" text-anchor="end">{escape(name)}</text>')
        if i > 0:
            x, y = middle - _CELL + 3.5, edge - 4
            parts.append(f'<text x="{x}" y="{y}" transform="rotate(-90 {x} {y})">{escape(name)}</text>')
    in_tree = np.zeros(chances.shape, bool)
    if head_of is not None:
        with_head = np.flatnonzero(head_of[1:] >= 0) + 1
        in_tree[head_of[with_head], with_head] = True
    for head, dep in np.argwhere((chances >= max(threshold, _LEAST))[:, 1:] | in_tree[:, 1:]).tolist():
        p = float(chances[head, dep + 1])
        best = bool(in_tree[head, dep + 1])
        frame = f' stroke="{OTHER}" stroke-width="1.5"' if best else ""
        parts.append(
            f"<g><title>{escape(in_line(names[head]))} → {escape(in_line(names[dep + 1]))} {p:.3f}</title>"
            f'<rect x="{edge + dep * _CELL + 1}" y="{edge + head * _CELL + 1}" '
            f'width="{_CELL - 2}" height="{_CELL - 2}" '
            f'fill-opacity="{p:.3f}"{frame}/></g>'
        )
    about = escape("Probability of each head (rows) for each word (columns): " + " ".join(names[1:]))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{about}" '
        f'font-family="system-ui, sans-serif" font-size="{_FONT:g}" fill="currentColor">'
        f"{_STYLE if standalone else ''}{''.join(parts)}</svg>"
    )
