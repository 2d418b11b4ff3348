"""What each decoder's docstring claims about itself: cost, kind of tree, and where it breaks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from decoding_battery import (
    FAMILIES,
    integer_ties,
    many_roots,
    nested_cycles,
    normal,
    scores_of,
    trees,
)

from spantree import zoo
from spantree.zoo import NoTreeError
from spantree.zoo._active_forest import ActiveForest, Item
from spantree.zoo._constants import ContractedVertices
from spantree.zoo._graph import FloatArray, clean_scores
from spantree.zoo.gabow_galil_spencer_tarjan import GrowthPath
from spantree.zoo.tarjan import Edge, LossyQueue
from spantree.zoo.tarjan_sparse import LeftistHeap, Node

Counter = Callable[..., dict[str, int]]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter:
    """Count the calls of functions, given as (owner, name), where owner is a class or a module's name."""

    def start(*targets: tuple[Any, str]) -> dict[str, int]:
        count: dict[str, int] = {}
        for owner, name in targets:
            place = import_module(f"spantree.zoo.{owner}") if isinstance(owner, str) else owner
            original = getattr(place, name)
            count[name] = 0

            def counted(*args: Any, original: Callable[..., Any] = original, name: str = name, **kwargs: Any) -> Any:
                count[name] += 1
                return original(*args, **kwargs)

            monkeypatch.setattr(place, name, counted)
        return count

    return start


def many_graphs(n: int) -> list[FloatArray]:
    """Graphs of all families that have a tree with one root, and the one with nested cycles."""
    rng = np.random.default_rng(n)
    graphs = [nested_cycles(n)]
    for family in FAMILIES:
        scores = family(rng, n)
        if np.isfinite(clean_scores(scores)).sum() > 5 * n:
            graphs.append(scores)
    return graphs


# greedy


def test_greedy_is_an_upper_bound_and_exact_when_it_is_a_tree() -> None:
    rng = np.random.default_rng(20)
    kinds = set()
    for _ in range(60):
        scores = normal(rng, 4)
        heads = zoo.greedy(scores)
        best = scores_of(scores, trees(4, "multi")).max()
        assert scores_of(scores, heads[None])[0] >= best
        kinds.add(zoo.is_tree(heads, "multi"))
        if zoo.is_tree(heads, "multi"):
            np.testing.assert_array_equal(heads, zoo.tarjan(scores))
    assert kinds == {True, False}


def test_greedy_names_a_word_without_head() -> None:
    with pytest.raises(NoTreeError, match="word 2"):
        zoo.greedy(np.array([[0, 1, -np.inf], [0, 0, -np.inf], [0, 1, 0]]))


def test_arcmax_runs_the_decoder_only_when_it_has_to() -> None:
    def unwanted(scores: FloatArray) -> Any:
        raise RuntimeError

    easy = np.zeros((5, 5))
    easy[0, 1] = easy[1, 2] = easy[2, 3] = easy[3, 4] = 1.0
    np.testing.assert_array_equal(zoo.arcmax(easy, True, unwanted), [-1, 0, 1, 2, 3])
    two_roots = easy.copy()
    two_roots[0, 3] = 2.0
    np.testing.assert_array_equal(zoo.arcmax(two_roots, False, unwanted), [-1, 0, 1, 0, 3])
    with pytest.raises(RuntimeError):
        zoo.arcmax(two_roots, True, unwanted)


def test_the_projective_check_is_figure_10_alone(calls: Counter) -> None:
    count = calls(("greedy", "is_tree"))
    assert zoo.is_projective_tree([-1, 2, 0, 2])
    assert not zoo.is_projective_tree([-1, 0, 3, 2], root="multi")  # a cycle
    assert count["is_tree"] == 0


def test_arcmax_inside_reweighting_never_helps_on_complete_graphs() -> None:
    rng = np.random.default_rng(21)
    for _ in range(20):
        reweighted = import_module("spantree.zoo.reweighting").reweight(clean_scores(normal(rng, 5)))
        assert not (zoo.greedy(reweighted) == 0).any()


