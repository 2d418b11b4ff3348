"""Pictures and measured figures of README and site, made by the library: ``make docs`` and ``make figures`` call it.

parse.svg        the README's picture
elimination.svg  how a word is taken out of a sentence of three (how_it_works.md)
digits.svg       what subtraction costs: errors of an inverse beside ours, by the spread of scores (how_it_works.md)
README.md        what stands between "<!-- measured: NAME -->" and "<!-- end -->", from performance.json
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

import spantree
from spantree.samples import load_samples
from spantree.view import tree_svg

DOCS = Path(__file__).parent
FIGURES = DOCS / "figures"
LABELS = ["nsubj", "root", "det", "obj", "case", "det", "obl"]


def main() -> None:
    mpl.rcParams |= {"svg.hashsalt": "spantree", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    sample = load_samples()[0]
    dist = spantree.TreeDistribution(sample.scores)
    picture = tree_svg(sample.words, dist.argmax(), LABELS, marginals=dist.marginals(), threshold=0.09)
    (FIGURES / "parse.svg").write_text(picture + "\n", encoding="utf-8")
    save(elimination(), "elimination.svg")
    save(digits(), "digits.svg")
    fill_readme()


def save(figure: plt.Figure, name: str) -> None:
    figure.savefig(FIGURES / name, metadata={"Date": None}, bbox_inches="tight")
    plt.close(figure)


def elimination() -> plt.Figure:
    """Weights of edges before and after word 3 is eliminated: every path through it becomes part of an edge."""
    w = {(0, 1): 2, (0, 2): 1, (0, 3): 3, (1, 2): 4, (2, 1): 1, (1, 3): 2, (3, 1): 6, (2, 3): 1, (3, 2): 3}
    total = sum(weight for (_, dep), weight in w.items() if dep == 3)
    after = {(h, d): w[h, d] + w[h, 3] * w[3, d] / total for (h, d) in w if 3 not in (h, d)}
    places = {0: (0.5, 1.0), 1: (0.0, 0.45), 2: (1.0, 0.45), 3: (0.5, 0.0)}
    figure, sides = plt.subplots(1, 2, figsize=(8, 3.4))
    for axes, weights, title in zip(sides, (w, after), ("before", "after word 3 is eliminated"), strict=True):
        axes.set(xlim=(-0.25, 1.25), ylim=(-0.15, 1.15), title=title)
        axes.axis("off")
        for node in sorted({node for edge in weights for node in edge}):
            name = "ROOT" if node == 0 else str(node)
            round_box = {"boxstyle": "round", "facecolor": "white", "edgecolor": "black"}
            axes.text(*places[node], name, ha="center", va="center", bbox=round_box, zorder=3)
        for (head, dep), weight in weights.items():
            style = {
                "arrowstyle": "-|>",
                "connectionstyle": "arc3,rad=0.15",
                "shrinkA": 14,
                "shrinkB": 14,
                "color": "0.35",
            }
            axes.annotate("", places[dep], places[head], arrowprops=style)
            (x0, y0), (x1, y1) = places[head], places[dep]
            x, y = 0.6 * x0 + 0.4 * x1 + 0.09 * (y1 - y0), 0.6 * y0 + 0.4 * y1 - 0.09 * (x1 - x0)
            axes.text(x, y, f"{weight:g}", ha="center", va="center", fontsize=8, color="#c8641c")
    return figure


def digits() -> plt.Figure:
    """Largest relative error of a marginal over 20 sentences of 10 words, against arithmetic with many digits."""
    from spantree.experiments.many_digits import many_digit_reference

    scales = [1, 3, 5, 10, 15, 20, 30, 40, 50]
    ours, theirs = [], []
    for scale in scales:
        rng = np.random.default_rng(scale)
        errors = []
        for _ in range(20):
            scores = scale * rng.normal(size=(11, 11))
            _, exact = many_digit_reference(scores, "multi")
            seen = exact > 1e-12  # of edges that anybody would ask for
            errors.append([relative(found[seen], exact[seen]) for found in by_both(scores)])
        ours.append(max(error[0] for error in errors))
        theirs.append(max(error[1] for error in errors))
    figure, axes = plt.subplots(figsize=(6, 3))
    axes.semilogy(scales, theirs, "o-", color="#c8641c", label="inverse of the Laplacian (numpy.linalg.inv)")
    axes.semilogy(scales, np.maximum(ours, 1e-17), "s-", color="#8860d0", label="spantree")
    axes.axhline(1, color="0.6", linewidth=0.8, linestyle=":")
    axes.set(xlabel="standard deviation of the scores", ylabel="largest relative error", ylim=(1e-17, None))
    axes.legend(frameon=False)
    return figure


def by_both(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Marginals, several roots allowed: by spantree, and by inverting the Laplacian in the same precision."""
    weights = np.exp(scores - scores[:, 1:].max())
    np.fill_diagonal(weights, 0.0)
    laplacian = np.diag(weights[:, 1:].sum(axis=0)) - weights[1:, 1:]
    try:
        inverse = np.linalg.inv(laplacian)
    except np.linalg.LinAlgError:
        inverse = np.full(laplacian.shape, np.inf)
    marginals = np.zeros_like(scores)
    diagonal = np.diag(inverse)
    marginals[0, 1:] = weights[0, 1:] * diagonal
    marginals[1:, 1:] = weights[1:, 1:] * (diagonal - inverse.T)
    return spantree.marginals(scores, root="multi"), marginals


