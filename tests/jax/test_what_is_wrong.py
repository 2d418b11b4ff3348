"""Sentences without trees, bad scores and bad calls: masked where values are traced, said where they are not."""

from __future__ import annotations

import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import checkify

import jax
import spantree
from spantree import _core
from spantree.jax import TreeDistribution, _ffi

SCORES = np.random.default_rng(0).normal(size=(3, 4, 4))
NO_TREE, BAD = SCORES.copy(), SCORES.copy()
NO_TREE[1, :, 2] = -np.inf
BAD[2, 1, 3] = np.nan


def all_of(scores):
    dist = TreeDistribution(scores)
    key = jax.random.key(0)
    return {
        "log_z": dist.log_partition(),
        "marginals": dist.marginals(),
        "entropy": dist.entropy(),
        "heads": dist.argmax(),
        "best": dist.topk(2).heads[0],
        "sample": dist.sample(key),
        "distinct": dist.sample_without_replacement(key, 2).heads[0],
        "max": dist.max(),
    }


@pytest.mark.parametrize(("scores", "which", "log_z"), [(NO_TREE, 1, -np.inf), (BAD, 2, np.nan)])
def test_traced_sentences_go_on(scores, which, log_z):
    found, fine = jax.jit(all_of)(scores), jax.jit(all_of)(SCORES)
    np.testing.assert_array_equal(found["log_z"][which], log_z)
    assert not found["marginals"][which].any()
    assert np.isnan(found["entropy"][which])
    assert found["max"][which] == -np.inf
    for name in ("heads", "best", "sample", "distinct"):
        assert (np.asarray(found[name][which]) == -1).all()
    others = np.arange(3) != which
    for name, value in found.items():
        np.testing.assert_array_equal(value[others], fine[name][others])

    def masked_loss(s):
        dist = TreeDistribution(s)
        numbers = dist.log_partition() + dist.entropy() + dist.kl(TreeDistribution(SCORES))
        return jnp.where(jnp.isfinite(numbers), numbers, 0.0).sum()

    for gradient in (jax.grad(masked_loss)(scores), jax.jacfwd(masked_loss)(scores)):
        assert np.isfinite(gradient).all()
        assert not gradient[which].any()


def test_others_raise_and_name_the_sentence():
    with pytest.raises(spantree.InfeasibleError, match=r"sentence 1 has no .*word 2 cannot be attached") as caught:
        TreeDistribution(NO_TREE).log_partition()
    assert (caught.value.sentence, caught.value.word) == (1, 2)
    for scores in (NO_TREE, BAD):
        for given in (scores, scores[None]):
            with pytest.raises(ValueError) as ours:
                TreeDistribution(given).entropy()
            with pytest.raises(ValueError) as theirs:
                spantree.TreeDistribution(given).entropy()
            assert str(ours.value) == str(theirs.value)
    assert TreeDistribution(NO_TREE, on_infeasible="mask").log_partition()[1] == -np.inf
    for on_infeasible in ("raise", "mask"):
        with pytest.raises(ValueError, match=r"sentence 2: the score of the edge \d -> \d is"):
            TreeDistribution(BAD, on_infeasible=on_infeasible).marginals()
    with pytest.raises(spantree.InfeasibleError, match="sentence 1"):
        TreeDistribution(NO_TREE, on_infeasible="mask").check()


@pytest.mark.parametrize(
    ("scores", "message"),
    [(NO_TREE, "sentence 1 has no tree: word 2 cannot be attached"), (BAD, "sentence 2 has a NaN"), (SCORES, None)],
)
def test_checkify(scores, message):
    def log_z(s):
        dist = TreeDistribution(s)
        dist.check()
        return dist.log_partition()

    error, value = jax.jit(checkify.checkify(log_z))(scores)
    if message is None:
        error.throw()
        np.testing.assert_array_equal(value, TreeDistribution(SCORES).log_partition())
    else:
        with pytest.raises(checkify.JaxRuntimeError, match=message):
            error.throw()


def test_bad_calls():
    for shape in ((3, 4), (3,), (0, 0)):
        with pytest.raises(ValueError, match="scores have shape"):
            TreeDistribution(np.zeros(shape))
    with pytest.raises(ValueError, match="lengths must be between 0 and 3"):
        TreeDistribution(SCORES, lengths=[4, 1, 1])
    with pytest.raises(ValueError, match="lengths have shape"):
        TreeDistribution(SCORES, lengths=[1, 1])
    with pytest.raises(TypeError, match="lengths must be integers"):
        TreeDistribution(SCORES, lengths=[1.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="root must be"):
        TreeDistribution(SCORES, root="none")
    with pytest.raises(ValueError, match="agree in root"):
        TreeDistribution(SCORES).kl(TreeDistribution(SCORES, root="multi"))
    with pytest.raises(ValueError, match="heads must be integers"):
        TreeDistribution(SCORES).log_prob(np.zeros((3, 5), int))
    with pytest.raises(ValueError, match="labels are needed"):
        TreeDistribution(SCORES).log_prob(np.zeros((3, 4), int), np.zeros((3, 4), int))
    with pytest.raises(ValueError, match="k must be"):
        TreeDistribution(SCORES).topk(0)
    with pytest.raises(Exception, match="cannot have 9 words"):  # traced: the program says so
        jax.block_until_ready(
            jax.jit(lambda n: TreeDistribution(SCORES, lengths=n).log_partition())(np.array([1, 9, 1]))
        )


def test_no_sentences_and_no_words():
    assert TreeDistribution(np.zeros((0, 4, 4))).marginals().shape == (0, 4, 4)
    assert TreeDistribution(np.zeros((0, 4, 4))).sample(jax.random.key(0), 2).shape == (2, 0, 4)
    empty = TreeDistribution(np.zeros((2, 1, 1)))
    np.testing.assert_array_equal(empty.log_partition(), 0.0)
    np.testing.assert_array_equal(empty.argmax(), -1)


def test_handlers_that_are_too_new_are_not_registered(monkeypatch):
    monkeypatch.setattr(_core, "xla_ffi_version", (0, 99))
    with pytest.raises(ImportError, match=r"version 0\.99 of XLA's foreign function interface"):
        _ffi.register()
    monkeypatch.setattr(_core, "xla_handlers", {})
    with pytest.raises(ImportError, match="built without JAX: SPANTREE_JAX=1 pip install"):
        _ffi.register()
    assert _ffi._version_of_jax() >= (0, 1)


def test_without_jax():
    hide = "import sys; sys.modules['jax'] = None; import spantree\n"
    say = hide + "try:\n    import spantree.jax\nexcept ImportError as error:\n    print(error)"
    done = subprocess.run([sys.executable, "-c", say], capture_output=True, text=True, check=True)
    assert done.stdout == "spantree.jax needs JAX: pip install 'spantree[jax]'\n"


def test_negative_values_have_no_product():
    dist = TreeDistribution(jnp.zeros((3, 3)))
    values = jnp.full((3, 3), -1.0)
    with pytest.raises(ValueError, match="must not be negative"):
        dist.product_expectation(values)
    assert jnp.isnan(jax.jit(dist.product_expectation)(values))
    assert dist.product_expectation(-jnp.eye(3)) == 0.0, "the diagonal is no edge"


def test_estimates_where_there_is_no_tree():
    dist = TreeDistribution(jnp.zeros((2, 3, 3)).at[1].set(-jnp.inf), on_infeasible="mask")
    sample = dist.sample_without_replacement(jax.random.key(0), 2)
    assert jnp.isnan(sample.estimate(jnp.ones((2, 2)))).tolist() == [False, True]
