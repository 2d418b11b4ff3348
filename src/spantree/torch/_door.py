"""The door: what a caller hands in becomes scores ``[..., head, dep(, label)]``, lengths and a form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .._front.form import PADDING_IN_BETWEEN, check_shape, form_of, is_mask_of_words, turned, words_in
from .._front.ragged import stack_list
from .._options import Layout, OnInfeasible, RootMode, positive_number
from ._kernels import FULL
from ._operator import can_be_looked_at


def read(
    scores: Tensor,
    lengths: Any = None,
    mask: Any = None,
    root: RootMode = "single",
    projective: bool = False,
    labelled: bool = False,
    layout: Layout = "head_dep",
    on_infeasible: OnInfeasible = "raise",
    snapshot: bool = False,
) -> tuple[Tensor, Tensor | None, int]:
    """Scores, lengths and form. All is checked that can be without a look at numbers; who reads them checks those.

    Of a `snapshot`, nothing shares memory with what the caller has.
    """
    form = form_of(root, projective, labelled, layout, on_infeasible)
    if not isinstance(scores, Tensor):
        raise TypeError(f"scores must be a tensor, not {type(scores).__name__}")
    check_shape(scores.shape, labelled)
    given = scores
    if scores.dtype not in FULL:
        scores = _read_numbers(scores)
    if mask is not None:
        mask = torch.as_tensor(mask, device=scores.device)
        if is_mask_of_words(mask, scores, labelled):
            if lengths is not None:
                raise ValueError("give lengths or a mask of words, not both")
            lengths = _lengths_from(mask, scores.shape[-3 if labelled else -2])
        else:
            scores = scores.masked_fill(~mask, -torch.inf)
    if snapshot and scores is given:
        scores = copied(scores)
    if layout == "dep_head":
        scores = turned(scores, layout, labelled)
    if lengths is not None:
        lengths = _read_lengths(lengths, scores.shape[: -3 if labelled else -2], scores.device)
        lengths = lengths.clone() if snapshot else lengths
    return scores, lengths, form


def read_list(
    matrices: Sequence[Any], lengths: Any, mask: Any
) -> tuple[Tensor, Tensor, Tensor | None, tuple[int, ...]]:
    """Matrices of different sizes as one padded batch: scores, lengths, mask, and sizes."""
    if not all(isinstance(matrix, Tensor) for matrix in matrices):
        raise TypeError("scores must be a tensor, or a list of tensors")

    def on_device(numbers: Any) -> Tensor:
        return numbers if isinstance(numbers, Tensor) else torch.as_tensor(numbers, device=matrices[0].device)

    scores, allowed, sizes = stack_list(matrices, lengths, mask, on_device, pad, torch.stack)
    return scores, torch.tensor(sizes, device=scores.device) - 1, allowed, sizes


def pad(tensor: Tensor, widths: list[tuple[int, int]], fill: float) -> Tensor:
    """With so many more entries before and behind those along each axis."""
    last_first = [width for pair in reversed(widths) for width in pair]
    return torch.nn.functional.pad(tensor, last_first, value=fill)


def copied(scores: Tensor) -> Tensor:
    """With the same gradient. An axis along which a sentence is only repeated stays one, if nobody wants a gradient by
    each of them."""
    if not can_be_looked_at(scores) or 0 not in scores.stride() or scores.requires_grad:
        return scores.clone()
    once = scores[tuple(slice(1) if step == 0 else slice(None) for step in scores.stride())]
    return once.clone().expand(scores.shape)


def divisor(temperature: Any) -> float | Tensor:
    """A temperature: a number, or a tensor that holds one and may have a gradient."""
    if not isinstance(temperature, Tensor):
        return positive_number("temperature", temperature)
    if temperature.numel() != 1:
        raise TypeError(f"temperature must be a real number, not a tensor of shape {tuple(temperature.shape)}")
    number = temperature.reshape(())
    if can_be_looked_at(number):
        positive_number("temperature", number.detach())
    return number


def widened(scores: Tensor) -> Tensor:
    """In the widest type that the device has."""
    return scores.float() if scores.device.type == "mps" else scores.double()


def _read_numbers(scores: Tensor) -> Tensor:
    """Integers as double precision, half precision under autocast as float32."""
    if not scores.is_floating_point():
        if scores.is_complex() or scores.dtype == torch.bool:
            raise TypeError(f"scores must be real numbers, such as float32 or float64, not {scores.dtype}")
        return scores.double()
    device = scores.device.type
    autocast = torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)
    return scores.float() if autocast else scores


def _read_lengths(lengths: Any, batch: torch.Size, device: torch.device) -> Tensor:
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
    words = words_in(mask, nodes)
    lengths = words.sum(-1)
    if can_be_looked_at(words) and bool((words[..., 1:] > words[..., :-1]).any()):
        raise ValueError(PADDING_IN_BETWEEN)
    return lengths  # type: ignore[no-any-return]
