"""One binary serves every machine: all versions of its kernels give the same bits."""

from __future__ import annotations

import functools
import os
import subprocess
import sys

import pytest

QUESTIONS = """
import hashlib
import numpy as np
import spantree

rng = np.random.default_rng(0)
for scale in (1.0, 30.0, 300.0):
    for dtype in (np.float32, np.float64):
        for count, n in ((9, 3), (20, 13), (2, 70)):
            scores = rng.normal(scale=scale, size=(count, n + 1, n + 1)).astype(dtype)
            values = rng.normal(size=(*scores.shape, 3))
            for projective in (False, True):
                for root in ("single", "multi"):
                    settings = {"root": root, "projective": projective}
                    dist = spantree.TreeDistribution(scores, **settings)
                    other = spantree.TreeDistribution(scores[::-1], **settings)
                    best, drawn = dist.topk(3), dist.sample_without_replacement(3, rng=1)
                    entropy, by_scores = dist.entropy(with_grad=True)
                    one, by_scores_of_one = dist.expectation(values[..., 0], with_grad=True)
                    three, by_scores_of_three = dist.expectation(values, with_grad=True)
                    kl, by_scores_of_kl = dist.kl(other, with_grad=True)
                    answers = {
                        "argmax": dist.argmax(),
                        "decode": spantree.decode(scores, **settings),
                        "topk": best.heads,
                        "scores of topk": best.scores,
                        "log_prob of topk": dist.log_prob(best.heads),
                        "log_partition": dist.log_partition(),
                        "log_partition at once": spantree.log_partition(scores, **settings),
                        "marginals": dist.marginals(),
                        "marginals at once": spantree.marginals(scores, **settings),
                        "entropy": entropy,
                        "gradient of entropy": by_scores,
                        "expectation": one,
                        "gradient of expectation": by_scores_of_one,
                        "expectations": three,
                        "gradients of expectations": by_scores_of_three,
                        "covariance": dist.covariance(values[..., 0], values),
                        "kl": kl,
                        "gradient of kl": by_scores_of_kl,
                        "sample": dist.sample(5, rng=1),
                        "sample_without_replacement": drawn.heads,
                        "log_probs of those": drawn.log_probs,
                        "keys of those": drawn.keys,
                        "threshold of those": drawn.threshold,
                    }
                    kind = "projective" if projective else "any"
                    for name, answer in answers.items():
                        digest = hashlib.sha256(np.ascontiguousarray(answer).tobytes()).hexdigest()
                        print(f"{name}, {kind} trees, {root} root, {n} words, {dtype.__name__} * {scale}", digest)
    for labels in (3, 40):
        scores = rng.normal(scale=scale, size=(3, 15, 15, labels)).astype(np.float32)
        dist = spantree.TreeDistribution(scores, labelled=True)
        drawn, distinct = dist.sample(20, rng=1), dist.sample_without_replacement(20, rng=1)
        answers = {
            "marginals": dist.marginals(),
            "sample": drawn.heads,
            "labels of those": drawn.labels,
            "sample_without_replacement": distinct.heads,
            "labels of those, too": distinct.labels,
            "log_probs of those": distinct.log_probs,
        }
        for name, answer in answers.items():
            digest = hashlib.sha256(np.ascontiguousarray(answer).tobytes()).hexdigest()
            print(f"{name}, {labels} labels * {scale}", digest)
"""


@functools.cache
def answers(level=None):
    """A digest of every answer, by what was asked."""
    environment = os.environ if level is None else os.environ | {"SPANTREE_VECTORS": level}
    finished = subprocess.run(
        [sys.executable, "-c", QUESTIONS], env=environment, capture_output=True, text=True, check=True
    )
    return dict(line.rsplit(" ", 1) for line in finished.stdout.splitlines())


@pytest.mark.parametrize("level", ["avx2", "baseline"])
def test_same_bits_with_less_than_the_machine_has(level):
    want, found = answers(), answers(level)
    assert len(want) == 3 * (2 * 3 * 4 * 23 + 2 * 6)
    assert [what for what in want if found[what] != want[what]] == []
