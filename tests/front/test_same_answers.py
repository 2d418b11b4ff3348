"""Every question of PyTorch's and JAX's distributions has NumPy's answer and gradient: kinds, dtypes, batch shapes."""

from __future__ import annotations

import math
from itertools import product

import jax.numpy as jnp
import numpy as np
import pytest

import jax
import spantree
import spantree.jax
import spantree.torch
import torch

NODES, LABELS = 5, 2
BATCHES = [(), (3,), (2, 3), (0,), (2, 0, 1)]
KINDS = [
    {"root": root, "projective": projective, "labelled": labelled, "layout": "dep_head" if projective else "head_dep"}
    for root, projective, labelled in product(("single", "multi"), (False, True), (False, True))
]
DTYPES = {"float64": 1e-10, "float32": 3e-5}  # results of float32 are rounded once; their gradients add a few of these

# Numbers for each sentence: with NumPy, with_grad=True gives the gradient too.
NUMBERS = {
    "log_partition": (),
    "entropy": (),
    "max": (),
    "score": ("trees",),
    "log_prob": ("trees",),
    "expectation": ("values",),
    "product_expectation": ("positive",),
    "expected_attachment": ("trees",),
    "risk": ("trees",),
    "generalized_expectation": ("values", 0.5),
    "cross_entropy": ("other",),
    "kl": ("other",),
    "norm": (2.0,),
}
ORDERS = (0.0, 0.5, 1.0, 1.0 + 1e-7, 2.0, math.inf)


class Torch:
    array = staticmethod(torch.tensor)
    make = spantree.torch.TreeDistribution

    @staticmethod
    def with_gradient(ask, scores):
        given = torch.tensor(scores, requires_grad=True)
        value = ask(given)
        return value.detach().numpy(), torch.autograd.grad(value.sum(), given)[0].numpy()


class Jax:
    array = staticmethod(jnp.asarray)
    make = spantree.jax.TreeDistribution

    @staticmethod
    def with_gradient(ask, scores):
        given = jnp.asarray(scores)
        value, back = jax.vjp(ask, given)
        return np.asarray(value), np.asarray(back(jnp.ones_like(value))[0])


@pytest.fixture(autouse=True)
def _doubles():
    with jax.enable_x64(True):
        yield


class Problem:
    """Scores with forbidden edges, padding of NaN, and what questions need beside them."""

    def __init__(self, kind, dtype, batch):
        rng = np.random.default_rng(7)
        shape = (*batch, NODES, NODES, LABELS) if kind["labelled"] else (*batch, NODES, NODES)
        self.kind, self.batch = kind, batch
        self.lengths = rng.integers(1, NODES, size=batch) if batch else None
        scores, other, values, noise = rng.normal(size=(4, *shape))
        forbidden = rng.random(shape) < 0.2
        axes = shape[len(batch) :]
        kept = np.broadcast_to(np.eye(NODES, k=1, dtype=bool)[(..., None)[: 1 + kind["labelled"]]], axes)
        kept = np.swapaxes(kept, 0, 1) if kind["layout"] == "dep_head" else kept
        self.scores = np.where(forbidden & ~kept, -np.inf, 2.0 * scores).astype(dtype)
        self.other = np.where(forbidden & ~kept, -np.inf, other).astype(dtype)
        self.values, self.positive = values.astype(dtype), np.exp(noise).astype(dtype)
        if batch:
            for at in np.ndindex(batch):
                n = self.lengths[at] + 1
                for array in (self.scores, self.other):
                    array[at][n:] = array[at][:, n:] = np.nan
        self.truth = self.dist(spantree.TreeDistribution, self.scores)
        self.trees = self.truth.sample(rng=0)

    def dist(self, make, scores):
        return make(scores, lengths=self.lengths, **self.kind)

    def given(self, make, array, name):
        """An argument of that name."""
        if name == "other":
            return self.dist(make, array(self.other))
        if name == "trees":
            return self.trees if make is spantree.TreeDistribution else trees_of(self.trees, array)
        return array(getattr(self, name)) if isinstance(name, str) else name


