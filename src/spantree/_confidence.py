"""How sure a distribution is of its best trees, word by word and sentence by sentence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from ._batch import Batch, rounded
from ._inference import in_layout, split_own_edges
from ._names import Words, node_name
from ._trees import Floats, Ints
from ._underflow import underflow_is_zero

if TYPE_CHECKING:
    import numpy.typing as npt

    from ._decoding import Decoded
    from ._inference import Solved
    from ._read import IntArray

    Flat = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Confidence(Generic[Ints, Floats]):
    """The best tree of each sentence, and how sure the distribution is of it; lists where the scores came as a list.

    Attributes
    ----------
    heads : int64 array (..., n+1)
        The best tree.
    labels : int64 array (..., n+1), or None
        Its labels, if the scores are labelled.
    head_probs : float array (..., n+1)
        Probability of each word's head, whatever the label; NaN at ROOT, in the padding and where there is no tree.
    label_probs : float array (..., n+1), or None
        Probability of each word's head and label together.
    runners_up : int64 array (..., n+1)
        The next likeliest head of each word; -1 where there is none.
    runner_up_probs : float array (..., n+1)
        Its probability.
    log_odds : float array (..., n+1)
        log of the head's probability over that of all other heads together; inf where there is no other.
    log_prob : float array (...)
        Log-probability of the best tree.
    margin : float array (...)
        How much higher its score is than that of the second best tree; inf if there is no other.
    entropy : float array (...)
        Of the distribution over trees, in nats.
    expected_attachment : float array (...)
        Expected share of words whose head is right: the mean of `head_probs`.
    """

    heads: Ints
    labels: Ints
    head_probs: Floats
    label_probs: Floats
    runners_up: Ints
    runner_up_probs: Floats
    log_odds: Floats
    log_prob: Floats
    margin: Floats
    entropy: Floats
    expected_attachment: Floats


@dataclass(slots=True)
class Facts:
    """The same, flat."""

    best: Decoded
    head_probs: Flat
    label_probs: Flat | None
    runners_up: IntArray
    runner_up_probs: Flat
    log_odds: Flat
    log_prob: Flat
    entropy: Flat
    expected_attachment: Flat


def facts(batch: Batch, solved: Solved, best: Decoded, log_prob: Flat) -> Facts:
    """Everything about the best trees, whose log-probabilities are known, but the margin, from one solve."""
    count = len(best.heads)
    head_probs, runner_up_probs, log_odds = np.full((3, count), np.nan)
    label_probs = None if best.labels is None else np.full(count, np.nan)
    runners_up = np.full(count, -1)
    expected = np.where(batch.lengths > 0, np.nan, 1.0)
    for which, nodes, marginals in _by_length(batch, solved.marginals()):
        there = best.heads[nodes] >= 0  # neither ROOT nor padding, and there is a tree
        own = np.where(there, best.heads[nodes], 0)[:, np.newaxis]
        if best.labels is not None:
            assert label_probs is not None
            of_labels = np.take_along_axis(marginals, own[..., np.newaxis], axis=1)[:, 0]
            of_label = np.take_along_axis(of_labels, np.where(there, best.labels[nodes], 0)[..., np.newaxis], axis=2)
            label_probs[nodes] = np.where(there, of_label[..., 0], np.nan)
            marginals = marginals.sum(axis=-1)
        chosen = np.take_along_axis(marginals, own, axis=1)[:, 0]
        others = np.array(marginals)
        np.put_along_axis(others, own, 0.0, axis=1)
        second = others.max(axis=1)
        head_probs[nodes] = np.where(there, chosen, np.nan)
        runner_up_probs[nodes] = np.where(there, second, np.nan)
        runners_up[nodes] = np.where(there & (second > 0.0), others.argmax(axis=1), -1)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_odds[nodes] = np.where(there, np.log(chosen) - np.log(others.sum(axis=1)), np.nan)
        trees = there.any(axis=1)
        expected[which[trees]] = np.where(there, chosen, 0.0).sum(axis=1)[trees] / batch.lengths[which[trees]]
    entropy, _ = solved.expectation(None, False)
    return Facts(best, head_probs, label_probs, runners_up, runner_up_probs, log_odds, log_prob, entropy, expected)


def _by_length(batch: Batch, edges: Flat) -> Iterator[tuple[IntArray, IntArray, Flat]]:
    """Sentences of the same length: which they are, their nodes (S, n+1) in flat arrays of nodes, and their numbers per
    edge, (S, head, dep(, label))."""
    sizes = np.array([len(array) for array in batch.arrays], np.int64)
    first_node = np.cumsum(sizes) - sizes
    pieces = split_own_edges(batch, edges)
    for words in np.unique(batch.lengths).tolist():
        which = np.flatnonzero(batch.lengths == words)
        shape = words + 1, words + 1, *in_layout(batch, batch.arrays[which[0]]).shape[2:]
        matrices = np.stack([pieces[i] for i in which]).reshape(len(which), *shape)
        yield which, first_node[which, np.newaxis] + np.arange(words + 1), in_layout(batch, matrices)


def in_form(batch: Batch, found: Facts, margin: Flat) -> Confidence[Any, Any]:
    def per_word(flat: Flat | None) -> Any:
        return None if flat is None else batch.nodes(rounded(flat, batch.dtype))

    best = found.best
    return Confidence(
        batch.nodes(best.heads),
        None if best.labels is None else batch.nodes(best.labels),
        per_word(found.head_probs),
        per_word(found.label_probs),
        batch.nodes(found.runners_up),
        per_word(found.runner_up_probs),
        per_word(found.log_odds),
        batch.scalars(found.log_prob),
        batch.scalars(margin),
        batch.scalars(found.entropy),
        batch.scalars(found.expected_attachment),
    )


@underflow_is_zero
def explanations(batch: Batch, found: Facts, words: Words | None) -> list[str]:
    """A sentence for each sentence: how likely its best tree is, and which word's head is least certain."""
    told, start = [], 0
    for i, array in enumerate(batch.arrays):
        n = int(batch.lengths[i])
        here = slice(start, start + 1 + n)
        names = None if words is None else words[i]
        told.append(_explanation(found, here, names, float(found.log_prob[i]), float(found.entropy[i])))
        start += len(array)
    return told


def _explanation(found: Facts, here: slice, words: tuple[str, ...] | None, log_prob: float, entropy: float) -> str:
    probabilities = found.head_probs[here][1:]
    if log_prob == -np.inf:
        return "there is no tree"
    if not len(probabilities):
        return "no words"
    dep = 1 + int(np.argmin(probabilities))
    summary = f"best tree {np.exp(log_prob):.0%}, entropy {entropy:.2f} nats"
    head, runner_up = int(found.best.heads[here][dep]), int(found.runners_up[here][dep])
    if runner_up < 0:
        return f"{summary}; every head is certain"
    first = f"{node_name(words, head)} {found.head_probs[here][dep]:.0%}"
    second = f"{node_name(words, runner_up)} {found.runner_up_probs[here][dep]:.0%}"
    return f"{summary}; least certain is the head of {node_name(words, dep)}: {first} or {second}"
