"""`spantree eval`, `spantree stats`, `spantree calibrate`: how good trees are, and how honest their probabilities."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

from .. import calibration, fit_temperature, is_projective, is_tree
from .._permutation import paired_permutation_test
from ..files import BadFileError, Sentence, holds_scores, open_scores, read_trees, sentences_of
from ._common import (
    Failures,
    Layout,
    LayoutOption,
    OnError,
    ProjectiveOption,
    Root,
    RootOption,
    ScoresArgument,
    ThreadsOption,
    TreesOption,
    one_line_errors,
    options_of,
    paired,
    use_threads,
)

CONTENT = frozenset(
    (
        *(
            "nsubj",
            "obj",
            "iobj",
            "csubj",
            "ccomp",
            "xcomp",
            "obl",
            "vocative",
            "expl",
            "dislocated",
            "advcl",
            "advmod",
        ),
        *("discourse", "nmod", "appos", "nummod", "acl", "amod", "conj", "fixed", "flat", "compound", "list"),
        *("parataxis", "orphan", "goeswith", "reparandum", "root", "dep"),
    )
)
"""The relations that CLAS counts, as in the CoNLL 2018 shared task."""

_BINS = 10


class Counts:
    """What a system got right, sentence by sentence."""

    def __init__(self) -> None:
        self.words = 0
        self.heads: list[int] = []
        self.labelled: list[int] = []
        self.content: list[int] = []
        self.content_gold = self.content_system = 0
        self.exact = self.root = self.malformed = 0
        self.bins = np.zeros((_BINS, 3))
        """Of words with a probability, by tenths of it: how many, the sum of it, how many are right."""

    def add(self, gold: Sentence, system: Sentence) -> None:
        right = gold.heads() == system.heads()
        heads = right[1:].tolist()
        bare_gold = [label.split(":")[0] for label in gold.labels]
        bare = [label.split(":")[0] for label in system.labels]
        labelled = [head and one == other for head, one, other in zip(heads, bare_gold, bare, strict=True)]
        self.words += len(gold)
        self.heads.append(sum(heads))
        self.labelled.append(sum(labelled))
        self.content.append(sum(ok for ok, label in zip(labelled, bare_gold, strict=True) if label in CONTENT))
        self.content_gold += sum(label in CONTENT for label in bare_gold)
        self.content_system += sum(label in CONTENT for label in bare)
        self.exact += all(heads)
        self.root += np.array_equal(gold.heads() == 0, system.heads() == 0)
        self.malformed += not is_tree(system.heads())
        for chance, ok in zip(system.misc("HeadProb"), heads, strict=True):
            if chance is not None:
                p = _probability(chance, system)
                self.bins[min(int(p * _BINS), _BINS - 1)] += 1, p, ok

    def figures(self) -> dict[str, float]:
        sentences = max(len(self.heads), 1)
        words = max(self.words, 1)
        return {
            "UAS": sum(self.heads) / words,
            "LAS": sum(self.labelled) / words,
            "CLAS": 2 * sum(self.content) / max(self.content_gold + self.content_system, 1),
            "exact match": self.exact / sentences,
            "root accuracy": self.root / sentences,
            "malformed": self.malformed / sentences,
        }


def _probability(text: str, sentence: Sentence) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise BadFileError(sentence.file, f"line {sentence.first_line}", f"HeadProb is {text!r}, not a probability")
    return value


@one_line_errors
def evaluate(
    gold: Annotated[str, typer.Argument(help="Gold trees: CoNLL-U, .gz too.")],
    system: Annotated[str, typer.Argument(help="A system's trees of the same words.")],
    other: Annotated[str | None, typer.Argument(help="Another system's, to compare with.")] = None,
) -> None:
    """UAS, LAS, CLAS and more, of one system or two.

    UAS, LAS and CLAS are those of the CoNLL 2018 shared task: all words, subtypes of labels ignored. Of two systems the
    p-value is that of the exact paired-permutation test (Zmigrod et al. 2022), sentence by sentence. Where MISC has
    HeadProb, calibration is shown too.

    \b
    Example:
      spantree eval gold.conllu system.conllu other.conllu
    """
    names = [system] if other is None else [system, other]
    counts = [Counts() for _ in names]
    for sentence, *answers in _side_by_side([gold, *names]):
        for count, answer in zip(counts, answers, strict=True):
            count.add(sentence, answer)
    print(f"{len(counts[0].heads)} sentences, {counts[0].words} words")
    figures = [count.figures() for count in counts]
    if other is not None:
        print(f"{'':<14}{'system':>9}{'other':>9}")
    for metric in figures[0]:
        print(f"{metric:<14}" + "".join(f"{100 * one[metric]:9.2f}" for one in figures) + " %")
    if other is not None:
        print("exact paired-permutation test (Zmigrod et al. 2022), two-sided:")
        for metric, per_sentence in (("UAS", "heads"), ("LAS", "labelled")):
            first, second = (np.array(getattr(count, per_sentence)) for count in counts)
            print(f"  {metric}: p = {paired_permutation_test(first - second):.4g}")
    for name, count in zip(names, counts, strict=True):
        if count.bins.any():
            print(f"calibration of HeadProb in {name}:")
            print("\n".join("  " + line for line in calibration_lines(count.bins)))


def calibration_lines(bins: npt.NDArray[np.float64]) -> list[str]:
    """A line for each tenth of probability, and the expected calibration error."""
    lines = []
    for i, (words, said, right) in enumerate(bins.tolist()):
        if words:
            span = f"{i / _BINS:.1f}-{(i + 1) / _BINS:.1f}"
            lines.append(f"{span}  said {said / words:.3f}  right {right / words:.3f}  words {words:.0f}")
    error = np.abs(bins[:, 1] - bins[:, 2]).sum() / bins[:, 0].sum()
    return [*lines, f"expected calibration error {error:.4f}"]


def _side_by_side(paths: list[str]) -> Iterator[list[Sentence]]:
    """The same sentence of each file."""
    files = [(piece for piece in sentences_of(path) if len(piece)) for path in paths]
    for number, row in enumerate(zip_longest(*files), start=1):
        for path, sentence in zip(paths, row, strict=True):
            if sentence is None:
                raise BadFileError(path, f"sentence {number}", "is missing: another file has more sentences")
            if len(sentence) != len(row[0]):
                what = f"{len(sentence)} words, but {len(row[0])} in {paths[0]}; files must have the same words"
                raise BadFileError(path, f"line {sentence.first_line}", f"sentence {number}", what)
            for word, (one, other) in enumerate(zip(sentence.words, row[0].words, strict=True), start=1):
                if one != other and "_" not in (one, other):
                    what = f"word {word} is {one!r}, but {other!r} in {paths[0]}"
                    raise BadFileError(path, f"line {sentence.line_of(word)}", f"sentence {number}", what)
        yield list(row)


@one_line_errors
def stats(
    file: Annotated[
        str,
        typer.Argument(help="Trees (.conllu, .jsonl, .parquet) or scores (.npz, .safetensors, .parquet, ...)."),
    ],
    root: RootOption = Root.single,
    projective: ProjectiveOption = False,
    layout: LayoutOption = Layout.head_dep,
) -> None:
    """Counts: sentences, words, crossing arcs, certainty.

    Of trees: how many are projective, or no trees at all. Of scores: how certain they are.

    \b
    Example:
      spantree stats treebank.conllu
    """
    if holds_scores(file):
        _score_stats(file, root, projective, layout)
    else:
        _tree_stats(file)


def _tree_stats(file: str) -> None:
    lengths, crossing, broken, several = _Lengths(), 0, 0, 0
    labels: set[str] = set()
    for tree in read_trees(file):
        lengths.add(len(tree.words))
        labels.update(tree.labels or ())
        valid = is_tree(tree.heads, root="multi")
        broken += not valid
        several += bool(valid and not is_tree(tree.heads))
        crossing += bool(valid and not is_projective(tree.heads))
    lengths.show()
    count = max(lengths.sentences, 1)
    print(f"non-projective    {crossing} ({crossing / count:.1%})")
    print(f"several roots     {several} ({several / count:.1%})")
    print(f"no tree           {broken} ({broken / count:.1%})")
    print(f"labels            {len(labels)}")


def _score_stats(file: str, root: Root, projective: bool, layout: Layout) -> None:
    lengths = _Lengths()
    entropy, several = 0.0, 0
    chances, unsure = 0.0, 0  # the sum of all best heads' probabilities, and how many are below a half
    failures = Failures(OnError.stop, file)
    with open_scores(file) as scores:
        options = options_of(scores, root=root.value, projective=projective, layout=layout.value)
        free = options_of(scores, root="multi", projective=projective, layout=layout.value, confidence=False)
        for batch in scores.batches:
            found, freely = (failures.annotate(batch, which) for which in (options, free))
            assert found.entropy is not None
            assert found.head_probs is not None
            for n in found.words.tolist():
                lengths.add(n)
            sentence = np.repeat(np.arange(len(found.words)), found.words + 1)
            several += int((np.bincount(sentence[freely.heads == 0]) > 1).sum())
            entropy += float(found.entropy.sum())
            of_words = found.head_probs[found.heads >= 0]
            chances += float(of_words.sum(dtype=np.float64))
            unsure += int((of_words < 0.5).sum())
    lengths.show()
    if scores.label_names is not None:
        print(f"labels            {len(scores.label_names)}")
    count, words = max(lengths.sentences, 1), max(lengths.words, 1)
    print(f"entropy           {entropy / count:.3f} nats a sentence, {entropy / words:.4f} a word")
    if lengths.words:
        print(f"P(best head)      {chances / words:.4f} on average, below 0.5 for {unsure / words:.1%} of the words")
    print(f"several roots     would be taken in {several} ({several / count:.1%}) if they were allowed")


class _Lengths:
    """Of sentences, as many as there are."""

    def __init__(self) -> None:
        self.sentences = self.words = self.longest = 0

    def add(self, words: int) -> None:
        self.sentences += 1
        self.words += words
        self.longest = max(self.longest, words)

    def show(self) -> None:
        print(f"sentences         {self.sentences}")
        mean = self.words / max(self.sentences, 1)
        print(f"words             {self.words} ({mean:.1f} a sentence, at most {self.longest})")


@one_line_errors
def calibrate(
    scores: ScoresArgument,
    trees: TreesOption = None,
    root: RootOption = Root.single,
    projective: ProjectiveOption = False,
    layout: LayoutOption = Layout.head_dep,
    threads: ThreadsOption = 0,
) -> None:
    """Fits a temperature to gold trees.

    It is the one under which they are likeliest; calibration is shown before and after.

    Gold heads come from the score file, or from --trees; gold labels from the score file. Scores are kept in memory.

    \b
    Example:
      spantree calibrate dev.npz --trees dev.conllu
    """
    use_threads(threads)
    matrices: list[Any] = []
    gold: list[Any] = []
    labels: list[Any] = []
    with open_scores(scores) as file:
        labelled = file.label_names is not None
        for work in paired(file, trees):
            heads = work.batch.heads if trees is None else [one and one.heads() for one in work.sentences]
            if heads is None or (labelled and work.batch.labels is None):
                what = "labels" if heads is not None else "heads: give them with --trees"
                raise BadFileError(scores, f"has no gold {what}")
            for i, matrix in enumerate(work.batch.scores):
                if heads[i] is not None and len(matrix) > 1:
                    matrices.append(matrix)
                    gold.append(heads[i])
                    labels += [] if work.batch.labels is None else [work.batch.labels[i]]
    options: Any = {"root": root.value, "projective": projective, "layout": layout.value, "labelled": labelled}
    options |= {"labels": labels} if labelled else {}
    try:
        temperature = fit_temperature(matrices, gold, **options)
    except ValueError as error:
        raise BadFileError(scores, str(error)) from error
    print(f"temperature {temperature:.4f}")
    for name, divisor in (("before", 1.0), (f"at temperature {temperature:.4f}", temperature)):
        found = calibration(matrices, gold, temperature=divisor, **options)
        print(f"{name}, by word:")
        print("\n".join("  " + line for line in str(found.words).splitlines()))
