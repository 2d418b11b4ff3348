"""`spantree annotate` and `spantree sample`: from scores to trees."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from .. import InfeasibleError, Trees
from .._annotations import Annotations, Options, distribution
from .._annotations import annotate as annotate_all
from ..files import BadFileError, NoMiscError, ScoreBatch, ScoreFile, Tree, conllu_of, open_scores
from ..files.output import standard_output
from ._common import (
    Failures,
    Layout,
    LayoutOption,
    OnError,
    OnErrorOption,
    OptionError,
    Output,
    ProjectiveOption,
    ResumeOption,
    Root,
    RootOption,
    ScoresArgument,
    TemperatureOption,
    ThreadsOption,
    TreesOption,
    Work,
    finite,
    one_line_errors,
    options_of,
    paired,
    progress,
    use_threads,
)
from .shards import Shards, plan


@one_line_errors
def annotate(
    scores: ScoresArgument,
    trees: TreesOption = None,
    output: Output = "-",
    confidence: Annotated[
        bool, typer.Option("--confidence", help="Add probabilities (MISC: HeadProb, HeadMargin).")
    ] = False,
    k: Annotated[int, typer.Option("-k", "--k", help="The k best trees (.parquet and .jsonl).")] = 1,
    mbr: Annotated[
        bool, typer.Option("--mbr", help="The tree with the highest expected number of right heads.")
    ] = False,
    root: RootOption = Root.single,
    projective: ProjectiveOption = False,
    temperature: TemperatureOption = 1.0,
    layout: LayoutOption = Layout.head_dep,
    on_error: OnErrorOption = OnError.stop,
    resume: ResumeOption = False,
    threads: ThreadsOption = 0,
    ray: Annotated[str | None, typer.Option(help="On a Ray cluster: its address, or local.")] = None,
) -> None:
    """Best trees, into CoNLL-U, Parquet or JSON lines.

    A CoNLL-U file given by --trees is patched: HEAD, DEPREL (if the scores have labels) and with --confidence the MISC
    keys HeadProb and HeadMargin (log-odds against all other heads, in nats) change, no other byte does. An
    output that is a folder (out/) keeps its shards.

    \b
    Example:
      spantree annotate scores.npz --trees treebank.conllu -o out.conllu --confidence
    """
    use_threads(threads)
    suffix = _suffix(output, trees)
    if suffix == ".conllu" and trees is None:
        raise OptionError("CoNLL-U needs words: give the sentences with --trees, or write .parquet or .jsonl")
    if suffix == ".conllu" and k > 1:
        raise OptionError("k best trees go to .parquet or .jsonl, not into CoNLL-U")
    with open_scores(scores) as file, progress(file.sentences, "annotate") as advance:
        options = options_of(
            file,
            root=root.value,
            projective=projective,
            layout=layout.value,
            temperature=temperature,
            mbr=mbr,
            confidence=confidence,
            k=k,
        )
        failures = Failures(on_error, file.name)
        settings = {"options": repr(options), "scores": _stamp(scores), "trees": _stamp(trees), "suffix": suffix}

        def render(work: Work, found: Annotations) -> Any:
            failures.look_at(work.batch, found)
            try:
                part = rendered(work, found, file, suffix)
                return part if suffix == ".parquet" else [part]
            except NoMiscError as error:
                raise OptionError(f"{error}; leave out --confidence, or write .parquet or .jsonl") from error

        with Shards(output, suffix, resume, settings) if output != "-" else nullcontext() as shards:
            if ray is not None and shards is not None and trees is None and file.ends is not None:
                end = _shards_on_ray(ray, scores, list(file.ends()), shards, options, failures, advance)
            else:
                with closing(_annotated(_left(file, trees, shards, advance), options, ray)) as found:
                    end = _write(((end, work, render(work, about)) for end, work, about in found), shards)
            if shards is not None:
                if end == 0 and suffix == ".parquet":  # without a sentence, its columns still
                    shards.add(0, render(Work(ScoreBatch(0, [])), annotate_all([], options)))
                shards.finish(end)
    if failures.count:
        raise typer.Exit(1)


Left = Iterator[tuple[int, Work]]
"""Batches that are still to be done, each with the number of sentences up to its end."""


def _left(file: ScoreFile, trees: str | None, shards: Shards | None, advance: Callable[[int], None]) -> Left:
    """The batches that are in no finished shard."""
    done = 0 if shards is None else shards.done
    end = 0
    for work in paired(file, trees):
        end += len(work.batch.scores)
        advance(len(work.batch.scores))
        if end > done or work.is_rest:
            yield end, work


def _annotated(left: Left, options: Options, ray: str | None) -> Generator[tuple[int, Work, Annotations]]:
    if ray is not None:
        from .on_ray import annotated  # here, because its tasks render as this module does

        yield from annotated(ray, left, options)
        return
    for end, work in left:
        yield end, work, annotate_all(work.batch.scores, options)


def _write(parts: Iterator[tuple[int, Work, Any]], shards: Shards | None) -> int:
    """Writes what is said about each batch, pieces of text or a record batch; returns the number of sentences."""
    end = 0 if shards is None else shards.done
    for end, work, part in parts:
        if shards is None:
            with standard_output() as out:
                out.writelines(part)
        elif not work.is_rest:
            shards.add(end, part)
        elif shards.suffix == ".conllu":  # a shard of its own, of patched files only
            shards.flush(end)
            shards.add(end, part)
    return end


def _shards_on_ray(
    address: str,
    scores: str,
    ends: list[int],
    shards: Shards,
    options: Options,
    failures: Failures,
    advance: Callable[[int], None],
) -> int:
    """Annotates the shards of a file whose batches have these ends; returns the number of sentences."""
    from .on_ray import ShardTask, run_tasks

    every = plan(ends)
    todo = [shard for shard in every if not shards.has(*shard)]
    advance(sum(end - start for start, end in every) - sum(end - start for start, end in todo))
    task = ShardTask(str(Path(scores).resolve()), str(shards.folder.resolve()), shards.suffix, options)
    for row in run_tasks(address, todo, task) if todo else ():
        if row["problem"]:
            raise BadFileError(row["problem"])
        for sentence, reason in zip(row["sentences"], row["reasons"], strict=True):
            failures.add(int(sentence), str(reason))
        advance(int(row["end"]) - int(row["start"]))
    return every[-1][1] if every else 0


def _suffix(output: str, trees: str | None) -> str:
    if output == "-":
        return ".conllu" if trees is not None else ".jsonl"
    if output.endswith("/") or Path(output).is_dir():
        return ".conllu" if trees is not None else ".parquet"
    suffix = Path(output).suffix
    if suffix not in (".conllu", ".parquet", ".jsonl"):
        raise OptionError(f"{output}: the output must end in .conllu, .parquet or .jsonl, or be a folder")
    return suffix


def _stamp(path: str | None) -> list[Any] | None:
    """A file's name, size and time: whether it is still the same when a run is taken up again."""
    if path is None or path == "-":
        return None
    status = Path(path).stat()
    return [path, status.st_size, status.st_mtime_ns]


