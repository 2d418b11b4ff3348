"""SynJax's names with JAX arrays say what they say with NumPy arrays, compiled and differentiated too."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import jax
from spantree.compat.synjax import SpanningTreeCRF

LENGTHS = np.array([5, 3, 2])


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("projective", [True, False])
@pytest.mark.parametrize("single_root_edge", [True, False])
def test_the_same_as_with_numpy(directed, projective, single_root_edge):
    settings = {"directed": directed, "projective": projective, "single_root_edge": single_root_edge}
    p, q = np.random.default_rng(0).normal(size=(2, 3, 5, 5))
    numpy, other = (SpanningTreeCRF(x, lengths=LENGTHS, **settings) for x in (p, q))

    def all_of(crf, against, events):
        return (
            crf.log_partition(),
            crf.log_count(),
            crf.entropy(),
            crf.marginals(),
            crf.log_marginals(),
            crf.cross_entropy(against),
            crf.kl_divergence(against),
            crf.argmax(),
            *crf.argmax_and_max(),
            *crf.top_k(3),
            crf.log_prob(events),
            crf.unnormalized_log_prob(events),
            crf.with_temperature(2.0).log_partition(),
            crf[1].log_partition(),
        )

    crf, against = (SpanningTreeCRF(jnp.asarray(x), lengths=LENGTHS, **settings) for x in (p, q))
    events = numpy.sample(0, 4)
    events[0, 0, 1, 1] = 1.0  # no tree
    expected = all_of(numpy, other, events)
    for mine, right in zip(jax.jit(all_of)(crf, against, events), expected, strict=True):
        np.testing.assert_allclose(mine, right, rtol=1e-12, atol=1e-12)
    drawn = crf.sample(jax.random.key(0), (2, 5))
    assert drawn.shape == (2, 5, 3, 5, 5)
    assert (numpy.log_prob(np.asarray(drawn)) > -np.inf).all()
    assert (np.asarray(crf.sample(jax.random.key(1), (2, 5))) != drawn).any()
    distinct, log_probs, _ = crf.sample_without_replacement(jax.random.key(0), 2)
    np.testing.assert_allclose(log_probs, numpy.log_prob(np.asarray(distinct)), atol=1e-12)


def test_gradients():
    scores = jnp.asarray(np.random.default_rng(1).normal(size=(4, 4)))

    def log_z(s):
        return SpanningTreeCRF(s, directed=True, projective=False, single_root_edge=True).log_partition()

    crf = SpanningTreeCRF(scores, directed=True, projective=False, single_root_edge=True)
    np.testing.assert_allclose(jax.grad(log_z)(scores), crf.marginals(), atol=1e-15)


@pytest.mark.parametrize("noise", ["Sum-of-Gamma", "Gumbel", "None", lambda key, shape: jnp.ones(shape)])
def test_perturbations(noise):
    scores = jnp.asarray(np.random.default_rng(2).normal(size=(2, 4, 4)))
    settings = {"directed": True, "projective": False, "single_root_edge": True, "lengths": np.array([4, 3])}
    crf, key = SpanningTreeCRF(scores, **settings), jax.random.key(3)
    moved = crf.with_perturbation(key, noise, 0.5)
    np.testing.assert_allclose(moved.log_potentials, (scores + crf._noise(key, noise)) / 0.5, rtol=1e-12)
    soft = crf.differentiable_sample(key, method="Perturb-and-Marginals", noise=noise, temperature=0.5)
    np.testing.assert_allclose(soft, moved.marginals(), rtol=1e-12)
    several = crf.differentiable_sample(key, method="Perturb-and-Marginals", noise=noise, sample_shape=(3,))
    assert several.shape == (3, 2, 4, 4)

    def loss(s):
        trees = SpanningTreeCRF(s, **settings).differentiable_sample(
            key, method="Perturb-and-MAP-Implicit-MLE", noise=noise, implicit_MLE_lr=2.0
        )
        return jnp.sum(trees * weights), trees

    weights = jnp.asarray(np.random.default_rng(4).normal(size=(2, 4, 4)))
    (_, trees), slope = jax.value_and_grad(loss, has_aux=True)(scores)
    eta = crf._noise(key, noise)
    best, other = (SpanningTreeCRF(s, **settings).argmax() for s in (scores + eta, scores + eta - 2.0 * weights))
    np.testing.assert_array_equal(trees, best)
    np.testing.assert_array_equal(slope, best - other)


def test_perturbations_without_jax():
    scores = np.random.default_rng(2).normal(size=(2, 4, 4))
    crf = SpanningTreeCRF(scores, directed=True, projective=False, single_root_edge=True)
    for noise in ("Sum-of-Gamma", "Gumbel", "None"):
        for method in ("Perturb-and-Marginals", "Perturb-and-MAP-Implicit-MLE"):
            drawn = crf.differentiable_sample(0, method=method, noise=noise, sample_shape=3)
            assert drawn.shape == (3, 2, 4, 4)
            np.testing.assert_allclose(drawn.sum(axis=(-2, -1)), 3.0, rtol=1e-12)
    with pytest.raises(ValueError, match="dynamic programming"):
        crf.differentiable_sample(0, method="Gumbel-CRF")


def test_sums_of_gamma_noise_are_gumbel_noise():
    """Mean and variance of 20,000 sums over three edges: within five standard errors, so one false alarm in 10^6."""
    scores = np.zeros((20_000, 4, 4))
    crf = SpanningTreeCRF(scores, directed=True, projective=False, single_root_edge=True)
    for noise in (
        crf._noise(0, "Sum-of-Gamma"),
        np.asarray(
            SpanningTreeCRF(jnp.asarray(scores), directed=True, projective=False, single_root_edge=True)._noise(
                jax.random.key(0), "Sum-of-Gamma"
            )
        ),
    ):
        sums = noise[:, 0, 1] + noise[:, 1, 2] + noise[:, 2, 3]
        mean = sum(1 / i for i in range(1, 11)) - np.log(10)  # of ten terms; Gumbel's: 0.577
        variance = sum(1 / i**2 for i in range(1, 11))  # Gumbel's: pi^2 / 6
        assert abs(sums.mean() - mean) < 5 * np.sqrt(variance / len(sums))
        assert abs(sums.var() - variance) < 5 * variance * np.sqrt(5.4 / len(sums))
