"""The notebook runs from top to bottom, and its cells show what is stored in it."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[2]


def test_the_tour(monkeypatch):
    spec = importlib.util.spec_from_file_location("run_notebook", PROJECT / "tools" / "run_notebook.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    monkeypatch.setattr(sys, "path", list(sys.path))  # the notebook adds a folder
    monkeypatch.delitem(sys.modules, "train", raising=False)  # examples/parser has one too
    notebook = json.loads((PROJECT / "examples" / "tour.ipynb").read_text(encoding="utf-8"))
    shown = tool.run(notebook, PROJECT / "examples")
    monkeypatch.delitem(sys.modules, "train")
    assert shown == [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert sum(map(bool, shown)) == len(shown)
