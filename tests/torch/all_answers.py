"""Every question that spantree.torch takes, asked once of two sentences: for tests of where tensors are."""

from __future__ import annotations

import math

import spantree.torch as st
import torch

KINDS = {
    "single": {},
    "multi": {"root": "multi"},
    "projective": {"projective": True, "layout": "dep_head"},
    "labelled": {"labelled": True},
}


def problem(kind):
    """Scores, values, other scores, heads and labels."""
    generator = torch.Generator().manual_seed(0)
    shape = (2, 4, 4, 3) if kind == "labelled" else (2, 4, 4)
    scores, values, other = torch.randn(3, *shape, generator=generator, dtype=torch.float64)
    best = st.TreeDistribution(scores, **KINDS[kind]).argmax()
    return scores, values.abs(), other, *((best.heads, best.labels) if kind == "labelled" else (best, None))


def answers(kind, scores, values, other, heads, labels):
    """By name. Lengths are always in the memory of the host; random bits come from the same state."""
    options = KINDS[kind]
    of_losses = {key: value for key, value in options.items() if key != "labelled"}
    lengths = torch.tensor([3, 2], device="cpu")
    dist = st.TreeDistribution(scores, lengths=lengths, **options)
    full = st.TreeDistribution(scores, **options)
    unknown = torch.full_like(heads, -2)

    def bits():
        return torch.Generator("cpu").manual_seed(0)

    def roots(heads, *_):
        return (heads == 0).sum(-1).to(scores.dtype)

    drawn, best = dist.sample_without_replacement(2, generator=bits()), dist.topk(2)
    trees = {"argmax": dist.argmax(), "mbr": dist.mbr(), "sample": dist.sample((2, 3), generator=bits())}
    trees["ancestral"] = dist.sample(3, generator=bits(), method="ancestral")
    found = {
        "log_partition": dist.log_partition(),
        "marginals": dist.marginals(),
        "entropy": dist.entropy(),
        "max": dist.max(),
        "score": full.score(heads, labels),
        "log_prob": full.log_prob(heads, labels),
        "partial": dist.log_prob(unknown, partial=True),
        "best scores": best.scores,
        "best heads": best.heads,
        "expectation": dist.expectation(values),
        "several expectations": dist.expectation(torch.stack([values, other], -1)),
        "product": dist.product_expectation(values),
        "product of negative values": dist.product_expectation(values if dist.projective else -values),
        "covariance": dist.covariance(values, other),
        "covariance with edges": dist.covariance(values, "edges"),
        "second_moment": dist.second_moment(values, other),
        **{f"renyi {a}": dist.renyi_entropy(a) for a in (0.5, 2.0, math.inf)},
        "norm": dist.norm(2.0),
        "risk": dist.risk(heads, labels),
        "generalized_expectation": dist.generalized_expectation(values, 0.5),
        "kl": dist.kl(st.TreeDistribution(other, lengths=lengths, **options)),
        "cross_entropy": full.cross_entropy(full.with_scores(other)),
        "condition": full.condition(heads=heads, labels=labels).log_partition(),
        "exclude": full.condition(exclude=[(0, 1)]).log_partition(),
        "complete": dist.complete(unknown)[1],
        "edges_of": dist.edges_of(heads, labels),
        "log_probs": drawn.log_probs,
        "keys": drawn.keys,
        "estimate": drawn.estimate(roots),
        "weights": drawn.gradient_weights(roots(drawn.heads)),
        "expand": dist.expand((3, 2)).entropy(),
        "one": dist[1].entropy(),
        "lengths": dist.lengths,
        "next best": next(dist[0].iter_best()).scores,
        "half": full.with_scores(scores.detach()).entropy() + st.TreeDistribution(scores.half(), **options).entropy(),
        "mask": st.TreeDistribution(scores, mask=values < 2.0, on_infeasible="mask", **options).log_partition(),
        "mask of words": st.TreeDistribution(scores, mask=heads[:, 1:] > -5, **options).entropy(),
        "temperature": st.TreeDistribution(scores, temperature=2.0, **options).entropy(),
        "list": st.TreeDistribution([scores[0], scores[1][:3, :3]], **options).marginals()[1],
        "loss": st.tree_crf_loss(scores, heads, labels=labels, **of_losses),
        "losses": st.tree_crf_loss(scores, heads, labels=labels, lengths=lengths, reduction="none", **of_losses),
        "partial loss": st.tree_crf_loss(scores, unknown, labels=labels, partial=True, **of_losses),
        "risk_loss": st.risk_loss(scores, heads, labels, **of_losses),
        "hinge_loss": st.hinge_loss(scores, heads, labels, **of_losses),
        "entropy_loss": st.entropy_loss(scores, **options),
        "distillation_loss": st.distillation_loss(scores, other, **options),
        "straight_through": st.straight_through(dist, generator=bits()),
        "implicit_mle": st.implicit_mle(dist, temperature=0.0),
        "score_function": st.score_function(dist, roots, 3, generator=bits()),
        "unordered_set": st.unordered_set(dist, roots, 2, generator=bits()),
    }
    for name, tree in trees.items():
        found[name] = tree.heads if dist.labelled else tree
        if dist.labelled:
            found[f"labels of {name}"] = tree.labels
    if not dist.labelled:
        found["support"] = dist.support.check(dist.argmax())
        found["all trees"] = full.enumerate_support()
        found["solve_on_device"] = st.solve_on_device(scores, lengths, layout=options.get("layout", "head_dep"))[1]
    return found


def gradients(found, scores):
    """Of the sum of each answer that has one."""
    slopes = {}
    for name, answer in found.items():
        if answer.requires_grad:
            finite = torch.where(answer.isfinite(), answer, 0.0).sum()
            (slopes[name],) = torch.autograd.grad(finite, scores, retain_graph=True)
    return slopes
