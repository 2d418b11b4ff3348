"""PyTorch: the CRF loss against log-determinants, decoding against parsers' own decoders, and what a call costs.

Peers that drag a parser with them are not among the requirements; the report says how to have their rows too.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import spantree
import torch
from report import Report, best_times, finish
from spantree._core import entries
from spantree.torch import TreeDistribution, tree_crf_loss
from torch import Tensor

SENTENCES = 32


def main() -> int:
    spantree.set_threads(1)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    return finish(losses, labelled_losses, decoding, overhead)


def step(loss: Callable[[], Tensor], scores: Tensor) -> None:
    """Forward and backward."""
    scores.grad = None
    loss().backward()


def slogdet_loss(scores: Tensor, heads: Tensor) -> Tensor:
    """Log-determinant of the Laplacian whose first row are the root weights (Koo et al. 2007), in double precision."""
    scores = scores.double()
    weights = scores[:, :, 1:].exp()
    words = weights[:, 1:] * (1.0 - torch.eye(weights.shape[-1], dtype=torch.float64))
    laplacian = torch.diag_embed(words.sum(1)) - words
    laplacian = torch.cat([weights[:, :1], laplacian[:, 1:]], 1)
    return (torch.linalg.slogdet(laplacian).logabsdet - edge_scores(scores, heads)).mean()


def edge_scores(scores: Tensor, heads: Tensor) -> Tensor:
    """The score of each sentence's tree."""
    return scores[:, :, 1:].gather(1, heads[:, None, 1:]).sum((1, 2))


def torch_struct_loss(scores: Tensor, heads: Tensor) -> Tensor:
    """Root scores on the diagonal, no row for ROOT."""
    from torch_struct import NonProjectiveDependencyCRF

    potentials = scores[:, 1:, 1:] + 0.0
    potentials = potentials.diagonal_scatter(scores[:, 0, 1:], 0, 1, 2)
    log_z = NonProjectiveDependencyCRF(potentials, multiroot=False).partition
    return (log_z - edge_scores(scores, heads)).mean()


def installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def absent() -> str:
    """Which rows are missing, and how to get them."""
    names = [name for name in ("stanza", "supar", "torch_struct") if not installed(name)]
    return f"\nNo rows for {', '.join(names)}: pip install --no-deps {' '.join(names)}" if names else ""


def version(name: str) -> str:
    return f"{name} {importlib.metadata.version(name)}"


def gold_trees(n: int) -> Tensor:
    return TreeDistribution(torch.randn(SENTENCES, n + 1, n + 1)).sample()


def losses() -> Report:
    report = Report(
        f"Tree CRF loss, forward and backward, {SENTENCES} sentences, one thread; other side: the same loss with "
        f"torch.linalg.slogdet of torch {torch.__version__}, in float64"
    )
    for dtype in (torch.float32, torch.float64):
        for n in (20, 40):
            scores = torch.randn(SENTENCES, n + 1, n + 1, dtype=dtype, requires_grad=True)
            heads = gold_trees(n)
            sides = [
                lambda s=scores, h=heads: step(lambda: tree_crf_loss(s, h), s),
                lambda s=scores, h=heads: step(lambda: slogdet_loss(s, h), s),
            ]
            if installed("torch_struct"):
                sides.append(lambda s=scores, h=heads: step(lambda: torch_struct_loss(s, h), s))
            ours, slogdet, *struct = best_times(*sides, repeats=20)
            what = f"{str(dtype)[6:]}, n = {n}"
            report.faster(what, ours, slogdet, 3)
            for time in struct:
                report.faster(f"{what}, against {version('torch_struct')}", ours, time, 3.5)
    return report


def labelled_losses() -> Report:
    report = Report(f"The same with 40 labels, summed out by torch.logsumexp on the other side; {SENTENCES} sentences")
    for dtype in (torch.float32, torch.float64):
        for n in (20, 40):
            scores = torch.randn(SENTENCES, n + 1, n + 1, 40, dtype=dtype, requires_grad=True)
            heads = gold_trees(n)
            labels = torch.randint(0, 40, heads.shape)

            def of_edges(loss: Any, s: Tensor = scores, h: Tensor = heads, y: Tensor = labels) -> Tensor:
                """The loss of trees, and how much less likely the gold labels are than all of them."""
                edges = s.logsumexp(-1)
                rows = torch.arange(len(s))[:, None], h[:, 1:], torch.arange(1, s.shape[1]), y[:, 1:]
                return loss(edges, h) + (edge_scores(edges, h) - s[rows].sum(-1)).mean()

            sides = [
                lambda s=scores, h=heads, y=labels: step(lambda: tree_crf_loss(s, h, labels=y), s),
                lambda s=scores, f=of_edges: step(lambda: f(slogdet_loss), s),
            ]
            if installed("torch_struct"):
                sides.append(lambda s=scores, f=of_edges: step(lambda: f(torch_struct_loss), s))
            ours, slogdet, *struct = best_times(*sides, repeats=10)
            what = f"{str(dtype)[6:]}, n = {n}"
            report.faster(what, ours, slogdet, 3)
            for time in struct:
                report.faster(f"{what}, against {version('torch_struct')}", ours, time, 3.5)
    return report


