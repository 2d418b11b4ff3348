"""Score files: the arc scores that a trained parser gave to the sentences of a treebank, in one ``.npz``.

===================  ====================  =================================================================
array                type, shape           meaning
===================  ====================  =================================================================
``lengths``          integer, (S,)         words of each sentence
``offsets``          integer, (S+1,)       sentence i is ``scores[offsets[i]:offsets[i+1]]``, row-major (n+1, n+1)
``scores``           float, (total,)       log-weights ``[head, dependent]``; column 0 and the diagonal are ignored
``head_offsets``     integer, (S+1,)       its gold heads are ``heads[head_offsets[i]:head_offsets[i+1]]``
``heads``            integer, (words,)     gold heads of the words 1..n, 0 for ROOT
``uniform``          boolean, (S,)         optional: the sentence belongs to a uniform sample of the test set
===================  ====================  =================================================================

Other arrays are ignored, and so are files with an array ``labels``, which hold labelled scores. How many sentences
each parser was trained on is read from ``treebanks.csv`` in the same folder, if there is one, with the columns
``treebank`` (the file's name without ``.npz``) and ``train_sentences``.
"""

from __future__ import annotations

import csv
import zlib
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from ._types import BoolArray, FloatArray, IntArray

TRAIN_SENTENCES = {
    "UD_English-EWT": 4000,
    "UD_French-Sequoia": 2231,
    "UD_Ancient_Greek-Perseus": 1137,
    "UD_Latin-LLCT": 850,
    "UD_Arabic-PUD": 750,
    "UD_Czech-CLTT": 467,
    "UD_Marathi-UFAL": 373,
    "UD_Kazakh-KTB": 31,
    "UD_Kurmanji-MG": 20,
    "UD_Buryat-BDT": 19,
}
"""Training sentences of the parsers behind the figures of the documentation, assumed without ``treebanks.csv``."""


class ScoreFileError(ValueError):
    """A score file, or a folder of them, is not what this module describes."""


@dataclass(frozen=True)
class Treebank:
    """The scored sentences of one treebank."""

    name: str
    """The file's name without ``.npz``."""
    checksum: str
    """Of the file's bytes, so that measurements are not mistaken for those of another version of it."""
    train_sentences: int | None
    """What the parser was trained on, if known."""
    scores: list[FloatArray]
    """Log-weights ``[head, dependent]``, shape (n+1, n+1) each."""
    gold: list[IntArray]
    """Gold heads, shape (n+1,) each, with -1 for ROOT."""
    uniform: BoolArray
    """Which sentences make up a uniform sample of the test set, shape (S,)."""

    def lengths(self) -> IntArray:
        """Words of each sentence, shape (S,)."""
        return np.array([len(scores) - 1 for scores in self.scores], dtype=np.int64)

    def short_name(self) -> str:
        """The name without the ``UD_`` in front.

        Examples
        --------
        >>> Treebank("UD_Latin-LLCT", "", None, [], [], np.ones(0, dtype=bool)).short_name()
        'Latin-LLCT'
        """
        return self.name.removeprefix("UD_")


def read_treebank(path: Path, train_sentences: int | None = None) -> Treebank:
    """Read one score file.

    Raises
    ------
    ScoreFileError
        An array is missing or does not fit the others; the message names the file and the array.
    """
    with np.load(path) as arrays:
        missing = [
            name for name in ("lengths", "offsets", "scores", "head_offsets", "heads") if name not in arrays.files
        ]
        if missing:
            raise ScoreFileError(f"{path} has no array {missing[0]!r}")
        lengths = arrays["lengths"].astype(np.int64)
        scores = _cut(path, arrays["scores"], arrays["offsets"], (lengths + 1) ** 2, "scores")
        heads = _cut(path, arrays["heads"], arrays["head_offsets"], lengths, "heads")
        uniform = arrays["uniform"] if "uniform" in arrays.files else np.ones(len(lengths), dtype=np.bool_)
    if uniform.shape != lengths.shape:
        raise ScoreFileError(f"{path}: {len(lengths)} sentences, but 'uniform' has shape {uniform.shape}")
    return Treebank(
        path.stem,
        f"{zlib.crc32(path.read_bytes()):08x}",
        train_sentences,
        [flat.astype(np.float64).reshape(n + 1, n + 1) for flat, n in zip(scores, lengths, strict=True)],
        [np.concatenate([[-1], gold]).astype(np.int64) for gold in heads],
        uniform.astype(np.bool_),
    )


def read_folder(folder: Path) -> list[Treebank]:
    """Read every score file of a folder, in the order of their names; files of labelled scores are passed over.

    Raises
    ------
    ScoreFileError
        There is none, or one of them is malformed.
    """
    train_sentences = _read_train_sentences(folder / "treebanks.csv")
    paths = [path for path in sorted(folder.glob("*.npz")) if not _is_labelled(path)]
    if not paths:
        raise ScoreFileError(f"{folder} holds no score files (*.npz)")
    return [read_treebank(path, train_sentences.get(path.stem)) for path in paths]


def _cut(path: Path, flat: np.ndarray, offsets: np.ndarray, sizes: IntArray, name: str) -> list[np.ndarray]:
    """One piece of `flat` for each sentence, after checking that the pieces have the sizes that the lengths say."""
    if offsets.shape != (len(sizes) + 1,) or (np.diff(offsets) != sizes).any() or offsets[-1] > len(flat):
        raise ScoreFileError(f"{path}: the offsets of {name!r} do not fit 'lengths'")
    return [flat[start:stop] for start, stop in pairwise(offsets)]


def _is_labelled(path: Path) -> bool:
    with np.load(path) as arrays:
        return "labels" in arrays.files


def _read_train_sentences(path: Path) -> dict[str, int]:
    if not path.exists():
        return TRAIN_SENTENCES
    with path.open(encoding="utf-8", newline="") as lines:
        reader = csv.DictReader(lines)
        if not {"treebank", "train_sentences"} <= set(reader.fieldnames or ()):
            raise ScoreFileError(f"{path} needs the columns treebank and train_sentences")
        return {row["treebank"]: int(row["train_sentences"]) for row in reader}
