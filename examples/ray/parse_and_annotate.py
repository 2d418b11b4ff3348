"""A parser and `spantree.arrow.Annotate` in one stream of Ray Data: sentences in, trees with confidence out.

    python examples/ray/parse_and_annotate.py sentences.jsonl trees/  # {"id": "s1", "words": ["She", "sleeps"]} a line

The model is an actor: it is loaded once and stays in memory (give it ``num_gpus=1``). Annotation is a plain function on
the processors that are left. Nothing is written in between: batches of scores go from one to the other.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pyarrow as pa

from spantree.arrow import Annotate


class Parser:
    """Replace `scores` by your model's: see ``examples/scores_from_stanza.py``."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def scores(self, words: list[str]) -> np.ndarray:
        """``[head, dep]``, (n+1, n+1)."""
        return self.rng.normal(size=(len(words) + 1,) * 2).astype(np.float32)

    def __call__(self, sentences: pa.Table) -> pa.Table:
        words = sentences.column("words").to_pylist()
        lengths = pa.array([len(one) for one in words], pa.int32())
        scores = pa.array([self.scores(one).ravel() for one in words], pa.list_(pa.float32()))
        return pa.table({"id": sentences.column("id"), "n": lengths, "scores": scores})


def annotated(sentences: Any, actors: int = 1) -> Any:
    """A data set of sentences to one of trees."""
    scored = sentences.map_batches(Parser, batch_format="pyarrow", concurrency=actors)
    return scored.map_batches(Annotate(confidence=True), batch_format="pyarrow")


if __name__ == "__main__":
    import ray

    annotated(ray.data.read_json(sys.argv[1], lines=True)).write_parquet(sys.argv[2])
