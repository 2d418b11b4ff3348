"""
Every head of every word
========================

Marginals are sums over all trees: a column says how the head of a word is distributed.
"""

import matplotlib.pyplot as plt

import spantree
from spantree.samples import load_samples

sample = load_samples()[2]
marginals = spantree.marginals(sample.scores)

names = ["ROOT", *sample.words]
figure, axes = plt.subplots(figsize=(6, 5), layout="constrained")
image = axes.imshow(marginals[:, 1:], cmap="Purples", vmin=0, vmax=1)
axes.set_xticks(range(len(sample.words)), sample.words, rotation=45, ha="right")
axes.set_yticks(range(len(names)), names)
axes.set(xlabel="word", ylabel="its head")
for head, dep in zip(*(marginals[:, 1:] > 0.05).nonzero(), strict=True):
    p = marginals[head, dep + 1]
    axes.text(dep, head, f"{p:.2f}", ha="center", va="center", color="white" if p > 0.5 else "black", fontsize=8)
figure.colorbar(image, label="probability")
plt.show()
