"""Measurements are kept, found again, and do not depend on the order in which they are made."""

from __future__ import annotations

import json

import pytest

import spantree
from spantree.experiments.lab import Lab
from spantree.experiments.store import Store


def draw(unit, rng):
    return {"drawn": int(rng.integers(2**40))}


def refuse(unit, rng):
    raise AssertionError(f"measured again: {unit}")


def test_a_second_run_measures_nothing(tmp_path):
    units = [{"n": 1}, {"n": 2}]
    first = Lab("a", tmp_path, show_progress=False).measure("kind", units, draw)
    assert Lab("a", tmp_path, show_progress=False).measure("kind", units, refuse) == first


def test_an_interrupted_run_goes_on(tmp_path):
    measured = []

    def until_two(unit, rng):
        if unit["n"] == 2:
            raise KeyboardInterrupt
        measured.append(unit["n"])
        return draw(unit, rng)

    units = [{"n": n} for n in range(4)]
    lab = Lab("a", tmp_path, show_progress=False)
    with pytest.raises(KeyboardInterrupt):
        lab.measure("kind", units, until_two)
    resumed = lab.measure("kind", units, draw)
    assert measured == [0, 1]
    assert resumed == Lab("b", tmp_path, show_progress=False).measure("kind", units, draw)


def test_other_settings_are_measured_anew(tmp_path, monkeypatch):
    def measured(lab, kind="kind", unit=None):
        count = []
        lab.measure(kind, [unit or {"n": 1}], lambda unit, rng: count.append(1) or {})
        return bool(count)

    lab = Lab("a", tmp_path, show_progress=False)
    assert measured(lab)
    assert not measured(lab)
    assert measured(lab, kind="other")
    assert measured(lab, unit={"n": 2})
    assert measured(Lab("a", tmp_path, seed=1, show_progress=False))
    monkeypatch.setattr(spantree, "__version__", "another")
    assert measured(lab)


def test_randomness_depends_on_seed_and_unit_only(tmp_path):
    units = [{"n": 1}, {"n": 2}]
    forwards = Lab("a", tmp_path, show_progress=False).measure("kind", units, draw)
    backwards = Lab("b", tmp_path, show_progress=False).measure("kind", units[::-1], draw)
    other_seed = Lab("c", tmp_path, seed=1, show_progress=False).measure("kind", units, draw)
    assert forwards == backwards[::-1]
    drawn = {row["drawn"] for row in forwards + other_seed}
    assert len(drawn) == 4


def test_a_line_cut_short_is_measured_again(tmp_path):
    path = tmp_path / "rows.jsonl"
    store = Store(path)
    store.put({"n": 1}, {"t": 0.5})
    store.put({"n": 2}, {"t": 0.25})
    path.write_bytes(path.read_bytes()[:-4])
    cut = Store(path)
    assert cut.get({"n": 1}) == {"t": 0.5}
    assert cut.get({"n": 2}) is None
    cut.put({"n": 2}, {"t": 0.75})
    assert Store(path).get({"n": 2}) == {"t": 0.75}
    assert json.loads(path.read_text().splitlines()[-1]) == {"unit": {"n": 2}, "row": {"t": 0.75}}


def test_progress_is_shown_on_stderr(tmp_path, capsys):
    Lab("a", tmp_path).measure("kind", [{"n": 1}], draw)
    shown = capsys.readouterr()
    assert "a: kind" in shown.err
    assert shown.out == ""
