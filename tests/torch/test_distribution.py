"""`TreeDistribution` as one of torch's distributions, in every dtype, with any strides, in every process."""

from __future__ import annotations

import subprocess
import sys

import pytest
from random_sentences import Sentences
from torch.utils.data import DataLoader

import spantree
import spantree.torch as st
import torch


def scores_of(*shape, dtype=torch.float64, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def test_shapes():
    dist = st.TreeDistribution(scores_of(2, 3, 5, 5))
    assert dist.batch_shape == (2, 3)
    assert dist.event_shape == (5,)
    assert dist.sample().shape == (2, 3, 5)
    assert dist.sample(4).shape == (4, 2, 3, 5)
    assert dist.sample((4, 1)).shape == (4, 1, 2, 3, 5)
    assert dist.sample(torch.Size([0])).shape == (0, 2, 3, 5)
    assert not dist.has_rsample
    with pytest.raises(NotImplementedError):
        dist.rsample()
    labelled = st.TreeDistribution(scores_of(2, 5, 5, 3), labelled=True)
    assert labelled.batch_shape == (2,)
    drawn = labelled.sample((4,))
    assert drawn.heads.shape == drawn.labels.shape == (4, 2, 5)
    assert repr(labelled) == "TreeDistribution(batch_shape: (2,), 4 words, single root, 3 labels, torch.float64)"


def test_log_prob_broadcasts():
    one = st.TreeDistribution(scores_of(4, 4))
    many = st.TreeDistribution(scores_of(2, 1, 4, 4))
    heads = one.sample((5, 3))
    assert one.log_prob(heads).shape == (5, 3)
    assert many.log_prob(heads[:2]).shape == (2, 3)
    assert many.log_prob(heads[0, 0]).shape == (2, 1)
    for i in range(2):
        torch.testing.assert_close(many.log_prob(heads[0])[i], many[i, 0].log_prob(heads[0]))


def test_indexing_and_expansion():
    scores, lengths = scores_of(2, 3, 5, 5), torch.tensor([[4, 3, 2], [1, 4, 4]])
    dist = st.TreeDistribution(scores, lengths=lengths)
    entropy = dist.entropy()
    for index in (0, (1, 2), slice(1), (..., 0), (slice(None), 1), torch.tensor([1, 0]), [0, 1], lengths > 2):
        assert torch.equal(dist[index].entropy(), entropy[index])
    with pytest.raises(IndexError):
        dist[0, 0, 0]
    assert len(dist) == 2
    with pytest.raises(TypeError, match="no length"):
        len(dist[0, 0])
    assert torch.equal(dist.expand((4, 2, 3)).entropy(), entropy.expand(4, 2, 3))
    assert torch.equal(dist.lengths, lengths)
    assert torch.equal(st.TreeDistribution(scores).lengths, torch.full((2, 3), 4))


def test_support():
    dist = st.TreeDistribution(scores_of(2, 4, 4))
    heads = torch.tensor([[[-1, 0, 1, 1], [-1, 2, 1, 0]], [[-1, 0, 0, 1], [-1, 3, 3, 0]]])
    assert dist.support.check(heads).tolist() == [[True, False], [False, True]]
    assert dist.support.is_discrete
    assert dist.support.event_dim == 1
    assert dist.arg_constraints["scores"].check(dist.scores).all()
    bad = dist.scores.clone()
    bad[1, 1, 2] = torch.nan
    bad[:, 1, 1] = torch.nan
    assert dist.arg_constraints["scores"].check(bad).tolist() == [True, False]
    assert dist.log_prob(heads)[0, 1] == -torch.inf
    with pytest.raises(ValueError, match="no tree"):
        st.TreeDistribution(dist.scores, validate_args=True).log_prob(heads)


@pytest.mark.parametrize("kind", [{}, {"root": "multi"}, {"projective": True}])
def test_enumerate_support(kind):
    dist = st.TreeDistribution(scores_of(2, 5, 5), **kind)
    trees = dist.enumerate_support()
    torch.testing.assert_close(dist.log_prob(trees).exp().sum(0), torch.ones(2).double())
    assert len(torch.unique(trees[:, 0], dim=0)) == len(trees)
    assert dist.enumerate_support(expand=False).shape == (len(trees), 1, 5)
    with pytest.raises(NotImplementedError):
        st.TreeDistribution(scores_of(9, 9)).enumerate_support()
    with pytest.raises(NotImplementedError):
        st.TreeDistribution(scores_of(2, 5, 5), lengths=[4, 3]).enumerate_support()


def test_distributions_of_torch():
    p, q = (st.TreeDistribution(scores_of(2, 4, 4, seed=seed)) for seed in range(2))
    torch.testing.assert_close(torch.distributions.kl_divergence(p, q), p.kl(q))
    torch.testing.assert_close(p.perplexity(), p.entropy().exp())
    joint = torch.distributions.Independent(p, 1)
    assert joint.log_prob(p.sample((3,))).shape == (3,)


def test_random_trees():
    """The same state, the same trees, whatever the threads; and as often as they should be.

    Chi-squared over nine trees of 20,000 draws, 8 degrees of freedom: above 40 once in 300,000 with other seeds.
    """
    dist = st.TreeDistribution(scores_of(4, 4))

    def draw(**more):
        return dist.sample((20_000,), generator=torch.Generator().manual_seed(0), **more)

    before = torch.get_num_threads()
    one = draw()
    torch.set_num_threads(1)
    assert torch.equal(one, draw())
    torch.set_num_threads(before)
    trees = dist.enumerate_support()
    for heads in (one, draw(method="wilson-marginal"), draw(method="ancestral")):
        counts = (heads[:, None] == trees).all(-1).sum(0)
        expected = 20_000 * dist.log_prob(trees).exp()
        assert ((counts - expected) ** 2 / expected).sum() < 40
    torch.manual_seed(3)
    first = dist.sample()
    torch.manual_seed(3)
    assert torch.equal(first, dist.sample())


def test_trees_without_replacement():
    scores = scores_of(2, 4, 4).requires_grad_()
    dist = st.TreeDistribution(scores)
    for method in ("auto", "trie", "beam"):
        sample = dist.sample_without_replacement(4, generator=torch.Generator().manual_seed(1), method=method)
        assert sample.heads.shape == (4, 2, 4)
        assert len(sample) == 4
        torch.testing.assert_close(sample.log_probs, dist.log_prob(sample.heads))
        assert sample.log_probs.requires_grad
        assert (sample.keys.diff(dim=0) <= 0).all()
        assert (sample.threshold <= sample.keys[-1]).all()
        mass = sample.log_probs.exp().sum(0) + sample.log_remaining.exp()
        torch.testing.assert_close(mass, torch.ones(2).double())
    everything = dist.sample_without_replacement(12)
    exact = everything.estimate(lambda heads: (heads[..., 1] == 0).double())
    torch.testing.assert_close(exact, dist.marginals()[:, 0, 1])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_low_precision(dtype):
    """Computed in double from the scores as they are, and rounded once: the result next to the exact one."""
    scores = scores_of(3, 6, 6, dtype=dtype).requires_grad_()
    exact = scores.detach().double().requires_grad_()
    for ask in ("log_partition", "entropy", "marginals", "max"):
        ours, expected = (getattr(st.TreeDistribution(x), ask)() for x in (scores, exact))
        assert ours.dtype == dtype
        assert torch.equal(ours, expected.to(dtype))
        slope, expected_slope = (torch.autograd.grad(y.sum(), x)[0] for y, x in ((ours, scores), (expected, exact)))
        assert slope.dtype == dtype
        torch.testing.assert_close(slope, expected_slope.to(dtype), rtol=torch.finfo(dtype).eps, atol=1e-6)


def test_autocast():
    """Half precision is answered in float32, as torch's own losses do; backwards it is half again."""
    layer = torch.nn.Linear(8, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        hidden = layer(torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0)))
        scores = hidden @ hidden.mT
        assert scores.dtype == torch.bfloat16
        loss = st.tree_crf_loss(scores, torch.tensor([[-1, 0, 1, 1, 3]]).expand(2, 5))
        entropy = st.TreeDistribution(scores).entropy()
    assert loss.dtype == entropy.dtype == torch.float32
    exact = st.tree_crf_loss(scores.double(), torch.tensor([[-1, 0, 1, 1, 3]]).expand(2, 5))
    torch.testing.assert_close(loss.double(), exact, rtol=1e-6, atol=1e-6)
    loss.backward()
    assert layer.weight.grad.isfinite().all()


