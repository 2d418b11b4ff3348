"""Score files, read a few megabytes at a time: ``.npz``, ``.npy``, ``.safetensors``, Arrow, Parquet.

``.npz`` and ``.safetensors`` hold arrays by name. S sentences, n words in a sentence, Y labels:

===================  ====================  ======================================================================
array                type, shape           meaning
===================  ====================  ======================================================================
``lengths``          integer, (S,)         words of each sentence
``scores``           float, (total,)       one matrix after the other, row-major (n+1, n+1), ``[head, dependent]``;
                                           with labels (n+1, n+1, Y). Or padded: (S, N+1, N+1) or (S, N+1, N+1, Y)
``offsets``          integer, (S+1,)       optional: sentence i is ``scores[offsets[i]:offsets[i+1]]``
``heads``            integer, (words,)     optional: gold heads of the words 1..n, 0 for ROOT, in one row
``label_ids``        integer, (words,)     optional: gold labels
``labels``           text, (Y,)            makes the scores labelled: names (``.safetensors``: JSON in the metadata)
===================  ====================  ======================================================================

Other arrays are ignored. ``.npy`` holds one matrix, or a stack of them (S, N+1, N+1): N words in each. Arrow and
Parquet hold a sentence a row: see `spantree.arrow`.

Nothing is believed: every size is checked before memory is taken for it, objects (pickles) are refused, and no more
is unpacked than the lengths ask for.
"""

from __future__ import annotations

import io
import itertools
import json
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
import numpy.typing as npt

from .._names import same_names
from ._errors import BadFileError, first_line, naming
from .output import standard_input

MOST_BYTES = 1 << 30
"""One sentence's scores must fit into a gibibyte (16,000 words in float32): a longer one is a broken file."""

_SENTENCES = 1024  # a batch: enough for the core's vector lanes and threads ...
_BATCH_BYTES = 1 << 23  # ... and what two of them take should fit in the cache of the machine
_GROUP_BYTES = 1 << 25  # of Parquet, unpacked, that are read at a time
_MAPPED_BYTES = 1 << 26  # of a file that is mapped into memory, before it is opened anew
_LONGEST_HEADER = 1 << 16  # of an array
_MOST_NAMES = 1 << 24  # bytes that the names of all labels may take

IntArray = npt.NDArray[np.int64]


@dataclass(slots=True)
class ScoreBatch:
    """Some sentences of a score file, in its order."""

    first: int
    """Which sentence of the file the first one is, from 0."""
    scores: Sequence[npt.NDArray[Any]]
    """Shape (n+1, n+1), or (n+1, n+1, labels); some may be read-only."""
    ids: Sequence[str | None] | None = None
    heads: list[IntArray] | None = None
    """Gold heads, shape (n+1,), -1 for ROOT."""
    labels: list[IntArray] | None = None
    """Gold labels, shape (n+1,), -1 for ROOT."""


@dataclass(slots=True)
class ScoreFile:
    """An open score file: its batches can be read once."""

    name: str
    batches: Iterator[ScoreBatch]
    label_names: list[str] | None = None
    """None where the scores have no labels."""
    padded: bool = False
    """Whether the matrices may be larger than their sentences, and nothing says by how much."""
    sentences: int | None = None
    """How many there are, if that is known before they are read."""
    candidates: bool = False
    """Whether they are lists of candidates, which no layout applies to."""
    ends: Callable[[], Iterator[int]] | None = None
    """Where batches end, in sentences, if `open_scores` can begin at any of them without unpacking all before it."""


@contextmanager
def open_scores(path: str | Path, start: int = 0) -> Iterator[ScoreFile]:
    """Opens a score file of any format; the name's ending says which. ``-`` is an Arrow stream on standard input.

    Batches of sentences before `start`, a number at which a batch begins, are passed over.

    Raises
    ------
    BadFileError
        The file is not what its name says: here, or while the batches are read.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(Path(folder) / "scores.npz", lengths=[2, 1], scores=np.arange(13.0))
    ...     with open_scores(Path(folder) / "scores.npz") as file:
    ...         [scores.shape for batch in file.batches for scores in batch.scores]
    [(3, 3), (2, 2)]
    """
    name = str(path)
    opener = _OPENERS.get("-" if name == "-" else Path(path).suffix.lower())
    if opener is None:
        known = ", ".join(suffix for suffix in _OPENERS if suffix != "-")
        raise BadFileError(name, f"not the name of a score file, which ends in one of {known}")
    with ExitStack() as stack:
        with naming(name):
            file = opener(name, stack, start)
        file.batches = _readable(name, file.batches, start)
        yield file


