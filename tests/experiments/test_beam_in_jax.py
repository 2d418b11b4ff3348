"""SBS-SWOR in JAX draws what drawing without replacement draws."""

from __future__ import annotations

import sys

import numpy as np
from tree_oracle import FALSE_ALARM, all_trees, random_scores

import jax
from oracle.chi_square import p_value
from spantree.experiments.beam_in_jax import sbs_swor
from spantree.experiments.lab import Lab
from spantree.experiments.unbiased_sampling import in_jax


def test_trees_are_distinct_and_have_their_probabilities():
    scores = np.nan_to_num(random_scores(5, seed=1), posinf=0.0)
    trees = all_trees(scores, "single")
    heads, log_probs = sbs_swor(np.float32(scores), jax.random.key(0), 40)
    rows = trees.index(heads)
    assert len(set(rows[rows >= 0].tolist())) == 40
    # single precision, and an update of the inverse for each word
    np.testing.assert_allclose(log_probs, np.log(trees.probs[rows]), atol=1e-4)


def test_the_first_two_are_drawn_one_after_the_other():
    scores = np.nan_to_num(random_scores(3, seed=2), posinf=0.0)
    trees = all_trees(scores, "single")
    draw = jax.jit(jax.vmap(lambda key: sbs_swor(np.float32(scores), key, 2)[0]))
    heads = np.asarray(draw(jax.random.split(jax.random.key(3), 5000)))
    first, second = trees.index(heads[:, 0]), trees.index(heads[:, 1])
    p = trees.probs
    pairs = np.outer(p / (1.0 - p), p)
    np.fill_diagonal(pairs, 0.0)
    assert (first != second).all()
    observed = np.zeros_like(pairs)
    np.add.at(observed, (first, second), 1.0)
    possible = pairs > 0.0
    assert p_value(observed[possible], pairs[possible]) > FALSE_ALARM


def test_without_jax_the_section_is_left_out(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "spantree.experiments.beam_in_jax", None)
    monkeypatch.delattr("spantree.experiments.beam_in_jax", raising=False)
    assert in_jax(Lab("unbiased-sampling", tmp_path)) == []
