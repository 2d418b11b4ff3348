"""
Temperature and entropy
=======================

Dividing scores by a temperature makes a distribution flatter or sharper; the tree that is best stays best. At
temperature 0 one tree is left, at infinity all of them are alike: with one root there are n^(n-1), by Cayley's
formula.
"""

import matplotlib.pyplot as plt
import numpy as np

import spantree
from spantree.samples import load_samples

temperatures = np.geomspace(0.05, 50, 60)
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for sample in load_samples():
    n = len(sample.words)
    entropies = [spantree.entropy(sample.scores, temperature=t) for t in temperatures]
    (line,) = axes.semilogx(temperatures, entropies, label=" ".join(sample.words))
    axes.axhline((n - 1) * np.log(n), color=line.get_color(), linestyle=":", linewidth=1)
axes.set(xlabel="temperature", ylabel="entropy in nats; dotted: that of all trees alike")
axes.legend(frameon=False, fontsize=8)
plt.show()
