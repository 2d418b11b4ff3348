"""Trained scores, where there are some beside the repository."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "scores"


@pytest.fixture(scope="session")
def trained_sentences():
    """Up to 40 score matrices, some of each treebank; none without the folder."""
    found = []
    for path in sorted(FOLDER.glob("*.npz")):
        with np.load(path) as data:
            if "labels" not in data:
                lengths, offsets, scores = data["lengths"], data["offsets"], data["scores"]
                picked = [i for i in range(0, len(lengths), max(1, len(lengths) // 4)) if 1 < lengths[i] < 60][:4]
                found += [scores[offsets[i] : offsets[i + 1]].reshape(lengths[i] + 1, -1) for i in picked]
    return found
