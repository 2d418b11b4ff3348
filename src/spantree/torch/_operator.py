"""How a question becomes part of torch: of one kernel an `autograd.Function` and an operator, ``torch.ops.spantree.*``.

In torch 2.13 neither does everything. `torch.func`, forward mode and second derivatives need the Function;
`torch.compile` and `torch.export` need the operator. Both have the same kernel, the same derivatives and the same rule
for vmap. Who asks does not have to choose; and tensors that are nothing but numbers in the memory of the host go to the
kernel straight away, if nobody wants a derivative of them, or by a Function that knows backward only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from .._front.form import LABELLED, edge_axes
from ._kernels import batch_shape, empty_edges

_LIBRARY = torch.library.Library("spantree", "DEF")  # operators live as long as it does

# What the axes of a tensor are behind those of the sentences. With a star, other axes may stand before these.
EDGES, NODES, NUMBERS = "edges", "nodes", "numbers"
SEVERAL_EDGES, SEVERAL_NODES, SEVERAL_NUMBERS = "edges*", "nodes*", "numbers*"


class Operator(torch.autograd.Function):
    """A question. Its arguments are tensors or None (`inputs` says which), then the form, then others."""

    inputs: ClassVar[tuple[str, ...]]
    outputs: ClassVar[tuple[str, ...]]

    @staticmethod
    def kernel(*args: Any) -> Any:
        """The answer, without derivatives; None in the place of what nobody asked for."""
        raise NotImplementedError

    @classmethod
    def lead(cls, *args: Any) -> tuple[int, ...]:
        """The axes before those of the sentences."""
        form = args[len(cls.inputs)]
        rank = args[0].dim() - edge_axes(form)
        for kind, arg in zip(cls.inputs, args, strict=False):
            if kind.endswith("*"):
                return tuple(arg.shape[: arg.dim() - rank - _tail(kind, form)])
        return ()

    @classmethod
    def absent(cls, *args: Any) -> Sequence[int]:
        """Which of the outputs nobody asked for: they are empty."""
        return ()

    @classmethod
    def in_reverse_mode(cls) -> Callable[..., Any]:
        """For `in_eager_mode`: a Function without `setup_context` takes torch a third of the time."""

        def forward(ctx: Any, *args: Any) -> Any:
            found = cls.kernel(*args)
            cls.setup_context(ctx, args, found)
            return found

        return reverse_mode(cls.__name__, forward, cls.backward)


class Trees(Operator):
    """A question whose answer has no derivative: trees, the second output their labels, and numbers that come along."""

    @classmethod
    def absent(cls, *args: Any) -> Sequence[int]:
        return () if args[len(cls.inputs)] & LABELLED else (1,)


def question(name: str, arguments: str, cls: type[Operator]) -> Callable[..., Any]:
    """Makes the operator, and of it and the Function something to call."""

    def filled(*args: Any) -> Any:
        if differentiable and forward_mode_is_active() and _any_moves(args[:tensors]):
            raise NotImplementedError(_COMPILED_FORWARD_MODE)  # only compiled code calls operators with such tensors
        found = cls.kernel(*args)
        if len(cls.outputs) == 1:
            return found
        return tuple(_something(kind, part, args[0]) for kind, part in zip(cls.outputs, found, strict=True))

    results = ", ".join(["Tensor"] * len(cls.outputs))
    _LIBRARY.define(f"{name}({arguments}) -> " + (results if len(cls.outputs) == 1 else f"({results})"))
    _LIBRARY.impl(name, filled, "CompositeExplicitAutograd")
    operator = getattr(torch.ops.spantree, name).default
    tensors, differentiable = len(cls.inputs), not issubclass(cls, Trees)

    def fake(*args: Any) -> Any:
        if differentiable and forward_mode_is_active() and _is_compiling():
            raise NotImplementedError(_COMPILED_FORWARD_MODE)
        return _fake(cls, args)

    def forward(*args: Any) -> Any:
        return (filled if all_plain(args[:tensors]) else operator)(*args)

    def ask(*args: Any) -> Any:
        given = args[:tensors]
        if not in_eager_mode(given):
            return ask_in_full(*args)
        return eager(*args) if _reverse_mode_is_wanted(given) else cls.kernel(*args)

    def ask_in_full(*args: Any) -> Any:
        if _is_compiling():
            return operator(*args)
        if _functorch_is_active():
            refuse_nested_forward_mode()
            return cls.apply(*args)
        if forward_mode_is_active() or _reverse_mode_is_wanted(args[:tensors]):
            return quick_apply(cls)(*args)
        return forward(*args)

    def ask_for_trees(*args: Any) -> Any:
        return cls.kernel(*args) if in_eager_mode(args[:tensors]) else operator(args[0].detach(), *args[1:])

    def vmap(info: Any, in_dims: Sequence[int | None], *args: Any) -> Any:
        folded, out_dims = _fold(cls, info.batch_size, in_dims, args)
        return ask_in_full(*folded), out_dims

    def vmap_operator(info: Any, in_dims: Sequence[int | None], *args: Any) -> Any:
        folded, out_dims = _fold(cls, info.batch_size, in_dims, args)
        return operator(*folded), out_dims

    eager = cls.in_reverse_mode()
    answer = ask if differentiable else ask_for_trees
    torch.library.register_fake(f"spantree::{name}", fake, lib=_LIBRARY)
    torch.library.register_vmap(f"spantree::{name}", vmap_operator, lib=_LIBRARY)
    if differentiable:
        cls.forward, cls.vmap = staticmethod(forward), staticmethod(vmap)  # type: ignore[method-assign]
        torch.library.register_autograd(
            f"spantree::{name}", cls.backward, setup_context=cls.setup_context, lib=_LIBRARY
        )
    answer.__doc__ = cls.__doc__
    return answer


def constant(
    name: str, arguments: str, kernel: Callable[..., Tensor], sentences: Sequence[int]
) -> Callable[..., Tensor]:
    """Makes an operator of tensors that has no derivative; its answer is like the first of them.

    `sentences` says where the axes of the sentences begin in each, and vmap's axis is one more of these.
    """

    def fake(first: Tensor, *rest: Tensor) -> Tensor:
        return torch.empty_like(first, memory_format=torch.contiguous_format)

    def vmap(info: Any, in_dims: Sequence[int | None], *args: Tensor) -> Any:
        folded = [
            _with_axis(arg, dim, place, info.batch_size)
            for arg, dim, place in zip(args, in_dims, sentences, strict=True)
        ]
        return operator(*folded), sentences[0]

    _LIBRARY.define(f"{name}({arguments}) -> Tensor")
    _LIBRARY.impl(name, kernel, "CompositeExplicitAutograd")
    operator = getattr(torch.ops.spantree, name).default
    torch.library.register_fake(f"spantree::{name}", fake, lib=_LIBRARY)
    torch.library.register_vmap(f"spantree::{name}", vmap, lib=_LIBRARY)
    return lambda *args: operator(*(arg.detach() for arg in args))


_NESTED = (
    "torch does not nest forward mode through functions like this one (the inner derivative would be constant to it); "
    "use reverse mode inside, as torch.func.hessian does"
)


_COMPILED_FORWARD_MODE = (
    "torch drops derivatives in forward mode inside compiled code; call torch.func.jvp outside of torch.compile"
)


def reverse_mode(name: str, forward: Callable[..., Any], backward: Callable[..., Any]) -> Callable[..., Any]:
    """A Function of these two, to call."""
    parts = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return quick_apply(type(name, (torch.autograd.Function,), parts))


def quick_apply(function: type[torch.autograd.Function]) -> Callable[..., Any]:
    """Torch's own `apply`, but for its binding of default arguments, which takes as long as all the rest."""
    return super(torch.autograd.Function, function).apply  # type: ignore[misc,no-any-return]


