"""Random graphs: what a parser's scores look like before training."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ._types import FloatArray

Law = Callable[[np.random.Generator, tuple[int, ...]], FloatArray]
"""Draws edge weights, independent of each other."""


def truncated_normal(mean: float, deviation: float) -> Law:
    """Normal weights, those below 0 drawn again.

    Examples
    --------
    >>> bool((truncated_normal(1, 1)(np.random.default_rng(0), (100,)) > 0).all())
    True
    """

    def law(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        weights = rng.normal(mean, deviation, shape)
        while (negative := weights <= 0.0).any():
            weights[negative] = rng.normal(mean, deviation, np.count_nonzero(negative))
        return weights

    return law


LAWS: dict[str, Law] = {
    "uniform(0, 1)": lambda rng, shape: rng.random(shape),
    "exponential(1)": lambda rng, shape: rng.exponential(size=shape),
    "normal(1, 1) > 0": truncated_normal(1.0, 1.0),
    "normal(5, 2) > 0": truncated_normal(5.0, 2.0),
}


def log_weights(rng: np.random.Generator, n: int, graphs: int, law: str = "uniform(0, 1)") -> list[FloatArray]:
    """Scores of complete graphs over ROOT and `n` words: logarithms of weights drawn from a law.

    Examples
    --------
    >>> graphs = log_weights(np.random.default_rng(0), n=3, graphs=2)
    >>> len(graphs), graphs[0].shape, bool((graphs[0] < 0).all())
    (2, (4, 4), True)
    """
    return list(np.log(LAWS[law](rng, (graphs, n + 1, n + 1))))


def raw_uniform(rng: np.random.Generator, n: int, graphs: int) -> list[FloatArray]:
    """Scores of complete graphs drawn from the uniform distribution on (0, 1) themselves, as decoders are timed on."""
    return list(rng.random((graphs, n + 1, n + 1)))