def rendered(work: Work, found: Annotations, file: ScoreFile, suffix: str) -> Any:
    """What is written about some sentences: bytes or a record batch. CoNLL-U is as it was where there is no tree, other
    formats leave such sentences out."""
    if suffix == ".conllu":
        return _conllu(work, found, file.label_names)
    if suffix == ".jsonl":
        return b"".join(_json_lines(work, found, file.label_names))
    import pyarrow as pa

    from ..arrow import table_of

    ids = work.batch.ids or [_id(work, i) for i in range(len(found.words))]
    with_words = work.pieces or work.sentences
    words = [[] if one is None else one.words for one in work.sentences] if with_words else None
    table = table_of(found, ids, words=words, names=file.label_names)
    if not found.errors:
        return table
    return table.filter(pa.array([i not in found.errors for i in range(len(found.words))]))


def _id(work: Work, i: int) -> str:
    """What the file calls a sentence; else its number, from 1."""
    sentence = work.sentences[i] if work.sentences else None
    known = work.batch.ids[i] if work.batch.ids is not None else None if sentence is None else sentence.id
    return known if known is not None else str(work.batch.first + i + 1)


def _conllu(work: Work, found: Annotations, names: list[str] | None) -> bytes:
    out = []
    with_words = iter(np.flatnonzero(found.words).tolist())
    heads, labels = found.rows(found.heads), found.rows(found.labels)
    misc = _misc(found)
    for piece in work.pieces:
        i = next(with_words) if len(piece) else None
        if i is None or i in found.errors:
            out.append(piece.raw)
        else:
            out.append(piece.patched(heads[i], named(labels[i], names), misc[i]))
    return b"".join(out)