# several roots


@pytest.mark.parametrize("decode", [zoo.chu_liu_edmonds, zoo.tarjan, zoo.tarjan_sparse, zoo.gabow_galil_spencer_tarjan])
def test_unconstrained_decoders_return_several_roots(decode: Callable[[FloatArray], Any]) -> None:
    scores = many_roots(np.random.default_rng(22), 10)
    assert np.count_nonzero(decode(scores) == 0) > 1
    assert np.count_nonzero(zoo.gabow_tarjan(scores) == 0) == 1


@pytest.mark.parametrize("n", [5, 20, 40])
def test_chu_liu_edmonds_contracts_up_to_n_minus_1_cycles_and_starts_afresh(n: int, calls: Counter) -> None:
    count = calls(("chu_liu_edmonds", "contract"), ("chu_liu_edmonds", "find_cycle"))
    zoo.chu_liu_edmonds(nested_cycles(n))
    assert count == {"contract": n - 1, "find_cycle": n}


@pytest.mark.parametrize("n", [5, 20, 40])
def test_tarjan_does_a_linear_number_of_linear_operations(n: int, calls: Counter) -> None:
    for scores in many_graphs(n):
        count = calls((LossyQueue, "extract_max"), (LossyQueue, "meld"))
        zoo.tarjan(scores)
        assert n + 1 <= count["extract_max"] <= 2 * n
        assert n <= count["meld"] < 2 * n


def test_the_lossy_queue_keeps_the_better_edge_of_each_source_and_no_self_loop() -> None:
    w = clean_scores([[0, 5, 6, 0], [0, 0, 9, 0], [0, 9, 0, 0], [0, 4, 3, 0]])
    melded = LossyQueue.of_vertex(w, 1).meld(LossyQueue.of_vertex(w, 2))
    np.testing.assert_array_equal(melded.weights, [6, np.nan, np.nan, 4])
    assert melded.extract_max() == Edge(0, 2, 6.0)
    assert melded.extract_max() == Edge(3, 1, 4.0)
    assert not melded


@pytest.mark.parametrize("n", [50, 300])
def test_tarjan_sparse_takes_m_log_n_steps(n: int, calls: Counter) -> None:
    rng = np.random.default_rng(n)
    scores = np.where(rng.random((n + 1, n + 1)) < 3 / n, normal(rng, n), -np.inf)
    scores[0] = normal(rng, n)[0]
    edges = int(np.isfinite(clean_scores(scores)).sum()) + 2 * n
    count = calls((LeftistHeap, "extract_max"), (LeftistHeap, "meld"), (Node, "push_down"))
    heads = zoo.tarjan_sparse(scores)
    assert count["extract_max"] == edges
    assert count["meld"] < 2 * n
    # an extraction or meld walks down two right spines of at most log2(size + 1) nodes
    assert count["push_down"] <= (edges + 2 * n) * (1 + 2 * np.log2(edges + 1))
    if n == 300:
        assert count["push_down"] < n**2
    np.testing.assert_allclose(scores_of(scores, heads[None]), scores_of(scores, zoo.tarjan(scores)[None]))


def test_the_leftist_heap_sorts_under_melds_and_lazy_constants() -> None:
    rng = np.random.default_rng(23)
    heaps: list[LeftistHeap] = []
    plain: list[float] = []
    for _ in range(8):
        weights = rng.integers(0, 20, size=9).astype(np.float64)
        shift = float(rng.integers(-9, 9))
        heaps.append(LeftistHeap.heapify([Edge(0, 1, float(x)) for x in weights]).add_const(shift))
        plain.extend(weights + shift)
    heap = heaps[0]
    for other in heaps[1:]:
        heap = heap.meld(other).add_const(0.5)
        _assert_leftist(heap.top)
    found = []
    while heap:
        found.append(heap.extract_max().weight)
        _assert_leftist(heap.top)
    received = [0.5 * min(7, 8 - i) for i in range(8) for _ in range(9)]
    assert found == sorted((x + r for x, r in zip(plain, received, strict=True)), reverse=True)


