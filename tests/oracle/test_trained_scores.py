"""Scores of trained parsers, where there are some: short sentences by enumeration, longer ones by exact inverses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import spantree
from oracle import quantities
from oracle.battery import KINDS, failures
from oracle.forms import FORMS
from oracle.laplacian import exact
from oracle.sentence import Sentence
from spantree.experiments.score_files import read_folder

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "scores"
NAMES = sorted(path.stem for path in FOLDER.glob("UD_*.npz") if "labelled" not in path.stem) or ["none"]
SHORT, EACH = 4, 3
LONG = [10]
DIGITS = 300  # -60 to -140 nats at worst, on each of 10 words, and as much again for what cancels


@pytest.fixture(scope="module")
def treebanks():
    if not FOLDER.is_dir():
        pytest.skip("needs score files of trained parsers")
    return {treebank.name: treebank.scores for treebank in read_folder(FOLDER)}


@pytest.mark.parametrize("name", NAMES)
def test_short_sentences(treebanks, name):
    short = [scores.astype(np.float32) for scores in treebanks[name] if 2 <= len(scores) - 1 <= SHORT][:EACH]
    at = NAMES.index(name)
    kind, form = KINDS[at % len(KINDS)], FORMS[2 + at % (len(FORMS) - 2)]
    batch = [Sentence(f"{name} {i}", scores) for i, scores in enumerate(short)]
    questions = [q for group in quantities.GROUPS.values() for q in group]
    wrong = list(failures(questions, batch, kind, [form])) if batch else []
    assert not wrong, "\n".join(map(str, wrong[:5]))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("root", ["single", "multi"])
def test_longer_sentences(treebanks, name, root):
    for words in LONG:
        found = [scores for scores in treebanks[name] if len(scores) - 1 == words][:1]
        for scores in found:
            double = scores.astype(np.float64)
            marginals, log_z = exact(double, root, DIGITS)
            dist = spantree.TreeDistribution(double, root=root)
            wanted = np.array([[float(marginals[h, d]) for d in range(words + 1)] for h in range(words + 1)])
            np.testing.assert_allclose(dist.marginals(), wanted, rtol=1e-11, atol=1e-261)
            np.testing.assert_allclose(dist.log_partition(), float(log_z), rtol=1e-14, atol=1e-12)
