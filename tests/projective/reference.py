"""Slow, obvious counterparts: every projective tree by enumeration, and calls into the core on single arrays."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from spantree import _core

ROOTS = {"single": _core.Root.single, "multi": _core.Root.multi}


def is_projective_tree(heads: tuple[int, ...]) -> bool:
    """``heads[d - 1]`` is the head of word d. Crossing is tested arc by arc, ROOT standing left of all words."""
    arcs = [(min(h, d), max(h, d)) for d, h in enumerate(heads, 1)]
    if any(a < c < b < d for a, b in arcs for c, d in arcs):
        return False
    for start in range(1, len(heads) + 1):
        node, steps = start, 0
        while node and steps <= len(heads):
            node, steps = heads[node - 1], steps + 1
        if node:
            return False
    return True


@cache
def projective_trees(words: int, root: str) -> NDArray[np.int64]:
    """All projective trees, one a row: heads with -1 at ROOT."""
    candidates = itertools.product(range(words + 1), repeat=words)
    trees = [
        (-1, *heads)
        for heads in candidates
        if all(h != d for d, h in enumerate(heads, 1))
        and (root == "multi" or words == 0 or heads.count(0) == 1)
        and is_projective_tree(heads)
    ]
    return np.array(trees, dtype=np.int64).reshape(len(trees), words + 1)


def tree_scores(scores: NDArray[np.float64], trees: NDArray[np.int64]) -> NDArray[np.float64]:
    deps = np.arange(1, scores.shape[0])
    return scores[trees[:, 1:], deps].sum(axis=1)


def random_sentences(
    seed: int, count: int, words: tuple[int, ...] = (1, 2, 3, 4, 5, 6), density: float = 1.0
) -> Iterator[NDArray[np.float64]]:
    """Gaussian scores; the diagonal and column 0 hold rubbish that must not matter."""
    rng = np.random.default_rng(seed)
    for index in range(count):
        n = words[index % len(words)]
        scores = rng.normal(size=(n + 1, n + 1))
        scores[rng.random(scores.shape) > density] = -np.inf
        np.fill_diagonal(scores, np.nan)
        scores[:, 0] = np.inf
        yield scores


class Sentences:
    """A ragged batch together with the arrays it looks at."""

    def __init__(self, *scores: NDArray[np.floating], labelled: bool = False, dep_major: bool = False) -> None:
        self.scores = list(scores)
        self.batch = _core.Batch.ragged(self.scores, labelled, dep_major)

    def rows(self, flat: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """A flat array of one entry per node, cut into sentences."""
        return np.split(flat, np.cumsum([len(s) for s in self.scores])[:-1])


def argmax(
    sentences: Sentences, root: str, threads: int = 1
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    batch = sentences.batch
    heads = np.empty(batch.row_size, np.int64)
    scores = np.empty(len(batch))
    unattachable = np.empty(len(batch), np.int64)
    failed = _core.projective_argmax(batch, ROOTS[root], threads, heads, None, scores, unattachable)
    assert failed == np.count_nonzero(unattachable)
    return heads, scores, unattachable


def topk(
    sentences: Sentences, root: str, k: int, labelled: bool = False, threads: int = 1
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Heads and labels ``(k, row_size)``, scores ``(k, sentences)``, and the word that cannot be attached."""
    batch = sentences.batch
    heads = np.empty(k * batch.row_size, np.int64)
    labels = np.empty(k * batch.row_size, np.int64)
    scores = np.empty(k * len(batch))
    unattachable = np.empty(len(batch), np.int64)
    label_rows = labels if labelled else None
    _core.projective_topk(batch, ROOTS[root], k, threads, heads, label_rows, scores, unattachable)
    return heads.reshape(k, -1), labels.reshape(k, -1), scores.reshape(k, -1), unattachable


def log_partition(sentences: Sentences, root: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    log_z, unattachable = np.empty(len(sentences.scores)), np.empty(len(sentences.scores), np.int64)
    _core.projective_log_partition(sentences.batch, ROOTS[root], 1, log_z, unattachable)
    return log_z, unattachable


def marginals(scores: NDArray[np.floating], root: str, dep_major: bool = False) -> tuple[float, NDArray[np.float64]]:
    """log Z and marginals of one sentence, both zero-filled where there is no tree."""
    sentences = Sentences(np.asfortranarray(scores) if dep_major else scores, dep_major=dep_major)
    log_z, unattachable = np.empty(1), np.empty(1, np.int64)
    result = np.full(scores.size, np.nan)
    _core.projective_marginals(sentences.batch, ROOTS[root], 1, log_z, result, unattachable)
    return float(log_z[0]), result.reshape(scores.shape)


def covariances(scores: NDArray[np.floating], root: str, *directions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of every edge with the sum of each direction over the tree, shape ``(directions, n+1, n+1)``."""
    sentences = Sentences(scores)
    upstream = np.concatenate([direction.ravel() for direction in directions])
    log_z, unattachable = np.empty(1), np.empty(1, np.int64)
    edges, result = np.full(scores.size, np.nan), np.full(upstream.shape, np.nan)
    _core.projective_vjp(sentences.batch, ROOTS[root], 1, len(directions), upstream, log_z, edges, result, unattachable)
    expected_log_z, expected = marginals(scores, root)
    assert log_z[0] == expected_log_z
    np.testing.assert_array_equal(edges.reshape(scores.shape), expected)
    return result.reshape(len(directions), *scores.shape)


def sample(
    sentences: Sentences, root: str, k: int, key: tuple[int, int], first: int = 0, threads: int = 1
) -> NDArray[np.int64]:
    heads = np.empty(k * sentences.batch.row_size, np.int64)
    unattachable = np.empty(len(sentences.scores), np.int64)
    _core.projective_sample(sentences.batch, ROOTS[root], k, key, first, threads, heads, unattachable)
    return heads.reshape(k, -1)
