"""The exact paired-permutation test for the difference of two systems.

    d[i]     what system A gets right in sentence i, minus what B does: an integer
    p        = P( |sum_i s[i] d[i]| >= |sum_i d[i]| ),  signs s[i] independent and fair: the systems' answers swapped

Ran Zmigrod, Tim Vieira, Ryan Cotterell. Exact Paired-Permutation Testing for Structured Test Statistics. NAACL 2022.

Their dynamic programme over sentences, in the order of |d[i]|: m sentences of the same |d| = g add up to g (2 B - m),
B binomial, so the programme takes a step for each different size only. Sums of positive numbers throughout, so small
p-values keep their digits. Cost: O(G M) for a step, G the sum of all |d|, M the sentences of that size.
"""

from __future__ import annotations

from math import lgamma, log

import numpy as np
import numpy.typing as npt


def paired_permutation_test(differences: npt.ArrayLike) -> float:
    """The two-sided p-value.

    Examples
    --------
    >>> paired_permutation_test([1, 1, 1, -1])  # 10 of the 16 sign vectors sum to 2 or more, or -2 or less
    0.625
    """
    sizes = np.abs(np.asarray(differences, np.int64).ravel())
    observed = abs(int(np.sum(differences)))
    chances = np.ones(1)  # of sums -reach, -reach + 2, ..., reach: all sums have the parity of reach
    reach = 0
    for size, count in zip(*np.unique(sizes[sizes > 0], return_counts=True), strict=True):
        step = np.zeros(int(size) * int(count) + 1)
        step[:: int(size)] = _binomial(int(count))
        chances = np.convolve(chances, step)
        reach += int(size) * int(count)
    sums = np.abs(np.arange(-reach, reach + 1, 2))
    return min(float(np.sort(chances[sums >= observed]).sum()), 1.0)


def _binomial(count: int) -> npt.NDArray[np.float64]:
    """P(B = 0), ..., P(B = count) for fair coins."""
    if count < 50:
        row = np.ones(1)
        for _ in range(count):
            row = (np.append(row, 0) + np.append(0, row)) / 2
        return row
    logs = [lgamma(count + 1) - lgamma(k + 1) - lgamma(count - k + 1) - count * log(2) for k in range(count + 1)]
    return np.exp(logs)
