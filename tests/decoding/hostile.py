"""Scores that break arithmetic, and every tree of a sentence in rational numbers to compare with."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spantree import zoo

Scores = NDArray[np.floating]


def near_ties(rng: np.random.Generator, shape: tuple[int, ...], dtype: type) -> Scores:
    """A few units in the last place apart."""
    return 1 + rng.integers(0, 4, shape) * np.finfo(dtype).eps


def mixed_magnitudes(rng: np.random.Generator, shape: tuple[int, ...], dtype: type) -> Scores:
    """From 1e-9 to 1e9, of both signs."""
    return rng.normal(size=shape) * 10.0 ** rng.integers(-9, 10, shape)


def any_magnitude(rng: np.random.Generator, shape: tuple[int, ...], dtype: type) -> Scores:
    """As far apart as the type allows, the smallest and the largest included."""
    limits = np.finfo(dtype)
    sizes = [limits.smallest_subnormal, limits.tiny, 1e-20, 1.0, 1e20, float(limits.max) / 3, float(limits.max)]
    return rng.choice(sizes, shape) * rng.choice([-1, -0.5, 0.5, 0.75, 1], shape)


def denormals(rng: np.random.Generator, shape: tuple[int, ...], dtype: type) -> Scores:
    """Small multiples of the smallest number."""
    return rng.integers(-5, 6, shape) * np.finfo(dtype).smallest_subnormal


def tiny(rng: np.random.Generator, shape: tuple[int, ...], dtype: type) -> Scores:
    """Ordinary scores times the smallest normal number."""
    return rng.normal(size=shape) * np.finfo(dtype).tiny * 2**10


def largest(rng: np.random.Generator, shape: tuple[int, ...], dtype: type) -> Scores:
    """Sums overflow."""
    return rng.choice([-1.0, -0.999, 0.999, 1.0], shape) * float(np.finfo(dtype).max)


def lowest_as_mask(rng: np.random.Generator, shape: tuple[int, ...], dtype: type) -> Scores:
    """Masks that must sometimes be taken, even twice."""
    return np.where(rng.random(shape) < 0.6, float(np.finfo(dtype).min), rng.normal(size=shape))


def soft_masks(rng: np.random.Generator, shape: tuple[int, ...], dtype: type) -> Scores:
    """Near-ties beside -2000, -1e9 or -1e30."""
    masks = rng.choice([-2000.0, -2049.0, -1e9, -1e30], shape)
    return np.where(rng.random(shape) < 0.4, masks, near_ties(rng, shape, dtype) * 0.1)


def integers(rng: np.random.Generator, shape: tuple[int, ...], dtype: type) -> Scores:
    """Many exact ties."""
    return rng.integers(-2, 3, shape).astype(dtype)


def masked_integers(rng: np.random.Generator, shape: tuple[int, ...], dtype: type) -> Scores:
    """Exact ties, and soft masks beside them."""
    return np.where(rng.random(shape) < 0.3, -1e9, rng.integers(-1, 2, shape))


def all_equal(rng: np.random.Generator, shape: tuple[int, ...], dtype: type) -> Scores:
    """One score that is no short binary fraction."""
    return np.full(shape, 0.1)


def decimals(rng: np.random.Generator, shape: tuple[int, ...], dtype: type) -> Scores:
    """Sums of decimal fractions, which tie in floating point and not in truth, or the other way round."""
    return rng.integers(-3, 4, shape) * 0.1


def forbidden(rng: np.random.Generator, shape: tuple[int, ...], dtype: type) -> Scores:
    """Near-ties among few edges."""
    return np.where(rng.random(shape) < 0.35, -np.inf, near_ties(rng, shape, dtype))


FAMILIES: tuple[Callable[..., Scores], ...] = (
    near_ties,
    mixed_magnitudes,
    any_magnitude,
    denormals,
    tiny,
    largest,
    lowest_as_mask,
    soft_masks,
    integers,
    masked_integers,
    all_equal,
    decimals,
    forbidden,
)


@cache
def trees(n: int, root: str, projective: bool) -> list[tuple[int, ...]]:
    return [tuple(int(h) for h in tree) for tree in zoo.enumerate_trees(n, root=root, projective=projective)]


Tree = tuple[tuple[int, ...], tuple[int, ...]]


def exact_scores(scores: Scores, root: str, projective: bool, labelled: bool) -> dict[Tree, Fraction]:
    """(heads, labels) of every tree without a forbidden edge, and its score without rounding."""
    if not labelled:
        scores = scores[..., None]
    n, labels = len(scores) - 1, scores.shape[-1]
    exact = {edge: Fraction(float(x)) for edge, x in np.ndenumerate(scores) if edge[0] != edge[1] and np.isfinite(x)}
    found = {}
    for heads in trees(n, root, projective):
        for choice in itertools.product(range(labels), repeat=n):
            edges = [(heads[dep], dep, choice[dep - 1]) for dep in range(1, n + 1)]
            if all(edge in exact for edge in edges):
                found[heads, (-1, *choice)] = sum((exact[edge] for edge in edges), Fraction(0))
    return found


def nearest(x: Fraction) -> float:
    """The nearest double; an infinity beyond the largest."""
    try:
        return float(x)
    except OverflowError:
        return np.inf if x > 0 else -np.inf


def best_exact(scores: Scores, root: str, projective: bool) -> Fraction | None:
    """The highest score of a tree in rational numbers, by slow algorithms that share nothing with the core's."""
    nodes = range(len(scores))
    weights = {
        (h, d): Fraction(float(scores[h, d]))
        for h in nodes
        for d in nodes
        if h != d and d and np.isfinite(scores[h, d])
    }
    if projective:
        return _eisner(weights, len(scores) - 1, root)
    if root == "multi":
        return _chu_liu_edmonds(weights, set(nodes))
    totals = []
    for word in nodes[1:]:
        if (0, word) in weights:
            inner = {edge: w for edge, w in weights.items() if edge[0] != 0 and edge[1] != word}
            inner |= {(0, word): weights[0, word]}
            totals.append(_chu_liu_edmonds(inner, set(nodes)))
    return max((total for total in totals if total is not None), default=None)


