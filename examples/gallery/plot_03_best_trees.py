"""
How much the best trees hold
============================

``topk`` gives the exact k best trees. Often the best one has less than half of the probability, and a few dozen
nearly all of it.
"""

import matplotlib.pyplot as plt
import numpy as np

import spantree
from spantree.samples import load_samples

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for sample in load_samples():
    dist = spantree.TreeDistribution(sample.scores)
    trees = dist.topk(200)
    mass = np.exp(dist.log_prob(trees.heads)).cumsum()
    axes.semilogx(np.arange(1, 201), mass, label=" ".join(sample.words))
axes.set(xlabel="number of best trees", ylabel="their probability together", ylim=(0, 1.02))
axes.legend(frameon=False, fontsize=8)
plt.show()
