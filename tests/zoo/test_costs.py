"""What the animals cost, reading and checking included, on graphs of every shape: counted, never timed."""

from __future__ import annotations

from collections import Counter
from functools import partial
from importlib import import_module

import numpy as np
import pytest
from decoding_battery import nested_cycles
from operations import growth, operations
from test_zoo_decoder_promises import sparse_graph

from spantree import zoo
from spantree.zoo._active_forest import ActiveForest
from spantree.zoo._constants import ContractedVertices
from spantree.zoo._edges import read_edges
from spantree.zoo.matrix_tree import invert
from spantree.zoo.t2 import second_order as by_t2
from spantree.zoo.t2h import pair_marginals
from spantree.zoo.t2h import second_order as by_t2h

SIZES = (6, 12)


def dense(n):
    return np.random.default_rng(n).normal(size=(n + 1, n + 1))


def chain(n):
    """ROOT -> n -> ... -> 1: a search from word 1 finds nothing, one from word 2 finds word 1, and so on."""
    scores = np.full((n + 1, n + 1), -np.inf)
    scores[0, n] = 0.0
    scores[np.arange(2, n + 1), np.arange(1, n)] = 0.0
    return scores


def star(n):
    """ROOT -> 1, and word 1 is the head of all others."""
    scores = np.full((n + 1, n + 1), -np.inf)
    scores[0, 1] = 0.0
    scores[1, 2:] = 0.0
    return scores


def chain_both_ways(n):
    """Neighbours are each other's heads, ROOT is everybody's: many cycles, and trees that are deep."""
    scores = np.full((n + 1, n + 1), -np.inf)
    scores[0, 1:] = -0.1 * np.arange(n)
    words = np.arange(1, n)
    scores[words, words + 1] = 1.0
    scores[words + 1, words] = 2.0
    return scores


def every_graph(most_cycles):
    """Of dense graphs, for decoders the one with as many contractions as there can be, else a random one."""
    return pytest.mark.parametrize("graph", [most_cycles, chain, star, chain_both_ways], ids=lambda g: g.__name__)


QUADRATIC = {
    "tarjan": zoo.tarjan,
    "gabow_tarjan": zoo.gabow_tarjan,
    "gabow_tarjan of 2": lambda scores: zoo.gabow_tarjan(scores, 2, at_most=True),
    "reweighting": zoo.reweighting,
    "arcmax": lambda scores: zoo.arcmax(scores, True, zoo.reweighting),
    "camerini_kbest": lambda scores: zoo.camerini_kbest(scores, 2),
    "single_root_kbest": lambda scores: zoo.single_root_kbest(scores, 2),
}
CUBIC_DECODERS = {
    "chu_liu_edmonds": zoo.chu_liu_edmonds,
    "naive_single_root": zoo.naive_single_root,
    "root_preselection": zoo.root_preselection,
}
CUBIC = {
    "matrix_tree": zoo.matrix_tree,
    "adjugate_gradient": zoo.adjugate_gradient,
    "entropy_gradient": zoo.entropy_gradient,
    "kl_gradient": lambda scores: zoo.kl_gradient(scores, scores),
    "risk_gradient": lambda scores: zoo.risk_gradient(scores, np.zeros(len(scores), dtype=int)),
    "colbourn": lambda scores: zoo.colbourn(scores, 1, 0),
    "colbourn_robust": lambda scores: zoo.colbourn_robust(scores, 1, 0),
    "swor_zmigrod": lambda scores: zoo.swor_zmigrod(scores, 1, 0),
    "trie_swor": lambda scores: zoo.trie_swor(scores, 1, 0),
    "sbs_swor": lambda scores: zoo.sbs_swor(scores, 1, 0),
    "wilson_marginal": lambda scores: zoo.wilson_marginal_rooted(scores, 0),
}


@every_graph(nested_cycles)
@pytest.mark.parametrize("name", QUADRATIC)
def test_quadratic_cost_on_every_graph(name, graph):
    """Twice the words, at most four times the work; a quarter more is allowed, a cubic term would double it."""
    exponent = growth(lambda n: partial(QUADRATIC[name], graph(n)), (24, 48))
    assert exponent < 2 + np.log2(1.25)


@every_graph(nested_cycles)
@pytest.mark.parametrize("name", CUBIC_DECODERS)
def test_cubic_cost_of_decoders_on_every_graph(name, graph):
    exponent = growth(lambda n: partial(CUBIC_DECODERS[name], graph(n)), (12, 24))
    assert exponent < 3 + np.log2(1.25)


@every_graph(dense)
@pytest.mark.parametrize("name", CUBIC)
def test_cubic_cost_on_every_graph(name, graph):
    exponent = growth(lambda n: partial(CUBIC[name], graph(n)), (12, 24))
    assert exponent < 3 + np.log2(1.25)


