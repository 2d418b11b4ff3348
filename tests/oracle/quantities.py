"""Every question a distribution can be asked, how it is asked in any form, and what the list of all trees answers.

Tolerances. A probability may be off by 1e-11 of itself, so

- its logarithm, and every entropy, by 1e-11 absolutely, whatever the size of the scores;
- an expectation by 1e-11 of the expectation of the magnitudes, E[sum of |values|], and likewise for products;
- a gradient, which is a covariance with an edge, and other covariances by 1e-11 of the largest values involved;
- a score or a log-partition by its last digit or two: 4e-16 of itself, besides the 1e-11 of a logarithm.

Marginals are held to 1e-11 of themselves down to 1e-250, and below that to be below. A tree is right or wrong.
In float32 the answer is the rounded value of something within these bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import spantree
from oracle import structures
from oracle.forms import Form
from oracle.law import BITS, ONE, SCORE_BITS, Law, floats, in_units, to_float
from oracle.sentence import Sentence

RELATIVE = 1e-11
LAST_DIGITS = 4e-16


@dataclass(frozen=True)
class Kind:
    """Which trees."""

    root: str
    projective: bool

    @property
    def options(self) -> dict[str, Any]:
        return {"root": self.root, "projective": self.projective}


class Near:
    """A number, or an array of them, and by how much an answer may be off."""

    def __init__(self, value: Any, tolerance: Any) -> None:
        self.value = np.asarray(value, np.float64)
        self.tolerance = np.broadcast_to(np.asarray(tolerance, np.float64), self.value.shape)

    def complaint(self, got: np.ndarray, dtype: np.dtype) -> str | None:
        """What is wrong with an answer, if anything is."""
        got = np.asarray(got)
        if got.dtype != dtype:
            return f"dtype {got.dtype}, not {dtype}"
        if got.shape != self.value.shape:
            return f"shape {got.shape}, not {self.value.shape}"
        with np.errstate(all="ignore"):
            low = np.where(np.isfinite(self.value), self.value - self.tolerance, self.value).astype(dtype)
            high = np.where(np.isfinite(self.value), self.value + self.tolerance, self.value).astype(dtype)
            right = ((low <= got) & (got <= high)) | (np.isnan(self.value) & np.isnan(got))
        if right.all():
            return None
        if not right.shape:
            return f"{got!r} instead of {self.value!r}"
        at = tuple(int(i) for i in np.argwhere(~right)[0])
        return f"{got[at]!r} instead of {self.value[at]!r} at {at}, {np.count_nonzero(~right)} wrong"


@dataclass(frozen=True)
class Either:
    """Any of several answers."""

    answers: tuple[Any, ...]

    def complaint(self, got: np.ndarray, dtype: np.dtype) -> str | None:
        complaints = [answer.complaint(got, dtype) for answer in self.answers]
        return None if None in complaints else str(complaints[0])


class Undefined:
    """NaN for every edge; outside of the edges 0 will do. A gradient may also be 0: there is nothing to learn."""

    def __init__(self, edges: np.ndarray, gradient: bool) -> None:
        self.edges, self.gradient = edges, gradient

    def complaint(self, got: np.ndarray, dtype: np.dtype) -> str | None:
        if got.dtype != dtype or got.shape != self.edges.shape:
            return f"{got.dtype} {got.shape}, not {dtype} {self.edges.shape}"
        if self.gradient and (got == 0).all():
            return None
        right = np.where(self.edges, np.isnan(got), np.isnan(got) | (got == 0)).all()
        return None if right else f"{got.tolist()} where there is no tree"


class Anything:
    """Where no answer is promised."""

    def complaint(self, got: np.ndarray, dtype: np.dtype) -> str | None:
        return None


@dataclass(frozen=True)
class Check:
    """A function of the answer that says what is wrong with it."""

    check: Callable[[Any, np.dtype], str | None]

    def complaint(self, got: Any, dtype: np.dtype) -> str | None:
        return self.check(got, dtype)


@dataclass(frozen=True)
class Question:
    """`ask` gives a tuple of answers for each sentence, `expect` what each of them must be."""

    name: str
    ask: Callable[[Any, Form, list[Sentence]], list[tuple[Any, ...]]]
    expect: Callable[[Sentence, Kind], tuple[Any, ...]]  # what is asked for comes first, more may follow


# Numbers that may be off by something


def _logarithm(x: int, scale: float = 1.0) -> Near:
    value = to_float(x)
    return Near(value, RELATIVE * scale + LAST_DIGITS * abs(value) if np.isfinite(value) else 0.0)


def _last_digits(x: int, bits: int = BITS) -> Near:
    value = to_float(x, bits)
    return Near(value, LAST_DIGITS * abs(value) if np.isfinite(value) else 0.0)


def _edges(x: np.ndarray, scale: float, law: Law) -> Near:
    """Numbers per edge; exactly 0 where the scores forbid it, in column 0 and on the diagonal."""
    value = floats(x)
    return Near(value, np.where(_may_be(law), RELATIVE * scale + LAST_DIGITS * np.abs(value), 0.0))


def _may_be(law: Law) -> np.ndarray:
    return structures.read(law.given) & (law.given > -np.inf)


def _marginals(law: Law) -> Near:
    marginals = floats(law.marginals)
    return Near(marginals, np.where(law.possible, RELATIVE * marginals + 1e-261, 0.0))


def _nothing(*shapes: tuple[int, ...], edges: np.ndarray | None = None) -> tuple[Any, ...]:
    """NaN of some shapes; and of the shape of the edges."""
    numbers = tuple(Near(np.full(shape, np.nan), 0.0) for shape in shapes)
    return numbers if edges is None else (*numbers, Undefined(edges, gradient=bool(shapes)))


def _no_tree(sentence: Sentence, kind: Kind) -> bool:
    return not sentence.law(kind.root, kind.projective).feasible


def _fixed(values: np.ndarray, law: Law) -> np.ndarray:
    """Values per edge as integers, flat; 0 on edges of no tree."""
    there = law.possible.reshape(-1)
    out = np.zeros(there.size, object)
    out[there] = [in_units(x, BITS) for x in values.reshape(-1)[there]]
    return out


# How questions are asked


def _with_both_gradients(method: str) -> Callable[..., list[tuple[Any, ...]]]:
    """Of what compares two distributions, by the scores of either."""

    def ask(dist, form, sentences):
        value, mine, theirs = getattr(dist, method)(_other(dist, form, sentences), with_grad="both")
        values = form.scalars_of(value, sentences)
        gradients = (form.edges_of(gradient, sentences) for gradient in (mine, theirs))
        return list(zip(values, *gradients, strict=True))

    return ask


def _scalar(call: Callable[[Any, Form, list[Sentence]], Any]) -> Callable[..., list[tuple[Any, ...]]]:
    def ask(dist, form, sentences):
        return [(x,) for x in form.scalars_of(call(dist, form, sentences), sentences)]

    return ask


def _with_gradient(call: Callable[..., Any], after: int = 0) -> Callable[..., list[tuple[Any, ...]]]:
    def ask(dist, form, sentences):
        value, gradient = call(dist, form, sentences)
        values = form.scalars_of(value, sentences)
        return list(zip(values, form.edges_of(gradient, sentences), strict=True))

    return ask


# Decoding


def _tree_scores(law: Law, heads: np.ndarray, labels: np.ndarray | None) -> list[int] | str:
    """Exact scores of trees (k, n+1), or what is wrong with them."""
    at = [law.index(row, None if labels is None else labels[i]) for i, row in enumerate(heads)]
    for t, row in zip(at, heads, strict=True):
        if t < 0:
            return f"{row.tolist()} is no tree of the scores"
    if any(row[0] != -1 for row in heads) or (labels is not None and any(row[0] != -1 for row in labels)):
        return "ROOT has a head or a label"
    if len(set(at)) < len(at):
        return "a tree comes twice"
    return [law.scores[t] for t in at]


def _is_best(law: Law) -> Check:
    def check(got, dtype):
        heads, labels = got
        if not law.feasible:
            return (
                None
                if (heads == -1).all() and (labels is None or (labels == -1).all())
                else "a tree where there is none"
            )
        scores = _tree_scores(law, heads[None], None if labels is None else labels[None])
        if isinstance(scores, str):
            return scores
        if scores[0] != law.best:
            return f"{heads.tolist()} is {to_float(law.best - scores[0], SCORE_BITS)} worse than the best"
        return None

    return Check(check)


def _are_best(law: Law, k: int) -> Check:
    """k best trees in order, with their scores; then -1 and -inf."""

    def check(got, dtype):
        heads, labels, given = got
        wanted = sorted(law.scores[law.allowed], reverse=True)[:k]
        if (heads[len(wanted) :] != -1).any() or (given[len(wanted) :] != -np.inf).any():
            return f"more than {len(wanted)} trees"
        scores = _tree_scores(law, heads[: len(wanted)], None if labels is None else labels[: len(wanted)])
        if isinstance(scores, str):
            return scores
        if scores != wanted:
            i = next(i for i, pair in enumerate(zip(scores, wanted, strict=True)) if pair[0] != pair[1])
            return f"tree {i} is {to_float(wanted[i] - scores[i], SCORE_BITS)} worse than it should be"
        if given.dtype != dtype:
            return f"scores of dtype {given.dtype}"
        for i, x in enumerate(wanted):
            complaint = _last_digits(x, SCORE_BITS).complaint(given[i], dtype)
            if complaint:
                return f"score of tree {i}: {complaint}"
        return None

    return Check(check)


def _trees_of(form: Form, result: Any, sentences: list[Sentence], before: int = 0) -> list[tuple[Any, Any]]:
    """Heads and labels (or None) of each sentence."""
    if not sentences[0].labels:
        return [
            (heads, None)
            for heads in form.nodes_of(
                result if not isinstance(result, spantree.Trees) else result.heads, sentences, before
            )
        ]
    heads, labels = form.nodes_of(result.heads, sentences, before), form.nodes_of(result.labels, sentences, before)
    return list(zip(heads, labels, strict=True))


def _ask_argmax(dist, form, sentences):
    return [(tree,) for tree in _trees_of(form, dist.argmax(), sentences)]


def _expect_argmax(sentence, kind):
    return (_is_best(sentence.law(kind.root, kind.projective)),)


def _expect_max(sentence, kind):
    law = sentence.law(kind.root, kind.projective)
    return (_last_digits(law.best, SCORE_BITS) if law.feasible else Near(-np.inf, 0.0),)


def _topk(k):
    def ask(dist, form, sentences):
        best = dist.topk(k)
        trees = _trees_of(form, best, sentences, before=1)
        return [((*tree, s),) for tree, s in zip(trees, form.scalars_of(best.scores, sentences, before=1), strict=True)]

    return Question(f"topk({k})", ask, lambda sentence, kind: (_are_best(sentence.law(kind.root, kind.projective), k),))


def _ask_iter_best(dist, form, sentences):
    """Every tree, one sentence at a time."""
    answers = []
    for i, sentence in enumerate(sentences):
        one = (
            dist if form.kind == "one" else dist[i] if form.kind != "two axes" else dist[divmod(i, len(sentences) // 2)]
        )
        if not _no_tree(sentence, kind_of(dist)):
            best = list(one.iter_best())
            heads = np.array([tree.heads[: sentence.words + 1] for tree in best])
            labels = np.array([tree.labels[: sentence.words + 1] for tree in best]) if sentence.labels else None
            answers.append(((heads, labels, np.array([tree.scores for tree in best])),))
        else:
            answers.append((None,))
    return answers


def kind_of(dist) -> Kind:
    return Kind(dist.root, dist.projective)


def _expect_iter_best(sentence, kind):
    law = sentence.law(kind.root, kind.projective)
    return (_are_best(law, int(law.allowed.sum())) if law.feasible else Anything(),)


def _gold_options(form, sentences, which):
    """Heads, and labels if there are any, in the form of the scores."""
    heads = form.nodes([getattr(s, which)[0] for s in sentences], 77)
    return (heads, form.nodes([getattr(s, which)[1] for s in sentences], 77)) if sentences[0].labels else (heads,)


def _ask_score(method):
    def ask(dist, form, sentences):
        result = getattr(dist, method)(*_gold_options(form, sentences, "trees"))
        return [(x,) for x in form.scalars_of(result, sentences, before=0 if form.kind == "listed" else 1)]

    return ask


def _tree_indices(sentence, law):
    heads, labels = sentence.trees
    return [law.index(heads[i], labels[i] if sentence.labels else None) for i in range(len(heads))]


def _expect_score(sentence, kind):
    law = sentence.law(kind.root, kind.projective)
    nears = [
        _last_digits(law.scores[t], SCORE_BITS) if t >= 0 else Near(-np.inf, 0.0) for t in _tree_indices(sentence, law)
    ]
    return (Near([near.value for near in nears], [near.tolerance for near in nears]),)


def _expect_log_prob(sentence, kind):
    law = sentence.law(kind.root, kind.projective)
    nears = [_logarithm(law.log_probs[t]) if t >= 0 else Near(-np.inf, 0.0) for t in _tree_indices(sentence, law)]
    return (Near([near.value for near in nears], [near.tolerance for near in nears]),)


def _indicator(law: Law, t: int) -> np.ndarray:
    """ONE at the edges of a tree."""
    of_tree = np.zeros(len(law.heads), object)
    of_tree[t] = ONE
    return law.by_edge(of_tree)


def _expect_max_gradient(sentence, kind):
    """1 at the edges of a best tree."""
    law = sentence.law(kind.root, kind.projective)
    if not law.feasible:
        return Near(-np.inf, 0.0), Anything()
    best = [Near(floats(_indicator(law, t)), 0.0) for t in np.flatnonzero(law.allowed & (law.scores == law.best))]
    return (*_expect_max(sentence, kind), Either(tuple(best)))


def _one_tree(sentence, law):
    heads, labels = sentence.one_tree
    return law.index(heads, labels if sentence.labels else None)


def _expect_one_score(sentence, kind):
    law = sentence.law(kind.root, kind.projective)
    t = _one_tree(sentence, law)
    if t < 0:
        return Near(-np.inf, 0.0), Anything()
    return _last_digits(law.scores[t], SCORE_BITS), Near(floats(_indicator(law, t)), 0.0)


def _expect_one_log_prob(sentence, kind):
    law = sentence.law(kind.root, kind.projective)
    t = _one_tree(sentence, law)
    if t < 0:
        return Near(-np.inf, 0.0), Anything()
    return _logarithm(law.log_probs[t]), _edges(_indicator(law, t) - law.marginals, 1.0, law)


def _ask_conditioned(dist, form, sentences):
    include, exclude = ([sentence.conditions[i] for sentence in sentences] for i in range(2))
    given = dist.condition(include[0], exclude[0]) if form.kind == "one" else dist.condition(include, exclude)
    trees = _trees_of(form, given.argmax(), sentences)
    log_z = form.scalars_of(given.log_partition(), sentences)
    return list(zip(log_z, form.edges_of(given.marginals(), sentences), trees, strict=True))


def _expect_conditioned(sentence, kind):
    law = sentence.law(kind.root, kind.projective, "conditioned")
    if not law.feasible:
        return Near(-np.inf, 0.0), Near(np.zeros(law.shape), 0.0), _is_best(law)
    return _logarithm(law.log_partition), _marginals(law), _is_best(law)


def _ask_mbr(dist, form, sentences):
    return [(tree,) for tree in _trees_of(form, dist.mbr(), sentences)]


def _expect_mbr(sentence, kind):
    law = sentence.law(kind.root, kind.projective)
    if not law.feasible:
        return (_is_best(law),)
    rewards = law.sums(law.marginals.reshape(-1))
    highest = max(rewards[law.allowed])

    def check(got, dtype):
        t = law.index(*got)
        if t < 0:
            return f"{got[0].tolist()} is no tree of the scores"
        short = to_float(highest - rewards[t])
        return None if short <= RELATIVE else f"{got[0].tolist()} expects {short} less than the best"

    return (Check(check),)


# Log Z, marginals, entropies


def _ask_marginals(dist, form, sentences):
    return [(x,) for x in form.edges_of(dist.marginals(), sentences)]


def _expect_marginals(sentence, kind):
    law = sentence.law(kind.root, kind.projective)
    return (_marginals(law) if law.feasible else Near(np.zeros(law.shape), 0.0),)


def _expect_log_partition(sentence, kind):
    law = sentence.law(kind.root, kind.projective)
    return (_logarithm(law.log_partition) if law.feasible else Near(-np.inf, 0.0), *_expect_marginals(sentence, kind))


def _expect_entropy(sentence, kind):
    law = sentence.law(kind.root, kind.projective)
    if not law.feasible:
        return _nothing((), edges=structures.read(law.given))
    entropy = -law.mean(law.log_probs)
    return _logarithm(entropy, 1.0 + to_float(entropy)), _edges(-law.slope(law.log_probs), 1 + to_float(entropy), law)


@cache
def _cross(of_kl: bool):
    def expect(sentence, kind):
        p, q = sentence.law(kind.root, kind.projective), sentence.law(kind.root, kind.projective, "other")
        if not p.feasible:
            return _nothing((), edges=structures.read(p.given))
        if not q.feasible:
            return Either((Near(np.inf, 0.0), Near(np.nan, 0.0))), Anything(), Anything()
        lost = p.allowed & ~q.allowed
        if lost.any():
            # A tree that p has with a probability that no double holds may count as none.
            surely = to_float(int(p.probs[lost].sum())) > 1e-250
            return (Near(np.inf, 0.0) if surely else Anything()), Anything(), Anything()
        of_tree = p.log_probs - q.log_probs if of_kl else -q.log_probs
        value = p.mean(of_tree)
        scale = 1.0 + to_float(p.mean(abs(p.log_probs)) + p.mean(abs(q.log_probs)))
        return (
            _logarithm(value, scale),
            _edges(p.slope(of_tree), scale, p),
            Near(floats(q.marginals - p.marginals), np.where(structures.read(q.given), RELATIVE, 0.0)),
        )

    return expect


def _renyi(alpha: float):
    def expect(sentence, kind):
        law = sentence.law(kind.root, kind.projective)
        if not law.feasible:
            return _nothing((), edges=structures.read(law.given))
        if alpha == 0.0:
            return Near(np.log(law.allowed.sum()), RELATIVE), Near(np.zeros(law.shape), RELATIVE)
        if alpha == np.inf:
            return _logarithm(law.log_rest), _best_or_anything(law, lambda best: law.marginals - best)
        if alpha == 1.0:
            return _expect_entropy(sentence, kind)
        raised = sentence.law(kind.root, kind.projective, power=alpha)
        ratio = np.float64(alpha).as_integer_ratio()
        top, bottom = ratio
        value = (raised.log_rest * bottom - top * law.log_rest) // (bottom - top)
        slope = (raised.marginals - law.marginals) * top // (bottom - top)
        lost = max(1.0, alpha) / min(abs(1.0 - alpha), 1.0)  # of the digits of a logarithm, by the quotient
        scale = (1.0 + to_float(value)) * min(lost, 1e3)
        return _logarithm(value, scale), _edges(slope, (1 + to_float(value)) * min(lost, 1e3), law)

    return expect


def _best_or_anything(law: Law, gradient: Callable[[np.ndarray], np.ndarray], scale: float = 1.0) -> Any:
    """There is a gradient only where one tree is the best."""
    is_best = law.allowed & (law.scores == law.best)
    if is_best.sum() > 1:
        return Anything()
    best = law.by_edge(is_best.astype(object) * ONE)
    return _edges(gradient(best), scale, law)


def _norm(p: float):
    def expect(sentence, kind):
        law = sentence.law(kind.root, kind.projective)
        if not law.feasible:
            return _nothing((), edges=structures.read(law.given))
        if p == np.inf:
            value = max(law.probs)
            gradient = _best_or_anything(law, lambda best: (best - law.marginals) * value >> BITS)
            return Near(to_float(value), RELATIVE * to_float(value)), gradient
        raised = sentence.law(kind.root, kind.projective, power=p)
        top, bottom = np.float64(p).as_integer_ratio()
        exponent = to_float((raised.log_rest * bottom - top * law.log_rest) // top)
        value = np.exp(exponent) if exponent < 709.7 else np.inf
        slope = floats(raised.marginals - law.marginals) * value
        # (sum of p^(1/p)) for small p multiplies the digits that the logarithm of the sum has lost.
        tolerance = RELATIVE * value * (1.0 + abs(exponent) / max(1.0, p) * 1e-3) * max(1.0, 1.0 / p)
        return Near(value, tolerance), Near(slope, np.where(_may_be(law), 2 * tolerance, 0.0))

    return expect


# Expectations


def _total(law: Law, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of values and of their magnitudes over each tree."""
    fixed = _fixed(values, law)
    allowed = law.allowed.astype(int)
    return law.sums(fixed) * allowed, law.sums(abs(fixed)) * allowed


