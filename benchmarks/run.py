"""Every benchmark, one after the other: ``make bench``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def main() -> int:
    os.environ |= {
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }  # one thread for all sides
    folder = Path(__file__).parent
    codes = [subprocess.call([sys.executable, path]) for path in sorted(folder.glob("bench_*.py"))]
    return int(any(code != 0 for code in codes))


if __name__ == "__main__":
    raise SystemExit(main())
