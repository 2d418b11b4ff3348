"""What the animals of inference and sampling cost, in factorisations, updates and steps."""

from __future__ import annotations

import importlib
from collections import Counter

import numpy as np
import pytest

from spantree import zoo

SIZES = (6, 12)


@pytest.fixture
def factorisations(monkeypatch):
    """Counts O(n^3) factorisations by name and order of the matrix."""
    counted = Counter()
    for name in ("inv", "slogdet"):
        original = getattr(np.linalg, name)

        def counting(matrix, name=name, original=original):
            counted[name, len(matrix)] += 1
            return original(matrix)

        monkeypatch.setattr(np.linalg, name, counting)
    return counted


def graph(n, features=0):
    rng = np.random.default_rng(n)
    scores = rng.normal(size=(n + 1, n + 1))
    return scores, rng.normal(size=(n + 1, n + 1, features))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(
    "quantity",
    [
        lambda scores, values: zoo.matrix_tree(scores),
        lambda scores, values: zoo.t1(scores, values),
        lambda scores, values: zoo.t2(scores, values, values),
        lambda scores, values: zoo.t2v(scores, values, values),
        lambda scores, values: zoo.t2h(scores, values, values),
        lambda scores, values: zoo.entropy(scores),
        lambda scores, values: zoo.generalized_expectation(scores, values, np.zeros(values.shape[2])),
    ],
    ids=["matrix_tree", "t1", "t2", "t2v", "t2h", "entropy", "generalized_expectation"],
)
def test_one_inverse_whatever_the_number_of_features(factorisations, quantity, n):
    quantity(*graph(n, features=5))
    assert factorisations == {("inv", n): 1, ("slogdet", n): 1}


@pytest.mark.parametrize("n", SIZES)
def test_smith_eisner_takes_a_determinant_for_each_word(factorisations, n):
    zoo.entropy_smith_eisner(graph(n)[0])
    assert factorisations["slogdet", n] == n + 1


@pytest.fixture
def transits(monkeypatch):
    """Counts the O(n^2) updates of Colbourn's state machine, wherever it is used."""
    counted = Counter()
    original = zoo.transit_state

    def counting(state, head):
        counted["all"] += 1
        return original(state, head)

    for name in ("colbourn", "swor_zmigrod", "trie_swor", "sbs_swor"):
        module = importlib.import_module(f"spantree.zoo.{name}")
        if hasattr(module, "transit_state"):
            monkeypatch.setattr(module, "transit_state", counting)
    return counted


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("k", [3, 9])
def test_colbourn_updates_once_for_each_word(transits, n, k):
    zoo.colbourn(graph(n)[0], k, 0)
    assert k * (n - 1) <= transits["all"] <= k * n


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("k", [3, 9])
@pytest.mark.parametrize("sampler", [zoo.swor_zmigrod, zoo.trie_swor, zoo.sbs_swor], ids=lambda f: f.__name__)
def test_without_replacement_updates_at_most_as_often(transits, sampler, n, k):
    """swor_zmigrod runs the machine twice: on the weights, and on ones to count the trees that are left."""
    sampler(graph(n)[0], k, 0)
    assert 0 < transits["all"] <= (2 if sampler is zoo.swor_zmigrod else 1) * k * n


@pytest.mark.parametrize("k", [1, 20])
def test_wilson_marginal_inverts_once_and_wilson_reject_never(factorisations, k):
    zoo.wilson_marginal(graph(8)[0], k, 0)
    assert factorisations["inv", 8] == 1
    factorisations.clear()
    zoo.wilson_reject(graph(8)[0], k, 0)
    assert not factorisations


def test_wilson_takes_the_mean_steps_it_promises():
    """Counted as numbers drawn. 4 standard errors: a false alarm in 16,000, were the seed not fixed."""
    scores = graph(8)[0]
    mean = zoo.mean_steps(scores)
    counting = CountingGenerator(np.random.PCG64(1))
    totals = []
    for _ in range(400):
        before = counting.draws
        zoo.wilson(scores, 1, counting)
        totals.append(counting.draws - before)
    error = np.std(totals) / np.sqrt(len(totals))
    assert abs(np.mean(totals) - mean) < 4 * error


class CountingGenerator(np.random.Generator):
    """Counts the numbers drawn with `random`."""

    draws = 0

    def random(self, size=None, *args, **kwargs):
        self.draws += 1 if size is None else int(np.prod(size))
        return super().random(size, *args, **kwargs)
