"""Calls that nobody should make, or only just may: each works as documented or says what was wrong with what.

``python -m oracle.hostile_calls GROUP`` makes the calls of one group, a line before and after each: a crash or a hang
takes this process with it and not the tests.
"""

from __future__ import annotations

import decimal
import fractions
import random
import re
import resource
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

import spantree
from oracle.law import Law, floats
from spantree import TreeDistribution

MEMORY = 6 * 2**30
SECONDS = 30  # for one call; all of them together take less

rng = np.random.default_rng(0)
ONE = rng.normal(size=(5, 5))
SMALL = rng.normal(size=(3, 3))
BATCH = rng.normal(size=(3, 5, 5))
LABELLED = rng.normal(size=(4, 4, 3))
RAGGED = [rng.normal(size=(n, n)) for n in (5, 3, 4)]

INTERNAL = (
    "_core", "nanobind", "std::", "incompatible function arguments", "'NoneType'", "has no attribute", "unhashable",
    "broadcast together", "not supported between", "unsupported operand", "Traceback", "_batch",
    "unpack", "truth value", "object is not iterable", "reduction operation", "concatenate",
)  # fmt: skip


@dataclass(frozen=True)
class Call:
    """`names`: one of these words must be in the message of an error. `check`: what a result must be."""

    name: str
    make: Callable[[], Any]
    may_raise: bool
    names: tuple[str, ...] = ()
    check: Callable[[Any], bool] | None = None  # None: it must not work
    errors: tuple[type[Exception], ...] = (ValueError, TypeError)


def refused(name: str, make: Callable[[], Any], *names: str, errors=(ValueError, TypeError)) -> Call:
    return Call(name, make, True, names, None, errors)


def works(name: str, make: Callable[[], Any], check: Callable[[Any], bool] = lambda result: True) -> Call:
    return Call(name, make, False, (), check)


def either(
    name: str, make: Callable[[], Any], check: Callable[[Any], bool], *names: str, errors=(ValueError, TypeError)
) -> Call:
    return Call(name, make, True, names, check, errors)


def show(value: Any) -> str:
    try:
        text = repr(value)
    except Exception as error:
        text = f"whose repr raises {error!r}"
    return re.sub(" at 0x[0-9a-f]+", "", f"{type(value).__name__} {text}".replace("\n", ""))[:60]


