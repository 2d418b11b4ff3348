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
    "every size, several roots": np.array(
        [
            [0, 8.606673271188504e-201, -6.874275327281032e188, -1.090878678965214e-264, -2.085038252921444e134],
            [0, 0, 2.9333219357138067e298, 7.520398677381752e189, -2.7122649168365964e91],
            [0, 1.1911686694808144e99, 0, 5.014449140434827e185, 3.99564420396824e104],
            [0, 5.3962609149778e111, -1.1036651140639192e-107, 0, 1.3697644658770708e165],
            [0, -4.681605477023218e36, 3.8213479517071145e208, -8.139197655146198e130, 0],
        ]
    ),
    "every size, the best tree crosses": np.array(
        [
            [0, -1.2683637566781557e-120, 4.664983229926464e74, -5.474864086678815e296],
            [0, 0, 2.465188392854402e198, -4.960618006307573e189],
            [0, -7.817891911519819e76, 0, 1.8224841047725553e-29],
            [0, 1.5873553182838024e146, -3.7780399762917037e84, 0],
        ]
    ),
    "two small scores far below a large one of a crossing tree": np.array(
        [
            [0, -8.633884381473617e91, 2.4752314005391443e109, -9.416538033880441e-150, -8.929492163731229e-229],
            [0, 0, -2.0028836659817983e114, 5.549698067771468e-07, 6.615090181149252e31],
            [0, -1.437532394674566e183, 0, -3.2254889950932773e267, -2.842777078413748e-123],
            [0, -3.5581670461461146e-158, 2.6000848580741963e-128, 0, 1.6922546215875266e96],
            [0, -1.1852913093608718e55, -6.038081099954008e-30, 6.745568059539072e264, 0],
        ]
    ),
    "masks of four sizes that projective trees cannot avoid": np.array(
        [
            [0, 1.765799880027771, -1e9, 0.8078755140304565, -0.05965639650821686],
            [0, 0, -1.0000000150474662e30, -1999999991808.0, 0.12032190710306168],
            [0, -np.inf, 0, -1.0000000150474662e30, -1e9],
            [0, -1e9, -999999995904.0, 0, -0.8852269053459167],
            [0, -0.4349421262741089, -np.inf, -1e9, 0],
        ]
    ),
    "a mask once or twice on every edge": np.array(
        [[0, -2e9, -1e9, -1e9], [0, 0, -2e9, -1e9], [0, -2e9, 0, -2e9], [0, -2e9, -2e9, 0]]
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
