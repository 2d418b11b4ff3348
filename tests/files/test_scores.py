"""Score files of every format give the same sentences; broken ones end in one clear error."""

from __future__ import annotations

import contextlib
import io
import json
import re
import zipfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save_file

from spantree.files import BadFileError, open_scores

DATA = Path(__file__).parents[3] / "shared" / "data" / "scores"


def sentences(count=50, labels=0, seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    shape = (labels,) if labels else ()
    return [rng.normal(size=(n + 1, n + 1, *shape)).astype(dtype) for n in rng.integers(0, 9, count)]


def arrays(scores, rng=None):
    rng = rng or np.random.default_rng(1)
    lengths = np.array([len(one) - 1 for one in scores], np.int32)
    heads = np.concatenate([rng.integers(0, n + 1, n) for n in lengths]).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum([one.size for one in scores])])
    return {
        "lengths": lengths,
        "offsets": offsets,
        "heads": heads,
        "scores": np.concatenate([s.ravel() for s in scores]),
    }


def rows(scores, labels=None):
    table = pa.table(
        {
            "id": [f"s{i}" for i in range(len(scores))],
            "n": pa.array([len(one) - 1 for one in scores], pa.int32()),
            "scores": pa.array([one.ravel() for one in scores], pa.list_(pa.float32())),
        }
    )
    return table.replace_schema_metadata({"labels": json.dumps(labels)}) if labels else table


def read(path):
    with open_scores(path) as file:
        batches = list(file.batches)
    for batch, following in pairwise(batches):
        assert following.first == batch.first + len(batch.scores)
    return file, [one for batch in batches for one in batch.scores], batches


def assert_same(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def write_npz(path, scores, labels):
    np.savez_compressed(path, **arrays(scores), **({"labels": np.array(labels)} if labels else {}))


def write_safetensors(path, scores, labels):
    save_file(arrays(scores), path, {"labels": json.dumps(labels)} if labels else None)


def write_parquet(path, scores, labels):
    pq.write_table(rows(scores, labels), path, row_group_size=17)


def write_feather(path, scores, labels):
    pyarrow.feather.write_feather(rows(scores, labels), path, chunksize=17)


def write_stream(path, scores, labels):
    table = rows(scores, labels)
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table, 17)


WRITERS = {
    "a.npz": write_npz,
    "a.safetensors": write_safetensors,
    "a.parquet": write_parquet,
    "a.feather": write_feather,
    "a.arrows": write_stream,
}


@pytest.mark.parametrize("labels", [None, ["nsubj", "root", "ünï"]])
@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_sentences(tmp_path, monkeypatch, name, labels):
    monkeypatch.setattr("spantree.files.scores._SENTENCES", 7)
    monkeypatch.setattr("spantree.files.scores._BATCH_BYTES", 1500)
    scores = sentences(labels=3 if labels else 0)
    WRITERS[name](tmp_path / name, scores, labels)
    file, found, batches = read(tmp_path / name)
    assert_same(found, scores)
    assert file.label_names == labels
    assert len(batches) > 7
    if name in ("a.npz", "a.safetensors"):
        gold = np.concatenate([heads[1:] for batch in batches for heads in batch.heads])
        np.testing.assert_array_equal(gold, arrays(scores)["heads"])
        assert file.sentences == len(scores)
    else:
        assert [one for batch in batches for one in batch.ids] == [f"s{i}" for i in range(len(scores))]


@pytest.mark.parametrize("dtype", ["f2", "f8", ">f4", "i4"])
def test_types(tmp_path, dtype):
    scores = [one.astype(dtype) for one in sentences(5)]
    np.savez(tmp_path / "a.npz", **arrays(scores))
    assert_same(read(tmp_path / "a.npz")[1], [one.astype(np.dtype(dtype).newbyteorder("=")) for one in scores])


