"""`Annotate`: what comes out of a record batch is what the library says about each of its sentences."""

from __future__ import annotations

import pickle
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest

import spantree
from spantree import _core
from spantree._annotations import Options
from spantree._annotations import annotate as annotate_candidates
from spantree._flat import Candidates
from spantree.arrow import Annotate
from spantree.files import BadFileError


def batch_of(scores, labels=None, kind=None):
    columns = {
        "id": [f"s{i}" for i in range(len(scores))],
        "n": pa.array([len(one) - 1 for one in scores], pa.int32()),
        "scores": pa.array([one.ravel() for one in scores], kind or pa.list_(pa.float64())),
    }
    batch = pa.record_batch(columns)
    return batch.replace_schema_metadata({"labels": labels}) if labels else batch


def sentences(labels=0, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(n + 1, n + 1, *([labels] * bool(labels)))) * 2 for n in rng.integers(1, 7, 30)]


@pytest.mark.parametrize(
    "options", [{}, {"root": "multi"}, {"projective": True}, {"temperature": 2.5}, {"layout": "dep_head"}]
)
def test_each_sentence(options):
    scores = sentences()
    out = Annotate(**options)(batch_of(scores)).to_pylist()
    keywords = {key: value for key, value in options.items() if key != "temperature"}
    for one, row in zip(scores, out, strict=True):
        dist = spantree.TreeDistribution(one / options.get("temperature", 1), **keywords)
        heads = dist.argmax()
        marginals = dist.marginals().T if options.get("layout") else dist.marginals()
        n = len(heads) - 1
        assert row["n"] == n
        assert row["heads"] == heads[1:].tolist()
        chosen = marginals[heads[1:], np.arange(1, n + 1)]
        np.testing.assert_allclose(row["head_prob"], chosen, rtol=1e-6)
        others = [np.delete(marginals[:, dep], heads[dep]).sum() for dep in range(1, n + 1)]
        with np.errstate(divide="ignore"):
            np.testing.assert_allclose(row["log_odds"], np.log(chosen) - np.log(others), rtol=1e-5, atol=1e-6)
        assert row["log_prob"] == pytest.approx(dist.log_prob(heads), abs=1e-12)
        assert row["entropy"] == pytest.approx(dist.entropy(), abs=1e-12)


def test_a_sentence_without_an_id():
    batch = batch_of(sentences()[:2]).set_column(0, "id", pa.array(["a", None]))
    assert Annotate()(batch).column("id").to_pylist() == ["a", None]


def test_k_best_and_ids():
    scores = sentences()
    for i, (one, row) in enumerate(zip(scores, Annotate(k=4)(batch_of(scores)).to_pylist(), strict=True)):
        dist = spantree.TreeDistribution(one)
        trees = dist.topk(4)
        there = np.isfinite(trees.scores)
        assert row["id"] == f"s{i}"
        assert row["best_heads"] == trees.heads[there, 1:].tolist()
        np.testing.assert_allclose(row["best_log_prob"], dist.log_prob(trees.heads[there]), atol=1e-12)


def test_labelled_with_k_best():
    scores = sentences(labels=3)
    batch = batch_of(scores, labels='["a", "b", "c"]')
    for one, row, best in zip(scores, Annotate()(batch).to_pylist(), Annotate(k=3)(batch).to_pylist(), strict=True):
        dist = spantree.TreeDistribution(one, labelled=True)
        tree, trees = dist.argmax(), dist.topk(3)
        assert (row["heads"], row["labels"]) == (tree.heads[1:].tolist(), tree.labels[1:].tolist())
        assert (best["heads"], best["labels"]) == (row["heads"], row["labels"])
        assert row["log_prob"] == pytest.approx(dist.log_prob(tree), abs=1e-12)
        there = np.isfinite(trees.scores)
        assert best["best_labels"] == trees.labels[there, 1:].tolist()


def test_mbr_has_the_highest_expected_score():
    changed = 0
    for one in sentences(seed=3):
        (row,) = Annotate(mbr=True)(batch_of([one])).to_pylist()
        dist = spantree.TreeDistribution(one)
        every = [tree.heads for tree in dist.iter_best()]
        marginals = dist.marginals()
        gain = [marginals[heads[1:], np.arange(1, len(heads))].sum() for heads in every]
        mine = np.array([-1, *row["heads"]])
        assert marginals[mine[1:], np.arange(1, len(mine))].sum() == pytest.approx(max(gain), abs=1e-12)
        changed += row["heads"] != every[0][1:].tolist()
    assert changed