def _expected(law: Law, values: np.ndarray) -> tuple[Near, Near]:
    total, magnitude = _total(law, values)
    return (
        Near(to_float(law.mean(total)), RELATIVE * to_float(law.mean(magnitude)) + 1e-250),
        _edges(law.slope(total), _largest(values, law), law),
    )


def _largest(values: np.ndarray, law: Law) -> float:
    return float(np.abs(values[law.possible]).max(initial=0.0))


def _expect_expectation(sentence, kind):
    law = sentence.law(kind.root, kind.projective)
    return _expected(law, sentence.values) if law.feasible else _nothing((), edges=structures.read(law.given))


def _expect_expectations(sentence, kind):
    law = sentence.law(kind.root, kind.projective)
    if not law.feasible:
        return _nothing((2,), edges=np.stack([structures.read(law.given)] * 2, -1))
    pairs = [_expected(law, sentence.features[..., r]) for r in range(2)]
    return tuple(
        Near(np.stack([pair[i].value for pair in pairs], -1), np.stack([pair[i].tolerance for pair in pairs], -1))
        for i in range(2)
    )


def _values(form, sentences, which):
    return form.edges([getattr(s, which) for s in sentences], filler=np.nan)


def _product(which: str):
    def expect(sentence, kind):
        law = sentence.law(kind.root, kind.projective)
        if not law.feasible:
            return _nothing((), edges=structures.read(law.given))
        values = getattr(sentence, which)
        in_power = law.products(_fixed(values, law)) * law.allowed.astype(int)  # in the unit 2^(-BITS words)
        products = in_power * ONE >> BITS * law.words
        value, scale = law.mean(products), to_float(law.mean(abs(products)))
        slope = law.by_edge(law.probs * products >> BITS) - (law.marginals * value >> BITS)
        return Near(to_float(value), RELATIVE * scale + 1e-250), _edges(slope, 2 * scale + 1e-250, law)

    return expect


