"""Every page "Coming from ..." runs, and every name it offers says what it takes and gives."""

from __future__ import annotations

import doctest
import importlib
import inspect
from pathlib import Path

import pytest
from numpydoc.validate import validate

PAGES = sorted((Path(__file__).parents[2] / "docs" / "coming-from").glob("*.md"))
MODULES = [page.stem.replace("-", "_") for page in PAGES]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_page_runs(page):
    failed, tried = doctest.testfile(str(page), module_relative=False)
    assert failed == 0
    assert tried > 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_diff_is_one_import(page):
    text = page.read_text(encoding="utf-8")
    (diff,) = [part.split("```")[0] for part in text.split("```diff\n")[1:]]
    added = [line[1:] for line in diff.splitlines() if line.startswith("+")]
    exec("\n".join(added), {})


def public_names(module):
    found = importlib.import_module(f"spantree.compat.{module}")
    for name, member in vars(found).items():
        if not name.startswith("_") and getattr(member, "__module__", None) == found.__name__:
            yield f"{found.__name__}.{name}"
            if inspect.isclass(member):
                yield from (
                    f"{found.__name__}.{name}.{method}"
                    for method, value in vars(member).items()
                    if not method.startswith("_") and inspect.isfunction(value)
                )


@pytest.mark.parametrize("name", [name for module in MODULES for name in public_names(module)])
def test_docstrings_are_complete(name):
    wanted = {"SS01", "SS02", "SS04", "PR01", "PR02", "PR04", "PR10", "RT01", "GL05", "GL06", "GL07", "GL09"}
    assert [message for code, message in validate(name)["errors"] if code in wanted] == []
