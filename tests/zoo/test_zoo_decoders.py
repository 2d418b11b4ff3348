"""Every decoder of the battery keeps the promises that all of them make."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import networkx  # type: ignore[import-untyped]
import numpy as np
import pytest
from decoding_battery import (
    DECODERS,
    FAMILIES,
    Decoder,
    assert_best_or_infeasible,
    nested_cycles,
    normal,
    scores_of,
    trees,
)

from spantree.zoo._graph import FloatArray
from spantree.zoo.greedy import is_projective_tree, is_tree

every_decoder = pytest.mark.parametrize("decoder", DECODERS, ids=lambda decoder: decoder.name)
every_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
Family = Callable[[np.random.Generator, int], FloatArray]


@every_decoder
@every_family
def test_best_tree_against_enumeration(decoder: Decoder, family: Family) -> None:
    rng = np.random.default_rng(5)
    for n in (1, 2, 3, 4, 5):
        for _ in range(12):
            assert_best_or_infeasible(decoder, family(rng, n))


@pytest.mark.parametrize("decoder", [d for d in DECODERS if d.exact_with_soft_masks], ids=lambda decoder: decoder.name)
def test_soft_masks_are_like_forbidden_edges(decoder: Decoder) -> None:
    rng = np.random.default_rng(6)
    compared = 0
    for _ in range(60):
        scores = normal(rng, 4)
        masked = rng.random(scores.shape) < 0.4
        forbidden = np.where(masked, -np.inf, scores)
        best = scores_of(forbidden, trees(4, decoder.root, decoder.projective)).max()
        if best > -np.inf:
            for mask in (-1e9, -1e30, float(np.finfo(np.float32).min)):
                heads = decoder.decode(np.where(masked, mask, scores))
                np.testing.assert_allclose(scores_of(forbidden, heads[None]), best, rtol=1e-12)
            compared += 1
    assert compared > 20


@every_decoder
@pytest.mark.parametrize("n", [12, 25])
def test_decoders_of_a_kind_agree_on_longer_sentences(decoder: Decoder, n: int) -> None:
    other = next(d for d in DECODERS if (d.root, d.projective) == (decoder.root, decoder.projective))
    rng = np.random.default_rng(n)
    for family in FAMILIES:
        scores = family(rng, n)
        try:
            expected = other.decode(scores)
        except ValueError:
            with pytest.raises(ValueError):
                decoder.decode(scores)
            continue
        heads = decoder.decode(scores)
        check = is_projective_tree if decoder.projective else is_tree
        assert check(heads, decoder.root)
        np.testing.assert_allclose(scores_of(scores, heads[None]), scores_of(scores, expected[None]), rtol=1e-12)


@pytest.mark.parametrize("name", ["chu_liu_edmonds", "tarjan", "tarjan_sparse", "gabow_galil_spencer_tarjan"])
def test_several_roots_against_networkx(name: str) -> None:
    (decoder,) = (d for d in DECODERS if d.name == name)
    rng = np.random.default_rng(7)
    for _ in range(5):
        scores = normal(rng, 12)
        graph = networkx.DiGraph()
        for head, dependent in np.ndindex(13, 13):
            if dependent not in (0, head):
                graph.add_edge(head, dependent, weight=float(scores[head, dependent]))
        expected = networkx.maximum_spanning_arborescence(graph)
        heads = decoder.decode(scores)
        assert set(expected.edges) == {(int(heads[d]), d) for d in range(1, 13)}


@every_decoder
def test_what_stands_in_column_0_and_on_the_diagonal_is_ignored(decoder: Decoder) -> None:
    scores = normal(np.random.default_rng(8), 6)
    expected = decoder.decode(scores)
    for junk in (np.nan, np.inf, -np.inf, 1e300):
        littered = scores.copy()
        littered[:, 0] = junk
        np.fill_diagonal(littered, junk)
        np.testing.assert_array_equal(decoder.decode(littered), expected)


@every_decoder
def test_inputs_of_any_layout_are_read_and_left_alone(decoder: Decoder) -> None:
    scores = normal(np.random.default_rng(9), 6).astype(np.float32).astype(np.float64)
    expected = decoder.decode(scores)
    wide = np.zeros((14, 7))
    wide[::2] = scores
    for same in (scores.astype(np.float32), np.asfortranarray(scores), wide[::2]):
        before = same.copy()
        same.flags.writeable = False
        np.testing.assert_array_equal(decoder.decode(same), expected)
        np.testing.assert_array_equal(same, before)


@every_decoder
def test_ties_are_broken_the_same_way_every_time(decoder: Decoder) -> None:
    scores = np.random.default_rng(10).integers(0, 2, size=(9, 9)).astype(np.float64)
    first = decoder.decode(scores)
    for _ in range(3):
        np.testing.assert_array_equal(decoder.decode(scores), first)


@every_decoder
def test_no_word_and_one_word(decoder: Decoder) -> None:
    np.testing.assert_array_equal(decoder.decode(np.zeros((1, 1))), [-1])
    np.testing.assert_array_equal(decoder.decode(np.full((2, 2), -3.0)), [-1, 0])
    with pytest.raises(ValueError):
        decoder.decode(np.full((2, 2), -np.inf))


@every_decoder
def test_a_single_root_may_be_impossible_where_several_roots_are_not(decoder: Decoder) -> None:
    scores = np.full((4, 4), -np.inf)
    scores[0, 1] = scores[0, 2] = scores[2, 3] = 1.0
    if decoder.root == "single":
        with pytest.raises(ValueError):
            decoder.decode(scores)
    else:
        np.testing.assert_array_equal(decoder.decode(scores), [-1, 0, 0, 2])


@every_decoder
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_scores_that_are_no_scores_are_refused_by_edge(decoder: Decoder, bad: float) -> None:
    scores = np.zeros((5, 5))
    scores[2, 4] = bad
    with pytest.raises(ValueError, match=r"2 -> 4"):
        decoder.decode(scores)


@every_decoder
@pytest.mark.parametrize("shape", [(3, 4), (0, 0), (5,)])
def test_matrices_that_are_not_square_are_refused(decoder: Decoder, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError):
        decoder.decode(np.zeros(shape))


@pytest.fixture
def hardly_any_recursion() -> Iterator[None]:
    depth = 0
    frame = sys._getframe()
    while frame.f_back is not None:
        frame, depth = frame.f_back, depth + 1
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(depth + 60)
    yield
    sys.setrecursionlimit(limit)


@every_decoder
@pytest.mark.usefixtures("hardly_any_recursion")
def test_deeply_nested_cycles_need_no_deep_recursion(decoder: Decoder) -> None:
    heads = decoder.decode(nested_cycles(100))
    assert is_tree(heads, decoder.root)
    np.testing.assert_array_equal(heads, np.arange(-1, 100))
