"""From scores to trees, and how good they are: UAS, LAS, exact match, malformed trees, calibration."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from data import Batch, Example, Vocabulary, batches_of
from losses import without_loops_and_padding
from model import Parser

import spantree
import spantree.torch
import torch
from torch import Tensor

DECODERS = ["greedy", "several-roots", "single-root", "mbr"]


def decode(edges: Tensor, lengths: Tensor, decoder: str) -> tuple[Tensor, Tensor]:
    """Heads (B, n+1), 0 at ROOT and in the padding, and the probability that each has under what the decoder maximises.

    ``greedy`` takes each word's best head, and its softmax; the others take trees, and marginals of trees.
    """
    if decoder == "greedy":
        probabilities = without_loops_and_padding(edges, lengths).softmax(dim=1)
        heads = probabilities.argmax(dim=1)
    else:
        trees = spantree.torch.TreeDistribution(
            edges, lengths=lengths, root="multi" if decoder == "several-roots" else "single"
        )
        probabilities = trees.marginals()
        heads = (trees.mbr() if decoder == "mbr" else trees.argmax()).clamp(min=0)
    return heads, probabilities.take_along_dim(heads[:, None, :], dim=1).squeeze(1)


@dataclass
class Parsed:
    """Trees of some sentences, one entry a sentence, ROOT left out."""

    heads: list[np.ndarray]
    labels: list[np.ndarray]
    probabilities: list[np.ndarray]


@torch.no_grad()
def parse(
    parser: Parser, examples: list[Example], vocabulary: Vocabulary, decoders: list[str], words_per_batch: int = 5000
) -> dict[str, Parsed]:
    """Each decoder's trees of each sentence, in the order of `examples`."""
    parser.eval()
    place = {id(example): i for i, example in enumerate(examples)}
    nothing: list[np.ndarray] = [np.empty(0)] * len(examples)
    parsed = {decoder: Parsed(list(nothing), list(nothing), list(nothing)) for decoder in decoders}
    for batch in batches_of(examples, vocabulary, words_per_batch):
        states = parser.encode(batch)
        edges = parser.edges(states)
        for decoder in decoders:
            heads, probabilities = decode(edges, batch.lengths, decoder)
            labels = parser.labels(states, heads).argmax(dim=-1)
            for i, example in enumerate(batch.examples):
                words, to = slice(1, len(example.words) + 1), place[id(example)]
                parsed[decoder].heads[to] = heads[i, words].numpy()
                parsed[decoder].labels[to] = labels[i, words].numpy()
                parsed[decoder].probabilities[to] = probabilities[i, words].numpy()
    return parsed


def measures(parsed: Parsed, examples: list[Example], vocabulary: Vocabulary) -> dict[str, float]:
    """Percentages: over all words (UAS, LAS, ECE) or all sentences (exact match of heads, malformed trees)."""
    gold_heads = [np.array(example.heads) for example in examples]
    gold_labels = [np.array(vocabulary.numbers("labels", example.labels)) for example in examples]
    right = [heads == gold for heads, gold in zip(parsed.heads, gold_heads, strict=True)]
    labelled = [r & (labels == gold) for r, labels, gold in zip(right, parsed.labels, gold_labels, strict=True)]
    malformed = [not spantree.is_tree([0, *heads.tolist()]) for heads in parsed.heads]
    return {
        "UAS": 100 * float(np.concatenate(right).mean()),
        "LAS": 100 * float(np.concatenate(labelled).mean()),
        "exact": 100 * float(np.mean([r.all() for r in right])),
        "malformed": 100 * float(np.mean(malformed)),
        "ECE": 100 * calibration_error(np.concatenate(parsed.probabilities), np.concatenate(right)),
    }


def calibration_error(probabilities: np.ndarray, right: np.ndarray, bins: int = 10) -> float:
    """Expected calibration error: mean distance of probability and share of right ones, over bins of equal width."""
    bin_of = np.minimum((probabilities * bins).astype(int), bins - 1)
    gaps = np.bincount(bin_of, weights=probabilities - right, minlength=bins)
    return float(np.abs(gaps).sum() / len(right))


def table(rows: dict[str, dict[str, float]]) -> str:
    """One line a decoder."""
    columns = next(iter(rows.values()))
    lines = [f"{'decoder':<14}" + "".join(f"{name:>11}" for name in columns)]
    lines += [f"{name:<14}" + "".join(f"{value:>11.2f}" for value in row.values()) for name, row in rows.items()]
    return "\n".join(lines)


def score_file(parser: Parser, examples: list[Example], vocabulary: Vocabulary) -> dict[str, np.ndarray]:
    """Arrays of a score file, as `python -m spantree.experiments` reads them: scores are log p(head | dependent)."""
    lengths = np.array([len(example.words) for example in examples], dtype=np.int32)
    offsets = np.concatenate([[0], np.cumsum((lengths.astype(np.int64) + 1) ** 2)])
    raw = np.empty(offsets[-1], dtype=np.float32)
    place = {id(example): i for i, example in enumerate(examples)}
    parser.eval()
    for batch in batches_of(examples, vocabulary, 5000):
        edges = _edges(parser, batch)
        for i, example in enumerate(batch.examples):
            to, nodes = place[id(example)], len(example.words) + 1
            raw[offsets[to] : offsets[to + 1]] = edges[i, :nodes, :nodes].numpy().ravel()
    scores = np.concatenate([_log_softmax(raw[a:b]) for a, b in pairwise(offsets.tolist())])
    return {
        "lengths": lengths,
        "offsets": offsets,
        "scores": scores,
        "raw_scores": raw,
        "heads": np.concatenate([np.array(example.heads, dtype=np.int32) for example in examples]),
        "head_offsets": np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]),
        "uniform": np.ones(len(examples), dtype=bool),
    }


@torch.no_grad()
def _edges(parser: Parser, batch: Batch) -> Tensor:
    return parser.edges(parser.encode(batch))


def _log_softmax(raw: np.ndarray) -> np.ndarray:
    nodes = round(len(raw) ** 0.5)
    scores = torch.from_numpy(raw.reshape(nodes, nodes)).masked_fill(torch.eye(nodes, dtype=torch.bool), -torch.inf)
    scores = scores.double().log_softmax(dim=0).float()
    scores[:, 0] = -torch.inf
    return scores.numpy().ravel()
