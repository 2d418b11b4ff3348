"""What an experiment is given: its inputs, its randomness, and a way to measure that can be interrupted and resumed."""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeAlias, TypeVar

import numpy as np

import spantree

from ._extras import need
from ._types import Row
from .score_files import Treebank, read_folder
from .store import Store

Choice = TypeVar("Choice")

Measure: TypeAlias = Callable[[Row, np.random.Generator], Row]
"""From a unit, and randomness of its own, to what was measured."""


@dataclass(frozen=True)
class Lab:
    """One run of one experiment.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> lab = Lab("example", Path(folder.name), show_progress=False)
    >>> lab.measure("square", [{"n": 2}, {"n": 3}], lambda unit, rng: {"square": unit["n"] ** 2})
    [{'n': 2, 'square': 4}, {'n': 3, 'square': 9}]
    >>> lab.measure("square", [{"n": 3}], lambda unit, rng: {"square": "measured again"})
    [{'n': 3, 'square': 9}]
    >>> folder.cleanup()
    """

    experiment: str
    """Its name on the command line."""
    output: Path
    """The folder that results go to."""
    scores: Path | None = None
    """A folder of score files."""
    seed: int = 0
    """What all randomness comes from."""
    quick: bool = False
    """Whether to show that everything works rather than to measure."""
    show_progress: bool = True
    """Whether to draw a progress bar on stderr."""

    def choose(self, full: Choice, quick: Choice) -> Choice:
        """The setting of a full or of a quick run."""
        return quick if self.quick else full

    @cached_property
    def treebanks(self) -> list[Treebank]:
        """The score files, read when first asked for; none without a folder."""
        return [] if self.scores is None else read_folder(self.scores)

    def treebank(self, name: str) -> Treebank:
        """The score file of that name."""
        return next(treebank for treebank in self.treebanks if treebank.name == name)

    @cached_property
    def best_trained(self) -> Treebank | None:
        """The treebank whose parser was trained on most sentences: what the papers call trained weights."""
        return max(self.treebanks, key=lambda treebank: treebank.train_sentences or 0, default=None)

    def treebank_units(self) -> list[Row]:
        """One unit of measurement for each score file."""
        return [{"treebank": treebank.name, "checksum": treebank.checksum} for treebank in self.treebanks]

    def measure(self, kind: str, units: Sequence[Row], measure: Measure) -> list[Row]:
        """Measure every unit that no earlier run with the same settings has measured.

        Parameters
        ----------
        kind : str
            What is measured; units of different kinds are never confused.
        units : sequence of Row
            Everything that the measurement depends on, apart from the seed and this library's version.
        measure : Measure
            The measurement; its randomness depends on seed, kind and unit only, not on the order of things.

        Returns
        -------
        list of Row
            For each unit, the unit with what was measured.
        """
        store = Store(self.output / f"{self.experiment}.jsonl")
        rows = []
        progress = need("tqdm").tqdm(
            units, desc=f"{self.experiment}: {kind}", file=sys.stderr, disable=not self.show_progress, leave=False
        )
        for unit in progress:
            key: Row = {"kind": kind, "seed": self.seed, "version": spantree.__version__, **unit}
            row = store.get(key)
            if row is None:
                entropy = [self.seed, zlib.crc32(json.dumps(key, sort_keys=True).encode())]
                row = measure(unit, np.random.default_rng(entropy))
                store.put(key, row)
            rows.append({**unit, **row})
        return rows
