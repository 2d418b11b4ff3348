"""`spantree validate`, `spantree repair`, `spantree complete`: trees that are none, or not all of one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

from .. import complete as complete_heads
from .. import decode, is_tree
from .._annotations import Options, distribution
from ..files import UNKNOWN, BadFileError, Sentence, open_scores, sentences_of, whole_file
from ..view.layout import printable
from ._common import (
    Failures,
    Layout,
    LayoutOption,
    OnError,
    OnErrorOption,
    Output,
    ProjectiveOption,
    Root,
    RootOption,
    ScoresArgument,
    TemperatureOption,
    check_conllu,
    one_line_errors,
    paired,
)

IntArray = npt.NDArray[np.int64]


def problems_of(sentence: Sentence, root: str = "single") -> Iterator[tuple[int, str]]:
    """What is wrong with a sentence's tree: a word, from 1, and a phrase."""
    heads = known_heads(sentence)
    n = len(sentence)
    for word, (head, text) in enumerate(zip(heads[1:].tolist(), sentence.head_fields, strict=True), start=1):
        if head == UNKNOWN:
            yield word, "HEAD is _" if text == "_" else f"HEAD is {text!r}, not a number from 0 to {n}"
        elif head == word:
            yield word, "is its own head"
    roots = np.flatnonzero(heads[1:] == 0) + 1
    if root == "single" and len(roots) > 1:
        yield int(roots[1]), f"is a second root, beside word {roots[0]}"
    if len(roots) == 0 and UNKNOWN not in heads:
        yield 1, "hangs on a word, as all others do: no HEAD is 0"
    yield from ((cycle[0], "is in a cycle: " + " <- ".join(map(str, [*cycle, cycle[0]]))) for cycle in _cycles(heads))
    for word, (head, label) in enumerate(zip(heads[1:].tolist(), sentence.labels, strict=True), start=1):
        bare = label.split(":")[0]
        if head == 0 and bare not in ("root", "_"):
            yield word, f"hangs on ROOT but DEPREL is {label!r}, not root"
        elif head > 0 and bare == "root":
            yield word, "DEPREL is root but it does not hang on ROOT"


def known_heads(sentence: Sentence) -> IntArray:
    """Heads (n+1,), UNKNOWN where HEAD is anything but a node."""
    n = len(sentence)
    texts = sentence.head_fields
    ok = [text.isascii() and text.isdigit() and len(text) < 10 and int(text) <= n for text in texts]
    return np.array([-1, *(int(text) if fine else UNKNOWN for text, fine in zip(texts, ok, strict=True))], np.int64)


def _cycles(heads: IntArray) -> list[list[int]]:
    """Cycles of two words or more, each from its lowest word."""
    seen = np.zeros(len(heads), np.int64)
    found = []
    for start in range(1, len(heads)):
        word = start
        while word > 0 and seen[word] == 0:
            seen[word] = start
            word = int(heads[word])
        if word > 0 and seen[word] == start:
            cycle = [word]
            while (following := int(heads[cycle[-1]])) != word:
                cycle.append(following)
            lowest = cycle.index(min(cycle))
            if len(cycle) > 1:
                found.append(cycle[lowest:] + cycle[:lowest])
    return found


@one_line_errors
def validate(
    file: Annotated[str, typer.Argument(help="CoNLL-U, .gz too; - is stdin.")],
    root: RootOption = Root.single,
) -> None:
    """What is wrong with the trees of a file, line by line.

    HEAD missing or out of range, cycles, several roots or none, and the label root exactly on the words that hang on
    ROOT. Exit code 1 if anything is wrong.

    \b
    Example:
      spantree validate treebank.conllu
    """
    wrong = total = 0
    for sentence in sentences_of(file):
        if not len(sentence):
            continue
        total += 1
        problems = list(problems_of(sentence, root.value))
        wrong += bool(problems)
        for word, what in problems:
            name = "" if sentence.id is None else f"{sentence.id}: "
            about = printable(f"{name}word {word} ({sentence.words[word - 1]}) {what}")
            print(f"{file}: line {sentence.line_of(word)}: {about}")
    print(f"{wrong} of {total} sentences have problems")
    if wrong:
        raise typer.Exit(1)


