"""Calls into the core about projective trees, on single arrays."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from oracle.trees import all_trees, crosses, reaches_root
from spantree import _core

ROOTS = {"single": _core.Root.single, "multi": _core.Root.multi}


def is_projective_tree(heads: tuple[int, ...]) -> bool:
    """``heads[d - 1]`` is the head of word d."""
    return reaches_root(heads) and not crosses(heads)


def projective_trees(words: int, root: str) -> NDArray[np.int64]:
    """All projective trees, one a row: heads with -1 at ROOT."""
    return all_trees(words, root, True)


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
    words = _core.argmax(batch, ROOTS[root], True, threads, heads, None, scores)
    return heads, scores, np.zeros(len(batch), np.int64) if words is None else words


def topk(
    sentences: Sentences, root: str, k: int, labelled: bool = False, threads: int = 1
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Heads and labels ``(k, row_size)``, scores ``(k, sentences)``, and the word that cannot be attached."""
    batch = sentences.batch
    heads = np.empty(k * batch.row_size, np.int64)
    labels = np.empty(k * batch.row_size, np.int64)
    scores = np.empty(k * len(batch))
    label_rows = labels if labelled else None
    words = _core.topk(batch, ROOTS[root], True, k, threads, heads, label_rows, scores)
    unattachable = np.zeros(len(batch), np.int64) if words is None else words
    return heads.reshape(k, -1), labels.reshape(k, -1), scores.reshape(k, -1), unattachable


def log_partition(sentences: Sentences, root: str) -> NDArray[np.float64]:
    log_z = np.empty(len(sentences.scores))
    words = _core.log_partition(sentences.batch, ROOTS[root], True, 1, log_z, None)
    assert ((np.zeros(len(log_z)) if words is None else words) > 0).tolist() == np.isneginf(log_z).tolist()
    return log_z


class Solved:
    """A kept solve of one sentence."""

    def __init__(
        self, scores: NDArray[np.floating], root: str, dep_major: bool = False, labelled: bool = False
    ) -> None:
        self.shape = scores.shape
        given = scores.swapaxes(0, 1).copy().swapaxes(0, 1) if dep_major else scores
        self.sentences = Sentences(given, labelled=labelled, dep_major=dep_major)
        self.batch = self.sentences.batch
        self.root = ROOTS[root]
        self.solution = _core.Solved(self.batch, ROOTS[root], True, 1, _core.Solved.For.questions, None)
        log_partition, rest = np.empty(1), np.empty(1)
        self.solution.report(log_partition, rest)
        self.log_partition, self.rest = float(log_partition[0]), float(rest[0])

    def marginals(self) -> NDArray[np.float64]:
        out = np.full(self.batch.edge_size, np.nan)
        self.solution.marginals(self.batch, 1, out)
        return out.reshape(self.shape)

    def entropy(self) -> float:
        out = np.empty(1)
        self.solution.entropy(self.batch, 1, out, None)
        return float(out[0])

    def expectation(self, values: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        total, gradient = np.empty((1, 1)), np.full(self.batch.edge_size, np.nan)
        self.solution.expectations(self.batch, 1, values.ravel(), total, gradient)
        return float(total[0, 0]), gradient.reshape(self.shape)

    def hessian(self, *directions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Covariances of every edge with the sum of each direction over the tree, shape ``(R, n+1, n+1)``."""
        out = np.full(len(directions) * self.batch.edge_size, np.nan)
        given = np.concatenate([direction.ravel() for direction in directions])
        self.solution.expectations(self.batch, 1, given, np.empty((len(directions), 1)), out)
        return out.reshape(len(directions), *self.shape)

    def third(self, u: NDArray[np.float64], g: NDArray[np.float64]) -> NDArray[np.float64]:
        out = np.full(self.batch.edge_size, np.nan)
        _core.third(self.batch, self.root, True, 1, u.ravel(), g.ravel(), out)
        return out.reshape(self.shape)


def marginals(scores: NDArray[np.floating], root: str, dep_major: bool = False) -> tuple[float, NDArray[np.float64]]:
    """log Z and marginals of one sentence; -inf and 0 where there is no tree."""
    solved = Solved(scores, root, dep_major)
    return solved.log_partition, solved.marginals()


def covariances(scores: NDArray[np.floating], root: str, *directions: NDArray[np.float64]) -> NDArray[np.float64]:
    return Solved(scores, root).hessian(*directions)


def sample(
    sentences: Sentences, root: str, k: int, key: tuple[int, int], first: int = 0, threads: int = 1
) -> NDArray[np.int64]:
    heads = np.empty(k * sentences.batch.row_size, np.int64)
    method = _core.SamplingMethod.automatic
    keys = np.array([key], np.uint64)
    _core.sample(sentences.batch, ROOTS[root], True, method, k, keys, first, 0, threads, heads, None, None, None)
    return heads.reshape(k, -1)
