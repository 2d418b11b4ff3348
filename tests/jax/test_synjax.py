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
