"""Doubles for every test here, and none outside of them."""

import pytest

jax = pytest.importorskip("jax")


def doubles(wanted=True):
    """Whether JAX has them, for a while."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(wanted)
    from jax.experimental import enable_x64  # jax 0.6

    return enable_x64(wanted)


@pytest.fixture(autouse=True)
def _doubles():
    with doubles():
        yield


@pytest.fixture
def no_doubles():
    with doubles(False):
        yield