def _ask_signed_product(dist, form, sentences):
    values = _values(form, sentences, "values")
    try:
        return _with_gradient(lambda *_: dist.product_expectation(values, with_grad=True))(dist, form, sentences)
    except ValueError as refused:
        if "negative" in str(refused) and kind_of(dist).projective:
            return [(None, None)] * len(sentences)
        raise


def _expect_signed_product(sentence, kind):
    if kind.projective:
        return Anything(), Anything()
    return _product("values")(sentence, kind)


@cache
def _second(moment: bool, r: str, s: str):
    def numbers(sentence, law, which):
        values = getattr(sentence, which)
        columns = [values] if values.ndim == law.given.ndim else [values[..., i] for i in range(values.shape[-1])]
        return [_total(law, column)[0] for column in columns]

    def expect(sentence, kind):
        law = sentence.law(kind.root, kind.projective)
        single = getattr(sentence, r).ndim == law.given.ndim, getattr(sentence, s).ndim == law.given.ndim
        shape = tuple(size for size, alone in zip((2, 3), single, strict=True) if not alone)
        if not law.feasible:
            return _nothing(shape)
        left, right = numbers(sentence, law, r), numbers(sentence, law, s)
        value = np.zeros((len(left), len(right)))
        for i, a in enumerate(left):
            for j, b in enumerate(right):
                product = law.mean(a * b >> BITS) - (0 if moment else law.mean(a) * law.mean(b) >> BITS)
                value[i, j] = to_float(product)
        largest = (
            law.words**2
            * np.nanmax(np.abs(getattr(sentence, r)), initial=0)
            * np.nanmax(np.abs(getattr(sentence, s)), initial=0)
        )
        return (Near(value.reshape(shape), RELATIVE * largest),)

    return expect


