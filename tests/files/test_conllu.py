"""CoNLL-U is patched, and every other byte stays."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from conllu_rules import check_bytes
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spantree.files import BadFileError, Sentence, read_conllu

DATA = Path(__file__).parents[3] / "shared" / "data"

cells = st.sampled_from(
    [
        b"_",
        b"",
        b"0",
        b"1",
        b"02",
        b"root",
        b"A=1",
        b"A=1|HeadProb=3|HeadProb=4",
        b"Margin=1|A",
        b"\xff\xfe",
        b"x y",
        b"\r",
    ]
)
ids = st.sampled_from([b"1-2", b"1.1", b"0.1", b"10-12"])
ends = st.sampled_from([b"\n", b"\r\n"])


@st.composite
def files(draw):
    """Files as people have them: ranges, empty nodes, comments, 8 to 12 columns, either line end, no last one."""
    out = [draw(st.sampled_from([b"", b"\xef\xbb\xbf"]))]
    for _ in range(draw(st.integers(0, 3))):
        out.append(draw(st.sampled_from([b"", b"# sent_id = a\n", b"# text = b\r\n", b"\n", b"\r\n"])))
        for word in range(draw(st.integers(0, 4))):
            if draw(st.booleans()):
                out.append(draw(ids) + b"\t" + draw(cells) + draw(ends))
            columns = draw(st.lists(cells, min_size=7, max_size=11))
            out.append(b"\t".join([b"%d" % (word + 1), *columns]) + draw(ends))
        out.append(draw(st.sampled_from([b"\n", b"\r\n", b" \n", b"\t\r\n"])))
    data = b"".join(out)
    return data[: len(data) - draw(st.integers(0, 3))]


@settings(max_examples=500, deadline=None)
@given(files(), st.sampled_from([1, 2, 5, 1 << 20]))
def test_files_are_read_and_only_our_columns_change(data, chunk):
    if not check_bytes(data, chunk):
        with pytest.raises(BadFileError):
            list(read_conllu([data]))


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=200))
@example(b"1\t_\t_\t_\t_\t_\t0\troot\r")
@example(b"\xef\xbb\xbf1\t_\t_\t_\t_\t_\t0\troot\t_\t_\r\n\r\n")
@example(b"1\t_\t_\t_\t_\t_\t0\troot\t_\t\r\r\n")
def test_any_bytes(data):
    check_bytes(data)


@pytest.mark.parametrize("path", sorted(DATA.glob("*/*.conllu*")), ids=lambda path: path.name)
def test_real_treebanks(path):
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    data = data[: 1 << 18].rpartition(b"\n\n")[0] + b"\n\n"
    assert check_bytes(data)
    same = b"".join(
        sentence.patched(sentence.heads(), sentence.labels) if len(sentence) else sentence.raw
        for sentence in read_conllu([data])
    )
    assert same == data


def one(text: str) -> Sentence:
    return next(read_conllu([text.replace(" ", "\t").encode()], "f"))


def test_keys_are_set_where_they_stand():
    sentence = one("1 a _ _ _ _ 0 root _ HeadProb=1|A=2|HeadProb=3\n")
    assert sentence.patched(misc={"HeadProb": ["9"]}).endswith(b"\tHeadProb=9|A=2\n")
    assert sentence.patched(misc={"HeadProb": [None]}).endswith(b"\tA=2\n")
    assert sentence.patched(misc={"B": [None]}) == sentence.raw
    both = {"HeadProb": ["9"], "Margin": ["8"]}
    assert one("1 a _ _ _ _ 0 root _ Margin=1|A=2\n").patched(misc=both).endswith(b"\tMargin=8|A=2|HeadProb=9\n")
    assert one("1 a _ _ _ _ 0 root _ A=2\n").patched(misc=both).endswith(b"\tA=2|HeadProb=9|Margin=8\n")
    assert one("1 a _ _ _ _ 0 root _ _ x\n").patched(misc=both).endswith(b"\tHeadProb=9|Margin=8\tx\n")
    assert one("1 a _ _ _ _ 0 root _ _").patched(misc={"A": ["1"], "B": ["2"]}).endswith(b"\tA=1|B=2")
    assert one("1 a _ _ _ _ 0 root _ A=1").patched(misc={"A": [None]}).endswith(b"\t_")


def test_what_is_read():
    sentence = one("1-2 ab _ _ _ _ _ _ _ _\n1 a _ _ _ _ 2 det _ A=1\n2 b _ _ _ _ _ dep _ _\n2.1 c _ _ _ _ _ _ _ _\n")
    assert sentence.words == ["a", "b"]
    assert sentence.heads().tolist() == [-1, 2, -2]
    assert sentence.labels == ["det", "dep"]
    assert sentence.misc("A") == ["1", None]
    assert sentence.line_of(2) == 3
    assert sentence.head_fields == ["2", "_"]
    assert sentence.columns(2, 11) == [("_", "_"), ("_", "_")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 a _\n", "f: line 1: 3 columns; a word needs at least 8"),
        ("# x\n2 a _ _ _ _ 0 root _ _\n", "f: line 2: ID is '2' where word 1 is expected"),
        ("1a b\n", "f: line 1: ID is '1a', no number of a word"),
        ("\nhello\n", "f: line 2: neither a comment nor a word: it starts with 'hello'"),
        ("PK\x03\x04\x00", "neither a comment nor a word"),
    ],
)
def test_bad_files_say_where(text, message):
    with pytest.raises(BadFileError, match=message):
        list(read_conllu([text.replace(" ", "\t").encode()], "f"))


@pytest.mark.parametrize("head", ["2", "-1", "x", "", "1_0", "+1", "99999999999999999999"])
def test_bad_heads_say_where(head):
    with pytest.raises(BadFileError, match=r"f: line 1: word 1: HEAD is .*, not a number from 0 to 1 or _"):
        one(f"1 a _ _ _ _ {head} root _ _\n").heads()


def test_a_line_without_end_is_refused_before_it_fills_memory():
    with pytest.raises(BadFileError, match="a line of more than 16 MiB"):
        list(read_conllu(b"#" * (1 << 20) for _ in range(1 << 20)))
    with pytest.raises(BadFileError, match="a sentence of more than 1048576 lines"):
        list(read_conllu(b"#\n" * (1 << 20) for _ in range(1 << 20)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"heads": [-1]}, "1 words need 2 heads"),
        ({"heads": [-1, 2]}, "head 2 is no node"),
        ({"heads": [-1, 0.0]}, "integers, not float64"),
        ({"labels": ["a\tb"]}, "holds a separator"),
        ({"labels": ["a", "b"]}, "1 words need 1 values of labels"),
        ({"misc": {"A": ["1|2"]}}, "holds a separator"),
        ({"misc": {"A=": ["1"]}}, "holds a separator"),
    ],
)
def test_what_would_break_the_file_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        one("1 a _ _ _ _ 0 root _ _\n").patched(**change)


def test_misc_needs_its_column():
    with pytest.raises(BadFileError, match="f: line 1: 9 columns: there is no MISC to write to"):
        one("1 a _ _ _ _ 0 root _\n").patched(misc={"A": ["1"]})
