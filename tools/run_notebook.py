"""Runs a notebook from top to bottom in plain Python and writes what its cells show into it; the tests compare the two.

python tools/run_notebook.py examples/tour.ipynb
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import sys
from pathlib import Path
from typing import Any


def run(notebook: dict[str, Any], folder: Path) -> list[list[dict[str, Any]]]:
    """What each code cell shows, in the notebook format, run one after the other in `folder`."""
    names: dict[str, Any] = {"__name__": "__main__"}
    shown = []
    with _inside(folder):
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                shown.append(_run_cell("".join(cell["source"]), names, len(shown) + 1))
    return shown


def _run_cell(source: str, names: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """Statements are executed; what a last expression gives is shown, as in Jupyter."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"<cell {number}>", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"<cell {number}>", "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append(
            {"name": "stdout", "output_type": "stream", "text": printed.getvalue().splitlines(keepends=True)}
        )
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = value._repr_html_().splitlines(keepends=True)
        outputs.append({"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"})
    return outputs


@contextlib.contextmanager
def _inside(folder: Path) -> Any:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def main(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, (cell, outputs) in enumerate(zip(code, run(notebook, path.parent), strict=True), start=1):
        cell["execution_count"], cell["outputs"] = number, outputs
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
