"""Docstrings that both front ends share, told to users of JAX in JAX's names.

They are written with PyTorch's, and with those functions alone that JAX has too.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T", bound=type)


def in_jax(text: str | None) -> str:
    """An example, for users of JAX."""
    text = (text or "").replace("import torch, spantree.torch", "import jax.numpy as jnp, spantree.jax")
    return text.replace("spantree.torch", "spantree.jax").replace("torch.", "jnp.")


def told_in_jax(cls: T) -> T:
    """The class with methods of its own for those of its bases that have an example."""
    for base in cls.__mro__[1:]:
        for name, method in vars(base).items():
            if isinstance(method, types.FunctionType) and "spantree.torch" in (method.__doc__ or ""):
                setattr(cls, name, _own(method))
    return cls


def _own(method: types.FunctionType) -> Callable[..., Any]:
    @functools.wraps(method)
    def own(*args: Any, **kwargs: Any) -> Any:
        return method(*args, **kwargs)

    own.__doc__ = in_jax(method.__doc__)
    return own
