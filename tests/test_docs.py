"""Every example in a docstring runs, and the command line does what it says."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import arbora
from arbora.__main__ import main

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(arbora.__path__, "arbora.")
    if not module.name.endswith(("_core", "__main__"))
)


@pytest.mark.parametrize("name", ["arbora", *MODULES])
def test_examples(name):
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


def test_public_names_are_documented():
    for name in set(arbora.__all__) - {"__version__"}:
        assert getattr(arbora, name).__doc__, name


def test_demo(capsys):
    assert main(["demo"]) == 0
    shown = capsys.readouterr().out
    assert "She saw the man with the telescope" in shown
    assert "With several roots allowed, 2 would have been taken: Come(1), sit(4)." in shown
    assert shown.count("the best tree\n") == 4


def test_version(capsys):
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"arbora {arbora.__version__}\n"


def test_drawing_refuses_what_is_no_sentence():
    from arbora.draw import text_arcs

    with pytest.raises(ValueError, match="2 words need 3 heads"):
        text_arcs(["a", "b"], [-1, 0])
    with pytest.raises(ValueError, match="no node"):
        text_arcs(["a"], [-1, 5])
    assert text_arcs([], [-1]).strip() == "ROOT"
