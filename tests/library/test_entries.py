"""Every entry of the C++ library against sums over all trees: roots, labels, projective, types, strides, padding."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from library.entries import Asked, heads_view
from library.entries import entries as core
from oracle.trees import all_labelled_trees

LENGTHS = (4, 1, 3, 0, 4, 2)
NODES = 6  # one more than the longest sentence needs
KINDS = list(itertools.product(("single", "multi"), (False, True), (0, 1, 3)))
kinds = pytest.mark.parametrize(("root", "projective", "labels"), KINDS)


class Trees:
    """All trees of one sentence: their edges as 0/1, and their probabilities."""

    def __init__(self, scores, words, root, projective):
        scores = np.asarray(scores, dtype=np.float64)
        heads, labels = all_labelled_trees(words, scores.shape[2], root, projective)
        edges = np.zeros((len(heads), *scores.shape))
        for d in range(1, words + 1):
            edges[range(len(heads)), heads[:, d], d, labels[:, d]] = 1.0
        allowed = ~(edges[:, np.isneginf(scores)] > 0).any(axis=1)
        self.heads, self.labels, self.edges = heads[allowed], labels[allowed], edges[allowed]
        finite = np.where(np.isfinite(scores), scores, 0.0)
        self.scores = np.einsum("thdy,hdy->t", self.edges, finite)
        self.log_z = np.logaddexp.reduce(self.scores) if len(self.scores) else -np.inf
        self.p = np.exp(self.scores - self.log_z)
        self.marginals = np.tensordot(self.p, self.edges, 1)

    def sums(self, values):
        return np.einsum("thdy,hdy->t", self.edges, np.where(self.marginals > 0, values, 0.0))

    def hessian(self, g):
        g = self.sums(g)
        return np.tensordot(self.p * (g - self.p @ g), self.edges, 1)

    def third(self, u, g):
        u, g = self.sums(u), self.sums(g)
        return np.tensordot(self.p * (u - self.p @ u) * (g - self.p @ g), self.edges - self.marginals, 1)


def batch(labels, dtype, seed, scale=2.0):
    """Random scores, some forbidden, one sentence whose word 2 cannot be attached; NaN wherever nothing may be read."""
    rng = np.random.default_rng(seed)
    scores = np.full((len(LENGTHS), NODES, NODES, max(labels, 1)), np.nan)
    for i, n in enumerate(LENGTHS):
        scores[i, : n + 1, 1 : n + 1] = scale * rng.normal(size=(n + 1, n, max(labels, 1)))
        scores[i, : n + 1, 1 : n + 1][rng.random((n + 1, n, max(labels, 1))) < 0.1] = -np.inf
        scores[i, range(n + 1), range(n + 1)] = np.nan
    scores[2, [0, 1, 3], 2] = -np.inf
    return scores.astype(dtype)


def truth_of(scores, root, projective):
    truth = []
    for sentence, n in zip(scores, LENGTHS, strict=True):
        plain = np.where(np.isnan(sentence), -np.inf, sentence)
        truth.append(Trees(plain[: n + 1, : n + 1], n, root, projective))
    return truth


def asked(scores, root, projective, labels, **options):
    lengths = np.array(LENGTHS, dtype=options.pop("lengths", np.int64))
    return Asked(scores if labels else scores[..., 0], lengths, root, projective, labels > 0, **options)


def padded(parts, shape):
    out = np.zeros((len(parts), *shape))
    for i, part in enumerate(parts):
        out[i, : part.shape[0], : part.shape[1]] = part
    return out


def same(found, parts, labels, dtype, scale=1.0):
    """Found edges against those of each sentence, 0 everywhere else."""
    found = found if labels else found[..., np.newaxis]
    tolerance = (2e-6 if dtype == np.float32 else 1e-12) * scale
    np.testing.assert_allclose(found, padded(parts, found.shape[1:]), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@kinds
def test_sums_over_trees(root, projective, labels, dtype):
    scores = batch(labels, dtype, 1)
    truth = truth_of(scores, root, projective)
    ask = asked(scores, root, projective, labels)
    log_z = ask.log_partition()
    np.testing.assert_allclose(log_z, [t.log_z for t in truth], rtol=1e-6 if dtype == np.float32 else 1e-12)
    assert log_z.dtype == dtype
    assert [status != 0 for status in ask.status] == [t.log_z == -np.inf for t in truth]
    assert ask.status[2] in (1, 2, 3)
    for turned in (False, True):
        again, marginals = ask.marginals(turned)
        np.testing.assert_array_equal(again, log_z)
        same(marginals, [t.marginals for t in truth], labels, dtype)
    rng = np.random.default_rng(2)
    u, g = rng.normal(size=(2, 3, *scores.shape)).astype(dtype)
    cut = [(slice(0, n + 1), slice(0, n + 1)) for n in LENGTHS]
    form = (lambda x: x) if labels else (lambda x: x[..., 0])
    for turned in (False, True):
        hessian, third = ask.hessian(form(g), turned), ask.third(form(u), form(g), turned)
        for r in range(3):
            same(hessian[r], [t.hessian(g[r, i][cut[i]]) for i, t in enumerate(truth)], labels, dtype, 10.0)
            values = [t.third(u[r, i][cut[i]], g[r, i][cut[i]]) for i, t in enumerate(truth)]
            same(third[r], values, labels, dtype, 100.0)
    totals, gradients = ask.expectation(form(g))
    np.testing.assert_array_equal(gradients, hessian)
    for r in range(3):
        for i, t in enumerate(truth):
            expected = t.p @ t.sums(g[r, i][cut[i]]) if len(t.p) else np.nan
            np.testing.assert_allclose(totals[r, i], expected, rtol=1e-5 if dtype == np.float32 else 1e-12, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@kinds
def test_scores_without_what_all_trees_have_in_common(root, projective, labels, dtype):
    """Also beside a mask on all edges into a word: a tree's sum of them less their log Z is its log-probability."""
    scores = batch(labels, dtype, 1)
    truth = truth_of(scores, root, projective)
    masked = scores.copy()
    masked[:, :, 2] -= dtype(2.0**20)
    before = truth_of((masked + dtype(2.0**20) * (np.arange(scores.shape[2]) == 2)[:, None]), root, projective)
    ask = asked(masked, root, projective, labels)
    for turned in (False, True):
        relative = ask.relative_scores(turned)
        relative = relative if labels else relative[..., np.newaxis]
        for i, t in enumerate(truth):
            n = LENGTHS[i]
            if not len(t.p):
                assert np.isneginf(relative[i]).all()
                continue
            found = relative[i, : n + 1, : n + 1].astype(np.float64)
            assert np.isneginf(relative[i, n + 1 :]).all()
            assert np.isneginf(found[:, 0]).all()
            assert np.isneginf(found[np.arange(n + 1), np.arange(n + 1)]).all()
            sums = t.sums(np.where(np.isneginf(found), 0.0, found))
            log_p = sums - np.logaddexp.reduce(sums)
            exact = np.log(before[i].p)
            np.testing.assert_allclose(log_p, exact, atol=1e-4 if dtype == np.float32 else 1e-9)
            assert np.abs(sums).max() < 100.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@kinds
