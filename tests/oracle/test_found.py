"""Scores that the search has found wrong answers for, each asked everything."""

from __future__ import annotations

import numpy as np
import pytest

from oracle import quantities
from oracle.battery import KINDS, failures
from oracle.forms import FORMS
from oracle.sentence import Sentence

M = 3.4028234663852886e38
FOUND = {
    "one edge with twice the mask, or two with it once": np.array(
        [[0, -M, -1.16, -0.7, -M], [0, 0, -M, -M, 0.4], [0, -M, 0, -M, -M], [0, -M, -M, 0, -M], [0, -1.7, -M, -M, 0]]
    ),
    "halves of a mask": np.array(
        [[0, -0.68, 0.5, -1e300], [0, 0, -1e300, -5e299], [0, -5e299, 0, -1e300], [0, 0.6, -1e300, 0]]
    ),
    "three sizes": np.array([[0, 1e16, -0.04, -1e16], [0, 0, -1e16, 1e16], [0, 0.33, 0, 1e30], [0, 0.57, 1e30, 0]]),
}


@pytest.mark.parametrize("name", FOUND)
def test_every_answer_is_that_of_enumeration(name):
    questions = [question for group in quantities.GROUPS.values() for question in group]
    wrong = [
        failure
        for kind in KINDS
        for scores in (FOUND[name], FOUND[name][..., np.newaxis])
        for failure in failures(questions, [Sentence(name, scores)], kind, FORMS[:1])
    ]
    assert not wrong, f"{len(wrong)} wrong answers, the first of them:\n" + "\n".join(map(str, wrong[:5]))
