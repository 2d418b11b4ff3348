"""What the commands share: options, one line for what goes wrong, progress, scores side by side with trees."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
import typer

from .. import set_threads
from .._annotations import NO_LAYOUT, Annotations, Options
from .._annotations import annotate as annotate_all
from .._flat import sizes_of
from ..files import BadFileError, ScoreBatch, ScoreFile, Sentence, sentences_of

_Command = TypeVar("_Command", bound=Callable[..., Any])


class Root(str, Enum):
    single = "single"
    multi = "multi"


class Layout(str, Enum):
    head_dep = "head_dep"
    dep_head = "dep_head"


class OnError(str, Enum):
    stop = "stop"
    skip = "skip"


ScoresArgument = Annotated[
    str, typer.Argument(help="Scores: .npz, .npy, .safetensors, .parquet, .arrow; - is a stream.")
]
TreesOption = Annotated[
    str | None, typer.Option("--trees", help="The same sentences in CoNLL-U (.gz too); - is stdin.")
]


def _not_empty(name: str) -> str:
    """As it is where a shell's variable was not set."""
    if not name:
        raise typer.BadParameter("the name is empty")
    return name


Output = Annotated[
    str,
    typer.Option(
        "--output", "-o", callback=_not_empty, help="Where to write; - is stdout. The ending says the format."
    ),
]
RootOption = Annotated[Root, typer.Option(help="One edge from ROOT, or any number.")]
ProjectiveOption = Annotated[bool, typer.Option("--projective", help="Only trees without crossing arcs.")]
LayoutOption = Annotated[Layout, typer.Option(help="[head, dep], or transposed as biaffine parsers have it.")]
TemperatureOption = Annotated[float, typer.Option(help="Divide the scores by it.")]
ThreadsOption = Annotated[
    int, typer.Option("-j", "--threads", min=0, help="Threads; 0 is all cores. The output is the same.")
]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Go on where an earlier run stopped.")]
OnErrorOption = Annotated[OnError, typer.Option(help="At a sentence without an answer: stop, or skip and list it.")]


def one_line_errors(command: _Command) -> _Command:
    """What is wrong with the files or options goes to stderr in one line, with exit code 2."""

    @functools.wraps(command)
    def guarded(*arguments: Any, **options: Any) -> Any:
        try:
            return command(*arguments, **options)
        except BrokenPipeError:  # the reader, such as `head`, has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except (BadFileError, OptionError) as error:
            problem = str(error)
        except OSError as error:
            problem = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        except ModuleNotFoundError as error:
            extra = "ray" if (error.name or "").split(".")[0] == "ray" else "cli"
            problem = f"needs the package {error.name}: pip install 'spantree[{extra}]'"
        except KeyboardInterrupt:
            complain("interrupted")
            raise typer.Exit(130) from None
        complain(problem)
        raise typer.Exit(2)

    return guarded  # type: ignore[return-value]


class OptionError(Exception):
    """Options that do not go together."""


def complain(problem: str) -> None:
    print(f"spantree: {' '.join(problem.split())}", file=sys.stderr)


def options_of(scores: ScoreFile, **given: Any) -> Options:
    """The options of a command for a file whose scores have labels or not."""
    if scores.candidates and given.get("layout", "head_dep") != "head_dep":
        raise OptionError(NO_LAYOUT)
    try:
        return Options(labelled=scores.label_names is not None, **given)
    except ValueError as error:
        raise OptionError(str(error)) from error


def check_conllu(output: str) -> None:
    """The name of a file must not promise another format than CoNLL-U."""
    if output != "-" and Path(output).suffix not in (".conllu", ".conll", ".txt"):
        raise OptionError(f"{output}: what is written is CoNLL-U, so the name must end in .conllu")


def use_threads(threads: int) -> None:
    if threads > 0:
        set_threads(threads)


@contextmanager
def progress(total: int | None, what: str) -> Iterator[Callable[[int], None]]:
    """A bar with sentences per second and time left, on a terminal; nothing anywhere else."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    speed = TextColumn("{task.fields[speed]:,.0f} sentences/s")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), speed, TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total, speed=0.0)

        def advance(count: int) -> None:
            bar.advance(task, count)
            bar.update(task, speed=bar.tasks[0].speed or 0.0)

        yield advance


@dataclass(slots=True)
class Work:
    """Some sentences: their scores, and the pieces of CoNLL-U they stand in."""

    batch: ScoreBatch
    pieces: list[Sentence] = field(default_factory=list)
    """Those without words in between are only carried along."""
    sentences: list[Sentence | None] = field(default_factory=list)
    """One for each matrix of scores, if there are any; None where it has no words."""

    @property
    def is_rest(self) -> bool:
        """Whether these are only comments behind the last sentence."""
        return self.batch.first < 0


def paired(scores: ScoreFile, trees: str | None) -> Iterator[Work]:
    """Batches of scores with their sentences.

    Raises
    ------
    BadFileError
        The files do not hold the same number of sentences, or a sentence not the same number of words.
    """
    if trees is None:
        yield from (Work(batch) for batch in scores.batches)
        return
    pieces = iter(sentences_of(trees))
    for batch in scores.batches:
        work = Work(batch)
        for i, nodes in enumerate(sizes_of(batch.scores)):
            where = f"sentence {batch.first + i + 1}"
            if nodes == 1:  # no words: CoNLL-U has no such sentence
                work.sentences.append(None)
                continue
            piece = next(pieces, None)
            while piece is not None and len(piece) == 0:
                work.pieces.append(piece)
                piece = next(pieces, None)
            if piece is None:
                raise BadFileError(trees, where, f"is missing: {scores.name} has more sentences")
            work.pieces.append(piece)
            work.sentences.append(piece)
            if len(piece) != nodes - 1 and not (scores.padded and len(piece) < nodes):
                what = f"{len(piece)} words, but {scores.name} has scores for {nodes - 1}"
                raise BadFileError(trees, f"line {piece.first_line}", where, what)
        if scores.padded:
            pairs = zip(batch.scores, work.sentences, strict=True)
            batch.scores = [matrix if one is None else matrix[: len(one) + 1, : len(one) + 1] for matrix, one in pairs]
        yield work
    rest = list(pieces)
    if any(len(piece) for piece in rest):
        raise BadFileError(scores.name, f"has fewer sentences than {trees}")
    if rest:
        yield Work(ScoreBatch(-1, []), rest)


class Failures:
    """Sentences without an answer: the first one ends it all, or they are listed."""

    def __init__(self, on_error: OnError, name: str) -> None:
        self._skip, self._name = on_error is OnError.skip, name
        self.count = 0

    def add(self, sentence: int, reason: str) -> None:
        """`sentence` counts from 1."""
        error = BadFileError(self._name, f"sentence {sentence}", reason)
        if not self._skip:
            raise error
        self.count += 1
        complain(f"skipped: {error}")

    def annotate(self, batch: ScoreBatch, options: Options) -> Annotations:
        """Annotations of the sentences, after a look at what is wrong with some of them."""
        found = annotate_all(batch.scores, options)
        self.look_at(batch, found)
        return found

    def look_at(self, batch: ScoreBatch, found: Annotations) -> None:
        for i in sorted(found.errors):
            self.add(batch.first + i + 1, found.errors[i])


def finite(values: Any) -> list[float | None]:
    """Numbers for JSON, which has no infinity."""
    return [float(value) if np.isfinite(value) else None for value in values]
