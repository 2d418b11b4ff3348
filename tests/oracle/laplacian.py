"""log Z, marginals and gradients from the Laplacian's inverse, in as many digits as it takes: a second algorithm."""

from __future__ import annotations

import mpmath as mp
import numpy as np


def exact(scores: np.ndarray, root: str, digits: int) -> tuple[mp.matrix, mp.mpf]:
    """Marginals and log Z from the inverse of the Laplacian in `digits` digits, which must outlast the cancellation."""
    with mp.workdps(digits):
        return _from_inverse(_numbers(scores), root)


def exact_gradient(scores: np.ndarray, values: np.ndarray, root: str, digits: int) -> np.ndarray:
    """Gradient of E[sum of values] by central differences of exact marginals in the direction of `values`.

    The Hessian of log Z is symmetric, so the derivative of all marginals in one direction is that direction's gradient.
    """
    nodes = range(len(scores))
    with mp.workdps(digits):
        base, direction = _numbers(scores), _numbers(values)
        step = mp.mpf(10) ** -(digits // 4)
        up, down = (
            _from_inverse([[base[h][d] + sign * step * direction[h][d] for d in nodes] for h in nodes], root)[0]
            for sign in (1, -1)
        )
        slope = (up - down) / (2 * step)
        return np.array([[float(slope[h, d]) for d in nodes] for h in nodes])


def _numbers(table: np.ndarray) -> list[list[mp.mpf]]:
    return [[mp.mpf(float(x)) for x in row] for row in table]


def _from_inverse(scores: list[list[mp.mpf]], root: str) -> tuple[mp.matrix, mp.mpf]:
    n = len(scores) - 1
    edge = lambda h, d: h != d and d != 0 and scores[h][d] != -mp.inf  # noqa: E731
    weight = [[mp.exp(scores[h][d]) if edge(h, d) else mp.mpf(0) for d in range(n + 1)] for h in range(n + 1)]
    laplacian = mp.matrix(n, n)
    for d in range(1, n + 1):
        for h in range(1, n + 1):
            laplacian[h - 1, d - 1] -= weight[h][d]
            laplacian[d - 1, d - 1] += weight[h][d]
        if root == "multi":
            laplacian[d - 1, d - 1] += weight[0][d]
    first_row_is_root = root == "single"
    if first_row_is_root:
        for d in range(1, n + 1):
            laplacian[0, d - 1] = weight[0][d]
    inverse = mp.inverse(laplacian)
    marginals = mp.matrix(n + 1, n + 1)
    for d in range(1, n + 1):
        for h in range(n + 1):
            if h == 0 and first_row_is_root:
                marginals[h, d] = weight[h][d] * inverse[d - 1, 0]
                continue
            own = 0 if first_row_is_root and d == 1 else inverse[d - 1, d - 1]
            other = 0 if h == 0 or (first_row_is_root and h == 1) else inverse[d - 1, h - 1]
            marginals[h, d] = weight[h][d] * (own - other)
    return marginals, mp.log(mp.det(laplacian))
