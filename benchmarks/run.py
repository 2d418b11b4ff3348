"""Every benchmark, one after the other: ``make bench``. ``--json FILE`` keeps the tables for the site."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="of those only: decoding, inference, ...")
    parser.add_argument("--json", type=Path, help="write the tables there too")
    options = parser.parse_args()
    os.environ |= {
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }  # one thread for all sides
    folder = Path(__file__).parent
    files = [folder / f"bench_{name}.py" for name in options.names] or sorted(folder.glob("bench_*.py"))
    if options.json:
        lines = options.json.with_suffix(".lines")
        lines.unlink(missing_ok=True)
        os.environ["SPANTREE_BENCH_JSON"] = str(lines.resolve())
        where = machine()
    codes = [subprocess.call([sys.executable, path]) for path in files]
    if options.json:
        tables = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
        page = {"machine": where, "tables": tables}
        options.json.write_text(json.dumps(page, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        lines.unlink()
    return int(any(code != 0 for code in codes))


def machine() -> str:
    """What the figures were measured on."""
    info = Path("/proc/cpuinfo")
    text = info.read_text() if info.exists() else ""
    model = next((line.partition(": ")[2] for line in text.splitlines() if "model name" in line), platform.machine())
    widest = "AVX-512" if "avx512vl" in text else "AVX2" if "avx2" in text else ""
    vectors = os.environ.get("SPANTREE_VECTORS", widest)
    parts = [model, f"{os.cpu_count()} cores", vectors, f"Python {platform.python_version()}"]
    parts += [f"{name} {version(name)}" for name in ("numpy", "spantree")]
    parts.append(f"load {os.getloadavg()[0]:.1f} before")  # by others: figures from a busy machine are worth less
    return ", ".join(part for part in parts if part) + f"; {datetime.date.today():%B %Y}"


if __name__ == "__main__":
    raise SystemExit(main())
