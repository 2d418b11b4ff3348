"""
A maze
======

Not only parsing: with equal scores between neighbours, a random tree is a uniform spanning tree of a grid, and
that is a maze with exactly one way between any two places.
"""

import matplotlib.pyplot as plt
import numpy as np

import spantree

side = 20
cells = np.arange(1, side * side + 1).reshape(side, side)
scores = np.full((side * side + 1, side * side + 1), -np.inf)
for here, there in ((cells[1:], cells[:-1]), (cells[:, 1:], cells[:, :-1])):
    scores[here, there] = scores[there, here] = 0.0
scores[0, cells[0, 0]] = 0.0  # ROOT leads into one corner only

heads = spantree.sample(scores, rng=1)
figure, axes = plt.subplots(figsize=(5, 5), layout="constrained")
places = np.vstack([[-1, 0], np.argwhere(cells)])
for cell in range(1, side * side + 1):
    (y0, x0), (y1, x1) = places[heads[cell]], places[cell]
    axes.plot([x0, x1], [y0, y1], color="black", linewidth=5, solid_capstyle="round")
axes.set_aspect("equal")
axes.axis("off")
plt.show()
