"""
Samples with and without replacement
====================================

Random trees repeat themselves. Drawn without replacement, each is new, and the trees seen so far cover more of the
probability; estimates from them stay unbiased (``Sample.estimate``).
"""

import matplotlib.pyplot as plt
import numpy as np

import spantree
from spantree.samples import load_samples

sample = load_samples()[0]
dist = spantree.TreeDistribution(sample.scores)
most = 3000
counts = np.unique(np.geomspace(1, most, 25).astype(int))


def covered(heads):
    """Probability of the different trees among the first k, for each k."""
    different = [np.unique(heads[:k], axis=0) for k in counts]
    return [np.exp(dist.log_prob(trees)).sum() for trees in different]


figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
best = np.exp(dist.log_prob(dist.topk(most).heads)).cumsum()[counts - 1]
axes.semilogx(counts, best, color="0.6", label="the best trees")
axes.semilogx(
    counts, covered(dist.sample_without_replacement(int(counts[-1]), rng=0).heads), label="without replacement"
)
axes.semilogx(counts, covered(dist.sample(int(counts[-1]), rng=0)), label="with replacement")
axes.set(xlabel="trees drawn", ylabel="probability of the trees seen")
axes.legend(frameon=False)
plt.show()