def _sparse(form: Form, arrays: list[np.ndarray]) -> Any:
    """One matrix (edges, R) per sentence, edges flattened as the scores are handed in; NaN left out."""
    from scipy.sparse import csr_matrix

    dense = form.edges(arrays, filler=0.0)
    parts = dense if form.kind == "listed" else np.asarray(dense).reshape(-1, *np.shape(dense)[-arrays[0].ndim :])
    matrices = [csr_matrix(np.nan_to_num(part).reshape(-1, part.shape[-1])) for part in parts]
    return matrices[0] if form.kind == "one" else matrices


def _ask_second(method: str, r: str, s: str, sparse: tuple[bool, bool] = (False, False)):
    def side(form, sentences, which, as_sparse):
        if as_sparse:
            return _sparse(form, [getattr(sentence, which) for sentence in sentences])
        return _values(form, sentences, which)

    def ask(dist, form, sentences):
        result = getattr(dist, method)(side(form, sentences, r, sparse[0]), side(form, sentences, s, sparse[1]))
        return [(x,) for x in form.scalars_of(result, sentences)]

    return ask


def _expect_with_edges(moment: bool, which: str, first: bool):
    """With the indicators of all edges, on the right (R axis first) or on the left (R axis last)."""

    def expect(sentence, kind):
        law = sentence.law(kind.root, kind.projective)
        values = getattr(sentence, which)
        alone = values.ndim == law.given.ndim
        columns = [values] if alone else [values[..., i] for i in range(values.shape[-1])]
        if not law.feasible:
            edges = structures.read(law.given)
            return _nothing(edges=edges if alone else np.stack([edges] * len(columns), 0 if first else -1))
        parts = []
        for column in columns:
            total, _ = _total(law, column)
            numbers = law.by_edge(law.probs * total >> BITS) if moment else law.slope(total)
            parts.append(_edges(numbers, law.words * _largest(column, law), law))
        axis = 0 if first else -1
        if alone:
            return (parts[0],)
        return (Near(np.stack([x.value for x in parts], axis), np.stack([x.tolerance for x in parts], axis)),)

    return expect


