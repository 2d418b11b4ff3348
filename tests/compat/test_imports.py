"""A stand-in needs the library that its arguments belong to, says so where it is missing, and needs no other."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "needed", "install"),
    [
        ("networkx", "networkx", "pip install networkx"),
        ("supar", "torch", r"pip install 'spantree\[torch\]'"),
        ("torch_struct", "torch", r"pip install 'spantree\[torch\]'"),
    ],
)
def test_what_is_missing(module, needed, install, monkeypatch):
    monkeypatch.setitem(sys.modules, needed, None)
    monkeypatch.delitem(sys.modules, f"spantree.compat.{module}", raising=False)
    with pytest.raises(ImportError, match=install):
        importlib.import_module(f"spantree.compat.{module}")


def test_nothing_else_is_imported():
    code = (
        "import sys, spantree.compat.ufal, spantree.compat.stanza, spantree.compat.synjax;"
        "print({'torch', 'networkx', 'jax', 'ufal', 'stanza', 'synjax'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