def _chu_liu_edmonds(weights: dict[tuple[int, int], Fraction], nodes: set[int]) -> Fraction | None:
    """Takes off each node's best entering edge; contracts a cycle of edges of weight zero; again."""
    total = Fraction(0)
    best: dict[int, int] = {}
    reduced = {}
    for node in nodes - {0}:
        into = {edge: w for edge, w in weights.items() if edge[1] == node}
        if not into:
            return None
        top = max(into.values())
        total += top
        best[node] = next(h for (h, _), w in into.items() if w == top)
        reduced |= {edge: w - top for edge, w in into.items()}
    cycle = _cycle(best)
    if not cycle:
        return total
    name = max(nodes) + 1
    contracted: dict[tuple[int, int], Fraction] = {}
    for (h, d), w in reduced.items():
        edge = (name if h in cycle else h, name if d in cycle else d)
        if edge[0] != edge[1]:
            contracted[edge] = max(w, contracted.get(edge, w))
    rest = _chu_liu_edmonds(contracted, nodes - cycle | {name})
    return None if rest is None else total + rest


def _cycle(heads: dict[int, int]) -> set[int]:
    for start in heads:
        path, node = [start], heads[start]
        while node != 0 and node not in path:
            path.append(node)
            node = heads[node]
        if node != 0:
            return set(path[path.index(node) :])
    return set()


def _eisner(weights: dict[tuple[int, int], Fraction], n: int, root: str) -> Fraction | None:
    """Best spans, memoised; None where there is none."""

    def most(options: Any) -> Fraction | None:
        return max((sum(parts) for parts in options if None not in parts), default=None)

    @cache
    def whole(head: int, end: int) -> Fraction | None:
        if head == end:
            return Fraction(0)
        step = 1 if end > head else -1
        return most((arc(head, dep), whole(dep, end)) for dep in range(head + step, end + step, step))

    @cache
    def arc(head: int, dep: int) -> Fraction | None:
        low, high = min(head, dep), max(head, dep)
        inner = most((whole(low, k), whole(high, k + 1)) for k in range(low, high))
        return most([(inner, weights.get((head, dep)))])

    if root == "multi":
        return whole(0, n)
    return most((weights.get((0, word)), whole(word, 1), whole(word, n)) for word in range(1, n + 1))
