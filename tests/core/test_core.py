"""The core without Python in between: under three sanitizers, and in registers of every size."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
INCLUDE = HERE.parents[1] / "include"
FLAGS = [
    *("-std=c++20", "-O1", "-g1", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-psabi", "-pthread"),
    *("-DSPANTREE_BASELINE_ONLY", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off"),
]
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def run(source, flags, folder):
    compiler = shutil.which("c++") or shutil.which("g++")
    assert compiler, "a C++ compiler is needed to build the package, so there must be one"
    program = folder / source.stem
    subprocess.run([compiler, *FLAGS, *flags, f"-I{INCLUDE}", str(source), "-o", str(program)], check=True)
    finished = subprocess.run([program], capture_output=True, text=True)
    assert finished.returncode == 0, finished.stdout + finished.stderr


@pytest.mark.parametrize("source", sorted(HERE.glob("*_fuzz.cpp")), ids=lambda path: path.stem)
def test_no_undefined_behaviour(source, tmp_path):
    run(source, SANITIZERS, tmp_path)


@pytest.mark.parametrize("source", sorted(HERE.glob("*_race.cpp")), ids=lambda path: path.stem)
def test_no_data_race(source, tmp_path):
    run(source, ["-fsanitize=thread"], tmp_path)


def test_same_bits_in_all_registers(tmp_path):
    run(HERE / "registers.cpp", [], tmp_path)