def holds_scores(path: str | Path) -> bool:
    """Whether a file is one of scores by its name; of Parquet, which may hold trees too, by its columns."""
    name = str(path)
    if Path(path).suffix.lower() != ".parquet":
        return name != "-" and Path(path).suffix.lower() in _OPENERS
    import pyarrow.parquet as pq

    with naming(name):
        columns = pq.read_schema(name).names
    return "scores" in columns or "heads" not in columns


def _readable(name: str, batches: Iterator[ScoreBatch], start: int) -> Iterator[ScoreBatch]:
    with naming(name):
        yield from (batch for batch in batches if batch.first >= start)


class _Column(Protocol):
    """An array in a file, read from its start to its end."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    def take(self, count: int, where: str = "") -> npt.NDArray[Any]:
        """The next entries, flat; `where` names the sentence, for messages."""

    def skip(self, count: int) -> None:
        """Passes over the next entries."""


class _NpyColumn:
    """A stream in NumPy's own format."""

    def __init__(self, stream: BinaryIO, file: str, name: str) -> None:
        self._stream, self._file, self._name = stream, file, name
        magic = self._read(8)
        if magic[:6] != b"\x93NUMPY" or magic[6] not in (1, 2):
            raise BadFileError(file, name, "not an array in NumPy's format")
        size_bytes = self._read(2 * magic[6])
        size = int.from_bytes(size_bytes, "little")
        if size > _LONGEST_HEADER:
            raise BadFileError(file, name, f"a header of {size} bytes")
        header = io.BytesIO(size_bytes + self._read(size))
        read = np.lib.format.read_array_header_1_0 if magic[6] == 1 else np.lib.format.read_array_header_2_0
        try:
            self.shape, column_order, self.dtype = read(header)
        except Exception as error:  # a header is a Python literal: there is much that it can be
            raise BadFileError(file, name, f"a broken header: {first_line(error)}") from error
        if min(self.shape, default=0) < 0:
            raise BadFileError(file, name, f"cannot have the shape {self.shape}")
        if self.dtype.hasobject:
            raise BadFileError(file, name, "holds Python objects (pickles), which are never loaded")
        if column_order and len(self.shape) > 1:
            raise BadFileError(file, name, "is stored column by column; save numpy.ascontiguousarray of it")

    def take(self, count: int, where: str = "") -> npt.NDArray[Any]:
        return np.frombuffer(self._read(count * self.dtype.itemsize, where), self.dtype)

    def skip(self, count: int) -> None:
        self._stream.seek(count * self.dtype.itemsize, io.SEEK_CUR)

    def _read(self, size: int, where: str = "") -> bytes:
        """Exactly so many bytes."""
        data = self._stream.read(size)
        if len(data) != size:
            raise BadFileError(self._file, *filter(None, [where]), self._name, "the file ends too early")
        return data


class _Safetensors:
    """An open ``.safetensors`` file. The library maps it into memory, where all that was ever read would stay: so it is
    opened anew after some bytes."""

    def __init__(self, name: str, stack: ExitStack) -> None:
        self._name = name
        self._stack = stack.enter_context(ExitStack())
        self._open()

    def _open(self) -> None:
        from safetensors import safe_open

        self._slices: dict[str, Any] = {}
        self._stack.close()
        self.file = self._stack.enter_context(safe_open(self._name, framework="numpy"))
        self._taken = 0

    def slice(self, array: str) -> Any:
        if array not in self._slices:
            self._slices[array] = self.file.get_slice(array)
        return self._slices[array]

    def take(self, array: str, start: int, end: int, size: int) -> npt.NDArray[Any]:
        """Some rows of an array, of so many bytes."""
        if self._taken > _MAPPED_BYTES:
            self._open()
        self._taken += size
        return np.asarray(self.slice(array)[start:end])


