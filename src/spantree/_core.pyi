"""The native core. Flat buffers in and out; see ``_batch.py`` for their layout."""

import enum
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from ._read import FloatArray, IntArray

UintArray = npt.NDArray[np.uint64]

entries: Any  # the C++ library's functions, with addresses and strides: see spantree/spantree.hpp

class Root(enum.Enum):
    single = 0
    multi = 1

class Batch:
    row_size: int
    edge_size: int
    max_words: int
    @staticmethod
    def padded(scores: FloatArray, lengths: IntArray | None, labelled: bool, dep_major: bool) -> Batch: ...
    @staticmethod
    def ragged(scores: list[FloatArray], labelled: bool, dep_major: bool) -> Batch: ...
    def first_bad(self, threads: int) -> tuple[int, int, int, int] | None: ...
    def __len__(self) -> int: ...

def bfloat16_bits(array: Any) -> npt.NDArray[np.uint16]: ...
def decode_plain(scores: Any, single_root: bool, dep_major: bool, threads: int) -> Any: ...
def log_partition_plain(scores: Any, single_root: bool, dep_major: bool, threads: int) -> Any: ...
def marginals_plain(scores: Any, single_root: bool, dep_major: bool, threads: int) -> Any: ...

class BestTrees:
    def next(self, heads: IntArray, labels: IntArray | None) -> float | None: ...

def argmax(
    batch: Batch,
    root: Root,
    projective: bool,
    threads: int,
    heads: IntArray,
    labels: IntArray | None,
    scores: npt.NDArray[np.float64] | None,
) -> IntArray | None: ...
def topk(
    batch: Batch,
    root: Root,
    projective: bool,
    k: int,
    threads: int,
    heads: IntArray,
    labels: IntArray | None,
    scores: npt.NDArray[np.float64],
) -> IntArray | None: ...
def iter_best(batch: Batch, index: int, root: Root, projective: bool) -> BestTrees | None: ...
def score(
    batch: Batch,
    root: Root,
    projective: bool,
    threads: int,
    heads: IntArray,
    labels: IntArray | None,
    than: IntArray | None,
    than_labels: IntArray | None,
    scores: npt.NDArray[np.float64],
    allowed: npt.NDArray[np.bool_],
) -> None: ...
def are_trees(heads: IntArray, root: Root, projective: bool, result: npt.NDArray[np.bool_]) -> None: ...
def lent_array(shape: tuple[int, ...], float32: bool) -> npt.NDArray[Any]: ...
def philox(counter: tuple[int, int, int, int], key: tuple[int, int]) -> list[int]: ...

class Solved:
    class For(enum.Enum):
        draws = 1
        questions = 3

    @overload
    def __init__(
        self,
        batch: Batch,
        root: Root,
        projective: bool,
        threads: int,
        purpose: For,
        marginals: npt.NDArray[np.floating[Any]] | None,
    ) -> None: ...
    @overload
    def __init__(
        self,
        batch: Batch,
        root: Root,
        projective: bool,
        threads: int,
        entropies: npt.NDArray[np.float64],
        gradient: npt.NDArray[np.floating[Any]] | None,
        keep: bool,
    ) -> None: ...
    @overload
    def __init__(
        self, begun: Solved, batch: Batch, threads: int, marginals: npt.NDArray[np.floating[Any]] | None
    ) -> None: ...
    def report(self, log_partition: npt.NDArray[np.float64], rest: npt.NDArray[np.float64]) -> IntArray | None: ...
    def marginals(self, batch: Batch, threads: int, out: npt.NDArray[np.floating[Any]]) -> None: ...
    def entropy(
        self,
        batch: Batch,
        threads: int,
        totals: npt.NDArray[np.float64],
        gradient: npt.NDArray[np.floating[Any]] | None,
    ) -> None: ...
    def expectations(
        self,
        batch: Batch,
        threads: int,
        values: npt.NDArray[np.float64],
        totals: npt.NDArray[np.float64],
        gradients: npt.NDArray[np.floating[Any]] | None,
        edges_first: bool = False,
    ) -> None: ...
    def relative_scores(
        self,
        batch: Batch,
        threads: int,
        out: npt.NDArray[np.float64],
        reach: float,
    ) -> None: ...
    def log_probs(
        self,
        batch: Batch,
        threads: int,
        heads: IntArray,
        labels: IntArray | None,
        out: npt.NDArray[np.float64],
        allowed: npt.NDArray[np.bool_],
    ) -> None: ...

