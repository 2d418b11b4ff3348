"""Random trees follow from their key alone, and from the right distribution."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from summed_trees import KINDS

import jax
import spantree
from spantree._core import entries
from spantree.jax import TreeDistribution

SCORES = np.random.default_rng(0).normal(size=(3, 5, 5))
KEYS = {
    "typed": lambda seed: jax.random.key(seed),
    "raw": lambda seed: jax.random.PRNGKey(seed),
    "rbg": lambda seed: jax.random.key(seed, impl="rbg"),
}


@pytest.mark.parametrize("kind", KEYS)
def test_the_same_key_gives_the_same_trees(kind):
    key, dist = KEYS[kind](0), TreeDistribution(SCORES)
    drawn = dist.sample(key, 20)
    assert drawn.shape == (20, 3, 5)
    np.testing.assert_array_equal(jax.jit(lambda d, k: d.sample(k, 20))(dist, key), drawn)
    np.testing.assert_array_equal(dist.sample(key, (4, 5)), drawn.reshape(4, 5, 3, 5))
    # A sentence's trees depend on its own key, whatever stands beside it.
    keys = jax.random.split(key, 3)
    alone = [TreeDistribution(scores).sample(k, 20) for scores, k in zip(SCORES, keys, strict=True)]
    np.testing.assert_array_equal(np.stack(alone, 1), drawn)
    mapped = jax.vmap(lambda s, k: TreeDistribution(s).sample(k, 20), out_axes=1)(SCORES, keys)
    np.testing.assert_array_equal(mapped, drawn)
    distinct = dist.sample_without_replacement(key, 5)
    compiled = jax.jit(lambda d, k: d.sample_without_replacement(k, 5))(dist, key)
    for x, y in zip(distinct, compiled, strict=True):
        assert (x is None and y is None) or (np.asarray(x) == np.asarray(y)).all()
    before = entries.default_threads()
    try:
        for threads in (1, 2):
            entries.set_default_threads(threads)
            np.testing.assert_array_equal(jax.jit(lambda d, k: d.sample(k, 20))(dist, key), drawn)
    finally:
        entries.set_default_threads(before)
    assert (np.asarray(dist.sample(KEYS[kind](1), 20)) != drawn).any()


def numbers(trees, all_heads):
    """Which row of `all_heads` each tree is."""
    where = {tuple(row): i for i, row in enumerate(np.asarray(all_heads).tolist())}
    return np.array([where[tuple(row)] for row in np.asarray(trees).reshape(-1, all_heads.shape[-1]).tolist()])


@pytest.mark.parametrize("kind", ["single", "multi", "projective", "projective-multi"])
def test_the_law(kind):
    """Four chi-square tests, each with a false-alarm rate of 1e-6; one key for each tree, as under vmap."""
    dist = TreeDistribution(SCORES[0, :4, :4], **KINDS[kind])
    k = 20_000
    best = dist.topk(16)
    there = np.asarray(best.scores) > -np.inf
    heads = np.asarray(best.heads)[there]
    p = np.exp(np.asarray(dist.log_prob(heads)))
    np.testing.assert_allclose(p.sum(), 1.0)
    keys = jax.random.split(jax.random.key(7), k // 2)
    one_each = jax.jit(jax.vmap(dist.sample))(keys)
    drawn = np.concatenate([one_each, dist.sample(jax.random.key(8), k // 2)])
    counts = np.bincount(numbers(drawn, heads), minlength=len(heads))
    assert stats.chisquare(counts, k * p).pvalue > 1e-6


def test_different_keys_are_independent():
    """Trees of one sentence under two keys: a chi-square test of independence, false-alarm rate 1e-6."""
    dist = TreeDistribution(np.zeros((3, 3)), root="multi")  # three trees
    keys = jax.random.split(jax.random.key(3), 10_000)
    first = np.asarray(jax.vmap(dist.sample)(keys))
    heads = np.asarray(dist.topk(3).heads)
    pairs = np.stack([numbers(first[:-1], heads), numbers(first[1:], heads)])
    table = np.zeros((3, 3))
    np.add.at(table, tuple(pairs), 1)
    assert stats.chi2_contingency(table).pvalue > 1e-6


def test_without_replacement():
    """Two chi-square tests, each with a false-alarm rate of 1e-6; all differ; all are there."""
    dist = TreeDistribution(SCORES[1, :4, :4])  # nine trees
    heads = np.asarray(dist.topk(9).heads)
    p = np.exp(np.asarray(dist.log_prob(heads)))
    keys = jax.random.split(jax.random.key(4), 5_000)
    drawn = jax.jit(jax.vmap(lambda key: dist.sample_without_replacement(key, 3)))(keys)
    which = numbers(drawn.heads, heads).reshape(5_000, 3)
    assert (np.sort(which)[:, 1:] > np.sort(which)[:, :-1]).all()
    assert stats.chisquare(np.bincount(which[:, 0], minlength=9), 5_000 * p).pvalue > 1e-6
    # The second given the first, over all pairs that should come up at least five times.
    expected = p[:, None] * p / (1.0 - p[:, None]) * 5_000
    np.fill_diagonal(expected, 0.0)
    counts = np.zeros((9, 9))
    np.add.at(counts, (which[:, 0], which[:, 1]), 1)
    large = expected >= 5.0
    rest = 5_000 - expected[large].sum(), 5_000 - counts[large].sum()
    assert stats.chisquare([*counts[large], rest[1]], [*expected[large], rest[0]]).pvalue > 1e-6
    np.testing.assert_allclose(drawn.log_probs, dist.log_prob(drawn.heads))
    everything = dist.sample_without_replacement(jax.random.key(5), 11)
    assert (np.asarray(everything.heads[9:]) == -1).all()
    np.testing.assert_allclose(everything.estimate(jnp.ones(11)), 1.0)
    gradient = jax.grad(lambda s: dist.with_scores(s).sample_without_replacement(jax.random.key(5), 2).log_probs.sum())
    of_trees = jax.grad(lambda s: dist.with_scores(s).log_prob(everything.heads[:2]).sum())
    np.testing.assert_allclose(gradient(dist.scores), of_trees(dist.scores), atol=1e-14)


def test_labels():
    scores = np.random.default_rng(1).normal(size=(2, 4, 4, 3))
    dist = TreeDistribution(scores, lengths=[3, 2], labelled=True)
    drawn = dist.sample(jax.random.key(0), 7)
    assert (np.asarray(dist.log_prob(drawn)) > -np.inf).all()
    assert (np.asarray(drawn.labels)[:, 1, 3] == -1).all()
    assert isinstance(drawn, spantree.Trees)
    distinct = dist.sample_without_replacement(jax.random.key(0), 4)
    np.testing.assert_allclose(distinct.log_probs, dist.log_prob(distinct.heads, distinct.labels))


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("labelled", [False, True])
def test_random_trees_one_by_one(kind, labelled):
    """Those of `sample_without_replacement`, until none is left."""
    scores = SCORES[0, :4, :4]
    dist = TreeDistribution(np.stack([scores, -scores], -1) if labelled else scores, labelled=labelled)
    trees = list(dist.iter_without_replacement(KEYS[kind](0)))
    assert len(trees) == (9 * 2**3 if labelled else 9)
    drawn = dist.sample_without_replacement(KEYS[kind](0), len(trees))
    np.testing.assert_array_equal([tree.heads for tree in trees], drawn.heads)
    if labelled:
        np.testing.assert_array_equal([tree.labels for tree in trees], drawn.labels)
    np.testing.assert_allclose([tree.scores for tree in trees], drawn.log_probs, rtol=1e-13)
    with pytest.raises(ValueError, match="takes one sentence"):
        TreeDistribution(SCORES).iter_without_replacement(KEYS[kind](0))