class _SafetensorsColumn:
    """A tensor of a ``.safetensors`` file."""

    def __init__(self, tensors: _Safetensors, file: str, name: str) -> None:
        self._tensors, self._name = tensors, name
        self.shape = tuple(tensors.slice(name).get_shape())
        kind = tensors.slice(name).get_dtype()
        if kind not in _SAFETENSORS_TYPES:
            raise BadFileError(file, name, f"has the type {kind}; one of {', '.join(_SAFETENSORS_TYPES)} is needed")
        self.dtype = np.dtype(_SAFETENSORS_TYPES[kind])
        self._row = int(np.prod(self.shape[1:], dtype=np.int64))
        self._next = 0

    def take(self, count: int, where: str = "") -> npt.NDArray[Any]:
        rows = count // max(self._row, 1)
        start, self._next = self._next, self._next + rows
        if not rows:
            return np.empty(0, self.dtype)
        return self._tensors.take(self._name, start, self._next, count * self.dtype.itemsize).reshape(-1)

    def skip(self, count: int) -> None:
        self._next += count // max(self._row, 1)


_SAFETENSORS_TYPES = {
    "F32": "f4",
    "F64": "f8",
    "F16": "f2",
    "I32": "i4",
    "I64": "i8",
    "I16": "i2",
    "U8": "u1",
    "I8": "i1",
}


def _open_npz(name: str, stack: ExitStack, start: int) -> ScoreFile:
    try:
        archive = stack.enter_context(zipfile.ZipFile(name))
    except zipfile.BadZipFile as error:
        raise BadFileError(name, "not an .npz file (no zip archive), or one that was cut short") from error
    members = set(archive.namelist())

    def column(array: str) -> _Column | None:
        if f"{array}.npy" not in members:
            return None
        return _NpyColumn(stack.enter_context(archive.open(f"{array}.npy")), name, array)  # type: ignore[arg-type]

    names = column("labels")
    file = _open_arrays(name, column, None if names is None else _label_names(names, name), start)
    if any(info.compress_type != zipfile.ZIP_STORED for info in archive.infolist()):
        file.ends = None
    return file


def _open_safetensors(name: str, stack: ExitStack, start: int) -> ScoreFile:
    tensors = _Safetensors(name, stack)
    arrays = set(tensors.file.keys())
    names = (tensors.file.metadata() or {}).get("labels")

    def column(array: str) -> _Column | None:
        return _SafetensorsColumn(tensors, name, array) if array in arrays else None

    return _open_arrays(name, column, None if names is None else _names_in_json(names, name), start)


def _open_npy(name: str, stack: ExitStack, start: int) -> ScoreFile:
    stream = stack.enter_context(Path(name).open("rb"))  # noqa: SIM115
    scores = _NpyColumn(stream, name, "scores")
    if len(scores.shape) == 2:
        scores.shape = (1, *scores.shape)
    return _open_arrays(name, lambda array: scores if array == "scores" else None, None, start)


def _label_names(column: _Column, file: str) -> list[str]:
    if column.dtype.kind not in "US" or len(column.shape) != 1:
        raise BadFileError(file, "labels", f"must be one row of text, not {column.dtype} of shape {column.shape}")
    if column.shape[0] * column.dtype.itemsize > _MOST_NAMES:
        raise BadFileError(file, "labels", f"{column.shape[0]} names of {column.dtype.itemsize} bytes each")
    return _told_apart([str(label) for label in column.take(column.shape[0]).astype(np.str_)], file)


def _names_in_json(text: str | bytes, file: str) -> list[str]:
    try:
        names = json.loads(text)
    except ValueError as error:
        raise BadFileError(file, "labels", "the metadata is no JSON") from error
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise BadFileError(file, "labels", "the metadata is no list of texts")
    if not names:
        raise BadFileError(file, "labels", "no labels at all")
    return _told_apart(names, file)


