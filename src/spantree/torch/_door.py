"""The door: what a caller hands in becomes scores ``[..., head, dep(, label)]``, lengths and a form."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from .._options import Layout, OnInfeasible, RootMode, check_choice, core_root
from ._kernels import LABELLED, PROJECTIVE, SINGLE_ROOT, STRICT

_HALF = (torch.float16, torch.bfloat16)


class Door(NamedTuple):
    scores: Tensor
    lengths: Tensor | None
    form: int


def read(
    scores: Tensor,
    lengths: Any = None,
    mask: Tensor | None = None,
    *,
    root: RootMode = "single",
    projective: bool = False,
    labelled: bool = False,
    layout: Layout = "head_dep",
    on_infeasible: OnInfeasible = "raise",
    temperature: float = 1.0,
) -> Door:
    """Checks all that can be checked without looking at numbers; who reads them checks those."""
    check_choice("layout", layout, "head_dep", "dep_head")
    check_choice("on_infeasible", on_infeasible, "raise", "mask")
    core_root(root)
    if not 0.0 < temperature < float("inf"):
        raise ValueError(f"temperature must be positive and finite, not {temperature!r}")
    scores = _read_scores(scores, labelled)
    axes = 3 if labelled else 2
    batch, nodes = scores.shape[: scores.dim() - axes], scores.shape[-axes]
    if mask is not None and mask.dim() == scores.dim() - axes + 1:
        if lengths is not None:
            raise ValueError("give lengths or a mask of words, not both")
        lengths = _lengths_from(mask, nodes)
    elif mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    if temperature != 1.0:
        scores = scores / temperature
    form = (SINGLE_ROOT if root == "single" else 0) | (PROJECTIVE if projective else 0)
    form |= (LABELLED if labelled else 0) | (STRICT if on_infeasible == "raise" else 0)
    return Door(turned(scores, layout, labelled), _read_lengths(lengths, batch, scores.device), form)


def turned(edges: Tensor, layout: Layout, labelled: bool) -> Tensor:
    """``[head, dep]`` in the caller's order of axes, and back."""
    return edges if layout == "head_dep" else edges.transpose(-3, -2) if labelled else edges.mT


def _read_scores(scores: Tensor, labelled: bool) -> Tensor:
    if not isinstance(scores, Tensor):
        raise TypeError(f"scores must be a tensor, not {type(scores).__name__}")
    axes = 3 if labelled else 2
    if scores.dim() < axes or scores.shape[-axes] != scores.shape[1 - axes] or 0 in scores.shape[-axes:]:
        wanted = "(..., n+1, n+1, labels)" if labelled else "(..., n+1, n+1)"
        raise ValueError(f"scores have shape {tuple(scores.shape)}; they must be {wanted}")
    if not scores.is_floating_point():
        return scores.double()
    device = scores.device.type
    if scores.dtype in _HALF and torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device):
        return scores.float()
    return scores


def _read_lengths(lengths: Any, batch: torch.Size, device: torch.device) -> Tensor | None:
    if lengths is None:
        return None
    if not isinstance(lengths, Tensor):
        lengths = torch.as_tensor(lengths, device=device)
    assert isinstance(lengths, Tensor)
    if lengths.is_floating_point() or lengths.is_complex() or lengths.dtype == torch.bool:
        raise TypeError(f"lengths must be integers, not {lengths.dtype}")
    if lengths.shape != batch:
        raise ValueError(f"lengths have shape {tuple(lengths.shape)}; the batch has shape {tuple(batch)}")
    return lengths if lengths.dtype in (torch.int32, torch.int64) else lengths.long()


def _lengths_from(mask: Tensor, nodes: int) -> Tensor:
    """Words of each sentence from flags ``(..., n)``, or ``(..., n+1)`` with one for ROOT, not looked at."""
    words = mask[..., 1:] if mask.shape[-1] == nodes else mask
    if words.shape[-1] != nodes - 1:
        raise ValueError(f"mask has {words.shape[-1]} words; the matrices have room for {nodes - 1}")
    lengths = words.sum(-1)
    if not torch.compiler.is_compiling() and bool((words[..., 1:] > words[..., :-1]).any()):
        raise ValueError(
            "a mask of words marks padding at the end, and this one keeps a word behind one that it leaves out; "
            "a mask of edges forbids edges anywhere"
        )
    return lengths
