"""The command line: ``python -m spantree.experiments NAME``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ._extras import MissingExtraError
from .lab import Lab
from .registry import EXPERIMENTS
from .report import write_report
from .score_files import ScoreFileError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one experiment or all of them; returns the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    names = list(EXPERIMENTS) if options.name == "all" else [options.name]
    options.output.mkdir(parents=True, exist_ok=True)
    try:
        for name in names:
            experiment = EXPERIMENTS[name]
            if experiment.needs_scores and options.scores is None:
                if options.name != "all":
                    parser.error(f"{name} needs trained scores: --scores FOLDER")
                print(f"{name}: passed over, it needs --scores FOLDER", file=sys.stderr)
                continue
            lab = Lab(name, options.output, options.scores, options.seed, options.quick)
            for path in write_report(options.output, name, experiment.conduct(lab)):
                print(path)
    except (MissingExtraError, ScoreFileError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m spantree.experiments",
        description="The papers' experiments: tables and figures, zoo and core side by side.",
        epilog="\n".join(f"{name:22}{experiment.summary}" for name, experiment in EXPERIMENTS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", choices=[*EXPERIMENTS, "all"], metavar="NAME", help="which experiment, or all")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("experiments"),
        metavar="FOLDER",
        help="where results go, and what an interrupted run resumes from (default: experiments)",
    )
    parser.add_argument("--scores", type=Path, metavar="FOLDER", help="a folder of score files (*.npz)")
    parser.add_argument("--seed", type=int, default=0, help="of all randomness (default: 0)")
    parser.add_argument("--quick", action="store_true", help="tiny settings that only show that everything works")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
