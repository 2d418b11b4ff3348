"""What share of a training step the loss takes: python examples/parser/share.py TRAIN.conllu.gz

Times whole steps, and the loss alone (forward and backward, from edge scores to their gradient) on the same batches,
one after the other. All of the loss is counted as spantree's, also what PyTorch does around it.
"""

from __future__ import annotations

import argparse
import time
from itertools import islice

import train
from data import Batch, collate, cut, read
from losses import LOSSES

import torch


def main() -> None:
    say = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    say.add_argument("train")
    say.add_argument("--steps", type=int, default=40)
    chosen = say.parse_args()
    for loss in LOSSES:
        run = train.Run(train.options([chosen.train, "--loss", loss, "--output", "nowhere"]), read(chosen.train))
        torch.set_num_threads(1)
        cuts = cut(run.examples, run.chosen.batch, torch.Generator().manual_seed(0))
        whole = alone = 0.0
        for number, examples in enumerate(islice(cuts, chosen.steps + 1)):
            batch = collate(examples, run.vocabulary)
            times = time_step(run, batch), time_loss(run, batch)
            if number > 0:  # the first one is slower: memory is new
                whole, alone = whole + times[0], alone + times[1]
        print(f"{loss:<16} {100 * alone / whole:5.1f} % of {1000 * whole / chosen.steps:.0f} ms")


def time_step(run: train.Run, batch: Batch) -> float:
    start = time.perf_counter()
    run.learn(batch, 1.0)
    return time.perf_counter() - start


def time_loss(run: train.Run, batch: Batch) -> float:
    with torch.no_grad():
        states = run.parser.encode(batch)
        edges, labels = run.parser.edges(states).requires_grad_(), run.parser.labels(states, batch.heads)
    start = time.perf_counter()
    LOSSES[run.chosen.loss](edges, labels, batch).backward()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
