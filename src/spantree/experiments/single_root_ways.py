"""The decoders of "A Root of a Problem", in all the combinations that its figures compare.

Stanojevic and Cohen (2021): an algorithm for any number of roots (CLE or Tarjan's), one that makes it find a single
root (preselection or reweighting), and ArcMax before it or inside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from spantree import zoo
from spantree.zoo._edges import with_only_root
from spantree.zoo.reweighting import reweight

from ._types import FloatArray, IntArray

Decoder: TypeAlias = Callable[[FloatArray], IntArray]


def arcmax_before(decoder: Decoder, one_root: bool) -> Decoder:
    """Try the best head of each word first (Figure 9)."""
    return lambda scores: zoo.arcmax(scores, one_root, decoder)


def preselection(any_roots: Decoder) -> Decoder:
    """Decode with any number of roots, then again with each of the roots found as the only one (section 3).

    Examples
    --------
    >>> scores = np.array([[0, 9, 9, 1], [0, 0, 1, 5], [0, 2, 0, 1], [0, 1, 1, 0.0]])
    >>> preselection(zoo.chu_liu_edmonds)(scores)
    array([-1,  2,  0,  1])
    """

    def decode(scores: FloatArray) -> IntArray:
        heads = any_roots(scores)
        roots = np.flatnonzero(heads == 0)
        if len(roots) == 1:
            return heads
        trees = [any_roots(with_only_root(scores, root)) for root in roots.tolist()]
        return max(trees, key=lambda tree: scores[tree[1:], np.arange(1, len(tree))].sum())

    return decode


def reweighting(any_roots: Decoder) -> Decoder:
    """Decode once, with the root edges made so dear that a second one never pays (section 4).

    Examples
    --------
    >>> scores = np.array([[0, 9, 9, 1], [0, 0, 1, 5], [0, 2, 0, 1], [0, 1, 1, 0.0]])
    >>> reweighting(zoo.chu_liu_edmonds)(scores)
    array([-1,  2,  0,  1])
    """
    return lambda scores: any_roots(reweight(scores))


def stanza(scores: FloatArray) -> IntArray:
    """Decode as the Stanza parser does, in the paper's words for it: preselection around Chu-Liu-Edmonds."""
    return preselection(zoo.chu_liu_edmonds)(scores)


ANY_ROOTS: dict[str, Decoder] = {
    "CLE": zoo.chu_liu_edmonds,
    "Tarjan": zoo.tarjan,
    "ArcMax + Tarjan": arcmax_before(zoo.tarjan, one_root=False),
}

ONE_ROOT: dict[str, Decoder] = {
    "Gabow-Tarjan": zoo.gabow_tarjan,
    "Preselection": preselection(zoo.tarjan),
    "Reweighting": reweighting(zoo.tarjan),
    "ArcMax + Gabow-Tarjan": arcmax_before(zoo.gabow_tarjan, one_root=True),
    "ArcMax + Preselection": arcmax_before(preselection(zoo.tarjan), one_root=True),
    "ArcMax + Reweighting": arcmax_before(reweighting(zoo.tarjan), one_root=True),
    "Preselection, ArcMax inside": preselection(ANY_ROOTS["ArcMax + Tarjan"]),
    "Reweighting, ArcMax inside": reweighting(ANY_ROOTS["ArcMax + Tarjan"]),
    "Preselection with CLE": stanza,
    "Reweighting with CLE": reweighting(zoo.chu_liu_edmonds),
}
