"""
What subtraction costs
======================

The matrix-tree theorem with a determinant subtracts numbers that are nearly equal, and confident scores leave
nothing of the result. The same sum over trees without subtractions keeps its digits.
"""

import matplotlib.pyplot as plt
import numpy as np

import spantree


def by_inverse(scores):
    """P(ROOT -> word) for each word, several roots allowed, by the textbook."""
    weights = np.exp(scores - scores.max())
    np.fill_diagonal(weights, 0.0)
    laplacian = np.diag(weights[:, 1:].sum(axis=0)) - weights[1:, 1:]
    try:
        return weights[0, 1:] * np.diag(np.linalg.inv(laplacian))
    except np.linalg.LinAlgError:
        return np.full(len(laplacian), np.nan)


def share_of_nonsense(probabilities):
    """Sentences with a number that is no probability, give or take a millionth."""
    return np.mean([not all(-1e-6 <= p <= 1 + 1e-6 for p in row) for row in probabilities])


scales = np.arange(1, 61, 3)
theirs, ours = [], []
for scale in scales:
    scores = scale * np.random.default_rng(scale).normal(size=(100, 13, 13))
    theirs.append(share_of_nonsense([by_inverse(one) for one in scores]))
    ours.append(share_of_nonsense(spantree.marginals(scores, root="multi")[:, 0, 1:]))

figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
axes.plot(scales, theirs, "o-", color="#c8641c", label="inverse of the Laplacian")
axes.plot(scales, ours, "s-", color="#8860d0", label="spantree")
axes.set(xlabel="standard deviation of the scores", ylabel='sentences with a "probability"\nthat is none')
axes.legend(frameon=False)
plt.show()