STRIDES = {
    "transposed": lambda s: s.mT.contiguous().mT,
    "strided": lambda s: torch.stack([s, -s], -1)[..., 0],
    "batch inside": lambda s: s.movedim(0, -1).contiguous().movedim(-1, 0),
    "negated lazily": lambda s: torch._neg_view(-s),
    "offset": lambda s: torch.cat([s.reshape(-1)[:1], s.reshape(-1)])[1:].reshape(s.shape),
    "inference": None,
}


@pytest.mark.parametrize("strides", STRIDES)
def test_strides(strides):
    """The same bits, wherever numbers lie."""
    scores = scores_of(3, 6, 6)
    if strides == "inference":
        with torch.inference_mode():
            given = scores.clone()
    else:
        given = STRIDES[strides](scores)
    assert torch.equal(given, scores)
    other, expected = st.TreeDistribution(given), st.TreeDistribution(scores)
    assert torch.equal(other.marginals(), expected.marginals())
    assert torch.equal(other.argmax(), expected.argmax())
    assert torch.equal(other.entropy(), expected.entropy())
    assert torch.equal(other.topk(2).heads, expected.topk(2).heads)
    repeated = st.TreeDistribution(scores[0].expand(4, 6, 6))
    assert torch.equal(repeated.marginals(), expected[0].marginals().expand(4, 6, 6))


