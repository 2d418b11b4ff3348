"""The results of an experiment as files: a page in Markdown, a CSV for each table, a PNG for each figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Section:
    """A table, a figure, or both of the same thing."""

    name: str
    """Part of the file names."""
    title: str
    """What is shown, and which figure or table of the paper it goes with."""
    table: Table | None = None
    figure: Figure | None = None


def write_report(output: Path, experiment: str, sections: Sequence[Section]) -> list[Path]:
    """Write ``EXPERIMENT.md`` and, for each section, ``EXPERIMENT-NAME.csv`` and ``EXPERIMENT-NAME.png``.

    Returns
    -------
    list of Path
        What was written, the page first.
    """
    page = [f"# {experiment}"]
    written = [output / f"{experiment}.md"]
    for section in sections:
        path = output / f"{experiment}-{section.name}"
        page.append(f"## {section.title}")
        if section.figure is not None:
            image = path.with_suffix(".png")
            section.figure.savefig(image, dpi=100, pil_kwargs={"optimize": True})
            page.append(f"![{section.title}]({image.name})")
            written.append(image)
        if section.table is not None:
            section.table.write_csv(path.with_suffix(".csv"))
            page.append(section.table.markdown())
            written.append(path.with_suffix(".csv"))
    written[0].write_text("\n\n".join(page) + "\n", encoding="utf-8")
    return written
