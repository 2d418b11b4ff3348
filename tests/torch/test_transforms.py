"""What torch does to functions: derivatives in both modes and of any nesting, vmap, compilation, export."""

from __future__ import annotations

import copy
import pickle

import pytest
from torch.autograd import forward_ad, gradcheck, gradgradcheck
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

import spantree.torch as st
import torch

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # torch's own, in forward mode

HEADS = torch.tensor([[-1, 0, 1, 1], [-1, 2, 0, 2]])
LABELS = torch.tensor([[-1, 0, 1, 0], [-1, 1, 1, 0]])

# Of scores (2, 4, 4), or (2, 4, 4, 2).
QUANTITIES = {
    "log_partition": lambda d: d.log_partition(),
    "marginals": lambda d: d.marginals(),
    "entropy": lambda d: d.entropy(),
    "log_prob": lambda d: d.log_prob(*gold(d)),
    "partial": lambda d: d.log_prob(torch.where(gold(d)[0] == 2, -2, gold(d)[0]), partial=True),
    "risk": lambda d: d.risk(*gold(d)),
    "expectation": lambda d: d.expectation(values(d)),
    "generalized_expectation": lambda d: d.generalized_expectation(values(d), 0.5),
    "kl": lambda d: d.kl(d.with_scores(values(d))),
    "cross_entropy": lambda d: d.with_scores(values(d)).cross_entropy(d),
    "covariance": lambda d: d.covariance(values(d), values(d) ** 2),
    "renyi_entropy": lambda d: d.renyi_entropy(2.0),
    "max": lambda d: d.max(),
}
KINDS = {
    "single": {},
    "multi": {"root": "multi"},
    "projective": {"projective": True},
    "labelled": {"labelled": True, "layout": "dep_head"},
}
LINEAR = {"max"}  # no second derivative but 0


def gold(dist):
    """Heads, and labels if there are some: as many sentences and words as the distribution has."""
    here = slice(len(dist)), slice(dist.event_shape[0])
    return HEADS[here], LABELS[here] if dist.labelled else None


def values(dist):
    size = dist.scores[:1].numel()
    return torch.linspace(-1, 1, size, dtype=torch.float64).reshape(dist.scores[:1].shape).expand(dist.scores.shape)


def scores_of(kind, sentences=2, seed=0):
    shape = (sentences, 4, 4, 2) if kind == "labelled" else (sentences, 4, 4)
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def asked(kind, quantity):
    return lambda scores: QUANTITIES[quantity](st.TreeDistribution(scores, **KINDS[kind]))


# All quantities of the simplest kind; of the others, two that every derivative goes through.
CASES = [("single", quantity) for quantity in QUANTITIES]
CASES += [(kind, quantity) for kind in list(KINDS)[1:] for quantity in ("marginals", "entropy")]


@pytest.mark.parametrize(("kind", "quantity"), CASES)
def test_gradcheck(kind, quantity):
    scores = scores_of(kind, sentences=1)[:, :3, :3].contiguous().requires_grad_()
    f = asked(kind, quantity)
    assert gradcheck(f, scores, check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True)
    if quantity not in LINEAR:
        assert gradgradcheck(f, scores, check_batched_grad=True, check_fwd_over_rev=True)


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_func(quantity):
    """Every way to the first two derivatives gives the same numbers as autograd."""
    scores = scores_of("single")
    f = asked("single", quantity)

    def total(s):
        return (f(s) ** 2).sum()

    leaf = scores.clone().requires_grad_()
    first = torch.autograd.functional.jacobian(total, leaf)
    second = torch.autograd.functional.hessian(total, leaf)
    direction = torch.randn_like(scores)
    for ours, expected in (
        (grad(total)(scores), first),
        (vjp(total, scores)[1](torch.tensor(1.0).double())[0], first),
        (jvp(total, (scores,), (direction,))[1], (first * direction).sum()),
        (jacrev(total)(scores), first),
        (jacfwd(total)(scores), first),
        (hessian(total)(scores), second),
        (jacrev(jacrev(total))(scores), second),
        (jacrev(jacfwd(total))(scores), second),
    ):
        torch.testing.assert_close(ours, expected, rtol=1e-9, atol=1e-9)


