"""Asks an installed spantree for a tree, a marginal and samples: the install test of `make wheels`."""

import platform
import sys
from importlib.metadata import version

import numpy as np

import spantree

SCORES = np.array([[0, 7, 8, 7], [0, 0, 4, 1], [0, 5, 0, 6], [0, 3, 2, 0.0]])
TREES = [[2, 0, 2], [0, 1, 2], [2, 0, 1], [3, 0, 2], [0, 1, 1], [0, 3, 1], [3, 1, 0], [2, 3, 0], [3, 3, 0]]  # all nine

weights = {tuple(heads): np.exp(sum(SCORES[h, d] for d, h in enumerate(heads, start=1))) for heads in TREES}
p = sum(w for heads, w in weights.items() if heads[0] == 2) / sum(weights.values())  # the head of word 1 is word 2

assert version("spantree") == spantree.__version__
assert spantree.decode(SCORES).tolist() == [-1, 2, 0, 2]
assert abs(spantree.marginals(SCORES)[2, 1] - p) < 1e-14
assert all(tuple(heads[1:]) in weights for heads in spantree.sample(SCORES, 20, rng=0).tolist())
where = f"Python {sys.version.split()[0]}, NumPy {np.__version__}, {platform.machine()}"
print(f"spantree {spantree.__version__} works: {where}")