def test_padded(tmp_path):
    scores = np.random.default_rng(0).normal(size=(3, 5, 5))
    np.save(tmp_path / "a.npy", scores)
    np.save(tmp_path / "one.npy", scores[0])
    np.savez(tmp_path / "a.npz", scores=scores, lengths=[4, 0, 2])
    save_file({"scores": scores, "lengths": np.array([4, 0, 2])}, tmp_path / "a.safetensors")
    file, found, _ = read(tmp_path / "a.npy")
    assert file.padded
    assert_same(found, list(scores))
    assert_same(read(tmp_path / "one.npy")[1], [scores[0]])
    for name in ("a.npz", "a.safetensors"):
        assert_same(read(tmp_path / name)[1], [scores[0], scores[1, :1, :1], scores[2, :3, :3]])


def test_offsets_may_start_late(tmp_path):
    scores = sentences(5)
    given = arrays(scores)
    given["scores"] = np.concatenate([np.zeros(11, np.float32), given["scores"]])
    given["offsets"] = given["offsets"] + 11
    np.savez(tmp_path / "a.npz", **given)
    assert_same(read(tmp_path / "a.npz")[1], scores)


def write_plain_npz(path, scores, labels):
    np.savez(path, **arrays(scores), **({"labels": np.array(labels)} if labels else {}))


def write_padded(path, scores, labels):
    size = max(map(len, scores))
    padded = np.zeros((len(scores), size, size, *scores[0].shape[2:]), scores[0].dtype)
    for i, one in enumerate(scores):
        padded[i, : len(one), : len(one)] = one
    np.savez(path, scores=padded, lengths=[len(one) - 1 for one in scores])


def write_stack(path, scores, labels):
    np.save(path, np.random.default_rng(0).normal(size=(50, 4, 4)))


FROM_THE_MIDDLE = {
    "a.npz": write_plain_npz,
    "padded.npz": write_padded,
    "a.npy": write_stack,
    **{name: WRITERS[name] for name in ("a.safetensors", "a.parquet", "a.feather")},
}


@pytest.mark.parametrize("labels", [None, ["nsubj", "root", "ünï"]])
@pytest.mark.parametrize("name", FROM_THE_MIDDLE)
def test_reading_from_the_middle(tmp_path, monkeypatch, name, labels):
    monkeypatch.setattr("spantree.files.scores._SENTENCES", 7)
    monkeypatch.setattr("spantree.files.scores._BATCH_BYTES", 1500)
    FROM_THE_MIDDLE[name](tmp_path / name, sentences(labels=3 if labels else 0), labels)
    _, whole, batches = read(tmp_path / name)
    with open_scores(tmp_path / name) as file:
        ends = list(file.ends())
    assert ends == [batch.first + len(batch.scores) for batch in batches]
    for start in [0, *ends]:
        with open_scores(tmp_path / name, start) as file:
            rest = list(file.batches)
        assert [batch.first for batch in rest] == [batch.first for batch in batches if batch.first >= start]
        assert_same([one for batch in rest for one in batch.scores], whole[start:])


def test_gold_from_the_middle(tmp_path, monkeypatch):
    monkeypatch.setattr("spantree.files.scores._SENTENCES", 2)
    words = [2, 0, 1, 3]
    heads = np.arange(6) % 2
    given = arrays([np.zeros((n + 1, n + 1)) for n in words]) | {"heads": heads}
    np.savez(tmp_path / "a.npz", **given)
    with open_scores(tmp_path / "a.npz", 2) as file:
        (batch,) = file.batches
    assert [one.tolist() for one in batch.heads] == [[-1, 0], [-1, 1, 0, 1]]


def test_what_has_no_middle(tmp_path):
    for name in ("a.npz", "a.arrows"):
        WRITERS[name](tmp_path / name, sentences(), None)
        with open_scores(tmp_path / name) as file:
            assert file.ends is None


def candidate_rows():
    return {"id": ["a", "b"], "n": [2, 1], "heads": [[[0, 2], [0]], [[0]]], "scores": [[[1.0, 2.0], [3.0]], [[4.0]]]}


def test_candidates(tmp_path):
    pq.write_table(pa.table(candidate_rows()), tmp_path / "a.parquet")
    first, second = read(tmp_path / "a.parquet")[1]
    inf = np.inf
    np.testing.assert_array_equal(first, [[-inf, 1, 3], [-inf, -inf, -inf], [-inf, 2, -inf]])
    np.testing.assert_array_equal(second, [[-inf, 4], [-inf, -inf]])


