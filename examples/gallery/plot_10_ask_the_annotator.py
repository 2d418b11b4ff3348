"""
Which word to ask an annotator about
====================================

Known heads change what the others may be. Asking for the head of the least certain word first leaves less
uncertainty than asking from left to right. ``condition(heads=...)`` is the exact distribution given those that are
known.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

import spantree

sys.path.insert(0, "../treebank")
import train

sentences = train.read()
scores = train.score(sentences)


def entropy_after(dist, gold, least_certain_first):
    """Entropy of a sentence after 0, 1, 2, ... of its heads are known."""
    known = np.full(len(gold), -2)
    known[0] = -1
    left = [float(dist.entropy())]
    while (known == -2).any():
        given = dist.condition(heads=known)
        sure = np.where(known == -2, given.marginals().max(axis=0), np.inf)
        word = sure.argmin() if least_certain_first else (known == -2).argmax()
        known[word] = gold[word]
        left.append(float(dist.condition(heads=known).entropy()))
    return left


figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for first, label in ((False, "from left to right"), (True, "the least certain first")):
    total = np.zeros(8)
    for one, matrix in zip(sentences, scores, strict=True):
        left = entropy_after(spantree.TreeDistribution(matrix), one.heads, first)
        total += np.pad(left, (0, 20))[:8]
    axes.plot(total, "o-", label=label)
axes.set(xlabel="heads asked for, in each sentence", ylabel="entropy left, 24 sentences, nats", ylim=(0, None))
axes.legend(frameon=False)
plt.show()