@pytest.mark.parametrize(
    "decode",
    [
        zoo.tarjan_sparse,
        zoo.gabow_tarjan_sparse,
        partial(zoo.reweighting, mst_func=zoo.tarjan_sparse),
    ],
    ids=["tarjan_sparse", "gabow_tarjan_sparse", "reweighting"],
)
def test_sparse_decoders_take_m_log_n_end_to_end(decode):
    """Four times the words and edges: at most 4 log(4 n) / log(n) times the work, and a quarter more."""
    small, large = 60, 240
    ratio = operations(partial(decode, sparse_graph(large))) / operations(partial(decode, sparse_graph(small)))
    assert ratio < 1.25 * 4 * np.log(large) / np.log(small)


def long_path(n):
    """Dense, and the path of best heads passes through all words before it closes: every edge becomes active."""
    scores = dense(n)
    scores[np.arange(2, n + 1), np.arange(1, n)] = 100.0
    return scores


GRAPHS_OF_ALL_DENSITIES = [
    (graph, sizes)
    for sizes, graphs in (
        ((50, 200), (chain, star, chain_both_ways, sparse_graph)),
        ((20, 40), (dense, nested_cycles, long_path)),
    )
    for graph in graphs
]


def m_plus_n_log_n(edges):
    return len(edges.head) + edges.nodes * np.log2(edges.nodes)


@pytest.mark.parametrize(("graph", "sizes"), GRAPHS_OF_ALL_DENSITIES, ids=lambda x: getattr(x, "__name__", ""))
@pytest.mark.parametrize("single_root", [False, True], ids=["any roots", "reweighting"])
def test_gabow_galil_spencer_tarjan_takes_m_plus_n_log_n_end_to_end(graph, sizes, single_root):
    """One constant for all graphs and sizes, and from the small to the large a quarter more than that at most."""
    if single_root:
        decode = partial(zoo.reweighting, mst_func=zoo.gabow_galil_spencer_tarjan)
    else:
        decode = zoo.gabow_galil_spencer_tarjan
    small, large = (
        operations(partial(decode, edges)) / m_plus_n_log_n(edges) for edges in map(read_edges, map(graph, sizes))
    )
    assert max(small, large) < 800
    assert large < 1.25 * small


@pytest.mark.parametrize("one_root", [zoo.naive_single_root, zoo.root_preselection], ids=lambda f: f.__name__)
def test_single_root_on_sparse_graphs_takes_a_run_of_m_plus_n_log_n_for_each_root_edge(one_root):
    """The O(m n + n^2 log n) of Table 1: n times the bound of one run, as ROOT has at most n edges."""
    for n in (15, 30):
        edges = sparse_graph(n)
        runs = 1 + np.count_nonzero(edges.head == 0)
        cost = operations(partial(one_root, edges, mst_func=zoo.gabow_galil_spencer_tarjan))
        assert cost < 800 * runs * m_plus_n_log_n(edges)


@pytest.mark.parametrize(("graph", "sizes"), GRAPHS_OF_ALL_DENSITIES, ids=lambda x: getattr(x, "__name__", ""))
def test_gabow_galil_spencer_tarjan_keeps_the_counts_behind_its_bound(graph, sizes, monkeypatch):
    counted = Counter()
    for owner, names in (
        (ActiveForest, ("insert", "change", "delete", "best", "link", "make_root")),
        (ContractedVertices, ("find",)),
    ):
        for name in names:
            original = getattr(owner, name)

            def counting(*args, original=original, name=name):
                counted[name] += 1
                return original(*args)

            monkeypatch.setattr(owner, name, counting)
    for n in sizes:
        edges = read_edges(graph(n))
        counted.clear()
        zoo.gabow_galil_spencer_tarjan(edges)
        inspected = len(edges.head) + 2 * n
        # nodes are the vertices and at most n cycles: each is a source once, and is asked once for its best edge
        assert counted["insert"] == counted["delete"] <= 2 * n + 1
        assert counted["best"] <= 2 * n + 1
        # once when it becomes active, once when it is no longer passive
        assert counted["change"] <= 2 * inspected
        # new roots: what is inserted or changed, what is cut off above it, and the children of what is deleted, whose
        # number is that of a Fibonacci tree
        children = np.log(n + 1) / np.log((1 + 5**0.5) / 2)
        cuts = counted["change"] + counted["delete"]
        assert counted["make_root"] <= counted["insert"] + 2 * cuts + children * counted["delete"]
        assert counted["link"] < counted["make_root"]
        # two for a comparison; reading, changing and dropping an edge takes eight
        assert counted["find"] <= 8 * inspected + 2 * counted["link"] + 2 * children * counted["best"]


def one_hot(n):
    return zoo.edge_indicators(n)


def dense_features(n, count):
    return np.random.default_rng(count).normal(size=(n + 1, n + 1, count))


