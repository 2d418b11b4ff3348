"""What patching must never break, checked on any bytes: for the fuzzer and for the tests."""

from __future__ import annotations

import re

from spantree.files import BadFileError, read_conllu

KEYS = {"HeadProb": "0.87", "Margin": "1.5"}
CHANGED = {6, 7, 9}


def lines_of(data: bytes) -> list[bytes]:
    return re.split(rb"(?<=\n)", data)


def word_lines(data: bytes) -> list[int]:
    """Which lines are words, found in another way."""
    first, *others = lines_of(data)
    starts = [re.match(rb"(\xef\xbb\xbf)?[0-9]+\t", first), *(re.match(rb"[0-9]+\t", line) for line in others)]
    return [i for i, start in enumerate(starts) if start]


def without_end(cell: bytes) -> bytes:
    return re.sub(rb"\r?\n?\Z", b"", cell, count=1)


def check_bytes(data: bytes, chunk: int = 1 << 20) -> bool:
    """True if the bytes are CoNLL-U and every rule holds; False if they are refused; AssertionError otherwise."""
    chunks = [data[i : i + chunk] for i in range(0, len(data), chunk)]
    try:
        sentences = list(read_conllu(chunks))
    except BadFileError:
        return False
    assert b"".join(sentence.raw for sentence in sentences) == data
    before = word_lines(data)
    assert sum(len(sentence) for sentence in sentences) == len(before)
    patched = []
    for sentence in sentences:
        n = len(sentence)
        heads = [-1, *((word * 7) % (n + 1) for word in range(1, n + 1))]
        has_misc = all(len(fields) >= 10 for fields in sentence.fields)
        misc = {key: [value] * n for key, value in KEYS.items()} if has_misc else None
        new = sentence.patched(heads, [f"label{word}" for word in range(n)], misc)
        if n:
            (again,) = read_conllu([b"\xef\xbb\xbf" + new if new[:3] != b"\xef\xbb\xbf" else new])
            assert again.heads()[1:].tolist() == heads[1:]
            assert again.labels == [f"label{word}" for word in range(n)]
            for key, value in KEYS.items() if misc else ():
                assert again.misc(key) == [value] * n
            assert again.patched(heads, again.labels, misc) == again.raw
        else:
            assert new == sentence.raw
        patched.append(new)
    assert word_lines(b"".join(patched)) == before
    words = set(before)
    old_lines, new_lines = lines_of(data), lines_of(b"".join(patched))
    for i, (old, new) in enumerate(zip(old_lines, new_lines, strict=True)):
        if i not in words:
            assert new == old
            continue
        old_cells, new_cells = old.split(b"\t"), new.split(b"\t")
        assert len(old_cells) == len(new_cells)
        for column, (old_cell, new_cell) in enumerate(zip(old_cells, new_cells, strict=True)):
            assert column in CHANGED or new_cell == old_cell, (old, new)
        assert new.removeprefix(without_end(new)) == old.removeprefix(without_end(old))
        if len(old_cells) >= 10:
            mine = tuple(key.encode() + b"=" for key in KEYS)
            kept = [item for item in without_end(old_cells[9]).split(b"|") if not item.startswith(mine)]
            still = [item for item in without_end(new_cells[9]).split(b"|") if not item.startswith(mine)]
            assert still == kept or (kept in ([b"_"], [b""]) and still == [])
    return True
