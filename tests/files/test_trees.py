"""Trees in three formats, and files that are put in their place only when they are whole."""

from __future__ import annotations

import contextlib
import gzip

import numpy as np
import pytest

from spantree.files import BadFileError, Tree, read_trees, whole_file, write_trees

TREES = [
    Tree(["She", "sleeps"], np.array([-1, 2, 0]), ["nsubj", "root"], "s1"),
    Tree(["שלום", "日本", "a b"], np.array([-1, -2, 1, 0]), ["x", "y", "z"], None),
]


@pytest.mark.parametrize("name", ["a.conllu", "a.jsonl", "a.parquet"])
def test_what_is_written_is_read(tmp_path, name):
    with whole_file(tmp_path / name) as file:
        write_trees(TREES * 600, file, name)
    found = list(read_trees(tmp_path / name))
    assert len(found) == 1200
    for one, other in zip(found, TREES * 600, strict=True):
        assert (one.words, one.labels, one.id) == (other.words, other.labels, other.id)
        np.testing.assert_array_equal(one.heads, other.heads)


def test_packed_files(tmp_path):
    with gzip.open(tmp_path / "a.conllu.gz", "wb") as file:
        write_trees(TREES, file, "a.conllu")
    assert [tree.words for tree in read_trees(tmp_path / "a.conllu.gz")] == [tree.words for tree in TREES]
    data = (tmp_path / "a.conllu.gz").read_bytes()
    (tmp_path / "a.conllu.gz").write_bytes(data[:-10])
    with pytest.raises(BadFileError, match=r"a broken \.gz file"):
        list(read_trees(tmp_path / "a.conllu.gz"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "line 1: no JSON"),
        ("[]", "sentence 1: is no JSON object"),
        ("[" * 100_000, "line 1: no JSON: (maximum recursion depth|Stack overflow)"),
        ("{}", "sentence 1: words: must be a list of texts"),
        ('{"words": [1]}', "sentence 1: words: must be a list of texts"),
        ('{"words": ["a"], "heads": []}', "sentence 1: heads: must be a list of 1 numbers"),
        ('{"words": ["a"], "heads": [2]}', "sentence 1: word 1: head is 2, not a number from 0 to 1"),
        ('{"words": ["a"], "heads": [true]}', "head is True"),
        ('{"words": ["a"], "labels": "x"}', "labels: must be a list of 1 texts"),
        ('{"words": ["\\ud800"]}', "sentence 1: a text with half of a character"),
        ('{"words": ["a"], "labels": ["\\udcff"]}', "sentence 1: a text with half of a character"),
        (" " * (1 << 24) + "{}", "line 1: more than 16 MiB"),
    ],
)
def test_bad_json(tmp_path, text, message):
    (tmp_path / "a.jsonl").write_text(text)
    with pytest.raises(BadFileError, match=message):
        list(read_trees(tmp_path / "a.jsonl"))


def test_columns_stay_columns(tmp_path):
    """Spaces of all kinds may stand in a word; what separates columns and lines may not, in words nor in labels."""
    with whole_file(tmp_path / "a.conllu") as file:
        write_trees([Tree(["10\u00a0000", "a\tb"], np.array([-1, 2, 0]), ["x\ty", "r\nt"], "a\r\nb")], file, "a.conllu")
    (tree,) = read_trees(tmp_path / "a.conllu")
    assert (tree.words, tree.labels, tree.id) == (["10\u00a0000", "a b"], ["x y", "r t"], "a b")


def test_labels_that_are_not_known(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"heads": [2, 0], "labels": [null, "root"]}')
    (tree,) = read_trees(tmp_path / "a.jsonl")
    assert tree.labels == ["_", "root"]


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.conllu.gz", "a.parquet"])
def test_flipped_bytes(tmp_path, name):
    """Whatever is wrong with a file, `BadFileError` is all that is raised."""
    with (gzip.open if name.endswith(".gz") else open)(tmp_path / name, "wb") as file:
        write_trees(TREES * 20, file, name.removesuffix(".gz"))
    data = bytearray((tmp_path / name).read_bytes())
    for place in range(0, len(data), 1 + len(data) // 150):
        data[place] ^= 0xFF
        (tmp_path / name).write_bytes(data)
        with contextlib.suppress(BadFileError):
            list(read_trees(tmp_path / name))
        data[place] ^= 0xFF


def test_half_a_file_is_no_file(tmp_path):
    (tmp_path / "a").write_bytes(b"before")
    with contextlib.suppress(RuntimeError), whole_file(tmp_path / "a") as file:
        file.write(b"half")
        file.flush()
        raise RuntimeError
    assert (tmp_path / "a").read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [tmp_path / "a"]