def _told_apart(names: list[str], file: str) -> list[str]:
    twice = same_names(names)
    if twice is not None:
        raise BadFileError(file, "labels", twice)
    return names


def _open_arrays(name: str, column: Callable[[str], _Column | None], names: list[str] | None, start: int) -> ScoreFile:
    scores, lengths = column("scores"), column("lengths")
    if scores is None:
        raise BadFileError(name, "has no array 'scores'")
    if scores.dtype.kind not in "fiu" or scores.dtype.itemsize > 8:
        raise BadFileError(name, "scores", f"must be numbers of at most 64 bits, not {scores.dtype}")
    flat = len(scores.shape) == 1
    if not flat and (len(scores.shape) not in (3, 4) or scores.shape[1] != scores.shape[2] or scores.shape[1] == 0):
        raise BadFileError(name, "scores", f"must be flat or (S, N+1, N+1) or (S, N+1, N+1, Y), not {scores.shape}")
    if flat and lengths is None:
        raise BadFileError(name, "has no array 'lengths', which flat scores need")
    if len(scores.shape) == 4:
        names = names or [str(label) for label in range(scores.shape[3])]
        if len(names) != scores.shape[3]:
            raise BadFileError(name, "labels", f"{len(names)} names for {scores.shape[3]} labels")
    elif not flat and names is not None:
        raise BadFileError(name, "scores", "has no axis for the labels")
    if names is not None and not names:
        raise BadFileError(name, "labels", "no labels at all")
    heads, label_ids = column("heads"), column("label_ids") if names else None
    for array, one in (("lengths", lengths), ("heads", heads), ("label_ids", label_ids)):
        if one is not None and (one.dtype.kind not in "iu" or len(one.shape) != 1):
            raise BadFileError(name, array, f"must be one row of integers, not {one.dtype} of shape {one.shape}")
    sentences = scores.shape[0] if lengths is None else lengths.shape[0]
    if not flat and lengths is not None and scores.shape[0] != sentences:
        raise BadFileError(name, "scores", f"{scores.shape[0]} sentences, but {sentences} 'lengths'")
    gold, labels = [heads, label_ids], len(names) if names else 0
    batches = _array_batches(name, scores, lengths, column("offsets"), gold, labels, sentences, start)

    def ends() -> Iterator[int]:
        again, cuts = None if lengths is None else column("lengths"), _Cuts()
        for first in range(0, sentences, _SENTENCES):
            count = min(_SENTENCES, sentences - first)
            words = itertools.repeat(0, count) if again is None else again.take(count).tolist()
            for i, n in enumerate(words, start=first + 1):
                nodes = n + 1 if flat else scores.shape[1]
                if cuts.full(nodes * nodes * max(labels, 1) * scores.dtype.itemsize) or i == sentences:
                    yield i

    return ScoreFile(name, batches, names, padded=not flat and lengths is None, sentences=sentences, ends=ends)


_GOLD = ("heads", "label_ids")


class _Cuts:
    """Where batches of sentences that come one by one are cut."""

    def __init__(self) -> None:
        self._sentences = self._bytes = 0

    def full(self, size: int) -> bool:
        """Whether a batch ends with this sentence, of so many bytes."""
        self._sentences, self._bytes = self._sentences + 1, self._bytes + size
        if self._bytes < _BATCH_BYTES and self._sentences < _SENTENCES:
            return False
        self._sentences = self._bytes = 0
        return True