def parallel_edges(n: int) -> zoo.EdgeList:
    """Every edge of a sparse graph three times, with ties among all of them."""
    edges = sparse_graph(n)
    weight = np.random.default_rng(n).integers(0, 4, 3 * len(edges.head)).astype(np.float64)
    return zoo.EdgeList(n + 1, np.tile(edges.head, 3), np.tile(edges.dependent, 3), weight)


def test_the_active_forest_keeps_its_order_while_the_path_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    away_from_parents_heap = 0
    for name in ("extend", "contract"):
        original = getattr(GrowthPath, name)

        def checking(self: GrowthPath, node: int, original: Callable[..., None] = original) -> None:
            nonlocal away_from_parents_heap
            original(self, node)
            away_from_parents_heap += _assert_active_forest(self)

        monkeypatch.setattr(GrowthPath, name, checking)
    for n in (4, 12, 40):
        for graph in [*many_graphs(n), sparse_graph(n), parallel_edges(n)]:
            zoo.gabow_galil_spencer_tarjan(graph)
    assert away_from_parents_heap > 100


def _assert_active_forest(growth: GrowthPath) -> int:
    """Roots are at home, and children in their parent's heap are no better; the number of those in another.

    Those in another have a node of the path before their parent's, so no choice is asked of it before both are one.
    """
    place = {node: i for i, node in enumerate(growth.path)}
    active = [item for item in growth.active if item is not None]
    stack = []
    for heap, roots in growth.heaps.roots.items():
        for item in roots:
            assert item.parent is None
            assert growth.target(item.edge) == heap
            stack.append(item)
    found = elsewhere = 0
    while stack:
        item = stack.pop()
        found += 1
        assert growth.active[growth.source(item.edge)] is item
        for child in item.children:
            assert child.parent is item
            if growth.target(child.edge) == growth.target(item.edge):
                # constants of some 1e3 come and go in another order on the two sides
                assert growth.weight(child.edge) <= growth.weight(item.edge) + 1e-9
            else:
                assert place[growth.target(child.edge)] < place[growth.target(item.edge)]
                elsewhere += 1
            stack.append(child)
    assert found == len(active)
    return elsewhere


def test_an_item_with_k_children_has_a_subtree_of_fibonacci_size_whatever_is_cut_below_it() -> None:
    forest = ActiveForest(lambda edge: edge.v, lambda edge: edge.weight)
    items = [forest.insert(Edge(u, 0, -float(u))) for u in range(200)]
    assert forest.best(0) is items[0]
    fibonacci = [1, 2]
    while len(fibonacci) < 20:
        fibonacci.append(fibonacci[-1] + fibonacci[-2])
    # move all grandchildren of the best item to another heap: a child that lost two of its own is cut off too
    assert len(items[0].children) == 7
    for item in items:
        if item.parent is not None and item.parent.parent is items[0]:
            forest.change(item, item.edge._replace(v=1))
            for top in items:
                assert len(_subtree(top)) >= fibonacci[len(top.children)]
    # the heap ahead has the best of its items on top; those below them come back to their own heap as it empties
    for heap in (1, 0):
        for item in [item for item in items if item.edge.v == heap]:
            assert forest.best(heap) is item
            forest.delete(item)
        assert forest.best(heap) is None


def _subtree(item: Item) -> list[Item]:
    found = [item]
    for one in found:
        found.extend(one.children)
    return found


def test_contracted_vertices_add_up_their_constants_below_log2_of_their_number() -> None:
    rng = np.random.default_rng(31)
    vertices = ContractedVertices(64)
    nodes, received, inside = list(range(64)), np.zeros(64), {v: [v] for v in range(64)}
    while len(nodes) > 1:
        cycle = [nodes.pop(int(rng.integers(len(nodes)))) for _ in range(2)]
        constants = rng.integers(-9, 9, len(cycle)).astype(np.float64).tolist()
        for node, constant in zip(cycle, constants, strict=True):
            received[inside[node]] += constant
        c = vertices.contract(cycle, constants)
        nodes.append(c)
        inside[c] = inside[cycle[0]] + inside[cycle[1]]
        for v in range(64):
            steps, top = 0, v
            while vertices.up[top] != top:
                steps, top = steps + 1, vertices.up[top]
            assert steps <= np.log2(vertices.size[top])
    assert [vertices.find(v) for v in range(64)] == [(c, constant) for constant in received.tolist()]


