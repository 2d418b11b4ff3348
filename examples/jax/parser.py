"""A small graph-based parser in Equinox, trained with `spantree.jax.tree_crf_loss` in one compiled step.

    python examples/jax/parser.py treebank.conllu

Words become vectors, two convolutions see their neighbours, a biaffine layer scores every edge, the loss is minus the
log-probability of the treebank's trees. Prints the loss and the share of words with the right head as it learns.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import optax

import jax
import spantree.jax

TOY = Path(__file__).parents[1] / "parser" / "toy.conllu"


class Parser(eqx.Module):
    """Scores (n+1, n+1) of one sentence's edges from the numbers of its words, ROOT's first."""

    words: eqx.nn.Embedding
    neighbours: list[eqx.nn.Conv1d]
    as_head: eqx.nn.Linear
    as_dep: eqx.nn.Linear
    biaffine: jax.Array

    def __init__(self, vocabulary: int, size: int, key: jax.Array) -> None:
        keys = jax.random.split(key, 5)
        self.words = eqx.nn.Embedding(vocabulary, size, key=keys[0])
        self.neighbours = [eqx.nn.Conv1d(size, size, 3, padding=1, key=k) for k in keys[1:3]]
        self.as_head, self.as_dep = (eqx.nn.Linear(size, size, key=k) for k in keys[3:])
        self.biaffine = jnp.zeros((size, size + 1))

    def __call__(self, words: jax.Array) -> jax.Array:
        x = jax.vmap(self.words)(words).T
        for layer in self.neighbours:
            x = x + jax.nn.gelu(layer(x))
        heads, deps = (jax.vmap(layer)(x.T) for layer in (self.as_head, self.as_dep))
        deps = jnp.concatenate([deps, jnp.ones((len(deps), 1))], axis=1)
        return heads @ self.biaffine @ deps.T


def read(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Words, heads (sentences, n+1), lengths, and how many different words there are: 0 is ROOT and padding."""
    sentences: list[list[list[str]]] = []
    for block in path.read_text().strip().split("\n\n"):
        rows = [line.split("\t") for line in block.splitlines() if not line.startswith("#")]
        sentences.append([row for row in rows if row[0].isdecimal()])
    known: dict[str, int] = {}
    nodes = 1 + max(map(len, sentences))
    words, heads = np.zeros((2, len(sentences), nodes), np.int32)
    for i, sentence in enumerate(sentences):
        for j, row in enumerate(sentence, 1):
            words[i, j] = known.setdefault(row[1].lower(), len(known) + 1)
            heads[i, j] = int(row[6])
    return words, heads, np.array([len(s) for s in sentences], np.int32), len(known) + 1


def train(path: Path, steps: int = 60, size: int = 32) -> tuple[list[float], float]:
    """The losses, and the share of words that have the right head in the end."""
    words, heads, lengths, vocabulary = read(path)
    parser = Parser(vocabulary, size, jax.random.key(0))
    optimizer = optax.adam(1e-2)
    state: Any = optimizer.init(eqx.filter(parser, eqx.is_array))

    def loss(parser: Parser) -> jax.Array:
        return spantree.jax.tree_crf_loss(jax.vmap(parser)(words), heads, lengths=lengths)

    @eqx.filter_jit
    def step(parser: Parser, state: Any) -> tuple[Parser, Any, jax.Array]:
        value, gradient = eqx.filter_value_and_grad(loss)(parser)
        updates, state = optimizer.update(gradient, state)
        return eqx.apply_updates(parser, updates), state, value

    losses = []
    for _ in range(steps):
        parser, state, value = step(parser, state)
        losses.append(float(value))
    found = spantree.jax.TreeDistribution(jax.vmap(parser)(words), lengths=lengths).argmax()
    there = (np.arange(words.shape[1]) > 0) & (np.arange(words.shape[1]) <= lengths[:, None])
    return losses, float((np.asarray(found) == heads)[there].mean())


if __name__ == "__main__":
    losses, right = train(Path(sys.argv[1]) if len(sys.argv) > 1 else TOY)
    print(f"loss {losses[0]:.2f} -> {losses[-1]:.2f}, {right:.0%} of the words have the right head")