def decoders() -> dict[str, Callable[[Tensor, Tensor], object]]:
    """Those that are installed: scores [dep, head] of a batch, and which nodes are words."""
    found: dict[str, Callable[[Tensor, Tensor], object]] = {}
    if installed("stanza"):
        stanza = module_of("stanza", "models.common.chuliu_edmonds")

        def by_stanza(scores: Tensor, words: Tensor) -> object:
            return [stanza.chuliu_edmonds_one_root(matrix.log_softmax(-1).numpy()) for matrix in scores]

        found[version("stanza")] = by_stanza
    if installed("supar"):
        mst = module_of("supar", "structs.fn").mst
        found[version("supar")] = lambda scores, words: mst(scores.clone(), words, multiroot=False)
    return found


def module_of(package: str, name: str) -> Any:
    """A module without running its packages' __init__, which import whole parsers."""
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    folder, full = Path(spec.origin).parent, package
    for part in ["", *name.split(".")[:-1], "utils"]:
        full = f"{package}.{part}" if part == "utils" else f"{full}.{part}" if part else package
        stub = types.ModuleType(full)
        stub.__path__ = [str(folder / Path(*full.split(".")[1:]))]
        sys.modules.setdefault(full, stub)
    return importlib.import_module(f"{package}.{name}")


def decoding() -> Report:
    report = Report(
        f"Best trees with one root of {SENTENCES} sentences in a tensor; other side: parsers' own decoders{absent()}"
    )
    peers = decoders()
    for n in (20, 40):
        scores = torch.randn(SENTENCES, n + 1, n + 1)
        words = torch.ones(SENTENCES, n + 1, dtype=torch.bool)
        words[:, 0] = False
        for name, decode in peers.items():
            ours, peer = best_times(
                lambda s=scores: TreeDistribution(s, layout="dep_head").argmax(),
                lambda s=scores, w=words, decode=decode: decode(s, w),
                repeats=5,
            )
            report.faster(f"n = {n}, against {name}", ours, peer, 50)
    return report


def overhead() -> Report:
    """Two words: the core's own work is half a microsecond, the rest is the way to it and back."""
    report = Report("What a call costs beyond the core's work, two words")
    scores = torch.randn(3, 3, dtype=torch.float64, requires_grad=True)
    heads = torch.tensor([-1, 0, 1])
    given = scores.detach()
    out, number = torch.empty(3, 3, dtype=torch.float64), torch.empty(1).double()
    view = entries.ScoresView(given.data_ptr(), True, 1, 3, 0, 9, 3, 1, 0)
    edges = entries.EdgesOut(out.data_ptr(), True, 9, 3, 1)
    options = entries.Options(True, False, 1)

    def core() -> None:
        entries.marginals(view, options, number.data_ptr(), edges)

    def forward() -> Tensor:
        return tree_crf_loss(scores, heads)

    def without_gradient() -> Tensor:
        return tree_crf_loss(given, heads)

    def log_partition() -> None:
        step(lambda: TreeDistribution(scores).log_partition(), scores)

    times = best_times(
        core,
        without_gradient,
        forward,
        lambda: step(forward, scores),
        log_partition,
        lambda: step(scores.sum, scores),
        repeats=30,
    )
    alone, no_gradient, there, back, distribution, torchs_own = times
    report.bound("tree_crf_loss, no gradient asked", 1e6 * (no_gradient - alone), 25, "us")
    report.bound("tree_crf_loss, forward", 1e6 * (there - alone), 25, "us")
    report.bound("tree_crf_loss, forward and backward", 1e6 * (back - alone), 100, "us")
    report.bound(
        "TreeDistribution(scores).log_partition(), forward and backward", 1e6 * (distribution - alone), 100, "us"
    )
    report.at_most("tree_crf_loss; other side: torch's scores.sum().backward()", back, torchs_own, 3)
    return report


if __name__ == "__main__":
    raise SystemExit(main())
