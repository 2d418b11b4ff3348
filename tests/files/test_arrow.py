"""`Annotate`: what comes out of a record batch is what the library says about each of its sentences."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest

import spantree
from spantree import _core
from spantree.arrow import Annotate


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
    with pytest.raises(ValueError, match="temperature must be above 0"):
        Annotate(temperature=0)(batch_of(sentences()))
    with pytest.raises(ValueError, match="k must be at least 1"):
        Annotate(k=0)(batch_of(sentences()))
    bad, hopeless = np.zeros((3, 3)), np.zeros((3, 3))
    bad[0, 1], hopeless[:, 2] = np.nan, -np.inf
    fine, first, second = Annotate(k=2)(batch_of([np.zeros((3, 3)), bad, hopeless])).to_pylist()
    assert fine["error"] is None
    assert "the edge 0 -> 1 is nan" in first["error"]
    assert first["heads"] == [-1, -1]
    assert "word 2 cannot be attached" in second["error"]
    assert np.isnan(second["head_prob"]).all()
    assert Annotate()(batch_of([bad])).column("error").null_count == 0


@pytest.mark.parametrize("labels", [0, 2])
def test_a_few_at_a_time(monkeypatch, labels):
    scores = sentences(labels)
    scores[7] = np.full_like(scores[7], np.nan)
    batch = batch_of(scores, labels='["a", "b"]' if labels else None)
    whole = Annotate(k=3)(batch)
    monkeypatch.setattr("spantree._annotations._AT_ONCE", 1000)
    parts = Annotate(k=3)(batch)
    assert parts.schema == whole.schema
    assert str(parts.to_pylist()) == str(whole.to_pylist())  # NaN is NaN here


@pytest.mark.parametrize("labels", [0, 2])
@pytest.mark.parametrize("layout", ["head_dep", "dep_head"])
def test_the_core_reads_the_column_where_it_lies(monkeypatch, labels, layout):
    """Values and places go over in one call, of the column's own memory, and no matrix is made of them."""
    scores = sentences(labels)
    batch = batch_of(scores, labels='["a", "b"]' if labels else None).slice(3, 20)
    expected = Annotate(layout=layout, k=2)(batch)
    calls = []
    flat = _core.Batch.flat

    def watched(values, *rest):
        calls.append(values.ctypes.data)
        return flat(values, *rest)

    def refuse(*_):
        raise AssertionError("made a matrix")

    monkeypatch.setattr(_core.Batch, "flat", staticmethod(watched))
    monkeypatch.setattr("spantree._flat.FlatScores.__getitem__", refuse)
    assert Annotate(layout=layout, k=2)(batch).equals(expected)
    column = batch.column("scores")
    assert calls == [column.values.buffers()[1].address + 8 * column.offsets[0].as_py()]


@pytest.mark.parametrize(
    ("starts", "nodes", "labels"),
    [
        ([-1], [2], 0),
        ([0], [0], 0),
        ([0], [4], 0),
        ([6], [2], 0),
        ([0, 5], [2, 3], 0),
        ([0], [2], 3),
        ([10], [1], 0),
        ([2**62], [2**31], 0),
        ([0], [2**31], 0),
        ([0, 4], [2], 0),
        ([0], [2], -1),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_places_outside_of_the_values(starts, nodes, labels, dtype):
    with pytest.raises(ValueError):
        _core.Batch.flat(np.zeros(9, dtype), np.array(starts), np.array(nodes), labels, False)


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
    monkeypatch.setattr("spantree._batch.get_threads", refuse)
    assert Annotate(mbr=True, k=2)(batch_of([*scores, bad])).slice(0, len(scores)).equals(expected)