def test_labelled_candidates_and_gold(tmp_path):
    given = candidate_rows() | {
        "labels": [[[1, 0], [1]], [[0]]],
        "gold_heads": [[2, 0], [0]],
        "gold_labels": [[0, 1], [1]],
    }
    pq.write_table(pa.table(given).replace_schema_metadata({"labels": '["x", "y"]'}), tmp_path / "a.parquet")
    file, (first, _), (batch,) = read(tmp_path / "a.parquet")
    assert file.label_names == ["x", "y"]
    assert first[0, 1].tolist() == [-np.inf, 1]
    assert first[2, 1].tolist() == [2, -np.inf]
    assert np.isfinite(first).sum() == 3
    assert [heads.tolist() for heads in batch.heads] == [[-1, 2, 0], [-1, 0]]
    assert [labels.tolist() for labels in batch.labels] == [[-1, 0, 1], [-1, 1]]


@pytest.mark.parametrize("path", sorted(DATA.glob("*.npz")), ids=lambda path: path.stem)
def test_real_files(path):
    file, found, batches = read(path)
    with np.load(path) as z:
        np.testing.assert_array_equal(np.concatenate([one.ravel() for one in found]), z["scores"])
        np.testing.assert_array_equal([len(one) - 1 for one in found], z["lengths"])
        np.testing.assert_array_equal(np.concatenate([h[1:] for b in batches for h in b.heads]), z["heads"])
        assert file.label_names == (z["labels"].tolist() if "labels" in z else None)


# Broken files


def npz(**given):
    stream = io.BytesIO()
    np.savez_compressed(stream, **given)
    return stream.getvalue()


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


GOOD = arrays(sentences(5))
TROUBLES = {
    "text.npz": (b"hello", "not an .npz file"),
    "empty.npz": (b"", "not an .npz file"),
    "cut.npz": (npz(**GOOD)[:-50], "not an .npz file"),
    "none.npz": (npz(x=[1]), "has no array 'scores'"),
    "no_lengths.npz": (npz(scores=GOOD["scores"]), "has no array 'lengths', which flat scores need"),
    "pickle.npz": (npz(**GOOD | {"scores": np.array([{}], object)}), "scores: holds Python objects"),
    "pickled_lengths.npz": (npz(**GOOD | {"lengths": np.array([{}], object)}), "lengths: holds Python objects"),
    "text_scores.npz": (npz(**GOOD | {"scores": np.array(["a"])}), "scores: must be numbers"),
    "negative.npz": (npz(**GOOD | {"lengths": np.array([-1, 2, 3, 4, 5])}), "sentence 1: lengths: -1 words"),
    "absurd.npz": (
        npz(lengths=[10**9], scores=np.zeros(4)),
        "sentence 1: lengths: 1000000000 words would need more than",
    ),
    "absurd_unsigned.npz": (npz(lengths=np.array([2**64 - 1], np.uint64), scores=np.zeros(4)), "would need more than"),
    "float_lengths.npz": (npz(lengths=[1.0], scores=np.zeros(4)), "lengths: must be one row of integers"),
    "short.npz": (npz(lengths=[1, 1], scores=np.zeros(7)), "sentence 2: scores: the array ends too early"),
    "long.npz": (npz(lengths=[1, 1], scores=np.zeros(9)), "scores: 9 numbers; the sentences' lengths ask for 8"),
    "offsets.npz": (npz(**GOOD | {"offsets": GOOD["offsets"] + [0, 0, 1, 0, 0, 0]}), "sentence 2: offsets: leaves"),
    "few_offsets.npz": (npz(**GOOD | {"offsets": GOOD["offsets"][1:]}), "offsets: must be 6 integers"),
    "late.npz": (npz(**GOOD | {"offsets": GOOD["offsets"] + 10**12}), "offsets: start at"),
    "heads.npz": (npz(**GOOD | {"heads": GOOD["heads"] + 9}), "sentence 1: heads: a number outside 0 to 7"),
    "few_heads.npz": (npz(**GOOD | {"heads": GOOD["heads"][:3]}), "sentence 1: heads: the array ends too early"),
    "many_heads.npz": (
        npz(**GOOD | {"heads": np.concatenate([GOOD["heads"], [0, 0]])}),
        "heads: 22 numbers; the sentences have 20 words",
    ),
    "label_ids.npz": (
        npz(lengths=[1, 1], scores=np.zeros(16), labels=["a", "b"], label_ids=[1, 2]),
        "sentence 2: label_ids: a number outside 0 to 1",
    ),
    "odd.npz": (npz(scores=np.zeros((2, 3, 4))), r"scores: must be flat or \(S, N\+1, N\+1\)"),
    "too_long.npz": (npz(scores=np.zeros((1, 3, 3)), lengths=[3]), "sentence 1: lengths: 3 words, more than"),
    "count.npz": (npz(scores=np.zeros((1, 3, 3)), lengths=[1, 1]), "scores: 1 sentences, but 2 'lengths'"),
    "no_labels.npz": (npz(scores=np.zeros(0), lengths=[0], labels=np.array([], "U1")), "no labels at all"),
    "magic.npy": (b"\x93NUMPX\x01\x00", "not an array in NumPy's format"),
    "header.npy": (b"\x93NUMPY\x02\x00\xff\xff\xff\xff", "a header of 4294967295 bytes"),
    "code.npy": (b"\x93NUMPY\x01\x00\x10\x00__import__('os')", "a broken header"),
    "cut.npy": (b"\x93NUM", "the file ends too early"),
    "cut_later.npy": (npy(np.zeros((3, 2, 2)))[:-9], "sentence 3: scores: the file ends too early"),
    "negative.npy": (npy(np.zeros((1, 2, 2))).replace(b"(1, 2, 2)", b"(-1,2, 2)"), "cannot have the shape"),
    "text.safetensors": (b"hello, this is no such file", r"text.safetensors: .*"),
    "text.parquet": (b"hello, this is no such file", r"text.parquet: .*"),
    "text.arrow": (b"hello, this is no such file", r"text.arrow: .*"),
    "cut.arrow": (b"ARROW1\0\0", r"cut.arrow: .*"),
    "what.xyz": (b"", "not the name of a score file"),
}