def bound_of_t2(n, R, R_sparse, S, S_sparse):
    """O(N^3 (R' + S') + R S + N^2 R_ S_) of figure 3."""
    R_bar, S_bar = min(R, n * R_sparse), min(S, n * S_sparse)
    return n**3 * (R_sparse + S_sparse) + R * S + n**2 * R_bar * S_bar


def test_t2_keeps_its_bound_for_dense_and_for_sparse_features():
    """One constant for all: one-hot edges on one side or both, dense features, few and many of them."""
    ratios = []
    for n in (8, 16):
        edges = (n + 1) ** 2
        for r, s, sizes in (
            (dense_features(n, 1), one_hot(n), (1, 1, edges, 1)),
            (one_hot(n), dense_features(n, 1), (edges, 1, 1, 1)),
            (one_hot(n), one_hot(n), (edges, 1, edges, 1)),
            (dense_features(n, 20), dense_features(n, 20), (20, 20, 20, 20)),
            (dense_features(n, 20), one_hot(n), (20, 20, edges, 1)),
        ):
            ratios.append(operations(partial(zoo.t2, dense(n), r, s)) / bound_of_t2(n, *sizes))
    # the smallest problems are dearest, by what a call costs whatever its size
    assert max(ratios[5:]) < 12
    assert max(ratios[:5]) < 60


def test_gradients_by_t2_beat_those_by_t2h_by_a_factor_of_n():
    def by(second_order, n):
        f = dense_features(n, 1)[:, :, 0]
        return partial(zoo.generalized_expectation, dense(n), f, 0.0, second_order=second_order)

    assert growth(lambda n: by(by_t2, n), (12, 24)) < 3 + np.log2(1.25)
    assert growth(lambda n: by(by_t2h, n), (12, 24)) > 3 + np.log2(1.25)


def test_t2h_holds_one_row_of_the_hessian():
    """Memory O(N^2 + R S): the largest array of a run grows with the square of the sentence."""
    largest = []
    for n in (8, 16):
        sizes = [pairs.size for _, _, pairs in pair_marginals(invert(dense(n), "single"))]
        assert len(sizes) == n * n
        largest.append(max(sizes))
    assert largest == [9**2, 17**2]


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
        lambda scores, values: zoo.entropy_gradient(scores),
        lambda scores, values: zoo.generalized_expectation(scores, values, np.zeros(values.shape[2])),
    ],
    ids=["matrix_tree", "t1", "t2", "t2v", "t2h", "entropy", "entropy_gradient", "generalized_expectation"],
)
def test_one_inverse_whatever_the_number_of_features(factorisations, quantity, n):
    quantity(dense(n), dense_features(n, 5))
    assert factorisations == {("inv", n): 1, ("slogdet", n): 1}


@pytest.mark.parametrize("n", SIZES)
def test_smith_eisner_takes_a_determinant_for_each_word_and_zeroth_order_one_for_each_function(factorisations, n):
    zoo.entropy_smith_eisner(dense(n))
    assert factorisations == {("slogdet", n): n + 1}
    factorisations.clear()
    zoo.zeroth_order(dense(n), dense_features(n, 5))
    assert factorisations == {("slogdet", n): 6}


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("k", [3, 9])
def test_colbourn_and_swor_condition_once_for_each_word(monkeypatch, n, k):
    for name, sampler in (("colbourn", zoo.colbourn), ("swor_zmigrod", zoo.swor_zmigrod)):
        counted = Counter()
        module = import_module(f"spantree.zoo.{name}")

        def counting(*args, original=module.condition, counted=counted):
            counted["all"] += 1
            return original(*args)

        monkeypatch.setattr(module, "condition", counting)
        sampler(dense(n), k, 0)
        assert counted["all"] == k * n


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("k", [3, 9])
@pytest.mark.parametrize("sampler", [zoo.trie_swor, zoo.sbs_swor], ids=lambda f: f.__name__)
@pytest.mark.parametrize("machine", [zoo.PUBLISHED, zoo.ROBUST], ids=["published", "robust"])
def test_trie_and_beam_transit_at_most_once_for_each_word(machine, sampler, n, k):
    counted = Counter()

    def counting(state, head):
        counted["all"] += 1
        return machine.transit_state(state, head)

    sampler(dense(n), k, 0, machine=machine._replace(transit_state=counting))
    assert 0 < counted["all"] <= k * n


@pytest.mark.parametrize("k", [1, 20])
def test_wilson_marginal_inverts_once_and_wilson_reject_never(factorisations, k):
    for sampler in (zoo.wilson_marginal, zoo.wilson_marginal_rooted):
        sampler(dense(8), k, 0)
        assert factorisations["inv", 8] == 1
        factorisations.clear()
    zoo.wilson_reject(dense(8), k, 0)
    assert not factorisations
