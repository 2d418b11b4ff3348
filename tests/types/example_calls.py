"""Calls as users write them, and the types an editor should show. Checked by mypy and pyright, never run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from typing_extensions import assert_type

import spantree

Floats = npt.NDArray[np.floating[Any]]
Ints = npt.NDArray[np.int64]
Tree = spantree.Trees[Ints, Floats]

scores = np.zeros((2, 4, 4), np.float32)
labelled_scores = np.zeros((2, 4, 4, 3))
sentences: list[npt.NDArray[np.float64]] = [np.zeros((3, 3)), np.zeros((2, 2))]
labelled_sentences: list[npt.NDArray[np.float64]] = [np.zeros((3, 3, 2)), np.zeros((2, 2, 2))]
numbers: list[list[float]] = [[0, 1.0], [0, 0]]

dist = spantree.TreeDistribution(scores, lengths=[3, 2], root="multi", temperature=2.0, words=None)
assert_type(dist, spantree.TreeDistribution[Floats, Ints, Ints])
assert_type(dist.argmax(), Ints)
assert_type(dist.mode, Ints)
assert_type(dist.max(), Floats)
assert_type(dist.max(with_grad=True), tuple[Floats, Floats])
assert_type(dist.topk(3), Tree)
assert_type(dist.topk(3).scores, Floats)
assert_type(dist.score(dist.argmax()), Floats)
assert_type(dist.log_prob(dist.argmax(), with_grad=True), tuple[Floats, Floats])
assert_type(dist.log_prob(dist.argmax(), partial=True), Floats)
assert_type(dist.log_partition(), Floats)
assert_type(dist.log_partition(with_grad=True), tuple[Floats, Floats])
assert_type(dist.marginals(), Floats)
assert_type(dist.entropy(), Floats)
assert_type(dist.entropy(with_grad=True), tuple[Floats, Floats])
assert_type(dist.kl(dist), Floats)
assert_type(dist.kl(dist, with_grad=True), tuple[Floats, Floats])
assert_type(dist.kl(dist, with_grad="both"), tuple[Floats, Floats, Floats])
assert_type(dist.cross_entropy(dist, with_grad="both"), tuple[Floats, Floats, Floats])
assert_type(dist.renyi_entropy(2.0, with_grad=True), tuple[Floats, Floats])
assert_type(dist.norm(2.0), Floats)
assert_type(dist.expectation(scores), Floats)
assert_type(dist.expectation(scores, with_grad=True), tuple[Floats, Floats])
assert_type(dist.product_expectation(scores), Floats)
assert_type(dist.covariance(scores, "edges"), Floats)
assert_type(dist.second_moment(scores, scores), Floats)
assert_type(dist.expected_attachment(dist.argmax()), Floats)
assert_type(dist.risk(dist.argmax(), with_grad=True), tuple[Floats, Floats])
assert_type(dist.generalized_expectation(scores, 1.0), Floats)
assert_type(dist.mbr(), Ints)
assert_type(dist.sample(3, rng=0), Ints)
assert_type(dist.sample_without_replacement(3, rng=0), spantree.Sample[Ints, Floats])
assert_type(dist.sample_without_replacement(3, rng=0).estimate([1.0, 2.0, 3.0]), Floats)
assert_type(dist.condition(include=(0, 1)), spantree.TreeDistribution[Floats, Ints, Ints])
assert_type(dist.complete(dist.argmax()), tuple[Ints, Floats])
assert_type(dist.confidence(), spantree.Confidence[Ints, Floats])
assert_type(dist.confidence().runners_up, Ints)
assert_type(dist.explain(), str | list[str])
assert_type(dist.scores, Floats)
assert_type(dist.lengths, Ints)
assert_type(dist.batch_shape, tuple[int, ...])
assert_type(dist[0], spantree.TreeDistribution[Floats, Ints, Ints])
assert_type(next(dist[0].iter_best()).heads, Ints)
assert_type(next(iter(dist)).argmax(), Ints)

labelled = spantree.TreeDistribution(labelled_scores, labelled=True, labels=["a", "b", "c"], root_label="a")
assert_type(labelled, spantree.TreeDistribution[Floats, Ints, Tree])
assert_type(labelled.argmax(at_most_one=[{"b", "c"}]), Tree)
assert_type(labelled.sample(), Tree)
assert_type(labelled.topk(2, at_most_one=[{1}]).labels, Ints)

listed = spantree.TreeDistribution(sentences)
assert_type(listed.argmax(), list[Ints])
assert_type(listed.entropy(with_grad=True), tuple[list[Floats], list[Floats]])
assert_type(listed.topk(2).heads, list[Ints])
assert_type(listed[0].argmax(), Ints)
assert_type(listed[1:].argmax(), list[Ints])
assert_type(next(iter(listed)).entropy(), Floats)
assert_type(spantree.TreeDistribution(labelled_sentences, labelled=True)[0].argmax(), Tree)
assert_type(
    spantree.TreeDistribution(labelled_sentences, labelled=True).argmax(),
    spantree.Trees[list[Ints], list[Floats]],
)

assert_type(spantree.decode(scores), Ints)
assert_type(spantree.decode(numbers), Ints)
assert_type(spantree.decode(sentences), list[Ints])
assert_type(spantree.decode(labelled_scores, labelled=True), Tree)
assert_type(spantree.marginals(scores, lengths=[3, 2], layout="dep_head"), Floats)
assert_type(spantree.marginals(sentences), list[Floats])
assert_type(spantree.log_partition(scores), Floats)
assert_type(spantree.entropy(sentences), list[Floats])
assert_type(spantree.log_prob(scores, dist.argmax()), Floats)
assert_type(spantree.topk(scores, 5), Tree)
assert_type(spantree.sample(scores, 5, rng=1), Ints)
assert_type(spantree.is_tree(dist.argmax()), npt.NDArray[np.bool_])
assert_type(spantree.is_tree(listed.argmax()), list[bool])
assert_type(spantree.heads_to_edges(listed.argmax()), list[Ints])
assert_type(spantree.fit_temperature(scores, dist.argmax()), float)
assert_type(spantree.calibration(scores, dist.argmax()).words.error, float)
assert_type(spantree.annotate(scores, k=2)["heads"], Ints)
assert_type(spantree.annotate(scores, k=2)["margin"], Floats)
assert_type(spantree.annotate(sentences, labelled=False)["log_odds"], list[Floats])
assert_type(spantree.annotate(sentences)["error"], list[str | None])
assert_type(spantree.complete(scores, dist.argmax()), tuple[Ints, Floats])
assert_type(spantree.complete(labelled_scores, dist.argmax(), labelled=True), tuple[Tree, Floats])
assert_type(spantree.complete(sentences, listed.argmax()), tuple[list[Ints], list[Floats]])
assert_type(spantree.explain_tree(listed.argmax()), list[str | None])
why = spantree.explain_tree(dist.argmax())
assert why is None or isinstance(why, (str, list))


def begins_with_the_root(heads: Ints) -> bool:
    return bool(heads[1] == 0)


best_first: Iterator[spantree.Trees[Ints, np.floating[Any]]] = dist[0].iter_best(where=begins_with_the_root)


def entropy_of(given: spantree.TreeDistribution) -> Floats:
    """A distribution without further ado is one over arrays, without labels."""
    return given.entropy()


assert_type(entropy_of(dist), Floats)
