"""`decode`, `marginals` and the other functions answer as enumeration does, in every form, whatever the structure."""

from __future__ import annotations

import itertools

import pytest

import spantree
from oracle import quantities, structures
from oracle.battery import DTYPES, KINDS, LABELS, _complaints, arguments, sentences
from oracle.forms import FORMS

NAMES = ["argmax", "topk(5)", "marginals", "log_partition", "entropy", "log_prob"]
QUESTIONS = [q for group in quantities.GROUPS.values() for q in group if q.name in NAMES]


class OneLiners:
    """Asked like a distribution; every answer is a call of its own."""

    def __init__(self, arguments):
        self.arguments = arguments

    def argmax(self):
        return spantree.decode(**self.arguments)

    def topk(self, k):
        return spantree.topk(k=k, **self.arguments)

    def marginals(self):
        return spantree.marginals(**self.arguments)

    def log_partition(self):
        return spantree.log_partition(**self.arguments)

    def entropy(self):
        return spantree.entropy(**self.arguments)

    def log_prob(self, heads, labels=None):
        return spantree.log_prob(heads=heads, labels=labels, **self.arguments)


@pytest.mark.parametrize("structure", structures.GROUPS)
def test_one_liners_answer_as_enumeration_does(structure):
    wrong = []
    for i, (labels, dtype, kind) in enumerate(itertools.product(LABELS, DTYPES, KINDS)):
        form = FORMS[(2 * i) % len(FORMS)]
        for batch in form.batches(sentences(structure, labels, dtype)):
            asked = OneLiners(arguments(form, batch, kind))
            for question in QUESTIONS:
                for sentence, complaint in _complaints(question, asked, form, batch, kind):
                    wrong.append(f"{question.name} ({kind}; {form}): {complaint}\n{sentence.scores!r}")
    assert not wrong, f"{len(wrong)} wrong answers, the first of them:\n" + "\n".join(wrong[:5])
