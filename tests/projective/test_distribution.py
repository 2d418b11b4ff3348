"""`TreeDistribution(projective=True)`: the same methods, every form of input."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import spantree
from projective.reference import projective_trees, random_sentences, tree_scores


@pytest.mark.parametrize("root", ["single", "multi"])
def test_best_trees_of_padded_and_ragged_batches(root):
    sentences = list(random_sentences(51, 8, words=(2, 5, 3, 4)))
    padded = np.zeros((8, 6, 6))
    for row, scores in zip(padded, sentences, strict=True):
        row[: len(scores), : len(scores)] = np.nan_to_num(scores, posinf=0.0)
    lengths = np.array([len(scores) - 1 for scores in sentences])
    best = spantree.TreeDistribution(padded, lengths=lengths, root=root, projective=True)
    transposed = spantree.TreeDistribution(
        [scores.T for scores in sentences], root=root, projective=True, layout="dep_head"
    )
    heads, top = best.argmax(), transposed.topk(3)
    for i, scores in enumerate(sentences):
        trees = projective_trees(len(scores) - 1, root)
        order = np.argsort(-tree_scores(scores, trees))
        np.testing.assert_array_equal(heads[i, : len(scores)], trees[order[0]])
        assert (heads[i, len(scores) :] == -1).all()
        np.testing.assert_array_equal(top.heads[i][: len(order)], trees[order[:3]])


def test_iteration_and_scores():
    scores = next(random_sentences(52, 1, words=(4,)))
    dist = spantree.TreeDistribution(scores, projective=True)
    trees = list(dist.iter_best())
    assert len(trees) == len(projective_trees(4, "single"))
    assert all(a.scores >= b.scores for a, b in itertools.pairwise(trees))
    assert all(dist.score(tree.heads) == pytest.approx(float(tree.scores), rel=1e-14) for tree in trees)
    assert dist.score([-1, 3, 4, 0, 3]) == -np.inf  # a tree, but 4 -> 2 crosses 3 -> 1


def test_a_sentence_whose_only_trees_cross_has_none():
    scores = np.full((5, 5), -np.inf)
    scores[0, 3] = scores[3, 1] = scores[1, 4] = scores[3, 2] = 0.0
    assert spantree.decode(scores).tolist() == [-1, 3, 3, 0, 1]
    with pytest.raises(spantree.InfeasibleError, match="word 4"):
        spantree.decode(scores, projective=True)


def masked_padding():
    """Two words, and a third masked by -1e30 instead of being left out: what it adds is the same for every tree."""
    scores = np.full((4, 4), -1e30)
    scores[:3, :3] = [[0, 1, 2], [0, 0, 3], [0, 5, 0.0]]
    return scores


def test_a_masked_word_changes_no_quantity():
    """Against the list of trees of the words that count, each with every way to attach the masked one."""
    scores = masked_padding()
    dist = spantree.TreeDistribution(scores, projective=True)
    trees = projective_trees(3, "single")
    trees = trees[(trees[:, 3] != 0) & (trees[:, 1:3] != 3).all(axis=1)]
    logits = scores[trees[:, 1:3], [1, 2]].sum(axis=1)
    log_probs = logits - np.logaddexp.reduce(logits)
    probs = np.exp(log_probs)
    entropy = -(probs * log_probs).sum()
    assert dist.entropy() == pytest.approx(entropy, abs=1e-14)
    np.testing.assert_allclose(dist.log_prob(trees), log_probs, atol=1e-14)
    assert dist.log_prob(dist.argmax()) == pytest.approx(log_probs.max(), abs=1e-14)
    assert dist.kl(dist) == 0.0
    assert dist.cross_entropy(dist) == pytest.approx(entropy, abs=1e-14)
    flat = spantree.TreeDistribution(np.where(scores < -1e29, scores, 0.0), projective=True)
    assert dist.kl(flat) == pytest.approx(np.log(len(trees)) - entropy, abs=1e-14)
    assert dist.renyi_entropy(2) == pytest.approx(-np.log((probs**2).sum()), abs=1e-14)
    assert dist.renyi_entropy(np.inf) == pytest.approx(-log_probs.max(), abs=1e-14)
    assert dist.norm(2) == pytest.approx(np.sqrt((probs**2).sum()), abs=1e-14)
    assert dist.product_expectation(np.full((4, 4), 2.0)) == pytest.approx(8.0, rel=1e-14)
    assert dist.log_partition() == pytest.approx(-1e30)


def test_divergences_in_every_form():
    rng = np.random.default_rng(53)
    p, q = rng.normal(size=(2, 3, 5, 5, 2))
    p[1, 2, 3] = q[1, 2, 3] = -np.inf
    lengths = [4, 3, 2]
    make = spantree.TreeDistribution
    options = {"projective": True, "labelled": True}
    padded = make(p, lengths=lengths, **options), make(q, lengths=lengths, **options)
    ragged = [make([s[: n + 1, : n + 1] for s, n in zip(x, lengths, strict=True)], **options) for x in (p, q)]
    turned = [make(x.swapaxes(1, 2), lengths=lengths, layout="dep_head", **options) for x in (p, q)]
    value, gradient = padded[0].kl(padded[1], with_grad=True)
    np.testing.assert_array_equal(np.array(ragged[0].kl(ragged[1])), value)
    np.testing.assert_array_equal(turned[0].kl(turned[1]), value)
    np.testing.assert_array_equal(turned[0].kl(turned[1], with_grad=True)[1], gradient.swapaxes(1, 2))
    for i, n in enumerate(lengths):
        assert value[i] == pytest.approx(exact_kl(p[i, : n + 1, : n + 1], q[i, : n + 1, : n + 1]), abs=1e-13)
    step = 1e-6
    direction = rng.normal(size=p.shape)
    moved = [make(p + sign * step * direction, lengths=lengths, **options).kl(padded[1]) for sign in (1, -1)]
    slope = (np.where(np.isfinite(p), direction, 0.0) * gradient).sum(axis=(1, 2, 3))
    np.testing.assert_allclose((moved[0] - moved[1]) / (2 * step), slope, atol=1e-8)


def exact_kl(p, q):
    words = len(p) - 1
    trees = projective_trees(words, "single")
    edges = [(tree[1:], np.arange(1, words + 1), label) for tree in trees for label in all_labels(words, p.shape[2])]
    log_p, log_q = (np.array([scores[edge].sum() for edge in edges]) for scores in (p, q))
    possible = np.isfinite(log_p)
    log_p, log_q = log_p[possible], log_q[possible]
    log_p, log_q = log_p - np.logaddexp.reduce(log_p), log_q - np.logaddexp.reduce(log_q)
    return (np.exp(log_p) * (log_p - log_q)).sum()


def all_labels(words, labels):
    return np.array(list(itertools.product(range(labels), repeat=words)))


def test_covariances_of_several_features():
    rng = np.random.default_rng(54)
    scores = rng.normal(size=(2, 6, 6))
    scores[1, :, 3] = -np.inf  # the second sentence has no tree
    r, s = rng.normal(size=(2, 6, 6, 5)), rng.normal(size=(2, 6, 6, 7))
    dist = spantree.TreeDistribution(scores, projective=True, on_infeasible="mask")
    found = dist.covariance(r, s)
    assert found.shape == (2, 5, 7)
    assert np.isnan(found[1]).all()
    trees = projective_trees(5, "single")
    probs = np.exp(dist[0].log_prob(trees))
    deps = np.arange(1, 6)
    sums = [x[0][trees[:, 1:], deps].sum(axis=1) for x in (r, s)]
    centred = [x - probs @ x for x in sums]
    np.testing.assert_allclose(found[0], (probs[:, None] * centred[0]).T @ centred[1], atol=1e-13)
    values, gradients = dist.expectation(r, with_grad=True)
    np.testing.assert_allclose(values[0], probs @ sums[0], atol=1e-13)
    assert np.isnan(values[1]).all()
    assert (gradients[1] == 0).all()
    np.testing.assert_allclose(np.einsum("hdr,hds->rs", gradients[0], s[0]), found[0], atol=1e-13)


def test_draws_and_probabilities_do_not_depend_on_what_was_asked_before():
    rng = np.random.default_rng(55)
    for scale in (1.0, 30.0, 300.0):
        scores = scale * rng.normal(size=(3, 10, 10))
        fresh, asked = (spantree.TreeDistribution(scores, projective=True) for _ in range(2))
        asked.entropy(with_grad=True)
        np.testing.assert_array_equal(fresh.sample(20, rng=1), asked.sample(20, rng=1))
        np.testing.assert_array_equal(fresh.log_prob(fresh.argmax()), asked.log_prob(fresh.argmax()))
        np.testing.assert_array_equal(fresh.log_partition(), asked.log_partition())
        np.testing.assert_array_equal(fresh.marginals(), asked.marginals())


def test_many_threads_ask_one_distribution():
    """What the first question starts and the others find must be complete."""
    rng = np.random.default_rng(56)
    scores, values = rng.normal(size=(2, 24, 15, 15))
    questions = [
        lambda dist: dist.marginals(),
        lambda dist: dist.entropy(with_grad=True)[1],
        lambda dist: dist.expectation(values, with_grad=True)[1],
        lambda dist: dist.log_partition(),
        lambda dist: dist.sample(5, rng=0),
    ]
    expected = [ask(spantree.TreeDistribution(scores, projective=True)) for ask in questions]
    for _ in range(5):
        dist = spantree.TreeDistribution(scores, projective=True)
        found = [None] * (2 * len(questions))
        start = threading.Barrier(len(found))

        def run(i, dist=dist, found=found, start=start):
            start.wait()
            found[i] = questions[i % len(questions)](dist)

        threads = [threading.Thread(target=run, args=(i,)) for i in range(len(found))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for i, answer in enumerate(found):
            np.testing.assert_array_equal(answer, expected[i % len(questions)])


INTERRUPTED = """
import signal
import numpy as np, spantree
signal.signal(signal.SIGINT, signal.default_int_handler)
scores = {scale} * np.random.default_rng(0).normal(size=({nodes}, {nodes}))
dist = spantree.TreeDistribution(scores, projective=True)
small = spantree.TreeDistribution(scores[:9, :9], projective=True)
try:
    print("ready", flush=True)
    while True:
        {call}