# What torch is doing just now, asked as torch itself asks. A version that cannot tell takes the slower way always.

_is_compiling = torch.compiler.is_compiling
_functorch_is_active = getattr(torch._C, "_are_functorch_transforms_active", lambda: True)
_forward_ad = torch.autograd.forward_ad
_watching_modes = getattr(torch._C, "_len_torch_dispatch_stack", lambda: 1)


def refuse_nested_forward_mode() -> None:
    if _is_compiling():
        return  # there, torch knows no such functions
    stack = torch._C._functorch.get_interpreter_stack() or []
    if sum(level.key() == torch._C._functorch.TransformType.Jvp for level in stack) > 1:
        raise NotImplementedError(_NESTED)


def forward_mode_is_active() -> bool:
    return _forward_ad._current_level >= 0


def _any_moves(tensors: Iterable[Tensor | None]) -> bool:
    """Whether one has a derivative in forward mode."""
    return any(x is not None and _forward_ad.unpack_dual(x).tangent is not None for x in tensors)


def another_derivative_is_possible() -> bool:
    """Of what is being computed now, in either mode: inside of a derivative, that it may be differentiated again."""
    return torch.is_grad_enabled() or forward_mode_is_active()


def _reverse_mode_is_wanted(tensors: Iterable[Tensor | None]) -> bool:
    if torch.is_grad_enabled():
        for tensor in tensors:
            if tensor is not None and tensor.requires_grad:
                return True
    return False


_TYPES = {Tensor, torch.nn.Parameter}


