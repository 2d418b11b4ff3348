"""A parser in sixty lines of NumPy: a log-linear tree CRF on tags, trained and applied to the small treebank beside it.

python examples/treebank/train.py scores.npz            # scores of every sentence, by a model that did not see it

The score of an edge is a sum of three weights: of the two tags, of the two tags and the direction, of the dependent's
tag and the distance. The gradient of the log-likelihood is what is in the gold tree minus what is expected:

    d log p(gold) / d score[h, d] = [h -> d in gold] - marginal[h, d]
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import spantree

TREEBANK = Path(__file__).with_name("treebank.conllu")
TAGS = ["ROOT", "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "PART", "PRON", "PROPN", "PUNCT", "SCONJ"]
TAGS += ["VERB"]
FOLDS = 4
STEPS, RATE, PENALTY = 100, 0.1, 0.02  # plain gradient ascent; a weight costs half its square times PENALTY


@dataclass
class Sentence:
    words: list[str]
    heads: np.ndarray  # (n+1,), 0 at ROOT
    labels: list[str]
    tags: np.ndarray  # (n+1,), numbers in TAGS


def read(path: Path = TREEBANK) -> list[Sentence]:
    """The sentences of a CoNLL-U file without multiword tokens."""
    found = []
    for block in path.read_text(encoding="utf-8").strip().split("\n\n"):
        rows = [line.split("\t") for line in block.splitlines() if not line.startswith("#")]
        _, words, _, tags, _, _, heads, labels, *_ = zip(*rows, strict=True)
        numbers = np.array([0, *map(TAGS.index, tags)])
        found.append(Sentence(list(words), np.array([0, *map(int, heads)]), list(labels), numbers))
    return found


def features(tags: np.ndarray) -> np.ndarray:
    """Which three weights make the score of each edge: (3, n+1, n+1), ``[head, dependent]``."""
    places = np.arange(len(tags))
    steps = places[:, None] - places
    head, dependent = tags[:, None], tags[None, :]
    pair = head * len(TAGS) + dependent
    distance = np.minimum(np.abs(steps), 6)
    pairs = len(TAGS) ** 2
    return np.stack([pair, pairs + 2 * pair + (steps > 0), 3 * pairs + dependent * 14 + 2 * distance + (steps > 0)])


def train(sentences: list[Sentence]) -> np.ndarray:
    """The weights under which the gold trees are likeliest."""
    places = [features(sentence.tags) for sentence in sentences]
    gold = [spantree.heads_to_edges(sentence.heads) for sentence in sentences]
    weights = np.zeros(3 * len(TAGS) ** 2 + 14 * len(TAGS))
    for _ in range(STEPS):
        gradient = -PENALTY * len(sentences) * weights
        marginals = spantree.marginals([weights[place].sum(axis=0) for place in places])
        for place, there, expected in zip(places, gold, marginals, strict=True):
            for kind in place:
                np.add.at(gradient, kind, there - expected)
        weights += RATE * gradient
    return weights


def score(sentences: list[Sentence], folds: int = FOLDS) -> list[np.ndarray]:
    """Scores ``[head, dependent]`` of each sentence by a model trained on the other folds."""
    scores = [np.empty(0)] * len(sentences)
    for fold in range(folds):
        weights = train([sentence for i, sentence in enumerate(sentences) if i % folds != fold])
        for i in range(fold, len(sentences), folds):
            scores[i] = weights[features(sentences[i].tags)].sum(axis=0)
    return scores


if __name__ == "__main__":
    sentences = read()
    scores = score(sentences)
    trees = spantree.decode(scores)
    right = sum((tree == one.heads)[1:].sum() for tree, one in zip(trees, sentences, strict=True))
    total = sum(len(one.words) for one in sentences)
    flat = np.concatenate([matrix.ravel() for matrix in scores])
    np.savez(sys.argv[1], lengths=[len(one.words) for one in sentences], scores=flat)
    print(f"{len(sentences)} sentences, {total} words, UAS {right / total:.1%}")
