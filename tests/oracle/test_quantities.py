"""Every quantity x form x layout x root x labelled x projective x dtype x hostile structure, against enumeration.

A test is one group of questions about one group of structures. Each combination of labels, dtype, root and projectivity
meets some of the forms, so that all of them are met; ordinary scores and hard masks meet every form.
"""

from __future__ import annotations

import itertools

import pytest

from oracle import quantities, structures
from oracle.battery import DTYPES, KINDS, LABELS, failures, sentences
from oracle.forms import FORMS

EVERY_FORM = ("ordinary", "no tree")


@pytest.mark.parametrize("group", quantities.GROUPS)
@pytest.mark.parametrize("structure", structures.GROUPS)
def test_every_answer_is_that_of_enumeration(structure, group):
    wrong = []
    for i, (labels, dtype, kind) in enumerate(itertools.product(LABELS, DTYPES, KINDS)):
        each = (len(FORMS) if structure in EVERY_FORM else 2) if group != "second moments" else 1
        forms = [FORMS[(i + 5 * j) % len(FORMS)] for j in range(each)]
        wrong += failures(quantities.GROUPS[group], sentences(structure, labels, dtype), kind, forms)
    assert not wrong, f"{len(wrong)} wrong answers, the first of them:\n" + "\n".join(map(str, wrong[:5]))
