"""CoNLL-U, patched: HEAD, DEPREL and chosen MISC keys of the words are written anew, every other byte stays.

A file is cut after each blank line. Of a piece, the lines that start with a plain number are its words; comments,
multiword ranges (2-3), empty nodes (2.1), byte-order mark, line ends and further columns are carried along unread:

    # text = She sleeps
    1    She     she    PRON  _  _  2  nsubj  _  _               HEAD is the 7th column, DEPREL the 8th,
    2    sleeps  sleep  VERB  _  _  0  root   _  SpaceAfter=No   MISC the 10th: KEY=VALUE|KEY=VALUE, or _

The format: https://universaldependencies.org/format.html. Cost: one pass, a mebibyte of the file in memory at a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from ._errors import BadFileError, NoMiscError

UNKNOWN = -2
"""The head of a word whose HEAD is ``_``."""

_FORM, _HEAD, _DEPREL, _MISC = 1, 6, 7, 9
_NOTHING = (b"_", b"")
_CHUNK = 1 << 20  # bytes a read: well above a sentence, well below a file
LONGEST_LINE = 1 << 24  # a line of 16 MiB is no line of text: some other sort of file
_MOST_LINES = 1 << 20  # a sentence of a million lines lacks its blank line
_BOM = b"\xef\xbb\xbf"
_OTHER_ID = re.compile(rb"[0-9]+[-.][0-9]+")
_HEADS = [b"%d" % head for head in range(1000)]  # formatting a number takes longer than looking it up ...
_STARTS = [b"%d\t" % word for word in range(1, 1000)]  # ... and so does reading one


class Sentence:
    """A piece of a CoNLL-U file up to and including a blank line. Where there are no words, it is only carried along.

    Examples
    --------
    >>> piece = next(read_conllu([b"# sent_id = s1\\n1\\tShe\\t_\\t_\\t_\\t_\\t2\\tnsubj\\t_\\t_\\n",
    ...                           b"2\\tsleeps\\t_\\t_\\t_\\t_\\t0\\troot\\t_\\tSpaceAfter=No\\n\\n"]))
    >>> piece.id, piece.words, piece.heads(), piece.labels
    ('s1', ['She', 'sleeps'], array([-1,  2,  0]), ['nsubj', 'root'])
    >>> print(piece.patched([-1, 0, 1], misc={"HeadProb": ["0.87", "0.9"]}).decode().replace("\\t", " "), end="")
    # sent_id = s1
    1 She _ _ _ _ 0 nsubj _ HeadProb=0.87
    2 sleeps _ _ _ _ 1 root _ SpaceAfter=No|HeadProb=0.9
    <BLANKLINE>
    """

    __slots__ = ("_lines", "_places", "file", "first_line")

    def __init__(self, lines: list[bytes], places: list[int], first: int, file: str) -> None:
        self._lines = lines
        """Without their line feeds; the last one is followed by no line feed."""
        self._places = places
        """Which of the lines are words."""
        self.first_line = first
        """Its number in the file, from 1."""
        self.file = file

    def __len__(self) -> int:
        """The number of words."""
        return len(self._places)

    @property
    def fields(self) -> list[list[bytes]]:
        """The columns of each word; the last one may end in a carriage return."""
        return [self._lines[place].split(b"\t") for place in self._places]

    @property
    def raw(self) -> bytes:
        """The bytes as they were read."""
        return b"\n".join(self._lines)

    @property
    def words(self) -> list[str]:
        """Their FORMs."""
        return [fields[_FORM].decode(errors="replace") for fields in self.fields]

    @property
    def labels(self) -> list[str]:
        """Their DEPRELs."""
        return [_cell(fields, _DEPREL).decode(errors="replace") for fields in self.fields]

    @property
    def head_fields(self) -> list[str]:
        """Their HEADs as they stand in the file, whatever they are."""
        return [fields[_HEAD].decode(errors="replace") for fields in self.fields]

    @property
    def id(self) -> str | None:
        """What the comment ``# sent_id =`` says."""
        return self.comment("sent_id")

    def comment(self, key: str) -> str | None:
        """What the comment ``# key =`` says; None without it."""
        for line in self._lines:
            if line.startswith(b"#") or line.startswith(_BOM + b"#"):
                name, equals, value = line.partition(b"#")[2].partition(b"=")
                if equals and name.strip() == key.encode():
                    return value.strip().decode(errors="replace")
        return None

    def misc(self, key: str) -> list[str | None]:
        """The value that each word's MISC has for a key; None without it."""
        start = key.encode() + b"="
        values: list[str | None] = []
        for fields in self.fields:
            found = [item for item in _cell(fields, _MISC).split(b"|") if item.startswith(start)]
            values.append(found[0][len(start) :].decode(errors="replace") if found else None)
        return values

    def columns(self, *which: int) -> list[tuple[str, ...]]:
        """Some columns of each word, counted from 0; ``_`` where a line has fewer."""
        return [tuple(_cell(fields, i).decode(errors="replace") or "_" for i in which) for fields in self.fields]

    def heads(self) -> npt.NDArray[np.int64]:
        """Heads (n+1,): -1 for ROOT, -2 (`UNKNOWN`) where HEAD is ``_``.

        Raises
        ------
        BadFileError
            A HEAD is neither ``_`` nor the number of a word nor 0.
        """
        heads = np.full(len(self) + 1, -1)
        for word, fields in enumerate(self.fields, start=1):
            field = fields[_HEAD]
            if field.isdigit() and (len(field) < 10 and (head := int(field)) <= len(self)):
                heads[word] = head
            elif field == b"_":
                heads[word] = UNKNOWN
            else:
                what = f"HEAD is {field.decode(errors='replace')!r}, not a number from 0 to {len(self)} or _"
                raise BadFileError(self.file, f"line {self.line_of(word)}", f"word {word}", what)
        return heads

    def line_of(self, word: int) -> int:
        """The line of the file on which a word stands, both from 1."""
        return self.first_line + self._places[word - 1]

    def patched(
        self,
        heads: npt.ArrayLike | None = None,
        labels: Sequence[str] | None = None,
        misc: Mapping[str, Sequence[str | None]] | None = None,
    ) -> bytes:
        """The bytes with other heads, labels or MISC keys.

        Parameters
        ----------
        heads : integers (n+1,), optional
            Entry 0 is ignored; -2 writes ``_``.
        labels : n strings, optional
        misc : mapping of keys to n strings, optional
            A key that a word has is given the new value where it stands, a new one is put at the end; None takes it
            away.

        Raises
        ------
        ValueError
            A head is no node of the sentence, or a text would break the columns.
        NoMiscError
            MISC keys are to be set in a line without a tenth column.
        """
        n = len(self)
        lines = self._lines.copy()
        new_heads = None if heads is None else _head_fields(heads, n)
        new_labels = None if labels is None else _texts(labels, n, "labels")
        new_misc = None if not misc else _MiscKeys(misc, n, self.raw)
        added = None if new_misc is None else new_misc.added
        for i, place in enumerate(self._places):
            fields = lines[place].split(b"\t")
            if new_heads is not None:
                fields[_HEAD] = new_heads[i]
            if new_labels is not None:
                end = b"\r" if len(fields) == _DEPREL + 1 and fields[_DEPREL].endswith(b"\r") else b""
                fields[_DEPREL] = (new_labels[i] or b"_") + end
            if new_misc is not None:
                if len(fields) <= _MISC:
                    what = f"{len(fields)} columns: there is no MISC to write to"
                    raise NoMiscError(self.file, f"line {self.line_of(i + 1)}", what)
                cell = fields[_MISC]
                if added is None:
                    fields[_MISC] = new_misc.put(cell, i)
                elif cell == b"_" or not cell:
                    fields[_MISC] = added[i]
                else:
                    fields[_MISC] = b"%b|%b" % (cell, added[i])
            lines[place] = b"\t".join(fields)
        return b"\n".join(lines)