def _ask_with_edges(method: str, which: str, first: bool):
    def ask(dist, form, sentences):
        values = _values(form, sentences, which)
        result = getattr(dist, method)(values, "edges") if first else getattr(dist, method)("edges", values)
        several = which != "values"
        if not several or not first:
            return [(x,) for x in form.edges_of(result, sentences)]
        return [(np.moveaxis(x, -1, 0),) for x in form.edges_of(_r_axis_last(form, result, sentences), sentences)]

    return ask


def _r_axis_last(form: Form, result: Any, sentences: list[Sentence]) -> Any:
    axes = 3 if sentences[0].labels else 2
    if form.kind == "listed":
        return [np.moveaxis(part, 0, -1) for part in result]
    return np.moveaxis(result, -1 - axes, -1)


def _gold_values(sentence: Sentence) -> np.ndarray:
    """1 / n at gold edges."""
    values = np.zeros(sentence.scores.shape)
    heads, labels = sentence.gold
    for dep in range(1, sentence.words + 1):
        if 0 <= heads[dep] <= sentence.words and (not sentence.labels or 0 <= labels[dep] < sentence.labels):
            values[(heads[dep], dep, labels[dep]) if sentence.labels else (heads[dep], dep)] = 1.0 / sentence.words
    return values


def _attachment(risk: bool):
    def expect(sentence, kind):
        law = sentence.law(kind.root, kind.projective)
        if not law.feasible:
            return _nothing((), edges=structures.read(law.given))
        if not sentence.words:
            return Near(0.0 if risk else 1.0, 0.0), Near(np.zeros(law.shape), 0.0)
        value, slope = _expected(law, _gold_values(sentence))
        return (Near(1 - value.value, RELATIVE), Near(-slope.value, slope.tolerance)) if risk else (value, slope)

    return expect


