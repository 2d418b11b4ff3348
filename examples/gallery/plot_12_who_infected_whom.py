"""
Who infected whom
=================

Not only parsing: a chain of infections is an arborescence. Each case has one source among those who fell ill
earlier, likelier if it was near in time and place. Marginals are the probabilities of single transmissions, over
all possible histories.
"""

import matplotlib.pyplot as plt
import numpy as np

import spantree

rng = np.random.default_rng(4)
n = 14
days = np.sort(rng.uniform(0, 20, n))
place = rng.normal(size=(n, 2)) + np.linspace(0, 3, n)[:, None]

gap = days[None, :] - days[:, None]  # [source, case]
distance = np.linalg.norm(place[:, None] - place[None, :], axis=-1)
with np.errstate(invalid="ignore", divide="ignore"):
    likely = np.where(gap > 0, 1.5 * np.log(gap) - gap / 2 - distance**2, -np.inf)
scores = np.full((n + 1, n + 1), -np.inf)
scores[1:, 1:] = likely
scores[0, 1] = 0.0  # the first case came from outside

dist = spantree.TreeDistribution(scores)
marginals = dist.marginals()
best = dist.argmax()
figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
for source, case in zip(*(marginals[1:, 1:] > 0.05).nonzero(), strict=True):
    p = marginals[source + 1, case + 1]
    colour = "black" if best[case + 1] == source + 1 else "#c8641c"
    arrow = {"arrowstyle": "-|>", "color": colour, "alpha": p, "linewidth": 0.5 + 2 * p, "shrinkA": 6, "shrinkB": 6}
    axes.annotate("", (days[case], place[case, 1]), (days[source], place[source, 1]), arrowprops=arrow)
axes.scatter(days, place[:, 1], s=60, zorder=3)
axes.set(xlabel="day", ylabel="place", title=f"the likeliest history has {np.exp(dist.log_prob(best)):.1%}")
plt.show()
