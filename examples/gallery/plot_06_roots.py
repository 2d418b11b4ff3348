"""
One root or several
===================

A decoder that allows several roots takes two for "Come in and sit down", which Universal Dependencies forbids. How
likely are how many? Samples of the distribution over trees with any number of roots say so; ``root="single"`` is
the exact distribution given that there is one.
"""

import matplotlib.pyplot as plt
import numpy as np

import spantree
from spantree.samples import load_samples

samples = load_samples()
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
width = 0.2
for i, sample in enumerate(samples):
    several = spantree.TreeDistribution(sample.scores, root="multi")
    roots = (several.sample(20_000, rng=0)[:, 1:] == 0).sum(axis=1)
    shares = np.bincount(roots, minlength=5)[1:5] / len(roots)
    axes.bar(np.arange(1, 5) + (i - 1.5) * width, shares, width, label=" ".join(sample.words))
    one = np.exp(spantree.log_partition(sample.scores) - several.log_partition())
    print(f"{' '.join(sample.words)}: exactly one root {one:.3f}, sampled {shares[0]:.3f}")
axes.set(xlabel="number of roots", ylabel="probability", xticks=range(1, 5))
axes.legend(frameon=False, fontsize=8)
plt.show()
