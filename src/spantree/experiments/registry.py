"""The experiments by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from . import (
    efficient_sampling,
    expectations,
    numerics,
    please_mind_the_root,
    root_of_a_problem,
    unbiased_sampling,
)
from .lab import Lab
from .report import Section


@dataclass(frozen=True)
class Experiment:
    """One paper's experiments, or part of them."""

    summary: str
    conduct: Callable[[Lab], list[Section]]
    needs_scores: bool = False
    """Whether there is nothing to do without trained scores."""


EXPERIMENTS = {
    "please-mind-the-root": Experiment(
        "malformed trees and what the root constraint changes, by treebank", please_mind_the_root.conduct, True
    ),
    "root-of-a-problem": Experiment(
        "root edges of unconstrained trees; times of single-root decoders", root_of_a_problem.conduct
    ),
    "expectations": Experiment("entropy and GE gradients, old ways and new, by treebank", expectations.conduct, True),
    "efficient-sampling": Experiment("times of walks and of ancestral sampling by size", efficient_sampling.conduct),
    "unbiased-sampling": Experiment("bias, times and tries of samplers with one root", unbiased_sampling.conduct),
    "numerics": Experiment("errors by score scale: LU and the solve of this library", numerics.conduct),
}
