"""What the door lets in, in which forms, and what it says of the rest."""

from __future__ import annotations

import numpy as np
import pytest

import spantree


@pytest.fixture
def scores():
    return np.random.default_rng(0).normal(size=(12, 8, 8))


def expected(scores):
    return np.stack([spantree.decode(matrix) for matrix in scores])


def test_padding_changes_nothing(scores):
    rng = np.random.default_rng(1)
    lengths = rng.integers(0, 8, size=12)
    alone = [spantree.decode(matrix[: n + 1, : n + 1]) for matrix, n in zip(scores, lengths, strict=True)]
    for filler in (0.0, np.nan, np.inf, -np.inf, 1e300):
        padded = scores.copy()
        for matrix, n in zip(padded, lengths, strict=True):
            matrix[n + 1 :] = filler
            matrix[:, n + 1 :] = filler
        heads = spantree.decode(padded, lengths)
        for row, tree in zip(heads, alone, strict=True):
            np.testing.assert_array_equal(row[: len(tree)], tree)
            assert (row[len(tree) :] == -1).all()


def test_a_list_gives_a_list(scores):
    matrices = [scores[i, : n + 1, : n + 1] for i, n in enumerate([3, 7, 0, 1])]
    dist = spantree.TreeDistribution(matrices)
    heads = dist.argmax()
    assert isinstance(heads, list)
    for tree, matrix in zip(heads, matrices, strict=True):
        np.testing.assert_array_equal(tree, spantree.decode(matrix))
    best = dist.max()
    assert isinstance(best, list)
    assert best == [spantree.TreeDistribution(matrix).max() for matrix in matrices]
    trees = dist.topk(3)
    assert [part.shape for part in trees.heads] == [(3, 4), (3, 8), (3, 1), (3, 2)]
    assert [part.shape for part in trees.scores] == [(3,)] * 4
    np.testing.assert_allclose(dist.score(trees.heads)[1], trees.scores[1])
    np.testing.assert_allclose(dist.score(heads), best)


def test_any_number_of_leading_axes(scores):
    nested = scores.reshape(2, 1, 6, 8, 8)
    dist = spantree.TreeDistribution(nested, lengths=np.full((2, 1, 6), 7))
    np.testing.assert_array_equal(dist.argmax(), expected(scores).reshape(2, 1, 6, 8))
    assert dist.max().shape == (2, 1, 6)
    trees = dist.topk(4)
    assert trees.heads.shape == (4, 2, 1, 6, 8)
    assert trees.scores.shape == (4, 2, 1, 6)
    np.testing.assert_allclose(dist.score(trees.heads), trees.scores)
    assert len(dist) == 2
    np.testing.assert_array_equal(dist[1][0][3].argmax(), expected(scores)[9])


def test_every_memory_layout(scores):
    want = expected(scores)
    frozen = scores.copy()
    frozen.flags.writeable = False
    unaligned = np.frombuffer(b"\0" + scores.tobytes(), np.uint8)[1:].view(np.float64).reshape(scores.shape)
    wide = np.zeros((12, 16, 24))
    wide[:, ::2, ::3] = scores
    for view in (
        np.asfortranarray(scores),
        scores[::-1][::-1],
        np.flip(np.flip(scores, (1, 2)).copy(), (1, 2)),
        wide[:, ::2, ::3],
        frozen,
        unaligned,
        np.ascontiguousarray(scores.swapaxes(1, 2)).swapaxes(1, 2),
    ):
        np.testing.assert_array_equal(spantree.decode(view), want)
    np.testing.assert_array_equal(spantree.decode(np.broadcast_to(scores[0], (3, 8, 8))), want[[0, 0, 0]])


def test_layout_is_what_the_caller_says(scores):
    turned = np.ascontiguousarray(scores.swapaxes(1, 2))
    np.testing.assert_array_equal(spantree.decode(turned, layout="dep_head"), expected(scores))
    labelled = np.random.default_rng(2).normal(size=(5, 6, 6, 3))
    plain = spantree.decode(labelled, labelled=True)
    turned = spantree.decode(labelled.swapaxes(1, 2).copy(), labelled=True, layout="dep_head")
    np.testing.assert_array_equal(plain.heads, turned.heads)
    np.testing.assert_array_equal(plain.labels, turned.labels)


def test_inputs_are_left_alone(scores):
    before = scores.copy()
    dist = spantree.TreeDistribution(scores, mask=np.ones(scores.shape, bool))
    dist.argmax(), dist.topk(3), dist.condition(exclude=[(1, 2)]).argmax()
    np.testing.assert_array_equal(scores, before)


