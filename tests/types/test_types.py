"""The types that editors see: example calls pass two type checkers, and wrong ones do not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import spantree

EXAMPLES = Path(__file__).parent / "example_calls.py"

OPENING = [
    "import numpy as np",
    "import spantree",
    "scores = np.zeros((3, 3))",
    "dist = spantree.TreeDistribution(scores)",
]
WRONG = [
    "spantree.decode(scores, leyout='dep_head')",
    "spantree.decode(scores, root='two')",
    "spantree.TreeDistribution(scores, temprature=2.0)",
    "dist.entropy(with_grad='yes')",
    "dist.sample(3, method='gibbs')",
]


def mypy(file):
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental", str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def pyright(file):
    settings = file.parent / "pyrightconfig.json"
    package = str(Path(spantree.__file__).parents[1])
    wanted = {"include": [file.name], "typeCheckingMode": "strict", "extraPaths": [package]}
    settings.write_text(json.dumps(wanted), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--project", str(settings), "--pythonpath", sys.executable],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("checker", [mypy, pyright])
def test_example_calls_have_the_types_they_should(checker, tmp_path):
    file = tmp_path / EXAMPLES.name
    file.write_text(EXAMPLES.read_text(encoding="utf-8"), encoding="utf-8")
    code, told = checker(file)
    assert code == 0, told


@pytest.mark.parametrize("checker", [mypy, pyright])
def test_wrong_calls_are_found(checker, tmp_path):
    file = tmp_path / "wrong_calls.py"
    opening = (
        "import numpy as np\nimport spantree\nscores = np.zeros((3, 3))\ndist = spantree.TreeDistribution(scores)\n"
    )
    file.write_text(opening + "\n".join(WRONG) + "\n", encoding="utf-8")
    code, told = checker(file)
    assert code != 0
    for line in range(len(OPENING) + 1, len(OPENING) + len(WRONG) + 1):
        assert f"wrong_calls.py:{line}:" in told, told
