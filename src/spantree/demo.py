"""What `spantree demo` shows: the library at work on a few sentences."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from . import TreeDistribution
from ._names import node_name
from ._read import IntArray
from .samples import SampleSentence, load_samples
from .view import text_arcs


def demo() -> str:
    """The whole demonstration as text."""
    return "\n\n".join("\n".join(_show(sample)) for sample in load_samples())


def _show(sample: SampleSentence) -> Iterator[str]:
    dist = TreeDistribution(sample.scores, words=sample.words)
    best = dist.argmax()
    yield f'"{" ".join(sample.words)}"'
    yield ""
    yield text_arcs(sample.words, best)
    yield ""
    yield f"best tree, score {dist.max():.2f}; the five best:"
    trees = dist.topk(5)
    probabilities = np.exp(dist.log_prob(trees.heads))
    for rank, (heads, score, p) in enumerate(zip(trees.heads, trees.scores, probabilities, strict=True), start=1):
        yield f"  {rank}. {score:7.2f} {p:6.1%}  {_difference(sample.words, heads, best)}"
    yield f"In a sentence: {dist.explain()}."
    yield "Two trees drawn at random:"
    for heads in dist.sample(2, rng=0):
        yield f"  {_difference(sample.words, heads, best)}"
    yield _roots(sample)


def _difference(words: list[str], heads: IntArray, best: IntArray) -> str:
    """The edges in which a tree differs from the best one."""
    changed = np.flatnonzero(heads != best)
    if len(changed) == 0:
        return "the best tree"
    return ", ".join(f"{node_name(words, int(heads[dep]))} -> {node_name(words, int(dep))}" for dep in changed)


def _roots(sample: SampleSentence) -> str:
    several = TreeDistribution(sample.scores, root="multi").argmax()
    roots = [node_name(sample.words, int(dep)) for dep in np.flatnonzero(several == 0)]
    if len(roots) == 1:
        return f"With several roots allowed: still one, {roots[0]}."
    return f"With several roots allowed, {len(roots)} would have been taken: {', '.join(roots)}."
