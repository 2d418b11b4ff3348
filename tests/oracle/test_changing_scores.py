"""Scores that change after, or while, they are read, and two threads at one distribution: no crash, no wrong answer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SECONDS = 300  # an endless loop must not stop the tests; a run takes a few


@pytest.mark.parametrize("when", ["after", "during", "threads"])
def test_scores_that_change(when):
    run = subprocess.run(
        [sys.executable, "-W", "error", "-m", "oracle.changing_scores", when],
        env=os.environ | {"PYTHONPATH": str(HERE.parent)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert run.returncode == 0, run.stdout + run.stderr[-2000:]
