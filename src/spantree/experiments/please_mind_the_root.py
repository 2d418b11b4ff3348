"""How often the best tree has several roots, and what forbidding it changes.

Zmigrod, Vieira and Cotterell (2020), "Please Mind the Root", Tables 1 and 2, Figures 3 and 4. Each treebank is decoded
without and with the root constraint, by the zoo (`tarjan`, `gabow_tarjan`) and by the core.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

import spantree
from spantree import zoo

from . import figures
from ._types import FloatArray, IntArray, Row
from .lab import Lab
from .report import Section
from .tables import Column, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PUBLISHED = {
    "UD_Marathi-UFAL": {"train_sentences": 373, "malformed": 0.0213, "change_uas": 0.0, "change_exact": 0.0},
    "UD_Kazakh-KTB": {"train_sentences": 31, "malformed": 0.0258, "change_uas": -0.00016, "change_exact": 0.03226},
    "UD_Kurmanji-MG": {"train_sentences": 20, "malformed": 0.2357, "change_uas": 0.00405, "change_exact": 0.22222},
    "UD_Buryat-BDT": {"train_sentences": 19, "malformed": 0.0661, "change_uas": 0.00107, "change_exact": 0.04082},
}
"""Table 2 for the treebanks whose training sets are too small to be cut: any parser was trained on the same."""

SIZES = {"high": (10_000, None), "medium": (1_000, 9_999), "low": (0, 999)}
"""The classes of training sizes of Table 1."""

COLUMNS = [
    Column("treebank", "treebank"),
    Column("train_sentences", "train"),
    Column("sentences", "test"),
    Column("malformed", "malformed", ".2%"),
    Column("uas", "UAS, any roots", ".2%"),
    Column("change_uas", "rel. ΔUAS", ".3%"),
    Column("exact", "exact match, any roots", ".2%"),
    Column("change_exact", "rel. Δexact match", ".3%"),
    Column("zoo_and_core_differ", "sentences where zoo and core score differently"),
]

SIZE_COLUMNS = [
    Column("setting", "setting"),
    Column("treebanks", "treebanks"),
    Column("malformed", "malformed", ".2%"),
    Column("change_uas", "rel. ΔUAS", ".4%"),
    Column("change_exact", "rel. Δexact match", ".2%"),
]


def conduct(lab: Lab) -> list[Section]:
    """Decode every treebank; show it by treebank and by size of the training set."""

    def measure(unit: Row, rng: np.random.Generator) -> Row:
        treebank = lab.treebank(unit["treebank"])
        chosen = np.flatnonzero(treebank.uniform)[: unit["at_most"]]
        decoded = decode_both_ways([treebank.scores[i] for i in chosen], [treebank.gold[i] for i in chosen])
        return {"train_sentences": treebank.train_sentences, **decoded}

    units = [{**unit, "at_most": lab.choose(None, 20)} for unit in lab.treebank_units()]
    rows = lab.measure("decoding", units, measure)
    rows.sort(key=lambda row: -(row["train_sentences"] or 0))
    title = "Malformed trees and relative change, by treebank (Table 2, Figures 3 and 4)"
    return [
        Section("treebanks", title, Table(COLUMNS, rows), draw(rows)),
        Section("sizes", "Averages by size of the training set (Table 1)", Table(SIZE_COLUMNS, by_size(rows))),
    ]


def decode_both_ways(scores: Sequence[FloatArray], gold: Sequence[IntArray]) -> Row:
    """Decode sentences with any number of roots and with one, by the zoo and by the core, and compare with the gold.

    The trees counted are the core's; the zoo's may differ from them where several trees are best.
    """
    any_roots = spantree.TreeDistribution(list(scores), root="multi")
    one_root = spantree.TreeDistribution(list(scores))
    unconstrained, constrained = any_roots.argmax(), one_root.argmax()
    zoo_best = np.array([any_roots[i].score(zoo.tarjan(one)) for i, one in enumerate(scores)])
    zoo_best_one_root = np.array([one_root[i].score(zoo.gabow_tarjan(one)) for i, one in enumerate(scores)])
    differ = ~np.isclose(zoo_best, any_roots.max()) | ~np.isclose(zoo_best_one_root, one_root.max())
    uas, exact = accuracy(unconstrained, gold)
    uas_one_root, exact_one_root = accuracy(constrained, gold)
    return {
        "sentences": len(scores),
        "malformed": float(np.mean([np.count_nonzero(heads == 0) > 1 for heads in unconstrained])),
        "uas": uas,
        "change_uas": relative_change(uas, uas_one_root),
        "exact": exact,
        "change_exact": relative_change(exact, exact_one_root),
        "zoo_and_core_differ": int(differ.sum()),
    }


def accuracy(trees: Sequence[IntArray], gold: Sequence[IntArray]) -> tuple[float, float]:
    """Share of words with the right head, and of sentences without a wrong one.

    Examples
    --------
    >>> accuracy([np.array([-1, 0, 1]), np.array([-1, 0])], [np.array([-1, 2, 0]), np.array([-1, 0])])
    (0.3333333333333333, 0.5)
    """
    right = [tree[1:] == heads[1:] for tree, heads in zip(trees, gold, strict=True)]
    return float(np.concatenate(right).mean()), float(np.mean([words.all() for words in right]))


def relative_change(before: float, after: float) -> float | None:
    """The change as a share of what there was before; None if there was nothing.

    Examples
    --------
    >>> relative_change(0.5, 0.75), relative_change(0.0, 0.1)
    (0.5, None)
    """
    return None if before == 0.0 else (after - before) / before


def by_size(rows: Sequence[Row]) -> list[Row]:
    """Averages over the treebanks of each class of training sizes."""
    table: list[Row] = []
    for setting, (fewest, most) in SIZES.items():
        members = [
            row
            for row in rows
            if row["train_sentences"] is not None
            and fewest <= row["train_sentences"]
            and (most is None or row["train_sentences"] <= most)
        ]
        averages: Row = {"setting": setting, "treebanks": len(members)}
        for key in ("malformed", "change_uas", "change_exact"):
            known = [row[key] for row in members if row[key] is not None]
            averages[key] = float(np.mean(known)) if known else None
        table.append(averages)
    return table


def draw(rows: Sequence[Row]) -> Figure:
    """Malformed rate (Figure 3) and relative changes (Figure 4) by training sentences."""
    figure, axes = figures.panels(3)
    shown = [row for row in rows if row["train_sentences"] is not None]
    for panel, key, title in zip(
        axes,
        ("malformed", "change_uas", "change_exact"),
        ("malformed trees", "relative change of UAS", "relative change of exact match"),
        strict=True,
    ):
        for place, label, points in (
            (0, "this data", shown),
            (1, "published, same training set", list(PUBLISHED.values())),
        ):
            panel.scatter(
                [row["train_sentences"] for row in points if row[key] is not None],
                [100 * row[key] for row in points if row[key] is not None],
                color=figures.COLOURS[place],
                marker=figures.MARKERS[place],
                s=22,
                label=label,
            )
        panel.set_xscale("log")
        panel.set_xlabel("training sentences")
        panel.set_ylabel("%")
        panel.set_title(title, fontsize=10)
    axes[0].legend(fontsize=8)
    return figure
