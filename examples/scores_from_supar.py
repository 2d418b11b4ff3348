"""Labelled scores out of SuPar, or any parser whose model returns (arc scores, relation scores).

python examples/scores_from_supar.py sentences.txt scores.npz                   # a sentence a line, split at blanks
spantree annotate scores.npz --confidence -o trees.jsonl
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np


def log_softmax(x: np.ndarray, axis: int) -> np.ndarray:
    x = x - x.max(axis=axis, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=axis, keepdims=True))


def labelled_scores(parser: Any, sentences: Iterable[list[str]]) -> list[np.ndarray]:
    """log p(head given word) + log p(label given edge), ``[head, dep, label]``, for each sentence.

    ``parser.model(words, feats)`` returns s_arc ``[batch, dep, head]`` and s_rel ``[batch, dep, head, label]``. One
    sentence a call, because longer batches are sorted by length.
    """
    heard: list[Any] = []
    listener = parser.model.register_forward_hook(lambda module, inputs, output: heard.append(output))
    scores = []
    for words in sentences:
        parser.predict([words], verbose=False)
        arcs, labels = (np.asarray(one.float().cpu()) for one in heard.pop())
        n = len(words) + 1
        both = log_softmax(arcs[0, :n, :n], 1)[..., np.newaxis] + log_softmax(labels[0, :n, :n], 2)
        scores.append(both.transpose(1, 0, 2))
    listener.remove()
    return scores


def write(path: str, scores: list[np.ndarray], labels: list[str]) -> None:
    """One array after the other, and the names of the labels: see ``docs/command_line.md``."""
    lengths = [len(one) - 1 for one in scores]
    flat = np.concatenate([one.ravel() for one in scores])
    np.savez_compressed(path, lengths=lengths, scores=flat, labels=np.array(labels))


if __name__ == "__main__":
    from supar import Parser

    loaded = Parser.load("biaffine-dep-en")
    with open(sys.argv[1], encoding="utf-8") as text:
        found = labelled_scores(loaded, [line.split() for line in text if line.strip()])
    write(sys.argv[2], found, list(loaded.REL.vocab.itos))
