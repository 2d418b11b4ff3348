"""Samples follow the law that enumeration gives, whatever the form, the method and the structure of the scores.

Chi-square tests each raise a false alarm once in 10^9 times (were seeds not fixed); there are fewer than a thousand.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import spantree
from oracle import structures
from oracle.battery import KINDS, distribution, sentences
from oracle.chi_square import FALSE_ALARM, p_value
from oracle.forms import FORMS
from oracle.law import BITS, ONE, Law, _log, floats, to_float

DRAWS = 3000
KIND_NAMES = {f"{kind.root}{'-projective' if kind.projective else ''}": kind for kind in KINDS}


def indices(law: Law, heads: np.ndarray, labels: np.ndarray | None) -> np.ndarray:
    """Which tree each draw is."""
    rows = heads if labels is None else np.stack([heads, labels], 1)
    kinds, inverse = np.unique(rows, axis=0, return_inverse=True)
    found = np.array([law.index(row) if labels is None else law.index(*row) for row in kinds])
    assert (found >= 0).all(), f"{kinds[found < 0][0].tolist()} was drawn and is no tree of the scores"
    return found[inverse.reshape(-1)]


def trees_of(form, drawn, batch):
    """Heads and labels (k, n+1) of each sentence."""
    if not batch[0].labels:
        return [(heads, None) for heads in form.nodes_of(drawn, batch, before=0 if form.kind == "listed" else 1)]
    before = 0 if form.kind == "listed" else 1
    return list(zip(form.nodes_of(drawn.heads, batch, before), form.nodes_of(drawn.labels, batch, before), strict=True))


@pytest.mark.parametrize("kind", KIND_NAMES)
@pytest.mark.parametrize("structure", structures.GROUPS)
def test_draws_with_replacement_follow_the_law(structure, kind):
    methods = ["auto", "wilson-marginal", "wilson-reject", "ancestral"]
    kind = KIND_NAMES[kind]
    for i, (labels, dtype) in enumerate([(0, np.float64), (3, np.float64), (0, np.float32)]):
        form, method = FORMS[2 + (2 * i + len(structure)) % 7], methods[(i + len(structure)) % 4]
        for batch in form.batches(sentences(structure, labels, dtype)):
            drawn = distribution(form, batch, kind).sample(DRAWS, rng=i, method=method)
            for sentence, (heads, drawn_labels) in zip(batch, trees_of(form, drawn, batch), strict=True):
                law = sentence.law(kind.root, kind.projective)
                if not law.feasible:
                    assert (heads == -1).all()
                    continue
                counts = np.bincount(indices(law, heads, drawn_labels), minlength=len(law.heads))
                assert p_value(counts, floats(law.probs)) > FALSE_ALARM, (method, str(form), sentence.scores)


@pytest.mark.parametrize("kind", KIND_NAMES)
@pytest.mark.parametrize("method", ["auto", "trie", "beam"])
@pytest.mark.parametrize("labels", [0, 2])
def test_pairs_without_replacement_follow_the_law(labels, method, kind):
    """The second tree is drawn from those left; the largest key is a standard Gumbel number, whatever the scores."""
    kind = KIND_NAMES[kind]
    rng = np.random.default_rng(labels)
    scores = rng.normal(size=(3, 3, labels) if labels else (4, 4))
    law = Law(scores, kind.root, kind.projective)
    copies = np.broadcast_to(scores, (DRAWS, *scores.shape))
    dist = spantree.TreeDistribution(copies, labelled=bool(labels), **kind.options)
    drawn = dist.sample_without_replacement(2, rng=7, method=method)
    first, second = (indices(law, drawn.heads[i], drawn.labels[i] if labels else None) for i in range(2))
    probs = floats(law.probs)
    pairs = probs[:, None] * probs / (1 - probs[:, None])
    np.fill_diagonal(pairs, 0.0)
    counts = np.bincount(first * len(probs) + second, minlength=len(probs) ** 2)
    assert p_value(counts, pairs.reshape(-1)) > FALSE_ALARM
    assert (drawn.keys[0] > drawn.keys[1]).all()
    assert (drawn.keys[1] > drawn.threshold).all()
    assert stats.kstest(drawn.keys[0], stats.gumbel_r.cdf).pvalue > FALSE_ALARM
    # Unbiased: the mean over all draws of the estimates of a probability, within 6.5 standard errors (1 in 10^10).
    estimates = drawn.estimate(lambda heads, *_: float(heads[1] == 0))
    exact = floats(law.marginals)[0, 1].sum()
    assert abs(estimates.mean() - exact) < 6.5 * estimates.std() / np.sqrt(DRAWS)


@pytest.mark.parametrize("kind", KIND_NAMES)
@pytest.mark.parametrize("structure", structures.GROUPS)
def test_everything_is_drawn_without_replacement(structure, kind):
    """All trees, once each, with log-probabilities; the mass that is left, however little; then exact estimates."""
    kind = KIND_NAMES[kind]
    for i, sentence in enumerate(sentences(structure, 0, np.float64) + sentences(structure, 3, np.float64)):
        law = sentence.law(kind.root, kind.projective)
        if not law.feasible:
            continue
        most = int(law.allowed.sum())
        fewest = int((floats(law.log_probs)[law.allowed] > -np.inf).sum())  # others may be left out
        for method in ("auto", "trie", "beam") if i % 2 else ("auto",):
            dist = distribution(FORMS[0], [sentence], kind)
            drawn = dist.sample_without_replacement(most + 2, rng=i, method=method)
            count = int((drawn.log_probs > -np.inf).sum())
            assert fewest <= count <= most, (method, sentence.scores)
            at = indices(law, drawn.heads[:count], drawn.labels[:count] if sentence.labels else None)
            assert len(set(at)) == count, (method, sentence.scores)
            exact = np.maximum(floats(law.log_probs)[at], np.finfo(np.float64).min)  # -inf: no tree
            np.testing.assert_allclose(drawn.log_probs[:count], exact, rtol=1e-15, atol=1e-11)
            assert (drawn.heads[count:] == -1).all()
            assert (drawn.log_probs[count:] == -np.inf).all()
            assert (drawn.keys[count:] == -np.inf).all()
            assert (np.diff(drawn.keys[:count]) <= 0).all()
            assert drawn.threshold == -np.inf
            assert drawn.log_remaining == -np.inf
            estimate = drawn.estimate(lambda *tree: float(tree[0][-1] == 0))
            marginals = floats(law.marginals)
            assert abs(estimate - (marginals[0, -1].sum() if sentence.words else 0.0)) < 1e-11
            part = dist.sample_without_replacement(max(1, count // 2), rng=i, method=method)
            at = indices(law, part.heads, part.labels if sentence.labels else None)
            left = ONE - int(sum(law.probs[t] for t in at))
            if count > 1 and left > ONE >> (BITS - 200):
                np.testing.assert_allclose(part.log_remaining, to_float(_log(left)), rtol=1e-11, atol=1e-11)
