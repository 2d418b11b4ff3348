"""The command ``spantree``: what it needs beyond the library is the extra ``[cli]``."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        from .cli import run
    except ModuleNotFoundError as error:
        print(f"spantree: the command line needs {error.name}: pip install 'spantree[cli]'", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("spantree: interrupted", file=sys.stderr)
        return 130
    return run(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
