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


def run(source, flags, folder, compiler="c++"):
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


@pytest.mark.parametrize("compiler", ["c++", "clang++"])
def test_instructions_that_are_written_out(compiler, tmp_path):
    """For GCC, and only where it optimises: else kernels are not inlined into functions that may use wide registers."""
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler} here")
    source = tmp_path / "larger.cpp"
    source.write_text("""
#include "spantree/simd/dispatch.hpp"
#include "spantree/simd/pack.hpp"
using namespace spantree;
struct SumOfLarger {
    template <class Registers>
    struct Kernel {
        static double run(const double* x, double least) {
            auto pack = PackOf<Registers::width>::load(x);
            keep_in_register(pack.part[0]);
            return sum(larger(pack, PackOf<Registers::width>::broadcast(least)));
        }
    };
};
int main() {
    const double x[] = {1, 2, 3, 4, 5, 6, 7, 8};
    return dispatch_on_registers<SumOfLarger>(x, 4.0) == 42.0 ? 0 : 1;
}
""")
    for flags in (["-O0"], ["-O2"]):
        run(source, [*flags, "-USPANTREE_BASELINE_ONLY"], tmp_path, compiler)