def outcome(call: Call) -> str:
    """Empty if all is well."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = call.make()
    except Exception as error:
        return _judge_error(call, error)
    if call.check is None:
        return f"was not refused: {show(result)}"
    try:
        right = call.check(result)
    except Exception as error:
        return f"result {show(result)} cannot be checked: {type(error).__name__} {error}"
    return "" if right else f"wrong: {show(result)}"


def _judge_error(call: Call, error: Exception) -> str:
    said = f"{type(error).__name__}: {error}".replace("\n", " ")[:200]
    if not call.may_raise:
        return f"raised {said}"
    if not isinstance(error, call.errors):
        return f"raised {said}"
    found = [word for word in INTERNAL if word in str(error)]
    if found:
        return f"says {found[0]!r}: {said}"
    if call.names and not any(word in str(error) for word in call.names):
        return f"does not say {' or '.join(call.names)}: {said}"
    return ""


# What results must be


def law_of(scores: Any, root: str = "single", projective: bool = False) -> Law:
    return Law(np.asarray(scores, np.float64), root, projective)


def answers_of(scores: Any, dtype: Any = np.float64) -> Callable[[TreeDistribution], bool]:
    """The distribution, or one-element list of them, is that of these scores."""
    law = law_of(scores)

    def check(dist: TreeDistribution) -> bool:
        marginals = np.asarray(dist.marginals())
        tolerance = 1e-11 if dtype == np.float64 else 1e-3 if dtype == np.float16 else 1e-6
        heads = dist.argmax()
        heads = heads if isinstance(heads, np.ndarray) else heads.heads
        return (
            marginals.dtype == dtype
            and marginals.shape == law.shape
            and np.allclose(marginals, floats(law.marginals), atol=tolerance, rtol=tolerance)
            and law.scores[law.index(heads)] == law.best
        )

    return check


def equal(expected: Any) -> Callable[[Any], bool]:
    def check(result: Any) -> bool:
        np.testing.assert_array_equal(np.asarray(result), np.asarray(expected))
        return np.shape(result) == np.shape(expected)

    return check


def close(expected: Any) -> Callable[[Any], bool]:
    return lambda result: (
        np.shape(result) == np.shape(expected) and np.allclose(result, expected, rtol=1e-10, equal_nan=True)
    )


def with_shape(*shape: int) -> Callable[[Any], bool]:
    return lambda result: np.shape(result) == shape


NO_NUMBERS = [None, "abc", b"abc", object(), {}, {1, 2}, (x for x in [1]), lambda: 0, int]
NO_SCORES = [
    *NO_NUMBERS, 3.0, 3, True, np.float64(1), np.array(1.0), np.zeros(3), np.zeros((3, 4)), np.zeros((0, 0)),
    np.zeros((2, 0, 0)), np.zeros((2, 3, 4)), np.zeros((3, 3), complex), np.array([["a", "b"], ["c", "d"]]),
    np.zeros((3, 3), "M8[s]"), np.zeros((3, 3), "m8[s]"), np.zeros((3, 3), [("a", float)]), np.full((3, 3), None),
    np.full((3, 3), "x", object), scipy.sparse.csr_matrix(np.zeros((3, 3))), [[]], [None], ["abc"], [1.0, 2.0],
    [[1.0, 2.0], [3.0]],
    [[0.0, 1.0], [0.0, "x"]], [np.zeros((3, 4))], [np.zeros(3)], [np.zeros((2, 3, 3))], [np.zeros((3, 3)), None],
    [np.zeros((3, 3), complex)], np.zeros((3, 3), "V8"),
]  # fmt: skip


def scores_calls() -> Iterator[Call]:
    """What is handed in as scores."""
    for scores in NO_SCORES:
        for function in (TreeDistribution, spantree.decode, spantree.marginals, spantree.log_partition):
            yield refused(f"{function.__name__}({show(scores)})", lambda f=function, s=scores: f(s), "scores")
        yield refused(f"topk({show(scores)}, 2)", lambda s=scores: spantree.topk(s, 2), "scores")
        yield refused(f"sample({show(scores)}, 2)", lambda s=scores: spantree.sample(s, 2, rng=0), "scores")
    for dtype in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint64):
        whole = rng.integers(0, 9, size=(4, 4)).astype(dtype)
        yield works(f"{dtype.__name__} scores", lambda w=whole: TreeDistribution(w), answers_of(whole))
        yield works(f"{dtype.__name__} scores in a list", lambda w=whole: TreeDistribution([w])[0], answers_of(whole))
    half = ONE.astype(np.float16)
    yield works("float16 scores", lambda: TreeDistribution(half), answers_of(half, np.float16))
    single = ONE.astype(np.float32)
    yield works("float32 scores", lambda: TreeDistribution(single), answers_of(single, np.float32))
    yield works("big-endian scores", lambda: TreeDistribution(ONE.astype(">f8")), answers_of(ONE))
    yield works("big-endian float32", lambda: TreeDistribution(single.astype(">f4")), answers_of(single, np.float32))
    yield either("longdouble scores", lambda: TreeDistribution(ONE.astype(np.longdouble)), answers_of(ONE), "scores")
    yield either("boolean scores", lambda: TreeDistribution(np.eye(3) > 0), answers_of(np.eye(3)), "scores")
    yield either("object array of floats", lambda: TreeDistribution(ONE.astype(object)), answers_of(ONE), "scores")
    matrix = ONE.view(np.matrix)
    yield works("np.matrix", lambda: TreeDistribution(matrix), answers_of(ONE))
    yield works("nested lists", lambda: TreeDistribution(ONE.tolist()), answers_of(ONE))
    yield works("nested tuples", lambda: TreeDistribution(tuple(map(tuple, ONE.tolist()))), answers_of(ONE))
    yield works(
        "nested lists of integers",
        lambda: TreeDistribution([[0, 1, 2], [0, 0, 3], [0, 5, 0]]),
        answers_of([[0, 1, 2], [0, 0, 3], [0, 5, 0]]),
    )
    yield works("a list of nested lists", lambda: TreeDistribution([ONE.tolist()])[0], answers_of(ONE))
    yield works("decode of nested lists", lambda: spantree.decode([[0.0, 1.0], [0.0, 0.0]]), equal([-1, 0]))
    yield works("an empty list", lambda: TreeDistribution([]).argmax(), lambda r: r == [])
    yield works("an empty tuple", lambda: TreeDistribution(()).argmax(), lambda r: r == [])
    yield works(
        "lists of mixed dtypes", lambda: TreeDistribution([ONE.astype(np.float32), BATCH[0]])[1], answers_of(BATCH[0])
    )
    yield works("0-stride scores", lambda: TreeDistribution(np.broadcast_to(0.0, (3, 3))), answers_of(np.zeros((3, 3))))
    yield works("a subclass", lambda: TreeDistribution(ONE.view(np.memmap)), answers_of(ONE))
    masked = np.ma.masked_array(ONE, mask=np.arange(25).reshape(5, 5) == 7)
    forbidden = np.where(np.arange(25).reshape(5, 5) == 7, -np.inf, ONE)
    yield either("np.ma with a mask", lambda: TreeDistribution(masked), answers_of(forbidden), "mask")
    yield either("np.ma in a list", lambda: TreeDistribution([masked])[0], answers_of(forbidden), "mask")
    yield either(
        "decode of np.ma",
        lambda: spantree.decode(np.ma.masked_array(SMALL, mask=np.arange(9).reshape(3, 3) == 1)),
        equal([-1, 2, 0]),
        "mask",
    )
    yield either("np.ma without a mask", lambda: TreeDistribution(np.ma.masked_array(ONE)), answers_of(ONE), "mask")
    for bad in (np.nan, np.inf):
        for head in range(5):
            for dep in range(5):
                hurt = ONE.copy()
                hurt[head, dep] = bad
                for given in (hurt, hurt.astype(np.float32)):
                    for function in (TreeDistribution, spantree.decode, spantree.marginals, spantree.log_partition):
                        name = f"{function.__name__} with {bad} at {head} -> {dep}, {given.dtype}"
                        call = lambda f=function, h=given: f(h)  # noqa: E731
                        if head == dep or dep == 0:
                            yield works(name, call)
                        else:
                            yield refused(name, call, f"{head} -> {dep}")
    yield refused(
        "labelled scores with 0 labels", lambda: TreeDistribution(np.zeros((3, 3, 0)), labelled=True), "labels"
    )
    yield refused("labelled without an axis", lambda: TreeDistribution(ONE, labelled=True), "scores")
    yield refused(
        "other numbers of labels",
        lambda: TreeDistribution([np.zeros((3, 3, 2)), np.zeros((3, 3, 3))], labelled=True),
        "labels",
    )
    yield refused("only -inf", lambda: TreeDistribution(np.full((3, 3), -np.inf)).argmax(), "word", "tree")


def option_calls() -> Iterator[Call]:
    """Keywords of the constructor and of the one-liners."""
    for function in (TreeDistribution, spantree.decode, spantree.marginals, spantree.log_partition):
        f = function.__name__
        for root in (None, "both", "Single", 1, True, b"single", ["single"], np.array(["single"]), 2.5, {}):
            yield refused(f"{f}(root={show(root)})", lambda g=function, r=root: g(ONE, root=r), "root")
        for flag in ("yes", "no", None, 2.5, [True], [], np.array([True, False]), "multi"):
            yield refused(
                f"{f}(projective={show(flag)})", lambda g=function, r=flag: g(ONE, projective=r), "projective"
            )
            yield refused(f"{f}(labelled={show(flag)})", lambda g=function, r=flag: g(LABELLED, labelled=r), "labelled")
        for layout in (None, "dephead", 1, b"head_dep", ["head_dep"], np.array(["dep_head", "a"])):
            yield refused(f"{f}(layout={show(layout)})", lambda g=function, r=layout: g(ONE, layout=r), "layout")
        for way in (None, "ignore", 1, b"mask", ["mask"]):
            yield refused(
                f"{f}(on_infeasible={show(way)})", lambda g=function, r=way: g(ONE, on_infeasible=r), "on_infeasible"
            )
        for lengths in (
            [4, 4], [4, 4, 5], [4, -1, 2], [4.0, 4.0, 4.0], [4, 4, np.nan], "abc", 4, [[4, 4, 4]], [True, True,
            True], [None] * 3,
            [10**30] * 3, [2**63] * 3, ["4", "4", "4"], [4 + 0j] * 3, object(), np.array([4, 4, 2**64 - 1],
            np.uint64), {}, [[4], [4], [4]],
        ):  # fmt: skip
            yield refused(f"{f}(lengths={show(lengths)})", lambda g=function, r=lengths: g(BATCH, lengths=r), "lengths")
        yield works(f"{f}(lengths as a list)", lambda g=function: g(BATCH, lengths=[4, 3, 2]))
        yield works(f"{f}(lengths as uint8)", lambda g=function: g(BATCH, lengths=np.array([4, 3, 2], np.uint8)))
        yield works(f"{f}(lengths 0)", lambda g=function: g(BATCH, lengths=[0, 0, 0]))
        yield works(f"{f}(one sentence, lengths=3)", lambda g=function: g(ONE, lengths=3))
        yield refused(f"{f}(one sentence, lengths=5)", lambda g=function: g(ONE, lengths=5), "lengths")
        yield refused(f"{f}(one sentence, lengths=[4])", lambda g=function: g(ONE, lengths=[4]), "lengths")
        yield refused(f"{f}(list, lengths=[4])", lambda g=function: g(RAGGED, lengths=[4]), "lengths")
        for mask in (
            np.ones((2, 2), bool), np.ones((5, 5)), np.ones((5, 5), int), "abc", 3, np.ones((4, 4), bool), [[True,
            False]], object(),
            np.full((5, 5), None), np.ones((5, 5), complex), np.ones(3, bool), np.ones((5, 5, 5), bool),
        ):  # fmt: skip
            yield refused(f"{f}(mask={show(mask)})", lambda g=function, m=mask: g(ONE, mask=m), "mask")
        yield refused(f"{f}(list, mask of one)", lambda g=function: g(RAGGED, mask=[np.ones((5, 5), bool)]), "mask")
        yield refused(f"{f}(list, mask an array)", lambda g=function: g(RAGGED, mask=np.ones((3, 5, 5), bool)), "mask")
        yield refused(f"{f}(unknown keyword)", lambda g=function: g(ONE, roots="single"), "roots")
        yield works(f"{f}(projective=np.True_)", lambda g=function: g(ONE, projective=np.True_))
        yield works(f"{f}(on_infeasible='mask')", lambda g=function: g(np.full((3, 3), -np.inf), on_infeasible="mask"))
        yield refused(f"{f}()", lambda g=function: g(), "scores")
    words = np.array([[True] * 4, [True] * 2 + [False] * 2, [True] * 3 + [False]])
    cut = TreeDistribution(BATCH, lengths=[4, 2, 3])
    for name, mask in (("n", words), ("n+1", np.hstack([[[True]] * 3, words]))):
        yield works(
            f"mask of words, {name}",
            lambda m=mask: TreeDistribution(BATCH, mask=m).marginals(),
            lambda r: np.allclose(r, cut.marginals(), rtol=1e-11),
        )
        yield works(
            f"mask of words, {name}, one",
            lambda m=mask: TreeDistribution(BATCH[1], mask=m[1]).marginals(),
            lambda r: np.allclose(r, cut[1].marginals(), rtol=1e-11),
        )


BAD_K = [
    -1,
    0,
    True,
    False,
    1.0,
    1.5,
    "3",
    [3],
    [],
    None,
    np.nan,
    np.inf,
    3 + 0j,
    -(10**30),
    np.array([1, 2]),
    object(),
    {},
    b"1",
    np.float64(2),
]
HUGE_K = [10**12, 2**31, 2**62, 2**63, 2**64 + 1, 10**30]


def k_calls() -> Iterator[Call]:
    """How many trees; and where randomness comes from."""
    forms = {
        "one": TreeDistribution(SMALL),
        "padded": TreeDistribution(BATCH),
        "listed": TreeDistribution(RAGGED),
        "projective": TreeDistribution(SMALL, projective=True),
        "labelled": TreeDistribution(LABELLED, labelled=True),
    }
    for form, dist in forms.items():
        for method in ("topk", "sample", "sample_without_replacement"):
            for k in BAD_K:
                if not (method == "sample" and k is None):
                    yield refused(
                        f"{form}.{method}({show(k)})", lambda d=dist, m=method, k=k: getattr(d, m)(k), "k ", "k must"
                    )
            for k in HUGE_K:
                yield refused(
                    f"{form}.{method}({k})",
                    lambda d=dist, m=method, k=k: getattr(d, m)(k),
                    errors=(ValueError, MemoryError),
                )
            for k in (np.int64(3), np.uint8(3)):
                yield works(f"{form}.{method}({show(k)})", lambda d=dist, m=method, k=k: getattr(d, m)(k))
            yield either(
                f"{form}.{method}(0-d array)", lambda d=dist, m=method: getattr(d, m)(np.array(3)), lambda r: True, "k "
            )
            yield refused(f"{form}.{method}(1, 2)", lambda d=dist, m=method: getattr(d, m)(1, 2))
        for method in ("topk", "sample_without_replacement"):
            yield refused(f"{form}.{method}()", lambda d=dist, m=method: getattr(d, m)())
        yield works(f"{form}.topk(1000)", lambda d=dist: d.topk(1000))
        yield works(
            f"{form}.sample_without_replacement(1000)", lambda d=dist: d.sample_without_replacement(1000, rng=0)
        )
        for seed in (
            "abc",
            1.5,
            -1,
            True,
            np.random.RandomState(0),
            random.Random(0),
            [1],
            object(),
            np.nan,
            b"1",
            {},
            np.float64(1),
            np.array([1, 2]),
        ):
            for method in ("sample", "sample_without_replacement"):
                yield refused(
                    f"{form}.{method}(1, rng={show(seed)})",
                    lambda d=dist, m=method, s=seed: getattr(d, m)(1, rng=s),
                    "rng",
                )
        for seed in (None, 0, 2**64, 2**200, np.int64(5), np.uint64(2**64 - 1), np.random.default_rng(0)):
            for method in ("sample", "sample_without_replacement"):
                yield works(
                    f"{form}.{method}(1, rng={show(seed)})", lambda d=dist, m=method, s=seed: getattr(d, m)(1, rng=s)
                )
        for way in ("wilson", None, 1, b"auto", ["auto"], {}, "trie-", np.array(["auto"])):
            for method in ("sample", "sample_without_replacement"):
                yield refused(
                    f"{form}.{method}(1, method={show(way)})",
                    lambda d=dist, m=method, w=way: getattr(d, m)(1, method=w),
                    "method",
                )
    one = forms["one"]
    yield refused("iter_without_replacement(rng=-1)", lambda: one.iter_without_replacement(rng=-1), "rng")
    yield refused("iter_without_replacement(rng='a')", lambda: one.iter_without_replacement(rng="a"), "rng")
    yield refused("iter_best of a batch", lambda: forms["padded"].iter_best(), "sentence")
    yield refused("iter_without_replacement of a list", lambda: forms["listed"].iter_without_replacement(), "sentence")
    nothing = TreeDistribution(np.full((3, 3), -np.inf))
    yield refused("iter_best without a tree", lambda: nothing.iter_best(), "word")
    yield refused("iter_without_replacement without a tree", lambda: nothing.iter_without_replacement(), "word")
    masked = TreeDistribution(np.full((3, 3), -np.inf), on_infeasible="mask")
    yield works("masked iter_best without a tree", lambda: list(masked.iter_best()), lambda r: r == [])
    yield works(
        "masked iter_without_replacement without a tree",
        lambda: list(masked.iter_without_replacement(rng=0)),
        lambda r: r == [],
    )
    for k in BAD_K:
        if k is not None:
            yield refused(f"spantree.sample(scores, {show(k)})", lambda k=k: spantree.sample(SMALL, k), "k ")
        yield refused(f"spantree.topk(scores, {show(k)})", lambda k=k: spantree.topk(SMALL, k), "k ")


BAD_HEADS = [
    *NO_NUMBERS, 3, np.array(3), 1.5, [], [0.0, 1.0, 2.0, 3.0, 0.0], [np.nan] * 5, [-1, 0, 1], [-1, 0, 1, 1, 1, 1],
    [[-1, 0, 1]],
    [None] * 5, ["0"] * 5, [0j] * 5, [True] * 5, [[-1, 0, 1, 1, 1], [-1, 0]], np.zeros(5, "M8[s]"), np.zeros((2, 0),
    int), [10**30] * 5,
]  # fmt: skip
ODD_HEADS = [
    [-1, 9, 0, 0, 0], [-1, -1, -1, -1, -1], [-1, 2**63 - 1, 0, 1, 1], [-1, -(2**63), 0, 1, 1], [-1, 1, 2, 3, 4], [-1,
    2, 3, 4, 1],
    [-1, 0, 0, 0, 0], [2**62, 2**62, 2**62, 2**62, 2**62], [-1, -2, 0, 1, 1], [-1, 2**31, 0, 1, 1], [-1, 2**32,
    2**32 + 1, 1, 1],
]  # fmt: skip


def heads_calls() -> Iterator[Call]:
    """Trees that are handed in."""
    dist, batch, ragged = TreeDistribution(ONE), TreeDistribution(BATCH), TreeDistribution(RAGGED)
    labelled = TreeDistribution(LABELLED, labelled=True)
    law = law_of(ONE)
    tree = [-1, 0, 1, 1, 3]
    for method in ("score", "log_prob", "expected_attachment", "risk"):
        ask = getattr(dist, method)
        for heads in BAD_HEADS:
            yield refused(f"{method}({show(heads)})", lambda a=ask, h=heads: a(h), "heads", "gold")
        wrong = 0.0 if method == "expected_attachment" else 1.0 if method == "risk" else -np.inf
        for heads in ODD_HEADS:
            expect = wrong if method in ("score", "log_prob") else None
            check = equal(expect) if expect is not None else (lambda r: 0 <= r <= 1)
            yield works(f"{method}({heads})", lambda a=ask, h=heads: a(h), check)
        huge = np.array([0, 2**64 - 1, 0, 1, 1], np.uint64)
        yield either(
            f"{method}(uint64 {huge.tolist()})",
            lambda a=ask, h=huge: a(h),
            equal(-np.inf) if "s" in method[:1] or method == "log_prob" else lambda r: True,
            "heads",
            "gold",
        )
        right = {"score": floats(law.scores)[law.index(tree)] * 0 + ONE[[0, 1, 1, 3], [1, 2, 3, 4]].sum()}
        for dtype in (np.int8, np.int32, np.uint16, np.int64, ">i4", ">i8"):
            given = np.array([0, 0, 1, 1, 3]).astype(dtype)
            yield works(
                f"{method}({np.dtype(dtype)} heads)",
                lambda a=ask, h=given: a(h),
                close(right["score"]) if method == "score" else with_shape(),
            )
        frozen = np.array(tree)
        frozen.flags.writeable = False
        yield works(f"{method}(read-only heads)", lambda a=ask, h=frozen: a(h), with_shape())
        yield works(f"{method}(list)", lambda a=ask: a(tree), with_shape())
        yield refused(f"{method}(heads, labels) of unlabelled", lambda a=ask: a(tree, tree), "labels")
        yield refused(f"{method}() without heads", lambda a=ask: a())
        yield refused(f"labelled {method}(heads)", lambda m=method: getattr(labelled, m)([-1, 0, 1, 1]), "labels")
        for labels in ([0, 1], [0, 1, 2], [0.0, 1.0, 2.0, 0.0], ["a"] * 4, [None] * 4, "abc", 3, [[0, 1, 2, 0]] * 2):
            yield refused(
                f"labelled {method}(heads, {labels})",
                lambda m=method, y=labels: getattr(labelled, m)([-1, 0, 1, 1], y),
                "labels",
            )
        for labels in ([-1, 3, 0, 0], [-1, -1, 0, 0], [-1, 2**62, 0, 0], [-1, -(2**63), 0, 0]):
            yield works(
                f"labelled {method}(heads, {labels})",
                lambda m=method, y=labels: getattr(labelled, m)([-1, 0, 1, 1], y),
                equal(-np.inf) if method in ("score", "log_prob") else with_shape(),
            )
        for heads in (tree, [tree] * 2, [tree] * 4, RAGGED, None, "abc"):
            yield refused(
                f"batch {method}({show(heads)})", lambda m=method, h=heads: getattr(batch, m)(h), "heads", "gold"
            )
            yield refused(
                f"ragged {method}({show(heads)})", lambda m=method, h=heads: getattr(ragged, m)(h), "heads", "gold"
            )
        yield works(f"batch {method}", lambda m=method: getattr(batch, m)([tree] * 3), with_shape(3))
        yield works(
            f"ragged {method}",
            lambda m=method: getattr(ragged, m)([tree, [-1, 0, 1], [-1, 0, 1, 1]]),
            lambda r: isinstance(r, list) and len(r) == 3,
        )
    for function in (spantree.is_tree, spantree.is_projective, spantree.heads_to_edges):
        f = function.__name__
        for heads in [
            *NO_NUMBERS,
            3,
            np.array(3),
            1.5,
            [0.0, 1.0],
            [np.nan] * 3,
            ["0"] * 3,
            [None] * 3,
            np.zeros((2, 0), int),
            [0j, 1j],
            [True, False],
        ]:
            yield refused(f"{f}({show(heads)})", lambda g=function, h=heads: g(h), "heads")
        yield works(
            f"{f}(list of lists of different lengths)",
            lambda g=function: g([[-1, 0, 1], [-1, 0]]),
            lambda r: isinstance(r, list) and len(r) == 2,
        )
        yield works(
            f"{f}(list of arrays)",
            lambda g=function: g([np.array([-1, 0, 1]), np.array([-1, 0])]),
            lambda r: isinstance(r, list) and len(r) == 2,
        )
        yield works(f"{f}([])", lambda g=function: g([]), lambda r: len(r) == 0)
        yield works(f"{f}(no rows)", lambda g=function: g(np.zeros((0, 4), int)), lambda r: len(r) == 0)
        yield works(f"{f}([0, 0])", lambda g=function: g([0, 0]))
    for heads in ODD_HEADS:
        right = bool(law.by_heads.get(tuple(heads[1:]), -1) >= 0)
        yield works(f"is_tree({heads})", lambda h=heads: spantree.is_tree(h), lambda r, x=right: r is x or r == x)
    for root in (None, "both", 1, ["single"]):
        yield refused(f"is_tree(root={root})", lambda r=root: spantree.is_tree(tree, root=r), "root")
    yield refused("heads_to_edges out of range", lambda: spantree.heads_to_edges([-1, 7, 0]), "heads")
    for matrix in [
        *NO_NUMBERS,
        3,
        np.zeros(3),
        np.zeros((2, 3)),
        np.full((2, 2), 0.5),
        np.full((2, 2), np.nan),
        np.full((3, 3), 2),
        np.ones((3, 3)),
        np.full((2, 2), "a"),
        np.full((2, 2), None),
    ]:
        yield refused(f"edges_to_heads({show(matrix)})", lambda m=matrix: spantree.edges_to_heads(m), "matri", "node")
    yield works(
        "edges_to_heads of a list of matrices",
        lambda: spantree.edges_to_heads([np.array([[0, 1], [0, 0]]), np.array([[0, 0, 1], [0, 0, 0], [0, 1, 0]])]),
        lambda r: isinstance(r, list) and len(r) == 2,
    )
    yield works("edges_to_heads([])", lambda: spantree.edges_to_heads([]), lambda r: len(r) == 0)


BAD_VALUES = [
    *NO_NUMBERS, np.zeros((4, 4)), np.zeros((5, 4)), np.zeros(5), np.zeros((5, 5), complex), np.full((5, 5), "a"),
    np.full((5, 5), None),
    np.zeros((3, 5, 5)), np.zeros((5, 5, 2, 2)), [[1.0]], [[1.0, 2.0], [3.0]], np.zeros((0, 5, 5)), np.zeros((5, 5),
    "M8[s]"), {},
]  # fmt: skip


def values_calls() -> Iterator[Call]:
    """Numbers per edge, targets, orders, second distributions."""
    dist, batch, ragged = TreeDistribution(ONE), TreeDistribution(BATCH), TreeDistribution(RAGGED)
    ones = np.ones((5, 5))
    ask_with: dict[str, Callable[[Any], Any]] = {
        "expectation": dist.expectation,
        "expectation with gradient": lambda v: dist.expectation(v, with_grad=True),
        "product_expectation": dist.product_expectation,
        "covariance left": lambda v: dist.covariance(v, ones),
        "covariance right": lambda v: dist.covariance(ones, v),
        "covariance with edges": lambda v: dist.covariance(v, "edges"),
        "second_moment left": lambda v: dist.second_moment(v, ones),
        "second_moment right": lambda v: dist.second_moment(ones, v),
        "generalized_expectation": lambda v: dist.generalized_expectation(v, 0.0),
    }
    for name, ask in ask_with.items():
        for values in BAD_VALUES:
            yield refused(f"{name}({show(values)})", lambda a=ask, v=values: a(v), "values", "r ", "s ", "r:", "s:")
        for given in (
            ones.astype(int),
            ones.astype(np.float32),
            ones > 0,
            ones.tolist(),
            np.asfortranarray(ones),
            ones.astype(">f8"),
            ones.astype(np.int8),
            ones.astype(np.float16),
        ):
            expect = {
                "expectation": 4.0,
                "product_expectation": 1.0,
                "second_moment left": 16.0,
                "generalized_expectation": 8.0,
            }
            check = close(expect[name]) if name in expect else (lambda r: True)
            yield works(f"{name}({show(given)})", lambda a=ask, v=given: a(v), check)
        frozen = ones.copy()
        frozen.flags.writeable = False
        yield works(f"{name}(read-only)", lambda a=ask, v=frozen: a(v))
        masked = np.ma.masked_array(ones, mask=np.eye(5) < 0)
        yield either(f"{name}(np.ma without a mask)", lambda a=ask, v=masked: a(v), lambda r: True, "mask", "values")
        masked = np.ma.masked_array(ones, mask=np.arange(25).reshape(5, 5) == 7)
        yield refused(f"{name}(np.ma with a mask)", lambda a=ask, v=masked: a(v), "mask")
        for bad in (np.nan, np.inf, -np.inf):
            hurt = np.where(np.arange(25).reshape(5, 5) == 7, bad, 1.0)
            yield either(
                f"{name}({bad} on an edge)", lambda a=ask, v=hurt: a(v), lambda r: True, "values", "finite", "r ", "s "
            )
    yield works("expectation of no features", lambda: dist.expectation(np.zeros((5, 5, 0))), with_shape(0))
    yield works(
        "expectation of no features with gradient",
        lambda: dist.expectation(np.zeros((5, 5, 0)), with_grad=True)[1],
        with_shape(5, 5, 0),
    )
    yield works("batch expectation of no features", lambda: batch.expectation(np.zeros((3, 5, 5, 0))), with_shape(3, 0))
    yield works(
        "ragged expectation of no features",
        lambda: ragged.expectation([np.zeros((n, n, 0)) for n in (5, 3, 4)]),
        lambda r: [np.shape(x) for x in r] == [(0,)] * 3,
    )
    yield works(
        "covariance of no features", lambda: dist.covariance(np.zeros((5, 5, 0)), np.zeros((5, 5, 2))), with_shape(0, 2)
    )
    yield works(
        "covariance with no features",
        lambda: dist.covariance(np.zeros((5, 5, 2)), np.zeros((5, 5, 0))),
        with_shape(2, 0),
    )
    yield works(
        "covariance of none with none",
        lambda: dist.covariance(np.zeros((5, 5, 0)), np.zeros((5, 5, 0))),
        with_shape(0, 0),
    )
    yield works(
        "covariance of no features with edges",
        lambda: dist.covariance(np.zeros((5, 5, 0)), "edges"),
        with_shape(0, 5, 5),
    )
    yield works(
        "covariance of edges with no features",
        lambda: dist.covariance("edges", np.zeros((5, 5, 0))),
        with_shape(5, 5, 0),
    )
    yield works(
        "second moment of no features",
        lambda: dist.second_moment(np.zeros((5, 5, 0)), np.zeros((5, 5, 2))),
        with_shape(0, 2),
    )
    yield works(
        "generalized expectation of no features",
        lambda: dist.generalized_expectation(np.zeros((5, 5, 0)), np.zeros(0)),
        close(0.0),
    )
    for name, given in (("edges", "edges"), ("word", "edge"), ("empty", "")):
        yield refused(f"covariance(edges, {name})", lambda g=given: dist.covariance("edges", g), "edges")
    sparse = scipy.sparse.csr_matrix
    for name, given in (
        ("wrong rows", sparse((24, 2))), ("complex", sparse(np.full((25, 2), 1j))), ("list of two", [sparse((25,
        2))] * 2),
        ("of strings", scipy.sparse.coo_matrix((25, 2), dtype=bool)), ("mixed list", [sparse((25, 2)), 3]),
    ):  # fmt: skip
        expectation = either if name == "of strings" else refused
        args = (lambda r: True,) if name == "of strings" else ()
        yield expectation(f"covariance(sparse {name})", lambda g=given: dist.covariance(g, ones), *args, "r")
        yield expectation(f"covariance(.., sparse {name})", lambda g=given: dist.covariance(ones, g), *args, "s")
    nothing = TreeDistribution(np.full((5, 5), -np.inf), on_infeasible="mask")
    for name, r, s in (
        ("dense, sparse", np.ones((5, 5, 2)), sparse(np.ones((25, 3)))),
        ("sparse, dense", sparse(np.ones((25, 2))), np.ones((5, 5, 3))),
        ("sparse, sparse", sparse(np.ones((25, 2))), sparse(np.ones((25, 3)))),
        ("dense, dense", np.ones((5, 5, 2)), np.ones((5, 5, 3))),
    ):
        for method in ("covariance", "second_moment"):
            yield works(
                f"{method}({name}) without a tree",
                lambda m=method, r=r, s=s: getattr(nothing, m)(r, s),
                equal(np.full((2, 3), np.nan)),
            )
    for target in (None, "abc", [1.0, 2.0], np.zeros(3), 1j, object(), [[0.0]], {}):
        yield refused(
            f"generalized_expectation(target={show(target)})",
            lambda t=target: dist.generalized_expectation(ones, t),
            "target",
        )
    for target in (np.zeros(3), np.zeros((2, 2)), None):
        yield refused(
            f"generalized_expectation(2 features, target={show(target)})",
            lambda t=target: dist.generalized_expectation(np.ones((5, 5, 2)), t),
            "target",
        )
    for target in (np.nan, np.inf):
        yield either(
            f"generalized_expectation(target={target})",
            lambda t=target: dist.generalized_expectation(ones, t),
            lambda r: not np.isfinite(r),
            "target",
        )
    for alpha in (
        -1,
        -0.0001,
        np.nan,
        None,
        "a",
        1j,
        [1.0],
        np.array([1.0, 2.0]),
        object(),
        {},
        -np.inf,
        b"1",
        [],
        np.array([0.5]),
        "2",
    ):
        yield refused(f"renyi_entropy({show(alpha)})", lambda a=alpha: dist.renyi_entropy(a), "alpha")
        yield refused(f"norm({show(alpha)})", lambda a=alpha: dist.norm(a), "p must", "p ")
    yield refused("norm(0)", lambda: dist.norm(0), "p must", "p ")
    for alpha in (
        np.float32(0.5),
        np.int64(2),
        fractions.Fraction(1, 2),
        decimal.Decimal("0.5"),
        True,
        np.array(2.0),
        10**400,
        10**300,
        1e-300,
        1e300,
        5e-324,
    ):
        yield either(
            f"renyi_entropy({show(alpha)})",
            lambda a=alpha: dist.renyi_entropy(a),
            lambda r: 0 <= r <= np.log(125),
            "alpha",
        )
        yield either(f"norm({show(alpha)})", lambda a=alpha: dist.norm(a), lambda r: r >= 0, "p must", "p ")
        yield either(
            f"renyi_entropy({show(alpha)}) with gradient",
            lambda a=alpha: dist.renyi_entropy(a, with_grad=True)[1],
            lambda r: np.isfinite(r).all(),
            "alpha",
        )
    others = {
        "None": None, "array": ONE, "string": "abc", "number": 1.0, "multi": TreeDistribution(ONE, root="multi"),
        "batch": batch,
        "projective": TreeDistribution(ONE, projective=True), "transposed": TreeDistribution(ONE.T, layout="dep_head"),
        "shorter": TreeDistribution(SMALL), "labelled": TreeDistribution(LABELLED, labelled=True),
        "a list": TreeDistribution([ONE]), "class": TreeDistribution,
    }  # fmt: skip
    for name, other in others.items():
        for method in ("kl", "cross_entropy"):
            wanted = ("other", "q ", "distribution")
            if name == "transposed":
                yield either(
                    f"{method}({name})",
                    lambda m=method, o=other: getattr(dist, m)(o),
                    close(0.0) if method == "kl" else lambda r: True,
                    *wanted,
                )
            else:
                yield refused(f"{method}({name})", lambda m=method, o=other: getattr(dist, m)(o), *wanted)
    for method in ("kl", "cross_entropy"):
        nowhere = TreeDistribution(np.full((5, 5), -np.inf))
        yield refused(f"{method}(other without a tree)", lambda m=method, o=nowhere: getattr(dist, m)(o), "tree")
    for name, ask in {
        "log_partition": dist.log_partition,
        "entropy": dist.entropy,
        "marginals": dist.marginals,
        "max": dist.max,
        "argmax": dist.argmax,
        "mbr": dist.mbr,
    }.items():
        yield refused(f"{name}(1, 2, 3)", lambda a=ask: a(1, 2, 3))
        yield refused(f"{name}(unknown=1)", lambda a=ask: a(unknown=1))


def condition_calls() -> Iterator[Call]:
    """Edges that must or must not be in the tree."""
    dist, batch, ragged = TreeDistribution(ONE), TreeDistribution(BATCH), TreeDistribution(RAGGED)
    labelled = TreeDistribution(LABELLED, labelled=True)
    for edges in (
        5, "ab", [5], [(1,)], [(1, 2, 3)], [(0, 0)], [(1, 0)], [(2, 2)], [(5, 1)], [(0, 5)], [(-1, 1)], [(0, -1)],
        [(0.5, 1)], [(0.0, 1.0)],
        [("a", "b")], [(None, 1)], [(10**30, 1)], [(0, 2**63)], [(np.nan, 1)], [[]], [((0, 1),)], {1: 2}, [(0, 1j)],
        object(), [None], 3.5,
    ):  # fmt: skip
        for side in ("include", "exclude"):
            for name, one in (("one", dist), ("batch", batch), ("labelled", labelled)):
                if name == "labelled" and edges == [(1, 2, 3)]:
                    continue
                if edges in ([[]], [((0, 1),)]) and name != "batch":  # one list of edges per sentence
                    yield either(
                        f"{name}.condition({side}={edges})",
                        lambda d=one, s=side, e=edges: d.condition(**{s: e}),
                        lambda r: True,
                        side,
                    )
                    continue
                yield refused(
                    f"{name}.condition({side}={show(edges)})",
                    lambda d=one, s=side, e=edges: d.condition(**{s: e}),
                    side,
                )
    yield refused(
        "condition(include=[(0, 1, 3)]) of 3 labels", lambda: labelled.condition(include=[(0, 1, 3)]), "label"
    )
    yield refused(
        "condition(include=[(0, 1, -1)]) of 3 labels", lambda: labelled.condition(include=[(0, 1, -1)]), "label"
    )
    yield refused("condition of a batch, two lists", lambda: batch.condition(include=[[(0, 1)], [(0, 2)]]), "include")
    yield refused(
        "condition of a list, edge of a longer sentence", lambda: ragged.condition(include=[(0, 4)]), "include"
    )
    yield refused(
        "condition with conflicting edges, asked",
        lambda: dist.condition(include=[(0, 1), (2, 1)]).argmax(),
        "word",
        "1",
    )
    yield refused("condition with two roots, asked", lambda: dist.condition(include=[(0, 1), (0, 2)]).argmax(), "word")
    yield refused("condition with a cycle, asked", lambda: dist.condition(include=[(1, 2), (2, 1)]).argmax(), "word")
    yield refused(
        "condition in and out, asked", lambda: dist.condition(include=[(1, 2)], exclude=[(1, 2)]).argmax(), "word"
    )
    yield refused("condition(unknown)", lambda: dist.condition(with_edges=[(0, 1)]))
    without = ONE.copy()
    without[1, 2] = -np.inf
    for name, edges in (
        ("generator", (e for e in [(1, 2)])),
        ("array", np.array([[1, 2]])),
        ("set", {(1, 2)}),
        ("np ints", [(np.int64(1), np.int8(2))]),
    ):
        yield works(f"condition(exclude={name})", lambda e=edges: dist.condition(exclude=e), answers_of(without))
    yield works("condition()", lambda: dist.condition(), answers_of(ONE))
    yield works("condition(include=[])", lambda: dist.condition(include=[]), answers_of(ONE))
    yield works("empty list of a batch", lambda: batch.condition(include=[[], [], []])[0], answers_of(BATCH[0]))
    yield works(
        "lists for a ragged batch", lambda: ragged.condition(exclude=[[(1, 2)], [], []])[1], answers_of(RAGGED[1])
    )


def index_calls() -> Iterator[Call]:
    """Parts of a batch."""
    dist, batch, ragged = TreeDistribution(ONE), TreeDistribution(BATCH), TreeDistribution(RAGGED)
    many = np.random.default_rng(1).normal(size=(2, 3, 5, 5))
    two = TreeDistribution(many)
    any_index = (IndexError, TypeError, ValueError)
    for name, one, size in (("padded", batch, 3), ("listed", ragged, 3), ("two axes", two, 2)):
        for index in (
            size,
            -size - 1,
            10**30,
            "a",
            1.5,
            b"a",
            [size],
            np.array([0.5]),
            [True] * (size + 1),
            object(),
            (0, 0, 0),
            {},
            [[0.5]],
            np.array("a"),
            1j,
            (0, "a"),
            slice("a", "b"),
        ):
            yield refused(f"{name}[{show(index)}]", lambda d=one, i=index: d[i], errors=any_index)
        for index in (
            0,
            -1,
            np.int64(1),
            slice(None),
            slice(None, None, -1),
            slice(0, 0),
            [0, 1],
            np.array([1, 0]),
            [True] + [False] * (size - 1),
            np.array([False] * size),
            [],
            ...,
            (0,),
            [-1],
            (Ellipsis, 0),
            (0, ...),
            np.array(1),
        ):
            arrays = RAGGED if name == "listed" else BATCH if name == "padded" else many
            yield works(f"{name}[{show(index)}]", lambda d=one, i=index: d[i], _indexed(arrays, index))
        yield either(
            f"{name}[None]", lambda d=one: d[None], lambda r, n=size: len(r) == 1 and len(r[0]) == n, errors=any_index
        )
        yield works(f"list({name})", lambda d=one: [x.argmax() for x in d], lambda r, n=size: len(r) == n)
        yield works(f"len({name})", lambda d=one: len(d), lambda r, n=size: r == n)
    yield refused("padded[0, 0]", lambda: batch[0, 0], errors=any_index)
    yield refused("one[0]", lambda: dist[0], errors=any_index)
    yield refused("one[..., 0]", lambda: dist[..., 0], errors=any_index)
    yield refused("len(one)", lambda: len(dist), errors=(TypeError,))
    yield refused("list(one)", lambda: list(dist), errors=any_index)
    yield works("two axes[1, 2]", lambda: two[1, 2], answers_of(many[1, 2]))
    yield works("two axes[:, 2]", lambda: two[:, 2][1], answers_of(many[1, 2]))
    yield works("two axes[..., 2]", lambda: two[..., 2][1], answers_of(many[1, 2]))
    yield refused("two axes[0, 0, 0]", lambda: two[0, 0, 0], errors=any_index)
    yield refused("two axes[..., 3]", lambda: two[..., 3], errors=any_index)
    yield works(
        "two axes[mask]", lambda: two[np.array([[True, False, True], [False, True, False]])][2], answers_of(many[1, 1])
    )


def _indexed(arrays: Any, index: Any) -> Callable[[Any], bool]:
    """The sentences are those that NumPy's indexing of their numbers gives."""
    leading = (len(arrays),) if isinstance(arrays, list) else arrays.shape[:-2]
    flat = list(arrays) if isinstance(arrays, list) else list(arrays.reshape(-1, 5, 5))
    numbers = np.arange(len(flat)).reshape(leading)[index]

    def check(part: TreeDistribution) -> bool:
        best = part.argmax()
        if np.shape(numbers) == ():
            return answers_of(flat[int(numbers)])(part)
        rows = best if isinstance(best, list) else list(np.asarray(best).reshape(-1, 5)) if np.size(numbers) else []
        wanted = [flat[i] for i in np.ravel(numbers)]
        laws = [law_of(scores) for scores in wanted]
        shaped = isinstance(best, list) or np.shape(best)[:-1] == np.shape(numbers)
        return (
            shaped
            and len(rows) == len(laws)
            and all(law.scores[law.index(row)] == law.best for law, row in zip(laws, rows, strict=True))
        )

    return check