def test_it_pickles_and_takes_slices_and_any_list():
    annotate = pickle.loads(pickle.dumps(Annotate(root="multi", confidence=False)))
    scores = [one.astype(np.float32) for one in sentences()]
    whole = annotate(batch_of(scores, kind=pa.large_list(pa.float32())))
    assert whole.schema.names == ["id", "n", "heads", "error"]
    assert annotate(batch_of(scores).slice(5, 7)).to_pylist() == whole.slice(5, 7).to_pylist()
    square = np.random.default_rng(0).normal(size=(4, 3, 3)).astype(np.float32)
    fixed = batch_of(square, kind=pa.list_(pa.float32(), 9)).slice(1)
    assert annotate(fixed).column("heads").to_pylist() == [
        spantree.decode(one, root="multi")[1:].tolist() for one in square[1:]
    ]
    assert annotate(batch_of([])).num_rows == 0
    table = pa.Table.from_batches([batch_of(scores).slice(0, 9), batch_of(scores).slice(9)])
    assert annotate(table).to_pylist() == whole.to_pylist()
    assert annotate(table.slice(0, 0)).schema == whole.schema


def test_what_it_refuses():
    with pytest.raises(ValueError, match="temperature must be positive"):
        Annotate(temperature=0)
    with pytest.raises(ValueError, match="k must be a positive integer"):
        Annotate(k=0)
    for option, given in (
        ("root", "Single"),
        ("layout", "hd"),
        ("projective", "no"),
        ("mbr", 1),
        ("confidence", None),
        ("temperature", True),
        ("k", True),
    ):
        with pytest.raises((TypeError, ValueError), match=f"{option} must be"):
            Annotate(**{option: given})
    bad, hopeless = np.zeros((3, 3)), np.zeros((3, 3))
    bad[0, 1], hopeless[:, 2] = np.nan, -np.inf
    fine, first, second = Annotate(k=2)(batch_of([np.zeros((3, 3)), bad, hopeless])).to_pylist()
    assert fine["error"] is None
    assert "the edge 0 -> 1 is nan" in first["error"]
    assert first["heads"] == [-1, -1]
    assert "word 2 cannot be attached" in second["error"]
    assert np.isnan(second["head_prob"]).all()
    assert Annotate()(batch_of([bad])).column("error").null_count == 0


class Watched:
    """The core, and what is asked of it."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        if name == "Root":
            return _core.Root

        def call(values, *rest):
            self.calls.append((name, values.ctypes.data))
            return getattr(_core, name)(values, *rest)

        return call


@pytest.mark.parametrize("labels", [0, 2])
@pytest.mark.parametrize("options", [{}, {"layout": "dep_head", "mbr": True}, {"temperature": 2.0, "projective": True}])
def test_one_call_of_the_core_and_no_copy(monkeypatch, labels, options):
    """Values and places go over once, of the column's own memory; no matrix and no second column is made of them."""
    scores = [np.tile(one, (40, 40, 1) if labels else (40, 40)) for one in sentences(labels)[:12]]
    batch = batch_of(scores, labels='["a", "b"]' if labels else None).slice(3, 7)
    expected = Annotate(**options, k=2)(batch)
    core = Watched()

    def refuse(*_):
        raise AssertionError("made a matrix")

    for module in ("_annotations", "_options", "_batch", "_decoding", "_inference"):
        monkeypatch.setattr(f"spantree.{module}._core", core)
    monkeypatch.setattr("spantree._flat.FlatScores.__getitem__", refuse)
    tracemalloc.start()
    assert Annotate(**options, k=2)(batch).equals(expected)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    column = batch.column("scores")
    assert core.calls == [("annotate", column.values.buffers()[1].address + 8 * column.offsets[0].as_py())]
    assert peak < column.nbytes / 4


@pytest.mark.parametrize("options", [{}, {"k": 3}, {"mbr": True}, {"layout": "dep_head", "temperature": 2.0}])
@pytest.mark.parametrize("labels", [0, 2])
def test_no_sentences(options, labels):
    batch = batch_of(sentences(labels), labels='["a", "b"]' if labels else None)
    annotate = Annotate(**options)
    assert annotate(batch.slice(0, 0)).schema == annotate(batch).schema


def test_values_at_an_odd_address():
    (one,) = sentences()[:1]
    memory = np.zeros(one.nbytes + 1, np.uint8)
    memory[1:] = one.ravel().view(np.uint8)
    values = pa.Array.from_buffers(pa.float64(), one.size, [None, pa.py_buffer(memory[1:])])
    column = pa.ListArray.from_arrays(pa.array([0, one.size], pa.int32()), values)
    batch = pa.record_batch({"id": ["s0"], "n": pa.array([len(one) - 1]), "scores": column})
    assert Annotate()(batch).drop_columns("n").equals(Annotate()(batch_of([one])).drop_columns("n"))


