"""
With and without crossing edges
===============================

"A hearing is scheduled on the issue today": *on the issue* belongs to *hearing*, across the verb. No projective
tree can say so.
"""

import matplotlib.pyplot as plt

import spantree
from spantree.samples import load_samples
from spantree.view import matplotlib_axes

sample = load_samples()[2]
figure, sides = plt.subplots(2, 1, figsize=(8, 5), layout="constrained")
for axes, projective in zip(sides, (False, True), strict=True):
    dist = spantree.TreeDistribution(sample.scores, projective=projective)
    matplotlib_axes(sample.words, dist.argmax(), ax=axes)
    kind = "best projective tree" if projective else "best tree"
    axes.set_title(f"{kind}: score {dist.max():.2f}, entropy {dist.entropy():.2f} nats")
plt.show()
