"""Best trees under constraints, against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from decoding_battery import scores_of, trees

import spantree
from decoding.hostile import FAMILIES, exact_scores


def labelled_trees(n, labels, root):
    heads = trees(n, root)
    chosen = np.array(list(np.ndindex(*[labels] * n)))
    every_heads = np.repeat(heads, len(chosen), axis=0)
    every_label = np.tile(np.c_[np.full(len(chosen), -1), chosen], (len(heads), 1))
    return every_heads, every_label


def keeps(heads, labels, groups):
    for group in groups:
        seen = [int(head) for head, label in zip(heads[1:], labels[1:], strict=True) if label in group]
        if len(seen) > len(set(seen)):
            return False
    return True


@pytest.mark.parametrize("groups", [[{0}], [{0, 2}], [{0}, {1, 2}], [{0}, {1}, {2}]], ids=str)
@pytest.mark.parametrize("root", ["single", "multi"])
def test_at_most_one(root, groups):
    rng = np.random.default_rng(0)
    heads, labels = labelled_trees(4, 3, root)
    kept = np.array([keeps(*tree, groups) for tree in zip(heads, labels, strict=True)])
    heads, labels = heads[kept], labels[kept]
    for _ in range(6):
        scores = rng.normal(size=(5, 5, 3)) * 2
        scores[..., 0] += 1.5  # so that the constraint matters
        dist = spantree.TreeDistribution(scores, labelled=True, root=root)
        values = scores[heads[:, 1:], np.arange(1, 5), labels[:, 1:]].sum(axis=1)
        order = np.argsort(-values)[:20]
        found = dist.topk(20, at_most_one=groups)
        np.testing.assert_allclose(found.scores, values[order], rtol=1e-12)
        np.testing.assert_array_equal(found.heads, heads[order])
        np.testing.assert_array_equal(found.labels, labels[order])
        best = dist.argmax(at_most_one=groups)
        np.testing.assert_array_equal(best.heads, heads[order[0]])
        np.testing.assert_array_equal(best.labels, labels[order[0]])
        assert 1 <= best.decodes <= found.decodes
        stream = dist.iter_best(at_most_one=groups)
        np.testing.assert_array_equal(next(stream).heads, heads[order[0]])
        assert float(next(stream).scores) == pytest.approx(values[order[1]])


@pytest.mark.parametrize("projective", [False, True])
@pytest.mark.parametrize("bound", ["exactly", "at_most"])
@pytest.mark.parametrize("q", [1, 2, 3, 4])
def test_number_of_roots(q, bound, projective):
    rng = np.random.default_rng(1)
    everything = trees(4, "multi", projective)
    roots = (everything[:, 1:] == 0).sum(axis=1)
    kept = everything[roots == q if bound == "exactly" else roots <= q]
    for shift in (-2.0, 0.0, 2.0):
        scores = rng.normal(size=(5, 5))
        scores[0] += shift
        dist = spantree.TreeDistribution(scores, root="multi", projective=projective)
        values = scores_of(scores, kept)
        best = np.sort(values)[::-1][:6]
        found = dist.topk(6, **{bound: q})
        np.testing.assert_allclose(found.scores[: len(best)], best, rtol=1e-12)
        np.testing.assert_array_equal(dist.argmax(**{bound: q}), kept[values.argmax()])


def roots_of(tree):
    heads, _ = tree
    return heads[1:].count(0)


CONSTRAINTS = {  # options, and which trees keep to them
    "exactly": ({"exactly": 1}, lambda tree: roots_of(tree) == 1),
    "at_most": ({"at_most": 2}, lambda tree: roots_of(tree) <= 2),
    "at_most_one": ({"at_most_one": [{0}]}, lambda tree: keeps(*tree, [{0}])),
    "where": ({"where": lambda heads, labels: labels[1] == 0}, lambda tree: tree[1][1] == 0),
}


def padding_masked(rng, shape, dtype):
    """The last word is no word, and every tree has a score of -1e30."""
    scores = rng.normal(size=shape)
    scores[-1] = scores[:, -1] = -1e30
    return scores


@pytest.mark.parametrize("projective", [False, True])
@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("family", [*FAMILIES, padding_masked], ids=lambda family: family.__name__)
def test_every_tree_in_the_order_of_exact_sums(family, constraint, projective):
    rng = np.random.default_rng(5)
    options, kept = CONSTRAINTS[constraint]
    for words, labels in ((1, 2), (2, 3), (3, 2), (3, 2), (4, 1), (4, 1)):
        scores = family(rng, (words + 1, words + 1, labels), np.float64).astype(np.float64)
        expected = {
            tree: total for tree, total in exact_scores(scores, "multi", projective, True).items() if kept(tree)
        }
        kind = {"labelled": True, "root": "multi", "projective": projective, "on_infeasible": "mask"}
        dist = spantree.TreeDistribution(scores, **kind)
        found = [(tuple(tree.heads.tolist()), tuple(tree.labels.tolist())) for tree in dist.iter_best(**options)]
        assert len(found) == len(set(found))
        assert set(found) == set(expected)
        totals = [expected[tree] for tree in found]
        assert totals == sorted(totals, reverse=True)
        if constraint != "where":
            top = dist.topk(len(found) + 1, **options)
            assert [tuple(row) for row in top.heads.tolist()][:-1] == [heads for heads, _ in found]
            assert (top.heads[-1] == -1).all()


@pytest.mark.parametrize("exactly", [1, 2])
def test_a_score_below_all_doubles_is_a_score(exactly):
    scores = np.full((3, 3), np.finfo(float).min)
    found = spantree.TreeDistribution(scores, root="multi").topk(3, exactly=exactly)
    assert found.heads.tolist() == ([[-1, 0, 1], [-1, 2, 0]] if exactly == 1 else [[-1, 0, 0]]) + [[-1] * 3] * exactly
    assert found.scores.tolist() == [-np.inf] * 3


def test_a_sentence_without_words_keeps_constraints():
    best = spantree.TreeDistribution([np.zeros((1, 1)), np.zeros((2, 2))], root="multi").argmax(exactly=1)
    assert [heads.tolist() for heads in best] == [[-1], [-1, 0]]


@pytest.mark.parametrize("root", ["single", "multi"])
def test_root_label(root):
    rng = np.random.default_rng(2)
    heads, labels = labelled_trees(3, 3, root)
    kept = np.array([((h[1:] == 0) == (y[1:] == 1)).all() for h, y in zip(heads, labels, strict=True)])
    heads, labels = heads[kept], labels[kept]
    scores = rng.normal(size=(4, 4, 3))
    values = scores[heads[:, 1:], np.arange(1, 4), labels[:, 1:]].sum(axis=1)
    dist = spantree.TreeDistribution(scores, labelled=True, root=root, root_label=1)
    np.testing.assert_allclose(dist.log_partition(), np.log(np.exp(values).sum()), rtol=1e-12)
    np.testing.assert_allclose(dist.topk(5).scores, np.sort(values)[::-1][:5], rtol=1e-12)
    best = spantree.decode(scores, labelled=True, root=root, root_label=1)
    np.testing.assert_array_equal(best.heads, heads[values.argmax()])
    named = spantree.TreeDistribution(
        scores, labelled=True, root=root, root_label="root", labels=["dep", "root", "obj"]
    )
    np.testing.assert_array_equal(named.marginals(), dist.marginals())
    turned = spantree.TreeDistribution(scores.swapaxes(0, 1), labelled=True, root=root, root_label=1, layout="dep_head")
    np.testing.assert_array_equal(turned.marginals().swapaxes(0, 1), dist.marginals())
    assert scores.min() > -np.inf  # the caller's array is as it was
    for bad, message in ((3, "root_label is 3, and there are 3 labels"), ("root", "is a name, and labels have none")):
        with pytest.raises(ValueError, match=message):
            spantree.TreeDistribution(scores, labelled=True, root_label=bad)
    with pytest.raises(ValueError, match="root_label needs labelled scores"):
        spantree.decode(np.zeros((3, 3)), root_label=0)


def test_where():
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(5, 5))
    everything = trees(4, "single")
    projective = everything[spantree.is_projective(everything)]
    dist = spantree.TreeDistribution(scores)
    found = [float(tree.scores) for tree in dist.iter_best(where=spantree.is_projective)]
    np.testing.assert_allclose(found, np.sort(scores_of(scores, projective))[::-1], rtol=1e-12)
    labelled = spantree.TreeDistribution(rng.normal(size=(3, 3, 2)), labelled=True)
    tree = next(labelled.iter_best(where=lambda heads, labels: labels[1] == 1 and heads[1] == 2))
    assert (tree.labels[1], tree.heads[1]) == (1, 2)
    with pytest.raises(spantree.SearchLimitError, match="where refused 7 trees in a row"):
        next(dist.iter_best(where=lambda heads: False, limit=7))
    assert list(dist.iter_best(where=lambda heads: False)) == []


def test_forms_and_padding():
    rng = np.random.default_rng(4)
    scores = rng.normal(size=(3, 5, 5, 3))
    scores[:, np.arange(5), np.arange(5)] = np.nan
    scores[:, :, 0] = np.nan
    lengths = [4, 2, 3]
    for i, n in enumerate(lengths):
        scores[i, n + 1 :] = scores[i, :, n + 1 :] = np.inf
    padded = spantree.TreeDistribution(scores, lengths=lengths, labelled=True).topk(4, at_most_one=[{0, 1}])
    matrices = [matrix[: n + 1, : n + 1] for matrix, n in zip(scores, lengths, strict=True)]
    listed = spantree.TreeDistribution(matrices, labelled=True).topk(4, at_most_one=[{0, 1}])
    for i, n in enumerate(lengths):
        alone = spantree.TreeDistribution(matrices[i], labelled=True).topk(4, at_most_one=[{0, 1}])
        np.testing.assert_array_equal(padded.heads[:, i, : n + 1], alone.heads)
        np.testing.assert_array_equal(listed.heads[i], alone.heads)
        np.testing.assert_array_equal(listed.labels[i], alone.labels)
        np.testing.assert_array_equal(padded.scores[:, i], alone.scores)
        assert padded.decodes[i] == alone.decodes
        assert (padded.heads[:, i, n + 1 :] == -1).all()


def test_limits_and_mistakes():
    scores = np.zeros((9, 9, 2))
    scores[..., 1] = -1e-3 * np.arange(81).reshape(9, 9)
    dist = spantree.TreeDistribution(scores, labelled=True)
    with pytest.raises(spantree.SearchLimitError, match="no answer after 5 decodings"):
        dist.argmax(at_most_one=[{0}], limit=5)
    impossible = spantree.TreeDistribution(np.zeros((2, 3, 3, 1)), labelled=True, root="multi")
    assert impossible.argmax(at_most_one=[{0}]).heads.shape == (2, 3)
    with pytest.raises(spantree.InfeasibleError, match="sentence 0 has no tree that keeps the constraints"):
        impossible.condition(include=[(0, 1), (0, 2)]).argmax(at_most_one=[{0}])
    masked = spantree.TreeDistribution(np.zeros((3, 3, 1)), labelled=True, root="multi", on_infeasible="mask")
    best = masked.condition(include=[(0, 1), (0, 2)]).argmax(at_most_one=[{0}])
    assert best.heads.tolist() == [-1, -1, -1]
    plain = spantree.TreeDistribution(np.zeros((3, 3)))
    for options, message in [
        ({"at_most_one": [{0}]}, "at_most_one needs labelled scores"),
        ({"exactly": 2}, 'need root="multi"'),
        ({"exactly": 0}, "at least 1, not 0"),
        ({"at_most": 1.5}, "at least 1, not 1.5"),
    ]:
        with pytest.raises(ValueError, match=message):
            plain.argmax(**options)
    np.testing.assert_array_equal(plain.argmax(exactly=1), plain.argmax())
    with pytest.raises(ValueError, match="at_most_one must be a list of groups"):
        dist.argmax(at_most_one=[0])
    with pytest.raises(ValueError, match="no label is called 'x'"):
        spantree.TreeDistribution(scores, labelled=True, labels=["a", "b"]).argmax(at_most_one=[{"x"}])


def test_limits_and_labels_are_checked():
    dist = spantree.TreeDistribution(np.zeros((4, 4, 3)), labelled=True)
    for ask in (dist.argmax, lambda **o: dist.topk(2, **o), dist.iter_best):
        for limit in (0, -1, 2.5, "a", None):
            with pytest.raises(ValueError, match="limit must be a positive integer"):
                ask(limit=limit)
        for label in (3, -1):
            with pytest.raises(ValueError, match=f"there is no label {label}"):
                ask(at_most_one=[{label}])
