"""What is published: one version everywhere, and nothing in the sdist that users do not need."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
from importlib.metadata import metadata
from pathlib import Path

import pytest

import spantree

PROJECT = Path(__file__).parents[1]


def test_one_version():
    (cited,) = re.findall(r"^version: (.*)$", (PROJECT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    latest = re.search(r"^## (\S+)", (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    bibtex = re.search(r"version = {(.*?)}", (PROJECT / "README.md").read_text(encoding="utf-8"))
    assert metadata("spantree")["Version"] == spantree.__version__ == cited == latest[1] == bibtex[1]


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """Paths in the sdist; wheels are made of it."""
    folder = tmp_path_factory.mktemp("sdist")
    build = f"from scikit_build_core.build import build_sdist; build_sdist({str(folder)!r})"
    subprocess.run([sys.executable, "-c", build], cwd=PROJECT, check=True, capture_output=True)
    (sdist,) = folder.iterdir()
    with tarfile.open(sdist) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


def test_what_is_needed_is_published(published):
    package = PROJECT / "src" / "spantree"
    needed = {file for folder in ("include", "library", "bindings") for file in (PROJECT / folder).rglob("*.?pp")}
    needed |= {file for kind in ("py", "pyi", "typed", "json", "html", "js") for file in package.rglob(f"*.{kind}")}
    needed -= set((package / "experiments").rglob("*"))
    assert {str(file.relative_to(PROJECT)) for file in needed} <= published
    assert {"README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "CMakeLists.txt", "pyproject.toml"} <= published


def test_what_is_not_needed_is_not(published):
    assert {path.split("/")[0] for path in published} <= {
        "CHANGELOG.md", "CITATION.cff", "CMakeLists.txt", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml",
        "bindings", "include", "library", "src",
    }  # fmt: skip
    assert not [path for path in published if "experiments" in path or path.endswith((".png", ".so", ".pyc"))]
