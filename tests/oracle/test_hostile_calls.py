"""Calls that nobody should make, or only just may: each works as documented or says what was wrong with what."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from oracle import hostile_calls

SECONDS = 300  # a call that does not return must not stop the tests; a run takes a few


@pytest.mark.parametrize("group", hostile_calls.GROUPS)
def test_hostile_calls(group):
    run = subprocess.run(
        [sys.executable, "-m", "oracle.hostile_calls", group],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parent.parent)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    call, wrong = "the first call", []
    for line in run.stdout.splitlines():
        what, _, text = line.partition("\t")
        if what == "begin":
            call = text
        elif what == "end" and text:
            wrong.append(f"{call}: {text}")
    assert run.returncode == 0, f"the process ended at {call}:\n{run.stderr[-2000:]}"
    assert not wrong, f"{len(wrong)} calls:\n" + "\n".join(wrong[:20])
