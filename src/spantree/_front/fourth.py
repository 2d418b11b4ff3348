"""The fourth derivative of log Z, from the first three of what is left when an edge is given.

Derivatives of log Z are cumulants. With u, g, v sums of values over a tree's edges, e an edge, m its probability, and a
prime for what is so given that e is in the tree,

    cumulant(u, g, v, e) = m (k' - k + a (C'gv - Cgv) + b (C'uv - Cuv) + c (C'ug - Cug) + a b c)

    a, b, c = E'[u] - E[u], E'[g] - E[g], E'[v] - E[v]      C the covariances      k = cumulant(u, g, v)

(the law of total cumulance, in which e is the one thing known). A label is independent of all else once its edge is
given: it moves the means alone. All is asked in terms of marginals, `hessian` and `third`, so derivatives of any higher
order follow.

Cost: n^2 solves, one for each edge; those of the edges into one word at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from .form import edge_axes

Ask = Callable[..., Any]


class Questions(NamedTuple):
    """A front end's array functions and questions, of scores (*batch, n+1, n+1[, labels]), or (*batch, n+1, ...)."""

    xp: Any
    nodes: Any  # their numbers, from 0
    marginals: Ask  # (scores)
    hessian: Ask  # (scores, g)
    third: Ask  # (scores, u, g)


class _Cumulants(NamedTuple):
    """Up to the third, of u, g and v (*several, *batch, n+1, n+1[, labels])."""

    means: tuple[Any, Any, Any]
    covariances: tuple[Any, Any, Any]  # of the two others
    third: Any


def _cumulants(ask: Questions, scores: Any, values: tuple[Any, Any, Any], form: int) -> _Cumulants:
    axes = tuple(range(-edge_axes(form), 0))
    edges = ask.marginals(scores)
    u, g, v = (ask.xp.where(edges > 0.0, x, 0.0) for x in values)
    by_u, by_g = ask.hessian(scores, u), ask.hessian(scores, g)
    covariances = tuple((x * y).sum(axes) for x, y in ((by_g, v), (by_u, v), (by_u, g)))
    means = tuple((x * edges).sum(axes) for x in (u, g, v))
    return _Cumulants(means, covariances, (ask.third(scores, u, g) * v).sum(axes))


def edges_into(ask: Questions, scores: Any, values: tuple[Any, Any, Any], form: int) -> Callable[[Any], Any]:
    """The derivative contracted with three values, by the edges into a word: (*several, *batch, n+1[, labels])."""
    xp, nodes, axes = ask.xp, ask.nodes, edge_axes(form)
    labels = (None,) * (axes - 2)
    marginals, whole = ask.marginals(scores), _cumulants(ask, scores, values, form)

    def column(word: Any) -> Any:
        others = (nodes != word)[(slice(None), *labels)]
        is_head = (nodes[:, None] == nodes)[(..., None, *labels)]  # [head that is given, head, dep(, label)]
        left = xp.where(others | is_head, scores[(..., None, *(slice(None),) * axes)], -math.inf)
        rest = (xp.stack([xp.where(others, x, 0.0)] * len(nodes), -axes - 1) for x in values)
        given = _cumulants(ask, left, tuple(rest), form)
        here = (..., word, *(slice(None),) * len(labels))
        m = marginals[here]

        def change(now: Any, before: Any) -> Any:
            return _with_axes(now, len(labels)) - _with_axes(before, axes - 1)

        a, b, c = (
            change(now, before) + xp.where(m > 0.0, x[here], 0.0)
            for now, before, x in zip(given.means, whole.means, values, strict=True)
        )
        of_a, of_b, of_c = map(change, given.covariances, whole.covariances)
        return m * (change(given.third, whole.third) + a * of_a + b * of_b + c * of_c + a * b * c)

    return column


def _with_axes(numbers: Any, more: int) -> Any:
    return numbers.reshape(*numbers.shape, *(1,) * more) if more else numbers
