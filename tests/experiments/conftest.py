"""Tiny score files in the documented format, and one quick run of all experiments on them that many tests look at."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from spantree.experiments.__main__ import main


def score_arrays(rng: np.random.Generator, lengths: list[int], scale: float) -> dict[str, np.ndarray]:
    """The arrays of a score file: random scores, and gold heads that hang every word on the one before it."""
    sizes = (np.array(lengths) + 1) ** 2
    return {
        "lengths": np.array(lengths, dtype=np.int32),
        "offsets": np.concatenate([[0], np.cumsum(sizes)]),
        "scores": rng.normal(0.0, scale, sizes.sum()).astype(np.float32),
        "head_offsets": np.concatenate([[0], np.cumsum(lengths)]),
        "heads": np.concatenate([np.arange(n) for n in lengths]).astype(np.int32),
        "uniform": np.arange(len(lengths)) % 5 != 4,
    }


@pytest.fixture
def make_score_file():
    """A function that writes a score file and returns its arrays."""

    def make(path: Path, lengths: list[int], seed: int = 0, scale: float = 1.0, **changes: object) -> dict:
        arrays = {**score_arrays(np.random.default_rng(seed), lengths, scale), **changes}
        np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
        return arrays

    return make


@pytest.fixture(scope="session")
def scores_folder(tmp_path_factory):
    """Three treebanks; the training size of one is unknown. A labelled file that is to be passed over."""
    folder = tmp_path_factory.mktemp("scores")
    rng = np.random.default_rng(1)
    for name, scale in (("UD_Sharp-A", 3.0), ("UD_Middle-B", 1.5), ("UD_Flat-C", 0.5)):
        np.savez(folder / f"{name}.npz", **score_arrays(rng, [5, 6, 7, 3, 12, 13, 8, 1, 9], scale))
    np.savez(folder / "UD_Sharp-A-labelled.npz", labels=np.array(["nsubj"]))
    (folder / "treebanks.csv").write_text("treebank,train_sentences\nUD_Sharp-A,2000\nUD_Flat-C,30\n")
    return folder


@pytest.fixture(scope="session")
def results(scores_folder, tmp_path_factory):
    """The folder that a quick run of all experiments wrote to."""
    output = tmp_path_factory.mktemp("results")
    assert main(["all", "--quick", "--output", str(output), "--scores", str(scores_folder)]) == 0
    return output
