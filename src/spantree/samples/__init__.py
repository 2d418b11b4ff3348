"""A few sentences with edge scores, to try things on."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class SampleSentence:
    """A sentence: its words, and scores ``[head, dep]`` of shape (n+1, n+1) with ROOT as node 0."""

    words: list[str]
    scores: npt.NDArray[np.float64]


def load_samples() -> list[SampleSentence]:
    """The sentences that ship with the package.

    Examples
    --------
    >>> from spantree.samples import load_samples
    >>> sample = load_samples()[0]
    >>> " ".join(sample.words)
    'She saw the man with the telescope'
    >>> sample.scores.shape
    (8, 8)
    """
    text = files(__name__).joinpath("sentences.json").read_text(encoding="utf-8")
    return [SampleSentence(entry["words"], np.array(entry["scores"], np.float64)) for entry in json.loads(text)]
