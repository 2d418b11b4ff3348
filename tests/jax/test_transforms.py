"""Transformations of JAX, alone and on top of each other, give what loops and sums give."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from summed_trees import KINDS

import jax
import spantree.jax
from spantree.jax import TreeDistribution, _ffi


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


BOTH = ("fwd", "rev")
HEADS = np.array([[-1, 2, 0, 2], [-1, 0, 1, 1]])


@pytest.mark.parametrize("kind", ["single", "multi", "projective"])
def test_log_partition_to_third_order(kind):
    check_grads(lambda s: TreeDistribution(s, **KINDS[kind]).log_partition(), (normal(2, 4, 4),), 3, BOTH)


@pytest.mark.parametrize("kind", ["single", "multi"])
def test_the_others_to_second_order(kind):
    def all_of(p, q, values):
        dist, other = TreeDistribution(p, **KINDS[kind]), TreeDistribution(q, **KINDS[kind])
        numbers = (
            dist.entropy(),
            dist.cross_entropy(other),
            dist.kl(other),
            dist.log_prob(HEADS),
            dist.expectation(values),
        )
        return jnp.stack(numbers), dist.marginals()

    check_grads(jax.jit(all_of), tuple(normal(3, 2, 4, 4)), 2, BOTH)


@pytest.mark.parametrize("kind", ["projective", "labelled-multi"])
def test_covariance_to_second_order(kind):
    """Which is the fourth derivative of log Z."""

    def covariance(scores, r, s):
        return TreeDistribution(scores, **KINDS[kind]).covariance(r, s)

    check_grads(jax.jit(covariance), tuple(normal(3, 3, 3, *(2,) * KINDS[kind].get("labelled", False))), 2, BOTH)


def everything(dist):
    """As a pytree; what is random apart."""
    best = dist.topk(2)
    numbers = dist.log_partition(), dist.entropy(), dist.max(), dist.log_prob(best.heads[1])
    return (*numbers, dist.marginals(), best.heads, best.scores)


def assert_same(found, expected, **tolerance):
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(x, y, **({"rtol": 0, "atol": 0} | tolerance))


def test_vmap_is_a_loop():
    """Nested, over any axis, over scores and lengths or one of them: the same bits."""
    scores, lengths = normal(2, 3, 5, 5), np.array([[4, 3, 2], [1, 4, 3]])

    def ask(s, n):
        return everything(TreeDistribution(s, lengths=n))

    expected = [[ask(scores[i, j], lengths[i, j]) for j in range(3)] for i in range(2)]
    expected = jax.tree.map(lambda *x: np.stack(x), *(jax.tree.map(lambda *x: np.stack(x), *row) for row in expected))
    assert_same(jax.jit(jax.vmap(jax.vmap(ask)))(scores, lengths), expected)
    turned = np.moveaxis(scores, (0, 1), (3, 1))  # axes (node, j, node, i)
    mapped = jax.vmap(jax.vmap(ask, in_axes=(1, 0)), in_axes=(3, 0))
    assert_same(mapped(turned, lengths), expected)
    one_length = jax.vmap(lambda s: ask(s, np.array([4, 4, 4])), in_axes=0)(scores)
    at_once = ask(scores, np.full((2, 3), 4))
    moved = [np.moveaxis(x, 0, 1) if i > 4 else x for i, x in enumerate(at_once)]  # the two best stand first
    assert_same(one_length, [np.moveaxis(np.asarray(x), 0, 0) for x in moved])


def test_vmap_over_values_and_trees_only():
    scores, values, heads = normal(2, 4, 4), normal(5, 2, 4, 4, seed=1), np.stack([HEADS, HEADS[::-1]])
    dist = TreeDistribution(scores)
    assert_same(jax.vmap(dist.expectation)(values), np.stack([dist.expectation(v) for v in values]))
    assert_same(jax.vmap(dist.log_prob)(heads), dist.log_prob(heads))
    covariances = np.stack([dist.covariance(v, "edges") for v in values])
    assert_same(jax.vmap(lambda v: dist.covariance(v, "edges"))(values), covariances)


def test_jacobians():
    scores = normal(4, 4)

    def marginals(s):
        return TreeDistribution(s).marginals()

    forward, reverse = jax.jacfwd(marginals)(scores), jax.jacrev(marginals)(scores)
    np.testing.assert_allclose(forward, reverse, atol=1e-15)
    hessian = jax.hessian(lambda s: TreeDistribution(s).log_partition())(scores)
    np.testing.assert_allclose(hessian, forward, atol=1e-15)
    np.testing.assert_allclose(jax.jacfwd(jax.jacrev(jax.grad(lambda s: TreeDistribution(s).log_partition())))(scores),
                               jax.jacrev(jax.jacfwd(marginals))(scores), atol=1e-14)  # fmt: skip


def test_scan_map_checkpoint_and_donation():
    scores = normal(3, 2, 4, 4)
    expected = np.stack([TreeDistribution(s).log_partition() for s in scores])

    def step(total, s):
        log_z = TreeDistribution(s).log_partition()
        return total + log_z, log_z

    total, each = jax.lax.scan(step, jnp.zeros(2), scores)
    assert_same(each, expected)
    np.testing.assert_allclose(total, expected.sum(0))
    assert_same(jax.lax.map(lambda s: TreeDistribution(s).log_partition(), scores), expected)
    through = jax.grad(lambda s: jax.lax.scan(jax.checkpoint(step), jnp.zeros(2), s)[0].sum())(scores)
    assert_same(through, TreeDistribution(scores).marginals())
    given = jnp.array(scores[0])
    moved = jax.jit(lambda s: s - 0.1 * TreeDistribution(s).marginals(), donate_argnums=0)(given)
    assert_same(moved, scores[0] - 0.1 * np.asarray(TreeDistribution(scores[0]).marginals()), atol=1e-15)


def test_one_call_gives_value_and_gradient():
    step = jax.jit(jax.value_and_grad(lambda s: TreeDistribution(s).log_partition().sum()))
    text = step.lower(normal(2, 4, 4)).as_text()
    assert text.count(f"@{_ffi.target('log_partition')}") == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("no_doubles")
def test_single_precision_is_double_inside(kind):
    """float32 in and out, the core's doubles between: each number the rounded one of the NumPy side."""
    scores = normal(3, 5, 5, 2) if "labelled" in kind else normal(3, 5, 5)
    dist = TreeDistribution(100.0 * scores.astype(np.float32), **KINDS[kind])
    other = dist.numpy()
    assert dist.log_partition().dtype == jnp.float32
    np.testing.assert_array_equal(dist.log_partition(), other.log_partition())
    np.testing.assert_array_equal(dist.marginals(), other.marginals())
    np.testing.assert_array_equal(dist.entropy(), other.entropy())
    gradient = jax.grad(lambda d: d.entropy().sum(), allow_int=True)(dist)
    tiny = np.finfo(np.float32).tiny  # XLA multiplies by the slope of the sum, and takes less than this for 0
    np.testing.assert_allclose(gradient.scores, other.entropy(with_grad=True)[1], rtol=0, atol=tiny)
    assert TreeDistribution(jnp.zeros((3, 3), jnp.bfloat16)).log_partition().dtype == jnp.bfloat16
    assert TreeDistribution(np.zeros((3, 3), int)).log_partition().dtype == jnp.float32