except KeyboardInterrupt:
    assert np.isclose(small.marginals()[:, 1:].sum(), 8)
    print("usable", flush=True)
"""


@pytest.mark.parametrize(
    ("call", "nodes", "scale"),
    [
        ("spantree.marginals(scores, projective=True)", 400, 1),
        ("dist.entropy(with_grad=True); dist._kept = None", 300, 200),
        ("small.sample(1_000_000, rng=0)", 9, 1),
        ("dist.sample_without_replacement(100_000, rng=0)", 30, 0.5),
    ],
)
def test_ctrl_c(call, nodes, scale):
    script = INTERRUPTED.format(call=call, nodes=nodes, scale=scale)
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert output == "usable\n", errors


@pytest.mark.parametrize("scale", [1.0, 300.0])  # in doubles, and where these do not have the range
@pytest.mark.parametrize("root", ["single", "multi"])
def test_what_log_partition_solved_is_gone_on_with(root, scale):
    rng = np.random.default_rng(61)
    scores = [rng.normal(scale=scale, size=(n + 1, n + 1, 3)) for n in (1, 5, 9)]

    def distribution():
        return spantree.TreeDistribution(scores, root=root, projective=True, labelled=True)

    begun, tree = distribution(), distribution().argmax()
    log_z = begun.log_partition()
    kept = begun._solved._begun
    assert kept is not None
    asked = [
        lambda dist: dist.sample(3, rng=5).heads,
        lambda dist: dist.log_prob(tree.heads, tree.labels),
        lambda dist: dist.marginals(),
        lambda dist: dist.entropy(with_grad=True)[1],
        lambda dist: dist.sample(3, rng=5).labels,
        lambda dist: dist.log_partition(),
    ]
    for ask in asked:
        for a, b in zip(ask(begun), ask(distribution()), strict=True):
            np.testing.assert_array_equal(a, b)
    assert begun._solved._solution is not None
    assert begun._solved._begun is None
    np.testing.assert_array_equal(begun.log_partition(), log_z)
