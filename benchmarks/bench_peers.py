"""The README's figures: trees a second beside Stanza's and ufal's decoders; where SuPar's sums over trees go wrong.

`make bench` installs the peers; one that is not there is left out, and the table says so.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np

import spantree
from report import Report, best_times, finish, seeded

SENTENCES = 50
GOALS = {"Stanza": 100, "ufal,": 5}


def main() -> int:
    spantree.set_threads(1)
    warnings.simplefilter("ignore")  # the peers'
    return finish(*seeded(decoders, supar_at_scales))


def found(module: str, name: str) -> Callable[..., Any] | None:
    try:
        return getattr(import_module(module), name)
    except ImportError:
        return None


def decoders(rng: np.random.Generator) -> Report:
    """Log-probabilities of heads, as Stanza hands them to its decoder: on other scores an assertion of it fails."""
    report = Report(f"Best trees of {SENTENCES} sentences, log-probabilities [dependent, head], one thread, a sentence")
    peers = {
        "Stanza": ("stanza", found("stanza.models.common.chuliu_edmonds", "chuliu_edmonds_one_root")),
        "ufal, several roots": ("ufal.chu_liu_edmonds", found("ufal.chu_liu_edmonds", "chu_liu_edmonds")),
    }
    there = {f"{name} {version(package)}": decode for name, (package, decode) in peers.items() if decode is not None}
    for name, (_, decode) in peers.items():
        if decode is None:
            report.note(name, "not installed")
    for n in (20, 40):
        scores = 3 * rng.normal(size=(SENTENCES, n + 1, n + 1))
        scores -= np.logaddexp.reduce(scores, axis=-1, keepdims=True)
        ours, *theirs = best_times(
            lambda scores=scores: spantree.decode(scores, layout="dep_head"),
            *(lambda scores=scores, decode=decode: [decode(one) for one in scores.copy()] for decode in there.values()),
        )
        for name, seconds in zip(there, theirs, strict=True):
            report.faster(f"n = {n}, {name}", ours, seconds, GOALS[name.split()[0]], SENTENCES)
    return report


def supar_at_scales(_: np.random.Generator) -> Report:
    """Error of log Z, and the lowest "probability", over 100 sentences of 20 words."""
    report = Report("SuPar's MatrixTree on 100 sentences of 20 words, scores from N(0, scale²)")
    distribution = found("supar.structs", "MatrixTree")
    if distribution is None:
        report.note("supar", "not installed")
        return report
    import torch

    n = 20
    for dtype in (torch.float32, torch.float64):
        for scale in (1, 10, 20, 30, 50):
            rng = np.random.default_rng(0)
            scores = torch.tensor(scale * rng.normal(size=(100, n + 1, n + 1)), dtype=dtype)
            exact = spantree.log_partition(scores.double().numpy(), layout="dep_head")
            log_z, lowest, negative = [], 0.0, 0
            for one in scores.split(1):
                theirs = distribution(one.clone(), torch.tensor([n]))
                log_z.append(theirs.log_partition.item())
                marginals = theirs.marginals
                negative += bool((marginals < -1e-6).any())
                lowest = min(lowest, float(marginals.nan_to_num(0.0).min()))
            off = np.abs(np.array(log_z) - exact)
            lost = int((~np.isfinite(off)).sum())
            furthest = f"{off[np.isfinite(off)].max():.2g}" if lost < len(off) else "-"
            report.note(
                f"{str(dtype).removeprefix('torch.')}, scale {scale}",
                f"log Z off by {furthest} nats, lost for {lost}; marginals below 0 in {negative}, lowest {lowest:.2g}",
            )
    return report


if __name__ == "__main__":
    raise SystemExit(main())