def test_forbidden_edges_stay_forbidden_when_the_best_edge_is_one() -> None:
    heap = LeftistHeap.heapify([Edge(u, 3, -np.inf) for u in range(3)]).add_const(np.inf)
    assert [heap.extract_max().weight for _ in range(3)] == [-np.inf] * 3
    queue = LossyQueue.of_vertex(np.full((3, 3), -np.inf), 2).add_const(np.inf)
    assert [queue.extract_max().weight for _ in range(2)] == [-np.inf] * 2


def _assert_leftist(top: Node | None) -> None:
    stack = [] if top is None else [top]
    while stack:
        node = stack.pop()
        left, right = node.left, node.right
        assert (left.rank if left else 0) >= (right.rank if right else 0) == node.rank - 1
        for child in (left, right):
            if child is not None:
                assert child.weight + node.pending <= node.weight
                stack.append(child)


# one root


def test_naive_runs_once_per_root_edge_preselection_once_per_root_reweighting_once() -> None:
    rng = np.random.default_rng(24)
    seen = set()
    for family in (normal, many_roots, integer_ties):
        for _ in range(10):
            scores = family(rng, 8)
            roots = np.count_nonzero(zoo.tarjan(scores) == 0)
            seen.add(roots == 1)
            runs = 0

            def counting(graph: FloatArray) -> Any:
                nonlocal runs
                runs += 1
                return zoo.tarjan(graph)

            for decode, expected in (
                (zoo.naive_single_root, 8),
                (zoo.root_preselection, 1 if roots == 1 else 1 + roots),
                (zoo.reweighting, 1),
            ):
                runs = 0
                decode(scores, counting)
                assert runs == expected
    assert seen == {True, False}


def test_root_edges_of_best_trees_are_nested() -> None:
    rng = np.random.default_rng(26)
    all_trees = trees(4, "multi")
    root_edges = np.count_nonzero(all_trees == 0, axis=1)
    for _ in range(100):
        found = scores_of(rng.normal(size=(5, 5)), all_trees)
        best = [all_trees[np.where(root_edges == q, found, -np.inf).argmax()] == 0 for q in range(1, 5)]
        for fewer, more in pairwise(best):
            assert not (fewer & ~more).any()


def test_the_single_root_is_one_of_the_roots_of_the_unconstrained_tree() -> None:
    rng = np.random.default_rng(25)
    for _ in range(50):
        scores = many_roots(rng, 8)
        (root,) = np.flatnonzero(zoo.gabow_tarjan(scores) == 0)
        assert zoo.tarjan(scores)[root] == 0


@pytest.mark.parametrize("n", [10, 20, 40])
def test_gabow_tarjan_contracts_or_deletes_fewer_than_2n_times(n: int, calls: Counter) -> None:
    reductions_seen = optimizations_seen = 0
    for scores in many_graphs(n):
        count = calls(("gabow_tarjan", "contract"), ("gabow_tarjan", "find_cycle"), ("gabow_tarjan", "cycle_through"))
        zoo.gabow_tarjan(scores)
        assert count["contract"] <= n - 1
        assert count["find_cycle"] <= n
        # the turns of `constrain`: each deletes a root edge or contracts a cycle
        assert count["cycle_through"] <= 2 * (n - 1)
        reductions = count["contract"] - (count["find_cycle"] - 1)
        reductions_seen += reductions
        optimizations_seen += count["cycle_through"] - reductions
    assert reductions_seen > 0
    assert optimizations_seen > 0


