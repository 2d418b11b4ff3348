"""Heads and labels that callers hand in: read-only, at odd addresses, with any number of axes before; and words that
cannot be attached, on the way out."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys

import numpy as np
import pytest

import spantree
from spantree import TreeDistribution, _decoding


def best_two(dist):
    return dist.topk(2)


def read_only(array):
    array = np.array(array)
    array.flags.writeable = False
    return array


def at_an_odd_address(array):
    array = np.asarray(array)
    room = np.zeros(array.nbytes + 1, np.uint8)[1:]
    moved = room.view(array.dtype).reshape(array.shape)
    moved[...] = array
    assert not moved.flags.aligned
    return moved


@pytest.mark.parametrize("form", [read_only, at_an_odd_address, np.asfortranarray])
def test_any_array_of_heads(form):
    rng = np.random.default_rng(0)
    dist = TreeDistribution(rng.normal(size=(3, 7, 7)))
    top = dist.topk(4)
    np.testing.assert_array_equal(dist.score(form(top.heads)), top.scores)
    assert spantree.is_tree(form(top.heads)).all()
    labelled = TreeDistribution(rng.normal(size=(3, 7, 7, 5)), labelled=True)
    top = labelled.topk(4)
    np.testing.assert_array_equal(labelled.score(form(top.heads), form(top.labels)), top.scores)


@pytest.mark.parametrize("projective", [False, True])
@pytest.mark.parametrize("axes", [(), (5,), (2, 3), (0,), (2, 0, 3)])
def test_axes_before_the_batch(axes, projective):
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(2, 2, 5, 5))
    dist = TreeDistribution(scores, projective=projective)
    heads = rng.integers(0, 5, (*axes, 2, 2, 5))
    found = dist.score(heads)
    assert found.shape == (*axes, 2, 2)
    for index in np.ndindex(found.shape):
        tree = heads[index]
        alone = TreeDistribution(scores[index[-2:]], projective=projective)
        assert found[index] == alone.score(tree)
        valid = spantree.is_tree(tree) and (not projective or spantree.is_projective(tree))
        assert np.isfinite(found[index]) == valid


def test_what_stands_at_root_and_in_the_padding_does_not_matter():
    rng = np.random.default_rng(2)
    dist = TreeDistribution(rng.normal(size=(2, 6, 6)), lengths=[3, 5])
    heads = dist.argmax()
    filled = np.where(heads < 0, 7, heads)
    np.testing.assert_array_equal(dist.score(filled), dist.max())


@pytest.mark.parametrize("projective", [False, True])
@pytest.mark.parametrize(
    ("ask", "searches"),
    [
        (TreeDistribution.argmax, 1),
        (TreeDistribution.max, 1),
        (best_two, 0),
        (TreeDistribution.iter_best, 1),
        (TreeDistribution.log_partition, 0),
        (TreeDistribution.marginals, 0),
        (TreeDistribution.entropy, 0),
        (lambda dist: dist.sample(2, rng=0), 0),
        (lambda dist: dist.sample_without_replacement(2, rng=0), 0),
    ],
)
def test_the_word_that_cannot_be_attached_comes_with_the_result(ask, searches, projective, monkeypatch):
    best_tree, left = _decoding.argmax, [searches]

    def no_second_search(*args, **options):
        left[0] -= 1
        assert left[0] >= 0, "searched again"
        return best_tree(*args, **options)

    monkeypatch.setattr(_decoding, "argmax", no_second_search)
    scores = np.zeros((4, 4))
    scores[:, 2] = -np.inf
    with pytest.raises(spantree.InfeasibleError, match="word 2 cannot be attached") as raised:
        ask(TreeDistribution(scores, projective=projective))
    assert raised.value.word == 2
    left[0] = searches
    if ask is not TreeDistribution.iter_best:
        with pytest.raises(spantree.InfeasibleError, match="sentence 1"):
            ask(TreeDistribution(np.stack([np.zeros((4, 4)), scores]), projective=projective))


SCRIPT = """
import signal
import numpy as np, spantree
signal.signal(signal.SIGINT, signal.default_int_handler)
dist = spantree.TreeDistribution({scores}, projective={projective})
print("ready", flush=True)
while True:
    {call}
"""
LONG_CALLS = {
    "topk": ("dist.topk(100_000)", "np.random.default_rng(0).normal(size=(801, 801))", False),
    "iter_best": ("list(dist.iter_best())", "np.random.default_rng(0).normal(size=(801, 801))", False),
    "topk in wide weights": ("dist.topk(100_000)", "np.full((201, 201), 0.1)", False),
    "projective topk": ("dist.topk(10_000_000)", "np.random.default_rng(0).normal(size=(101, 101))", True),
}


@pytest.mark.parametrize("case", LONG_CALLS)
def test_ctrl_c(case):
    call, scores, projective = LONG_CALLS[case]
    script = SCRIPT.format(call=call, scores=scores, projective=projective)
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert errors.rstrip().endswith("KeyboardInterrupt")


def test_a_stream_goes_on_after_it_was_interrupted():
    """An exception between two trees, or one thrown into the loop, loses none of them."""
    dist = TreeDistribution(np.random.default_rng(3).normal(size=(6, 6)))
    stream = dist.iter_best()
    first = [tree.heads for tree in itertools.islice(stream, 3)]
    rest = [tree.heads for tree in itertools.islice(stream, 3)]
    np.testing.assert_array_equal(first + rest, dist.topk(6).heads)
