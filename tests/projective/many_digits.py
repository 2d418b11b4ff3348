"""log Z and marginals of longer sentences in numbers of many digits."""

from __future__ import annotations

import mpmath
import numpy as np


def chart_in_many_digits(scores, root):
    """log Z and marginals of a longer sentence: Eisner's recursion, then derivatives pushed back term by term."""
    n = len(scores) - 1
    zero, one = mpmath.mpf(0), mpmath.mpf(1)
    value, terms = {}, {}

    def gather(name, pairs):
        terms[name] = pairs
        value[name] = mpmath.fsum(value[a] * value[b] for a, b in pairs)

    low = 1 if root == "single" else 0
    for i in range(n + 1):
        value["R", i, i] = value["L", i, i] = one
        for j in range(1, n + 1):
            if i != j:
                value["W", i, j] = mpmath.exp(mpmath.mpf(scores[i, j])) if scores[i, j] > -np.inf else zero
    for width in range(1, n + 1 - low):
        for i in range(low, n + 1 - width):
            j = i + width
            gather(("K", i, j), [(("R", i, k), ("L", k + 1, j)) for k in range(i, j)])
            gather(("A", i, j), [(("K", i, j), ("W", i, j))])
            gather(("A", j, i), [(("K", i, j), ("W", j, i))] if i else [])
            gather(("R", i, j), [(("A", i, d), ("R", d, j)) for d in range(i + 1, j + 1)])
            gather(("L", i, j), [(("L", i, d), ("A", j, d)) for d in range(i, j)])
    if root == "single":
        for r in range(1, n + 1):
            gather(("T", r), [(("L", 1, r), ("W", 0, r))])
        gather(("Z",), [(("T", r), ("R", r, n)) for r in range(1, n + 1)])
    else:
        value["one"] = one
        gather(("Z",), [(("R", 0, n), "one")])
    bar = dict.fromkeys(value, zero)
    bar["Z",] = one
    for name in reversed(terms):
        for a, b in terms[name]:
            bar[a] += bar[name] * value[b]
            bar[b] += bar[name] * value[a]
    z = value["Z",]
    result = np.full(scores.shape, zero, dtype=object)
    for i in range(n + 1):
        for j in range(1, n + 1):
            if i != j:
                result[i, j] = bar["W", i, j] * value["W", i, j] / z
    return mpmath.log(z), result