def read_conllu(chunks: Iterable[bytes], file: str = "CoNLL-U") -> Iterator[Sentence]:
    """The pieces of a CoNLL-U file, one after the other: their `raw` bytes put together are the file.

    Parameters
    ----------
    chunks : the file's bytes in pieces of any size; `chunks_of` cuts an open file
    file : its name, for messages

    Raises
    ------
    BadFileError
        A line is no comment, word, range or empty node; words are not numbered 1, 2, 3, ...; a word has fewer than 8
        columns.
    """
    lines: list[bytes] = []
    places: list[int] = []
    start = _STARTS[0]
    first = 1
    for whole, last in _lines_of(chunks, file):
        for line in whole:
            if line.startswith(start) and line.count(b"\t") >= _DEPREL:
                places.append(len(lines))
                start = _start(len(places))
            elif line[:1] != b"#":
                bare = line.removeprefix(_BOM) if first == 1 and not lines else line
                if not bare or bare.isspace():
                    if not last:
                        lines += [line, b""]  # so that the blank line ends in a line feed too
                        yield Sentence(lines, places, first, file)
                        first += len(lines) - 1
                        lines, places, start = [], [], _STARTS[0]
                        continue
                elif _is_word(bare, len(places), f"line {first + len(lines)}", file):
                    places.append(len(lines))
                    start = _start(len(places))
            lines.append(line)
        if len(lines) > _MOST_LINES:
            raise BadFileError(file, f"line {first}", f"a sentence of more than {_MOST_LINES} lines")
    if lines != [b""]:
        yield Sentence(lines, places, first, file)


