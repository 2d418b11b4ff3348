"""What the door lets in, in which forms, and what it says of the rest."""

from __future__ import annotations

import ml_dtypes
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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("root", ["single", "multi"])
@pytest.mark.parametrize("layout", ["head_dep", "dep_head"])
@pytest.mark.parametrize("words", [1, 3, 7, 8, 13, 20])
def test_the_short_way_gives_the_same_bits(words, layout, root, dtype):
    rng = np.random.default_rng(words)
    batch = rng.normal(size=(11, words + 1, words + 1)).astype(dtype)
    batch[4] *= 1e4  # left to a special solve
    if words > 1:
        batch[6, 1] = -np.inf  # in two parts: word 1 is nobody's head
    batch[:, :, 0] = rng.choice([0.0, np.nan, np.inf], size=(11, words + 1))
    dist = spantree.TreeDistribution(batch.swapaxes(1, 2) if layout == "dep_head" else batch, root=root, layout=layout)
    for given in (batch, np.asfortranarray(batch), batch[:, ::1, ::1]):
        turned = np.ascontiguousarray(given.swapaxes(1, 2)) if layout == "dep_head" else given
        for ours, theirs in (
            (spantree.log_partition(turned, root=root, layout=layout), dist.log_partition()),
            (spantree.marginals(turned, root=root, layout=layout), dist.marginals()),
        ):
            assert ours.dtype == theirs.dtype == dtype
            np.testing.assert_array_equal(ours, theirs)
        for i, one in enumerate(turned):
            log_z = spantree.log_partition(one, root=root, layout=layout)
            assert type(log_z) is dtype
            assert log_z == dist.log_partition()[i]
            np.testing.assert_array_equal(spantree.marginals(one, root=root, layout=layout), dist.marginals()[i])


@pytest.mark.parametrize("ask", [spantree.log_partition, spantree.marginals])
def test_the_short_way_says_what_is_wrong(scores, ask):
    scores[3, :, 2] = -np.inf
    with pytest.raises(spantree.InfeasibleError, match="3"):
        ask(scores)
    scores[5, 1, 2] = np.nan
    with pytest.raises(ValueError, match="sentence 5"):
        ask(scores)
    assert ask(scores[:0]).shape[0] == 0


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


@pytest.mark.parametrize("dtype", [np.complex128, bool, object, "U3", "M8[s]"])
def test_bad_dtypes(dtype):
    for kind in (TypeError, ValueError, spantree.ScoreTypeError):
        with pytest.raises(kind, match="must be real numbers, such as float32 or float64"):
            spantree.decode(np.zeros((3, 3), dtype))


@pytest.mark.parametrize(
    ("dtype", "result"),
    [
        (np.float16, np.float16),
        (np.longdouble, np.float64),
        (">f2", np.float16),
        (">f4", np.float32),
        (">f8", np.float64),
        (np.int8, np.float64),
        (np.int64, np.float64),
        (">i4", np.float64),
        (np.uint16, np.float64),
    ],
)
def test_other_numbers_are_computed_in_double(scores, dtype, result):
    given = np.round(scores * 8).astype(dtype)
    same = given.astype(np.float64)
    ours, double = spantree.TreeDistribution(given), spantree.TreeDistribution(same)
    np.testing.assert_array_equal(ours.argmax(), double.argmax())
    for answer, wanted in [
        (ours.marginals(), double.marginals()),
        (ours.log_partition(), double.log_partition()),
        (spantree.marginals(given), double.marginals()),
        (spantree.marginals(list(given))[3], double.marginals()[3]),
    ]:
        np.testing.assert_array_equal(answer, wanted.astype(result), strict=True)


def test_nested_lists_are_one_sentence():
    scores = [[0, 1, 2], [0, 0, 3], [0, 5, 0]]
    assert spantree.decode(scores).tolist() == [-1, 2, 0]
    assert spantree.decode([np.array(row) for row in scores]).tolist() == [-1, 2, 0]
    assert [tree.tolist() for tree in spantree.decode([scores, [[0, 1], [0, 0]]])] == [[-1, 2, 0], [-1, 0]]
    labelled = np.random.default_rng(0).normal(size=(4, 4, 2))
    best = spantree.decode(labelled, labelled=True)
    np.testing.assert_array_equal(spantree.decode(labelled.tolist(), labelled=True).heads, best.heads)
    with pytest.raises(ValueError, match="scores is no array of numbers"):
        spantree.decode([[0, 1], [0]])


