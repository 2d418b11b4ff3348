"""Programs for devices that the core does not run on, run on the CPU: array operations and calls back to the host."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from summed_trees import KINDS, LENGTHS, problem

import jax
import spantree
from spantree.jax import TreeDistribution, _elsewhere, _ffi, _host, _walk
from spantree.jax import _primitives as ask


def asked(kind):
    """Arguments of every question: scores and lengths, then those after them."""
    scores, other, values, heads, labels, partial = problem(kind, padding=0.0)
    dist = TreeDistribution(scores, lengths=LENGTHS, **KINDS[kind])
    lengths = jnp.asarray(LENGTHS, jnp.int32)
    labels = heads[:, :0] if labels is None else labels
    unknown = np.full_like(labels, -2)
    several = np.stack([heads, partial]), np.stack([labels, labels])
    keys = jax.random.key_data(jax.random.split(jax.random.key(0), 3))
    questions = {
        ask._log_partition_p: (),
        ask._solve_p: (),
        ask._hessian_p: (np.stack([values, values**2]),),
        ask._third_p: (values, other),
        ask._entropy_p: (),
        ask._expectation_p: (values,),
        ask._cross_entropy_p: (other,),
        ask._kl_p: (other,),
        ask._crf_loss_p: (partial, unknown),
        ask._log_prob_p: several,
        ask._argmax_p: (),
        ask._topk_p: (),
        ask._sample_p: (keys,),
        ask._distinct_p: (keys,),
    }
    return dist._form, (dist._scores, lengths), questions


def params(primitive, form):
    more = {"k": 2} if primitive in (ask._topk_p, ask._sample_p, ask._distinct_p) else {}
    return {"form": form} | more | ({"partial": True} if primitive is ask._crf_loss_p else {})


def handler_of(primitive):
    name = primitive.name.removeprefix("spantree_")
    return {"solve": "log_partition"}.get(name, name)


@pytest.mark.parametrize("kind", ["single", "labelled-multi"])
def test_array_operations_and_the_core(kind):
    """All sums over trees, to 1e-10."""
    form, given, questions = asked(kind)
    for primitive, more in questions.items():
        handler = handler_of(primitive)
        if handler in _elsewhere._SUMS:
            expected = primitive.bind(*given, *more, **params(primitive, form))
            found = jax.jit(lambda *a, h=handler, e=expected: _elsewhere.answer(h, e, *a, form=form))(*given, *more)
            for mine, right in zip(found, expected, strict=True):
                np.testing.assert_allclose(mine, right, rtol=1e-10, atol=1e-10, err_msg=handler)


@pytest.mark.parametrize("kind", KINDS)
def test_the_host_and_the_core(kind):
    """All questions, to the last bit."""
    form, given, questions = asked(kind)
    for primitive, more in questions.items():
        expected = primitive.bind(*given, *more, **params(primitive, form))
        found = _host.answer(handler_of(primitive), expected, form, *given, *more)
        for mine, right in zip(found, expected, strict=True):
            np.testing.assert_array_equal(mine, right, err_msg=primitive.name)


@pytest.mark.parametrize("single", [True, False])
def test_marginals_at_any_scale(single):
    """Sizes on both sides of where chains are cut, sharp scores, forbidden edges, against the core: to 1e-10."""
    solve = jax.jit(lambda s, n: _walk.solve(s, n, single))
    rng = np.random.default_rng(0)
    for nodes in (3, 10):
        scores = rng.normal(size=(40, nodes, nodes)) * np.repeat([1.0, 10.0, 50.0, 100.0], 10)[:, None, None]
        scores[::2][rng.random(scores[::2].shape) < 0.4] = -np.inf
        lengths = rng.integers(0, nodes, size=40)
        log_z, marginals = solve(scores, lengths)
        numpy = spantree.TreeDistribution(
            scores, lengths=lengths, root="single" if single else "multi", on_infeasible="mask"
        )
        np.testing.assert_allclose(log_z, numpy.log_partition(), rtol=1e-12, atol=1e-10)
        np.testing.assert_allclose(marginals, numpy.marginals(), rtol=1e-10, atol=1e-300)


def test_what_underflows_is_said():
    scores = np.zeros((4, 3, 3))
    scores[0, 0] = -2000.0  # a constant of the root scores: nothing is lost that was not the same for all trees
    scores[1, 0, 1] = scores[1, 0, 2] = -1e4  # both root edges, relative to the words' others
    scores[2, 0, 2] = -1e30  # a soft mask
    scores[3, :, 1] = -np.inf  # no tree
    for single in (True, False):
        log_z, marginals = _walk.solve(jnp.asarray(scores), jnp.full(4, 2), single)
        assert np.isnan(log_z[:2]).all()
        assert np.isnan(marginals[:2]).any()
        root = "single" if single else "multi"
        soft = spantree.TreeDistribution(scores[2], root=root)
        np.testing.assert_allclose(log_z[2], soft.log_partition())
        np.testing.assert_allclose(marginals[2], soft.marginals(), atol=1e-300)
        assert log_z[3] == -np.inf
        assert not marginals[3].any()


def test_programs_for_other_devices():
    """Lowered for a GPU, which need not be there: sums over trees stay on it, best trees call back."""
    scores = jax.ShapeDtypeStruct((2, 4, 4), np.float64)
    sums = jax.jit(jax.value_and_grad(lambda s: TreeDistribution(s).log_partition().sum()))
    text = jax.export.export(sums, platforms=["cuda"])(scores).mlir_module()
    assert "custom_call" not in text
    both = jax.export.export(
        sums,
        platforms=["cpu", "cuda"],
        disabled_checks=[jax.export.DisabledSafetyCheck.custom_call(_ffi.target("log_partition"))],
    )(scores)
    assert _ffi.target("log_partition") in both.mlir_module()


def test_best_trees_through_the_host():
    form, given, _ = asked("single")
    expected = ask.argmax(*given, form)
    found = jax.jit(lambda *a: _elsewhere.answer("argmax", expected, *a, form=form))(*given)
    for mine, right in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, right)
