"""Every experiment, quick and on tiny score files: tables, figures, and zoo and core agreeing."""

from __future__ import annotations

import csv
import sys

import pytest

from spantree.experiments.__main__ import main
from spantree.experiments.registry import EXPERIMENTS
from spantree.experiments.sampling_bias import SAMPLERS, TREES
from spantree.experiments.single_root_ways import ANY_ROOTS, ONE_ROOT
from spantree.experiments.store import Store

TABLES = {
    "please-mind-the-root-treebanks": 3,
    "please-mind-the-root-sizes": 3,
    "root-of-a-problem-root-edges": 3 + 3 * 2,
    "root-of-a-problem-times": 2 + 2,
    "expectations-entropy": 3,
    "expectations-gradient": 3,
    "efficient-sampling-sizes": 2,
    "efficient-sampling-slopes": 4,
    "unbiased-sampling-bias": len(SAMPLERS),
    "unbiased-sampling-with-replacement": 2 + 2,
    "unbiased-sampling-without-replacement": 2,
    "unbiased-sampling-without-replacement-lengths": 2,
    "unbiased-sampling-beam-in-jax": 3,
    "unbiased-sampling-random-tries": 4 * 2,
    "unbiased-sampling-trained-tries": 3,
    "numerics-errors": 2 * 3,
}

FIGURES = {
    "please-mind-the-root": ["treebanks"],
    "root-of-a-problem": ["root-edges", "any-roots", "one-root", "arcmax", "arcmax-place", "combinations", "stanza"],
    "expectations": ["entropy", "gradient"],
    "efficient-sampling": ["sizes"],
    "unbiased-sampling": [
        "bias",
        "with-replacement",
        "without-replacement",
        "without-replacement-lengths",
        "beam-in-jax",
        "random-tries",
        "random-ratios",
        "trained-tries",
    ],
    "numerics": ["errors"],
}


def read(folder, name):
    with (folder / f"{name}.csv").open(newline="") as lines:
        return list(csv.DictReader(lines))


def column(folder, name, key, kind=float):
    return [kind(row[key]) for row in read(folder, name)]


@pytest.mark.parametrize(("name", "rows"), TABLES.items())
def test_tables(results, name, rows):
    assert len(read(results, name)) == rows


def test_nothing_else_is_written(results):
    expected = {f"{name}.csv" for name in TABLES}
    expected |= {f"{name}-{figure}.png" for name, figures in FIGURES.items() for figure in figures}
    expected |= {f"{name}.{ending}" for name in EXPERIMENTS for ending in ("md", "jsonl")}
    assert {path.name for path in results.iterdir()} == expected


@pytest.mark.parametrize(("name", "figures"), FIGURES.items())
def test_figures(results, name, figures):
    page = (results / f"{name}.md").read_text()
    for figure in figures:
        image = (results / f"{name}-{figure}.png").read_bytes()
        assert image.startswith(b"\x89PNG")
        assert len(image) > 5000
        assert f"({name}-{figure}.png)" in page


def test_pages_show_the_tables(results):
    page = (results / "please-mind-the-root.md").read_text()
    assert "| UD_Sharp-A | 2000 | 8 |" in page
    assert "| high | 0 |  |  |  |" in page


def test_decoders_agree(results):
    assert column(results, "please-mind-the-root-treebanks", "zoo_and_core_differ", int) == [0, 0, 0]
    assert set(column(results, "root-of-a-problem-root-edges", "zoo_and_core_differ", int)) == {0}
    assert max(column(results, "root-of-a-problem-times", "worst_gap")) < 1e-10
    for way in (*ANY_ROOTS, *ONE_ROOT):
        assert min(column(results, "root-of-a-problem-times", way)) > 0


def test_treebanks_are_sorted_by_training_size(results):
    assert column(results, "please-mind-the-root-treebanks", "train_sentences", str) == ["2000", "30", ""]