class FromElsewhere:
    """An array of a library that only speaks DLPack."""

    def __init__(self, array):
        self._array = array
        self.dtype = str(array.dtype)

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


def test_arrays_of_other_libraries(scores):
    np.testing.assert_array_equal(spantree.decode(FromElsewhere(scores)), expected(scores))
    np.testing.assert_array_equal(spantree.decode([FromElsewhere(matrix) for matrix in scores]), expected(scores))

    class Tensor(FromElsewhere):
        requires_grad = True

    with pytest.raises(TypeError, match=r"scores requires a gradient: spantree.torch keeps it"):
        spantree.decode(Tensor(scores))


def test_bfloat16():
    scores = np.random.default_rng(0).normal(size=(3, 6, 6)).astype(ml_dtypes.bfloat16)
    same = spantree.TreeDistribution(scores.astype(np.float64))
    dist = spantree.TreeDistribution(scores)
    np.testing.assert_array_equal(dist.argmax(), same.argmax())
    np.testing.assert_array_equal(dist.marginals(), same.marginals().astype(ml_dtypes.bfloat16), strict=True)


@pytest.mark.parametrize("turn", [lambda tensor: tensor, lambda tensor: tensor.transpose(1, 2)])
def test_bfloat16_through_dlpack(turn):
    """NumPy does not know the type, so its bits come in another way."""
    torch = pytest.importorskip("torch", minversion="2")
    tensor = turn(torch.tensor(np.random.default_rng(0).normal(size=(3, 6, 6))).to(torch.bfloat16))
    same = spantree.TreeDistribution(tensor.to(torch.float32).numpy())
    dist = spantree.TreeDistribution(tensor)
    np.testing.assert_array_equal(dist.argmax(), same.argmax())
    np.testing.assert_array_equal(dist.marginals(), same.marginals(), strict=True)


def test_masked_arrays_forbid_edges(scores):
    mask = np.random.default_rng(3).random(scores.shape) < 0.2
    masked = np.ma.masked_array(np.where(mask, np.nan, scores), mask)
    forbidden = np.where(mask, -np.inf, scores)
    for given in (masked, list(masked)):
        dist = spantree.TreeDistribution(given, on_infeasible="mask")
        np.testing.assert_array_equal(dist.max(), spantree.TreeDistribution(forbidden, on_infeasible="mask").max())
    both = spantree.TreeDistribution(masked, mask=scores < 1, on_infeasible="mask")
    apart = spantree.TreeDistribution(np.where(scores < 1, forbidden, -np.inf), on_infeasible="mask")
    np.testing.assert_array_equal(both.max(), apart.max())
    dist = spantree.TreeDistribution(scores)
    heads = np.ma.masked_array(dist.argmax())
    for ask in (
        lambda: dist.score(heads),
        lambda: dist.expectation(masked),
        lambda: spantree.is_tree(heads),
        lambda: spantree.decode(scores, np.ma.masked_array(np.full(12, 7))),
    ):
        with pytest.raises(ValueError, match="is a masked array; only scores may be masked"):
            ask()


def test_values_are_real(scores):
    with pytest.raises(ValueError, match="values must be real numbers, not complex128"):
        spantree.TreeDistribution(scores).expectation(scores + 1j)


def unusual(array):
    """The same values as bytes of the other order, not aligned, read-only."""
    swapped = array.astype(array.dtype.newbyteorder())
    shifted = np.frombuffer(b"\0" + array.tobytes(), np.uint8)[1:].view(array.dtype).reshape(array.shape)
    frozen = array.copy()
    frozen.flags.writeable = False
    return swapped, shifted, frozen, array[..., ::-1].copy()[..., ::-1], np.asfortranarray(array)


def test_everything_may_be_read_only_unaligned_and_of_the_other_byte_order(scores):
    lengths = np.arange(12) % 8
    dist = spantree.TreeDistribution(scores, lengths=lengths)
    heads, values = dist.argmax(), np.abs(scores)
    features = np.stack([values, scores], -1)
    edges = spantree.heads_to_edges(heads)
    for given, n, tree, value, feature, edge in zip(
        *map(unusual, (scores, lengths, heads, values, features, edges)), strict=True
    ):
        same = spantree.TreeDistribution(given, lengths=n)
        np.testing.assert_array_equal(spantree.decode(given, n), heads)
        np.testing.assert_array_equal(same.marginals(), dist.marginals())
        np.testing.assert_array_equal(same.score(tree), dist.score(heads))
        np.testing.assert_array_equal(same.log_prob(tree), dist.log_prob(heads))
        np.testing.assert_array_equal(same.risk(tree), dist.risk(heads))
        np.testing.assert_array_equal(same.expectation(value), dist.expectation(values))
        np.testing.assert_array_equal(same.product_expectation(value), dist.product_expectation(values))
        np.testing.assert_array_equal(same.covariance(feature, value), dist.covariance(features, values))
        np.testing.assert_array_equal(spantree.is_tree(tree, lengths=n), lengths > -1)
        np.testing.assert_array_equal(spantree.heads_to_edges(tree), edges)
        np.testing.assert_array_equal(spantree.edges_to_heads(edge), heads)