def log_partition(
    batch: Batch,
    root: Root,
    projective: bool,
    threads: int,
    out: npt.NDArray[np.float64],
    marginals: npt.NDArray[np.floating[Any]] | None,
) -> IntArray | None: ...
def compare(
    p: Batch,
    solved_p: Solved,
    q: Batch,
    solved_q: Solved | None,
    root_q: Root,
    projective_q: bool,
    threads: int,
    divergence: bool,
    totals: npt.NDArray[np.float64],
    gradient: npt.NDArray[np.floating[Any]] | None,
) -> Solved | None: ...
def third(
    batch: Batch,
    root: Root,
    projective: bool,
    threads: int,
    u: npt.NDArray[np.float64],
    g: npt.NDArray[np.float64],
    out: npt.NDArray[np.float64],
) -> None: ...
def signed_product(
    batch: Batch,
    root: Root,
    threads: int,
    values: npt.NDArray[np.float64],
    sign: npt.NDArray[np.float64],
    log_magnitude: npt.NDArray[np.float64],
    gradient: npt.NDArray[np.float64] | None,
) -> None: ...

class SamplingMethod(enum.Enum):
    automatic = 0
    wilson_marginal = 1
    wilson_reject = 2
    ancestral = 3

class DistinctMethod(enum.Enum):
    automatic = 0
    trie = 1
    beam = 2

class DistinctTrees:
    def bad(self) -> bool: ...
    def next(self, heads: IntArray, labels: IntArray | None) -> tuple[float, float] | None: ...

def sample(
    batch: Batch,
    root: Root,
    projective: bool,
    method: SamplingMethod,
    k: int,
    keys: UintArray,
    first_sentence: int,
    budget: int,
    threads: int,
    heads: IntArray,
    labels: IntArray | None,
    fell_back: IntArray | None,
    solved: Solved | None,
    first_tree: int = 0,
) -> IntArray | None: ...
def sample_distinct(
    batch: Batch,
    root: Root,
    projective: bool,
    method: DistinctMethod,
    k: int,
    keys: UintArray,
    first_sentence: int,
    threads: int,
    heads: IntArray,
    labels: IntArray | None,
    log_probs: npt.NDArray[np.float64],
    gumbel_keys: npt.NDArray[np.float64],
    threshold: npt.NDArray[np.float64],
    log_left: npt.NDArray[np.float64],
    solved: Solved | None,
) -> IntArray | None: ...
def iter_distinct(
    batch: Batch,
    index: int,
    root: Root,
    projective: bool,
    keys: UintArray,
    first_sentence: int,
    solved: Solved | None,
) -> DistinctTrees: ...
def conditional_log_probs(batch: Batch, root: Root, heads: IntArray, log_probs: npt.NDArray[np.float64]) -> None: ...
def annotate(
    scores: FloatArray,
    starts: IntArray | None,
    nodes: IntArray,
    labels: int,
    dep_major: bool,
    cuts: IntArray | None,
    edge_heads: npt.NDArray[np.integer[Any]] | None,
    edge_labels: npt.NDArray[np.integer[Any]] | None,
    root: Root,
    projective: bool,
    threads: int,
    temperature: float,
    mbr: bool,
    confidence: bool,
    k: int,
    heads: IntArray,
    tree_labels: IntArray | None,
    head_probs: FloatArray | None,
    log_odds: FloatArray | None,
    log_prob: npt.NDArray[np.float64] | None,
    entropy: npt.NDArray[np.float64] | None,
    best_heads: IntArray | None,
    best_labels: IntArray | None,
    best_log_probs: npt.NDArray[np.float64] | None,
    status: npt.NDArray[np.int32],
) -> None: ...

# The handlers of bindings/xla.cpp, none if it was built without XLA's headers, and the version of those.
xla_handlers: dict[str, Any]
xla_ffi_version: tuple[int, int]