def trees_of(trees, array):
    if isinstance(trees, spantree.Trees):
        return spantree.Trees(array(trees.heads), labels=array(trees.labels))
    return array(trees)


def name_of(kind):
    return "-".join([kind["root"], *(key for key in ("projective", "labelled") if kind[key])])


# All of everything with torch. JAX compiles each operation for each shape: all kinds of one, all shapes of one.
CASES = [(Torch, *case) for case in product(KINDS, DTYPES, BATCHES)]
CASES += [(Jax, kind, "float64", (2, 3)) for kind in KINDS]
CASES += [(Jax, KINDS[0], "float32", batch) for batch in BATCHES]
every_case = pytest.mark.parametrize(
    ("front", "kind", "dtype", "batch"),
    CASES,
    ids=[f"{front.__name__}-{name_of(kind)}-{dtype}-{batch}" for front, kind, dtype, batch in CASES],
)


@every_case
def test_numbers_and_gradients(front, kind, dtype, batch):
    p = Problem(kind, dtype, batch)
    questions = [*NUMBERS.items(), *(("renyi_entropy", (alpha,)) for alpha in ORDERS)]
    for name, args in questions:
        theirs = [p.given(spantree.TreeDistribution, np.asarray, x) for x in args]
        value, gradient = getattr(p.truth, name)(*theirs, with_grad=True)
        ours = [p.given(front.make, front.array, x) for x in args]
        found = front.with_gradient(
            lambda s, name=name, ours=ours: getattr(p.dist(front.make, s), name)(*ours), p.scores
        )
        for mine, right in zip(found, (value, gradient), strict=True):
            assert mine.dtype == dtype, name
            assert mine.shape == np.shape(right), name
            np.testing.assert_allclose(mine, right, rtol=DTYPES[dtype], atol=DTYPES[dtype], err_msg=f"{name}{args}")


@every_case
def test_edges_and_trees(front, kind, dtype, batch):
    p = Problem(kind, dtype, batch)
    dist, close = p.dist(front.make, front.array(p.scores)), {"rtol": DTYPES[dtype], "atol": DTYPES[dtype]}
    several = np.stack([p.values, p.positive, -p.values], -1)
    np.testing.assert_allclose(dist.marginals(), p.truth.marginals(), **close)
    np.testing.assert_allclose(dist.expectation(front.array(several)), p.truth.expectation(several), **close)
    for r, s in product(("values", "several"), repeat=2):
        left, right = (several if x == "several" else p.values for x in (r, s))
        for name in ("covariance", "second_moment"):
            mine = getattr(dist, name)(front.array(left), front.array(right))
            np.testing.assert_allclose(mine, getattr(p.truth, name)(left, right), **close)
    for sides in ((several, "edges"), ("edges", several), (p.values, "edges")):
        mine = dist.covariance(*(x if isinstance(x, str) else front.array(x) for x in sides))
        np.testing.assert_allclose(mine, p.truth.covariance(*sides), **close)
    for mine, right in (
        (dist.argmax(), p.truth.argmax()),
        (dist.topk(3), p.truth.topk(3)),
        (dist.mode, p.truth.mode),
    ):
        for x, y in zip(*((t if isinstance(t, spantree.Trees) else (t,)) for t in (mine, right)), strict=True):
            assert (x is None) == (y is None)
            if y is not None:
                np.testing.assert_allclose(x, y, **close)
    partial = np.where(np.arange(NODES) % 2 == 1, -2, getattr(p.trees, "heads", p.trees))
    np.testing.assert_allclose(
        dist.log_prob(front.array(partial), partial=True), p.truth.log_prob(partial, partial=True), **close
    )
    given = dist.condition(heads=front.array(partial)), p.truth.condition(heads=partial)
    np.testing.assert_allclose(given[0].log_partition(), given[1].log_partition(), **close)
    np.testing.assert_allclose(given[0].marginals(), given[1].marginals(), **close)
    mine, right = dist.complete(front.array(partial)), p.truth.complete(partial)
    np.testing.assert_allclose(mine[1], right[1], **close)