def _expect_generalized(sentence, kind):
    law = sentence.law(kind.root, kind.projective)
    if not law.feasible:
        return _nothing((), edges=structures.read(law.given))
    value, slope, scale = 0.0, np.zeros(law.shape), 0.0
    for r in range(2):
        total, magnitude = _total(law, sentence.features[..., r])
        distance = to_float(law.mean(total) - in_units(sentence.target[r], BITS))
        size = to_float(law.mean(magnitude)) + abs(sentence.target[r])
        value += 0.5 * distance**2
        slope += distance * floats(law.slope(total))
        scale += size * size
    return Near(value, RELATIVE * scale * 2), Near(slope, np.where(_may_be(law), RELATIVE * scale * 4, 0.0))


# Partial trees, and how sure a tree is


def _expect_partial(sentence, kind):
    """Log of the probability of all completions; its gradient."""
    law, agreeing = (sentence.law(kind.root, kind.projective, of) for of in ("scores", "completed"))
    if not law.feasible or not agreeing.feasible:
        return Near(-np.inf, 0.0), Anything()
    slope = agreeing.marginals - law.marginals
    return _logarithm(agreeing.log_partition - law.log_partition), _edges(slope, 1.0, law)


def _ask_given_heads(dist, form, sentences):
    heads, *labels = _gold_options(form, sentences, "partial")
    given = dist.condition(heads=heads, labels=labels[0] if labels else None)
    best, probability = dist.complete(heads, *labels)
    trees = _trees_of(form, best, sentences)
    probabilities = form.scalars_of(probability, sentences)
    return list(zip(form.edges_of(given.marginals(), sentences), trees, probabilities, strict=True))


