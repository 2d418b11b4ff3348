"""Trees for other programs: displaCy, Graphviz, LaTeX (tikz-dependency), matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from .layout import checked_heads, checked_labels, levels, printable

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


def matplotlib_axes(
    words: Sequence[str], heads: npt.ArrayLike, labels: Sequence[str] | None = None, ax: Axes | None = None
) -> Axes:
    """Draws a tree into a matplotlib axes (a new figure's, if none is given) and returns it.

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
    edges = [(head, dep) for dep, head in enumerate(head_of.tolist()) if dep > 0 and head >= 0]
    inner = [(head, dep) for head, dep in edges if head > 0]
    heights = dict(zip(inner, levels([(min(edge), max(edge)) for edge in inner]), strict=True))
    top = max(heights.values(), default=0) + 1
    if ax is None:
        _, ax = plt.subplots(figsize=(max(0.9 * len(words), 2), 0.5 * top + 0.8))
    for i, word in enumerate(words, start=1):
        ax.text(i, 0, printable(word), ha="center", va="top")
    for head, dep in edges:
        height = heights.get((head, dep), top)
        side = 0.12 if head > dep else -0.12
        if head == 0:
            corners: list[tuple[float, float]] = [(dep, top), (dep, 0.05)]
        else:
            start, end = head - side, dep + side
            corners = [(start, 0.05), (start, height), (end, height), (end, 0.05)]
        ax.add_patch(FancyArrowPatch(path=Path(corners), arrowstyle="-|>", mutation_scale=9))
        middle = sum(x for x, _ in corners) / len(corners)
        ax.text(middle, height + 0.05, printable(names[dep - 1]), ha="center", va="bottom", fontsize="small")
    ax.set_xlim(0.3, len(words) + 0.7)
    ax.set_ylim(-0.6, top + 0.6)
    ax.set_axis_off()
    return ax
