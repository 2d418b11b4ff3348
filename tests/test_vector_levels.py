"""One binary serves every machine: all versions of its kernels give the same bits."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

QUESTIONS = """
import hashlib
import numpy as np
import spantree

rng = np.random.default_rng(0)
digest = hashlib.sha256()
for scale in (1.0, 30.0, 300.0):
    for dtype in (np.float32, np.float64):
        for count, n in ((9, 3), (20, 13), (2, 70)):
            scores = rng.normal(scale=scale, size=(count, n + 1, n + 1)).astype(dtype)
            for root in ("single", "multi"):
                dist = spantree.TreeDistribution(scores, root=root)
                entropy, gradient = dist.entropy(with_grad=True)
                for answer in (
                    dist.argmax(), dist.topk(3).heads, dist.log_partition(), dist.marginals(), entropy, gradient,
                    dist.sample(5, rng=1), dist.sample_without_replacement(3, rng=1).heads,
                    spantree.log_partition(scores, root=root), spantree.marginals(scores, root=root),
                ):
                    digest.update(np.ascontiguousarray(answer).tobytes())
    for labels in (3, 40):
        scores = rng.normal(scale=scale, size=(3, 15, 15, labels)).astype(np.float32)
        dist = spantree.TreeDistribution(scores, labelled=True)
        drawn, distinct = dist.sample(20, rng=1), dist.sample_without_replacement(20, rng=1)
        for answer in (drawn.heads, drawn.labels, distinct.heads, distinct.labels, distinct.log_probs):
            digest.update(np.ascontiguousarray(answer).tobytes())
print(digest.hexdigest())
"""


def answers(**environment):
    finished = subprocess.run(
        [sys.executable, "-c", QUESTIONS], env=os.environ | environment, capture_output=True, text=True, check=True
    )
    return finished.stdout


@pytest.mark.parametrize("level", ["avx2", "baseline"])
def test_same_bits_with_less_than_the_machine_has(level):
    assert answers(SPANTREE_VECTORS=level) == answers()
