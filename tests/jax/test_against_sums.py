"""Every quantity, its gradient and its second derivative, against sums over all trees."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from summed_trees import KINDS, LENGTHS, problem, summed

import jax
import spantree.jax
from spantree import Trees

KIND = pytest.mark.parametrize("kind", KINDS)


def ours(kind, scores, other, values, heads, labels, partial):
    """All quantities, (quantities, sentences)."""
    p, q = (spantree.jax.TreeDistribution(x, lengths=LENGTHS, **KINDS[kind]) for x in (scores, other))
    gold = heads if labels is None else Trees(jnp.asarray(heads), labels=jnp.asarray(labels))
    return jnp.stack(
        [
            p.log_partition(),
            p.entropy(),
            p.cross_entropy(q),
            q.cross_entropy(p),
            p.kl(q),
            q.kl(p),
            p.log_prob(gold),
            p.log_prob(partial, partial=True),
            p.score(gold),
            p.max(),
            p.topk(2).scores[0],
            p.expectation(values),
            p.expectation(jnp.stack([values, values * values], -1))[..., 1],
            p.product_expectation(jnp.exp(values)),
            p.risk(gold),
            p.renyi_entropy(2.0),
            p.norm(3.0),
            spantree.jax.tree_crf_loss(
                scores, heads, labels=labels, lengths=LENGTHS, reduction="none", **without_labels(kind)
            ),
        ]
    )


def without_labels(kind):
    return {name: value for name, value in KINDS[kind].items() if name != "labelled"}


def by_sums(kind, scores, other, values, heads, labels, partial):
    allowed = ~np.isneginf(problem(kind)[0])
    rows = []
    for i, (e, o) in enumerate(zip(summed(kind, scores, allowed), summed(kind, other, allowed), strict=True)):
        n = LENGTHS[i]
        row = None if labels is None else labels[i, : n + 1]
        gold, known = e.agrees(heads[i, : n + 1], row), e.agrees(partial[i, : n + 1])
        of_edges = e.sums(values[i])
        right = e.agrees_count(heads[i, : n + 1], row) / n
        rows.append(
            [
                e.log_z,
                -e.mean(e.log_probs),
                -e.mean(o.log_probs),
                -o.mean(e.log_probs),
                e.mean(e.log_probs - o.log_probs),
                o.mean(o.log_probs - e.log_probs),
                e.log_probs[gold].sum(),
                jnp.log(e.probs[known].sum()),
                e.scores[gold].sum(),
                e.scores.max(),
                e.scores.max(),
                e.mean(of_edges),
                e.mean(e.sums(values[i] ** 2)),
                e.mean(jnp.exp(of_edges)),
                1.0 - e.mean(right),
                -jnp.log(jnp.sum(e.probs**2)),
                jnp.sum(e.probs**3) ** (1 / 3),
                -e.log_probs[gold].sum(),
            ]
        )
    return jnp.array(rows).T


@KIND
def test_derivatives(kind):
    """Value, gradient of a weighted sum over sentences for each quantity, and its product with a direction."""
    given = problem(kind)
    rng = np.random.default_rng(1)
    weights, direction = rng.normal(size=3), rng.normal(size=given[0].shape)

    def all_of(quantities, scores):
        def gradient(scores):
            value, back = jax.vjp(lambda s: quantities(kind, s, *given[1:]), scores)
            each = jnp.eye(len(value))[:, :, None] * weights
            return value, jax.vmap(lambda slope: back(slope)[0])(each)

        (value, first), (_, second) = jax.jvp(gradient, (scores,), (direction,))
        return value, first, second

    found = jax.jit(lambda scores: all_of(ours, scores))(given[0])
    numbers = np.where(np.isfinite(given[0]), given[0], 0.0)  # what is forbidden is in no tree of the sum
    expected = jax.jit(lambda scores: all_of(by_sums, scores))(numbers)
    for mine, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, right, rtol=1e-10, atol=1e-10)


@KIND
def test_derivatives_of_marginals(kind):
    scores, _, values, *_ = problem(kind)
    direction = np.random.default_rng(1).normal(size=scores.shape)
    allowed = ~np.isneginf(scores)

    def of_sums(scores):
        found = jnp.zeros(scores.shape)
        for i, e in enumerate(summed(kind, scores, allowed)):
            found = found.at[i, : LENGTHS[i] + 1, : LENGTHS[i] + 1].set(e.marginals)
        return found

    def all_of(marginals, scores):
        def gradient(scores):
            value, back = jax.vjp(marginals, scores)
            return value, back(values)[0]

        (value, first), (_, second) = jax.jvp(gradient, (scores,), (direction,))
        return value, first, second

    dist = jax.tree_util.Partial(spantree.jax.TreeDistribution, lengths=LENGTHS, **KINDS[kind])
    found = jax.jit(lambda scores: all_of(lambda s: dist(s).marginals(), scores))(scores)
    expected = jax.jit(lambda scores: all_of(of_sums, scores))(np.where(allowed, scores, 0.0))
    for mine, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, right, rtol=1e-10, atol=1e-10)


@KIND
def test_the_numpy_side_says_the_same(kind):
    scores, _, values, _, _, partial = problem(kind)
    dist = spantree.jax.TreeDistribution(scores, lengths=LENGTHS, **KINDS[kind])
    other = dist.numpy()
    for mine, right in ((dist.argmax(), other.argmax()), (dist.mbr(), other.mbr()), (dist.mode, other.mode)):
        np.testing.assert_array_equal(mine, right)
    np.testing.assert_array_equal(dist.topk(4).heads, other.topk(4).heads)
    np.testing.assert_allclose(dist.topk(4).scores, other.topk(4).scores)
    best, probability = dist.complete(partial)
    expected, of_expected = other.complete(partial)
    np.testing.assert_array_equal(best, expected)
    np.testing.assert_allclose(probability, of_expected)
    np.testing.assert_allclose(dist.covariance(values, "edges"), other.covariance(values, "edges"), atol=1e-12)
    pairs = np.stack([values, values**2], -1)
    np.testing.assert_allclose(dist.covariance(pairs, values), other.covariance(pairs, values), atol=1e-12)
    np.testing.assert_allclose(dist.second_moment(pairs, pairs), other.second_moment(pairs, pairs), atol=1e-12)
    turned = spantree.jax.TreeDistribution(np.swapaxes(scores, 1, 2), lengths=LENGTHS, layout="dep_head", **KINDS[kind])
    np.testing.assert_array_equal(turned.marginals(), np.swapaxes(dist.marginals(), 1, 2))
    given = dist.condition(include=[(0, 1)])
    np.testing.assert_allclose(given.log_partition(), other.condition(include=[(0, 1)]).log_partition())


def test_renyi_entropies_near_one():
    scores = problem("single", padding=0.0)[0]
    dist = spantree.jax.TreeDistribution(scores, lengths=LENGTHS)
    for alpha in (1 - 1e-6, 1.0, 1 + 1e-9, np.inf, 0.0):
        np.testing.assert_allclose(dist.renyi_entropy(alpha), dist.numpy().renyi_entropy(alpha), rtol=1e-9, atol=1e-9)