EMPTY = {
    "(0, 5, 5)": (np.zeros((0, 5, 5)), (0,)),
    "(0, 3, 5, 5)": (np.zeros((0, 3, 5, 5)), (0, 3)),
    "(3, 0, 5, 5)": (np.zeros((3, 0, 5, 5)), (3, 0)),
    "[]": ([], None),
}


def empty_calls() -> Iterator[Call]:
    """Every method of a batch without sentences."""
    for name, (scores, leading) in EMPTY.items():
        for kind in (
            {},
            {"root": "multi"},
            {"projective": True},
            {"labelled": True},
            {"labelled": True, "projective": True},
            {"layout": "dep_head"},
        ):
            given = scores
            labelled = kind.get("labelled", False)
            if labelled and leading is not None:
                given = np.zeros((*scores.shape, 2))
            yield from _empty(f"{name} {kind}", TreeDistribution(given, **kind), leading, labelled)
        for function in (
            spantree.decode,
            spantree.marginals,
            spantree.log_partition,
            lambda s: spantree.topk(s, 2),
            lambda s: spantree.sample(s, 2),
        ):
            yield works(f"one-liner of {name}", lambda f=function, s=scores: f(s))


def _empty(name: str, dist: TreeDistribution, leading: tuple[int, ...] | None, labelled: bool) -> Iterator[Call]:
    edges = (5, 5, 2) if labelled else (5, 5)

    def shaped(*after: int, before: tuple[int, ...] = ()) -> Callable[[Any], bool]:
        if leading is None:
            return lambda r: isinstance(r, list) and r == []
        return lambda r: np.shape(r) == (*before, *leading, *after)

    def nodes(*before: int) -> Any:
        return [] if leading is None else np.zeros((*before, *leading, 5), int)

    def values(*after: int) -> Any:
        return [] if leading is None else np.zeros((*leading, *edges, *after))

    gold = (nodes(), nodes()) if labelled else (nodes(),)
    many = (nodes(3), nodes(3)) if labelled and leading is not None else (nodes(3),) if leading is not None else gold
    heads = lambda r: getattr(r, "heads", r)  # noqa: E731
    both = lambda check: lambda r: check(r[0]) and shaped(*edges)(r[1])  # noqa: E731
    yield works(f"{name} argmax", lambda: heads(dist.argmax()), shaped(5))
    yield works(f"{name} max", lambda: dist.max(), shaped())
    yield works(f"{name} mbr", lambda: heads(dist.mbr()), shaped(5))
    yield works(f"{name} topk", lambda: dist.topk(3).heads, shaped(5, before=(3,)))
    yield works(f"{name} topk scores", lambda: dist.topk(3).scores, shaped(before=(3,)))
    yield works(f"{name} sample", lambda: heads(dist.sample(3, rng=0)), shaped(5, before=(3,)))
    yield works(f"{name} sample one", lambda: heads(dist.sample(rng=0)), shaped(5))
    for part, after in (("heads", (5,)), ("log_probs", ()), ("keys", ())):
        yield works(
            f"{name} swor {part}",
            lambda p=part: getattr(dist.sample_without_replacement(3, rng=0), p),
            shaped(*after, before=(3,)),
        )
    yield works(f"{name} swor threshold", lambda: dist.sample_without_replacement(3, rng=0).threshold, shaped())
    yield works(
        f"{name} swor estimate", lambda: dist.sample_without_replacement(3, rng=0).estimate(lambda *tree: 1.0), shaped()
    )
    yield works(
        f"{name} swor estimate of values",
        lambda: dist.sample_without_replacement(3, rng=0).estimate([] if leading is None else np.zeros((3, *leading))),
        shaped(),
    )
    yield works(
        f"{name} gradient_weights",
        lambda: dist.sample_without_replacement(3, rng=0).gradient_weights(lambda *tree: 1.0),
        shaped(before=(3,)),
    )
    yield works(f"{name} score", lambda: dist.score(*gold), shaped())
    yield works(f"{name} log_prob", lambda: dist.log_prob(*gold), shaped())
    if leading is not None:
        yield works(f"{name} score of 3", lambda: dist.score(*many), shaped(before=(3,)))
        yield works(f"{name} log_prob of 3", lambda: dist.log_prob(*many), shaped(before=(3,)))
    yield works(f"{name} log_partition", lambda: dist.log_partition(), shaped())
    yield works(f"{name} marginals", lambda: dist.marginals(), shaped(*edges))
    for method, args in {
        "log_partition": (), "entropy": (), "cross_entropy": (dist,), "kl": (dist,), "renyi_entropy": (2.0,),
        "norm": (2.0,),
        "expectation": (values(),), "product_expectation": (values(),), "expected_attachment": gold, "risk": gold,
        "generalized_expectation": (values(), 0.0),
    }.items():  # fmt: skip
        yield works(f"{name} {method}", lambda m=method, a=args: getattr(dist, m)(*a), shaped())
        yield works(
            f"{name} {method} with gradient",
            lambda m=method, a=args: getattr(dist, m)(*a, with_grad=True),
            both(shaped()),
        )
    for alpha in (0.0, 1.0, 1.0 + 1e-9, np.inf):
        yield works(
            f"{name} renyi_entropy({alpha})", lambda a=alpha: dist.renyi_entropy(a, with_grad=True)[0], shaped()
        )
    if leading is not None:
        yield works(f"{name} expectation of 2", lambda: dist.expectation(values(2)), shaped(2))
        yield works(f"{name} covariance", lambda: dist.covariance(values(2), values(3)), shaped(2, 3))
        yield works(f"{name} second_moment", lambda: dist.second_moment(values(2), values(3)), shaped(2, 3))
        yield works(f"{name} covariance with edges", lambda: dist.covariance(values(), "edges"), shaped(*edges))
        yield works(f"{name} covariance with 2", lambda: dist.covariance("edges", values(2)), shaped(*edges, 2))
    else:
        yield works(f"{name} covariance", lambda: dist.covariance([], []), shaped())
        yield works(f"{name} covariance with edges", lambda: dist.covariance([], "edges"), shaped())
    yield works(f"{name} condition", lambda: heads(dist.condition(exclude=[]).argmax()), shaped(5))
    yield works(f"{name} repr", lambda: repr(dist), lambda r: isinstance(r, str))
    yield works(f"{name} html", lambda: dist._repr_html_(), lambda r: isinstance(r, str))
    yield works(f"{name} len", lambda: len(dist), lambda r: r == (0 if leading is None else leading[0]))
    yield works(f"{name}[:]", lambda: heads(dist[:].argmax()), shaped(5))


