"""The site: ``make docs``. Pages are Markdown (MyST), the API is from docstrings, the gallery from programs."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert

import spantree
from spantree.view.report import ReportSentence, write_report

DOCS = Path(__file__).parent
MADE = DOCS / "_made"  # pages and files that are made here, never committed
sys.path.insert(0, str(DOCS.parent / "examples" / "treebank"))

project = "spantree"
author = "The spantree developers"
version = release = spantree.__version__
project_copyright = author

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_made/*.html", "gallery/*.ipynb", "**/README.rst", "gallery/GALLERY_HEADER.rst"]
nitpicky = False  # shapes stand where types would
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings have them, with shapes
numpydoc_show_class_members = False
templates_path = ["_templates"]
sphinx_gallery_conf = {
    "examples_dirs": ["../examples/gallery"],
    "gallery_dirs": ["gallery"],
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 1e9,
    "abort_on_example_error": True,
}

html_theme = "furo"
html_math_renderer = "mathml"
html_title = f"spantree {version}"
html_extra_path = ["_made/extra"]
html_static_path: list[str] = []
html_show_sphinx = False


def performance_page() -> str:
    """`make figures` leaves tables in performance.json; this is how they are shown."""
    measured = json.loads((DOCS / "performance.json").read_text(encoding="utf-8"))
    lines = [
        "# Performance",
        "",
        f"Made by `make figures`, which runs every benchmark of `make bench`: {measured['machine']}.",
        "Both sides of a ratio are measured in the same run, taking turns; the least of several rounds counts. Times",
        "are for one sentence where a line speaks of a batch. Goals are what the library is held to; where one does",
        "not hold, the table says so.",
        "",
    ]
    for table in measured["tables"]:
        lines += [f"## {table['title'].split(';')[0].split(',')[0]}", "", table["title"] + ".", ""]
        lines += ["| what | ours : other side | ratio | goal | |", "|---|---|---|---|---|"]
        lines += ["| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in table["rows"]]
        lines.append("")
    return "\n".join(lines)


def sample_report(target: Path) -> None:
    """The interactive page: the report of the treebank in examples/treebank."""
    import train

    sentences = train.read()
    pairs = zip(sentences, train.score(sentences), strict=True)
    records = [
        ReportSentence(f"s{i}", one.words, scores, gold=one.heads, gold_labels=one.labels)
        for i, (one, scores) in enumerate(pairs, start=1)
    ]
    with target.open("wb") as page:
        write_report(records, page, title="Twenty-four sentences")


def formula(translator: Any, node: nodes.Element) -> None:
    """A formula as MathML, which browsers draw by themselves: nothing is fetched."""
    kind = "inline" if isinstance(node, nodes.math) else "block"
    translator.body.append(convert(node.astext(), display=kind))
    raise nodes.SkipNode


def setup(app: Any) -> None:
    app.add_html_math_renderer("mathml", inline_renderers=(formula, None), block_renderers=(formula, None))


os.makedirs(MADE / "extra", exist_ok=True)
(MADE / "performance.md").write_text(performance_page(), encoding="utf-8")
sample_report(MADE / "extra" / "treebank_report.html")