def test_a_distribution_is_a_pytree():
    dist = TreeDistribution(normal(2, 4, 4), lengths=[3, 2], root="multi", layout="dep_head")
    leaves, structure = jax.tree.flatten(dist)
    assert len(leaves) == 2
    again = jax.tree.unflatten(structure, leaves)
    assert (again.root, again.projective, again.labelled, again.batch_shape) == ("multi", False, False, (2,))
    assert_same(jax.jit(lambda d: d)(dist).marginals(), dist.marginals())
    assert jax.tree.structure(dist) != jax.tree.structure(TreeDistribution(normal(2, 4, 4), lengths=[3, 2]))
    repr(jax.tree.unflatten(structure, [None, object()]))
    assert_same(dist[1].marginals(), dist.marginals()[1])
    assert len(dist) == 2
    mapped = jax.vmap(lambda d: d.entropy())(dist)
    assert_same(mapped, dist.entropy())


def test_masks():
    scores, lengths = normal(2, 4, 4), np.array([3, 1])
    words = np.arange(1, 4) <= lengths[:, None]
    expected = TreeDistribution(scores, lengths=lengths).marginals()
    assert_same(TreeDistribution(scores, mask=words).marginals(), expected)
    assert_same(jax.jit(lambda m: TreeDistribution(scores, mask=m).marginals())(words), expected)
    edges = normal(2, 4, 4, seed=3) > -0.5
    edges[:, 0] = True
    assert_same(
        TreeDistribution(scores, mask=edges).marginals(),
        TreeDistribution(np.where(edges, scores, -np.inf)).marginals(),
    )


def test_export():
    scores = normal(2, 4, 4)
    function = jax.jit(lambda s: everything(TreeDistribution(s)))
    names = ("log_partition", "entropy", "argmax", "topk", "log_prob")
    checks = [jax.export.DisabledSafetyCheck.custom_call(_ffi.target(name)) for name in names]
    stored = jax.export.export(function, disabled_checks=checks)(scores)
    assert_same(stored.call(scores), function(scores))


