"""A longer search than the tests make: every question, structure, kind and form, seed after seed.

``python -m oracle.search --seeds 0:5 --questions entropies --structures "soft words"``

prints the failures that are alike together (same question, same structures), the smallest of them as a program to run.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable

import numpy as np

from oracle import quantities, structures
from oracle.battery import DTYPES, KINDS, LABELS, Failure, failures, sentences
from oracle.forms import FORMS


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0:3", help="first:last, the last left out")
    parser.add_argument("--questions", choices=quantities.GROUPS, action="append")
    parser.add_argument("--structures", choices=structures.GROUPS, action="append")
    parser.add_argument("--forms", type=int, default=len(FORMS), help="how many of them for each seed")
    options = parser.parse_args(arguments)
    first, last = (int(part) for part in options.seeds.split(":"))
    found = False
    for seed in range(first, last):
        for structure in options.structures or structures.GROUPS:
            for group in options.questions or quantities.GROUPS:
                alike = search(group, structure, seed, options.forms)
                total = sum(map(len, alike.values()))
                print(f"seed {seed}, {structure}, {group}: {total or 'no'} wrong answers", flush=True)
                for members in alike.values():
                    found = True
                    print(report(members), flush=True)
    return int(found)


def search(group: str, structure: str, seed: int, forms: int) -> dict[str, list[Failure]]:
    """Failures of one group of questions on one group of structures, by question."""
    chosen = [FORMS[(seed + 5 * i) % len(FORMS)] for i in range(forms)]
    alike = defaultdict(list)
    for labels in LABELS:
        for dtype in DTYPES:
            for kind in KINDS:
                batch = sentences(structure, labels, dtype, seed)
                for failure in failures(quantities.GROUPS[group], batch, kind, chosen):
                    alike[failure.question].append(failure)
    return alike


def report(members: Iterable[Failure]) -> str:
    """How many, of which kinds, and the smallest."""
    members = sorted(members, key=lambda f: (f.sentence.scores.size, f.form.kind != "one", f.form.layout))
    kinds = Counter(
        (f.kind.root, "projective" if f.kind.projective else "", f.sentence.labels, f.sentence.scores.dtype.name)
        for f in members
    )
    shown = ", ".join(" ".join(str(part) for part in kind if part) for kind in list(kinds)[:4])
    shown += f" and {len(kinds) - 4} more kinds" if len(kinds) > 4 else ""
    worst = members[0]
    with np.printoptions(floatmode="unique", threshold=1000, linewidth=200):
        scores = f"np.array({np.where(structures.read(worst.sentence.scores), worst.sentence.scores, 0).tolist()}, np.{worst.sentence.scores.dtype})"  # noqa: E501
    options = f"root={worst.kind.root!r}, projective={worst.kind.projective}, labelled={bool(worst.sentence.labels)}"
    return (
        f"  {worst.question}: {len(members)} ({shown})\n"
        f"    from numpy import nan, inf; D = spantree.TreeDistribution({scores}, {options})\n"
        f"    {worst.question} ({worst.form}; {worst.sentence.name}): {worst.complaint}"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
