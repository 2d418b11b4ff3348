"""Score files of trained parsers, if there are some: a folder of .npz files in the format of docs/experiments.md."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from spantree.experiments.score_files import read_folder

DEFAULT_FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "scores"


def treebanks(folder: Path = DEFAULT_FOLDER) -> dict[str, list[npt.NDArray[np.float32]]]:
    """Score matrices ``[head, dep]`` of every treebank; empty if there is no such folder."""
    if not folder.is_dir():
        return {}
    found = read_folder(folder)
    return {treebank.name: [matrix.astype(np.float32) for matrix in treebank.scores] for treebank in found}


def padded_batches(
    matrices: list[npt.NDArray[np.float32]], size: int
) -> list[tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]]:
    """Batches of like length, as parsers make them: (scores, lengths)."""
    ordered = sorted((matrix for matrix in matrices if len(matrix) > 1), key=len)
    batches = []
    for start in range(0, len(ordered), size):
        part = ordered[start : start + size]
        width = len(part[-1])
        scores = np.full((len(part), width, width), -np.inf, np.float32)
        for row, matrix in zip(scores, part, strict=True):
            row[: len(matrix), : len(matrix)] = matrix
        batches.append((scores, np.array([len(matrix) - 1 for matrix in part])))
    return batches
