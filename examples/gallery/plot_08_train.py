"""
A parser in sixty lines of NumPy
================================

The gradient of a gold tree's log-likelihood is the tree minus the marginals. With that, plain gradient ascent
trains a log-linear parser on the tags of 18 sentences, and every step makes them likelier.
(``examples/treebank/train.py``)
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

import spantree

sys.path.insert(0, "../treebank")
import train

sentences = train.read()
seen, unseen = sentences[6:], sentences[:6]


def measures(weights, some):
    scores = [weights[train.features(one.tags)].sum(axis=0) for one in some]
    gold = [one.heads for one in some]
    likelihood = np.mean(spantree.log_prob(scores, gold))
    pairs = zip(spantree.decode(scores), gold, strict=True)
    return likelihood, np.concatenate([tree[1:] == right[1:] for tree, right in pairs]).mean()


steps = [1, 2, 4, 8, 16, 32, 64]
curves = []
for train.STEPS in steps:
    weights = train.train(seen)
    curves.append([measures(weights, seen), measures(weights, unseen)])
curves = np.array(curves)

figure, sides = plt.subplots(1, 2, figsize=(8, 3.5), layout="constrained")
for kind, axes, title in zip(range(2), sides, ("mean log-likelihood of a tree", "heads that are right"), strict=True):
    axes.semilogx(steps, curves[:, 0, kind], "o-", label="18 sentences it was trained on")
    axes.semilogx(steps, curves[:, 1, kind], "s-", label="6 others")
    axes.set(xlabel="steps of gradient ascent", title=title)
sides[0].legend(frameon=False)
plt.show()