@one_line_errors
def repair(
    file: Annotated[str, typer.Argument(help="CoNLL-U, .gz too; - is stdin.")],
    scores: Annotated[str | None, typer.Option(help="Scores of the same sentences.")] = None,
    output: Output = "-",
    root: RootOption = Root.single,
    projective: ProjectiveOption = False,
    layout: LayoutOption = Layout.head_dep,
) -> None:
    """Makes trees of what is none, by as few changes as possible.

    New arcs are short.

    Sentences without problems stay as they are. With --scores: the best tree by those scores in place of a broken one.
    DEPREL becomes root on the word under ROOT, and dep on others that had it.

    \b
    Example:
      spantree repair broken.conllu -o mended.conllu
    """
    check_conllu(output)
    changed = 0
    with whole_file(output) as target:
        for sentence, matrix, names in _with_scores(file, scores):
            if not (len(sentence) and any(True for _ in problems_of(sentence, root.value))):
                target.write(sentence.raw)
                continue
            changed += 1
            heads, labels = known_heads(sentence), sentence.labels
            if not is_tree(heads, root=root.value):
                kind: Any = {"root": root.value, "projective": projective}
                try:
                    if matrix is None:
                        heads = decode(nearness(heads), **kind)
                    else:
                        options = Options(layout=layout.value, labelled=names is not None, **kind)
                        tree = distribution(matrix, options).argmax()
                        heads = tree if names is None else tree.heads
                        labels = labels if names is None else [names[label] for label in tree.labels[1:]]
                except ValueError as error:
                    raise BadFileError(scores or file, f"line {sentence.first_line}", str(error)) from error
            target.write(sentence.patched(heads, ruled_labels(heads, labels)))
    typer.echo(f"{changed} sentences repaired", err=True)


def nearness(heads: IntArray) -> npt.NDArray[np.float64]:
    """Scores under which the best tree keeps most of the heads and, among those trees, has the shortest new arcs.

    A kept head counts 1; a new one less than 1/n below 0, so that all new ones together count less than one kept.
    """
    nodes = len(heads)
    distance = np.abs(np.subtract.outer(np.arange(nodes), np.arange(nodes))).astype(np.float64)
    scores = -distance / (nodes * nodes)
    words = np.flatnonzero(heads >= 0)
    scores[heads[words], words] = 1.0
    return scores


def ruled_labels(heads: IntArray, labels: list[str]) -> list[str]:
    """Labels with ``root`` on the words under ROOT and nowhere else."""
    ruled = []
    for head, label in zip(heads[1:].tolist(), labels, strict=True):
        is_root = label.split(":")[0] == "root"
        ruled.append("root" if head == 0 and not is_root else "dep" if head != 0 and is_root else label)
    return ruled


def _with_scores(file: str, scores: str | None) -> Iterator[tuple[Sentence, Any, list[str] | None]]:
    """Pieces of a file with their matrices, None without scores or words, and the names of the labels, if any."""
    if scores is None:
        yield from ((piece, None, None) for piece in sentences_of(file))
        return
    with open_scores(scores) as opened:
        for work in paired(opened, file):
            matrices = iter([matrix for matrix in work.batch.scores if len(matrix) > 1])
            for piece in work.pieces:
                yield piece, next(matrices) if len(piece) else None, opened.label_names


@one_line_errors
def complete(
    file: Annotated[str, typer.Argument(help="CoNLL-U in which some HEADs are _.")],
    scores: ScoresArgument,
    output: Output = "-",
    root: RootOption = Root.single,
    projective: ProjectiveOption = False,
    temperature: TemperatureOption = 1.0,
    layout: LayoutOption = Layout.head_dep,
    on_error: OnErrorOption = OnError.stop,
) -> None:
    """Fills in HEAD where it is _; known heads stay.

    Found is the best tree among those that have the known heads.

    With labelled scores, DEPREL is filled in where it is _ too.

    \b
    Example:
      spantree complete partial.conllu scores.npz -o whole.conllu
    """
    check_conllu(output)
    options: Any = {"root": root.value, "projective": projective, "layout": layout.value, "temperature": temperature}
    with open_scores(scores) as opened, whole_file(output) as target:
        names = opened.label_names
        failures = Failures(on_error, file)
        for work in paired(opened, file):
            matrices = iter([(i, one) for i, one in enumerate(work.batch.scores) if len(one) > 1])
            for piece in work.pieces:
                i, matrix = next(matrices) if len(piece) else (0, np.zeros((1, 1)))
                heads = piece.heads()
                if UNKNOWN not in heads:
                    target.write(piece.raw)
                    continue
                labelled: Any = {} if names is None else {"labelled": True, "labels": known_labels(piece, names)}
                try:
                    tree, _ = complete_heads(matrix, heads, **labelled, **options)
                except ValueError as error:
                    failures.add(work.batch.first + i + 1, str(error))
                    target.write(piece.raw)
                    continue
                if names is None:
                    target.write(piece.patched(tree))
                    continue
                new = [names[label] for label in tree.labels[1:]]
                labels = [mine if old == "_" else old for mine, old in zip(new, piece.labels, strict=True)]
                target.write(piece.patched(tree.heads, labels))
    if failures.count:
        raise typer.Exit(1)


def known_labels(sentence: Sentence, names: list[str]) -> IntArray:
    """Labels (n+1,), UNKNOWN where DEPREL is _ or not among the names."""
    numbers = {name: number for number, name in enumerate(names)}
    return np.array([-1, *(numbers.get(label, UNKNOWN) for label in sentence.labels)], np.int64)