def is_plain(tensor: Tensor) -> bool:
    """Whether it is numbers in the memory of the host: no subclass, no wrapper, no operation that is still to be done.

    A wrapper has no address, zeros that nobody wrote down have address 0. The dispatcher would tell too, but takes
    longer than a short sentence.
    """
    if type(tensor) not in _TYPES or not tensor.is_cpu or tensor.is_neg():
        return False
    try:
        return tensor.data_ptr() != 0
    except RuntimeError:
        return False


def can_be_looked_at(tensor: Tensor) -> bool:
    """Whether it has numbers, here or on another device, on which a decision may depend."""
    return not (_is_compiling() or tensor.is_meta or torch._C._functorch.is_functorch_wrapped_tensor(tensor))


def all_plain(tensors: Iterable[Tensor | None]) -> bool:
    """Whether they are numbers in the memory of the host, and nobody watches."""
    if _watching_modes():
        return False
    for tensor in tensors:  # noqa: SIM110 (a generator takes as long as all the rest)
        if tensor is not None and not is_plain(tensor):
            return False
    return True


def in_eager_mode(tensors: Iterable[Tensor | None]) -> bool:
    """Whether they are that, and nothing but a gradient by backward can be wanted."""
    if _is_compiling() or _functorch_is_active() or _forward_ad._current_level >= 0 or _watching_modes():
        return False
    for tensor in tensors:  # noqa: SIM110
        if tensor is not None and not is_plain(tensor):
            return False
    return True


# Shapes


def _something(kind: str, found: Tensor | None, scores: Tensor) -> Tensor:
    """An operator has no way to answer None."""
    if found is not None:
        return found
    dtype = torch.int64 if kind.startswith(NODES) else scores.dtype
    return torch.empty(0, dtype=dtype, device=scores.device)


def _fake(cls: type[Operator], args: Sequence[Any]) -> Any:
    """Tensors of the answer's shapes."""
    scores, form, absent = args[0], args[len(cls.inputs)], cls.absent(*args)
    batch = batch_shape(scores, form)
    edges = scores.shape[len(batch) :]
    tails = {EDGES: edges, NODES: edges[:1], NUMBERS: ()}

    def empty(i: int, kind: str) -> Tensor:
        dtype = torch.int64 if kind.startswith(NODES) else scores.dtype
        lead = cls.lead(*args) if kind.endswith("*") else ()
        if kind.startswith(EDGES) and i not in absent:
            return empty_edges(scores, form, lead)
        shape = (0,) if i in absent else (*lead, *batch, *tails[kind.rstrip("*")])
        return torch.empty(shape, dtype=dtype, device=scores.device)

    return _in_form(empty(i, kind) for i, kind in enumerate(cls.outputs))


def _tail(kind: str, form: int) -> int:
    """How many axes stand behind those of the sentences."""
    return {EDGES: edge_axes(form), NODES: 1, NUMBERS: 0}[kind.rstrip("*")]


def _in_form(parts: Iterable[Any]) -> Any:
    made = tuple(parts)
    return made[0] if len(made) == 1 else made


def _fold(
    cls: type[Operator], size: int, in_dims: Sequence[int | None], args: Sequence[Any]
) -> tuple[list[Any], int | tuple[int | None, ...] | None]:
    """The arguments with vmap's axis among those of the sentences, and where that axis is in the answer.

    If only directions or trees are mapped, it becomes one more axis of these: there is still one solve a sentence.
    """
    form = args[len(cls.inputs)]
    rank = args[0].dim() - (in_dims[0] is not None) - edge_axes(form)
    tensors = [i for i in range(len(cls.inputs)) if args[i] is not None]
    starred = [i for i in tensors if cls.inputs[i].endswith("*")]
    of_sentences = not starred or any(in_dims[i] is not None for i in tensors if i not in starred)
    folded, lead = list(args), 1
    for i in tensors if of_sentences else starred:
        axes = args[i].dim() - (in_dims[i] is not None) - rank - _tail(cls.inputs[i], form)  # before the sentences
        place = axes if of_sentences else 0
        lead = place if i in starred else lead
        folded[i] = _with_axis(args[i], in_dims[i], place, size)
    absent = cls.absent(*args)
    places = [lead if kind.endswith("*") else 0 if of_sentences else None for kind in cls.outputs]
    return folded, _in_form(None if i in absent else place for i, place in enumerate(places))


def _with_axis(tensor: Tensor, dim: int | None, place: int, size: int) -> Tensor:
    """The tensor with its axis `dim` at `place`, or with a new axis there."""
    if dim is not None:
        return tensor.movedim(dim, place)
    return tensor.unsqueeze(place).expand(*tensor.shape[:place], size, *tensor.shape[place:])