SHARDED = """
import numpy as np, jax, jax.numpy as jnp
from functools import partial
from jax.sharding import Mesh, PartitionSpec as P
from spantree.jax import TreeDistribution
shard_map = getattr(jax, "shard_map", None) or __import__("jax.experimental.shard_map").experimental.shard_map.shard_map
assert len(jax.devices()) == 2
mesh = Mesh(np.array(jax.devices()), ("batch",))
scores = np.random.default_rng(0).normal(size=(4, 6, 6)).astype(np.float32)
alone = TreeDistribution(scores)
checks = ({}, {"check_vma": False}) if hasattr(jax, "shard_map") else ({"check_rep": False},)
for check in checks:
    @jax.jit
    @partial(shard_map, mesh=mesh, in_specs=P("batch"), out_specs=(P("batch"), P("batch"), P("batch")), **check)
    def step(scores):
        log_z, back = jax.vjp(lambda s: TreeDistribution(s).log_partition(), scores)
        return log_z, back(jnp.ones_like(log_z))[0], jax.grad(lambda s: TreeDistribution(s).entropy().sum())(scores)

    log_z, marginals, slopes = step(scores)
    np.testing.assert_array_equal(log_z, alone.log_partition())
    np.testing.assert_array_equal(marginals, alone.marginals())
    np.testing.assert_array_equal(slopes, jax.grad(lambda s: TreeDistribution(s).entropy().sum())(scores))
    assert "all-gather" not in step.lower(scores).compile().as_text()
print("the same")
"""


def test_shards_of_a_batch_on_two_devices(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=2")
    done = subprocess.run([sys.executable, "-c", SHARDED], capture_output=True, text=True, check=False)
    assert done.stdout == "the same\n", done.stderr


def test_losses_have_the_names_and_arguments_of_torch():
    torch_side = pytest.importorskip("spantree.torch")
    from inspect import signature

    for name in spantree.jax.__all__:
        if name.endswith("_loss"):
            ours, theirs = (list(signature(getattr(side, name)).parameters) for side in (spantree.jax, torch_side))
            assert ours == theirs


def test_losses():
    scores, other = normal(2, 2, 4, 4)
    numpy, teacher = spantree.TreeDistribution(scores), spantree.TreeDistribution(other)
    mean = partial(np.testing.assert_allclose, rtol=1e-12)
    mean(spantree.jax.tree_crf_loss(scores, HEADS), -numpy.log_prob(HEADS).mean())
    mean(spantree.jax.risk_loss(scores, HEADS), numpy.risk(HEADS).mean())
    mean(spantree.jax.entropy_loss(scores, reduction="sum"), numpy.entropy().sum())
    mean(spantree.jax.distillation_loss(scores, other), teacher.kl(numpy).mean())
    mean(
        spantree.jax.generalized_expectation_loss(scores, other, 1.0), numpy.generalized_expectation(other, 1.0).mean()
    )
    unknown = np.where(np.arange(4) == 2, -100, HEADS)
    partly = numpy.log_prob(np.where(unknown == -100, -2, unknown), partial=True)
    mean(spantree.jax.tree_crf_loss(scores, unknown, ignore_index=-100, reduction="none"), -partly)
    costly = scores + (np.arange(4)[:, None] != HEADS[:, None, :])
    hinge = spantree.TreeDistribution(costly).max() - numpy.score(HEADS)
    mean(spantree.jax.hinge_loss(scores, HEADS, reduction="none"), hinge)
    with pytest.raises(ValueError, match="reduction"):
        spantree.jax.entropy_loss(scores, reduction="average")


def test_constants_inside_of_a_compiled_program():
    """A teacher's scores, or lengths, are known when a program is traced; what is asked of them is not."""
    scores, lengths = jnp.asarray(normal(2, 4, 4)), jnp.array([3, 2], jnp.int32)
    words = jnp.array([[True, True, True], [True, True, False]])
    dist = TreeDistribution(scores, lengths=lengths)
    wanted = [dist.kl(dist.with_scores(2.0 * scores)), dist.entropy(), dist.log_partition()]
    fresh = partial(TreeDistribution, lengths=lengths)
    for make in (fresh, partial(TreeDistribution, mask=words)):
        found = jax.jit(
            lambda s, make=make: (fresh(s).kl(make(2.0 * s)), make(scores).entropy(), make(s).log_partition())
        )(scores)
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)
    jitted = jax.jit(lambda key: fresh(scores).sample(key))(jax.random.key(0))
    np.testing.assert_array_equal(jitted, dist.sample(jax.random.key(0)))
    unasked = fresh(jnp.full((2, 4, 4), -jnp.inf))
    assert jax.jit(lambda x: x + unasked.log_partition())(0.0).tolist() == [-jnp.inf, -jnp.inf]
    with pytest.raises(spantree.InfeasibleError):
        unasked.log_partition()