@pytest.mark.parametrize("name", TROUBLES)
def test_broken_files_end_in_one_line(tmp_path, name):
    data, message = TROUBLES[name]
    (tmp_path / name).write_bytes(data)
    with pytest.raises(BadFileError, match=message) as caught:
        read(tmp_path / name)
    assert "\n" not in str(caught.value)
    assert name in str(caught.value)


TABLE_TROUBLES = {
    "no_n": ({"scores": [[0.0]]}, "has no column 'n'"),
    "no_scores": ({"n": [0]}, "has no column 'scores'"),
    "null": ({"n": [0, None], "scores": [[0.0], [0.0]]}, "sentence 2: n: is null"),
    "null_inside": ({"n": [0], "scores": [[None]]}, "scores: must hold numbers|scores: holds nulls"),
    "nulls_inside": ({"n": [0, 1], "scores": [[0.0], [1.0, 2.0, None, 3.0]]}, "sentence 2: scores: holds nulls"),
    "null_words": (candidate_rows() | {"heads": [[[0, 2], [0]], [None]]}, "sentence 2: heads: holds nulls"),
    "null_candidates": (candidate_rows() | {"heads": [[[0, 2], [None]], [[0]]]}, "sentence 1: heads: holds nulls"),
    "size": ({"n": [0, 1], "scores": [[0.0], [0.0]]}, "sentence 2: scores: 1 numbers; 1 words need 4"),
    "absurd": ({"n": [2**40], "scores": [[0.0]]}, "sentence 1: n: 1099511627776 words"),
    "most_absurd": ({"n": [2**63 - 1], "scores": [[0.0]]}, "sentence 1: n: 9223372036854775807 words"),
    "negative": ({"n": [-1], "scores": [[0.0]]}, "sentence 1: n: -1 words"),
    "type": ({"n": [0], "scores": ["x"]}, "scores: must be a list, not string"),
    "texts": ({"n": [0], "scores": [["x"]]}, "scores: must hold numbers, not string"),
    "text_n": ({"n": ["0"], "scores": [[0.0]]}, "n: must be integers"),
    "candidate": (
        candidate_rows() | {"heads": [[[0, 3], [0]], [[0]]]},
        "sentence 1: heads: a candidate outside 0 to 2",
    ),
    "candidates": (
        candidate_rows() | {"heads": [[[0], [0]], [[0]]]},
        "sentence 1: scores: must have as many entries for each word",
    ),
    "candidates_later": (
        candidate_rows() | {"heads": [[[0, 2], [0]], [[0, 0]]]},
        "sentence 2: scores: must have as many entries for each word",
    ),
    "words": (candidate_rows() | {"heads": [[[0, 2]], [[0]]]}, "sentence 1: heads: must have a list for each of the 2"),
    "gold": (
        {"n": [1], "scores": [[0.0] * 4], "gold_heads": [[2]]},
        "sentence 1: gold_heads: must be 1 numbers up to 1",
    ),
}


