"""The C++ library's entries, which PyTorch and JAX call, on every structure: against enumeration."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest

from library.entries import Asked
from library.entries import entries as core
from oracle import quantities, structures
from oracle.battery import KINDS, LABELS, sentences
from oracle.law import BITS

expect = {question.name: question.expect for group in quantities.GROUPS.values() for question in group}


def entry_answers(sentence, kind):
    """(what was asked, the answer, what it must be) of one sentence that has trees."""
    law = sentence.law(kind.root, kind.projective)
    asked = partial(Asked, root=kind.root, projective=kind.projective, labelled=bool(sentence.labels))
    p, q = asked(_batch(sentence.scores)), asked(_batch(sentence.other))

    log_z, marginals = p.marginals()
    yield from zip(itertools.repeat("marginals"), (log_z[0], marginals[0]), expect["log_partition"](sentence, kind))

    trees, labels = (np.ascontiguousarray(part[:, np.newaxis]) for part in sentence.trees)
    log_probs = p.log_prob(trees, labels if sentence.labels else None)[:, 0]
    yield "log_prob", log_probs, *expect["log_prob"](sentence, kind)

    one, label = (np.ascontiguousarray(part[np.newaxis]) for part in sentence.one_tree)
    (loss,), (gradient,) = p.crf_loss(one, label if sentence.labels else None)
    value, slope = expect["log_prob of one"](sentence, kind)
    yield "crf_loss", -loss, value
    yield "crf_loss, gradient", -gradient, slope

    known, label = (np.ascontiguousarray(part[np.newaxis]) for part in sentence.partial)
    (loss,), (gradient,) = p.crf_loss(known, label if sentence.labels else None)
    value, slope = expect["log_prob of a partial tree"](sentence, kind)
    yield "crf_loss of a partial tree", -loss, value
    yield "crf_loss of a partial tree, gradient", -gradient, slope

    value, gradient = p.entropy()
    yield from zip(itertools.repeat("entropy"), (value[0], gradient[0]), expect["entropy"](sentence, kind))
    for name, entry in (("kl", core.kl), ("cross_entropy", core.cross_entropy)):
        answers = (answer[0] for answer in p.compare(q, entry))
        yield from zip(itertools.repeat(name), answers, expect[f"{name} with both gradients"](sentence, kind))

    g = np.nan_to_num(sentence.values)
    u = np.nan_to_num(sentence.features[..., 0])
    yield "hessian", p.hessian(g[np.newaxis, np.newaxis])[0, 0], expect["expectation"](sentence, kind)[1]
    third = p.third(u[np.newaxis, np.newaxis], g[np.newaxis, np.newaxis])[0, 0]
    yield "third", third, _third(law, u, g)


def _batch(scores):
    return np.ascontiguousarray(scores[np.newaxis])


def _third(law, u, g):
    """The covariance of every edge with the product of two sums over the tree, each less its mean."""
    of_u, of_g = (quantities._total(law, values)[0] for values in (u, g))
    off_u, off_g = of_u - law.mean(of_u), of_g - law.mean(of_g)
    return quantities._edges(law.slope(off_u * off_g >> BITS), law.words * np.abs(u).max() * np.abs(g).max(), law)


@pytest.mark.parametrize("structure", structures.GROUPS)
def test_every_answer_is_that_of_enumeration(structure):
    wrong = []
    for labels, kind in itertools.product(LABELS, KINDS):
        for sentence in sentences(structure, labels, np.float64):
            if not sentence.words or not sentence.law(kind.root, kind.projective).feasible:
                continue
            for name, answer, wanted in entry_answers(sentence, kind):
                complaint = wanted.complaint(np.asarray(answer), np.dtype(np.float64))
                if complaint:
                    wrong.append(f"{name} ({kind}; {sentence.name}): {complaint}\n{sentence.scores!r}")
    assert not wrong, f"{len(wrong)} wrong answers, the first of them:\n" + "\n".join(wrong[:5])