def _expect_given_heads(sentence, kind):
    law, agreeing = (sentence.law(kind.root, kind.projective, of) for of in ("scores", "completed"))
    if not agreeing.feasible:
        return Near(np.zeros(law.shape), 0.0), _is_best(agreeing), Anything()
    best = int(np.flatnonzero(agreeing.allowed & (agreeing.scores == agreeing.best))[0])
    probability = to_float(law.probs[best])
    return _marginals(agreeing), _is_best(agreeing), Near(probability, RELATIVE * probability + 1e-261)


CONFIDENCE_OF_WORDS = ("head_probs", "runner_up_probs", "log_odds")
CONFIDENCE_OF_SENTENCES = ("log_prob", "margin", "entropy", "expected_attachment")


def _ask_confidence(dist, form, sentences):
    sure = dist.confidence()
    trees = _trees_of(form, spantree.Trees(sure.heads, labels=sure.labels), sentences)
    words = [form.scalars_of(getattr(sure, name), sentences) for name in CONFIDENCE_OF_WORDS]
    alone = [form.scalars_of(getattr(sure, name), sentences) for name in CONFIDENCE_OF_SENTENCES]
    numbers = [[part[: s.words + 1] for part, s in zip(parts, sentences, strict=True)] for parts in words]
    return list(zip(zip(trees, *numbers, strict=True), *alone, strict=True))


def _expect_confidence(sentence, kind):
    law = sentence.law(kind.root, kind.projective)
    if not law.feasible:
        return _is_masked, Near(-np.inf, 0.0), *_nothing((), (), ())
    marginals = law.marginals.sum(2) if law.labelled else law.marginals
    scores = sorted(law.scores[law.allowed], reverse=True)
    margin = (scores[0] - scores[1]) << (BITS - SCORE_BITS) if len(scores) > 1 else None
    entropy = -law.mean(law.log_probs)

    def check(got, dtype):
        (heads, labels), head_probs, runner_up_probs, log_odds = got
        complaint = _is_best(law).complaint((heads, labels), dtype)
        if complaint:
            return complaint
        for dep in range(1, law.words + 1):
            others = [marginals[h, dep] for h in range(law.words + 1) if h != heads[dep]]
            own, next_best, rest = (to_float(x) for x in (marginals[heads[dep], dep], max(others), sum(others)))
            odds = np.log(own) - np.log(rest) if min(own, rest) > 1e-250 else None
            for name, x, wanted in (
                ("head_probs", head_probs, Near(own, RELATIVE * own + 1e-261)),
                ("runner_up_probs", runner_up_probs, Near(next_best, RELATIVE * next_best + 1e-261)),
                ("log_odds", log_odds, Anything() if odds is None else Near(odds, 1e-10 + LAST_DIGITS * abs(odds))),
            ):
                complaint = wanted.complaint(x[dep], dtype)
                if complaint:
                    return f"{name} of word {dep}: {complaint}"
        return None

    # The mean over words of a best tree's marginals: of which best tree is the library's choice, if there are several.
    is_only = (law.scores[law.allowed] == law.best).sum() == 1
    best = int(np.flatnonzero(law.allowed & (law.scores == law.best))[0])
    mean = np.mean([to_float(marginals[h, d]) for d, h in enumerate(law.heads[best]) if d]) if law.words else 1.0
    return (
        Check(check),
        _logarithm(-law.log_rest),
        Near(np.inf, 0.0) if margin is None else _logarithm(margin),
        _logarithm(entropy, 1.0 + to_float(entropy)),
        Near(mean, RELATIVE) if is_only else Anything(),
    )


def _no_tree_named(got: Any, dtype: np.dtype) -> str | None:
    (heads, _), head_probs, *_ = got
    return None if (heads == -1).all() and np.isnan(head_probs).all() else "a tree where there is none"


_is_masked = Check(_no_tree_named)


def _other(dist, form, sentences):
    scores = form.edges([s.other for s in sentences])
    options = form.options(sentences) | {"labelled": bool(sentences[0].labels), "on_infeasible": "mask"}
    return spantree.TreeDistribution(scores, **options, **kind_of(dist).options)


def _grad_question(name: str, call: Callable[..., Any], expect: Callable[..., tuple[Any, ...]]) -> list[Question]:
    """The value alone, and the value with its gradient."""
    return [
        Question(name, _scalar(call), expect),
        Question(
            f"{name} with gradient",
            _with_gradient(lambda dist, form, sentences: call(dist, form, sentences, with_grad=True)),
            expect,
        ),
    ]


ALPHAS = [0.0, 1e-6, 1e-3, 0.5, 1.0 - 1e-9, 1.0, 1.0 + 1e-6, 2.0, 30.0, np.inf]
NORMS = [0.01, 0.5, 1.0, 2.0, np.inf]

