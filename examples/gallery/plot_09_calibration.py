"""
Are probabilities right?
========================

Of the heads that a calibrated parser gives 80 %, 80 % are right. One number, a temperature, mends much of what is
off. Here gold trees are drawn from scores that are half as sure as the parser claims to be.
"""

import matplotlib.pyplot as plt
import numpy as np

import spantree

scores = 3 * np.random.default_rng(0).normal(size=(1000, 13, 13))
gold = spantree.sample(scores, temperature=2.0, rng=0)
temperature = spantree.fit_temperature(scores[:500], gold[:500])

figure, axes = plt.subplots(figsize=(4.5, 4.5), layout="constrained")
axes.plot([0, 1], [0, 1], ":", color="0.5")
for label, t in (("as claimed", 1.0), (f"divided by {temperature:.2f}", temperature)):
    words = spantree.calibration(scores[500:], gold[500:], temperature=t).words
    axes.plot(words.bins[:, 3], words.bins[:, 4], "o-", label=f"{label}: error {words.error:.3f}")
axes.set(xlabel="probability of the head", ylabel="share that is right")
axes.legend(frameon=False)
plt.show()
