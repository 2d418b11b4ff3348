"""The solve in tensor operations against the core: scales, forbidden edges, lengths, gradients."""

from __future__ import annotations

import pytest

import spantree.torch as st
import torch

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # torch's own, in forward mode


@pytest.mark.parametrize("root", ["single", "multi"])
@pytest.mark.parametrize("scale", [1.0, 20.0, 100.0])
@pytest.mark.parametrize("words", [1, 2, 5, 8, 11])
def test_same_numbers(root, scale, words):
    generator = torch.Generator().manual_seed(words)
    scores = scale * torch.randn(6, words + 1, words + 1, generator=generator, dtype=torch.float64)
    scores[3:][torch.rand(3, words + 1, words + 1, generator=generator) < 0.5] = -torch.inf
    lengths = torch.randint(0, words + 1, (6,), generator=generator)
    for given in (None, lengths):
        dist = st.TreeDistribution(scores, lengths=given, root=root, on_infeasible="mask")
        log_z, marginals = st.solve_on_device(scores, given, root=root)
        torch.testing.assert_close(log_z, dist.log_partition(), rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(marginals, dist.marginals(), rtol=1e-10, atol=0)


def test_forced_edges():
    """Words whose only way out leads over ROOT: orders of magnitude count, not numbers."""
    scores = torch.randn(4, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    scores[1:, 2] = -torch.inf
    for root in ("single", "multi"):
        log_z, marginals = st.solve_on_device(scores, root=root)
        dist = st.TreeDistribution(scores, root=root)
        torch.testing.assert_close(log_z, dist.log_partition(), rtol=1e-14, atol=1e-14)
        torch.testing.assert_close(marginals, dist.marginals(), rtol=1e-14, atol=0)


def test_layout_mask_and_dtype():
    scores = torch.randn(2, 5, 5, generator=torch.Generator().manual_seed(1))
    mask = torch.rand(2, 5, 5, generator=torch.Generator().manual_seed(2)) < 0.8
    log_z, marginals = st.solve_on_device(scores.mT, mask=mask.mT, layout="dep_head")
    dist = st.TreeDistribution(scores, mask=mask, on_infeasible="mask")
    assert log_z.dtype == torch.float32
    torch.testing.assert_close(log_z, dist.log_partition())
    torch.testing.assert_close(marginals, dist.marginals().mT)


@pytest.mark.parametrize("root", ["single", "multi"])
def test_gradients(root):
    scores = torch.randn(3, 5, 5, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    scores[1, 2, 3] = -torch.inf
    scores.requires_grad_()
    weights = torch.randn(3, 5, 5, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    log_z, marginals = st.solve_on_device(scores, root=root)
    (slope,) = torch.autograd.grad(log_z.sum(), scores, retain_graph=True)
    torch.testing.assert_close(slope, marginals.detach(), rtol=1e-10, atol=1e-12)
    (slope,) = torch.autograd.grad((marginals * weights).sum(), scores)
    expected = torch.autograd.grad((st.TreeDistribution(scores, root=root).marginals() * weights).sum(), scores)[0]
    torch.testing.assert_close(slope, expected, rtol=1e-9, atol=1e-11)


def test_beyond_the_range_of_doubles():
    """Never a wrong number: NaN where doubles do not do, and the core does."""
    scores = torch.zeros(3, 3, dtype=torch.float64)
    scores[0, 1:] = -2000.0
    scores[1, 2] = scores[2, 1] = 0.0
    log_z, _ = st.solve_on_device(scores, root="multi")
    assert log_z.isnan()
    assert st.TreeDistribution(scores, root="multi").log_partition().isfinite()
    log_z, _ = st.solve_on_device(torch.full((3, 3), -torch.inf))
    assert log_z == -torch.inf


@pytest.mark.parametrize("root", ["single", "multi"])
def test_derivatives_of_log_z_at_large_scores(root):
    """They are the marginals, where those of quotients would overflow."""
    scores = 300.0 * torch.randn(20, 9, 9, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    scores.requires_grad_()
    log_z, marginals = st.solve_on_device(scores, root=root)
    assert log_z.isfinite().sum() > 10
    (slope,) = torch.autograd.grad(log_z[log_z.isfinite()].sum(), scores)
    torch.testing.assert_close(slope, torch.where(log_z.isfinite()[:, None, None], marginals, 0.0), rtol=0, atol=0)


@pytest.mark.parametrize("root", ["single", "multi"])
def test_derivatives_of_log_z_in_every_mode(root):
    scores = torch.randn(4, 4, generator=torch.Generator().manual_seed(6), dtype=torch.float64)

    def log_z(x):
        return st.solve_on_device(x, root=root)[0]

    def expected(x):
        return st.TreeDistribution(x, root=root).log_partition()

    for derivative in (torch.func.grad, torch.func.jacfwd, torch.func.hessian):
        torch.testing.assert_close(derivative(log_z)(scores), derivative(expected)(scores), rtol=1e-9, atol=1e-12)
    both = torch.stack([scores, 2.0 * scores])
    torch.testing.assert_close(torch.func.vmap(torch.func.grad(log_z))(both)[1], torch.func.grad(log_z)(both[1]))
    with pytest.raises(NotImplementedError, match="nest forward mode"):
        torch.func.jacfwd(torch.func.jacfwd(log_z))(scores)