def _array_batches(
    name: str,
    scores: _Column,
    lengths: _Column | None,
    offsets: _Column | None,
    gold: list[_Column | None],
    labels: int,
    sentences: int,
    start: int,
) -> Iterator[ScoreBatch]:
    flat = len(scores.shape) == 1
    place = passed = passed_words = seen_words = 0
    if flat and offsets is not None:
        if offsets.shape != (sentences + 1,) or offsets.dtype.kind not in "iu":
            raise BadFileError(
                name, "offsets", f"must be {sentences + 1} integers, not {offsets.dtype} {offsets.shape}"
            )
        place = passed = int(offsets.take(1)[0])
        if not 0 <= place <= scores.shape[0]:
            raise BadFileError(name, "offsets", f"start at {place}, outside the scores")
    matrices: list[npt.NDArray[Any]] = []
    batch = ScoreBatch(start, matrices, heads=[] if gold[0] else None, labels=[] if gold[1] else None)
    cuts = _Cuts()
    for first in range(0, sentences, _SENTENCES):
        count = min(_SENTENCES, sentences - first)
        words = [scores.shape[1] - 1] * count if lengths is None else lengths.take(count).tolist()
        ends = offsets.take(count).tolist() if flat and offsets is not None else None
        for i, n in enumerate(words):
            where = f"sentence {first + i + 1}"
            if n < 0 or (not flat and n >= scores.shape[1]):
                raise BadFileError(
                    name, where, "lengths", f"{n} words" + ("" if flat else ", more than the scores have")
                )
            nodes = n + 1 if flat else scores.shape[1]
            size = nodes * nodes * max(labels, 1)
            if size * scores.dtype.itemsize > MOST_BYTES:
                raise BadFileError(
                    name, where, "lengths", f"{n} words would need more than {MOST_BYTES >> 30} GiB of scores"
                )
            if ends is not None and ends[i] != place + size:
                raise BadFileError(name, where, "offsets", f"leaves {ends[i] - place} scores; {n} words need {size}")
            if flat and place + size > scores.shape[0]:
                raise BadFileError(name, where, "scores", "the array ends too early")
            place, seen_words = place + size, seen_words + n
            for column, field in zip(gold, _GOLD, strict=True):
                if column is not None and seen_words > column.shape[0]:
                    raise BadFileError(name, where, field, "the array ends too early")
            if first + i < start:
                passed, passed_words = passed + size, passed_words + n
                continue
            if passed:
                for column, count_of in ((scores, passed), *((one, passed_words) for one in gold)):
                    if column is not None:
                        column.skip(count_of)
                passed = passed_words = 0
            matrix = scores.take(size, where).reshape((nodes, nodes, labels) if labels else (nodes, nodes))
            matrix = matrix[: n + 1, : n + 1]
            matrices.append(matrix if matrix.dtype.isnative else matrix.astype(matrix.dtype.newbyteorder("=")))
            for column, field, kept, most in zip(
                gold, _GOLD, (batch.heads, batch.labels), (n, labels - 1), strict=True
            ):
                if column is not None and kept is not None:
                    kept.append(_with_root(column.take(n, where), most, name, where, field))
            if cuts.full(size * scores.dtype.itemsize):
                yield batch
                matrices = []
                batch = ScoreBatch(
                    first + i + 1, matrices, heads=[] if gold[0] else None, labels=[] if gold[1] else None
                )
    if flat and offsets is None and place != scores.shape[0]:
        raise BadFileError(name, "scores", f"{scores.shape[0]} numbers; the sentences' lengths ask for {place}")
    for column, field in zip(gold, _GOLD, strict=True):
        if column is not None and column.shape[0] != seen_words:
            raise BadFileError(name, field, f"{column.shape[0]} numbers; the sentences have {seen_words} words")
    if matrices:
        yield batch


def _with_root(values: npt.NDArray[Any], most: int, name: str, where: str, field: str) -> IntArray:
    row = np.concatenate([[-1], values.astype(np.int64)])
    if len(row) > 1 and (row.min() < -2 or row.max() > most):
        raise BadFileError(name, where, field, f"a number outside 0 to {most}")
    return row


PARQUET: Any = {"pre_buffer": False, "buffer_size": 1 << 20}
"""A mebibyte of each column in memory at a time; else pyarrow reads whole row groups: a million sentences, unless it
was told otherwise when it wrote them."""


