"""The C++ library installs, and a program outside finds it, builds against it and runs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

import spantree

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def run(*command):
    finished = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


def test_a_program_outside_finds_the_library(tmp_path):
    cmake = Path(sys.executable).with_name("cmake")
    cmake = cmake if cmake.exists() else shutil.which("cmake")
    # One vector level, no optimisation: what is tried is the package.
    flags = [
        "-DCMAKE_BUILD_TYPE=Debug",
        "-DCMAKE_CXX_FLAGS=-DSPANTREE_BASELINE_ONLY",
        "-DSPANTREE_WARNINGS_AS_ERRORS=ON",
    ]
    library, program, prefix = tmp_path / "library", tmp_path / "program", tmp_path / "prefix"
    run(cmake, "-S", ROOT, "-B", library, f"-DCMAKE_INSTALL_PREFIX={prefix}", *flags)
    run(cmake, "--build", library, "--parallel", "2")
    run(cmake, "--install", library)
    assert sorted(path.name for path in (prefix / "include" / "spantree").iterdir()) == ["root.hpp", "spantree.hpp"]
    run(cmake, "-S", HERE / "outside", "-B", program, f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Debug")
    run(cmake, "--build", program)
    scores = np.array([[0, 1, 6, 1], [0, 0, 1, 0], [0, 5, 0, 4], [0, 1, 2, 0.0]], dtype=np.float32)
    dist = spantree.TreeDistribution(scores)
    heads, marginals = dist.argmax(), dist.marginals()
    expected = [f"best {dist.max():.0f}, log Z {dist.log_partition():.4f}"]
    expected += [f"{d} <- {heads[d]} with probability {marginals[heads[d], d]:.3f}" for d in (1, 2, 3)]
    assert run(program / "outside").splitlines() == expected
