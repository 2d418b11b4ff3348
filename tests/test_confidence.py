"""How sure a distribution is, against enumeration; and what it says in words."""

from __future__ import annotations

import numpy as np
import pytest
from decoding_battery import scores_of, trees

import spantree


def by_enumeration(scores, root, projective):
    everything = trees(len(scores) - 1, root, projective)
    values = scores_of(scores, everything)
    weights = np.exp(values - values.max())
    p = weights / weights.sum()
    best = everything[values.argmax()]
    marginals = np.einsum("t,thd->hd", p, spantree.heads_to_edges(everything))
    ordered = np.sort(values)[::-1]
    facts = {"log_prob": np.log(p.max()), "margin": ordered[0] - ordered[1], "entropy": -(p * np.log(p)).sum()}
    words = {"head_probs": [], "runners_up": [], "runner_up_probs": [], "log_odds": []}
    for dep in range(1, len(scores)):
        own, others = marginals[best[dep], dep], marginals[:, dep].copy()
        others[best[dep]] = 0.0
        words["head_probs"].append(own)
        words["runners_up"].append(others.argmax())
        words["runner_up_probs"].append(others.max())
        words["log_odds"].append(np.log(own / others.sum()))
    facts["expected_attachment"] = np.mean(words["head_probs"])
    return best, facts, words


@pytest.mark.parametrize("layout", ["head_dep", "dep_head"])
@pytest.mark.parametrize("projective", [False, True])
@pytest.mark.parametrize("root", ["single", "multi"])
def test_against_enumeration(root, projective, layout):
    rng = np.random.default_rng(0)
    matrices = [rng.normal(size=(n + 1, n + 1)) * 2 for n in (4, 3, 4)]
    padded = np.full((3, 6, 6), np.nan)
    for row, matrix in zip(padded, matrices, strict=True):
        row[: len(matrix), : len(matrix)] = matrix if layout == "head_dep" else matrix.T
    options = {"root": root, "projective": projective, "layout": layout}
    turned = matrices if layout == "head_dep" else [matrix.T for matrix in matrices]
    batch = spantree.TreeDistribution(padded, lengths=[4, 3, 4], **options).confidence()
    listed = spantree.TreeDistribution(turned, **options).confidence()
    annotated = spantree.annotate(padded, [4, 3, 4], k=2, **options)
    for i, matrix in enumerate(matrices):
        best, facts, words = by_enumeration(matrix, root, projective)
        one = spantree.TreeDistribution(turned[i], **options).confidence()
        n = len(best)
        for found in (one.heads, batch.heads[i, :n], listed.heads[i]):
            np.testing.assert_array_equal(found, best)
        for name, want in facts.items():
            for found in (getattr(one, name), getattr(batch, name)[i], getattr(listed, name)[i], annotated[name][i]):
                np.testing.assert_allclose(found, want, rtol=1e-10, err_msg=name)
        for name, want in words.items():
            for found in (getattr(one, name), getattr(batch, name)[i, :n], getattr(listed, name)[i]):
                np.testing.assert_allclose(found[1:], want, rtol=1e-10, err_msg=name)
                assert np.isnan(found[0]) or found[0] == -1
            np.testing.assert_array_equal(annotated[name][i], getattr(batch, name)[i])


def test_labels():
    scores = np.random.default_rng(1).normal(size=(4, 4, 3))
    dist = spantree.TreeDistribution(scores, labelled=True)
    sure, marginals, best = dist.confidence(), dist.marginals(), dist.argmax()
    for dep in range(1, 4):
        np.testing.assert_allclose(sure.head_probs[dep], marginals[best.heads[dep], dep].sum())
        np.testing.assert_allclose(sure.label_probs[dep], marginals[best.heads[dep], dep, best.labels[dep]])
    np.testing.assert_array_equal(sure.labels, best.labels)
    found = spantree.annotate(scores, labelled=True, k=3)
    np.testing.assert_array_equal(found["label_probs"], sure.label_probs)
    np.testing.assert_array_equal(found["topk_labels"], dist.topk(3).labels)


def test_certain_and_impossible():
    scores = np.full((3, 3, 3), -np.inf)
    scores[0, 0, 1] = scores[0, 1, 2] = 2.0  # one tree
    scores[1] = 0.0
    dist = spantree.TreeDistribution(scores, on_infeasible="mask")
    sure = dist.confidence()
    assert sure.head_probs[0].tolist()[1:] == [1.0, 1.0]
    assert (sure.runners_up[[0, 2]] == -1).all()
    assert np.isinf(sure.log_odds[0, 1:]).all()
    assert np.isinf(sure.margin[0])
    assert np.isnan(sure.head_probs[2]).all()
    assert np.isnan([sure.margin[2], sure.entropy[2], sure.expected_attachment[2]]).all()
    assert sure.log_prob.tolist()[2] == -np.inf
    told = dist.explain()
    assert told[0] == "best tree 100%, entropy 0.00 nats; every head is certain"
    assert told[1].startswith("best tree 50%, entropy 0.69 nats; least certain is the head of word 1:")
    assert told[2] == "there is no tree"
    empty = spantree.TreeDistribution(np.zeros((1, 1)))
    assert empty.explain() == "no words"
    assert empty.confidence().expected_attachment == 1.0
    assert spantree.TreeDistribution([]).explain() == []


