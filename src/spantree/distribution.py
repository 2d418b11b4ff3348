"""`TreeDistribution`: the one class, and everything it can be asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from . import _core, _decoding, _html, _sampling
from ._batch import Batch, Layout
from ._condition import condition
from ._decoding import Decoded, Trees
from ._errors import OnInfeasible, raise_infeasible
from ._expectations import Expectations
from ._inference import Solve, Solved
from ._projective import ProjectiveSolve
from ._sample import Sample
from ._sampling import DistinctMethod, Drawn, Method, Rng

RootMode = Literal["single", "multi"]

_Found = TypeVar("_Found", Decoded, Drawn, _sampling.DrawnDistinct)  # trees, and how many sentences have none

_ROOTS = {"single": _core.Root.single, "multi": _core.Root.multi}


class TreeDistribution(Expectations):
    """The distribution over dependency trees in which a tree's log-weight is the sum of its edges' scores.

    Parameters
    ----------
    scores : array (..., n+1, n+1), or a list of (n+1, n+1) arrays
        ``scores[..., h, d]`` is the log-weight of the edge from head ``h`` to dependent ``d``; node 0 is ROOT.
        float32 or float64. ``-inf`` forbids an edge; column 0 and the diagonal are ignored. A list holds sentences of
        different sizes, and every result is then a list too.
    lengths : integers (...), optional
        Words of each sentence in a padded batch. What stands in the padding never matters.
    mask : boolean array like `scores`, optional
        False forbids the edge.
    root : {"single", "multi"}
        Whether exactly one edge leaves ROOT, as in Universal Dependencies, or any number from one up.
    projective : bool
        Whether only trees without crossing arcs count (ROOT stands left of the first word).
    labelled : bool
        Whether scores are ``(..., n+1, n+1, labels)``: a tree then has a label on each edge.
    layout : {"head_dep", "dep_head"}
        ``"dep_head"`` takes transposed matrices, ``scores[..., d, h]``, as biaffine parsers produce them.
    on_infeasible : {"raise", "mask"}
        What to do about a sentence without a tree: raise `InfeasibleError`, or go on, with heads -1 and score -inf.

    Notes
    -----
    Scores are checked once, here: NaN or +inf raises ValueError naming the sentence and the edge. They are not copied
    unless they have to be, and never modified.

    Examples
    --------
    >>> import numpy as np
    >>> from spantree import TreeDistribution
    >>> dist = TreeDistribution(np.array([[0.0, 1.0, 2.0], [0.0, 0.0, 3.0], [0.0, 1.5, 0.0]]))
    >>> dist.argmax()
    array([-1,  0,  1])
    >>> float(dist.max())
    4.0
    """

    __slots__ = ()

    def __init__(
        self,
        scores: npt.ArrayLike | Sequence[npt.ArrayLike],
        *,
        lengths: npt.ArrayLike | None = None,
        mask: Any = None,
        root: RootMode = "single",
        projective: bool = False,
        labelled: bool = False,
        layout: Layout = "head_dep",
        on_infeasible: OnInfeasible = "raise",
    ) -> None:
        self._set(Batch.read(scores, lengths, mask, labelled, layout), root, projective, on_infeasible)
        self._batch.refuse_bad_scores()

    def _set(self, batch: Batch, root: RootMode, projective: bool, on_infeasible: OnInfeasible) -> None:
        core_root = _ROOTS.get(root)
        if core_root is None:
            raise ValueError(f'root must be "single" or "multi", not {root!r}')
        if on_infeasible != "raise" and on_infeasible != "mask":
            raise ValueError(f'on_infeasible must be "raise" or "mask", not {on_infeasible!r}')
        self._batch = batch
        self._root = root
        self._core_root = core_root
        self._projective = projective
        self._on_infeasible = on_infeasible
        self._kept = None

    @classmethod
    def _for_one_question(
        cls,
        scores: npt.ArrayLike | Sequence[npt.ArrayLike],
        lengths: npt.ArrayLike | None,
        root: RootMode,
        projective: bool,
        *,
        mask: Any = None,
        labelled: bool = False,
        layout: Layout = "head_dep",
        on_infeasible: OnInfeasible = "raise",
    ) -> TreeDistribution:
        """A distribution to be asked for its best tree, log Z or marginals, and nothing else.

        Where the search or the solve looks at every score anyway, it is left to them to refuse bad ones.
        """
        dist = cls.__new__(cls)
        dist._set(Batch.read(scores, lengths, mask, labelled, layout), root, projective, on_infeasible)
        if projective or labelled:
            dist._batch.refuse_bad_scores()
        return dist

    def _with_batch(self, batch: Batch) -> TreeDistribution:
        other = TreeDistribution.__new__(TreeDistribution)
        other._set(batch, self._root, self._projective, self._on_infeasible)
        return other

    # Decoding

    def argmax(self) -> Any:
        """The best tree of each sentence.

        Returns
        -------
        int64 array (..., n+1), or `Trees` with heads and labels if the scores are labelled.

        Notes
        -----
        Exact for any scores, soft masks such as -1e30 included. O(n^2), projective O(n^3). Of several best trees it is
        always the same one. With labels, the best labelled tree.

        Examples
        --------
        >>> import numpy as np, spantree
        >>> scores = np.array([[0, 7, 8, 7], [0, 0, 4, 1], [0, 5, 0, 6], [0, 3, 2, 0.0]])
        >>> spantree.TreeDistribution(scores).argmax()
        array([-1,  2,  0,  2])
        >>> spantree.TreeDistribution(scores, root="multi").argmax()
        array([-1,  0,  0,  0])
        """
        decoded = self._decode()
        heads = self._batch.nodes(decoded.heads)
        if decoded.labels is None:
            return heads
        return Trees(heads, labels=self._batch.nodes(decoded.labels))

    def max(self) -> Any:
        """The score of the best tree of each sentence, shape (...); -inf where there is none and masked.

        Examples
        --------
        >>> import numpy as np, spantree
        >>> float(spantree.TreeDistribution(np.array([[0, 2.0], [0, 0]])).max())
        2.0
        """
        return self._batch.scalars(self._decode(scored=True).scores)

    def topk(self, k: int) -> Trees:
        """The k best trees, best first, exact.

        Returns
        -------
        Trees
            ``heads (k, ..., n+1)``, ``scores (k, ...)``, and ``labels (k, ..., n+1)`` if the scores are labelled: the
            k best *labelled* trees. Where a sentence has fewer than k trees, heads are -1 and scores -inf.

        Notes
        -----
        O(k n^2), projective O(n^3 + k n log k). Among equals the order is always the same.

        Examples
        --------
        >>> import numpy as np, spantree
        >>> trees = spantree.TreeDistribution(np.array([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]])).topk(3)
        >>> trees.heads
        array([[-1,  2,  0],
               [-1,  0,  1],
               [-1, -1, -1]])
        >>> trees.scores
        array([  7.,   4., -inf])
        """
        k = _positive(k)
        batch = self._batch
        decoded = self._checked(_decoding.topk(batch, self._core_root, self._projective, k))
        labels = None if decoded.labels is None else batch.nodes(decoded.labels, k)
        return Trees(batch.nodes(decoded.heads, k), batch.scalars(decoded.scores, k), labels)

    def iter_best(self) -> Iterator[Trees]:
        """One sentence's trees from best to worst, each when it is asked for.

        Yields
        ------
        Trees
            ``heads (n+1,)``, ``scores`` a number, ``labels (n+1,)`` if the scores are labelled.

        Examples
        --------
        >>> import numpy as np, spantree
        >>> best_first = spantree.TreeDistribution(np.array([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]])).iter_best()
        >>> [(tree.heads.tolist(), float(tree.scores)) for tree in best_first]
        [([-1, 2, 0], 7.0), ([-1, 0, 1], 4.0)]
        """
        self._require_one_sentence("iter_best")
        self._decode()  # raises here, not at the first step, if there is no tree
        return _decoding.iter_best(self._batch, self._core_root, self._projective)

    def score(self, heads: Any, labels: Any = None) -> Any:
        """The sum of a tree's edge scores: its unnormalised log-probability.

        Parameters
        ----------
        heads : integers (..., n+1), or Trees
            One tree per sentence, or several along axes before: ``(k, ..., n+1)`` gives ``(k, ...)``.
        labels : integers like `heads`
            Needed if the scores are labelled (or give `Trees`).

        Returns
        -------
        float array (...)
            -inf where heads is no tree of this distribution: a cycle, several roots where one is allowed, crossing arcs
            where none are, a forbidden edge, a head that is no node.

        Examples
        --------
        >>> import numpy as np, spantree
        >>> dist = spantree.TreeDistribution(np.array([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]]))
        >>> dist.score([[-1, 0, 1], [-1, 2, 0], [-1, 0, 0]])
        array([  4.,   7., -inf])
        """
        if isinstance(heads, Trees):
            heads, labels = heads.heads, heads.labels
        batch = self._batch
        if batch.labelled != (labels is not None):
            raise ValueError("labels are needed with labelled scores, and only with them")
        rows = batch.flat_nodes(heads, "heads")
        label_rows = None if labels is None else batch.flat_nodes(labels, "labels")
        if label_rows is not None and label_rows.shape != rows.shape:
            raise ValueError("heads and labels must have the same shape")
        scores = _decoding.score(batch, self._core_root, self._projective, rows, label_rows)
        return batch.scalars_like(scores, heads)

    def condition(self, include: Iterable[Any] = (), exclude: Iterable[Any] = ()) -> TreeDistribution:
        """The distribution given that some edges are, or are not, in the tree.

        Parameters
        ----------
        include, exclude : edges
            Pairs ``(head, dep)``, or ``(head, dep, label)`` with labelled scores. For a batch they hold for every
            sentence; or give one list of edges per sentence.

        Examples
        --------
        >>> import numpy as np, spantree
        >>> dist = spantree.TreeDistribution(np.array([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]]))
        >>> dist.condition(include=[(1, 2)]).argmax()
        array([-1,  0,  1])
        """
        return self._with_batch(condition(self._batch, include, exclude))

    # Sampling

    def sample(self, k: int | None = None, *, rng: Rng = None, method: Method = "auto") -> Any:
        """Random trees, exactly from the distribution, independent of each other.

        Parameters
        ----------
        k : int, optional
            How many trees for each sentence; one, without an axis for it, if not given.
        rng : None, int or numpy.random.Generator
            A seed, or where to draw one from. The same seed gives the same trees, whatever the number of threads and
            whatever stands in the padding.
        method : {"auto", "wilson-marginal", "wilson-reject", "ancestral"}
            See Notes. The distribution is the same.

        Returns
        -------
        int64 array (k, ..., n+1), or `Trees` with heads and labels if the scores are labelled.

        Notes
        -----
        ``"auto"`` is ``"wilson-marginal"`` where that is faster than ``"ancestral"``, which is known before the first
        tree is drawn. Set-up is O(n^3) per sentence.

        - ``"wilson-marginal"`` draws the root word from its marginal and the rest by Wilson's algorithm (Stanojević
          2022): two steps per word on random scores, one on those of trained parsers, many where loops are likely.
        - ``"wilson-reject"`` draws trees with several roots until one has a single root.
        - ``"ancestral"`` draws the heads word by word, O(n^3) per tree at most, whatever the scores.

        No walk is without end: where the budget of steps is used up (32 times what the ancestral method costs; a
        million at least if a Wilson is asked for by name), or is expected to be, the tree is drawn by the ancestral
        method instead, given the root word if that was drawn. The number of steps is independent of the tree, so this
        changes no probability. Projective trees are drawn top down through the inside chart, O(n^2) per tree, whatever
        `method`.

        Examples
        --------
        >>> import numpy as np, spantree
        >>> dist = spantree.TreeDistribution(np.array([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]]))
        >>> dist.sample(rng=0)
        array([-1,  2,  0])
        >>> trees = dist.sample(100_000, rng=0)
        >>> round(float((trees[:, 1] == 2).mean()), 2)  # exactly: 0.9526
        0.95
        """
        batch = self._batch
        if method not in _sampling.METHODS:
            raise ValueError(f"method must be one of {', '.join(map(repr, _sampling.METHODS))}, not {method!r}")
        trees = 1 if k is None else _positive(k)
        drawn = self._checked(_sampling.sample(batch, self._core_root, self._projective, trees, rng, method))
        axis = None if k is None else trees
        heads = batch.nodes(drawn.heads, axis)
        return heads if drawn.labels is None else Trees(heads, labels=batch.nodes(drawn.labels, axis))

    def sample_without_replacement(self, k: int, *, rng: Rng = None, method: DistinctMethod = "auto") -> Sample:
        """Random trees of which no two are the same: each drawn in proportion to its probability among those left.

        Parameters
        ----------
        k : int
            How many trees for each sentence. Where there are fewer, all of them.
        rng : None, int or numpy.random.Generator
            As in `sample`.
        method : {"auto", "trie", "beam"}
            See Notes. The distribution is the same.

        Returns
        -------
        Sample
            ``heads``, ``labels``, ``log_probs``, Gumbel ``keys``, ``threshold``, and estimators of expectations and
            gradients.

        Notes
        -----
        ``"auto"`` draws with replacement and drops repeats while that is cheap, then goes on as ``"trie"``: a prefix
        trie over word-order decisions, O(n^3) per tree at most, in which the next trees come in the right proportions
        however little mass is left (Stanojević 2022). ``"beam"`` is stochastic beam search (Kool et al. 2019), O(n^3)
        per tree too. With labels, *labelled* trees are drawn without replacement. Projective trees are decided top down
        through the inside chart instead, O(n^2) per tree by either method.

        Examples
        --------
        >>> import numpy as np, spantree
        >>> sample = spantree.TreeDistribution(np.zeros((4, 4))).sample_without_replacement(9, rng=0)
        >>> len({tuple(heads) for heads in sample.heads.tolist()})  # three words have nine trees
        9
        >>> sample.log_probs.round(3)
        array([-2.197, -2.197, -2.197, -2.197, -2.197, -2.197, -2.197, -2.197,
               -2.197])
        """
        if method not in _sampling.DISTINCT_METHODS:
            raise ValueError(
                f"method must be one of {', '.join(map(repr, _sampling.DISTINCT_METHODS))}, not {method!r}"
            )
        k = _positive(k)
        drawn = _sampling.sample_distinct(self._batch, self._core_root, self._projective, k, rng, method)
        return Sample(self._batch, self._checked(drawn), k)

    def iter_without_replacement(self, *, rng: Rng = None) -> Iterator[Trees]:
        """One sentence's trees in random order, each when it is asked for, none twice, until none is left.

        Yields
        ------
        Trees
            ``heads (n+1,)``, ``scores``: the tree's log-probability, ``labels (n+1,)`` if the scores are labelled.

        Examples
        --------
        >>> import numpy as np, spantree
        >>> dist = spantree.TreeDistribution(np.array([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]]))
        >>> [(tree.heads.tolist(), round(float(tree.scores), 3)) for tree in dist.iter_without_replacement(rng=0)]
        [([-1, 2, 0], -0.049), ([-1, 0, 1], -3.049)]
        """
        self._require_one_sentence("iter_without_replacement")
        self._decode()  # raises here, not at the first step, if there is no tree
        return _sampling.iter_distinct(self._batch, self._core_root, self._projective, rng)

    # As a sequence of sentences

    def __len__(self) -> int:
        leading = self._batch.leading
        if leading == ():
            raise TypeError("a distribution over one sentence's trees has no length")
        return len(self._batch) if leading is None else leading[0]

    def __getitem__(self, index: Any) -> TreeDistribution:
        return self._with_batch(self._batch.select(index))

    def __repr__(self) -> str:
        batch = self._batch
        if batch.leading == ():
            what = f"{batch.lengths[0]} words"
        elif len(batch):
            what = f"{len(batch)} sentences of {batch.lengths.min()} to {batch.lengths.max()} words"
        else:
            what = "no sentences"
        kind = ", projective" if self._projective else ""
        labels = f", {batch.arrays[0].shape[-1]} labels" if batch.labelled and len(batch) else ""
        return f"TreeDistribution({what}, {self._root} root{kind}{labels}, {batch.dtype})"

    def _repr_html_(self) -> str:
        return _html.summary(
            repr(self), self._batch, _decoding.argmax(self._batch, self._core_root, self._projective, scored=True)
        )

    # Shared steps

    def _solve(self, batch: Batch, keep: bool = True) -> Solved:
        kind = ProjectiveSolve if self._projective else Solve
        return kind(batch, self._core_root, keep)

    def _decode(self, scored: bool = False) -> Decoded:
        return self._checked(_decoding.argmax(self._batch, self._core_root, self._projective, scored=scored))

    def _checked(self, found: _Found) -> _Found:
        if found.infeasible and self._on_infeasible == "raise":
            words = _decoding.unattachable(self._batch, self._core_root, self._projective)
            raise_infeasible(self._batch, words, self._tree_name())
        return found

    def _tree_name(self) -> str:
        kind = "projective tree" if self._projective else "tree"
        return f"{kind} with one root" if self._root == "single" else kind

    def _require_one_sentence(self, method: str) -> None:
        if self._batch.leading != ():
            raise ValueError(f"{method} takes one sentence; index the batch first: dist[i].{method}()")


def _positive(k: Any) -> int:
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise ValueError(f"k must be a positive integer, not {k!r}")
    return int(k)
