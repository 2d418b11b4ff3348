"""The picture of a distribution in a notebook: its best tree, and other likely heads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import Trees
from .heat import heat_map
from .svg import tree_svg

_LONG = 60  # words: beyond, a picture of arcs is wider than any screen


def diagram(dist: Any, words: Sequence[str], label_names: Sequence[str] | None = None, layout: str = "head_dep") -> str:
    """SVG, in the page's colour, of a distribution over the trees of one sentence of these words; a heat map if long.

    Empty where there is no tree.

    Examples
    --------
    >>> import numpy as np, spantree
    >>> from spantree.view.notebook import diagram
    >>> picture = diagram(spantree.TreeDistribution(np.zeros((3, 3))), ["She", "sleeps"])
    >>> picture.startswith("<svg") and picture.count("<title>")  # two edges, one other head each, two entropies
    6
    """
    try:
        best = dist.argmax()
        marginals = np.asarray(dist.marginals(), np.float64)
    except ValueError:
        return ""
    heads, numbers = (best.heads, best.labels) if isinstance(best, Trees) else (best, None)
    if (heads[1:] < 0).any():
        return ""
    if numbers is not None:
        marginals = marginals.sum(axis=-1)
    if layout == "dep_head":
        marginals = marginals.T
    if len(words) > _LONG:
        return heat_map(words, marginals, heads, standalone=False)
    labels = None if numbers is None or label_names is None else [label_names[number] for number in numbers[1:]]
    return tree_svg(words, heads, labels, marginals=marginals, standalone=False)
