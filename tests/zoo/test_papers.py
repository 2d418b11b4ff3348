"""docs/papers.md: everything it names exists, and nothing of the zoo is missing from it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import spantree
from spantree import zoo
from spantree.experiments.registry import EXPERIMENTS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")


def rows():
    """The cells of each row of each table, without headings and rulers."""
    lines = [line for line in PAGE.splitlines() if line.startswith("|")]
    cells = [re.split(r"\s*\|\s*", line.strip())[1:-1] for line in lines]
    return [row for row in cells if row[0] != "piece" and not set(row[0]) <= {"-", " "}]


def places():
    return sorted({name for row in rows() for name in re.findall(r"`([^`]+)`", row[1])})


def exists(name):
    if name in EXPERIMENTS:
        return True
    if name.startswith("figures/"):
        return (ROOT / "docs" / name).is_file()
    if name.endswith(".py"):
        return (ROOT / name).is_file()
    owner, _, attribute = name.partition(".")
    owners = {"zoo": zoo, "spantree": spantree, "TreeDistribution": spantree.TreeDistribution}
    return owner in owners and hasattr(owners[owner], attribute)


@pytest.mark.parametrize("name", places())
def test_every_place_exists(name):
    assert exists(name)


def test_a_place_that_does_not_exist_is_noticed():
    for name in ("zoo.no_such_animal", "figures/none.png", "src/spantree/zoo/none.py", "no-such-experiment"):
        assert not exists(name)


def test_every_row_has_three_cells():
    assert all(len(row) == 3 for row in rows())
    assert len(rows()) > 90


def test_no_animal_is_missing():
    assert {f"zoo.{name}" for name in zoo.__all__} <= set(re.findall(r"`(zoo\.\w+)`", PAGE))


def test_every_experiment_and_every_figure_of_them_is_there():
    assert set(EXPERIMENTS) <= set(places())
    figures = {f"figures/{path.name}" for path in (ROOT / "docs" / "figures").glob("*.png")}
    assert figures <= set(places())