def rows_at_once(group: Any) -> int:
    """How many rows of a row group of Parquet are read at a time: fewer where sentences are long.

    Not looked at are the group's columns: of a broken file, pyarrow ends the process at that.
    """
    return max(1, min(_SENTENCES, _GROUP_BYTES * int(group.num_rows) // max(int(group.total_byte_size), 1)))


def _open_parquet(name: str, stack: ExitStack, start: int) -> ScoreFile:
    import pyarrow.parquet as pq

    file = stack.enter_context(pq.ParquetFile(name, **PARQUET))
    sizes = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
    firsts = [0, *itertools.accumulate(sizes)]
    wanted = [i for i in range(len(sizes)) if firsts[i + 1] > start]
    groups = itertools.chain.from_iterable(
        file.iter_batches(rows_at_once(file.metadata.row_group(i)), row_groups=[i]) for i in wanted
    )
    first = firsts[wanted[0]] if wanted else firsts[-1]

    def ends() -> Iterator[int]:
        for i, size in enumerate(sizes):
            yield from _ends(firsts[i], size, rows_at_once(file.metadata.row_group(i)))

    return _arrow_file(name, file.schema_arrow, groups, file.metadata.num_rows, first, ends)


def _open_arrow(name: str, stack: ExitStack, start: int) -> ScoreFile:
    import pyarrow as pa

    if name == "-":
        try:
            file = groups = pa.ipc.open_stream(stack.enter_context(pa.PythonFile(standard_input())))
        except pa.ArrowException as error:
            raise BadFileError("standard input", f"no stream of Arrow: {first_line(error)}") from error
        return _arrow_file(name, file.schema, groups, None)
    with Path(name).open("rb") as start_of_file:
        is_stream = start_of_file.read(6) != b"ARROW1"
    if is_stream:
        file = pa.ipc.open_stream(stack.enter_context(pa.OSFile(name)))
        return _arrow_file(name, file.schema, file, None)
    source = stack.enter_context(pa.memory_map(name))
    file = pa.ipc.open_file(source)
    one_column = pa.ipc.open_file(source, options=pa.ipc.IpcReadOptions(included_fields=[0]))  # unpacks no others
    firsts = [0, *itertools.accumulate(one_column.get_batch(i).num_rows for i in range(file.num_record_batches))]
    wanted = [i for i in range(file.num_record_batches) if firsts[i + 1] > start]

    def ends() -> Iterator[int]:
        for first, end in itertools.pairwise(firsts):
            yield from _ends(first, end - first, _SENTENCES)

    first = firsts[wanted[0]] if wanted else firsts[-1]
    return _arrow_file(name, file.schema, _mapped_batches(name, wanted), firsts[-1], first, ends)


def _mapped_batches(name: str, wanted: list[int]) -> Iterator[Any]:
    """Batches of an Arrow file where they lie, mapped into memory; anew after some bytes, else all that was ever read
    would stay there."""
    import pyarrow as pa

    taken, file = 0, None
    for i in wanted:
        if file is None or taken > _MAPPED_BYTES:
            taken, file = 0, pa.ipc.open_file(pa.memory_map(name))
        batch = file.get_batch(i)
        taken += batch.nbytes
        yield batch


def _ends(first: int, size: int, most: int) -> Iterator[int]:
    """Where pieces of at most so many rows of a group end."""
    return (min(row + most, first + size) for row in range(first, first + size, most))


def _arrow_file(
    name: str,
    schema: Any,
    groups: Any,
    sentences: int | None,
    start: int = 0,
    ends: Callable[[], Iterator[int]] | None = None,
) -> ScoreFile:
    from ..arrow import columns_of, label_names

    def batches() -> Iterator[ScoreBatch]:
        first = start
        for group in groups:
            for row in range(0, len(group), _SENTENCES):
                columns = columns_of(group.slice(row, _SENTENCES), name, first)
                yield ScoreBatch(first, columns.scores, columns.ids, columns.heads, columns.labels)
                first += len(columns.scores)

    few = "heads" in schema.names
    return ScoreFile(name, batches(), label_names(schema, name), sentences=sentences, candidates=few, ends=ends)


_OPENERS: dict[str, Callable[[str, ExitStack, int], ScoreFile]] = {
    ".npz": _open_npz,
    ".npy": _open_npy,
    ".safetensors": _open_safetensors,
    ".parquet": _open_parquet,
    ".arrow": _open_arrow,
    ".arrows": _open_arrow,
    ".feather": _open_arrow,
    "-": _open_arrow,
}