def test_a_mask_of_words_is_padding(scores):
    lengths = np.arange(12) % 8
    words = np.arange(1, 8) <= lengths[:, None]
    nodes = np.concatenate([np.zeros((12, 1), bool), words], axis=1)  # what it says of ROOT does not matter
    want = spantree.marginals(scores, lengths)
    np.testing.assert_array_equal(spantree.marginals(scores, mask=words), want)
    np.testing.assert_array_equal(spantree.marginals(scores, mask=nodes), want)
    np.testing.assert_array_equal(spantree.TreeDistribution(scores, mask=nodes).lengths, lengths)
    np.testing.assert_array_equal(spantree.decode(scores[3], mask=words[3]), spantree.decode(scores, lengths)[3])
    labelled = np.stack([scores, scores + 1], -1)
    assert spantree.TreeDistribution(labelled, mask=words, labelled=True).lengths.tolist() == lengths.tolist()
    with pytest.raises(ValueError, match="give lengths or a mask of words, not both"):
        spantree.decode(scores, lengths, mask=words)
    words[4, 1] = False
    with pytest.raises(ValueError, match="sentence 4: the mask leaves out word 2 and keeps a later one"):
        spantree.decode(scores, mask=words)
    with pytest.raises(ValueError, match="mask has 5 words; the matrices have room for 7"):
        spantree.decode(scores, mask=words[:, :5])


def test_forgotten_labels_are_guessed_at():
    with pytest.raises(ValueError, match=r"if the last axis of \(2, 4, 4, 3\) are labels, say labelled=True"):
        spantree.decode(np.zeros((2, 4, 4, 3)))
    with pytest.raises(ValueError, match=r"if the last axis of \(4, 4, 3\) are labels, say labelled=True"):
        spantree.decode([np.zeros((4, 4, 3))])


@pytest.mark.parametrize(
    "function", [spantree.decode, spantree.topk, spantree.sample, spantree.marginals, spantree.log_partition]
)
def test_wrong_keywords_are_refused_by_name(function):
    with pytest.raises(TypeError, match=rf"^{function.__name__}\(\) got an unexpected keyword argument 'leyout'"):
        function(np.zeros((3, 3)), leyout="dep_head")


