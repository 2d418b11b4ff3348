"""Parses with a trained parser: python examples/parser/parse.py FOLDER INPUT --output PARSED.conllu

INPUT is CoNLL-U (plain or .gz; UPOS is used, HEAD and DEPREL are replaced) or, if it ends in .txt, one sentence a line
with words apart by spaces. The probability of each word's head goes to MISC. ``--measure`` compares with the heads of
INPUT; ``--scores`` writes a score file for `python -m spantree.experiments`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from data import Vocabulary, is_text, read
from evaluate import DECODERS, measures, parse, score_file, table
from model import Parser

import torch
from spantree.files import whole_file


def load(folder: str) -> tuple[Parser, Vocabulary]:
    try:
        saved = torch.load(f"{folder}/checkpoint.pt", weights_only=True)
    except OSError as error:
        raise SystemExit(f"{folder} has no parser that train.py wrote: {error}") from error
    vocabulary = Vocabulary(saved["vocabulary"])
    parser = Parser(vocabulary)
    parser.load_state_dict(saved["parser"])
    return parser, vocabulary


def main(arguments: list[str] | None = None) -> None:
    say = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    say.add_argument("parser", help="folder that train.py wrote")
    say.add_argument("input", help="CoNLL-U or text")
    say.add_argument("--output", help="CoNLL-U with the trees; - is standard output")
    say.add_argument("--decoder", choices=DECODERS, default="single-root")
    say.add_argument("--scores", help="score file to write (.npz)")
    say.add_argument("--measure", action="store_true", help="print measures of all decoders")
    chosen = say.parse_args(arguments)
    if not (chosen.output or chosen.scores or chosen.measure):
        say.error("nothing is asked for: say --output, --scores or --measure")
    if chosen.measure and is_text(chosen.input):
        say.error("--measure needs the heads of a treebank, and text has none")

    parser, vocabulary = load(chosen.parser)
    examples = read(chosen.input)
    if not examples:
        raise SystemExit(f"{chosen.input}: there are no sentences")
    decoders = DECODERS if chosen.measure else [chosen.decoder]
    parsed = parse(parser, examples, vocabulary, decoders)
    if chosen.measure:
        print(table({decoder: measures(parsed[decoder], examples, vocabulary) for decoder in decoders}))
    if chosen.output:
        trees = parsed[chosen.decoder]
        with whole_file(chosen.output) as file:
            for example, heads, labels, sure in zip(
                examples, trees.heads, trees.labels, trees.probabilities, strict=True
            ):
                names = [vocabulary.tables["labels"][label] for label in labels]
                misc = {"HeadProb": [f"{p:.3f}" for p in sure]}
                file.write(example.source.patched([0, *heads], names, misc))
    if chosen.scores:
        Path(chosen.scores).parent.mkdir(parents=True, exist_ok=True)
        with whole_file(chosen.scores) as file:
            np.savez(file, **score_file(parser, examples, vocabulary))


if __name__ == "__main__":
    main()
