"""The core's handlers made known to JAX, once it is certain that this JAX understands them."""

from __future__ import annotations

import re
from pathlib import Path

import jax

from .. import _core


def target(handler: str) -> str:
    """The name of a handler in programs."""
    return f"spantree_{handler}"


def _version_of_jax() -> tuple[int, int]:
    header = (Path(jax.ffi.include_dir()) / "xla" / "ffi" / "api" / "c_api.h").read_text()
    major, minor = (re.search(rf"#define XLA_FFI_API_{part} (\d+)", header) for part in ("MAJOR", "MINOR"))
    assert major is not None
    assert minor is not None
    return int(major[1]), int(minor[1])


def register() -> None:
    """Raises ImportError if there are no handlers, or if they are newer than this JAX.

    A handler that is too new would take down JAX's whole CPU backend, so their versions are compared first.
    """
    if not _core.xla_handlers:
        raise ImportError(
            "this spantree was built without JAX: SPANTREE_JAX=1 pip install --force-reinstall 'spantree[jax]'"
        )
    ours, theirs = _core.xla_ffi_version, _version_of_jax()
    if ours > theirs:
        raise ImportError(
            f"this spantree was built for version {ours[0]}.{ours[1]} of XLA's foreign function interface, and jax "
            f"{jax.__version__} has {theirs[0]}.{theirs[1]}: upgrade jax, or build spantree with SPANTREE_JAX=1"
        )
    for handler, capsule in _core.xla_handlers.items():
        jax.ffi.register_ffi_target(target(handler), capsule, platform="cpu")
