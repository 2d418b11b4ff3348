"""Exact inference over dependency trees and spanning arborescences.

>>> import numpy as np, spantree
>>> scores = np.array([[0, 7, 8, 7], [0, 0, 4, 1], [0, 5, 0, 6], [0, 3, 2, 0.0]])  # [head, dependent], 0 is ROOT
>>> spantree.decode(scores)
array([-1,  2,  0,  2])
>>> spantree.topk(scores, 2).scores
array([19., 17.])
"""

from typing import TYPE_CHECKING

from ._annotate import annotate
from ._confidence import Confidence
from ._constraints import SearchLimitError
from ._errors import InfeasibleError
from ._estimators import Sample
from ._oneliners import complete, decode, entropy, log_partition, log_prob, marginals, sample, topk
from ._read import ScoreTypeError
from ._threads import get_threads, set_threads
from ._trees import Trees
from .distribution import TreeDistribution
from .trees import edges_to_heads, explain_tree, heads_to_edges, is_projective, is_tree

__version__ = "0.2.0"

__all__ = [
    "Calibration",
    "Confidence",
    "InfeasibleError",
    "Reliability",
    "Sample",
    "ScoreTypeError",
    "SearchLimitError",
    "TreeDistribution",
    "Trees",
    "__version__",
    "annotate",
    "calibration",
    "complete",
    "decode",
    "edges_to_heads",
    "entropy",
    "explain_tree",
    "fit_temperature",
    "get_threads",
    "heads_to_edges",
    "is_projective",
    "is_tree",
    "log_partition",
    "log_prob",
    "marginals",
    "sample",
    "set_threads",
    "topk",
]

if TYPE_CHECKING:
    from ._calibration import Calibration, Reliability, calibration, fit_temperature
else:  # to type checkers, every name would be one of the package's

    def __getattr__(name: str) -> object:
        """Parts that need other libraries, or time, are imported by who asks for them: `spantree.torch` will do."""
        if name in ("arrow", "compat", "files", "jax", "torch", "zoo"):
            from importlib import import_module

            return import_module(f"spantree.{name}")
        if name in ("Calibration", "Reliability", "calibration", "fit_temperature"):
            from . import _calibration

            return getattr(_calibration, name)
        raise AttributeError(f"module 'spantree' has no attribute {name!r}")
