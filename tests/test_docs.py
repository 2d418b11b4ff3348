"""Every example in a docstring runs, and the command line does what it says."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest
from numpydoc.validate import validate

import spantree
from spantree.__main__ import main

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(spantree.__path__, "spantree.")
    if not module.name.endswith(("_core", "__main__"))
)


@pytest.mark.parametrize("name", ["spantree", *MODULES])
def test_examples(name):
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


def test_public_names_are_documented():
    for name in set(spantree.__all__) - {"__version__"}:
        assert getattr(spantree, name).__doc__, name


# What numpydoc checks: the summary; all parameters, and no others; what is returned; sections as they should be.
SUMMARY, PARAMETERS, RESULT = {"SS01", "SS02", "SS04"}, {"PR01", "PR02", "PR04", "PR10"}, {"RT01", "YD01"}
SECTIONS = {"GL05", "GL06", "GL07", "GL09", "SA02", "SA03"}
RESULTS = {"Calibration", "Confidence", "InfeasibleError", "Reliability", "Sample", "Trees"}  # nobody else makes these


def public_names():
    for name in set(spantree.__all__) - {"__version__"}:
        yield f"spantree.{name}"
        if inspect.isclass(getattr(spantree, name)):
            members = vars(getattr(spantree, name))
            yield from (f"spantree.{name}.{member}" for member in members if is_public_method(member, members[member]))


def is_public_method(name, member):
    return not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property))


@pytest.mark.parametrize("name", sorted(public_names()))
def test_docstrings_are_complete(name):
    checks = SUMMARY | PARAMETERS | RESULT | SECTIONS
    if name.split(".")[-1] in RESULTS:
        checks -= {"PR01"}  # attributes instead
    if ".iter_" in name:
        checks -= {"RT01"}  # what is yielded instead
    faults = [message for code, message in validate(name)["errors"] if code in checks]
    assert not faults


def test_the_readme_runs():
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    exec(code, {})


@pytest.mark.parametrize("page", ["confidence.md", "conventions.md", "pytorch.md"])
def test_pages_run(page):
    failed, tried = doctest.testfile(str(Path(__file__).parents[1] / "docs" / page), module_relative=False)
    assert failed == 0
    assert tried > 0


def test_demo(capsys):
    assert main(["demo"]) == 0
    shown = capsys.readouterr().out
    assert "She saw the man with the telescope" in shown
    assert "With several roots allowed, 2 would have been taken: Come(1), sit(4)." in shown
    assert shown.count("%  the best tree\n") == 4


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"spantree {spantree.__version__}\n"


def test_in_a_notebook():
    scores = np.zeros((30, 4, 4))
    scores[2, :, 1] = -np.inf
    dist = spantree.TreeDistribution(scores)
    shown = dist._repr_html_()
    assert "TreeDistribution(30 sentences of 3 words, single root, float64)" in shown
    assert "<td>2</td><td>3</td><td>-inf</td>" in shown
    assert "and 10 more sentences" in shown
    one = spantree.TreeDistribution(np.array([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]]))._repr_html_()
    assert "<td>1</td><td>2</td>" in one
    assert "<td>2</td><td>ROOT</td>" in one
    assert "score 7" in one
    assert "<td>1</td><td>none</td>" in dist[2]._repr_html_()
    labelled = spantree.TreeDistribution([np.zeros((2, 2, 3))], labelled=True)
    assert "<th>label</th>" in labelled[0]._repr_html_()
    assert "<td>0</td><td>1</td><td>0</td>" in labelled._repr_html_()
    nested = spantree.TreeDistribution(np.zeros((2, 3, 2, 2)))._repr_html_()
    assert "<td>1, 2</td>" in nested
