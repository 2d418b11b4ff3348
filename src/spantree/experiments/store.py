"""A file of measured rows, one JSON object per line, from which an interrupted experiment goes on."""

from __future__ import annotations

import json
from pathlib import Path

from ._types import Row


class Store:
    """Measured rows by what was measured. Lines are only ever appended; a line cut short by an interruption is skipped.

    Parameters
    ----------
    path : Path
        The file; it need not exist.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name, "rows.jsonl")
    >>> store = Store(path)
    >>> store.get({"n": 10}) is None
    True
    >>> store.put({"n": 10}, {"seconds": 0.5})
    >>> Store(path).get({"n": 10})
    {'seconds': 0.5}
    >>> folder.cleanup()
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._rows: dict[str, Row] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                try:
                    entry = json.loads(line)
                except json.JSONDecodeError:
                    continue
                self._rows[_key(entry["unit"])] = entry["row"]

    def get(self, unit: Row) -> Row | None:
        """The row measured for `unit`, if any."""
        return self._rows.get(_key(unit))

    def put(self, unit: Row, row: Row) -> None:
        """Keep a row, on disk before this returns."""
        line = json.dumps({"unit": unit, "row": row})
        cut_short = self.path.exists() and not self.path.read_bytes().endswith(b"\n") and self.path.stat().st_size > 0
        with self.path.open("a", encoding="utf-8") as lines:
            lines.write(("\n" if cut_short else "") + line + "\n")
        self._rows[_key(unit)] = row


def _key(unit: Row) -> str:
    return json.dumps(unit, sort_keys=True)
