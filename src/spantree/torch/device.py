"""log Z and marginals in tensor operations alone: on any device, without a way through the memory of the host.

The same mathematics as the core's (elimination after Grassmann, Taksar & Heyman: sums, products and quotients of
numbers that are not negative, so that nothing cancels), divide and conquer over words, all chains of a level at once.

Read the graph as a random walk from a word to its head. Rows of a chain are words, columns are words and ROOT twice,
reached at order 0 or 1: with one root, ROOT's weights are infinitesimal, and sums keep their leading order. To solve
for words S = S1 + S2, eliminate S2, solve for S1, and come back with one product,

    E[S2, S1] = T E[S1, S1] + T_root,        E[i, j] = P(a walk from i reaches ROOT before j)

T the first-passage probabilities from eliminated to kept words; then the same with the halves swapped. In the end

    marginal(i -> j) = w[i, j] E[i, j] / c[j],     c[j] = sum_i w[i, j] E[i, j],     Z = product of all pivots.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from .._front.form import SINGLE_ROOT, turned
from .._options import Layout, RootMode
from ._door import read
from ._operator import refuse_nested_forward_mode
from ._questions import real_edges, real_words

_SMALLEST = 2.0**-1000  # a pivot below has lost digits, or will


def solve_on_device(
    scores: Tensor,
    lengths: Any = None,
    *,
    mask: Tensor | None = None,
    root: RootMode = "single",
    layout: Layout = "head_dep",
) -> tuple[Tensor, Tensor]:
    """Log Z and edge marginals by tensor operations on the device of the scores, differentiable by autograd.

    Parameters
    ----------
    scores : tensor (..., n+1, n+1)
        As in `TreeDistribution`; trees may cross, edges have no labels.
    lengths, mask, root, layout : optional
        As in `TreeDistribution`.

    Returns
    -------
    log_z : tensor (...)
        -inf where there is no tree. NaN where scores span so much (about 650 nats) that double precision has not the
        range: `TreeDistribution` answers there. Gradients of the marginals may be NaN somewhat before, those of log Z,
        which are the marginals, are not.
    marginals : tensor like the scores
        0 where there is no tree. They mean nothing where log Z is NaN.

    Notes
    -----
    About 2 n kernels of O(n^2) work a sentence on each of log2 n levels. On a CPU some fifty times slower than
    `TreeDistribution`; worth trying where a copy to the host is dearer than that.

    Examples
    --------
    >>> import torch, spantree.torch
    >>> log_z, marginals = spantree.torch.solve_on_device(torch.zeros(4, 4))
    >>> log_z, marginals[0]
    (tensor(2.1972), tensor([0.0000, 0.3333, 0.3333, 0.3333]))
    """
    given, words, form = read(scores, lengths, mask, root=root, layout=layout, on_infeasible="mask")
    exact = given if given.device.type == "mps" else given.double()
    flat = exact.reshape(math.prod(given.shape[:-2]), *given.shape[-2:])
    flat_lengths = None if words is None else words.to(given.device).reshape(-1)
    log_z, marginals = _solve(flat, flat_lengths, bool(form & SINGLE_ROOT))
    refuse_nested_forward_mode()
    known = torch.where(log_z.isnan()[:, None, None], 0.0, marginals)
    log_z = _LogPartition.apply(flat, log_z.detach(), known)
    marginals = marginals.reshape(given.shape).to(given.dtype)
    return log_z.reshape(given.shape[:-2]).to(given.dtype), turned(marginals, layout, False)


class _LogPartition(torch.autograd.Function):
    """log Z with the marginals for its derivative: those of quotients of its pivots may overflow."""

    generate_vmap_rule = True

    @staticmethod
    def forward(scores: Tensor, log_z: Tensor, marginals: Tensor) -> Tensor:
        return log_z.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(inputs[2])
        ctx.save_for_forward(inputs[2])

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, None, None]:
        (marginals,) = ctx.saved_tensors
        return slope[:, None, None] * marginals, None, None

    @staticmethod
    def jvp(ctx: Any, direction: Tensor, *_: Any) -> Tensor:
        marginals: Tensor = ctx.saved_tensors[0]
        return (marginals * direction).sum((-2, -1))


def _solve(scores: Tensor, lengths: Tensor | None, one_root: bool) -> tuple[Tensor, Tensor]:
    """Of scores (B, n+1, n+1)."""
    words = scores.shape[-1] - 1
    edges = real_edges(scores, lengths, 0).expand_as(scores) & (scores > -torch.inf)
    best = torch.where(edges, scores, -torch.inf).amax(-2, keepdim=True).detach()
    best = torch.where(best > -torch.inf, best, 0.0)
    weights = torch.where(edges, torch.where(edges, scores - best, 0.0).exp(), 0.0)
    if words == 0:
        return scores.new_zeros(len(scores)), torch.zeros_like(scores)

    # Padding: to a power of two, and behind every sentence, with words that nobody reaches and that lead to ROOT.
    size = 1 << (words - 1).bit_length()
    padding = torch.ones(len(scores), size, dtype=torch.bool, device=scores.device)
    padding[:, :words] = ~real_words(words + 1, lengths, scores.device).expand(len(scores), -1)[:, 1:]
    chain = torch.nn.functional.pad(weights[:, 1:, 1:].mT, (0, size - words, 0, size - words))
    roots = torch.nn.functional.pad(weights[:, 0, 1:], (0, size - words))
    none = torch.zeros_like(roots)
    order_0, order_1 = (none, roots) if one_root else (roots, none)
    chain = torch.cat([chain, torch.where(padding, 1.0, order_0)[..., None], order_1[..., None]], -1)

    escape_0, escape_1, log_pivots, order, lost = _escape(chain)
    escape_0, escape_1 = (x[:, :words, :words] for x in (escape_0, escape_1))
    zeroth, first = (weights[:, 1:, 1:] * x for x in (escape_0, escape_1))
    zeroth, first = (torch.cat([root[:, None, :words], x], 1) for root, x in ((order_0, zeroth), (order_1, first)))
    leading = zeroth.sum(1, keepdim=True) > 0.0
    terms = torch.where(leading, zeroth, first)
    total = terms.sum(1, keepdim=True)
    feasible = (order == (1 if one_root else 0)) & torch.isfinite(log_pivots)
    if lengths is not None:
        feasible = torch.where(lengths > 0, feasible, True)
    real = total > 0.0
    shares = torch.where(real, terms / torch.where(real, total, 1.0), 0.0)
    marginals = torch.nn.functional.pad(shares, (1, 0))
    marginals = torch.where(feasible[:, None, None], marginals, 0.0)
    log_z = log_pivots + torch.where(torch.isfinite(best), best, 0.0)[:, 0, 1:].sum(-1)
    underflowed = (edges & (weights == 0.0)).flatten(1).any(1) & ~feasible
    log_z = torch.where(feasible, log_z, -torch.inf)
    if lengths is not None:
        log_z = torch.where(lengths > 0, log_z, 0.0)
    lost = underflowed | lost | ~marginals.isfinite().flatten(1).all(1)
    return torch.where(lost, math.nan, log_z), marginals


def _escape(chain: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """E at orders 0 and 1 of chains (C, m, m + 2), the log of the product of all pivots and its order, and whether a
    pivot was too small."""
    chains, words = chain.shape[:2]
    if words == 1:
        nothing = chain[:, :, :1] * 0.0
        log_pivot, raised, lost = _log_pivot(chain[:, 0, 1], chain[:, 0, 2])
        return nothing, nothing, log_pivot, raised.long(), lost
    half = words // 2
    turn = torch.roll(torch.arange(words, device=chain.device), half)
    columns = torch.cat([turn, torch.arange(words, words + 2, device=chain.device)])
    both = torch.cat([chain, chain[:, turn][:, :, columns]])
    log_pivots = torch.zeros_like(both[:, 0, 0])
    order, lost = torch.zeros_like(log_pivots, dtype=torch.int64), torch.zeros_like(log_pivots, dtype=torch.bool)
    node = torch.arange(words, device=chain.device)
    no_loops = torch.cat([node[:, None] != node, torch.ones(words, 2, dtype=torch.bool, device=chain.device)], 1)
    at_order_0 = torch.zeros(words + 2, dtype=chain.dtype, device=chain.device)
    at_order_0[words] = 1.0
    for k in range(words - 1, half - 1, -1):
        row, column = both[:, k], both[:, :, k]
        pivot = row[:, :k].sum(-1) + row[:, words]
        log_pivot, raised, small = _log_pivot(pivot, row[:, words + 1])
        log_pivots, order, lost = log_pivots + log_pivot, order + raised.long(), lost | small
        some = (pivot > 0.0)[:, None]
        live = torch.cat([node < k, torch.ones(2, dtype=torch.bool, device=chain.device)])
        first_step = torch.where(some & live, row / torch.where(some, pivot[:, None], 1.0), 0.0)
        first_step = torch.where(some, first_step, at_order_0)
        moved = both + column[:, :, None] * first_step[:, None]
        moved = torch.where(no_loops & (torch.arange(words + 2, device=chain.device) != k), moved, 0.0)
        both = torch.where((node == k)[:, None], first_step[:, None], moved)
    kept = torch.cat([both[:, :half, :half], both[:, :half, words:]], -1)
    inner_0, inner_1, inner_log, inner_order, inner_lost = _escape(kept)
    passage = both[:, half:, :half]
    found = []
    for inner, to_root in ((inner_0, both[:, half:, words, None]), (inner_1, both[:, half:, words + 1, None])):
        rest = passage @ inner + to_root
        left, right = torch.cat([inner, rest], 1).split(chains)
        # The second copy has the halves swapped: rows back, and its columns are those of the other half.
        found.append(torch.cat([left, torch.roll(right, half, 1)], -1))
    log_pivots, order, lost = log_pivots + inner_log, order + inner_order, lost | inner_lost
    return found[0], found[1], log_pivots[:chains], order[:chains], lost[:chains]


def _log_pivot(order_0: Tensor, order_1: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The logarithm of a pivot, whether it is of order 1, because nothing of order 0 was there, and whether it is so
    small that digits are lost. -inf if it is nothing at all."""
    raised = order_0 <= 0.0
    pivot = torch.where(raised, order_1, order_0)
    some = pivot > 0.0
    log = torch.where(some, torch.where(some, pivot, 1.0).log(), -torch.inf)
    return log, raised, some & (pivot < _SMALLEST)
