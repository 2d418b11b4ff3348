"""Answers are where the scores are: whatever torch's default device is, and on a device that is not the host."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from all_answers import KINDS, answers, gradients, problem

import torch


@pytest.mark.parametrize("kind", KINDS)
def test_default_device(kind):
    """Tensors that nobody said a device of would be on this one, and have no numbers."""
    scores, *rest = problem(kind)
    scores.requires_grad_()
    expected = answers(kind, scores, *rest)
    with torch.device("meta"):
        found = answers(kind, scores, *rest)
        slopes = gradients(found, scores)
    for one, other in ((expected, found), (gradients(expected, scores), slopes)):
        assert one.keys() == other.keys()
        for name, right in one.items():
            assert other[name].is_cpu, name
            assert torch.equal(other[name].nan_to_num(), right.nan_to_num()), name


def test_another_device():
    """There and back through the memory of the host."""
    here = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-W", "error", str(here / "ask_pretend_device.py")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "all the same\n", done.stderr