def chunks_of(stream: BinaryIO) -> Iterator[bytes]:
    """An open file's bytes, a mebibyte at a time."""
    return iter(lambda: stream.read(_CHUNK), b"")


def _lines_of(chunks: Iterable[bytes], file: str) -> Iterator[tuple[list[bytes], bool]]:
    """Lines without their line feeds, and at the end what stands behind the last line feed."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield whole, False
        if len(rest) > LONGEST_LINE:
            raise BadFileError(file, f"a line of more than {LONGEST_LINE >> 20} MiB: this is no CoNLL-U file")
    yield [rest], True


def _start(words: int) -> bytes:
    """How the line after so many words starts if it is a word."""
    return _STARTS[words] if words < len(_STARTS) else b"%d\t" % (words + 1)


def _is_word(line: bytes, words: int, where: str, file: str) -> bool:
    """Whether a line that is not blank is a word, the next one; else a comment, a range or an empty node."""
    cells = line.split(b"\t")
    number = cells[0].removesuffix(b"\r")
    if _OTHER_ID.fullmatch(number) or line[:1] == b"#":
        return False
    if not line[:1].isdigit():
        raise BadFileError(file, where, f"neither a comment nor a word: it starts with {_shown(line)}")
    if not number.isdigit():
        raise BadFileError(file, where, f"ID is {_shown(number)}, no number of a word")
    if len(cells) <= _DEPREL:
        what = f"{len(cells)} columns; a word needs at least {_DEPREL + 1}, separated by tabs"
        raise BadFileError(file, where, what)
    if cells[0] != b"%d" % (words + 1):
        raise BadFileError(file, where, f"ID is {_shown(number)} where word {words + 1} is expected")
    return True


def _shown(text: bytes) -> str:
    return repr(text[:20].decode(errors="replace"))


def _cell(fields: list[bytes], column: int) -> bytes:
    return fields[column].removesuffix(b"\r") if column < len(fields) else b""


def _head_fields(heads: npt.ArrayLike, n: int) -> list[bytes]:
    values = np.asarray(heads)
    if values.shape != (n + 1,) or values.dtype.kind not in "iu":
        raise ValueError(f"{n} words need {n + 1} heads, integers, not {values.dtype} of shape {values.shape}")
    listed = values[1:].tolist()
    if not listed or (min(listed) >= 0 and max(listed) <= min(n, len(_HEADS) - 1)):
        return [_HEADS[head] for head in listed]
    bad = next((head for head in listed if not 0 <= head <= n and head != UNKNOWN), None)
    if bad is not None:
        raise ValueError(f"head {bad} is no node of a sentence of {n} words")
    return [b"_" if head == UNKNOWN else b"%d" % head for head in listed]


def _texts(texts: Sequence[str], n: int, what: str, forbidden: str = "") -> list[bytes]:
    """Texts as bytes, after a look that none of them would break the columns: at all of them at once, for speed."""
    if len(texts) != n:
        raise ValueError(f"{n} words need {n} values of {what}, not {len(texts)}")
    joined = "\n".join(texts)
    separators = joined.count("\n") - max(n - 1, 0)
    for character in "\t\r" + forbidden:
        separators += character in joined
    if separators:
        bad = next(text for text in texts if any(character in text for character in "\t\r\n" + forbidden))
        raise ValueError(f"{bad!r} cannot stand in a column of CoNLL-U: it holds a separator")
    return joined.encode(errors="surrogateescape").split(b"\n") if n else []


class _MiscKeys:
    """Keys and values for the MISC of each word of a sentence, whose bytes are `raw`."""

    def __init__(self, misc: Mapping[str, Sequence[str | None]], n: int, raw: bytes) -> None:
        self._starts, pattern = _misc_pattern(tuple(misc))
        self.added: list[bytes] | None = None
        """What every word gains, if the sentence has none of the keys yet, nor carriage returns: as it mostly is."""
        whole = all(len(values) == n and None not in values for values in misc.values())
        if whole and raw.find(b"\r") < 0 and all(raw.find(start) < 0 for start in self._starts):
            pieces: list[Any] = pattern * n
            for i, values in enumerate(misc.values()):
                pieces[2 * i + 1 :: len(pattern)] = values
            text = "".join(pieces)
            as_many = text.count("\n") == n and text.count("|") == n * (len(misc) - 1)
            if as_many and "\t" not in text and "\r" not in text:
                self.added = text.encode(errors="surrogateescape").split(b"\n")[1:]
                return
        self._columns: list[list[bytes | None]] = []
        for start, (key, values) in zip(self._starts, misc.items(), strict=True):
            texts = _texts([value or "" for value in values], n, key, "|")
            self._columns.append([None if value is None else start + t for value, t in zip(values, texts, strict=True)])

    def put(self, cell: bytes, word: int) -> bytes:
        """A word's MISC with the keys set or, by None, taken away."""
        end = b"\r" if cell.endswith(b"\r") else b""
        misc = cell.removesuffix(b"\r")
        items = [] if misc in _NOTHING else misc.split(b"|")
        before = items.copy()
        for start, column in zip(self._starts, self._columns, strict=True):
            new = column[word]
            found = [i for i, item in enumerate(items) if item.startswith(start)]
            if new is not None and found:
                items[found[0]] = new
            for i in reversed(found[0 if new is None else 1 :]):
                del items[i]
            if new is not None and not found:
                items.append(new)
        return cell if items == before else (b"|".join(items) or b"_") + end


@lru_cache
def _misc_pattern(keys: tuple[str, ...]) -> tuple[list[bytes], list[str]]:
    """How items with these keys start; and "\\nKEY=", value, "|KEY=", value, ... of a word, values to be filled in."""
    starts = [key + b"=" for key in _texts(keys, len(keys), "misc", "|=")]
    return starts, [piece for i, key in enumerate(keys) for piece in (f"{'|' if i else chr(10)}{key}=", "")]