def named(labels: Any, names: list[str] | None) -> list[str] | None:
    """Labels (n+1,) by their names, without ROOT's."""
    return None if labels is None or names is None else [names[label] for label in labels[1:]]


def _misc(found: Annotations) -> list[dict[str, list[str]] | None]:
    """The MISC keys of each sentence."""
    if found.head_probs is None or found.log_odds is None:
        return [None] * len(found.words)
    probs = [f"{p:.4f}" for p in found.head_probs.tolist()]
    margins = [f"{odds:.2f}" for odds in found.log_odds.tolist()]
    ends = np.cumsum(found.words + 1).tolist()
    words = [slice(end - n, end) for end, n in zip(ends, found.words.tolist(), strict=True)]
    return [{"HeadProb": probs[here], "HeadMargin": margins[here]} for here in words]


def _json_lines(work: Work, found: Annotations, names: list[str] | None) -> list[bytes]:
    columns = (found.heads, found.labels, found.head_probs, found.log_odds)
    best_heads = found.rows(None if found.best is None else found.best.heads)
    best_labels = found.rows(None if found.best is None else found.best.labels)
    lines = []
    for i, (heads, labels, probs, log_odds) in enumerate(zip(*map(found.rows, columns), strict=True)):
        if i in found.errors:
            continue
        record: dict[str, Any] = {"id": _id(work, i)}
        if work.sentences:
            sentence = work.sentences[i]
            record["words"] = [] if sentence is None else sentence.words
        record["heads"] = heads[1:].tolist()
        if labels is not None:
            record["labels"] = named(labels, names)
        if found.log_prob is not None and found.entropy is not None:
            record |= {"head_prob": finite(probs[1:]), "log_odds": finite(log_odds[1:])}
            record |= {"log_prob": float(found.log_prob[i]), "entropy": float(found.entropy[i])}
        if found.best is not None:
            record["best"] = [
                {"heads": tree[1:].tolist(), "log_prob": p}
                | ({} if names is None else {"labels": named(best_labels[i][rank], names)})
                for rank, (tree, p) in enumerate(zip(best_heads[i], found.best.log_probs[:, i].tolist(), strict=True))
                if p > -np.inf
            ]
        lines.append(json.dumps(record, ensure_ascii=False, allow_nan=False).encode() + b"\n")
    return lines