def test_gabow_tarjan_on_the_worked_example_of_its_paper() -> None:
    # Figure 2: the cycle 2 -> 4 -> 3 -> 2 is contracted, the root edge into it weighs 170 and the one to
    # word 1 weighs 90; dropping the former leaves 210, dropping the latter 190 (the cycle's own weights fit
    # these numbers)
    scores = np.full((5, 5), -np.inf)
    scores[0, 1], scores[0, 2] = 90.0, 40.0
    scores[2, 4], scores[4, 3], scores[3, 2] = 60.0, 70.0, 50.0
    scores[4, 1] = 20.0
    scores[1, 3] = 10.0
    heads = zoo.gabow_tarjan(scores)
    np.testing.assert_array_equal(heads, [-1, 0, 3, 1, 2])
    assert scores_of(scores, heads[None])[0] == 210
    np.testing.assert_array_equal(zoo.chu_liu_edmonds(scores), [-1, 0, 0, 4, 2])


def test_reweighting_is_swamped_by_soft_masks_and_gabow_tarjan_is_not() -> None:
    rng = np.random.default_rng(26)
    worse = 0
    for _ in range(20):
        scores = normal(rng, 6)
        scores[4, 2] = -1e30
        best = scores_of(scores, trees(6, "single")).max()
        np.testing.assert_allclose(scores_of(scores, zoo.gabow_tarjan(scores)[None]), best)
        blind = zoo.reweighting(scores)
        assert zoo.is_tree(blind, "single")
        worse += bool(scores_of(scores, blind[None])[0] < best - 1e-6)
        forbidden = np.where(scores == -1e30, -np.inf, scores)
        np.testing.assert_allclose(scores_of(forbidden, zoo.reweighting(forbidden)[None]), best)
    assert worse > 5


def test_single_root_eisner_is_swamped_by_soft_masks_too() -> None:
    scores = np.zeros((4, 4))
    scores[0, 3] = 5.0
    scores[2, 1] = -1e30
    assert zoo.eisner(scores, root="single")[3] != 0
    scores[2, 1] = -np.inf
    assert zoo.eisner(scores, root="single")[3] == 0


def test_reweighting_loses_the_digits_that_its_constant_pushes_out() -> None:
    blind = []
    for better, worse in [(1, 2), (2, 1)]:
        scores = np.zeros((4, 4))
        scores[0, better], scores[0, worse] = 1.0 + 1e-9, 1.0
        assert zoo.reweighting(scores)[better] == 0
        scores[3, 1] = -1e9  # no part of any good tree, but the constant grows with it
        assert zoo.gabow_tarjan(scores)[better] == zoo.naive_single_root(scores)[better] == 0
        blind.append(zoo.reweighting(scores).tolist())
    assert blind[0] == blind[1]


@pytest.mark.parametrize("decode", [zoo.reweighting, zoo.eisner])
def test_reweighting_refuses_scores_that_overflow_its_constant(decode: Callable[[FloatArray], Any]) -> None:
    scores = np.zeros((3, 3))
    scores[1, 2] = -1e308
    scores[2, 1] = 1e308
    with pytest.raises(OverflowError, match="too far apart"):
        decode(scores)


def test_masks_that_cannot_be_avoided_drown_the_other_scores() -> None:
    # words 1 and 2 prefer each other, and both edges from ROOT are masked: 5 and 9 look alike next to the
    # mask
    enter_2 = np.array([[0, -1e30, -1e30], [0, 0, 5.0], [0, 9.0, 0]])
    enter_1 = np.array([[0, -1e30, -1e30], [0, 0, 9.0], [0, 5.0, 0]])
    unconstrained = (zoo.chu_liu_edmonds, zoo.tarjan, zoo.tarjan_sparse, zoo.gabow_galil_spencer_tarjan)
    for decode in (*unconstrained, zoo.gabow_tarjan):
        assert (decode(enter_2) == decode(enter_1)).all()


