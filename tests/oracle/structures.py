"""Score matrices that have made, or could make, inference go wrong: each a function of (rng, words, labels).

Matrices are [head, dep] or [head, dep, label], with rubbish in column 0 and on the diagonal. `GROUPS` names them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

Structure = Callable[[np.random.Generator, int, int], np.ndarray]

FLOAT32_MIN = float(np.finfo(np.float32).min)
FLOAT64_MIN = float(np.finfo(np.float64).min)
SOFT_MASKS = [-1e4, -1e9, -1e30, FLOAT32_MIN, -1e300, FLOAT64_MIN]


def shape(words: int, labels: int) -> tuple[int, ...]:
    return (words + 1, words + 1, labels) if labels else (words + 1, words + 1)


def normal(rng, words, labels, scale=1.0):
    return rng.normal(scale=scale, size=shape(words, labels))


def constant(rng, words, labels, value=0.0):
    return np.full(shape(words, labels), value)


def ties(rng, words, labels, unit=1.0, base=0.0):
    """Multiples of a unit: equal sums abound, and sums that differ by one unit."""
    return base + unit * rng.integers(0, 4, size=shape(words, labels))


# Hard masks


def some_forbidden(rng, words, labels, share=0.3):
    scores = normal(rng, words, labels)
    scores[rng.random(scores.shape) < share] = -np.inf
    return scores


def heads_nothing(rng, words, labels):
    """Two words are leaves in every tree."""
    scores = normal(rng, words, labels, 3.0)
    scores[rng.permutation(words)[:2] + 1] = -np.inf
    return scores


def one_head_each(rng, words, labels, but=0):
    """All words but some have one possible head: one tree, if any."""
    scores = np.full(shape(words, labels), -np.inf)
    order = [0, *(rng.permutation(words) + 1)]
    for i, dep in enumerate(order[1:]):
        head = order[int(rng.integers(1, i + 1))] if i else 0
        if i < but:
            scores[:, dep] = normal(rng, words, labels)[:, dep]
        scores[head, dep] = rng.normal(size=scores[head, dep].shape)
    return scores


def no_way_to_one_word(rng, words, labels):
    scores = normal(rng, words, labels)
    scores[:, int(rng.integers(1, words + 1)) if words else 0] = -np.inf
    return scores


def no_root_edge(rng, words, labels):
    scores = normal(rng, words, labels)
    scores[0] = -np.inf
    return scores


def only_several_roots(rng, words, labels):
    """Two words have no head but ROOT: feasible with several roots only."""
    scores = normal(rng, words, labels)
    for dep in (rng.permutation(words) + 1)[:2]:
        scores[1:, dep] = -np.inf
    return scores


def two_islands(rng, words, labels):
    """The words fall into two sets without an edge between them: two roots are needed."""
    scores = normal(rng, words, labels)
    cut = words // 2 + 1
    scores[1:cut, cut:] = -np.inf
    scores[cut:, 1:cut] = -np.inf
    return scores


def one_root_word(rng, words, labels):
    scores = normal(rng, words, labels, 4.0)
    kept = int(rng.integers(1, words + 1)) if words else 0
    scores[0, np.arange(words + 1) != kept] = -np.inf
    return scores


# Soft masks


def soft_edges(rng, words, labels, mask, share=0.4):
    scores = normal(rng, words, labels)
    scores[rng.random(scores.shape) < share] = mask
    return scores


def soft_rows(rng, words, labels, mask):
    scores = normal(rng, words, labels)
    scores[(rng.permutation(words) + 1)[: max(1, words // 2)]] = mask
    return scores


def soft_columns(rng, words, labels, mask):
    """Every edge into a word is masked: the mask is common to all trees."""
    scores = normal(rng, words, labels)
    scores[:, (rng.permutation(words) + 1)[: max(1, words // 2)]] = mask
    return scores


def soft_words(rng, words, labels, mask, count=1):
    """The last words are padding that was masked instead of cut off."""
    scores = normal(rng, words, labels)
    scores[max(1, words + 1 - count) :] = mask
    scores[:, max(1, words + 1 - count) :] = mask
    return scores


def soft_root_row(rng, words, labels, mask):
    """Every tree has a masked root edge; with several roots allowed, the fewer of them the better."""
    scores = normal(rng, words, labels)
    scores[0] = mask
    return scores


def soft_everywhere(rng, words, labels, mask):
    """Only the edges of one vector of heads, mostly no tree, are not masked."""
    scores = np.full(shape(words, labels), mask)
    for dep in range(1, words + 1):
        head = int(rng.integers(0, words + 1))
        scores[head, dep] = rng.normal(size=scores[head, dep].shape)
    return scores


def soft_multiples(rng, words, labels, mask):
    """Masks of several sizes: k times the mask, a little more or less."""
    scores = normal(rng, words, labels)
    times = rng.choice([0.0, 0.0, 0.5, 1.0, 1.0], size=scores.shape)
    return scores + times * mask


def many_masks(rng, words, labels):
    """Any of them anywhere."""
    scores = normal(rng, words, labels)
    kinds = np.array([0.0, -1e4, -1e9, -1e12, -2e12, -1e30, FLOAT32_MIN, -1e300, FLOAT64_MIN, -np.inf])
    drawn = rng.choice(kinds, size=scores.shape, p=[0.4, 0.1, 0.1, 0.1, 0.05, 0.1, 0.05, 0.03, 0.02, 0.05])
    return np.where(drawn == 0.0, scores, drawn)


def two_masks(rng, words, labels):
    """No ordinary score is left: -1e12 or -2e12, or their likes, on every edge."""
    mask = rng.choice([-1e4, -1e9, -1e12, -1e30, -1e300])
    return mask * rng.integers(1, 3, size=shape(words, labels))


def exchanged_masks(rng, words, labels, masks):
    """Every tree takes some of them: one with a large mask for others with several small ones, or of both signs."""
    return rng.choice(masks, size=shape(words, labels)) + normal(rng, words, labels)


# Large and small


def large_edges(rng, words, labels, value, share=0.2):
    scores = normal(rng, words, labels)
    scores[rng.random(scores.shape) < share] = value
    return scores


def column_constants(rng, words, labels, size):
    """A constant common to all edges into a word changes no probability. Scores are small integers: sums are exact."""
    scores = rng.integers(-3, 4, size=shape(words, labels)).astype(float)
    constants = size * rng.integers(-3, 4, size=words + 1)
    return scores + constants.reshape((1, -1, 1) if labels else (1, -1))


def root_constant(rng, words, labels, size):
    scores = rng.integers(-3, 4, size=shape(words, labels)).astype(float)
    scores[0] += size
    return scores


def beyond_range(rng, words, labels):
    """Sums leave the range of doubles on either side, or come back into it."""
    return rng.choice([-1.7e308, -1e308, 0.0, 1.0, 1e308, 1.7e308], size=shape(words, labels))


def above_range(rng, words, labels):
    return rng.choice([1e308, 1.5e308, 1.7e308], size=shape(words, labels))


def below_range(rng, words, labels):
    return rng.choice([-1e308, -1.5e308, FLOAT64_MIN], size=shape(words, labels))


def cancelling(rng, words, labels):
    """Large scores that cancel within a tree, and small ones beside them."""
    return rng.choice([-1e30, -1e16, 0.5, 1.0, 1e16, 1e30], size=shape(words, labels)) + normal(rng, words, labels)


def wide(rng, words, labels, decades=300):
    """Every order of magnitude."""
    size = shape(words, labels)
    return rng.choice([-1.0, 1.0], size=size) * 10.0 ** rng.uniform(-decades, decades, size=size)


def _over_sizes(structure: Structure, sizes) -> dict[str, Structure]:
    return {f"{structure.__name__} {size:.3g}": partial(structure, **{_size_name(structure): size}) for size in sizes}


def _size_name(structure: Structure) -> str:
    return structure.__code__.co_varnames[3]


GROUPS: dict[str, dict[str, Structure]] = {
    "ordinary": _over_sizes(normal, [1.0, 20.0, 100.0]),
    "sharp": _over_sizes(normal, [300.0, 1000.0, 2000.0]),
    "ties": {
        "zero": constant,
        "constant": partial(constant, value=-3.25),
        "integers": ties,
        "tenths": partial(ties, unit=0.1),
        "an ulp": partial(ties, unit=2.0**-52, base=1.0),
        "an ulp of a large number": partial(ties, unit=2.0, base=2.0**53),
    },
    "hard masks": {
        "some": some_forbidden,
        "most": partial(some_forbidden, share=0.6),
        "leaves": heads_nothing,
        "one tree": one_head_each,
        "few trees": partial(one_head_each, but=2),
        "one root word": one_root_word,
    },
    "no tree": {
        "some": partial(some_forbidden, share=0.5),
        "no way in": no_way_to_one_word,
        "no root edge": no_root_edge,
        "several roots only": only_several_roots,
        "islands": two_islands,
    },
    "soft edges": _over_sizes(soft_edges, SOFT_MASKS) | _over_sizes(soft_everywhere, SOFT_MASKS),
    "soft rows": _over_sizes(soft_rows, SOFT_MASKS) | _over_sizes(soft_root_row, SOFT_MASKS),
    "soft columns": _over_sizes(soft_columns, SOFT_MASKS),
    "soft words": _over_sizes(soft_words, SOFT_MASKS)
    | {f"two {name}": partial(soft_words, mask=mask, count=2) for name, mask in [("1e9", -1e9), ("1e30", -1e30)]},
    "soft mixtures": {"many": many_masks, "two": two_masks} | _over_sizes(soft_multiples, [-1e9, -1e30, -1e300]),
    "exchanged masks": {
        "multiples": partial(exchanged_masks, masks=[-1e9, -2e9, -3e9]),
        "two sizes": partial(exchanged_masks, masks=[0.0, -1e9, -1e30]),
        "near the largest": partial(exchanged_masks, masks=[0.0, -1e30, -1.7e308]),
        "both signs": partial(exchanged_masks, masks=[-1e9, 1e9, -3e9, 0.5e9, -1e30]),
        "any size": partial(exchanged_masks, masks=-1e12 * np.arange(1.0, 40.0) ** 0.5),
    },
    "large": _over_sizes(large_edges, [1e4, 1e9, 1e30, 1e300]),
    "constants": _over_sizes(column_constants, [1e3, 2.0**40, 2.0**49]) | _over_sizes(root_constant, [1e9, -(2.0**49)]),
    "tiny": {
        "1e-305": partial(normal, scale=1e-305),
        "1e-320": partial(normal, scale=1e-320),
        "smallest": partial(ties, unit=5e-324),
        "1e-20 beside 1": partial(ties, unit=1e-20),
    },
    "beyond range": {"both": beyond_range, "above": above_range, "below": below_range},
    "every size": {"cancelling": cancelling, "wide": wide, "less wide": partial(wide, decades=20)},
}


def read(scores: np.ndarray) -> np.ndarray:
    """Which entries are edges: not in column 0, not on the diagonal."""
    edges = np.ones(scores.shape, bool)
    nodes = np.arange(len(scores))
    edges[:, 0] = edges[nodes, nodes] = False
    return edges


def rubbish(scores: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The same with something else in column 0 and on the diagonal, where nothing is read."""
    scores = scores.copy()
    nodes = np.arange(len(scores))
    largest = np.finfo(scores.dtype).max
    scores[:, 0] = rng.choice([np.nan, np.inf, -np.inf, 0.0, largest])
    scores[nodes, nodes] = rng.choice([np.nan, np.inf, -np.inf, 0.0, largest])
    return scores


def matrices(group: str, labels: int, dtype: type, seed: int, largest: int = 4) -> Iterator[tuple[str, np.ndarray]]:
    """Name and matrix of every structure of a group: one each, of 2 to `largest` words, then none and one word."""
    # Python's own hash of a string differs between runs.
    rng = np.random.default_rng([seed, labels, np.dtype(dtype).itemsize, *group.encode()])
    structures = list(GROUPS[group].items())
    for i, (name, structure) in enumerate(structures):
        words = (largest, max(largest - 1, 2), 2, largest)[(i + seed) % 4]
        yield name, _as(structure(rng, words, labels), dtype, rng)
    name, structure = structures[seed % len(structures)]
    yield f"{name}, no words", _as(structure(rng, 0, labels), dtype, rng)
    yield f"{name}, one word", _as(structure(rng, 1, labels), dtype, rng)


def _as(scores: np.ndarray, dtype: type, rng: np.random.Generator) -> np.ndarray:
    """In float32 what is out of range is forbidden below, and the largest number above."""
    with np.errstate(over="ignore", under="ignore"):
        cast = scores.astype(dtype)
    cast[cast == np.inf] = np.finfo(dtype).max
    return rubbish(cast, rng)
