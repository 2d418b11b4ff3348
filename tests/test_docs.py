"""Every example in a docstring or on a page runs, and the command line does what it says."""

from __future__ import annotations

import doctest
import importlib
import inspect
import os
import pkgutil
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

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


PROJECT = Path(__file__).parents[1]


class StandInStanza:
    """`stanza` as far as the README calls it: its parser tells listeners log-probabilities of heads."""

    def Pipeline(self, language):
        listeners = []
        model = SimpleNamespace(register_forward_hook=listeners.append)

        def nlp(text):
            nodes = len(text.split()) + 1
            scores = np.log(np.random.default_rng(0).dirichlet(np.ones(nodes), size=(1, nodes)))
            for listener in listeners:
                listener(model, (), (0.0, [scores]))

        nlp.processors = {"depparse": SimpleNamespace(trainer=SimpleNamespace(model=model))}
        return nlp


def blocks(page, kind):
    return re.findall(rf"```{kind}\n(.*?)```", (PROJECT / page).read_text(encoding="utf-8"), re.DOTALL)


def test_the_readme_runs(monkeypatch):
    """All Python in it is a session with its output, and is run as such."""
    monkeypatch.setitem(sys.modules, "stanza", StandInStanza())
    failed, tried = doctest.testfile(str(PROJECT / "README.md"), module_relative=False)
    assert failed == 0
    assert tried == sum(block.count(">>> ") for block in blocks("README.md", "python"))


@pytest.mark.parametrize("page", ["README.md", "docs/start/annotate.md", "docs/start/look.md"])
def test_commands_in_pages_run(page, tmp_path):
    """What follows a `$` is run in a folder with our treebank and its scores, and prints what stands below it."""
    (tmp_path / "examples").symlink_to(PROJECT / "examples")
    (tmp_path / "treebank.conllu").symlink_to(PROJECT / "examples" / "treebank" / "treebank.conllu")
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    run = partial(subprocess.run, shell=True, check=True, capture_output=True, text=True, cwd=tmp_path, env=environment)
    run("python examples/treebank/train.py scores.npz")
    (session,) = blocks(page, "console")
    for command, _, expected in (part.partition("\n") for part in session.split("$ ")[1:]):
        assert run(command).stdout == expected


PAGES = ["confidence", "conventions", "how_it_works", "index", "not_only_parsing", "pytorch"]
PAGES += ["start/train", "start/annotate", "start/look"]


@pytest.mark.parametrize("page", PAGES)
def test_pages_run(page):
    failed, tried = doctest.testfile(str(PROJECT / "docs" / f"{page}.md"), module_relative=False)
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