def test_nested_forward_mode():
    """Torch would take the inner derivative for a constant, and say nothing."""
    with pytest.raises(NotImplementedError, match="does not nest forward mode"):
        jacfwd(jacfwd(asked("single", "log_partition")))(scores_of("single"))


@pytest.mark.parametrize("ways", [(jacrev, jacrev, jacrev), (jacrev, jacfwd, jacrev), (jacrev, jacrev, jacfwd)])
def test_third_derivative_of_log_partition(ways):
    scores = scores_of("single")[0]

    def first(s):
        return st.TreeDistribution(s).marginals()

    f = asked("single", "log_partition")
    for way in ways:
        f = way(f)
    expected = torch.autograd.functional.jacobian(lambda s: jacrev(first)(s), scores)
    torch.testing.assert_close(f(scores), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(("kind", "quantity"), CASES)
def test_vmap(kind, quantity):
    """As a loop would do it, wherever the axis is; and of gradients."""
    scores = torch.stack([scores_of(kind, seed=seed) for seed in range(3)])
    f = asked(kind, quantity)
    looped = torch.stack([f(s) for s in scores])
    torch.testing.assert_close(vmap(f)(scores), looped, rtol=0, atol=0)
    torch.testing.assert_close(vmap(f, in_dims=2)(scores.movedim(0, 2)), looped, rtol=0, atol=0)
    slopes = torch.stack([grad(lambda s: f(s).sum())(s) for s in scores])
    torch.testing.assert_close(vmap(grad(lambda s: f(s).sum()))(scores), slopes, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_backward_through_vmap(quantity):
    """Of a parameter, as a parser has it."""
    scores = torch.stack([scores_of("single", seed=seed) for seed in range(3)]).requires_grad_()
    f = asked("single", quantity)
    (expected,) = torch.autograd.grad(sum((f(s) ** 2).sum() for s in scores), scores)
    (slopes,) = torch.autograd.grad((vmap(f)(scores) ** 2).sum(), scores)
    torch.testing.assert_close(slopes, expected, rtol=1e-12, atol=1e-14)


def test_vmap_over_everything_else():
    """Lengths, trees, values and second distributions may be mapped, with or without the scores."""
    scores = torch.stack([scores_of("single", seed=seed) for seed in range(3)])
    lengths = torch.tensor([[3, 2], [1, 3], [2, 2]])
    heads = HEADS.expand(3, 2, 4)
    other = scores.flip(0)

    def ask(s, n, h, q):
        d = st.TreeDistribution(s, lengths=n)
        p = st.TreeDistribution(q, lengths=n)
        best = d.topk(2)
        return d.expectation(q), d.kl(p), d.log_prob(h), d.argmax(), best.heads, best.scores

    for mapped in ((0, 0, 0, 0), (0, None, None, None), (None, None, 0, None), (None, None, 0, 0), (None, 0, None, 0)):
        given = [x if dim == 0 else x[0] for x, dim in zip((scores, lengths, heads, other), mapped, strict=True)]
        ours = vmap(ask, in_dims=mapped)(*given)
        for i in range(3):
            one = [x[i] if dim == 0 else x for x, dim in zip(given, mapped, strict=True)]
            for mine, right in zip(ours, ask(*one), strict=True):
                torch.testing.assert_close(mine[i], right, rtol=1e-13, atol=1e-13)


def test_vmap_of_random_trees():
    scores = scores_of("single")
    with pytest.raises(RuntimeError, match="randomness"):
        vmap(lambda s: st.TreeDistribution(s).sample(2))(scores)
    torch.manual_seed(0)
    different = vmap(lambda s: st.TreeDistribution(s).sample(50), randomness="different")(scores[:1].expand(2, 4, 4))
    assert not torch.equal(different[0], different[1])
    same = vmap(lambda s: st.TreeDistribution(s).sample(50), randomness="same")(scores[:1].expand(2, 4, 4))
    assert torch.equal(same[0], same[1])


def test_forward_ad():
    scores, direction = scores_of("single"), scores_of("single", seed=1)
    for quantity in QUANTITIES:
        f = asked("single", quantity)
        with forward_ad.dual_level():
            value, tangent = forward_ad.unpack_dual(f(forward_ad.make_dual(scores, direction)))
        torch.testing.assert_close(value, f(scores), rtol=0, atol=0)
        torch.testing.assert_close(tangent, jvp(f, (scores,), (direction,))[1], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_forward_ad_over_reverse_mode(kind):
    """The derivative of a gradient along a direction, also where nobody asked reverse mode for a graph."""
    direction = scores_of(kind, seed=1)
    for quantity in QUANTITIES.keys() - LINEAR:
        scores = scores_of(kind).requires_grad_()
        f = asked(kind, quantity)
        (slope,) = torch.autograd.grad(f(scores).sum(), scores, create_graph=True)
        (expected,) = torch.autograd.grad(slope, scores, direction, materialize_grads=True)
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(scores, direction)
            tangent = forward_ad.unpack_dual(torch.autograd.grad(f(dual).sum(), dual)[0]).tangent
        assert tangent is not None, quantity
        torch.testing.assert_close(tangent, expected, rtol=1e-9, atol=1e-12)


def shuffled(scores):
    return st.TreeDistribution(scores).sample_without_replacement(3, generator=torch.Generator().manual_seed(0))


OF_TREES = {
    "topk": lambda s: st.TreeDistribution(s).topk(2).scores,
    "sample_without_replacement": lambda s: shuffled(s).log_probs,
    "unordered_set": lambda s: (lambda drawn: drawn.gradient_weights(drawn.log_probs) * drawn.log_probs)(shuffled(s)),
}


@pytest.mark.parametrize("quantity", OF_TREES)
def test_scores_of_trees_in_every_mode(quantity):
    """What is known of trees that were found follows the scores, in forward mode and below vmap too."""
    scores, direction = scores_of("single"), scores_of("single", seed=1)

    def f(s):
        return (OF_TREES[quantity](s) ** 2).sum()

    leaf = scores.clone().requires_grad_()
    (expected,) = torch.autograd.grad(f(leaf), leaf)
    along = (expected * direction).sum()
    with forward_ad.dual_level():
        by_dual = forward_ad.unpack_dual(f(forward_ad.make_dual(scores, direction))).tangent
    for ours, right in (
        (grad(f)(scores), expected),
        (jacfwd(f, randomness="same")(scores), expected),
        (jvp(f, (scores,), (direction,))[1], along),
        (by_dual, along),
        (grad(lambda s: vmap(f, randomness="same")(s).sum())(scores[None])[0], expected),
    ):
        torch.testing.assert_close(ours, right, rtol=1e-10, atol=1e-12)


def test_estimators_inside_transformations():
    """Of what torch draws for each sentence, they are what they are outside."""

    def first_is_root(heads):
        return (heads[..., 1] == 0).double()

    scores = scores_of("single")
    for k, estimator in ((9, st.unordered_set), (4, st.score_function)):  # nine trees: exact

        def f(s, estimator=estimator, k=k):
            return estimator(st.TreeDistribution(s), first_is_root, k).sum()

        torch.manual_seed(0)
        inside = grad(f)(scores)
        torch.manual_seed(0)
        leaf = scores.clone().requires_grad_()
        torch.testing.assert_close(inside, torch.autograd.grad(f(leaf), leaf)[0], rtol=1e-12, atol=1e-14)
    exact = grad(lambda s: st.TreeDistribution(s).marginals()[:, 0, 1].sum())(scores)
    mapped = vmap(grad(lambda s: st.unordered_set(st.TreeDistribution(s), first_is_root, 9)), randomness="different")
    torch.testing.assert_close(mapped(scores), exact, rtol=1e-9, atol=1e-12)


def test_vmap_where_numbers_would_be_looked_at():
    """Masks of words, lengths of a second distribution, and trees that are checked."""
    scores, lengths = scores_of("single"), torch.tensor([3, 2])
    words = torch.arange(3) < lengths[:, None]
    dist = st.TreeDistribution(scores, lengths=lengths)
    by_mask = vmap(lambda s, m: st.TreeDistribution(s, mask=m).log_partition())(scores, words)
    assert torch.equal(by_mask, dist.log_partition())

    def to_itself(s, n, m):
        return st.TreeDistribution(s, lengths=n).kl(st.TreeDistribution(2 * s, lengths=m))

    expected = dist.kl(st.TreeDistribution(2 * scores, lengths=lengths))
    assert torch.equal(vmap(to_itself)(scores, lengths, lengths.clone()), expected)
    checked = vmap(lambda s, n, h: st.TreeDistribution(s, lengths=n, validate_args=True).log_prob(h))
    assert torch.equal(checked(scores, lengths, dist.argmax()), dist.log_prob(dist.argmax()))


def test_log_prob_of_many_trees():
    """One solve, any number of trees, forwards and backwards, twice."""
    scores = scores_of("single").requires_grad_()
    heads = st.TreeDistribution(scores).sample((5, 3))
    assert heads.shape == (5, 3, 2, 4)
    assert gradcheck(lambda s: st.TreeDistribution(s).log_prob(heads), scores, check_forward_ad=True)
    assert gradgradcheck(lambda s: st.TreeDistribution(s).log_prob(heads), scores)
    assert gradcheck(lambda s: st.TreeDistribution(s).score(heads), scores, check_forward_ad=True)


# The compiler

COMPILED = ("log_prob", "partial", "marginals", "entropy", "risk", "kl")


@pytest.fixture(autouse=True)
def _fresh_compiler():
    torch.compiler.reset()


@pytest.mark.parametrize(("kind", "dynamic"), [*((kind, False) for kind in KINDS), ("single", True)])
def test_compile(kind, dynamic):
    """Many quantities in one graph, forwards and backwards."""
    lengths = torch.tensor([3, 2])

    def ask(scores):
        dist = st.TreeDistribution(scores, lengths=lengths, **KINDS[kind])
        return sum(QUANTITIES[quantity](dist).sum() for quantity in COMPILED)

    compiled = torch.compile(ask, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    for seed in range(2):
        scores = scores_of(kind, seed=seed).requires_grad_()
        value, expected = compiled(scores), ask(scores)
        torch.testing.assert_close(value, expected, rtol=1e-14, atol=0)
        slopes = (torch.autograd.grad(x, scores)[0] for x in (value, expected))
        torch.testing.assert_close(*slopes, rtol=1e-12, atol=1e-12)


def test_one_graph_for_all_sizes():
    """Batches of other sizes and longer sentences are not compiled anew, forwards and backwards."""

    def ask(scores, heads, lengths):
        dist = st.TreeDistribution(scores, lengths=lengths)
        numbers = dist.log_prob(heads), dist.max(), dist.topk(2).scores, dist.entropy(), dist.risk(heads)
        return sum(each.sum() for each in numbers) + st.tree_crf_loss(scores, heads) + st.hinge_loss(scores, heads)

    compiled = torch.compile(ask, fullgraph=True, backend="aot_eager", dynamic=True)
    for sentences, nodes in ((2, 4), (5, 5), (3, 7)):
        scores = torch.randn(sentences, nodes, nodes, dtype=torch.float64).requires_grad_()
        given = scores, st.TreeDistribution(scores).sample(), torch.full((sentences,), nodes - 1)
        with torch.compiler.set_stance("default" if sentences == 2 else "fail_on_recompile"):
            slopes = [torch.autograd.grad(f(*given), scores)[0] for f in (compiled, ask)]
        torch.testing.assert_close(*slopes, rtol=1e-12, atol=1e-12)


def test_compile_losses():
    def ask(scores):
        return (
            st.tree_crf_loss(scores, HEADS)
            + st.tree_crf_loss(scores, torch.where(HEADS == 2, -100, HEADS), ignore_index=-100)
            + st.risk_loss(scores, HEADS)
            + st.hinge_loss(scores, HEADS)
            + st.distillation_loss(scores, scores.detach() * 2)
            + st.entropy_loss(scores)
        )

    scores = scores_of("single").requires_grad_()
    value, expected = torch.compile(ask, fullgraph=True, backend="aot_eager")(scores), ask(scores)
    torch.testing.assert_close(value, expected, rtol=1e-14, atol=0)
    torch.testing.assert_close(*(torch.autograd.grad(x, scores)[0] for x in (value, expected)), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dynamic", [False, True])
def test_compile_trees(dynamic):
    """Decoding and sampling; the generator's state decides, compiled or not."""

    def ask(scores):
        dist = st.TreeDistribution(scores)
        return dist.argmax(), dist.topk(2).heads, dist.mbr(), dist.sample((2, 3)), dist.mode

    compiled = torch.compile(ask, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    torch.manual_seed(0)
    ours = compiled(scores_of("single"))
    torch.manual_seed(0)
    for mine, right in zip(ours, ask(scores_of("single")), strict=True):
        assert torch.equal(mine, right)


def test_inductor():
    scores = scores_of("single").requires_grad_()

    def ask(scores):
        return st.tree_crf_loss(2 * scores, HEADS)

    value = torch.compile(ask, fullgraph=True)(scores)
    torch.testing.assert_close(value, ask(scores), rtol=1e-14, atol=0)
    torch.testing.assert_close(*(torch.autograd.grad(x, scores)[0] for x in (value, ask(scores))))


def test_infeasible_in_compiled_code():
    import spantree

    scores = scores_of("single")
    scores[1, :, 2] = -torch.inf
    compiled = torch.compile(asked("single", "entropy"), fullgraph=True, backend="aot_eager")
    with pytest.raises(spantree.InfeasibleError, match=r"sentence 1 .* word 2"):
        compiled(scores)


def test_export():
    class Parser(torch.nn.Module):
        def forward(self, scores, lengths):
            dist = st.TreeDistribution(scores, lengths=lengths)
            return dist.argmax(), dist.marginals(), dist.entropy()

    given = scores_of("single"), torch.tensor([3, 2])
    batch = torch.export.Dim("batch", min=1, max=64)
    exported = torch.export.export(Parser(), given, dynamic_shapes=({0: batch}, {0: batch}))
    larger = torch.cat([given[0], given[0]]), torch.tensor([3, 2, 1, 3])
    for scores, lengths in (given, larger):
        for mine, right in zip(exported.module()(scores, lengths), Parser()(scores, lengths), strict=True):
            assert torch.equal(mine, right)


OPERATORS = {
    "log_partition": lambda s, f: (s, None, f, True),
    "marginals": lambda s, f: (s, torch.tensor([3, 2]), f),
    "hessian": lambda s, f: (s, torch.randn(3, *s.shape).to(s.dtype), None, f),
    "third": lambda s, f: (s.detach(), torch.ones_like(s), torch.randn(s.shape).to(s.dtype), None, f),
    "entropy": lambda s, f: (s, None, f, True),
    "expectation": lambda s, f: (s, torch.ones_like(s), None, f, True),
    "cross_entropy": lambda s, f: (s, torch.zeros_like(s), None, f, True),
    "kl": lambda s, f: (s, torch.zeros_like(s), None, f, True),
    "crf_loss": lambda s, f: (s, HEADS, LABELS if s.dim() == 4 else None, None, f, False, True),
    "log_prob": lambda s, f: (s, HEADS, LABELS if s.dim() == 4 else None, None, f, True),
    "score": lambda s, f: (s, HEADS.expand(3, 2, 4), LABELS.expand(3, 2, 4) if s.dim() == 4 else None, None, f),
    "argmax": lambda s, f: (s, None, f),
    "topk": lambda s, f: (s, None, f, 2),
    "sample": lambda s, f: (s, torch.tensor([[1, 2], [3, 4]]), None, f, 2, "auto"),
    "sample_without_replacement": lambda s, f: (s, torch.tensor([[1, 2], [3, 4]]), None, f, 2, "auto"),
    "unordered_set_weights": lambda s, f: (
        s.detach().flatten(1).mT - 9.0,
        torch.tensor([-1.0, -2.0]),
        s.detach().flatten(1).mT,
    ),
}
STRIDES = {
    "contiguous": lambda s: s,
    "transposed": lambda s: s.transpose(1, 2).contiguous().transpose(1, 2),
    "strided": lambda s: torch.stack([s, s], 1)[:, 0],
    "expanded": lambda s: s[:1].expand(s.shape),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_opcheck(name):
    operator = getattr(torch.ops.spantree, name).default
    for kind, dtype, strides in (
        ("single", torch.float64, "contiguous"),
        ("single", torch.float32, "transposed"),
        ("single", torch.bfloat16, "strided"),
        ("single", torch.float64, "expanded"),
        ("labelled", torch.float32, "transposed"),
    ):
        # (opcheck adds all results up to differentiate the sum: integers and floats do not go together.)
        with_grad = dtype == torch.float64 and name not in ("topk", "sample_without_replacement")
        scores = STRIDES[strides](scores_of(kind).to(dtype)).requires_grad_(with_grad)
        torch.library.opcheck(operator, OPERATORS[name](scores, 13 if kind == "labelled" else 9))


def test_copy_of_what_has_a_gradient():
    scores = scores_of("single").requires_grad_()
    dist = st.TreeDistribution(scores, lengths=[3, 2])
    for other in (copy.deepcopy(dist), copy.copy(dist)):
        (slope,) = torch.autograd.grad(other.log_partition().sum(), scores)
        torch.testing.assert_close(slope, dist.marginals(), rtol=1e-14, atol=1e-14)
    deep = copy.deepcopy(dist)
    deep.scores.detach().zero_()
    assert not torch.equal(deep.entropy(), dist.entropy())


def test_pickle_and_copy():
    dist = st.TreeDistribution(scores_of("single"), lengths=[3, 2])
    for other in (pickle.loads(pickle.dumps(dist)), copy.deepcopy(dist), copy.copy(dist)):
        assert torch.equal(other.entropy(), dist.entropy())
        assert other.root == dist.root


def test_gradients_lie_as_compiled_code_expects():
    """Of two tensors whose strides differ."""
    p, q = scores_of("single").requires_grad_(), scores_of("single", seed=1).mT.requires_grad_()
    for name in ("kl", "cross_entropy"):
        operator = getattr(torch.ops.spantree, name).default
        torch.library.opcheck(operator, (p, q, None, 9, True))
        torch.library.opcheck(operator, (q, p, None, 9, True))


def test_forward_mode_of_what_was_compiled_before_is_an_error():
    f = torch.compile(asked("single", "log_partition"), fullgraph=True, backend="aot_eager")
    f(scores_of("single"))
    with forward_ad.dual_level(), pytest.raises(NotImplementedError, match="forward mode inside compiled code"):
        f(forward_ad.make_dual(scores_of("single"), scores_of("single", seed=1)))


# What torch 2.13 cannot do. Should one of these pass, docs/pytorch.md has a line too many.


@pytest.mark.xfail(strict=True, raises=RuntimeError, reason="torch does not differentiate compiled graphs twice")
def test_double_backward_of_compiled_code():
    scores = scores_of("single").requires_grad_()
    value = torch.compile(asked("single", "entropy"), fullgraph=True, backend="aot_eager")(scores).sum()
    (slope,) = torch.autograd.grad(value, scores, create_graph=True)
    slope.sum().backward()


@pytest.mark.xfail(
    strict=True, raises=torch._dynamo.exc.TorchRuntimeError, reason="no torch.func.grad in compiled code"
)
def test_func_grad_in_compiled_code():
    torch.compile(grad(lambda s: asked("single", "entropy")(s).sum()), fullgraph=True, backend="aot_eager")(
        scores_of("single")
    )


def test_forward_mode_in_compiled_code():
    """Torch would drop the derivative, and say nothing. Where graphs may break the answer is right."""
    scores, direction = scores_of("single"), scores_of("single", seed=1)

    def tangent(s):
        return jvp(asked("single", "entropy"), (s,), (direction,))[1]

    with pytest.raises(torch._dynamo.exc.Unsupported, match="NotImplementedError"):
        torch.compile(tangent, fullgraph=True, backend="aot_eager")(scores)


def test_vmap_over_sentences_with_several_trees_each():
    """What there are several of has an axis of its own, before the one that is mapped."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(3, 4, 4, dtype=torch.float64, generator=generator)
    heads = st.TreeDistribution(scores[0]).sample((5,), generator=generator)
    values = torch.randn(4, 4, 2, dtype=torch.float64, generator=generator)

    def answers(s):
        dist = st.TreeDistribution(s)
        return dist.log_prob(heads), dist.covariance(values, values), dist.expectation(values)

    expected = [torch.stack(parts) for parts in zip(*(answers(s) for s in scores), strict=True)]
    for found, right in zip(torch.func.vmap(answers)(scores), expected, strict=True):
        torch.testing.assert_close(found, right, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("question", ["tree_crf_loss", "log_partition"])
def test_forward_mode_in_backward_alone(question):
    """The derivative along a moving slope, of what was computed before forward mode began."""
    scores = scores_of("single", 1)[0].requires_grad_()
    losses = {
        "tree_crf_loss": lambda s: st.tree_crf_loss(s, HEADS[0]),
        "log_partition": asked("single", "log_partition"),
    }
    (gradient,) = torch.autograd.grad(losses[question](scores), scores)
    loss = losses[question](scores)
    with forward_ad.dual_level():
        slope = forward_ad.make_dual(torch.ones_like(loss), torch.full_like(loss, 3.0))
        (moved,) = torch.autograd.grad(loss, scores, slope)
        torch.testing.assert_close(forward_ad.unpack_dual(moved).tangent, 3.0 * gradient)


@pytest.mark.parametrize("sentences", [1, 2])
@pytest.mark.parametrize("quantity", ["log_partition", "entropy", "expectation", "kl", "partial"])
def test_backward_again(quantity, sentences):
    """Gradients are handed out once, scaled in place; whoever comes later gets the same ones, whatever came before."""
    scores = scores_of("single", sentences).requires_grad_()
    value = asked("single", quantity)(scores)
    slopes = torch.linspace(1.0, 2.0, sentences, dtype=torch.float64)

    def gradient(factor, **options):
        return torch.autograd.grad(value, scores, factor * slopes, retain_graph=True, **options)[0]

    first = gradient(1.0)
    kept = first.clone()
    assert torch.equal(gradient(-2.0), -2.0 * kept)
    batched = gradient(torch.tensor([[1.0], [-4.0]], dtype=torch.float64), is_grads_batched=True)
    torch.testing.assert_close(batched, torch.stack([kept, -4.0 * kept]), rtol=1e-12, atol=1e-15)
    torch.testing.assert_close(gradient(1.0, create_graph=True).detach(), kept, rtol=1e-12, atol=1e-15)
    assert torch.equal(gradient(1.0), kept)
    assert torch.equal(first, kept)
