"""Trees for other programs: displaCy, Graphviz, LaTeX (tikz-dependency), matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from .layout import checked_heads, checked_labels, printable
from .svg import WORD, Arc, Row, height, placed

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def displacy(words: Sequence[str], heads: npt.ArrayLike, labels: Sequence[str] | None = None) -> dict[str, Any]:
    """What ``spacy.displacy.render(..., style="dep", manual=True)`` takes. Edges from ROOT are left out, as there.

    Examples
    --------
    >>> from spantree.view import displacy
    >>> displacy(["She", "sleeps"], [-1, 2, 0], ["nsubj", "root"])["arcs"]
    [{'start': 0, 'end': 1, 'label': 'nsubj', 'dir': 'left'}]
    """
    head_of, names = checked_heads(words, heads), checked_labels(words, labels)
    arcs = []
    for dep, head in enumerate(head_of.tolist()):
        if dep > 0 and head > 0:
            left, right = sorted((head - 1, dep - 1))
            arcs.append(
                {"start": left, "end": right, "label": names[dep - 1], "dir": "left" if dep < head else "right"}
            )
    return {"words": [{"text": word, "tag": ""} for word in words], "arcs": arcs}


def dot(words: Sequence[str], heads: npt.ArrayLike, labels: Sequence[str] | None = None) -> str:
    """A tree for Graphviz: ``dot -Tsvg``.

    Examples
    --------
    >>> from spantree.view import dot
    >>> print(dot(["Go"], [-1, 0], ["root"]))
    digraph {
      node [shape=plain];
      0 [label="ROOT"];
      1 [label="Go"];
      0 -> 1 [label="root"];
    }
    """
    head_of, names = checked_heads(words, heads), checked_labels(words, labels)
    lines = ["digraph {", "  node [shape=plain];"]
    lines += [f"  {i} [label={_quoted(word)}];" for i, word in enumerate(["ROOT", *words])]
    for dep, head in enumerate(head_of.tolist()):
        if dep > 0 and head >= 0:
            label = f" [label={_quoted(names[dep - 1])}]" if names[dep - 1] else ""
            lines.append(f"  {head} -> {dep}{label};")
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    return '"' + printable(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def tikz(words: Sequence[str], heads: npt.ArrayLike, labels: Sequence[str] | None = None) -> str:
    r"""A tree for LaTeX with ``\usepackage{tikz-dependency}``.

    Examples
    --------
    >>> from spantree.view import tikz
    >>> print(tikz(["R&D", "grows"], [-1, 2, 0], ["nsubj", "root"]))
    \begin{dependency}
      \begin{deptext}
        R\&D \& grows \\
      \end{deptext}
      \depedge{2}{1}{nsubj}
      \deproot{2}{root}
    \end{dependency}
    """
    head_of, names = checked_heads(words, heads), checked_labels(words, labels)
    lines = [r"\begin{dependency}", r"  \begin{deptext}"]
    lines += ["    " + r" \& ".join(_latex(word) for word in words) + r" \\", r"  \end{deptext}"]
    for dep, head in enumerate(head_of.tolist()):
        if dep > 0 and head >= 0:
            label = _latex(names[dep - 1])
            lines.append(
                rf"  \deproot{{{dep}}}{{{label}}}" if head == 0 else rf"  \depedge{{{head}}}{{{dep}}}{{{label}}}"
            )
    return "\n".join([*lines, r"\end{dependency}"])


_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    **{character: "\\" + character for character in "{}#$%_"},
    "&": r"\&",
}


def _latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in printable(text))


_INCH = 75.0  # pixels of a picture whose words are 15 pixels high; matplotlib's are 10 points, its margins a fifth


def matplotlib_axes(
    words: Sequence[str], heads: npt.ArrayLike, labels: Sequence[str] | None = None, ax: Axes | None = None
) -> Axes:
    """Draws a tree into a matplotlib axes (a new figure's, if none is given) and returns it.

    Words and arcs stand where `tree_svg` puts them.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from spantree.view import matplotlib_axes
    >>> len(matplotlib_axes(["She", "sleeps"], [-1, 2, 0]).patches)  # one arrow an edge
    2
    """
    import matplotlib.pyplot as plt
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    head_of, names = checked_heads(words, heads), checked_labels(words, labels)
    shown = [printable(word) for word in words]
    arcs = [Arc(head, dep, names[dep - 1]) for dep, head in enumerate(head_of.tolist()) if dep > 0 and head >= 0]
    row = Row(shown, arcs)
    top = height(arcs)
    if ax is None:
        _, ax = plt.subplots(figsize=(max(row.width / _INCH, 2), (top + 2 * WORD) / _INCH))
    for centre, word in zip(row.centres, shown, strict=True):
        ax.text(centre, 0, word, ha="center", va="top")
    for arc in placed(row, arcs):
        high = arc.apex
        corners = [(arc.dep_x, high), (arc.dep_x, 2)]
        if arc.head > 0:
            corners = [(arc.head_x, 2), (arc.head_x, high), *corners]
        ax.add_patch(FancyArrowPatch(path=Path(corners), arrowstyle="-|>", mutation_scale=9))
        ax.text(arc.label_x, high + 1, printable(arc.text), ha="center", va="bottom", fontsize="small")
    ax.set_xlim(0, max(row.width, 1))
    ax.set_ylim(-2 * WORD, top + WORD)
    ax.set_axis_off()
    return ax
