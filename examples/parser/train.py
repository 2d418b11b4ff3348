"""Trains a parser on a treebank: python examples/parser/train.py TRAIN.conllu.gz --test TEST.conllu.gz --output FOLDER

A run that was killed goes on from its last checkpoint when the same command is given again, and ends with the same
bits: the order of the batches follows from the seed and the epoch, what is dropped out from the seed and the step.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from data import Batch, Example, Vocabulary, collate, cut, read
from evaluate import DECODERS, measures, parse, table
from losses import LOSSES
from model import Parser
from tqdm import tqdm

import spantree
import torch
from spantree.files import whole_file

NO_MATTER = ("output", "every", "test")
"""What may change between a run and its resumption."""
STRIDE = 1_000_003
"""More steps than a run has: what is random is numbered by seed and step, and no two seeds share a number."""


def options(arguments: list[str] | None = None) -> argparse.Namespace:
    say = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    say.add_argument("train", help="CoNLL-U to train on, plain or .gz")
    say.add_argument("--output", type=Path, required=True, help="folder for checkpoint.pt and measures.json")
    say.add_argument("--test", help="CoNLL-U to measure on at the end")
    say.add_argument("--loss", choices=LOSSES, default="tree-crf")
    say.add_argument("--epochs", type=int, default=20)
    say.add_argument("--batch", type=int, default=400, help="most words in a batch, padding included")
    say.add_argument("--learning-rate", type=float, default=0.005, help="at its highest; it falls to 0 in a line")
    say.add_argument("--clip", type=float, default=5.0, help="longest gradient; longer ones are shortened to it")
    say.add_argument("--seed", type=int, default=0)
    say.add_argument("--every", type=int, default=200, help="steps between checkpoints")
    say.add_argument("--threads", type=int, default=1, help="two threads pay only on a machine that does nothing else")
    return say.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    chosen = options(arguments)
    torch.set_num_threads(chosen.threads)
    torch.manual_seed(chosen.seed)
    examples = [example for example in read(chosen.train) if spantree.is_tree([0, *example.heads])]
    run = Run(chosen, examples)
    run.resume()
    run.train()
    if chosen.test:
        test = read(chosen.test)
        parsed = parse(run.parser, test, run.vocabulary, DECODERS)
        rows = {decoder: measures(parsed[decoder], test, run.vocabulary) for decoder in DECODERS}
        print(table(rows))
        (chosen.output / "measures.json").write_text(json.dumps(rows, indent=1))


class Run:
    """A parser in training, and where it stands."""

    def __init__(self, chosen: argparse.Namespace, examples: list[Example]) -> None:
        if not examples:
            raise SystemExit(f"{chosen.train}: no sentence has a gold tree with one root")
        self.chosen, self.examples = chosen, examples
        self.vocabulary = Vocabulary.of(examples)
        self.parser = Parser(self.vocabulary)
        self.optimizer = torch.optim.Adam(self.parser.parameters(), lr=chosen.learning_rate, betas=(0.9, 0.9))
        self.step = 0
        self.checkpoint = chosen.output / "checkpoint.pt"
        self.identity = {name: str(value) for name, value in vars(chosen).items() if name not in NO_MATTER}

    def resume(self) -> None:
        self.chosen.output.mkdir(parents=True, exist_ok=True)
        if not self.checkpoint.exists():
            return
        saved = torch.load(self.checkpoint, weights_only=True)
        for name, value in self.identity.items():
            if (before := saved["identity"][name]) != value:
                what = f"was made with {name} = {before}, not {value}: choose another --output"
                raise SystemExit(f"{self.checkpoint} {what}")
        self.parser.load_state_dict(saved["parser"])
        self.optimizer.load_state_dict(saved["optimizer"])
        self.step = saved["step"]

    def save(self) -> None:
        with whole_file(self.checkpoint) as file:
            torch.save(
                {
                    "parser": self.parser.state_dict(),
                    "optimizer": self.optimizer.state_dict(),
                    "step": self.step,
                    "vocabulary": self.vocabulary.tables,
                    "identity": self.identity,
                },
                file,
            )

    def train(self) -> None:
        epochs = (cut(self.examples, self.chosen.batch, self._order(epoch)) for epoch in range(self.chosen.epochs))
        batches = [batch for epoch in epochs for batch in epoch]
        with tqdm(total=len(batches), initial=self.step, unit="step", mininterval=1) as bar:
            for batch in batches[self.step :]:
                value = self.learn(collate(batch, self.vocabulary), 1 - self.step / len(batches))
                bar.set_postfix(loss=f"{value:.3f}", refresh=False)
                bar.update()
                if self.step % self.chosen.every == 0 or self.step == len(batches):
                    self.save()

    def _order(self, epoch: int) -> torch.Generator:
        return torch.Generator().manual_seed(STRIDE * self.chosen.seed + epoch)

    def learn(self, batch: Batch, remaining: float) -> float:
        """One step; the learning rate is what remains of the run."""
        torch.manual_seed(STRIDE * self.chosen.seed + self.step)
        self.parser.train()
        states = self.parser.encode(batch)
        labels = self.parser.labels(states, batch.heads)
        loss = LOSSES[self.chosen.loss](self.parser.edges(states), labels, batch)
        loss.backward()
        length = torch.nn.utils.clip_grad_norm_(self.parser.parameters(), self.chosen.clip)
        if not (torch.isfinite(loss) and torch.isfinite(length)):
            raise SystemExit(f"step {self.step}: the loss is {loss.item()}, the length of its gradient {length.item()}")
        for group in self.optimizer.param_groups:
            group["lr"] = self.chosen.learning_rate * remaining
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.step += 1
        return loss.item()


if __name__ == "__main__":
    main()
