"""The page about JAX runs."""

import doctest
from pathlib import Path


def test_the_page_runs(no_doubles):
    failed, tried = doctest.testfile(str(Path(__file__).parents[2] / "docs" / "jax.md"), module_relative=False)
    assert failed == 0
    assert tried > 0
