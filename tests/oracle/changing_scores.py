"""Scores that change after, or while, they are read: ``python -m oracle.changing_scores after|during|threads``.

In a process of its own, which a bad read may take with it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

import spantree
from oracle import quantities
from oracle.battery import Failure, _complaints, distribution
from oracle.forms import FORMS, Form
from oracle.quantities import Kind
from oracle.sentence import Sentence

KINDS = [Kind("single", False), Kind("multi", False), Kind("single", True), Kind("multi", True)]
REPLACEMENTS = [np.nan, np.inf, -np.inf, 1e308, -1e308, 0.0]
QUESTIONS = [
    question
    for group in quantities.GROUPS.values()
    for question in group
    if question.name != "condition on heads, complete"  # known heads may leave no tree
]


def some_sentences(labels: int, dtype: type) -> list[Sentence]:
    rng = np.random.default_rng(labels)
    sizes = (3, 4, 3) if labels else (4, 5, 3)
    shapes = [(size, size, labels) if labels else (size, size) for size in sizes]
    return [Sentence("ordinary", rng.normal(size=shape).astype(dtype)) for shape in shapes]


def spoil(scores: Any, value: float) -> None:
    for array in scores if isinstance(scores, list) else [scores]:
        array.flags.writeable = True
        with np.errstate(over="ignore"):
            array[...] = value


def after() -> list[str]:
    """A distribution is a snapshot: what becomes of the caller's array is never seen."""
    wrong = []
    for i, kind in enumerate(KINDS):
        for j, (labels, dtype) in enumerate([(0, np.float64), (0, np.float32), (2, np.float64)]):
            for form in [Form("one"), Form("padded"), Form("padded", "dep_head", "fortran"), Form("listed")]:
                for batch in form.batches(some_sentences(labels, dtype)):
                    scores = form.edges([sentence.scores for sentence in batch])
                    options = form.options(batch) | kind.options | {"labelled": bool(labels)}
                    dist = spantree.TreeDistribution(scores, **options)
                    spoil(scores, REPLACEMENTS[(i + j) % len(REPLACEMENTS)])
                    if "lengths" in options:
                        options["lengths"][...] = 1
                    for question in QUESTIONS:
                        for sentence, complaint in _complaints(question, dist, form, batch, kind):
                            wrong.append(str(Failure(question.name, kind, form, sentence, complaint)))
                    dist.sample(3, rng=0)
                    dist.sample_without_replacement(2, rng=0)
    return wrong


def during() -> list[str]:
    """Another thread writes over the scores while one-liners read them: any answer or ValueError, but an end to it."""
    rng = np.random.default_rng(0)
    one_liners: dict[str, Callable[..., Any]] = {
        "decode": spantree.decode,
        "marginals": spantree.marginals,
        "log_partition": spantree.log_partition,
        "topk": lambda scores, **o: spantree.topk(scores, 3, **o),
        "sample": lambda scores, **o: spantree.sample(scores, 2, rng=0, **o),
    }
    wrong = []
    for shape, labelled in [((7, 7), False), ((9, 12, 12), False), ((4, 6, 6, 3), True)]:
        scores = rng.normal(size=shape)
        values = [rng.normal(size=shape), *(np.full(shape, value) for value in REPLACEMENTS)]
        values.append(rng.choice([*REPLACEMENTS, 1.0, -1e30], size=shape))
        done = threading.Event()

        def write(scores: np.ndarray = scores, values: list[np.ndarray] = values, done: threading.Event = done) -> None:
            while not done.is_set():
                for value in values:
                    scores[...] = value

        writer = threading.Thread(target=write)
        writer.start()
        for _ in range(300):
            for name, ask in one_liners.items():
                for kind in KINDS:
                    try:
                        ask(scores, labelled=labelled, **kind.options)
                    except ValueError:
                        pass  # a bad score, or no tree
                    except Exception as error:
                        wrong.append(f"{name}: {error!r}")
        done.set()
        writer.join()
    return wrong


def threads() -> list[str]:
    """Two threads ask one distribution everything at once, from its first solve on."""
    wrong: list[str] = []
    form = FORMS[2]
    for kind in KINDS:
        for labels in (0, 2):
            batch = some_sentences(labels, np.float64) * 3
            for question in QUESTIONS:
                for sentence in batch[:3]:
                    quantities.expected(question, sentence, kind)
            for _ in range(3):
                dist = distribution(form, batch, kind)
                start = threading.Barrier(2)

                def ask(
                    order: list[Any], dist: Any = dist, batch: Any = batch, kind: Any = kind, start: Any = start
                ) -> None:
                    start.wait()
                    for question in order:
                        answers = question.ask(dist, form, batch)
                        for sentence, parts in zip(batch, answers, strict=True):
                            expected = quantities.expected(question, sentence, kind)
                            for part, near in zip(parts, expected, strict=False):
                                complaint = near.complaint(part, sentence.scores.dtype)
                                if complaint:
                                    wrong.append(f"{question.name}: {complaint}")

                askers = [threading.Thread(target=ask, args=(order,)) for order in (QUESTIONS, QUESTIONS[::-1])]
                for asker in askers:
                    asker.start()
                for asker in askers:
                    asker.join()
    return wrong


if __name__ == "__main__":
    found = {"after": after, "during": during, "threads": threads}[sys.argv[1]]()
    print(f"{len(found)} wrong answers")
    print("\n".join(found[:5]))
    sys.exit(bool(found))