@pytest.mark.parametrize("name", TABLE_TROUBLES)
def test_broken_tables_end_in_one_line(tmp_path, name):
    columns, message = TABLE_TROUBLES[name]
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    with pytest.raises(BadFileError, match=message) as caught:
        read(tmp_path / "a.parquet")
    assert str(caught.value).startswith(str(tmp_path / "a.parquet"))


@pytest.mark.parametrize("row", [1500, 2300])
def test_the_sentence_of_a_batch_that_is_wrong(tmp_path, row):
    """Rows are read some at a time; what is wrong with a later one says nothing about those before it."""
    scores = [[0.0] * 4] * 3000
    scores[row] = [0.0, None, 0.0, 0.0]
    table = pa.table({"n": [1] * 3000, "scores": scores})
    with pa.ipc.new_file(tmp_path / "a.arrow", table.schema) as writer:
        writer.write_table(table)
    with open_scores(tmp_path / "a.arrow") as file:
        assert len(next(file.batches).scores) == 1024
        with pytest.raises(BadFileError, match=f"sentence {row + 1}: scores: holds nulls"):
            list(file.batches)


def test_a_table_of_labels_without_names(tmp_path):
    table = pa.table({"n": [1], "scores": [[0.0] * 4]}).replace_schema_metadata({"labels": "[]"})
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(BadFileError, match=r"a.parquet: labels: no labels at all"):
        read(tmp_path / "a.parquet")