def sample_calls() -> Iterator[Call]:
    """What is estimated from samples; threads."""
    dist, batch, ragged = TreeDistribution(ONE), TreeDistribution(BATCH), TreeDistribution(RAGGED)
    for name, one in (("one", dist), ("batch", batch), ("listed", ragged)):
        drawn = one.sample_without_replacement(4, rng=0)
        for method in ("estimate", "gradient_weights"):
            ask = getattr(drawn, method)
            for f in (
                None,
                "abc",
                3.0,
                np.zeros(3),
                np.zeros((5, 2)),
                lambda heads: None,
                lambda heads: "a",
                lambda heads: 1j,
                object(),
                {},
                [],
                lambda heads: [*heads.tolist(), None],
                [None] * 4,
            ):
                yield refused(f"{name} {method}({show(f)})", lambda a=ask, f=f: a(f))
            yield refused(
                f"{name} {method}(different shapes)", lambda a=ask: a(lambda heads: np.zeros(int(heads[1]) + 1))
            )
            yield refused(f"{name} {method}()", lambda a=ask: a())
            yield Call(
                f"{name} {method}(f raises)",
                lambda a=ask: a(lambda heads: 1 / 0),
                True,
                ("division",),
                None,
                (ZeroDivisionError,),
            )
        yield refused(
            f"{name} gradient_weights(vector)", lambda d=drawn: d.gradient_weights(lambda heads: heads), "number"
        )
        yield works(f"{name} estimate(True)", lambda d=drawn: d.estimate(lambda heads: heads[1] == 2))
        yield works(f"{name} estimate(vector)", lambda d=drawn: d.estimate(lambda heads: np.ones(2)))
        yield works(f"{name} repr", lambda d=drawn: repr(d), lambda r: isinstance(r, str))
    soft = np.zeros((4, 4))
    soft[1, 2] = soft[1, 3] = soft[2, 3] = -1e9
    for k in (1, 2, 3, 9):
        yield works(
            f"gradient_weights({k}) with only soft trees left",
            lambda k=k: (
                TreeDistribution(soft)
                .sample_without_replacement(k, rng=0)
                .gradient_weights(lambda heads: float(heads[1]))
            ),
            lambda r: np.isfinite(r).all(),
        )
        yield works(
            f"estimate({k}) with only soft trees left",
            lambda k=k: TreeDistribution(soft).sample_without_replacement(k, rng=0).estimate(lambda heads: 1.0),
            lambda r: np.isfinite(r),
        )
    for count in (0, -1, True, "2", 1.5, [1], 10**30, b"1", np.nan, {}):
        if count != 10**30:
            yield refused(f"set_threads({show(count)})", lambda c=count: spantree.set_threads(c), "threads")
    yield works("set_threads(2) and back", lambda: spantree.set_threads(spantree.set_threads(2)))
    yield works(
        "set_threads(np.int64(2)) and back", lambda: spantree.set_threads(spantree.set_threads(int(np.int64(2))))
    )


GROUPS: dict[str, Callable[[], Iterator[Call]]] = {
    "scores": scores_calls,
    "options": option_calls,
    "k and rng": k_calls,
    "heads": heads_calls,
    "values": values_calls,
    "edges": condition_calls,
    "indices": index_calls,
    "empty batches": empty_calls,
    "samples": sample_calls,
}


def main(group: str) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for call in GROUPS[group]():
        print(f"begin\t{call.name}", flush=True)
        signal.alarm(SECONDS)  # ends the process: a call that does not return need not listen to signals
        said = outcome(call)
        signal.alarm(0)
        print(f"end\t{said}", flush=True)
    print("done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
