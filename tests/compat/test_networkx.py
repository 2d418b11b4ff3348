"""The stand-in for networkx's arborescences, against enumeration, and against networkx where it is right."""

from __future__ import annotations

import inspect

import networkx as nx
import numpy as np
import pytest

from spantree import zoo
from spantree.compat.networkx import (
    ArborescenceIterator,
    maximum_spanning_arborescence,
    minimum_spanning_arborescence,
)

INCLUDED, EXCLUDED = nx.EdgePartition.INCLUDED, nx.EdgePartition.EXCLUDED


def random_graph(rng, nodes, density, cls=nx.DiGraph):
    graph = cls()
    graph.add_nodes_from("abcdefgh"[:nodes])
    for _ in range(2 if graph.is_multigraph() else 1):
        for u in graph:
            for v in graph:
                if rng.random() < density:  # self-loops too
                    graph.add_edge(u, v, weight=int(rng.integers(-9, 10)), colour=int(rng.integers(100)))
    return graph


def all_arborescences(graph):
    """Edge sets, by enumeration: of trees with one edge out of ROOT, what the graph has of the other edges."""
    nodes = list(graph)
    for heads in zoo.enumerate_trees(len(nodes), "single"):
        edges = {(nodes[head - 1], nodes[dep]) for dep, head in enumerate(heads[1:].tolist()) if head != 0}
        if all(graph.has_edge(*edge) for edge in edges):
            yield edges


def weight_of(graph, edges):
    return sum(graph.edges[edge]["weight"] for edge in edges)


@pytest.mark.parametrize(
    ("function", "best"), [(maximum_spanning_arborescence, max), (minimum_spanning_arborescence, min)]
)
@pytest.mark.parametrize("density", [0.4, 0.8, 1.0])
def test_the_best_by_enumeration(function, best, density):
    rng = np.random.default_rng(0)
    for _ in range(60):
        graph = random_graph(rng, rng.integers(1, 6), density)
        weights = [weight_of(graph, edges) for edges in all_arborescences(graph)]
        if weights:
            found = function(graph)
            assert nx.is_arborescence(found)
            assert found.size("weight") == best(weights)
            assert all(graph.edges[edge]["weight"] == found.edges[edge]["weight"] for edge in found.edges)
        else:
            with pytest.raises(nx.NetworkXException, match="spanning arborescence in G"):
                function(graph)


def test_as_networkx_on_larger_graphs():
    rng = np.random.default_rng(1)
    for _ in range(5):
        graph = nx.DiGraph()
        graph.add_weighted_edges_from((u, v, rng.normal()) for u in range(20) for v in range(20) if u != v)
        for ours, theirs in [
            (maximum_spanning_arborescence, nx.maximum_spanning_arborescence),
            (minimum_spanning_arborescence, nx.minimum_spanning_arborescence),
        ]:
            assert set(ours(graph).edges) == set(theirs(graph.copy()).edges)


@pytest.mark.parametrize("ours", [maximum_spanning_arborescence, minimum_spanning_arborescence, ArborescenceIterator])
def test_the_same_signature(ours):
    def form(function):
        parameters = inspect.signature(function).parameters.values()
        return [(parameter.name, parameter.kind, parameter.default) for parameter in parameters]

    assert form(ours) == form(getattr(nx, ours.__name__))


@pytest.mark.parametrize("ours", [maximum_spanning_arborescence, minimum_spanning_arborescence])
def test_backends(ours):
    graph = random_graph(np.random.default_rng(2), 5, 1.0)
    theirs = getattr(nx, ours.__name__)
    best = set(ours(graph).edges)
    for backend in (None, "networkx"):
        assert set(ours(graph, backend=backend).edges) == set(theirs(graph.copy(), backend=backend).edges) == best
    for function in (ours, theirs):
        with pytest.raises(ImportError, match="'cugraph'"):
            function(graph.copy(), backend="cugraph")
        with pytest.raises(TypeError, match="unexpected keyword argument 'threads'"):
            function(graph.copy(), threads=2)


def test_one_that_networkx_does_not_find():
    graph = nx.DiGraph()
    edges = [("a", "b", -5), ("a", "c", 6), ("b", "a", 7), ("b", "c", -4), ("c", "a", -8), ("d", "c", 2)]
    graph.add_weighted_edges_from(edges)
    assert list(all_arborescences(graph)) == [{("d", "c"), ("c", "a"), ("a", "b")}]
    assert set(maximum_spanning_arborescence(graph).edges) == {("d", "c"), ("c", "a"), ("a", "b")}


