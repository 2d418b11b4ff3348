"""The decoders under test, the graphs they meet, and what enumeration says about them.

To send one more decoder through the battery, add a line to `DECODERS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

import spantree
from spantree import zoo
from spantree.zoo._graph import FloatArray, IntArray, Root, clean_scores


@dataclass(frozen=True)
class Decoder:
    """A function that promises a best tree of some kind."""

    name: str
    decode: Callable[[NDArray[np.floating]], IntArray]
    root: Root
    projective: bool = False
    exact_with_soft_masks: bool = True
    """Whether edges of -1e30 leave it right as long as a tree without them exists."""


DECODERS = (
    Decoder("chu_liu_edmonds", zoo.chu_liu_edmonds, "multi"),
    Decoder("tarjan", zoo.tarjan, "multi"),
    Decoder("tarjan_sparse", zoo.tarjan_sparse, "multi"),
    Decoder("gabow_galil_spencer_tarjan", zoo.gabow_galil_spencer_tarjan, "multi"),
    Decoder("arcmax-tarjan", partial(zoo.arcmax, one_root=False, mst_func=zoo.tarjan), "multi"),
    Decoder("camerini_kbest", lambda scores: zoo.camerini_kbest(scores, 1)[0][0], "multi"),
    Decoder("gabow_tarjan_sparse", zoo.gabow_tarjan_sparse, "single"),
    Decoder("naive_single_root", zoo.naive_single_root, "single"),
    Decoder("root_preselection", zoo.root_preselection, "single"),
    Decoder("reweighting", zoo.reweighting, "single", exact_with_soft_masks=False),
    Decoder("gabow_tarjan", zoo.gabow_tarjan, "single"),
    Decoder("naive-sparse", partial(zoo.naive_single_root, mst_func=zoo.tarjan_sparse), "single"),
    Decoder(
        "preselection-gabow_galil_spencer_tarjan",
        partial(zoo.root_preselection, mst_func=zoo.gabow_galil_spencer_tarjan),
        "single",
    ),
    Decoder("preselection-cle", partial(zoo.root_preselection, mst_func=zoo.chu_liu_edmonds), "single"),
    Decoder(
        "reweighting-cle",
        partial(zoo.reweighting, mst_func=zoo.chu_liu_edmonds),
        "single",
        exact_with_soft_masks=False,
    ),
    Decoder(
        "reweighting-sparse",
        partial(zoo.reweighting, mst_func=zoo.tarjan_sparse),
        "single",
        exact_with_soft_masks=False,
    ),
    Decoder(
        "reweighting-gabow_galil_spencer_tarjan",
        partial(zoo.reweighting, mst_func=zoo.gabow_galil_spencer_tarjan),
        "single",
        exact_with_soft_masks=False,
    ),
    Decoder(
        "reweighting-kbest",
        lambda scores: zoo.reweighting_kbest(scores, 1)[0][0],
        "single",
        exact_with_soft_masks=False,
    ),
    Decoder("arcmax-gabow_tarjan", partial(zoo.arcmax, one_root=True, mst_func=zoo.gabow_tarjan), "single"),
    Decoder("single_root_kbest", lambda scores: zoo.single_root_kbest(scores, 1)[0][0], "single"),
    Decoder("core-multi", partial(spantree.decode, root="multi"), "multi"),
    Decoder("core-single", spantree.decode, "single"),
    Decoder("core-projective-multi", partial(spantree.decode, root="multi", projective=True), "multi", projective=True),
    Decoder("core-projective-single", partial(spantree.decode, projective=True), "single", projective=True),
    Decoder("eisner-multi", partial(zoo.eisner, root="multi"), "multi", projective=True),
    Decoder("eisner-single", zoo.eisner, "single", projective=True, exact_with_soft_masks=False),
    Decoder(
        "reweighting-eisner",
        partial(zoo.reweighting, mst_func=partial(zoo.eisner, root="multi")),
        "single",
        projective=True,
        exact_with_soft_masks=False,
    ),
    Decoder(
        "naive-eisner",
        partial(zoo.naive_single_root, mst_func=partial(zoo.eisner, root="multi")),
        "single",
        projective=True,
    ),
    Decoder(
        "arcmax-eisner",
        partial(zoo.arcmax, one_root=True, mst_func=zoo.eisner),
        "single",
        projective=True,
        exact_with_soft_masks=False,
    ),
    Decoder(
        "arcmax-eisner-multi",
        partial(zoo.arcmax, one_root=False, mst_func=partial(zoo.eisner, root="multi")),
        "multi",
        projective=True,
    ),
)


def normal(rng: np.random.Generator, n: int) -> FloatArray:
    """Scores without ties."""
    return rng.normal(size=(n + 1, n + 1))


def negative(rng: np.random.Generator, n: int) -> FloatArray:
    """Scores like log-probabilities."""
    return -rng.exponential(size=(n + 1, n + 1))


def integer_ties(rng: np.random.Generator, n: int) -> FloatArray:
    """Scores with many exact ties."""
    return rng.integers(0, 3, size=(n + 1, n + 1)).astype(np.float64)


def decimal_ties(rng: np.random.Generator, n: int) -> FloatArray:
    """Scores whose sums tie up to rounding."""
    return rng.integers(-3, 4, size=(n + 1, n + 1)).astype(np.float64) * 0.1


def all_equal(rng: np.random.Generator, n: int) -> FloatArray:
    """One score for all edges."""
    return np.full_like(normal(rng, n), rng.normal())


def half_forbidden(rng: np.random.Generator, n: int) -> FloatArray:
    """Half of the edges are missing, often so many that no tree is left."""
    return np.where(rng.random((n + 1, n + 1)) < 0.5, -np.inf, normal(rng, n))


def sparse_ties(rng: np.random.Generator, n: int) -> FloatArray:
    """Ties among few edges."""
    return np.where(rng.random((n + 1, n + 1)) < 0.4, -np.inf, integer_ties(rng, n))


def many_roots(rng: np.random.Generator, n: int) -> FloatArray:
    """Every word would rather hang from ROOT."""
    scores = normal(rng, n)
    scores[0] += 3
    return scores


FAMILIES = (
    normal,
    negative,
    integer_ties,
    decimal_ties,
    all_equal,
    half_forbidden,
    sparse_ties,
    many_roots,
)


@cache
def trees(n: int, root: Root, projective: bool = False) -> IntArray:
    """All trees of a kind."""
    return zoo.enumerate_trees(n, root=root, projective=projective)


def scores_of(scores: NDArray[np.floating], heads: IntArray) -> FloatArray:
    """The scores of many trees, shape (T,), from that of their edges."""
    w = clean_scores(scores)
    total: FloatArray = w[heads[:, 1:], np.arange(1, len(w))].sum(axis=1)
    return total


def assert_best_or_infeasible(decoder: Decoder, scores: FloatArray) -> None:
    """The decoder gives a best tree among all trees of its kind, or a ``ValueError`` if there are none."""
    everything = trees(len(scores) - 1, decoder.root, decoder.projective)
    best = scores_of(scores, everything).max()
    if best == -np.inf:
        try:
            heads = decoder.decode(scores)
        except ValueError:
            return
        raise AssertionError(f"{decoder.name} found {heads} where there is no tree")
    heads = decoder.decode(scores)
    assert heads.dtype == np.int64
    assert (everything == heads).all(axis=1).any(), f"{heads} is not a tree of the promised kind"
    np.testing.assert_allclose(scores_of(scores, heads[None]), best, rtol=1e-13, atol=1e-13)


def nested_cycles(n: int) -> FloatArray:
    """Word i's best head is word i-1, and word 1's heads get worse from word 2 to word n, which ROOT enters.

    The greedy graph has the cycle 1, 2; once contracted, this and word 3 form a cycle, and so on: n - 1
    contractions.
    """
    scores = np.zeros((n + 1, n + 1))
    words = np.arange(2, n + 1)
    scores[words - 1, words] = 10.0 * n
    scores[words, 1] = 5.0 * n - words
    scores[0, 1:] = -100.0 * n
    return scores