def test_words_and_labels_are_shown():
    scores = np.array([[0, 7, 8, 7], [0, 0, 4, 1], [0, 5, 0, 6], [0, 3, 5, 0.0]])
    words = ["She", "<saw>", "stars"]
    dist = spantree.TreeDistribution(np.stack([scores, scores]), lengths=[3, 2], words=[words, words[:2]])
    assert repr(dist[0]) == "TreeDistribution('She <saw> stars', 3 words, single root, float64)"
    assert "the head of She(1): <saw>(2) 79% or stars(3) 11%" in dist.explain()[0]
    assert dist[1].explain() == dist.explain()[1]
    assert dist[[1]].explain() == dist.explain()[1:]
    assert "&lt;saw&gt;(2)</td><td>ROOT" in dist[0]._repr_html_()
    assert "<td>1: She &lt;saw&gt;</td>" in dist._repr_html_()
    same = spantree.TreeDistribution(scores)
    assert same.explain(words) == dist[0].explain()
    labelled = spantree.TreeDistribution(np.stack([scores, scores - 1], -1), labelled=True, labels=["subj", "obj"])
    assert "<td>subj</td>" in labelled._repr_html_()
    for bad, message in [
        ({"words": ["a"]}, "the sentence has 3 words and was given the names of 1"),
        ({"words": "She saw stars"}, "words must be a list of strings for each sentence, not 'She saw stars'"),
        ({"labels": ["a"]}, "names of labels need labelled scores"),
    ]:
        with pytest.raises(ValueError, match=message):
            spantree.TreeDistribution(scores, **bad)
    with pytest.raises(ValueError, match="labels must be a list of 2 names"):
        spantree.TreeDistribution(np.zeros((3, 3, 2)), labelled=True, labels=["a"])
    with pytest.raises(ValueError, match="words are for 1 sentences; the batch has 2"):
        dist.explain([words])


def test_names_of_labels_are_shown():
    named = spantree.TreeDistribution(np.zeros((3, 3, 2)), labelled=True, labels=["root", "obj"])
    assert repr(named) == "TreeDistribution(2 words, single root, 2 labels (root, obj), float64)"


def test_temperature_divides_scores():
    scores = np.random.default_rng(2).normal(size=(2, 4, 4)).astype(np.float32)
    for temperature in (0.5, 3.0):
        hot = spantree.TreeDistribution(scores, temperature=temperature)
        same = spantree.TreeDistribution(scores.astype(np.float64) / temperature)
        np.testing.assert_array_equal(hot.marginals(), same.marginals().astype(np.float32), strict=True)
        np.testing.assert_array_equal(hot.entropy(), same.entropy().astype(np.float32))
        np.testing.assert_array_equal(
            spantree.marginals(scores, temperature=temperature), same.marginals().astype(np.float32)
        )
        assert hot.temperature == temperature
    for bad in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="temperature must be positive and finite"):
            spantree.decode(scores, temperature=bad)


def test_errors_are_a_column():
    rng = np.random.default_rng(3)
    matrices = [rng.normal(size=(n + 1, n + 1)) for n in (3, 4, 2, 4)]
    matrices[1][:, 2] = -np.inf
    matrices[3][2, 3] = np.inf
    found = spantree.annotate(matrices, k=2)
    told = found["error"]
    assert told[0] is None
    assert told[2] is None
    assert told[1] == "sentence 1 has no tree with one root: word 2 cannot be attached"
    assert told[3].startswith("sentence 3: the score of the edge 2 -> 3 is inf;")
    assert (found["heads"][3] == -1).all()
    assert np.isnan(found["head_probs"][3]).all()
    np.testing.assert_array_equal(found["heads"][2], spantree.decode(matrices[2]))
    np.testing.assert_array_equal(found["topk_scores"][2], spantree.topk(matrices[2], 2).scores)
    with pytest.raises(ValueError, match="sentence 3: the score"):
        spantree.annotate(matrices, on_infeasible="raise")
    with pytest.raises(spantree.InfeasibleError, match="sentence 1"):
        spantree.annotate(matrices[:3], on_infeasible="raise")
    padded = np.zeros((2, 3, 3))
    padded[1, 1, 2] = np.nan
    told = spantree.annotate(padded, confidence=False)
    assert set(told) == {"heads", "score", "error"}
    assert told["error"].shape == (2,)
    assert spantree.annotate(padded[0])["error"] is None
    assert spantree.annotate([])["error"] == []