GROUPS: dict[str, list[Question]] = {
    "best trees": [
        Question("argmax", _ask_argmax, _expect_argmax),
        Question("max", _scalar(lambda dist, *_: dist.max()), _expect_max),
        _topk(1),
        _topk(5),
        _topk(400),
        Question("iter_best", _ask_iter_best, _expect_iter_best),
        Question("score", _ask_score("score"), _expect_score),
        Question("max with gradient", _with_gradient(lambda dist, *_: dist.max(with_grad=True)), _expect_max_gradient),
        *_grad_question(
            "score of one", lambda dist, *a, **o: dist.score(*_gold_options(*a, "one_tree"), **o), _expect_one_score
        ),
        Question("mbr", _ask_mbr, _expect_mbr),
    ],
    "log Z and marginals": [
        *_grad_question("log_partition", lambda dist, *_, **o: dist.log_partition(**o), _expect_log_partition),
        Question("marginals", _ask_marginals, _expect_marginals),
        Question("log_prob", _ask_score("log_prob"), _expect_log_prob),
        *_grad_question(
            "log_prob of one",
            lambda dist, *a, **o: dist.log_prob(*_gold_options(*a, "one_tree"), **o),
            _expect_one_log_prob,
        ),
        Question("condition", _ask_conditioned, _expect_conditioned),
    ],
    "entropies": [
        *_grad_question("entropy", lambda dist, *_, **o: dist.entropy(**o), _expect_entropy),
        *_grad_question(
            "cross_entropy", lambda dist, *a, **o: dist.cross_entropy(_other(dist, *a), **o), _cross(False)
        ),
        Question("cross_entropy with both gradients", _with_both_gradients("cross_entropy"), _cross(False)),
        Question("kl with both gradients", _with_both_gradients("kl"), _cross(True)),
        *_grad_question("kl", lambda dist, *a, **o: dist.kl(_other(dist, *a), **o), _cross(True)),
        *(
            question
            for alpha in ALPHAS
            for question in _grad_question(
                f"renyi_entropy({alpha!r})",
                lambda dist, *_, alpha=alpha, **o: dist.renyi_entropy(alpha, **o),
                _renyi(alpha),
            )
        ),
        *(
            question
            for p in NORMS
            for question in _grad_question(f"norm({p!r})", lambda dist, *_, p=p, **o: dist.norm(p, **o), _norm(p))
        ),
    ],
    "partial trees": [
        *_grad_question(
            "log_prob of a partial tree",
            lambda dist, *a, **o: dist.log_prob(*_gold_options(*a, "partial"), partial=True, **o),
            _expect_partial,
        ),
        Question("condition on heads, complete", _ask_given_heads, _expect_given_heads),
        Question("confidence", _ask_confidence, _expect_confidence),
    ],
    "expectations": [
        *_grad_question(
            "expectation", lambda dist, *a, **o: dist.expectation(_values(*a, "values"), **o), _expect_expectation
        ),
        *_grad_question(
            "expectation of two",
            lambda dist, *a, **o: dist.expectation(_values(*a, "features"), **o),
            _expect_expectations,
        ),
        *_grad_question(
            "product_expectation",
            lambda dist, *a, **o: dist.product_expectation(_values(*a, "factors"), **o),
            _product("factors"),
        ),
        Question("signed product_expectation", _ask_signed_product, _expect_signed_product),
        *_grad_question(
            "expected_attachment",
            lambda dist, *a, **o: dist.expected_attachment(*_gold_options(*a, "gold"), **o),
            _attachment(False),
        ),
        *_grad_question("risk", lambda dist, *a, **o: dist.risk(*_gold_options(*a, "gold"), **o), _attachment(True)),
        *_grad_question(
            "generalized_expectation",
            lambda dist, form, sentences, **o: dist.generalized_expectation(
                _values(form, sentences, "features"), form.scalars([s.target for s in sentences]), **o
            ),
            _expect_generalized,
        ),
    ],
    "second moments": [
        Question(f"{name}({r}, {s})", _ask_second(name, r, s), _second(name == "second_moment", r, s))
        for name in ("covariance", "second_moment")
        for r, s in [("values", "values"), ("features", "more_features"), ("values", "more_features")]
    ]
    + [
        Question(
            f"{name}, sparse {sparse}",
            _ask_second(name, "features", "more_features", sparse),
            _second(name == "second_moment", "features", "more_features"),
        )
        for name in ("covariance", "second_moment")
        for sparse in [(True, False), (False, True), (True, True)]
    ]
    + [
        Question(
            f"{name}({which} {'first' if first else 'last'}, edges)",
            _ask_with_edges(name, which, first),
            _expect_with_edges(name == "second_moment", which, first),
        )
        for name in ("covariance", "second_moment")
        for which, first in [("values", True), ("values", False), ("features", True), ("features", False)]
    ],
}


def expected(question: Question, sentence: Sentence, kind: Kind) -> tuple[Any, ...]:
    key = (question.expect, kind)
    if key not in sentence.answers:
        sentence.answers[key] = question.expect(sentence, kind)
    return sentence.answers[key]
