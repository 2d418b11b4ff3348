"""The table of docs/confidence.md: a temperature fitted on every other sentence of a treebank, measured on the rest."""

from __future__ import annotations

import spantree
from spantree.experiments.score_files import read_folder
from trained_scores import DEFAULT_FOLDER


def main() -> None:
    print("| treebank | words right | temperature | words: error before, after | sentences: error before, after |")
    print("|---|---|---|---|---|")
    for treebank in read_folder(DEFAULT_FOLDER):
        scores, gold = treebank.scores, treebank.gold
        fitted = spantree.fit_temperature(scores[::2], gold[::2])
        before, after = (
            spantree.calibration(scores[1::2], gold[1::2], temperature=temperature) for temperature in (1.0, fitted)
        )
        words, sentences = (
            f"{getattr(before, kind).error:.3f}, {getattr(after, kind).error:.3f}" for kind in ("words", "sentences")
        )
        print(f"| {treebank.name} | {before.words.accuracy:.0%} | {fitted:.2f} | {words} | {sentences} |")


if __name__ == "__main__":
    main()