@one_line_errors
def sample(
    scores: ScoresArgument,
    trees: TreesOption = None,
    output: Output = "-",
    k: Annotated[int, typer.Option("-k", "--k", help="Trees for each sentence.")] = 1,
    seed: Annotated[int, typer.Option(help="The same seed gives the same trees.")] = 0,
    distinct: Annotated[bool, typer.Option("--distinct", help="No tree twice for a sentence.")] = False,
    root: RootOption = Root.single,
    projective: ProjectiveOption = False,
    temperature: TemperatureOption = 1.0,
    layout: LayoutOption = Layout.head_dep,
    on_error: OnErrorOption = OnError.stop,
    resume: ResumeOption = False,
    threads: ThreadsOption = 0,
) -> None:
    """Random trees, drawn exactly from the distribution.

    JSON lines, or CoNLL-U with --trees and an output ending in .conllu.

    A line of JSON is a sentence: {"id": "1", "samples": [{"heads": [2, 0]}, ...]}, with their log_prob if --distinct.

    \b
    Example:
      spantree sample scores.npz -k 10 --seed 1 -o samples.jsonl
    """
    use_threads(threads)
    conllu = output.endswith(".conllu")
    if conllu and trees is None:
        raise OptionError("CoNLL-U needs words: give the sentences with --trees")
    if not (conllu or output == "-" or output.endswith((".jsonl", "/")) or Path(output).is_dir()):
        raise OptionError(f"{output}: the output must end in .jsonl or .conllu, or be a folder")
    if k < 1:
        raise OptionError(f"-k must be at least 1, not {k}")
    if seed < 0:
        raise OptionError(f"--seed must not be negative: {seed}")
    with open_scores(scores) as file, progress(file.sentences, "sample") as advance:
        options = options_of(file, root=root.value, projective=projective, layout=layout.value, temperature=temperature)
        failures = Failures(on_error, file.name)
        settings = {"options": repr((options, k, seed, distinct)), "scores": _stamp(scores), "trees": _stamp(trees)}

        def draw(work: Work) -> Iterator[bytes]:
            return _samples(work, file, conllu, options, k, seed, distinct, failures)

        suffix = ".conllu" if conllu else ".jsonl"
        with Shards(output, suffix, resume, settings) if output != "-" else nullcontext() as shards:
            left = _left(file, trees, shards, advance)
            end = _write(((end, work, draw(work)) for end, work in left), shards)
            if shards is not None:
                shards.finish(end)
    if failures.count:
        raise typer.Exit(1)


_AT_ONCE = 4096
"""Trees that are drawn before they are written: enough that set-up costs nothing beside them."""


def _samples(
    work: Work, file: ScoreFile, conllu: bool, options: Options, k: int, seed: int, distinct: bool, failures: Failures
) -> Iterator[bytes]:
    """What is written about each sentence, tree by tree. The sentence's number is part of its seed: shards know of no
    others."""
    for i, matrix in enumerate(work.batch.scores):
        number = work.batch.first + i
        sentence = work.sentences[i] if work.sentences else None
        try:
            drawn = _drawn(matrix, options, k, distinct, (seed, number))
            first = list(itertools.islice(drawn, 1))
        except (InfeasibleError, ValueError) as error:
            failures.add(number + 1, str(error))
            continue
        trees = itertools.chain(first, drawn)
        name = _id(work, i)
        if not conllu:
            yield from _sample_line(name, sentence.words if sentence else None, trees, file.label_names)
        elif sentence is not None:
            for j, (heads, labels, _) in enumerate(trees, start=1):
                yield conllu_of(Tree(sentence.words, heads, named(labels, file.label_names), f"{name}-{j}"))


Draw = tuple[Any, Any, float | None]
"""Heads, labels if there are any, and the log-probability of trees of which none comes twice."""


def _drawn(matrix: Any, options: Options, k: int, distinct: bool, seed: tuple[int, int]) -> Iterator[Draw]:
    """All of a sentence's trees, of which few are in memory. (Those that must not come twice, the core remembers.)"""
    dist = distribution(matrix, options)
    if distinct:
        for tree in itertools.islice(dist.iter_without_replacement(rng=np.random.default_rng(seed)), k):
            yield tree.heads, tree.labels, float(tree.scores)
        return
    for first in range(0, k, _AT_ONCE):
        trees = dist.sample(min(_AT_ONCE, k - first), rng=np.random.default_rng(seed), first_tree=first)
        heads, labels = (trees.heads, trees.labels) if isinstance(trees, Trees) else (trees, [None] * len(trees))
        yield from zip(heads, labels, itertools.repeat(None))


def _sample_line(name: str, words: list[str] | None, trees: Iterator[Draw], names: list[str] | None) -> Iterator[bytes]:
    """A line of JSON, in pieces."""
    record: dict[str, Any] = {"id": name} | ({} if words is None else {"words": words})
    yield json.dumps(record, ensure_ascii=False)[:-1].encode() + b', "samples": ['
    for i, (heads, labels, p) in enumerate(trees):
        tree = (
            {"heads": heads[1:].tolist()}
            | ({} if labels is None else {"labels": named(labels, names)})
            | ({} if p is None else {"log_prob": finite([p])[0]})
        )
        yield b", " * (i > 0) + json.dumps(tree, ensure_ascii=False).encode()
    yield b"]}\n"