def test_expectations_agree(results):
    assert max(column(results, "expectations-entropy", "worst_difference")) < 1e-9
    for way in ("t2", "t2v", "t2h"):
        assert max(column(results, "expectations-gradient", f"{way}_difference")) < 1e-9


def test_samples_are_trees_and_distinct_where_promised(results):
    for name in ("efficient-sampling-sizes", "unbiased-sampling-with-replacement"):
        assert set(column(results, name, "invalid", int)) == {0}
    for kind in ("without-replacement", "without-replacement-lengths", "beam-in-jax"):
        name = f"unbiased-sampling-{kind}"
        assert set(column(results, name, "invalid", int)) == {0}
        assert set(column(results, name, "repeated", int)) == {0}


def test_samplers_draw_the_three_trees_and_only_one_is_biased(results):
    # 200 draws each, fixed seed; a share is off by 0.13 (3.9 standard deviations) with probability below 1e-3
    for row in read(results, "unbiased-sampling-bias"):
        shares = [float(row[tree]) for tree in TREES]
        assert sum(shares) == pytest.approx(1)
        expected = [1 / 4, 1 / 4, 1 / 2] if row["sampler"] == "WilsonRC" else [1 / 3] * 3
        assert shares == pytest.approx(expected, abs=0.13)


def test_mass_of_trees_with_one_root(results):
    assert max(column(results, "unbiased-sampling-random-tries", "worst_difference")) < 1e-10
    assert max(column(results, "unbiased-sampling-trained-tries", "worst_difference")) < 1e-8
    assert min(column(results, "unbiased-sampling-random-tries", "tries")) > 1


def test_the_core_stays_exact_where_lu_does_not(results):
    assert max(column(results, "numerics-errors", "core_marginal_relative")) < 1e-11
    assert max(column(results, "numerics-errors", "core_log_z")) < 1e-9


@pytest.fixture
def without_images(monkeypatch):
    """Do not spend time on drawing."""
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda *arguments, **options: None)


@pytest.mark.usefixtures("without_images")
def test_a_finished_run_is_not_measured_again(results, scores_folder, monkeypatch):
    before = {path.name: path.read_bytes() for path in results.glob("*.csv")}

    def refuse(self, unit, row):
        raise AssertionError(f"measured again: {unit}")

    monkeypatch.setattr(Store, "put", refuse)
    assert main(["all", "--quick", "--output", str(results), "--scores", str(scores_folder)]) == 0
    assert {path.name: path.read_bytes() for path in results.glob("*.csv")} == before


@pytest.mark.usefixtures("without_images")
def test_without_scores(tmp_path, capsys):
    assert main(["numerics", "--quick", "--output", str(tmp_path)]) == 0
    assert str(tmp_path / "numerics.md") in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["expectations", "--quick", "--output", str(tmp_path)])
    assert "expectations needs trained scores: --scores FOLDER" in capsys.readouterr().err


@pytest.mark.usefixtures("without_images")
def test_all_without_scores_passes_over_what_needs_them(tmp_path, capsys):
    assert main(["all", "--quick", "--output", str(tmp_path)]) == 0
    assert "please-mind-the-root: passed over" in capsys.readouterr().err
    assert not (tmp_path / "please-mind-the-root.md").exists()
    assert len(read(tmp_path, "root-of-a-problem-times")) == 2
    assert not (tmp_path / "unbiased-sampling-trained-tries.csv").exists()


def test_wrong_folder(tmp_path, capsys):
    assert main(["please-mind-the-root", "--output", str(tmp_path), "--scores", str(tmp_path)]) == 1
    assert "holds no score files" in capsys.readouterr().err


@pytest.mark.parametrize("module", ["tqdm", "matplotlib.figure", "mpmath"])
def test_missing_packages_are_named(tmp_path, capsys, monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    assert main(["numerics", "--quick", "--output", str(tmp_path)]) == 1
    shown = capsys.readouterr().err
    assert module in shown
    assert "pip install 'spantree[experiments]'" in shown
