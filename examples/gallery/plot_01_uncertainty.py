"""
A tree with its uncertainty
===========================

The best tree above the words; below them, dashed, other heads with at least 10 % of the probability; a bar for the
entropy of each word's head. In a notebook the distribution draws itself.
"""

import spantree
from spantree.samples import load_samples

sample = load_samples()[0]
dist = spantree.TreeDistribution(sample.scores, words=sample.words)
print(dist.explain())

# %%
# Who has the telescope is an open question: 59 % of the probability say *saw*, 39 % *man*.

dist  # noqa: B018

# sphinx_gallery_thumbnail_path = "figures/parse.svg"
