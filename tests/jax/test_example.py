"""The example learns its sentences by heart."""

import importlib.util
import sys
from pathlib import Path

import pytest

pytest.importorskip("equinox")
pytest.importorskip("optax")
EXAMPLE = Path(__file__).parents[2] / "examples" / "jax" / "parser.py"


def test_a_small_parser_learns(no_doubles, monkeypatch):
    spec = importlib.util.spec_from_file_location("jax_parser", EXAMPLE)
    parser = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, parser)  # dataclasses look their module up
    spec.loader.exec_module(parser)
    losses, right = parser.train(parser.TOY, steps=40)
    assert losses[-1] < 0.05 * losses[0]
    assert right > 0.95