def test_what_is_no_matrix_is_an_error_of_its_sentence():
    good = np.random.default_rng(4).normal(size=(4, 4)).astype(np.float32)
    found = spantree.annotate([good, good[:, :3], None, good[:2, :2]], k=2)
    assert found["error"][0] is found["error"][3] is None
    assert found["error"][1].startswith("scores[1] has 4 x 3 edges")
    assert found["error"][2].startswith("scores[2] must be real numbers")
    np.testing.assert_array_equal(found["heads"][0], spantree.decode(good))
    np.testing.assert_array_equal(found["heads"][3], [-1, 0])
    assert found["entropy"][0].dtype == np.float32
    alone = spantree.annotate([None, good[:, :3]])
    assert alone["error"][0].startswith("scores[0] must be real numbers")
    assert alone["error"][1].startswith("scores[1] has 4 x 3 edges")
    assert [heads.tolist() for heads in alone["heads"]] == [[-1], [-1]]
    labelled = np.zeros((3, 3, 2))
    for root_label in (-1, 2, 10**9):
        found = spantree.annotate([labelled, None], labelled=True, root_label=root_label)
        assert found["error"][0] == f"root_label is {root_label}, and there are 2 labels"
        assert found["error"][1].startswith("scores[1] must be real numbers")
    with pytest.raises(ValueError, match=r"scores\[1\] has 4 x 3 edges"):
        spantree.annotate([good, good[:, :3]], on_infeasible="raise")


@pytest.mark.parametrize("scores", [[], [np.zeros((3, 3))], [np.zeros((3, 3)), None]], ids=["none", "one", "one bad"])
@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"layout": "dephead"}, "layout must be"),
        ({"temperature": 0.0}, "temperature must be"),
        ({"lengths": [1, 2]}, "lengths"),
        ({"mask": {}}, "mask"),
        ({"mask": [np.ones((3, 3), bool)] * 3}, "mask"),
        ({"root_label": 1}, "labelled=True"),
    ],
)
def test_wrong_options_are_no_error_of_a_sentence(scores, options, match):
    with pytest.raises(ValueError, match=match):
        spantree.annotate(scores, **options)


@pytest.mark.parametrize("projective", [False, True])
def test_a_word_masked_by_a_large_score_changes_nothing(projective):
    """As if it were padding, wherever it hangs: a column of -1e30 is common to all trees."""
    scores = np.full((4, 4), -1e30)
    scores[:3, :3] = [[0, 1, 2], [0, 0, 3], [0, 5, 0]]
    scores[1:3, 3] = -np.inf  # it hangs on ROOT
    options = {"root": "multi", "projective": projective}
    dist, without = (spantree.TreeDistribution(matrix, **options) for matrix in (scores, scores[:3, :3]))
    sure, want = dist.confidence(), without.confidence()
    for name in ("log_prob", "margin", "entropy"):
        np.testing.assert_allclose(getattr(sure, name), getattr(want, name), rtol=1e-12, err_msg=name)
    np.testing.assert_allclose(
        dist.log_prob([-1, -2, 0, -2], partial=True), without.log_prob([-1, -2, 0], partial=True), rtol=1e-12
    )
    gold = [[-1, 0, 1], [-1, 2, 0], [-1, 0, 0], [-1, 2, 0]]
    np.testing.assert_allclose(
        spantree.fit_temperature([scores] * 4, [[*heads, 0] for heads in gold], **options),
        spantree.fit_temperature([scores[:3, :3]] * 4, gold, **options),
        rtol=1e-6,
    )


@pytest.mark.parametrize("labels", [0, 3])
def test_padding_changes_no_bit(labels):
    rng = np.random.default_rng(3)
    last = (labels,) if labels else ()
    lengths = [3, 9, 17, 1]
    matrices = [rng.normal(size=(n + 1, n + 1, *last)) for n in lengths]
    padded = np.zeros((4, 23, 23, *last))
    for row, matrix in zip(padded, matrices, strict=True):
        row[: len(matrix), : len(matrix)] = matrix
    together = spantree.TreeDistribution(padded, lengths=lengths, labelled=labels > 0).confidence()
    for i, matrix in enumerate(matrices):
        alone = spantree.TreeDistribution(matrix, labelled=labels > 0).confidence()
        assert alone.expected_attachment == together.expected_attachment[i]
        np.testing.assert_array_equal(alone.log_odds, together.log_odds[i, : len(matrix)])
        np.testing.assert_array_equal(alone.head_probs, together.head_probs[i, : len(matrix)])


def test_annotate_tells_of_other_numbers_of_labels():
    found = spantree.annotate([np.zeros((3, 3, 2)), np.zeros((3, 3, 5)), np.zeros((4, 4, 2))], labelled=True)
    assert found["error"] == [None, "scores[1] has 5 labels, others have 2", None]
    assert [len(heads) for heads in found["heads"]] == [3, 1, 4]
