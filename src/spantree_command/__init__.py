"""The command ``spantree``. A package of its own: Ctrl-C while `spantree` itself is imported ends in one line, too."""

from __future__ import annotations

import sys


def main() -> int:
    try:
        from spantree.__main__ import main as run
    except KeyboardInterrupt:
        print("spantree: interrupted", file=sys.stderr)
        return 130
    return run()
