"""Where a sentence has no tree, every question names it and a word that cannot be attached."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import spantree
from oracle.battery import KINDS, arguments
from oracle.forms import FORMS
from oracle.sentence import Sentence
from oracle.trees import all_trees

BAD = 1  # which sentence has no tree


def batch_without_a_tree(labels, dtype):
    """Word 2 of the second sentence, and all words of the fourth, cannot be attached."""
    rng = np.random.default_rng(labels)
    shapes = [(n, n, labels) if labels else (n, n) for n in (4, 3, 2, 4)]
    matrices = [rng.normal(size=shape).astype(dtype) for shape in shapes]
    matrices[BAD][:, 2] = -np.inf
    matrices[3][...] = -np.inf
    return [Sentence(f"sentence {i}", scores) for i, scores in enumerate(matrices)]


def questions(dist, form, batch):
    values = form.edges([np.ones(sentence.scores.shape) for sentence in batch])
    heads = form.nodes([all_trees(sentence.words, "single", True)[0] for sentence in batch])
    gold = (heads, heads) if batch[0].labels else (heads,)
    yield from (dist.argmax, dist.max, dist.mbr, dist.marginals, dist.log_partition, dist.entropy)
    yield from (lambda: dist.topk(2), lambda: dist.sample(2, rng=0), lambda: dist.sample_without_replacement(2, rng=0))
    yield from (lambda: dist.log_prob(*gold), lambda: dist.kl(dist), lambda: dist.cross_entropy(dist))
    yield from (lambda: dist.renyi_entropy(2.0), lambda: dist.renyi_entropy(np.inf), lambda: dist.norm(2.0))
    yield from (lambda: dist.expectation(values), lambda: dist.product_expectation(values))
    yield from (lambda: dist.covariance(values, values), lambda: dist.second_moment(values, "edges"))
    yield from (lambda: dist.expected_attachment(*gold), lambda: dist.risk(*gold))
    yield lambda: dist.generalized_expectation(values, 0.0)
    yield lambda: dist.entropy(with_grad=True)


@pytest.mark.parametrize("labels", [0, 2])
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_every_question_names_the_sentence_and_a_word(form, labels):
    for kind in KINDS:
        everything = batch_without_a_tree(labels, np.float64)
        batch = next(batch for batch in form.batches(everything) if any(one is everything[BAD] for one in batch))
        at = [one is everything[BAD] for one in batch].index(True)
        given = arguments(form, batch, kind) | {"on_infeasible": "raise"}
        name = {"one": "the sentence", "two axes": r"sentence \(0, 1\)"}.get(form.kind, f"sentence {at}")
        dist = spantree.TreeDistribution(**given)
        one_liners = [partial(f, **given) for f in (spantree.decode, spantree.marginals, spantree.log_partition)]
        for ask in [*questions(dist, form, batch), *one_liners]:
            with pytest.raises(spantree.InfeasibleError, match=name) as caught:
                ask()
            assert caught.value.sentence == at
            assert caught.value.word == 2, "the only word that cannot be attached"
            assert "word 2" in str(caught.value)
