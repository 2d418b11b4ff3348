"""Unbiased samplers: their speed, the bias they cure, and what rejection costs.

Stanojevic (2022), "Unbiased and Efficient Sampling of Dependency Trees".
"""

from __future__ import annotations

from . import root_mass, sampling_bias, sampling_times
from .lab import Lab
from .report import Section


def conduct(lab: Lab) -> list[Section]:
    """Figures 1, 2, 3, 5 and 7, with JAX the CPU side of 4 and 6, with trained scores the tries on them."""
    sections = [
        sampling_bias.bias(lab),
        sampling_times.with_replacement(lab),
        sampling_times.without_replacement(lab),
        sampling_times.without_replacement_by_length(lab),
        *in_jax(lab),
        *root_mass.random_weights(lab),
    ]
    if lab.treebanks:
        sections.append(root_mass.trained_weights(lab))
    return sections


def in_jax(lab: Lab) -> list[Section]:
    """The section that needs JAX, and this library built for it; none without."""
    try:
        from . import beam_in_jax
    except ImportError:
        return []
    return [beam_in_jax.beam(lab)]
