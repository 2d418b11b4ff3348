"""`spantree view` and `spantree demo`: trees to look at."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from .._annotations import Annotations, Options, distribution, edge_marginals
from ..demo import demo as demonstration
from ..files import BadFileError, ScoreBatch, ScoreFile, Tree, holds_scores, open_scores, read_trees, whole_file
from ..view import displacy, dot, heat_map, text_arcs, text_rows, tikz, tree_svg
from ..view.layout import printable
from ..view.text import terminal_width
from ._common import (
    Failures,
    Layout,
    LayoutOption,
    OnError,
    OptionError,
    ProjectiveOption,
    Root,
    RootOption,
    TemperatureOption,
    one_line_errors,
    options_of,
    paired,
)
from .annotate import named

_LONG = 60  # words: beyond, a picture of arcs is wider than any screen


@one_line_errors
def view(
    file: Annotated[str, typer.Argument(help="Trees (.conllu, .jsonl, .parquet), or scores.")],
    trees: Annotated[
        str | None, typer.Argument(help="With scores: the same sentences in CoNLL-U, for their words.")
    ] = None,
    output: Annotated[
        str,
        typer.Option(
            "-o", "--output", help="report.html, or a picture: .svg, .dot, .tex, .json (displaCy); - is the terminal."
        ),
    ] = "-",
    sentence: Annotated[
        int | None, typer.Option(min=1, help="Which sentence, from 1. Without: the first (pictures), all (terminal).")
    ] = None,
    threshold: Annotated[float, typer.Option(min=0, max=1, help="Show other heads from this probability on.")] = 0.1,
    root: RootOption = Root.single,
    projective: ProjectiveOption = False,
    temperature: TemperatureOption = 1.0,
    layout: LayoutOption = Layout.head_dep,
) -> None:
    """Pictures: in the terminal, SVG, or a report in HTML.

    \b
    Example:
      spantree view scores.npz treebank.conllu -o report.html
    """
    if holds_scores(file):
        chosen = {"root": root.value, "projective": projective, "temperature": temperature, "layout": layout.value}
        _view_scores(file, trees, output, sentence, threshold, chosen)
        return
    for number, tree in enumerate(read_trees(file), start=1):
        if sentence in (None, number):
            _show(tree, None, None, output, threshold)
            if output != "-" or sentence == number:
                return
    if sentence is not None or output != "-":
        raise BadFileError(file, "has no such sentence")


def _view_scores(
    file: str, trees: str | None, output: str, sentence: int | None, threshold: float, chosen: dict[str, Any]
) -> None:
    with open_scores(file) as scores:
        options = options_of(scores, **chosen)
        if output.endswith((".html", ".htm")):
            _write_report(scores, trees, output, options)
            return
        failures = Failures(OnError.stop, file)
        number = 0
        for work in paired(scores, trees):
            for i, matrix in enumerate(work.batch.scores):
                number += 1
                if sentence not in (None, number):
                    continue
                found = failures.annotate(ScoreBatch(number - 1, [matrix]), options)
                known = work.sentences[i] if work.sentences else None
                words = [str(word) for word in range(1, len(matrix))] if known is None else known.words
                labels = named(found.labels, scores.label_names)
                dist = distribution(matrix, options)
                tree = Tree(words, found.heads, labels, None if known is None else known.id)
                _show(tree, found, edge_marginals(dist, options), output, threshold)
                if output != "-" or sentence == number:
                    return
    if sentence is not None or output != "-":
        raise BadFileError(file, "has no such sentence")


def _write_report(scores: ScoreFile, trees: str | None, output: str, options: Options) -> None:
    from ..view.report import ReportSentence, write_report

    def sentences() -> Iterator[ReportSentence]:
        failures = Failures(OnError.stop, scores.name)
        for work in paired(scores, trees):
            found = failures.annotate(work.batch, replace(options, confidence=False))
            labels = found.rows(found.labels)
            for i, matrix in enumerate(work.batch.scores):
                number = work.batch.first + i + 1
                known = work.sentences[i] if work.sentences else None
                gold = known.heads() if known is not None else None if work.batch.heads is None else work.batch.heads[i]
                yield ReportSentence(
                    (known.id if known is not None else None) or f"sentence {number}",
                    [str(word) for word in range(1, len(matrix))] if known is None else known.words,
                    _arc_scores(matrix, options),
                    named(labels[i], scores.label_names),
                    gold,
                    None if known is None else known.labels,
                )

    with whole_file(output) as target:
        title = Path(scores.name).name
        write_report(sentences(), target, title=title, root=options.root, projective=options.projective)


def _arc_scores(matrix: Any, options: Options) -> Any:
    """Scores ``[head, dep]`` at the chosen temperature, labels summed out."""
    scores = matrix if options.temperature == 1 else np.asarray(matrix, np.float64) / options.temperature
    if options.labelled:
        scores = np.logaddexp.reduce(np.asarray(scores, np.float64), axis=-1)
    return scores.T if options.layout == "dep_head" else scores


def _show(tree: Tree, found: Annotations | None, marginals: Any, output: str, threshold: float) -> None:
    """One tree, in the format that the output's ending says."""
    heads = np.where(tree.heads == np.arange(len(tree.heads)), -1, tree.heads)  # a word that is its own head has no arc
    parts = (tree.words, heads, tree.labels)
    if output == "-":
        if tree.id is not None:
            print(f"# {printable(tree.id)}")
        arcs = text_arcs(*parts)
        fits = max(map(terminal_width, arcs.split("\n"))) <= shutil.get_terminal_size().columns
        print(arcs if fits else text_rows(*parts, None if found is None else found.head_probs))
        print()
        return
    ending = Path(output).suffix
    if ending == ".svg":
        long = marginals is not None and len(tree.words) > _LONG
        picture = (
            heat_map(tree.words, marginals, heads, threshold=threshold)
            if long
            else tree_svg(*parts, marginals=marginals, threshold=threshold)
        )
    elif ending in (".dot", ".gv"):
        picture = dot(*parts)
    elif ending == ".tex":
        picture = tikz(*parts)
    elif ending == ".json":
        picture = json.dumps(displacy(*parts), ensure_ascii=False)
    else:
        report = "the report is made of scores; trees go to" if ending in (".html", ".htm") else "must end in .html,"
        raise OptionError(f"{output}: {report} .svg, .dot, .tex or .json")
    with whole_file(output) as target:
        target.write(picture.encode())


@one_line_errors
def demo() -> None:
    """The library at work on a few sentences.

    \b
    Example:
      spantree demo
    """
    print(demonstration(), flush=True)
