"""What sort of trees a question is about, as one number, and what is checked before any number is read.

`bindings/xla.cpp` has the same bits.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, get_args

import numpy as np

from .._names import label_number
from .._options import Layout, OnInfeasible, RootMode, check_choice, check_flag, core_root

SINGLE_ROOT, PROJECTIVE, LABELLED, STRICT = 1, 2, 4, 8  # STRICT: a sentence without a tree is an error

UNKNOWN = -2  # a head, or a label


def edge_axes(form: int) -> int:
    """How many axes of the scores are no axes of the batch."""
    return 3 if form & LABELLED else 2


def form_of(root: RootMode, projective: bool, labelled: bool, layout: Layout, on_infeasible: OnInfeasible) -> int:
    """The sum of the bits that apply; raises if a word is none of those that an option knows."""
    words = root, projective, labelled, layout, on_infeasible
    flags = type(projective) is bool and type(labelled) is bool  # 1 would be found for True
    texts = isinstance(root, str) and isinstance(layout, str) and isinstance(on_infeasible, str)
    form = _FORMS.get(words) if flags and texts else None
    return _read_form(*words) if form is None else form


def _read_form(root: RootMode, projective: bool, labelled: bool, layout: Layout, on_infeasible: OnInfeasible) -> int:
    check_choice("layout", layout, *get_args(Layout))
    check_choice("on_infeasible", on_infeasible, *get_args(OnInfeasible))
    core_root(root)
    form = (SINGLE_ROOT if root == "single" else 0) | (PROJECTIVE if check_flag("projective", projective) else 0)
    return form | (LABELLED if check_flag("labelled", labelled) else 0) | (STRICT if on_infeasible == "raise" else 0)


_FORMS = {
    words: _read_form(*words)
    for words in itertools.product(
        get_args(RootMode), (False, True), (False, True), *map(get_args, (Layout, OnInfeasible))
    )
}


def turned(edges: Any, layout: Layout, labelled: bool) -> Any:
    """``[head, dep]`` in the caller's order of axes, and back."""
    if layout == "head_dep":
        return edges
    return edges.swapaxes(-3, -2) if labelled else edges.swapaxes(-2, -1)


def check_shape(shape: Sequence[int], labelled: bool) -> None:
    axes = 3 if labelled else 2
    if len(shape) < axes or not shape[-axes] == shape[1 - axes] > 0 or shape[-1] == 0:
        wanted = "(..., n+1, n+1, labels)" if labelled else "(..., n+1, n+1)"
        raise ValueError(f"scores have shape {tuple(shape)}; they must be {wanted}")


def divided(xp: Any, scores: Any, by: Any) -> Any:
    """Scores divided by a temperature. If it may have a gradient, what is no number is no part of it."""
    if isinstance(by, float):
        return scores / by
    are_numbers = xp.isfinite(scores)
    return xp.where(are_numbers, xp.where(are_numbers, scores, 0.0) / by, scores)


def is_mask_of_words(mask: Any, scores: Any, labelled: bool) -> bool:
    """Whether it has a flag for each word, ``(..., n)`` or ``(..., n+1)``, not one for each edge."""
    if "bool" not in str(mask.dtype):
        raise ValueError(f"mask must be boolean, not {mask.dtype}")
    axes = 3 if labelled else 2
    given, edges = tuple(mask.shape), tuple(scores.shape)
    batch, nodes = edges[:-axes], edges[-axes]
    if given not in (edges, (*batch, nodes), (*batch, nodes - 1)):
        raise ValueError(f"mask has shape {given}; of edges it must be {edges}, of words {(*batch, nodes - 1)}")
    return given != edges


def words_in(mask: Any, nodes: int) -> Any:
    """Flags of words ``(..., n)`` from those, or from ``(..., n+1)`` with one for ROOT, which is not looked at."""
    return mask[..., 1:] if mask.shape[-1] == nodes else mask


PADDING_IN_BETWEEN = (
    "a mask of words marks padding at the end, and this one keeps a word behind one that it leaves out; "
    "a mask of edges forbids edges anywhere"
)


def root_label_edges(root_label: int | str, names: Sequence[str] | None, shape: Sequence[int]) -> Any:
    """Which of the edges ``[head, dep, label]`` are left when one label stands on root edges and nowhere else."""
    number = label_number(root_label, None if names is None else tuple(names), "root_label")
    nodes, labels = shape[-2:]
    if not 0 <= number < labels:
        raise ValueError(f"root_label is {number}, and there are {labels} labels")
    at_root = np.arange(nodes)[:, None, None] == 0
    return np.broadcast_to(at_root == (np.arange(labels) == number), (nodes, nodes, labels))