@pytest.mark.parametrize("root", ["single", "multi"])
@pytest.mark.parametrize("layout", ["head_dep", "dep_head"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_short_way_and_the_long_one(dtype, layout, root):
    """Plain arrays are decoded without much ado, all others with: the same trees, the same errors."""
    rng = np.random.default_rng(0)
    options = {"layout": layout, "root": root}
    matrices = [rng.normal(size=(n + 1, n + 1)).astype(dtype) for n in rng.integers(0, 12, size=60)]
    matrices += [np.asfortranarray(matrix) for matrix in matrices]
    long_way = [spantree.TreeDistribution(matrix, **options).argmax() for matrix in matrices]
    for one, many, want in zip(matrices, spantree.decode(matrices, **options), long_way, strict=True):
        np.testing.assert_array_equal(many, want, strict=True)
        np.testing.assert_array_equal(spantree.decode(one, **options), want, strict=True)
        assert many.flags.owndata
    for spoilt, message in ((np.nan, "the score of the edge"), (-np.inf, "has no tree")):
        bad = rng.normal(size=(4, 4)).astype(dtype)
        bad[...] = spoilt
        with pytest.raises(ValueError, match=f"the sentence.*{message}"):
            spantree.decode(bad, **options)
        with pytest.raises(ValueError, match=f"sentence 3.*{message}"):
            spantree.decode([*matrices[:3], bad, *matrices[3:]], **options)
    mixed = [matrices[0], matrices[1].astype(np.float16), matrices[2].tolist()]
    for heads, matrix in zip(spantree.decode(mixed, **options), mixed, strict=True):
        assert heads.shape == (len(matrix),)


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


@pytest.mark.parametrize("temperature", [0.5, 1e-5])
def test_a_temperature_forbids_no_edge(temperature):
    """A mask of the least double is finite, and stays so when it is divided."""
    scores = np.array([[0, np.finfo(np.float64).min, 1.0], [0, 0, 0], [0, -np.inf, 0.0]])
    dist = spantree.TreeDistribution(scores, temperature=temperature, root="multi")
    assert dist.argmax().tolist() == [-1, 0, 0]
    assert dist.scores[2, 1] == -np.inf
    assert spantree.decode([[0, 1.7e308], [0, 0]], temperature=temperature).tolist() == [-1, 0]


def test_a_distribution_is_true():
    assert spantree.TreeDistribution(np.zeros((3, 3)))
    assert spantree.TreeDistribution(np.zeros((0, 3, 3)))


def test_one_liners_know_no_names_of_labels():
    with pytest.raises(ValueError, match="is a name, and labels have none"):
        spantree.decode(np.zeros((3, 3, 2)), labelled=True, root_label="root")


def test_rows_that_are_masked_arrays():
    """An array made of them would have lost the mask."""
    masked = np.ma.masked_less(np.arange(16.0).reshape(4, 4), 6)
    dist = spantree.TreeDistribution(np.zeros((4, 4)))
    for rows in (list(masked), tuple(masked)):
        with pytest.raises(ValueError, match="rows that are masked arrays"):
            spantree.TreeDistribution([rows])
        with pytest.raises(ValueError, match="rows that are masked arrays"):
            dist.expectation(rows)


def test_no_warnings_under_any_settings():
    """Rounding to the callers' types, tiny probabilities, huge values: silent, also where NumPy is told to raise."""
    sharp = np.array([[0, 0, 0, -3e38], [0, 0, -3e38, 0], [0, -3e38, 0, 0], [0, 0, 0, 0]], np.float32)
    low = spantree.TreeDistribution(sharp, root="multi")
    huge = np.full((4, 4), 1e308)
    huge[1] *= -1.0
    plain = spantree.TreeDistribution(900.0 * np.random.default_rng(0).normal(size=(4, 4)))
    sample = plain.sample_without_replacement(3, rng=0)
    with np.errstate(all="raise"):
        for ask in (
            lambda: list(low.iter_without_replacement(rng=0)),
            lambda: list(low.iter_best(at_most=2)),
            lambda: low.marginals(),
            lambda: low.entropy(with_grad=True),
            lambda: (low.expectation(np.zeros((4, 4))), low.marginals()),
            lambda: plain.complete([-1, -2, -2, 1]),
            lambda: plain.norm(0.5),
            lambda: plain.product_expectation(huge, with_grad=True),
            lambda: plain.product_expectation(np.full((4, 4), 1e-200)),
            lambda: sample.estimate(np.full(3, 1e308)),
            lambda: spantree.TreeDistribution(sharp[:3, :3], temperature=1e-300).kl(
                spantree.TreeDistribution(np.eye(3, dtype=np.float32), temperature=1e-300), with_grad=True
            ),
        ):
            ask()


def test_longer_numbers_than_doubles_stay_finite():
    """A score below all doubles is a soft mask, no hard one; what is not read is not warned of."""
    scores = np.array([[0, -1, 1], [0, 0, 1], [0, 1, 0]], np.longdouble)
    scores[0, 1], scores[:, 0] = np.longdouble("-1e4000"), np.longdouble("1e4000")
    if np.isinf(scores[0, 1]):
        pytest.skip("longdouble is double here")
    with np.errstate(all="raise"):
        dist = spantree.TreeDistribution(scores)
        assert dist.scores[0, 1] == np.finfo(np.float64).min
        assert dist.argmax().tolist() == [-1, 2, 0]
        assert dist.score([-1, 0, 1]) == np.finfo(np.float64).min
        assert np.isfinite(dist.expectation(np.where(scores < -1e300, scores, 0)))


@pytest.mark.parametrize("read", [spantree.TreeDistribution, spantree.decode])
def test_a_list_that_holds_itself(read):
    endless = []
    endless.append(endless)
    with pytest.raises(ValueError):
        read(endless)


def test_second_moments_of_a_sentence_without_trees():
    scores = np.zeros((2, 3, 3))
    scores[1] = -np.inf
    dist = spantree.TreeDistribution(scores, on_infeasible="mask")
    for ask in (dist.second_moment, dist.covariance):
        found = ask(np.ones((2, 3, 3)), "edges")
        assert np.isfinite(found[0]).all()
        np.testing.assert_array_equal(
            np.isnan(found[1]), [[False, True, True], [False, False, True], [False, True, False]]
        )