def test_mask_forbids_edges_even_where_the_score_is_nan(scores):
    mask = np.random.default_rng(3).random(scores.shape) < 0.8
    forbidden = np.where(mask, scores, -np.inf)
    with_nan = np.where(mask, scores, np.nan)
    dist = spantree.TreeDistribution(with_nan, mask=mask, on_infeasible="mask")
    np.testing.assert_array_equal(dist.max(), spantree.TreeDistribution(forbidden, on_infeasible="mask").max())
    turned = spantree.TreeDistribution(
        with_nan.swapaxes(1, 2), mask=mask.swapaxes(1, 2), layout="dep_head", on_infeasible="mask"
    )
    np.testing.assert_array_equal(dist.argmax(), turned.argmax())


def test_diagonal_and_column_zero_are_ignored(scores):
    for value in (np.nan, np.inf, -np.inf, 1e308):
        noisy = scores.copy()
        noisy[:, :, 0] = value
        noisy[:, np.arange(8), np.arange(8)] = value
        np.testing.assert_array_equal(spantree.decode(noisy), expected(scores))


@pytest.mark.parametrize("layout", ["head_dep", "dep_head"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_bad_scores_are_named(scores, value, layout):
    scores[7, 3, 5] = value
    given = scores.swapaxes(1, 2).copy() if layout == "dep_head" else scores
    with pytest.raises(ValueError, match=rf"sentence 7: the score of the edge 3 -> 5 is {value}"):
        spantree.TreeDistribution(given, layout=layout)
    with pytest.raises(ValueError, match=rf"sentence \(1, 1\): the score of the edge 3 -> 5 is {value}"):
        spantree.TreeDistribution(given.reshape(2, 6, 8, 8), layout=layout)
    with pytest.raises(ValueError, match=rf"the sentence: the score of the edge 3 -> 5 is {value}"):
        spantree.TreeDistribution(given[7].astype(np.float32), layout=layout)
    with pytest.raises(ValueError, match=r"sentence 1: the score of the edge 3 -> 5"):
        spantree.TreeDistribution([given[0], given[7]], layout=layout)


def test_bad_labelled_scores_are_named():
    scores = np.zeros((2, 4, 4, 3))
    scores[1, 2, 3, 1] = np.nan
    with pytest.raises(ValueError, match=r"sentence 1: the score of the edge 2 -> 3 with label 1 is nan"):
        spantree.TreeDistribution(scores, labelled=True)


@pytest.mark.parametrize(
    ("scores", "options", "message"),
    [
        (np.zeros((3, 4)), {}, r"3 x 4 edges"),
        (np.zeros(3), {}, r"must have shape"),
        (np.zeros((0, 0)), {}, r"0 x 0 edges"),
        (np.zeros((3, 3)), {"labelled": True}, r"must have shape \(..., n\+1, n\+1, labels\)"),
        (np.zeros((3, 3, 0)), {"labelled": True}, r"no labels"),
        (np.zeros((2, 3, 3)), {"lengths": [2]}, r"lengths has shape \(1,\)"),
        (np.zeros((2, 3, 3)), {"lengths": [2, 3]}, r"sentence 1 has 3 words; the matrices have room for 0 to 2"),
        (np.zeros((2, 3, 3)), {"lengths": [-1, 2]}, r"sentence 0 has -1 words"),
        (np.zeros((2, 3, 3)), {"lengths": [1.5, 2]}, r"lengths must be integers"),
        ([np.zeros((3, 3))], {"lengths": [2]}, r"lengths goes with a padded batch"),
        ([np.zeros((2, 3, 3))], {}, r"scores\[0\] must be one sentence's matrix"),
        ([np.zeros((3, 3)), np.zeros((3, 2))], {}, r"scores\[1\] has 3 x 2 edges"),
        ([np.zeros((3, 3, 2)), np.zeros((3, 3, 4))], {"labelled": True}, r"scores\[1\] has 4 labels"),
        (np.zeros((3, 3)), {"mask": np.ones((3, 3))}, r"mask must be boolean"),
        (np.zeros((3, 3)), {"mask": np.ones((3, 2), bool)}, r"mask has shape"),
        ([np.zeros((3, 3))], {"mask": np.ones((1, 3, 3), bool)}, r"mask must be a list"),
        (np.zeros((3, 3)), {"root": "one"}, r"root must be"),
        (np.zeros((3, 3)), {"layout": "hd"}, r"layout must be"),
        (np.zeros((3, 3)), {"on_infeasible": "ignore"}, r"on_infeasible must be"),
    ],
)
def test_other_bad_input(scores, options, message):
    with pytest.raises(ValueError, match=message):
        spantree.TreeDistribution(scores, **options)


@pytest.mark.parametrize("dtype", [np.int64, np.complex128, np.float16, bool, object, ">f8"])
def test_bad_dtypes(dtype):
    for kind in (TypeError, ValueError):
        with pytest.raises(kind, match="must be float32 or float64"):
            spantree.decode(np.zeros((3, 3), dtype))


def test_mixed_precision_list_is_computed_in_double():
    dist = spantree.TreeDistribution([np.zeros((3, 3)), np.zeros((2, 2), np.float32)])
    assert [value.dtype for value in dist.max()] == [np.float64, np.float64]


@pytest.mark.parametrize("root", ["single", "multi"])
def test_no_tree(root):
    scores = np.zeros((3, 5, 5))
    scores[1, :, 3] = -np.inf  # no edge enters word 3
    with pytest.raises(spantree.InfeasibleError, match=r"sentence 1 has no tree.*word 3 cannot be attached") as caught:
        spantree.decode(scores, root=root)
    assert (caught.value.sentence, caught.value.word) == (1, 3)
    assert isinstance(caught.value, ValueError)
    with pytest.raises(spantree.InfeasibleError):
        spantree.topk(scores, 2, root=root)
    dist = spantree.TreeDistribution(scores, root=root, on_infeasible="mask")
    heads = dist.argmax()
    assert (heads[1] == -1).all()
    assert spantree.is_tree(heads, root=root).tolist() == [True, False, True]
    assert dist.max()[1] == -np.inf
    assert np.isfinite(dist.max()[[0, 2]]).all()
    assert (dist.topk(2).scores[:, 1] == -np.inf).all()
    assert list(dist[1].iter_best()) == []


def test_no_tree_with_one_root_though_one_with_two():
    scores = np.full((5, 5), -np.inf)
    scores[0, 1] = scores[0, 3] = scores[1, 2] = scores[3, 4] = 0.0  # two components
    assert spantree.decode(scores, root="multi").tolist() == [-1, 0, 1, 0, 3]
    with pytest.raises(spantree.InfeasibleError, match=r"the sentence has no tree with one root: word 3"):
        spantree.decode(scores)


def test_cycle_cut_off_from_root_is_infeasible():
    scores = np.full((4, 4), -np.inf)
    scores[0, 1] = scores[2, 3] = scores[3, 2] = 0.0
    with pytest.raises(spantree.InfeasibleError) as caught:
        spantree.decode(scores, root="multi")
    assert caught.value.word in (2, 3)


def test_infeasible_error_survives_pickling():
    import pickle

    error = pickle.loads(pickle.dumps(spantree.InfeasibleError("no", 3, 4)))
    assert (str(error), error.sentence, error.word) == ("no", 3, 4)


def test_indexing(scores):
    dist = spantree.TreeDistribution(scores, lengths=np.arange(12) % 8)
    assert len(dist) == 12
    np.testing.assert_array_equal(dist[3].argmax(), dist.argmax()[3])
    np.testing.assert_array_equal(dist[2:5].argmax(), dist.argmax()[2:5])
    np.testing.assert_array_equal(dist[-1].max(), dist.max()[-1])
    ragged = spantree.TreeDistribution(list(scores))
    np.testing.assert_array_equal(ragged[4].argmax(), expected(scores)[4])
    assert len(ragged[3:6]) == 3
    with pytest.raises(IndexError):
        dist[12]
    with pytest.raises(TypeError):
        len(dist[0])
    with pytest.raises(TypeError):
        dist[0][0]
    assert repr(dist[3]) == "TreeDistribution(3 words, single root, float64)"
    assert repr(dist) == "TreeDistribution(12 sentences of 0 to 7 words, single root, float64)"


def test_threads_setting(monkeypatch):
    monkeypatch.setenv("SPANTREE_THREADS", "3")
    assert spantree.get_threads() == 3
    spantree.set_threads(2)
    assert spantree.get_threads() == 2
    spantree.set_threads(None)
    monkeypatch.setenv("SPANTREE_THREADS", "many")
    with pytest.raises(ValueError, match="SPANTREE_THREADS"):
        spantree.get_threads()
    for bad in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="positive integer"):
            spantree.set_threads(bad)


@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("projective", [False, True])
@pytest.mark.parametrize("scores", [np.zeros((0, 4, 4)), np.zeros((2, 0, 4, 4)), []], ids=["batch", "batches", "list"])
def test_no_sentences_no_answers(scores, projective, labelled):
    if labelled and not isinstance(scores, list):
        scores = np.zeros((*scores.shape, 3))
    dist = spantree.TreeDistribution(scores, projective=projective, labelled=labelled)
    entropy, gradient = dist.entropy(with_grad=True)
    shape = scores.shape if isinstance(scores, np.ndarray) else (0,)
    for edges in (dist.marginals(), gradient):
        assert np.shape(edges) == shape
    for numbers in (dist.log_partition(), dist.max(), entropy):
        assert np.size(numbers) == 0
    heads = dist.argmax().heads if labelled else dist.argmax()
    assert np.size(heads) == 0
