"""Arc scores out of Stanza: parse, listen to what the parser computes, write a score file for ``spantree``.

python examples/scores_from_stanza.py sentences.txt scores.npz parsed.conllu     # a sentence a line, split at blanks
spantree view scores.npz parsed.conllu -o report.html
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np


def arc_scores(pipeline: Any, sentences: Iterable[list[str]]) -> tuple[list[np.ndarray], list[Any]]:
    """Scores ``[head, dep]`` of each sentence, and Stanza's own documents.

    The parser returns (loss, predictions); predictions[0] are log-probabilities ``[batch, dep, head]`` of
    the heads of each word. One sentence a call, because longer batches are sorted by length.
    """
    heard: list[Any] = []
    model = pipeline.processors["depparse"].trainer.model
    listener = model.register_forward_hook(lambda module, inputs, output: heard.append(output[1][0][0]))
    scores, documents = [], []
    for words in sentences:
        documents.append(pipeline([words]))
        scores.append(np.array(heard.pop()[: len(words) + 1, : len(words) + 1]).T)
    listener.remove()
    return scores, documents


def write(path: str, scores: list[np.ndarray]) -> None:
    """One matrix after the other: see ``docs/command_line.md``."""
    lengths = [len(one) - 1 for one in scores]
    np.savez_compressed(path, lengths=lengths, scores=np.concatenate([one.ravel() for one in scores]))


if __name__ == "__main__":
    import stanza

    nlp = stanza.Pipeline("en", processors="tokenize,pos,lemma,depparse", tokenize_pretokenized=True)
    with open(sys.argv[1], encoding="utf-8") as text:
        found, parsed = arc_scores(nlp, [line.split() for line in text if line.strip()])
    write(sys.argv[2], found)
    with open(sys.argv[3], "w", encoding="utf-8") as target:
        for document in parsed:
            print(f"{document:C}", end="\n\n", file=target)