def sparse_graph(n: int) -> zoo.EdgeList:
    """About four edges for each word, some of them from ROOT, and a chain of words, so that there is a tree."""
    rng = np.random.default_rng(n)
    head, dependent = rng.integers(0, n + 1, 3 * n), rng.integers(1, n + 1, 3 * n)
    head = np.concatenate([head, np.arange(n), np.full(n // 5, 0)])
    dependent = np.concatenate([dependent, np.arange(1, n + 1), rng.integers(1, n + 1, n // 5)])
    _, distinct = np.unique(head * (n + 1) + dependent, return_index=True)
    distinct = distinct[head[distinct] != dependent[distinct]]
    return zoo.EdgeList(n + 1, head[distinct], dependent[distinct], rng.normal(size=len(distinct)))


def as_matrix(edges: zoo.EdgeList) -> FloatArray:
    scores = np.full((edges.nodes, edges.nodes), -np.inf)
    scores[edges.head, edges.dependent] = edges.weight
    return scores


@pytest.mark.parametrize("n", [3, 12, 40])
def test_sparse_decoders_read_lists_of_edges_and_scipy_matrices(n: int) -> None:
    edges = sparse_graph(n)
    scores = as_matrix(edges)
    stored = scipy.sparse.csr_array((edges.weight, (edges.head, edges.dependent)), shape=scores.shape)
    sparse: list[tuple[Callable[[Any], Any], Any]] = [
        (zoo.tarjan_sparse, zoo.tarjan(scores)),
        (zoo.gabow_galil_spencer_tarjan, zoo.tarjan(scores)),
        (zoo.gabow_tarjan_sparse, zoo.gabow_tarjan(scores)),
    ]
    for one_root in (zoo.reweighting, zoo.root_preselection, zoo.naive_single_root):
        for any_roots in (zoo.tarjan_sparse, zoo.gabow_galil_spencer_tarjan):
            sparse.append((partial(one_root, mst_func=any_roots), zoo.gabow_tarjan(scores)))
    for decode, expected in sparse:
        for graph in (edges, stored, stored.tocoo(), scores):
            np.testing.assert_array_equal(decode(graph), expected)


def test_a_stored_zero_is_an_edge_and_the_best_of_parallel_edges_counts() -> None:
    stored = scipy.sparse.coo_array(([0.0, 0.0], ([0, 1], [1, 2])), shape=(3, 3))
    parallel = zoo.EdgeList(3, np.array([0, 0, 0, 1, 2]), np.array([1, 2, 2, 2, 1]), np.array([1.0, 0, 3, 2, 0]))
    for decode in (zoo.tarjan_sparse, zoo.gabow_galil_spencer_tarjan):
        np.testing.assert_array_equal(decode(stored), [-1, 0, 1])
        np.testing.assert_array_equal(decode(parallel), [-1, 0, 0])
        with pytest.raises(ValueError, match="1 -> 2"):
            decode(scipy.sparse.coo_array(([1.0, np.nan], ([0, 1], [1, 2])), shape=(3, 3)))
        with pytest.raises(NoTreeError, match="word 2"):
            decode(scipy.sparse.coo_array(([1.0], ([0], [1])), shape=(3, 3)))
        with pytest.raises(ValueError, match="square"):
            decode(scipy.sparse.coo_array((3, 4)))
    np.testing.assert_array_equal(zoo.gabow_tarjan_sparse(parallel), [-1, 2, 0])
    with pytest.raises(NoTreeError, match="single root"):
        zoo.gabow_tarjan_sparse(zoo.EdgeList(3, np.array([0, 0]), np.array([1, 2]), np.zeros(2)))


def test_preselection_is_not_for_projective_decoders() -> None:
    """The root of the best projective tree with one root need not be one of the best with several."""
    unconstrained = partial(zoo.eisner, root="multi")
    rng = np.random.default_rng(29)
    missed = 0
    for _ in range(300):
        scores = rng.integers(-3, 4, size=(6, 6)).astype(np.float64)
        best = scores_of(scores, trees(5, "single", True)).max()
        found = scores_of(scores, zoo.root_preselection(scores, unconstrained)[None])[0]
        assert found <= best
        missed += bool(found < best)
        assert scores_of(scores, zoo.reweighting(scores, unconstrained)[None])[0] == best
    assert missed > 0


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_gabow_tarjan_with_exactly_and_at_most_q_root_edges(family: Callable[..., FloatArray]) -> None:
    rng = np.random.default_rng(30)
    for n in (1, 2, 3, 4, 5):
        everything = trees(n, "multi")
        roots = (everything == 0).sum(axis=1)
        for _ in range(8):
            scores = family(rng, n)
            ranked = scores_of(scores, everything)
            for q in range(1, n + 2):
                for at_most, wanted in ((False, roots == q), (True, roots <= q)):
                    best = ranked[wanted].max(initial=-np.inf)
                    if best == -np.inf:
                        with pytest.raises(NoTreeError):
                            zoo.gabow_tarjan(scores, q, at_most)
                        continue
                    heads = zoo.gabow_tarjan(scores, q, at_most)
                    count = np.count_nonzero(heads == 0)
                    assert zoo.is_tree(heads, "multi")
                    assert count <= q if at_most else count == q
                    np.testing.assert_allclose(scores_of(scores, heads[None])[0], best, rtol=1e-12, atol=1e-12)


def test_q_must_be_positive() -> None:
    with pytest.raises(ValueError, match="positive"):
        zoo.gabow_tarjan(np.zeros((3, 3)), 0)
    np.testing.assert_array_equal(zoo.gabow_tarjan(np.zeros((1, 1)), 2), [-1])


# projective


def test_eisner_finds_less_than_the_non_projective_decoders() -> None:
    scores = np.zeros((5, 5))
    scores[0, 3] = scores[3, 1] = scores[1, 4] = scores[4, 2] = 1.0
    crossing, projective = zoo.gabow_tarjan(scores), zoo.eisner(scores)
    assert not zoo.is_projective_tree(crossing)
    assert zoo.is_projective_tree(projective)
    assert scores_of(scores, projective[None])[0] < scores_of(scores, crossing[None])[0] == 4


def test_eisner_says_when_only_non_projective_trees_exist() -> None:
    scores = np.full((5, 5), -np.inf)
    scores[0, 3] = scores[3, 1] = scores[1, 4] = scores[4, 2] = 1.0
    assert zoo.is_tree(zoo.gabow_tarjan(scores))
    with pytest.raises(NoTreeError, match="projective"):
        zoo.eisner(scores)
    with pytest.raises(NoTreeError, match="projective"):
        zoo.eisner(scores, root="multi")


def test_arcmax_knows_that_eisner_is_projective() -> None:
    scores = np.zeros((5, 5))
    scores[0, 3] = scores[3, 1] = scores[1, 4] = scores[4, 2] = 1.0
    with_root = partial(zoo.eisner, root="single")
    for decoder, said in ((zoo.eisner, None), (with_root, None), (lambda w: zoo.eisner(w), True)):
        heads = zoo.arcmax(scores, True, decoder, said)
        assert zoo.is_projective_tree(heads)
        assert scores_of(scores, heads[None])[0] == scores_of(scores, trees(4, "single", True)).max()


# k best


@pytest.mark.parametrize("k", [1, 5, 20])
def test_camerini_collapses_the_graph_three_times_per_tree(k: int, calls: Counter) -> None:
    count = calls(("camerini_kbest", "collapse_dense"))
    zoo.camerini_kbest(normal(np.random.default_rng(27), 8), k)
    assert k <= count["collapse_dense"] <= 3 * k


def test_single_root_kbest_opens_only_the_rankings_it_needs(calls: Counter) -> None:
    scores = normal(np.random.default_rng(28), 10)
    scores[0] -= 5 * np.arange(11)
    count = calls(("single_root_kbest", "rank"))
    heads, _ = zoo.single_root_kbest(scores, 10)
    roots = (heads[:, :] == 0).any(axis=0).sum()
    assert roots < 4
    assert count["rank"] == roots
