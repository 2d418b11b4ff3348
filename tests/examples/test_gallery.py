"""Programs of the gallery run; that their pictures are good is seen on the site."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

GALLERY = Path(__file__).parents[2] / "examples" / "gallery"


def test_there_are_ten():
    assert len(list(GALLERY.glob("plot_*.py"))) >= 10


@pytest.mark.parametrize("name", ["plot_08_train", "plot_11_maze"])  # one of a kind; make docs runs all
def test_program(name, tmp_path):
    environment = os.environ | {"MPLBACKEND": "agg", "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, f"{name}.py"], cwd=GALLERY, env=environment, check=True, capture_output=True)
