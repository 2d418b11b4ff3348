"""Tables: full precision in CSV for machines, rounded in Markdown for people."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ._types import Row


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    key: str
    """The rows' key, and the heading in CSV."""
    heading: str
    """The heading in Markdown."""
    form: str = ""
    """A format specification for Markdown."""


@dataclass(frozen=True)
class Table:
    """Rows under columns.

    Examples
    --------
    >>> table = Table([Column("n", "words"), Column("t", "time / ms", ".1f")], [{"n": 5, "t": 0.25}, {"n": 6}])
    >>> print(table.markdown())
    | words | time / ms |
    | ---: | ---: |
    | 5 | 0.2 |
    | 6 |  |
    """

    columns: Sequence[Column]
    rows: Sequence[Row]

    def markdown(self) -> str:
        """The table as GitHub writes it; text is left-aligned, numbers right, a missing value empty."""
        lines = [
            [column.heading for column in self.columns],
            [self._alignment(column) for column in self.columns],
            *([_shown(row.get(column.key), column.form) for column in self.columns] for row in self.rows),
        ]
        return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)

    def write_csv(self, path: Path) -> None:
        """Write the rows under the columns' keys; a missing value is empty."""
        with path.open("w", encoding="utf-8", newline="") as lines:
            writer = csv.writer(lines, lineterminator="\n")
            writer.writerow([column.key for column in self.columns])
            writer.writerows([row.get(column.key) for column in self.columns] for row in self.rows)

    def _alignment(self, column: Column) -> str:
        return ":---" if any(isinstance(row.get(column.key), str) for row in self.rows) else "---:"


def _shown(value: object, form: str) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return str(value) if isinstance(value, str) else format(value, form)