def test_gradients_of_expanded_scores():
    scores = scores_of(5, 5).requires_grad_()
    st.TreeDistribution(scores).expand((3,)).entropy().sum().backward()
    single = scores.detach().clone().requires_grad_()
    (3 * st.TreeDistribution(single).entropy()).backward()
    torch.testing.assert_close(scores.grad, single.grad)


def test_lengths_of_any_type():
    scores = scores_of(2, 5, 5)
    expected = st.TreeDistribution(scores, lengths=[4, 2]).entropy()
    for dtype in (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8):
        assert torch.equal(st.TreeDistribution(scores, lengths=torch.tensor([4, 2], dtype=dtype)).entropy(), expected)
    with pytest.raises(TypeError, match="integers"):
        st.TreeDistribution(scores, lengths=torch.tensor([4.0, 2.0]))


def test_other_devices():
    """Shapes and dtypes on the device of the scores; numbers go through the memory of the host."""
    scores = torch.empty(2, 5, 5, device="meta", dtype=torch.bfloat16)
    dist = st.TreeDistribution(scores)
    for number, shape in ((dist.entropy(), (2,)), (dist.marginals(), (2, 5, 5)), (dist.argmax(), (2, 5))):
        assert number.device.type == "meta"
        assert number.shape == shape
    assert dist.entropy().dtype == torch.bfloat16


def test_threads_of_torch(monkeypatch):
    """Those of torch, unless spantree was told otherwise."""
    from spantree.torch import _kernels

    monkeypatch.delenv("SPANTREE_THREADS", raising=False)
    before, ours = torch.get_num_threads(), spantree.set_threads(None)
    try:
        torch.set_num_threads(3)
        assert _kernels._number_of_threads() == 3
        spantree.set_threads(2)
        assert _kernels._number_of_threads() == 2
        spantree.set_threads(None)
        monkeypatch.setenv("SPANTREE_THREADS", "5")
        assert _kernels._number_of_threads() == 5
    finally:
        torch.set_num_threads(before)
        spantree.set_threads(ours)


@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning", "ignore:This DataLoader:UserWarning")
def test_data_loader(start):
    """Workers give the same bits, after the parent has used its threads too."""
    expected = [Sentences()[i][0] for i in range(6)]
    loader = DataLoader(Sentences(), batch_size=None, num_workers=2, multiprocessing_context=start, timeout=240)
    for (ours, threads), right in zip(loader, expected, strict=True):
        assert torch.equal(ours, right)
        assert threads == 1


def test_import_needs_torch():
    """`import spantree` does not import torch; without torch, the error says how to get it."""
    script = """
import sys
import spantree
assert "torch" not in sys.modules
sys.modules["torch"] = None
try:
    import spantree.torch
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "spantree.torch needs PyTorch: pip install 'spantree[torch]'\n"


@pytest.mark.parametrize("kind", [{}, {"root": "multi"}, {"projective": True}, {"labelled": True}])
def test_random_trees_one_by_one(kind):
    """Those of `sample_without_replacement`, until none is left; with gradients."""
    shape = (4, 4, 2) if "labelled" in kind else (4, 4)
    scores = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True)
    dist = st.TreeDistribution(scores, **kind)
    trees = list(dist.iter_without_replacement(generator=torch.Generator().manual_seed(1)))
    drawn = dist.sample_without_replacement(len(trees) + 1, generator=torch.Generator().manual_seed(1))
    assert torch.equal(torch.stack([tree.heads for tree in trees]), drawn.heads[:-1])
    assert drawn.heads[-1].eq(-1).all()
    if dist.labelled:
        assert torch.equal(torch.stack([tree.labels for tree in trees]), drawn.labels[:-1])
    log_probs = torch.stack([tree.scores for tree in trees])
    torch.testing.assert_close(log_probs, drawn.log_probs[:-1], rtol=1e-13, atol=1e-13)
    torch.testing.assert_close(log_probs.exp().sum().item(), 1.0)
    (slope,) = torch.autograd.grad(log_probs[0], scores)
    (expected,) = torch.autograd.grad(drawn.log_probs[0], scores)
    torch.testing.assert_close(slope, expected)
    with pytest.raises(ValueError, match="takes one sentence"):
        dist.expand((2,)).iter_without_replacement()