def relative(found: np.ndarray, exact: np.ndarray) -> float:
    with np.errstate(all="ignore"):
        return float(np.nan_to_num(np.abs(found / exact - 1), nan=1e9, posinf=1e9).max())


def fill_readme() -> None:
    """Puts what `make figures` measured into the README."""
    measured = json.loads((DOCS / "performance.json").read_text(encoding="utf-8"))
    path = DOCS.parent / "README.md"
    text = path.read_text(encoding="utf-8")
    for name, block in {"speed": speed(measured), "supar": supar(measured), "table": table(measured)}.items():
        text, count = re.subn(
            rf"(<!-- measured: {name} -->\n).*?(<!-- end -->)",
            lambda m, b=block: m[1] + b + "\n" + m[2],
            text,
            flags=re.DOTALL,
        )
        if count != 1:
            raise ValueError(f"README.md has no place for {name}")
    path.write_text(text, encoding="utf-8")


def row(measured: dict, what: str) -> list[str]:
    """The line of a table that begins with `what`."""
    rows = [row for table in measured["tables"] for row in table["rows"] if row[0].startswith(what)]
    if not rows:
        raise ValueError(f"nothing was measured about {what}")
    return rows[0]


def seconds(text: str) -> float:
    value, unit = text.split()
    return float(value) * {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[unit]


def a_second(text: str) -> str:
    """A time for one tree as a number of trees, two digits."""
    rate = 1 / seconds(text)
    digits = 1 - int(np.floor(np.log10(rate)))
    return f"{round(rate, digits):,.0f}"


def speed(measured: dict) -> str:
    ours, stanza = row(measured, "n = 20, Stanza")[1].split(" : ")
    ufal = row(measured, "n = 20, ufal")[1].split(" : ")[1]
    return (
        f"**{a_second(ours)} trees a second** (20 words, one thread). In the same run, from the same scores, Stanza's "
        f"decoder makes {a_second(stanza)}, and ufal's {a_second(ufal)} with any roots. `make bench` measures it."
    )


def supar(measured: dict) -> str:
    at_50 = {kind: row(measured, f"{kind}, scale 50")[1] for kind in ("float32", "float64")}
    off, lost = re.search(r"off by (\S+) nats, lost for (\d+)", at_50["float64"]).groups()
    negative, lowest = re.search(r"below 0 in (\d+), lowest (\S+)", at_50["float64"]).groups()
    lost32 = re.search(r"lost for (\d+)", at_50["float32"])[1]
    also = f", and not finite for {lost} of 100 sentences" if int(lost) else ""
    return (
        f"**Probabilities stay probabilities.** Confident scores are far apart. At a standard deviation of 50, "
        f"SuPar's `MatrixTree` (100 sentences of 20 words, float64) has log Z off by up to {off} nats{also}, and "
        f"marginals below zero in {negative} of them, down to {lowest}; in float32, {lost32} of 100 are NaN. Here "
        f"every probability keeps its digits, because nothing is ever subtracted."
    )


TABLE = {
    "random, n = 40": "best tree with one root, random scores, 40 words, against ufal.chu_liu_edmonds",
    "log Z, n = 20, against slogdet": "log Z, 20 words, against batched `numpy.linalg.slogdet`, matrices for free",
    "marginals, n = 20": "marginals, 20 words, against `slogdet` and `inv`",
    "3 best, several roots, against networkx": "3 best trees of 40 words, against networkx's `ArborescenceIterator`",
}


def table(measured: dict) -> str:
    lines = [
        f"Measured by `make bench` ({measured['machine']}), one thread:",
        "",
        "| | ours : theirs | faster |",
        "|---|---|---|",
    ]
    for what, text in TABLE.items():
        _, both, ratio, _, _ = row(measured, what)
        lines.append(f"| {text} | {both} | {float(ratio):,.{0 if float(ratio) >= 100 else 1}f}x |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
