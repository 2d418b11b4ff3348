"""Trees in JAX: the same distribution, compiled, mapped and differentiated like any other function.

>>> import jax, jax.numpy as jnp, spantree.jax
>>> loss = jax.jit(lambda scores: spantree.jax.tree_crf_loss(scores, jnp.array([-1, 0, 1])))
>>> jax.grad(loss)(jnp.zeros((3, 3)))
Array([[ 0. , -0.5,  0.5],
       [ 0. ,  0. , -0.5],
       [ 0. ,  0.5,  0. ]], dtype=float32)
"""

try:
    import jax as _jax  # noqa: F401
except ImportError as error:
    raise ImportError("spantree.jax needs JAX: pip install 'spantree[jax]'") from error

from . import _ffi

_ffi.register()

from .distribution import TreeDistribution  # noqa: E402
from .losses import (  # noqa: E402
    distillation_loss,
    entropy_loss,
    generalized_expectation_loss,
    hinge_loss,
    risk_loss,
    tree_crf_loss,
)
from .samples import Sample  # noqa: E402

__all__ = [
    "Sample",
    "TreeDistribution",
    "distillation_loss",
    "entropy_loss",
    "generalized_expectation_loss",
    "hinge_loss",
    "risk_loss",
    "tree_crf_loss",
]