def test_entropies_and_divergences(root, projective, labels, dtype):
    scores, other = batch(labels, dtype, 1), batch(labels, np.float64, 5, 1.0)
    other[np.isneginf(scores) & (np.arange(len(scores)) % 2 == 0)[:, None, None, None]] = -np.inf
    other[np.isneginf(other) & (np.arange(len(scores)) != 0)[:, None, None, None]] = -3.0
    p, q = truth_of(scores, root, projective), truth_of(other, root, projective)
    ask, ask_q = asked(scores, root, projective, labels), asked(other, root, projective, labels)
    tolerance = {"rtol": 2e-5 if dtype == np.float32 else 1e-11, "atol": 1e-6 if dtype == np.float32 else 1e-12}
    entropy, gradient = ask.entropy()
    expected = [-np.sum(t.p * np.log(t.p)) if len(t.p) else np.nan for t in p]
    np.testing.assert_allclose(entropy, expected, **tolerance)
    # d H = -Cov(log p, edges)
    slopes = [np.tensordot(-t.p * (np.log(t.p) - t.p @ np.log(t.p)), t.edges, 1) for t in p]
    same(gradient, slopes, labels, dtype, 10.0)
    for entry, divergence in ((core.cross_entropy, False), (core.kl, True)):
        value, by_p, by_q = ask.compare(ask_q, entry)
        for i, (a, b) in enumerate(zip(p, q, strict=True)):
            n = LENGTHS[i]
            cut = np.s_[: n + 1, : n + 1] if labels else np.s_[: n + 1, : n + 1, np.newaxis]
            if not len(a.p):
                assert np.isnan(value[i])
                assert not by_p[i].any()
                assert not by_q[i].any()
                continue
            table = {(*h.tolist(), *y.tolist()): x for h, y, x in zip(b.heads, b.labels, b.p, strict=True)}
            with np.errstate(divide="ignore"):
                log_q = np.log(
                    [table.get((*h.tolist(), *y.tolist()), 0.0) for h, y in zip(a.heads, a.labels, strict=True)]
                )
            if np.isneginf(log_q).any():
                assert value[i] == np.inf
                continue
            log_ratio = np.log(a.p) - log_q if divergence else -log_q
            np.testing.assert_allclose(value[i], a.p @ log_ratio, **tolerance)
            slope = np.tensordot(a.p * (log_ratio - a.p @ log_ratio), a.edges, 1)
            np.testing.assert_allclose(by_p[i][cut], slope, rtol=1e-5, atol=tolerance["atol"] * 10)
            np.testing.assert_allclose(by_q[i][cut], b.marginals - a.marginals, atol=tolerance["atol"] * 10)