@pytest.mark.parametrize("name", WRITERS)
def test_two_labels_of_one_name(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    WRITERS[name](tmp_path / name, sentences(labels=3), ["nsubj", "obj", "nsubj"])
    with pytest.raises(BadFileError, match="labels: the labels 0 and 2 have the same name, 'nsubj'"):
        read(tmp_path / name)


@pytest.mark.parametrize("name", WRITERS)
def test_truncated_anywhere(tmp_path, name):
    """A file cut at any place is refused, or gives some of the sentences of the whole one; nothing else happens."""
    scores = sentences(8)
    WRITERS[name](tmp_path / name, scores, None)
    data = (tmp_path / name).read_bytes()
    for size in range(0, len(data), max(len(data) // 97, 1)):
        (tmp_path / name).write_bytes(data[:size])
        try:
            found = read(tmp_path / name)[1]
        except BadFileError:
            continue
        assert_same(found, scores[: len(found)])


@pytest.mark.parametrize("name", WRITERS)
def test_flipped_bytes(tmp_path, name):
    scores = sentences(8)
    WRITERS[name](tmp_path / name, scores, None)
    data = (tmp_path / name).read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(100):
        broken = bytearray(data)
        for place in rng.integers(0, len(data), 3):
            broken[place] = rng.integers(0, 256)
        (tmp_path / name).write_bytes(broken)
        with contextlib.suppress(BadFileError):
            read(tmp_path / name)


def test_a_bomb_is_not_unpacked(tmp_path):
    """Ten gibibytes of zeros in ten megabytes: refused by its lengths, before anything is unpacked."""
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, count in (("lengths", 1), ("scores", 1 << 28)):
            header = io.BytesIO()
            np.lib.format.write_array_header_1_0(
                header, {"descr": "<f4" if name == "scores" else "<i4", "fortran_order": False, "shape": (count,)}
            )
            with archive.open(f"{name}.npy", "w") as member:
                member.write(header.getvalue())
                member.write(np.array([99999], "<i4").tobytes() if name == "lengths" else bytes(1 << 20))
    with pytest.raises(BadFileError, match="sentence 1: lengths: 99999 words would need more than 1 GiB of scores"):
        read(tmp_path / "bomb.npz")


def test_names_that_are_a_bomb(tmp_path):
    labels = io.BytesIO()
    np.lib.format.write_array_header_1_0(labels, {"descr": "<U1000", "fortran_order": False, "shape": (10**5,)})
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w") as archive:
        archive.writestr("labels.npy", labels.getvalue())
    with pytest.raises(BadFileError, match="labels: 100000 names of 4000 bytes each"):
        read(tmp_path / "bomb.npz")


def test_a_row_group_is_not_read_whole(tmp_path):
    """pyarrow makes row groups of a million rows, if it is not told otherwise."""
    scores = np.random.default_rng(0).normal(size=(20_000, 21 * 21)).astype(np.float32)
    pq.write_table(pa.table({"n": np.full(len(scores), 20), "scores": list(scores)}), tmp_path / "a.parquet")
    assert pq.read_metadata(tmp_path / "a.parquet").num_row_groups == 1
    before, most, sentences_read = pa.total_allocated_bytes(), 0, 0
    with open_scores(tmp_path / "a.parquet") as file:
        for batch in file.batches:
            most = max(most, pa.total_allocated_bytes() - before)
            sentences_read += len(batch.scores)
    assert sentences_read == 20_000
    assert most < scores.nbytes / 2


def mapped_bytes(path):
    """Of a file, in the memory of this process."""
    mappings = Path("/proc/self/smaps").read_text().split("VmFlags")
    return sum(int(re.search(r"Rss:\s+(\d+) kB", one)[1]) << 10 for one in mappings if str(path) in one)


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="needs Linux: asks the system which memory is in use")
@pytest.mark.parametrize("name", ["a.safetensors", "a.arrow", "a.arrows"])
def test_what_was_read_leaves_the_memory(tmp_path, monkeypatch, name):
    monkeypatch.setattr("spantree.files.scores._MAPPED_BYTES", 1 << 20)
    monkeypatch.setattr("spantree.files.scores._BATCH_BYTES", 1 << 18)
    scores = list(np.random.default_rng(0).standard_normal((2000, 61, 61), np.float32))  # 30 megabytes
    if name == "a.safetensors":
        write_safetensors(tmp_path / name, scores, None)
    else:
        new = pa.ipc.new_file if name == "a.arrow" else pa.ipc.new_stream
        table = rows(scores, None)
        with new(tmp_path / name, table.schema) as writer:
            writer.write_table(table, 17)
    found, most = [], 0
    with open_scores(tmp_path / name) as file:
        for batch in file.batches:
            found += [np.array(one) for one in batch.scores]
            most = max(most, mapped_bytes(tmp_path / name))
    assert_same(found, scores)
    assert most < 10 << 20  # the system takes more than is asked for, some megabytes


def test_long_sentences_are_read_a_few_at_a_time(tmp_path, monkeypatch):
    words = [9] * 12 + [0] * 12
    scores = pa.array([np.arange(float((n + 1) ** 2)) for n in words])
    table = pa.table({"n": words, "scores": scores})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=12, use_dictionary=False)
    size = pq.read_metadata(tmp_path / "a.parquet").row_group(0).total_byte_size
    assert size > 8 * 100 * 12
    monkeypatch.setattr("spantree.files.scores._GROUP_BYTES", size * 5 // 12 + 1)
    with open_scores(tmp_path / "a.parquet") as file:
        assert [len(batch.scores) for batch in file.batches] == [5, 5, 2, 12]
