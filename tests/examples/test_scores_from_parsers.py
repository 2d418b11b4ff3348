"""The examples that take scores out of parsers, on stand-ins that call their listeners as the parsers do."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import numpy as np

import spantree
from spantree.files import open_scores

EXAMPLES = Path(__file__).parents[2] / "examples"
SENTENCES = [["She", "sleeps"], ["Go"], ["a", "b", "c"]]


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Tensor(np.ndarray):
    def float(self):
        return self

    def cpu(self):
        return self


class Model:
    """Padded scores, as from a network, told to whoever listens."""

    def __init__(self):
        self.listeners = []

    def register_forward_hook(self, listener):
        self.listeners.append(listener)
        return SimpleNamespace(remove=lambda: self.listeners.remove(listener))

    def forward(self, words, result):
        for listener in self.listeners:
            listener(self, words, result)


def test_stanza(tmp_path):
    model, rng = Model(), np.random.default_rng(0)
    told = []

    def pipeline(batch):
        told.append(rng.normal(size=(1, 9, 9)))
        model.forward(batch, (0, [told[-1], None]))
        return "document"

    pipeline.processors = {"depparse": SimpleNamespace(trainer=SimpleNamespace(model=model))}
    example = load("scores_from_stanza")
    scores, documents = example.arc_scores(pipeline, SENTENCES)
    assert len(documents) == 3
    assert not model.listeners
    example.write(tmp_path / "s.npz", scores)
    with open_scores(tmp_path / "s.npz") as file:
        (batch,) = file.batches
    for words, one, dep_head in zip(SENTENCES, batch.scores, told, strict=True):
        n = len(words) + 1
        np.testing.assert_array_equal(one, dep_head[0, :n, :n].T)
        expected = spantree.decode(dep_head[0, :n, :n], layout="dep_head")
        np.testing.assert_array_equal(spantree.decode(one), expected)


def test_supar(tmp_path):
    model, rng = Model(), np.random.default_rng(0)
    told = []

    def predict(batch, verbose):
        told.append((rng.normal(size=(1, 7, 7)).view(Tensor), rng.normal(size=(1, 7, 7, 4)).view(Tensor)))
        model.forward(batch, told[-1])

    example = load("scores_from_supar")
    scores = example.labelled_scores(SimpleNamespace(model=model, predict=predict), SENTENCES)
    example.write(tmp_path / "s.npz", scores, ["a", "b", "c", "d"])
    with open_scores(tmp_path / "s.npz") as file:
        (batch,) = file.batches
    assert file.label_names == ["a", "b", "c", "d"]
    for words, one, (arcs, labels) in zip(SENTENCES, batch.scores, told, strict=True):
        for dep in range(1, len(words) + 1):
            p = np.exp(one[:, dep])  # [head, label]
            weights = np.exp(np.asarray(arcs[0, dep, : len(words) + 1]))
            np.testing.assert_allclose(p.sum(axis=1), weights / weights.sum(), rtol=1e-9)
            kinds = np.exp(np.asarray(labels[0, dep, 0]))
            np.testing.assert_allclose(p[0] / p[0].sum(), kinds / kinds.sum(), rtol=1e-9)