def test_attributes_defaults_and_order():
    graph = nx.DiGraph()
    graph.add_nodes_from(["z", "y", "x"], kind="node")
    graph.add_edge("x", "y", cost=0.1, colour="red")
    graph.add_edge("y", "z", colour="blue")
    before = graph.copy()
    plain = minimum_spanning_arborescence(graph, attr="cost", default=1e6)
    assert list(plain) == ["z", "y", "x"]
    assert plain.edges["x", "y"] == {"cost": 0.1}
    assert plain.edges["y", "z"] == {"cost": 1e6}
    assert plain.nodes["z"] == {}  # as there
    kept = minimum_spanning_arborescence(graph, attr="cost", default=1e6, preserve_attrs=True)
    assert kept.edges["x", "y"] == {"cost": 0.1, "colour": "red"}
    assert kept.edges["y", "z"] == {"cost": 1e6, "colour": "blue"}
    assert nx.utils.graphs_equal(graph, before)
    kept.edges["x", "y"]["colour"] = "green"
    assert graph.edges["x", "y"]["colour"] == "red"


def test_of_parallel_edges_the_best():
    rng = np.random.default_rng(2)
    for _ in range(30):
        multi = random_graph(rng, 4, 0.7, nx.MultiDiGraph)
        for function, best in [(maximum_spanning_arborescence, max), (minimum_spanning_arborescence, min)]:
            simple = nx.DiGraph()
            for u, v in set(multi.edges()):
                simple.add_edge(u, v, weight=best(data["weight"] for data in multi[u][v].values()))
            found = function(multi)
            assert isinstance(found, nx.MultiDiGraph)
            assert found.size("weight") == function(simple).size("weight")


@pytest.mark.parametrize("minimum", [True, False])
@pytest.mark.parametrize("density", [0.5, 1.0])
def test_all_of_them_in_order(minimum, density):
    """With and without edges included and excluded. networkx's own iterator leaves out some."""
    rng = np.random.default_rng(3)
    for trial in range(40):
        graph = random_graph(rng, rng.integers(2, 6), density)
        edges = [edge for edge in graph.edges if edge[0] != edge[1]]
        drawn = [edges[i] for i in rng.permutation(len(edges))[:4]] if trial % 2 else []
        included, excluded = drawn[: rng.integers(0, 3)], drawn[3:]
        expected = [
            tree for tree in all_arborescences(graph) if tree.issuperset(included) and tree.isdisjoint(excluded)
        ]
        iterator = ArborescenceIterator(graph, minimum=minimum, init_partition=(included, excluded) if drawn else None)
        if not expected:
            with pytest.raises(nx.NetworkXException):
                iter(iterator)
            continue
        found = list(iterator)
        weights = [tree.size("weight") for tree in found]
        assert weights == sorted((weight_of(graph, tree) for tree in expected), reverse=not minimum)
        assert sorted(map(sorted, expected)) == sorted(sorted(tree.edges) for tree in found)
        assert all(tree.edges[edge] == graph.edges[edge] for tree in found for edge in tree.edges)
        assert [tree.size("weight") for tree in iterator] == weights  # a second time


def test_partition_as_an_attribute():
    rng = np.random.default_rng(4)
    for _ in range(40):
        graph = random_graph(rng, 4, 1.0)
        included, excluded = [[edge for edge in graph.edges if edge[0] != edge[1]][i] for i in rng.permutation(12)[:2]]
        graph.edges[included]["part"], graph.edges[excluded]["part"] = INCLUDED, EXCLUDED
        weights = [
            weight_of(graph, tree) for tree in all_arborescences(graph) if included in tree and excluded not in tree
        ]
        assert maximum_spanning_arborescence(graph, partition="part").size("weight") == max(weights)
        assert minimum_spanning_arborescence(graph, partition="part").size("weight") == min(weights)


def test_of_parallel_edges_the_included_one():
    graph = nx.MultiDiGraph()
    graph.add_edge("a", "b", weight=9)
    graph.add_edge("a", "b", weight=1, part=INCLUDED)
    assert maximum_spanning_arborescence(graph, partition="part").size("weight") == 1


def test_graphs_that_have_none():
    with pytest.raises(nx.NetworkXPointlessConcept):
        maximum_spanning_arborescence(nx.DiGraph())
    with pytest.raises(nx.NetworkXNotImplemented):
        maximum_spanning_arborescence(nx.Graph([("a", "b")]))
    graph = nx.DiGraph([("a", "b")])
    with pytest.raises(nx.NetworkXException, match="'b' -> 'a' is to be included"):
        iter(ArborescenceIterator(graph, init_partition=([("b", "a")], [])))
    graph.edges["a", "b"]["weight"] = float("nan")
    with pytest.raises(ValueError, match="the weight of the edge 'a' -> 'b' is nan"):
        maximum_spanning_arborescence(graph)


def test_a_weight_of_infinity_forbids():
    graph = nx.DiGraph()
    graph.add_weighted_edges_from([("a", "b", float("inf")), ("b", "a", 3.0)])
    assert list(minimum_spanning_arborescence(graph).edges) == [("b", "a")]