@pytest.mark.parametrize("integers", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@kinds
def test_likelihoods(root, projective, labels, dtype, integers):
    scores = batch(labels, dtype, 3)
    truth = truth_of(scores, root, projective)
    ask = asked(scores, root, projective, labels, lengths=np.int32)
    rng = np.random.default_rng(4)
    heads, names = np.full((2, len(truth), NODES), 9, dtype=integers)
    expected_log_prob, known = np.full(len(truth), -np.inf), np.ones(heads.shape, dtype=bool)
    for i, t in enumerate(truth):
        if not len(t.p):
            heads[i] = 0
            continue
        pick = rng.integers(len(t.p))
        heads[i, : LENGTHS[i] + 1], names[i, : LENGTHS[i] + 1] = t.heads[pick], t.labels[pick]
        expected_log_prob[i] = np.log(t.p[pick])
    names_if = names if labels else None
    tolerance = {"rtol": 2e-5 if dtype == np.float32 else 1e-11, "atol": 1e-6 if dtype == np.float32 else 1e-12}
    log_prob = ask.log_prob(heads[np.newaxis], names[np.newaxis] if labels else None)
    np.testing.assert_allclose(log_prob[0], expected_log_prob, **tolerance)
    for partial in (False, True):
        if partial:
            known = rng.random(heads.shape) < 0.5
            heads[~known] = -2
            names[~known & (rng.random(heads.shape) < 0.5)] = -2
        loss, gradient = ask.crf_loss(heads, names_if)
        for i, t in enumerate(truth):
            n = LENGTHS[i]
            if not len(t.p):
                assert loss[i] == np.inf
                assert not gradient[i].any()
                assert ask.status[i] > 0
                continue
            fits = np.array(
                [
                    all(heads[i, d] in (-2, h[d]) for d in range(1, n + 1))
                    and (not labels or all(names[i, d] in (-2, y[d]) for d in range(1, n + 1)))
                    for h, y in zip(t.heads, t.labels, strict=True)
                ]
            )
            np.testing.assert_allclose(loss[i], -np.log(t.p[fits].sum()), **tolerance)
            given = np.tensordot(t.p[fits] / t.p[fits].sum(), t.edges[fits], 1)
            cut = np.s_[: n + 1, : n + 1] if labels else np.s_[: n + 1, : n + 1, np.newaxis]
            np.testing.assert_allclose(gradient[i][cut], t.marginals - given, atol=tolerance["atol"] * 10)
            assert ask.status[i] == 0
        total, weighted = ask.crf_loss(heads, names_if, weight=0.375)
        np.testing.assert_allclose(total[0], 0.375 * loss.sum(dtype=float), rtol=tolerance["rtol"])
        np.testing.assert_allclose(weighted, 0.375 * gradient, atol=tolerance["atol"])


def test_what_is_no_tree_has_no_likelihood():
    scores = np.zeros((3, 4, 4))
    scores[2, 0, 1] = -np.inf
    ask = Asked(scores)
    heads = np.array([[0, 2, 1, 0], [0, 0, 0, 1], [0, 0, 1, 1]])  # a cycle, two roots, a forbidden edge
    loss, gradient = ask.crf_loss(heads)
    assert (loss == np.inf).all()
    assert not gradient.any()
    assert ask.status.tolist() == [-2, -2, -2]
    assert (ask.log_prob(heads[np.newaxis]) == -np.inf).all()


def test_an_unknown_head_is_none_where_trees_are_to_be_complete():
    ask, heads = Asked(np.zeros((2, 4, 4))), np.array([[0, -2, 1, 1], [0, 0, 1, 1]])
    loss, gradient = ask.crf_loss(heads, partial=False)
    assert loss.tolist() == [np.inf, np.log(9)]
    assert ask.status.tolist() == [-2, 0]
    assert not gradient[0].any()
    total, weighted = ask.crf_loss(heads[[1, 1]], partial=False, weight=0.5)
    np.testing.assert_allclose(total[0], np.log(9), rtol=1e-15)
    np.testing.assert_allclose(weighted, 0.5 * gradient[[1, 1]], rtol=1e-15)


@kinds
def test_the_loss_of_a_sure_tree_keeps_its_digits(root, projective, labels):
    scores = np.zeros((1, 3, 3, max(labels, 1)), dtype=np.float32)
    scores[0, 0, 1, 0] = scores[0, 1, 2, 0] = 40.0
    ask = Asked(scores if labels else scores[..., 0], None, root, projective, labels > 0)
    loss, gradient = ask.crf_loss(np.array([[-1, 0, 1]]), np.array([[-1, 0, 0]]) if labels else None)
    truth = Trees(scores[0], 2, root, projective)
    np.testing.assert_allclose(loss[0], truth.p[np.argsort(truth.p)[:-1]].sum(), atol=1e-14)
    edge = gradient[0, 0, 1] if not labels else gradient[0, 0, 1, 0]
    truth.marginals[0, 1, 0] = 0.0
    np.testing.assert_allclose(edge, -truth.marginals[:, 1].sum(), rtol=1e-6)


@pytest.mark.parametrize("integers", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@kinds
def test_best_trees(root, projective, labels, dtype, integers):
    scores = batch(labels, dtype, 7)
    truth = truth_of(scores, root, projective)
    ask = asked(scores, root, projective, labels)
    k = 5
    heads, names, best = ask.argmax(integers)
    all_heads, all_names, all_best = ask.topk(k, integers)
    np.testing.assert_array_equal(heads, all_heads[0])
    np.testing.assert_array_equal(best, all_best[0])
    assert heads.dtype == integers
    for i, t in enumerate(truth):
        order = np.argsort(-t.scores, kind="stable")[:k]
        np.testing.assert_allclose(all_best[: len(order), i], t.scores[order], rtol=1e-6)
        assert (all_best[len(order) :, i] == -np.inf).all()
        n = LENGTHS[i]
        for rank in range(k):
            row, label_row = all_heads[rank, i], all_names[rank, i]
            assert (row[n + 1 :] == -1).all()
            assert row[0] == -1
            if rank >= len(order) or not n:
                assert (row == -1).all()
                continue
            assert row[: n + 1].tolist() == t.heads[order[rank]].tolist()
            if labels:
                assert label_row[: n + 1].tolist() == t.labels[order[rank]].tolist()
                assert (label_row[n + 1 :] == -1).all()
    if labels:
        np.testing.assert_array_equal(names, all_names[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@kinds
def test_random_trees(root, projective, labels, dtype):
    scores = batch(labels, dtype, 8, 1.0)
    truth = truth_of(scores, root, projective)
    ask = asked(scores, root, projective, labels)
    keys = np.random.default_rng(9).integers(2**63, size=(len(truth), 2), dtype=np.uint64)
    k = 2000
    heads, names = ask.sample(k, keys, np.int32)
    # In another order: the key alone decides.
    reverse = Asked(
        (scores if labels else scores[..., 0])[::-1],
        np.array(LENGTHS[::-1]),
        root,
        projective,
        labels > 0,
        threads=2,
    )
    again, names_again = reverse.sample(k, keys[::-1].copy())
    np.testing.assert_array_equal(again[:, ::-1], heads)
    if labels:
        np.testing.assert_array_equal(names_again[:, ::-1], names)
    distinct, distinct_names, log_probs, gumbel, threshold, log_left = ask.sample_without_replacement(6, keys)
    for i, t in enumerate(truth):
        n = LENGTHS[i]
        if not len(t.p) or not n:
            assert (heads[:, i] == -1).all()
            continue
        table = {(*map(int, h), *map(int, y)): at for at, (h, y) in enumerate(zip(t.heads, t.labels, strict=True))}

        def number(row, label_row, n=n, table=table):
            return table[(*map(int, row[: n + 1]), *(map(int, label_row[: n + 1]) if labels else [-1] + [0] * n))]

        drawn = np.array([number(heads[j, i], names[j, i]) for j in range(k)])
        counts = np.bincount(drawn, minlength=len(t.p))
        # Of 2,000 draws, a count is more than 6 standard deviations and 6 off with probability below 1e-7; there are
        # fewer than 30,000 trees in all of these tests.
        assert (abs(counts - k * t.p) <= 6.0 * np.sqrt(k * t.p) + 6.0).all()
        left = min(6, len(t.p))
        numbers = [number(distinct[j, i], distinct_names[j, i]) for j in range(left)]
        assert len(set(numbers)) == left
        assert (distinct[left:, i] == -1).all()
        np.testing.assert_allclose(log_probs[:left, i], np.log(t.p[numbers]), rtol=1e-5, atol=1e-6)
        assert (np.diff(gumbel[:left, i]) <= 0).all()
        assert threshold[i] <= gumbel[left - 1, i]
        np.testing.assert_allclose(np.exp(log_left[i]), max(1 - t.p[numbers].sum(), 0.0), atol=1e-5)


def test_any_strides():
    rng = np.random.default_rng(10)
    scores = rng.normal(size=(3, 5, 5, 4))
    want = Asked(scores, labelled=True).marginals()
    wide = np.zeros((6, 10, 5, 8))
    wide[1::2, ::2, :, ::2] = scores
    views = (
        wide[1::2, ::2, :, ::2],
        np.ascontiguousarray(scores.transpose(3, 0, 1, 2)).transpose(1, 2, 3, 0),
        scores.swapaxes(1, 2).copy().swapaxes(1, 2),
        scores[::-1].copy()[::-1],
    )
    for view in views:
        log_z, marginals = Asked(view, labelled=True).marginals()
        np.testing.assert_array_equal(log_z, want[0])
        np.testing.assert_array_equal(marginals, want[1])
    one = Asked(np.broadcast_to(scores[:1], scores.shape), labelled=True).marginals()
    np.testing.assert_array_equal(one[1][2], want[1][0])
    plain = scores[..., 1]
    copied = np.ascontiguousarray(plain)
    for ask, expected in ((Asked(plain), Asked(copied)), (Asked(wide[1::2, ::2, :, 2]), Asked(copied))):
        for question, arguments in (("argmax", ()), ("topk", (3,))):
            found, wanted = getattr(ask, question)(*arguments), getattr(expected, question)(*arguments)
            np.testing.assert_array_equal(found[0], wanted[0])
            np.testing.assert_array_equal(found[2], wanted[2])
        np.testing.assert_array_equal(ask.marginals()[1], expected.marginals()[1])
        keys = np.ones((3, 2), dtype=np.uint64)
        np.testing.assert_array_equal(ask.sample(5, keys)[0], expected.sample(5, keys)[0])
    values = rng.normal(size=(2, *scores.shape))
    turned = np.ascontiguousarray(values.transpose(4, 0, 1, 2, 3)).transpose(1, 2, 3, 4, 0)
    np.testing.assert_array_equal(
        Asked(scores, labelled=True).hessian(values), Asked(scores, labelled=True).hessian(turned)
    )


@pytest.mark.parametrize("scale", [20, 100, 300])
@pytest.mark.parametrize("root", ["single", "multi"])
def test_sharp_scores(root, scale):
    """Where closed forms cancel, against exact sums in integers: all trees of five words."""
    rng = np.random.default_rng(scale)
    scores = scale * rng.normal(size=(4, 6, 6))
    u, g = rng.uniform(-1, 1, size=(2, 1, 4, 6, 6))
    ask = Asked(scores, root=root)
    hessian, third = ask.hessian(g), ask.third(u, g)
    for i in range(4):
        t = Trees(scores[i][..., np.newaxis], 5, root, False)
        np.testing.assert_allclose(hessian[0, i], t.hessian(g[0, i][..., np.newaxis])[..., 0], atol=3e-12)
        expected = t.third(u[0, i][..., np.newaxis], g[0, i][..., np.newaxis])[..., 0]
        np.testing.assert_allclose(third[0, i], expected, atol=1e-11)


@pytest.mark.parametrize("labels", [0, 2])
def test_a_word_that_never_heads_and_words_that_cannot_reach_each_other(labels):
    """One root, and trees in two parts: the first's words are parallel roots of the second's."""
    rng = np.random.default_rng(12)
    scores = rng.normal(size=(1, 6, 6, max(labels, 1)))
    scores[0, 3:, 1:3] = -np.inf  # words 3, 4, 5 never head words 1, 2
    scores[0, 0, 3:] = -np.inf
    u, g = rng.normal(size=(2, 1, *scores.shape))
    form = (lambda x: x) if labels else (lambda x: x[..., 0])
    ask = Asked(form(scores), labelled=labels > 0)
    truth = Trees(scores[0], 5, "single", False)
    third = ask.third(form(u), form(g))[0, 0]
    hessian = ask.hessian(form(g))[0, 0]
    np.testing.assert_allclose(hessian if labels else hessian[..., np.newaxis], truth.hessian(g[0, 0]), atol=1e-12)
    np.testing.assert_allclose(third if labels else third[..., np.newaxis], truth.third(u[0, 0], g[0, 0]), atol=1e-11)


@pytest.mark.parametrize("labels", [0, 1, 3, 20])
def test_bad_scores_are_a_status_and_the_batch_goes_on(labels):
    """Whichever label of an edge is bad, the best or another."""
    rng = np.random.default_rng(13)
    scores = rng.normal(size=(4, 4, 4, labels) if labels else (4, 4, 4))
    fine = Asked(scores, labelled=labels > 0).marginals()
    last = (labels - 1,) if labels else ()
    scores[(1, 0, 2, *last)], scores[(2, 3, 1, *last)] = np.nan, np.inf
    scores[:, :, 0], scores[:, range(4), range(4)] = np.nan, np.nan  # there are no edges
    ones, keys = np.ones((1, *scores.shape)), np.ones((4, 2), dtype=np.uint64)
    for projective in (False, True):
        ask = Asked(scores, projective=projective, labelled=labels > 0)
        log_z, marginals = ask.marginals()
        assert ask.status.tolist() == [0, -1, -1, 0]
        assert np.isnan(log_z[1:3]).all()
        assert not marginals[1:3].any()
        if not projective:
            np.testing.assert_array_equal(marginals[[0, 3]], fine[1][[0, 3]])
        for answer in (
            lambda ask=ask: ask.argmax()[0],
            lambda ask=ask: ask.topk(2)[0][0],
            lambda ask=ask: ask.sample(1, keys)[0][0],
            lambda ask=ask: ask.sample_without_replacement(1, keys)[0][0],
        ):
            ask.status[:] = 77
            heads = answer()
            assert ask.status.tolist() == [0, -1, -1, 0]
            assert (heads[1:3] == -1).all()
        for answer in (lambda ask=ask: ask.hessian(ones), lambda ask=ask: ask.third(ones, ones)):
            ask.status[:] = 77
            assert not answer()[0, 1:3].any()
            assert ask.status.tolist() == [0, -1, -1, 0]


def test_views_that_make_no_sense():
    scores = np.zeros((2, 3, 3))
    with pytest.raises(ValueError, match="sentence 1 cannot have 3 words: there is room for 2"):
        Asked(scores, np.array([2, 3])).log_partition()
    with pytest.raises(ValueError, match="sentence 0 cannot have -1 words"):
        Asked(scores, np.array([-1, 2])).log_partition()
    with pytest.raises(ValueError, match="different sentences"):
        Asked(scores).compare(Asked(np.zeros((2, 4, 4))), core.kl)
    with pytest.raises(ValueError, match="negative number of threads"):
        Asked(scores, threads=-1).log_partition()


def test_sizes_that_no_memory_holds():
    """A view that repeats one score may say so of any number of them; places for trees need not be given."""
    with pytest.raises(ValueError, match="scores: more than any memory holds"):
        Asked(np.broadcast_to(0.0, (2**20, 2**19, 2**19))).log_partition()
    ask, nowhere, key = Asked(np.zeros((8, 3, 3))), core.HeadsOut(), np.ones((8, 2), np.uint64)
    for trees in (2**61, 2**63 - 1):
        with pytest.raises(ValueError, match="more trees than any memory holds"):
            core.topk(ask.view, ask.options, trees, nowhere, nowhere, 0)
        with pytest.raises(ValueError, match="more trees than any memory holds"):
            core.log_prob(ask.view, ask.options, trees, heads_view(np.zeros((1, 8, 3), np.int64)), core.HeadsView(), 0)
        with pytest.raises(ValueError, match="more trees than any memory holds"):
            core.sample_without_replacement(ask.view, ask.options, trees, key.ctypes.data, nowhere, nowhere, 0, 0, 0, 0)


def test_default_threads():
    before = core.default_threads()
    core.set_default_threads(3)
    assert core.default_threads() == 3
    core.set_default_threads(0)
    assert core.default_threads() == before
