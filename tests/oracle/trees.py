"""All trees of a few words, found by trying every vector of heads."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np


def reaches_root(heads: tuple[int, ...]) -> bool:
    """Whether every word's chain of heads ends at ROOT; ``heads[d - 1]`` is the head of word d."""
    for word in range(1, len(heads) + 1):
        node = word
        for _ in heads:
            node = heads[node - 1]
            if node == 0:
                break
        else:
            return False
    return True


def crosses(heads: tuple[int, ...]) -> bool:
    """Whether two arcs cross, ROOT standing left of the first word."""
    arcs = [(min(h, d), max(h, d)) for d, h in enumerate(heads, 1)]
    return any(a < c < b < d for a, b in arcs for c, d in arcs)


@cache
def all_trees(words: int, root: str, projective: bool) -> np.ndarray:
    """One tree a row, (T, n+1), -1 at ROOT. No words: one tree, whatever `root`."""
    rows = [
        (-1, *heads)
        for heads in itertools.product(range(words + 1), repeat=words)
        if (root == "multi" or words == 0 or heads.count(0) == 1)
        and reaches_root(heads)
        and not (projective and crosses(heads))
    ]
    return np.array(rows, np.int64).reshape(-1, words + 1)


@cache
def all_labelled_trees(words: int, labels: int, root: str, projective: bool) -> tuple[np.ndarray, np.ndarray]:
    """Heads and labels, both (T, n+1), -1 at ROOT: every tree with every way to label its edges."""
    heads = all_trees(words, root, projective)
    ways = np.array(list(itertools.product(range(labels), repeat=words)), np.int64).reshape(labels**words, words)
    ways = np.hstack([np.full((len(ways), 1), -1), ways])
    return np.repeat(heads, len(ways), axis=0), np.tile(ways, (len(heads), 1))
