"""Pickled and copied distributions and results answer as the originals must."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import spantree
from oracle import quantities
from oracle.battery import KINDS, _complaints, distribution, sentences
from oracle.forms import FORMS

WAYS = {
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "oldest pickle": lambda x: pickle.loads(pickle.dumps(x, protocol=0)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("solved", [False, True])
def test_distributions(way, solved):
    for i, kind in enumerate(KINDS):
        for labels in (0, 3):
            form = FORMS[(5 * i + labels) % len(FORMS)]
            for batch in form.batches(sentences("ordinary", labels, np.float64)):
                dist = distribution(form, batch, kind)
                if solved:
                    dist.entropy(with_grad=True)
                same = WAYS[way](dist)
                assert repr(same) == repr(dist)
                for group in ("best trees", "log Z and marginals"):
                    for question in quantities.GROUPS[group]:
                        assert not list(_complaints(question, same, form, batch, kind)), question.name


@pytest.mark.parametrize("way", WAYS)
def test_results(way):
    dist = spantree.TreeDistribution(np.random.default_rng(0).normal(size=(3, 5, 5, 2)), labelled=True)
    trees = dist.topk(3)
    same = WAYS[way](trees)
    for part in ("heads", "scores", "labels"):
        np.testing.assert_array_equal(getattr(same, part), getattr(trees, part))
    drawn = dist.sample_without_replacement(3, rng=0)
    same = WAYS[way](drawn)
    for part in ("heads", "labels", "log_probs", "keys", "threshold", "log_remaining"):
        np.testing.assert_array_equal(getattr(same, part), getattr(drawn, part))
    f = lambda heads, labels: float(heads[1] == 0) + labels[2]  # noqa: E731
    np.testing.assert_array_equal(same.estimate(f), drawn.estimate(f))
    np.testing.assert_array_equal(same.gradient_weights(f), drawn.gradient_weights(f))


def test_infeasible_error_pickles():
    with pytest.raises(spantree.InfeasibleError) as caught:
        spantree.decode(np.full((2, 3, 3), -np.inf))
    same = pickle.loads(pickle.dumps(caught.value))
    assert (str(same), same.sentence, same.word) == (str(caught.value), caught.value.sentence, caught.value.word)
