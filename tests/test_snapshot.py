"""A distribution is a snapshot: later edits of what it was made from are never seen. And it pickles and copies."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import spantree
from questions import FORMS, KINDS, LAYOUTS, arrays, ask_everything, assert_same_bits, in_form


def sentences(seed, kind, dtype):
    rng = np.random.default_rng(seed)
    labels = (2,) if kind == "labelled" else ()
    return [rng.normal(size=(n + 1, n + 1, *labels)).astype(dtype) for n in (5, 3, 4)]


def made_and_untouched(form, kind, layout, dtype):
    """Distributions, values and another distribution; the arrays the first was made from; all of it once more."""
    results = []
    for _ in range(2):
        (scores, options), (others, _), (values, _) = (
            in_form(sentences(seed, kind, dtype), form, layout, filler=1.0) for seed in range(3)
        )
        for value in arrays(values):
            np.abs(value, out=value)
        dist, other = (spantree.TreeDistribution(given, **options, **KINDS[kind]) for given in (scores, others))
        results.append((dist, values, other, arrays([scores, others, options.get("lengths", [])])))
    return results


@pytest.mark.parametrize("poison", [np.nan, np.inf, -7])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMS)
def test_later_edits_are_never_seen(form, kind, layout, poison):
    for dtype in (np.float32, np.float64):
        (dist, values, other, given), (same, same_values, same_other, _) = made_and_untouched(form, kind, layout, dtype)
        for array in given:
            array[...] = poison if array.dtype.kind == "f" else 1
        assert_same_bits(ask_everything(dist, values, other), ask_everything(same, same_values, same_other))


def test_masks_and_conversions_are_snapshots_too():
    scores = np.random.default_rng(0).normal(size=(3, 5, 5))
    for given, options in [
        (scores.copy(), {"mask": np.ones(scores.shape, bool)}),
        (scores.astype(np.float16), {}),
        ((scores * 8).astype(int), {}),
        (scores.swapaxes(1, 2), {}),
        (scores.copy(), {"temperature": 2.0}),
        (scores.astype(">f8"), {}),
    ]:
        dist, same = (spantree.TreeDistribution(given, **options) for _ in range(2))
        expected = same.marginals()
        given[...] = 0
        for mask in options.values():
            if isinstance(mask, np.ndarray):
                mask[...] = False
        assert_same_bits(dist.marginals(), expected)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMS)
def test_scores_cannot_be_made_writeable(form, kind, layout):
    for dtype in (np.float16, np.float32, np.float64):
        scores, options = in_form(sentences(0, kind, dtype), form, layout, filler=1.0)
        dist = spantree.TreeDistribution(scores, **options, **KINDS[kind])
        for array, given in zip(arrays(dist.scores), arrays(scores), strict=True):
            np.testing.assert_array_equal(array, given)
            for view in (array, array[0], array.T, array.view()):
                with pytest.raises(ValueError, match="cannot set WRITEABLE flag"):
                    view.flags.writeable = True
        assert all(map(np.shares_memory, arrays(dist.scores), arrays(dist.scores)))


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMS)
def test_distributions_and_results_can_be_duplicated(form, kind, duplicate):
    (dist, values, other, _), _ = made_and_untouched(form, kind, "dep_head", np.float32)
    fresh = duplicate(dist)
    expected = ask_everything(dist, values, other)
    assert_same_bits(ask_everything(fresh, values, other), expected)
    assert_same_bits(ask_everything(duplicate(dist), values, duplicate(other)), expected)
    trees = dist.topk(2)
    assert_same_bits(duplicate(trees), trees)
    sample = dist.sample_without_replacement(2, rng=0)
    again = duplicate(sample)
    for name in ("heads", "log_probs", "keys", "threshold"):
        assert_same_bits(getattr(again, name), getattr(sample, name))
    assert_same_bits(again.estimate(lambda *tree: 1.0), sample.estimate(lambda *tree: 1.0))
