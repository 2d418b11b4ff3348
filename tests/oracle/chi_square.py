"""Whether draws may come from a law."""

from __future__ import annotations

import numpy as np
from scipy import stats

FALSE_ALARM = 1e-9  # of one test, were seeds not fixed; there are fewer than 1,000


def p_value(counts: np.ndarray, probs: np.ndarray) -> float:
    """Chi-square; outcomes expected less than five times count as one, and impossible ones must not occur."""
    counts, probs = np.ravel(counts), np.ravel(probs)
    expected = probs * counts.sum()
    assert not counts[probs < 1e-15].any(), "drawn, but next to impossible"
    rare = expected < 5
    counts = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    if expected[-1] < 5:  # too few even together: only very many of them are wrong
        assert stats.poisson.sf(counts[-1] - 1, expected[-1]) > FALSE_ALARM
        counts, expected = counts[:-1], expected[:-1]
        expected = expected * counts.sum() / expected.sum()
    return 1.0 if len(counts) < 2 else float(stats.chisquare(counts, expected).pvalue)
