"""The distribution over all trees of one sentence, in integers, so that nothing overflows, drowns or cancels.

A score is a multiple of 2^-1074, hence a tree's score is an integer in that unit, exactly, whatever the scores. A
tree's weight is the product of its edges' exponentials, each to 256 bits with an exponent of any size. Probabilities
and all that follows are integers in the unit 2^-BITS, so that every later step rounds below 1e-360.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property, lru_cache

import mpmath as mp
import numpy as np

from oracle.trees import all_labelled_trees, all_trees

SCORE_BITS = 1074  # of the smallest double
BITS = 1200
ONE = 1 << BITS


def in_units(x: float, bits: int = SCORE_BITS) -> int:
    """A finite double as a multiple of 2^-bits, exactly."""
    numerator, denominator = float(x).as_integer_ratio()
    return (numerator << bits) // denominator


def to_float(x: int, bits: int = BITS) -> float:
    """x 2^-bits, rounded to the nearest double; infinite beyond the largest."""
    try:
        return x / (1 << bits)
    except OverflowError:
        return math.inf if x > 0 else -math.inf


to_floats = np.frompyfunc(to_float, 1, 1)


def floats(x: np.ndarray) -> np.ndarray:
    return to_floats(x).astype(np.float64) if x.size else np.zeros(x.shape)


@lru_cache(100_000)
def _exp(units: int, power: Fraction) -> tuple[int, int]:
    """Mantissa and exponent of exp(power units 2^-SCORE_BITS), any size, to 256 bits."""
    with mp.workprec(256):
        x = mp.mpf(units) * power.numerator / power.denominator
        _, mantissa, exponent, _ = mp.exp(mp.ldexp(x, -SCORE_BITS))._mpf_
        return int(mantissa), int(exponent)


def _log(x: int) -> int:
    with mp.workprec(BITS + 100):
        return int(mp.ldexp(mp.log(mp.mpf(x)) - BITS * mp.ln(2), BITS))


class Law:
    """Trees, scores and probabilities. Arrays have one entry per tree of the *kind*, allowed by the scores or not."""

    def __init__(
        self, scores: np.ndarray, root: str = "single", projective: bool = False, power: Fraction = Fraction(1)
    ) -> None:
        """`scores` (n+1, n+1), or (n+1, n+1, Y) for labelled trees. Weights are raised to `power`."""
        self.given = np.asarray(scores)
        self.root, self.projective = root, projective
        self.shape = self.given.shape
        self.words = len(scores) - 1
        self.labelled = self.given.ndim == 3
        if self.labelled:
            self.heads, self.labels = all_labelled_trees(self.words, self.shape[2], root, projective)
        else:
            self.heads, self.labels = all_trees(self.words, root, projective), None
        deps = np.arange(1, self.words + 1)
        index = (self.heads[:, 1:], deps) if self.labels is None else (self.heads[:, 1:], deps, self.labels[:, 1:])
        self.edges = np.ravel_multi_index(np.broadcast_arrays(*index), self.shape) if self.words else self.heads[:, 1:]
        flat = self.given.astype(np.float64).reshape(-1)
        self.allowed = np.isfinite(flat[self.edges]).all(1)
        used = np.unique(self.edges)
        units = np.zeros(flat.size, object)
        units[used] = [in_units(x) if np.isfinite(x) else 0 for x in flat[used]]
        self.scores = self.sums(units)
        self.feasible = bool(self.allowed.any())
        if self.feasible:
            self.best = max(self.scores[self.allowed])
            weights = self._weights(units, used, power)
            total = sum(weights)
            self.probs = np.array([(weight << BITS) // total for weight in weights], object)
            best_tree = int(np.flatnonzero(self.allowed & (self.scores == self.best))[0])
            self.log_rest = -_log(self.probs[best_tree])  # log Z - best score

    def _weights(self, units: np.ndarray, used: np.ndarray, power: Fraction) -> list[int]:
        """In proportion to exp(score), the largest about 2^BITS; 0 for trees that are not allowed."""
        mantissas, exponents = np.ones(units.size, object), np.zeros(units.size, object)
        for edge in used:
            mantissas[edge], exponents[edge] = _exp(units[edge], power)
        mantissa, exponent = self.products(mantissas), self.sums(exponents)
        ends = [m.bit_length() + e if ok else None for m, e, ok in zip(mantissa, exponent, self.allowed, strict=True)]
        shift = BITS - max(end for end in ends if end is not None)
        return [
            0 if end is None or end + shift < 0 else m << (e + shift) if e + shift >= 0 else m >> -(e + shift)
            for m, e, end in zip(mantissa, exponent, ends, strict=True)
        ]

    def raised(self, power: float) -> Law:
        """The law with probabilities in proportion to p^power."""
        return Law(self.given, self.root, self.projective, Fraction(power))

    def sums(self, of_edge: np.ndarray) -> np.ndarray:
        """Sum over each tree's edges of (flat) integers per edge."""
        return of_edge[self.edges].sum(1) if self.words else np.zeros(len(self.edges), object)

    def products(self, of_edge: np.ndarray) -> np.ndarray:
        return of_edge[self.edges].prod(1) if self.words else np.ones(len(self.edges), object)

    @cached_property
    def possible(self) -> np.ndarray:
        """Which edges are in a tree of the scores, shape of the scores."""
        found = np.zeros(self.given.size, bool)
        found[self.edges[self.allowed]] = True
        return found.reshape(self.shape)

    @cached_property
    def log_probs(self) -> np.ndarray:
        """Exact even where the probability is 0 in fixed point; 0 where there is no tree."""
        shift = BITS - SCORE_BITS
        return np.array(
            [
                ((s - self.best) << shift) - self.log_rest if ok else 0
                for s, ok in zip(self.scores, self.allowed, strict=True)
            ],
            object,
        )

    def log_left(self, gone: np.ndarray) -> float:
        """log of the probability of all trees but these, however small; -inf if none is left."""
        left = self.allowed.copy()
        left[gone] = False
        if not left.any():
            return -math.inf
        log_probs = self.log_probs[left]
        with mp.workprec(BITS):
            top = max(log_probs)
            total = mp.fsum(mp.exp(mp.ldexp(mp.mpf(x - top), -BITS)) for x in log_probs)
            return float(mp.ldexp(mp.mpf(top), -BITS) + mp.log(total))

    @cached_property
    def log_partition(self) -> int:
        return (self.best << (BITS - SCORE_BITS)) + self.log_rest

    def mean(self, of_tree: np.ndarray) -> int:
        return int((self.probs * of_tree).sum()) >> BITS

    def by_edge(self, of_tree: np.ndarray) -> np.ndarray:
        """Sum of numbers over the trees that have the edge, shape of the scores."""
        out = [0] * self.given.size
        for x, edges in zip(of_tree, self.edges.tolist(), strict=True):
            if x:
                for edge in edges:
                    out[edge] += x
        return np.array(out, object).reshape(self.shape)

    @cached_property
    def marginals(self) -> np.ndarray:
        return self.by_edge(self.probs)

    def slope(self, of_tree: np.ndarray) -> np.ndarray:
        """Derivative of E[of_tree] by every score: its covariance with every edge."""
        return self.by_edge((self.probs * (of_tree - self.mean(of_tree))) >> BITS)

    @cached_property
    def by_heads(self) -> dict[tuple[int, ...], int]:
        """Which tree of the list some heads (labelled: heads and labels) are."""
        rows = self.heads[:, 1:] if self.labels is None else np.hstack([self.heads[:, 1:], self.labels[:, 1:]])
        return {tuple(row): t for t, row in enumerate(rows.tolist())}

    def index(self, heads: np.ndarray, labels: np.ndarray | None = None) -> int:
        """Of the tree with these heads; -1 if it is no tree, or one that the scores forbid."""
        row = list(heads[1:]) if labels is None else [*heads[1:], *labels[1:]]
        t = self.by_heads.get(tuple(int(x) for x in row), -1)
        return t if t >= 0 and self.allowed[t] else -1