def test_it_stays_in_its_thread(monkeypatch):
    def refuse():
        raise AssertionError("asked for threads")

    scores = sentences()
    expected = Annotate(mbr=True, k=2)(batch_of(scores))
    bad = np.full((3, 3), np.nan)
    monkeypatch.setattr("spantree._annotations.get_threads", refuse)
    assert Annotate(mbr=True, k=2)(batch_of([*scores, bad])).slice(0, len(scores)).equals(expected)


def few_candidates(labels, heads_type=None, scores_type=None, seed=1):
    """The same sentences as lists of candidates and dense, some without words or a tree."""
    rng = np.random.default_rng(seed)
    scores = [one if rng.random() < 0.9 else one[:1, :1] for one in sentences(labels, seed)]
    columns = {"n": [len(one) - 1 for one in scores], "heads": [], "scores": [], "labels": []}
    for one in scores:
        one[rng.random(one.shape) < 0.5] = -np.inf
        one[np.arange(len(one)), np.arange(len(one))] = -np.inf
        edges = [np.argwhere(one[:, dep] > -np.inf) for dep in range(1, len(one))]
        columns["heads"].append([edge[:, 0] for edge in edges])
        columns["labels"].append([edge[:, -1] for edge in edges])
        columns["scores"].append([one[:, dep][tuple(edge.T)] for dep, edge in enumerate(edges, start=1)])
    integers, reals = (pa.list_(pa.list_(kind)) for kind in (heads_type or pa.int32(), scores_type or pa.float64()))
    types = {"n": pa.int32(), "heads": integers, "scores": reals, "labels": integers}
    names = types if labels else ["n", "heads", "scores"]
    batch = pa.record_batch({name: pa.array(columns[name], types[name]) for name in names})
    return batch.replace_schema_metadata({"labels": '["a", "b"]'}) if labels else batch, scores


@pytest.mark.parametrize("labels", [0, 2])
@pytest.mark.parametrize("kinds", [(None, None), (pa.int64(), pa.float32()), (pa.uint8(), pa.float64())])
@pytest.mark.parametrize(
    "options", [{}, {"temperature": 0.7, "mbr": True, "k": 3}, {"root": "multi", "projective": True}]
)
def test_candidates_are_what_dense_scores_say(monkeypatch, labels, kinds, options):
    few, scores = few_candidates(labels, *kinds)
    dense = batch_of(scores, '["a", "b"]' if labels else None, pa.list_(kinds[1] or pa.float64())).drop_columns("id")
    annotate = Annotate(**options)
    expected = annotate(dense)
    assert expected.column("error").null_count not in (0, len(scores))

    def compare(found, wanted):
        assert found.schema == wanted.schema
        assert str(found.to_pylist()) == str(wanted.to_pylist())  # NaN is NaN here

    compare(annotate(few), expected)
    compare(annotate(few.slice(4, 9)), annotate(dense.slice(4, 9)))
    compare(annotate(few.slice(0, 0)), annotate(dense.slice(0, 0)))
    whole = few.filter(pa.array([row["error"] is None for row in expected.to_pylist()]))

    def refuse(*_):
        raise AssertionError("made a matrix")

    monkeypatch.setattr("spantree._flat.Candidates.__getitem__", refuse)
    core = Watched()
    monkeypatch.setattr("spantree._annotations._core", core)
    annotate(whole)
    assert [name for name, _ in core.calls] == ["annotate"]


def test_what_candidates_must_be():
    few, _ = few_candidates(0)
    with pytest.raises(ValueError, match="leave out the layout"):
        Annotate(layout="dep_head")(few)
    row = {"n": [2], "heads": [[[0, 2], [0]]], "scores": [[[1.0, float("nan")], [3.0]]]}
    assert "2 -> 1 is nan" in Annotate()(pa.record_batch(row)).column("error")[0].as_py()
    assert Annotate()(pa.record_batch(row | {"scores": [[[1, 2], [3]]]})).column("heads").to_pylist() == [[2, 0]]
    with pytest.raises(BadFileError, match="heads: holds nulls"):
        Annotate()(pa.record_batch(row | {"heads": [[[0, 2], None]]}))
    values, nodes = np.zeros(3), np.array([3])
    for cuts, heads in (
        ([0, 2, 4], [0, 2, 0]),
        ([0, 2, 1], [0, 2, 0]),
        ([-1, 2, 3], [0, 2, 0]),
        ([0, 2, 3], [0, 3, 0]),
    ):
        with pytest.raises(ValueError, match="sentence 0 is not inside of the scores"):
            annotate_candidates(Candidates(values, np.array(heads), None, np.array(cuts), nodes), Options())
    with pytest.raises(ValueError, match="cuts of all words"):
        annotate_candidates(Candidates(values, np.zeros(2, np.int64), None, np.array([0, 2, 3]), nodes), Options())
