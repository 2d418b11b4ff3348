"""`TreeDistribution`: the one class, and everything it can be asked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, overload

import numpy as np

from . import _confidence, _constraints, _core, _decoding, _inference, _moments, _partial, _sampling
from ._batch import Batch
from ._condition import condition
from ._confidence import Confidence
from ._decoding import Decoded
from ._edges import edges_of
from ._errors import InfeasibleError, name_of_trees, raise_infeasible
from ._estimators import Sample
from ._inference import Flat, Quantity, Solved
from ._names import Words, label_number, read_labels, read_words
from ._options import (
    Layout,
    OnInfeasible,
    RootMode,
    check_choice,
    check_flag,
    check_function,
    check_with_grad,
    core_root,
    positive_integer,
    read_list,
    real_number,
)
from ._read import read_values
from ._sampling import DistinctMethod, Drawn, Method, Rng
from ._tree_stream import TreeStream
from ._trees import LABELS_NEED_HEADS, Floats, Ints, Trees, parts_of

if TYPE_CHECKING:
    import numpy.typing as npt
    from typing_extensions import Self, TypeVar, Unpack

    from ._options import ListOfFloats, ListOfInts, ListOfScores, Options, Scores
    from ._read import FloatArray, IntArray

    Best = TypeVar("Best", default=IntArray)  # a best or a random tree: Ints, or Trees if the scores are labelled
else:
    from typing import TypeVar

    Best = TypeVar("Best")

_Found = TypeVar("_Found", Decoded, Drawn, _sampling.DrawnDistinct)  # trees, and how many sentences have none


class TreeDistribution(Generic[Floats, Ints, Best]):
    """The distribution over dependency trees in which a tree's log-weight is the sum of its edges' scores.

    Parameters
    ----------
    scores : array (..., n+1, n+1), or a list of (n+1, n+1) arrays
        ``scores[..., h, d]`` is the log-weight of the edge from head ``h`` to dependent ``d``; node 0 is ROOT.
        ``-inf`` forbids an edge, and so does a masked entry of a `numpy.ma` array; column 0 and the diagonal are
        ignored. Real numbers of any kind, from any library that speaks DLPack or ``__array__``; results come back in
        their dtype (integers: float64). A list holds sentences of different sizes, and every result is then a list
        too; nested lists of numbers are one sentence.
    lengths : integers (...), optional
        Words of each sentence in a padded batch. What stands in the padding never matters.
    mask : boolean array, optional
        Like `scores`: False forbids the edge. Or of words, with one axis less (labelled: two): ``(..., n)``, or
        ``(..., n+1)`` with an entry for ROOT that is not looked at; False is padding, at the end.
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
    temperature : float
        Scores are divided by it: above 1 the distribution is flatter, below 1 sharper.
    root_label : int or str, optional
        With labels: this one stands on the edges that leave ROOT and nowhere else, as ``root`` does in Universal
        Dependencies.
    words : strings, optional
        The n words of the sentence (a batch: a list of such lists): shown by `repr`, `explain` and in notebooks.
    labels : strings, optional
        Names of the labels: shown likewise, and accepted where a label is asked for.

    Notes
    -----
    A distribution is a snapshot: scores are copied and checked once, here (NaN or +inf raises ValueError naming the
    sentence and the edge), and what happens to the array afterwards is never seen. It does not change, so that any
    number of threads may ask it anything; what they ask first is computed once and kept. It pickles and copies, without
    what was computed.

    With ``with_grad=True``, every scalar quantity comes with its gradient with respect to the scores, shaped like them.

    Besides the copy, a solve keeps about three numbers per edge. Scratch memory belongs to the core, one piece for each
    thread, and is used again by later calls: 128 MB of it at most, and no piece beyond 64 MB, are kept when nobody
    uses them, all else goes back to the system at once. Of the memory of copies that are gone, 32 MB at most are kept
    for later ones. Measured, for each thread and sentences of n words: 8 n^2 bytes for best trees, 30 n^2 for the k
    best, 25 n^2 for log Z, 55 n^2 for marginals, 85 n^2 with gradients, 110 n^2 to draw trees; of short sentences eight
    are solved side by side, which takes 45 n^2, 160 n^2 and 370 n^2. Projective trees take 110 n^2, 240 n^2 where
    doubles do not have the range (beyond 300 words always), and half as much again with gradients.

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

    __slots__ = (
        "__weakref__",
        "_batch",
        "_core_root",
        "_kept",
        "_label_names",
        "_on_infeasible",
        "_projective",
        "_root",
        "_temperature",
        "_words",
    )

    _batch: Batch
    _root: RootMode
    _core_root: _core.Root
    _projective: bool
    _on_infeasible: OnInfeasible
    _temperature: float
    _words: Words | None
    _label_names: tuple[str, ...] | None
    _kept: Solved | None

    @overload
    def __init__(
        self: TreeDistribution[ListOfFloats, ListOfInts, ListOfInts],
        scores: ListOfScores,
        *,
        labelled: Literal[False] = False,
        **options: Unpack[Options],
    ) -> None: ...
    @overload
    def __init__(
        self: TreeDistribution[ListOfFloats, ListOfInts, Trees[ListOfInts, ListOfFloats]],
        scores: ListOfScores,
        *,
        labelled: Literal[True],
        **options: Unpack[Options],
    ) -> None: ...
    @overload
    def __init__(
        self: TreeDistribution[FloatArray, IntArray, IntArray],
        scores: npt.ArrayLike,
        *,
        labelled: Literal[False] = False,
        **options: Unpack[Options],
    ) -> None: ...
    @overload
    def __init__(
        self: TreeDistribution[FloatArray, IntArray, Trees[IntArray, FloatArray]],
        scores: npt.ArrayLike,
        *,
        labelled: Literal[True],
        **options: Unpack[Options],
    ) -> None: ...
    @overload
    def __init__(
        self: TreeDistribution[Any, Any, Any], scores: Scores, *, labelled: bool, **options: Unpack[Options]
    ) -> None: ...
    def __init__(
        self,
        scores: Scores,
        *,
        lengths: npt.ArrayLike | None = None,
        mask: Any = None,
        root: RootMode = "single",
        projective: bool = False,
        labelled: bool = False,
        layout: Layout = "head_dep",
        on_infeasible: OnInfeasible = "raise",
        temperature: float = 1.0,
        root_label: int | str | None = None,
        words: Sequence[Any] | None = None,
        labels: Sequence[str] | None = None,
    ) -> None:
        self._set(root, projective, on_infeasible, temperature)
        names = None if labels is None else tuple(read_list("labels must be a list of names", labels))
        root_number = None if root_label is None else label_number(root_label, names, "root_label")
        self._batch = Batch.read(
            scores, lengths, mask, labelled, layout, temperature=temperature, root_label=root_number
        )
        self._words = None if words is None else read_words(self._batch, words)
        self._label_names = None if names is None else read_labels(self._batch, names)
        self._batch.refuse_bad_scores()

    def _set(self, root: RootMode, projective: bool, on_infeasible: OnInfeasible, temperature: float) -> None:
        check_choice("on_infeasible", on_infeasible, "raise", "mask")
        self._core_root = core_root(root)
        self._root = root
        self._projective = check_flag("projective", projective)
        self._on_infeasible = on_infeasible
        self._temperature = real_number("temperature", temperature)
        self._words = None
        self._label_names = None
        self._kept = None

    def _with_batch(self, batch: Batch) -> Any:
        """Another distribution with the same settings and the same names."""
        other: TreeDistribution[Any, Any, Any] = TreeDistribution.__new__(TreeDistribution)
        other._set(self._root, self._projective, self._on_infeasible, self._temperature)
        other._words, other._label_names = self._words, self._label_names
        other._batch = batch
        return other

    def __getstate__(self) -> dict[str, Any]:
        """Everything but what was computed."""
        names = ("_batch", "_root", "_projective", "_on_infeasible", "_temperature", "_words", "_label_names")
        return {name: getattr(self, name) for name in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self._core_root = core_root(self._root)
        self._kept = None

    # What it is

    @property
    def scores(self) -> Floats:
        """The scores that count, read-only: after mask and temperature, in the caller's layout."""
        batch = self._batch
        if isinstance(batch.arrays, list):
            return [_read_only(_inference.in_layout(batch, array)) for array in batch.arrays]  # type: ignore[return-value]
        array = _inference.in_layout(batch, batch.arrays)
        return _read_only(array.reshape(self.batch_shape + array.shape[1:]))  # type: ignore[return-value]

    @property
    def lengths(self) -> IntArray:
        """Words of each sentence, in the shape of the batch."""
        return self._batch.lengths.reshape(self.batch_shape).copy()

    @property
    def root(self) -> RootMode:
        """Whether one edge leaves ROOT ("single") or any number ("multi")."""
        return self._root

    @property
    def projective(self) -> bool:
        """Whether only trees without crossing arcs count."""
        return self._projective

    @property
    def temperature(self) -> float:
        """What the scores were divided by."""
        return self._temperature

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The axes of the sentences: () for one, (B,) for a list of B."""
        leading = self._batch.leading
        return (len(self._batch),) if leading is None else leading

    @property
    def event_shape(self) -> tuple[int, ...] | list[tuple[int, ...]]:
        """The axes of a tree's heads, (n+1,); for a list of sentences, a list of them."""
        arrays = self._batch.arrays
        return [(len(array),) for array in arrays] if isinstance(arrays, list) else (arrays.shape[1],)

    @property
    def mode(self) -> Best:
        """The best tree of each sentence: `argmax`."""
        return self.argmax()

    # Decoding

    def argmax(
        self,
        *,
        at_most_one: Sequence[Collection[int | str]] | None = None,
        exactly: int | None = None,
        at_most: int | None = None,
        limit: int = 10_000,
    ) -> Best:
        """The best tree of each sentence.

        Parameters
        ----------
        at_most_one : list of sets of labels, optional
            No head has two dependents with labels of one set: ``[{"nsubj", "csubj"}, {"obj"}]``.
        exactly, at_most : int, optional
            So many edges leave ROOT (with ``root="multi"``).
        limit : int
            Most decodings that a sentence may take under these constraints; beyond it `SearchLimitError` is raised,
            and no approximation is ever returned.

        Returns
        -------
        int64 array (..., n+1), or Trees
            Heads; with labelled scores `Trees` with heads and labels (and under constraints, the number of decodings).

        Notes
        -----
        Exact for any scores, soft masks such as -1e30 included. O(n^2), projective O(n^3). Of several best trees it is
        always the same one. With labels, the best labelled tree. Constraints are kept by branching on decodings, as
        many as it takes (see `topk`).

        Examples
        --------
        >>> import numpy as np, spantree
        >>> scores = np.array([[0, 7, 8, 7], [0, 0, 4, 1], [0, 5, 0, 6], [0, 3, 2, 0.0]])
        >>> spantree.TreeDistribution(scores).argmax()
        array([-1,  2,  0,  2])
        >>> spantree.TreeDistribution(scores, root="multi").argmax()
        array([-1,  0,  0,  0])
        """
        limit, cuts = positive_integer("limit", limit), self._cuts(at_most_one, exactly, at_most)
        if not cuts:
            return self._trees(self._decode())
        found = self._search(1, cuts, limit)
        heads: Any = _first(found.heads)
        return heads if found.labels is None else Trees(heads, labels=_first(found.labels), decodes=found.decodes)  # type: ignore

    @overload
    def max(self, *, with_grad: Literal[False] = False) -> Floats: ...
    @overload
    def max(self, *, with_grad: Literal[True]) -> tuple[Floats, Floats]: ...
    def max(self, *, with_grad: bool = False) -> Any:
        """The score of the best tree of each sentence; -inf where there is none and masked.

        Parameters
        ----------
        with_grad : bool
            Whether its gradient is asked for: 1 at the edges of the best tree.

        Returns
        -------
        float array (...)
            With the gradient: a pair of it and an array like the scores.

        Examples
        --------
        >>> import numpy as np, spantree
        >>> float(spantree.TreeDistribution(np.array([[0, 2.0], [0, 0]])).max())
        2.0
        """
        with_grad = check_flag("with_grad", with_grad)
        decoded = self._decode(scored=True)
        return self._in_form((decoded.scores, self._edges_of(decoded) if with_grad else None))

    def topk(
        self,
        k: int,
        *,
        at_most_one: Sequence[Collection[int | str]] | None = None,
        exactly: int | None = None,
        at_most: int | None = None,
        limit: int = 10_000,
    ) -> Trees[Ints, Floats]:
        """The k best trees, best first, exact.

        Parameters
        ----------
        k : int
            How many.
        at_most_one : list of sets of labels, optional
            No head has two dependents with labels of one set: ``[{"nsubj", "csubj"}, {"obj"}]``.
        exactly, at_most : int, optional
            So many edges leave ROOT (with ``root="multi"``).
        limit : int
            Most decodings that a sentence may take under these constraints; beyond it `SearchLimitError` is raised,
            and no approximation is ever returned.

        Returns
        -------
        Trees
            ``heads (k, ..., n+1)``, ``scores (k, ...)``, and ``labels (k, ..., n+1)`` if the scores are labelled: the
            k best *labelled* trees. Where a sentence has fewer than k trees, heads are -1 and scores -inf. Under
            constraints, ``decodes`` tells how many decodings each sentence took.

        Notes
        -----
        O(k n^2), projective O(n^3 + k n log k). Among equals the order is always the same. Constraints are kept by
        branching: where the best of a set of trees breaks one, the set is cut in parts that cannot break it there. The
        number of decodings depends on the scores; on those of trained parsers a few are the rule.

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
        k = positive_integer("k", k)
        batch = self._batch
        limit, cuts = positive_integer("limit", limit), self._cuts(at_most_one, exactly, at_most)
        if cuts:
            return self._search(k, cuts, limit)
        decoded = self._checked(_decoding.topk(batch, self._core_root, self._projective, k))
        labels = None if decoded.labels is None else batch.nodes(decoded.labels, k)
        return Trees(batch.nodes(decoded.heads, k), batch.scalars(decoded.scores, k), labels)

    def iter_best(
        self,
        *,
        where: Callable[..., bool] | None = None,
        at_most_one: Sequence[Collection[int | str]] | None = None,
        exactly: int | None = None,
        at_most: int | None = None,
        limit: int = 10_000,
    ) -> Iterator[Trees[IntArray, np.floating[Any]]]:
        """One sentence's trees from best to worst, each when it is asked for.

        Parameters
        ----------
        where : function, optional
            Of heads ``(n+1,)`` (labelled: heads and labels): only trees of which it is true are wanted.
        at_most_one : list of sets of labels, optional
            No head has two dependents with labels of one set: ``[{"nsubj", "csubj"}, {"obj"}]``.
        exactly, at_most : int, optional
            So many edges leave ROOT (with ``root="multi"``).
        limit : int
            Most decodings under constraints, and most trees that `where` may refuse in a row; beyond it
            `SearchLimitError` is raised.

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
        if where is not None:
            check_function("where", where)
        self._decode()  # raises here, not at the first step, if there is no tree
        limit, cuts = positive_integer("limit", limit), self._cuts(at_most_one, exactly, at_most)
        if cuts:
            found = _constraints.best_trees(self._batch, 0, self._core_root, self._projective, cuts, limit)
            trees = (self._tree_found(tree) for tree in found)
        else:
            trees = _decoding.iter_best(self._batch, self._core_root, self._projective)
        return TreeStream(trees if where is None else _constraints.wanted(trees, where, limit))

    @overload
    def score(self, heads: Any, labels: Any = None, *, with_grad: Literal[False] = False) -> Floats: ...
    @overload
    def score(self, heads: Any, labels: Any = None, *, with_grad: Literal[True]) -> tuple[Floats, Floats]: ...
    def score(self, heads: Any, labels: Any = None, *, with_grad: bool = False) -> Any:
        """The sum of a tree's edge scores: its unnormalised log-probability.

        Parameters
        ----------
        heads : integers (..., n+1), or Trees
            One tree per sentence, or several along axes before: ``(k, ..., n+1)`` gives ``(k, ...)``. What stands at
            ROOT and in the padding does not matter.
        labels : integers like `heads`, optional
            Needed if the scores are labelled (or give `Trees`).
        with_grad : bool
            Whether the gradient is asked for: 1 at the tree's edges; 0 everywhere if it is no tree.

        Returns
        -------
        float array (...)
            -inf where heads is no tree of this distribution: a cycle, several roots where one is allowed, crossing arcs
            where none are, a forbidden edge, a head that is no node. With the gradient, a pair; it has the axes of the
            scores behind those of several trees.

        Examples
        --------
        >>> import numpy as np, spantree
        >>> dist = spantree.TreeDistribution(np.array([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]]))
        >>> dist.score([[-1, 0, 1], [-1, 2, 0], [-1, 0, 0]])
        array([  4.,   7., -inf])
        """
        with_grad = check_flag("with_grad", with_grad)
        rows, label_rows, axes = self._read_trees(heads, labels, "heads")
        values, allowed = self._score(rows, label_rows)
        gradient = self._edges_of_trees(rows, label_rows, allowed) if with_grad else None
        return self._in_form((values, gradient), axes)

    def condition(
        self, include: Iterable[Any] = (), exclude: Iterable[Any] = (), *, heads: Any = None, labels: Any = None
    ) -> Self:
        """The distribution given that some edges are, or are not, in the tree.

        Parameters
        ----------
        include, exclude : edges
            Pairs ``(head, dep)``, or ``(head, dep, label)`` with labelled scores. For a batch they hold for every
            sentence; or give one list of edges per sentence. One pair alone will do.
        heads : integers (..., n+1), optional
            A partial tree for each sentence: known heads, and -2 where the head is unknown.
        labels : integers like `heads`, optional
            Known labels, and -2 where the label is unknown.

        Returns
        -------
        TreeDistribution
            Over the trees that are left.

        Examples
        --------
        >>> import numpy as np, spantree
        >>> dist = spantree.TreeDistribution(np.array([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]]))
        >>> dist.condition(include=[(1, 2)]).argmax()
        array([-1,  0,  1])
        >>> dist.condition(heads=[-1, -2, 1]).argmax()
        array([-1,  0,  1])
        """
        if heads is None and labels is not None:
            raise ValueError(LABELS_NEED_HEADS)
        batch = condition(self._batch, include, exclude)
        if heads is not None:
            rows, label_rows, axes = self._read_trees(heads, labels, "heads", partial=True)
            if axes != ():
                raise ValueError("heads must be one partial tree per sentence")
            bad = _partial.first_bad_head(batch, rows[0], None if label_rows is None else label_rows[0])
            if bad is not None:
                raise ValueError(
                    f"{batch.name(bad[0])}: the head or label of word {bad[1]} is none, and not -2, unknown"
                )
            batch = _partial.completions(batch, rows[0], None if label_rows is None else label_rows[0])
        return self._with_batch(batch)  # type: ignore[no-any-return]

    def complete(self, heads: Any, labels: Any = None) -> tuple[Best, Floats]:
        """The best tree that agrees with a partial one, and its probability.

        Parameters
        ----------
        heads : integers (..., n+1)
            A partial tree for each sentence: known heads, and -2 where the head is unknown.
        labels : integers like `heads`, optional
            Known labels, and -2 where the label is unknown.

        Returns
        -------
        tree : int64 array (..., n+1), or Trees
            As from `argmax`.
        probability : float array (...)
            Of that tree. Divide it by ``exp(log_prob(heads, partial=True))`` for its probability given what is known.

        Examples
        --------
        >>> import numpy as np, spantree
        >>> dist = spantree.TreeDistribution(np.zeros((4, 4)))
        >>> tree, probability = dist.complete([-1, -2, 0, 2])
        >>> tree, round(float(probability), 3)  # one of nine trees
        (array([-1,  2,  0,  2]), 0.111)
        """
        if heads is None:
            raise TypeError("heads must be a partial tree for each sentence, not None")
        given: TreeDistribution[Any, Any, Any] = self.condition(heads=heads, labels=labels)
        best = given._decode()
        with np.errstate(under="ignore"):
            probability = np.exp(self._log_probs_of(best))
        return self._trees(best), self._batch.scalars(probability)

    # Inference: every quantity follows from one solve, which is made when first needed and kept

    @overload
    def log_partition(self, *, with_grad: Literal[False] = False) -> Floats: ...
    @overload
    def log_partition(self, *, with_grad: Literal[True]) -> tuple[Floats, Floats]: ...
    def log_partition(self, *, with_grad: bool = False) -> Any:
        """The log-partition log Z: the logarithm of the sum of all trees' weights.

        Parameters
        ----------
        with_grad : bool
            Whether its gradient is asked for: the marginals.

        Returns
        -------
        float array (...)
            -inf where there is no tree and on_infeasible is "mask". With the gradient, a pair.

        Notes
        -----
        O(n^3), by elimination without a subtraction: exact to rounding at any scale of scores.

        Examples
        --------
        >>> import numpy as np, spantree
        >>> bool(np.isclose(spantree.TreeDistribution(np.zeros((4, 4))).log_partition(), np.log(9)))  # Cayley: n^(n-1)
        True
        """
        with_grad = check_flag("with_grad", with_grad)
        solved = self._solved
        # First, so that one solve serves both.
        gradient = (
            None if not with_grad else solved.fresh_marginals() if self._temperature == 1.0 else solved.marginals()
        )
        return self._quantity((solved.log_partition.copy(), gradient))

    @overload
    def log_prob(
        self, heads: Any, labels: Any = None, *, partial: bool = False, with_grad: Literal[False] = False
    ) -> Floats: ...
    @overload
    def log_prob(
        self, heads: Any, labels: Any = None, *, partial: bool = False, with_grad: Literal[True]
    ) -> tuple[Floats, Floats]: ...
    def log_prob(self, heads: Any, labels: Any = None, *, partial: bool = False, with_grad: bool = False) -> Any:
        """The log-probability of a tree, `score` minus log Z: minus the loss of a conditional random field.

        Parameters
        ----------
        heads, labels : as for `score`
            One tree per sentence, or several.
        partial : bool
            Whether heads (and labels) may be -2, unknown: then it is the log of the sum over all completions. Without
            labels, all of them are unknown.
        with_grad : bool
            Whether the gradient is asked for: the tree's edges (partial: the marginals given what is known) minus the
            marginals; 0 everywhere if it is no tree.

        Returns
        -------
        float array (...)
            -inf where heads is no tree of this distribution. With the gradient, a pair as for `score`.

        Examples
        --------
        >>> import numpy as np, spantree
        >>> dist = spantree.TreeDistribution(np.zeros((3, 3)))
        >>> np.exp(dist.log_prob([[-1, 0, 1], [-1, 2, 0], [-1, 0, 0]])).round(6)
        array([0.5, 0.5, 0. ])
        >>> dist.log_prob([-1, 0, 1], with_grad=True)[1]
        array([[ 0. ,  0.5, -0.5],
               [ 0. ,  0. ,  0.5],
               [ 0. , -0.5,  0. ]])
        >>> float(dist.log_prob([-1, -2, -2], partial=True))
        0.0
        """
        partial, with_grad = check_flag("partial", partial), check_flag("with_grad", with_grad)
        solved = self._solved
        rows, label_rows, axes = self._read_trees(heads, labels, "heads", partial)
        if partial:
            values, allowed, gradient = self._sum_over_completions(rows, label_rows, with_grad)
        else:
            values, allowed = self._solved.log_probs(rows, label_rows)
            gradient = self._edges_of_trees(rows, label_rows, allowed) if with_grad else None
        if gradient is not None:
            gradient -= self._where(allowed, solved.marginals())
        self._check_feasible()
        return self._in_form((values, gradient), axes)

    def marginals(self) -> Floats:
        """The probability of every edge, in the shape of the scores; 0 in column 0, on the diagonal and in the padding.

        Returns
        -------
        float array like the scores
            With labels, the probability of the edge with that label.

        Notes
        -----
        O(n^3). Every entry above 1e-250 has a small *relative* error, whatever the scale of the scores; below that,
        digits are lost on the way to the smallest double. None is negative, and the heads of a word sum to 1.

        Examples
        --------
        >>> import numpy as np, spantree
        >>> spantree.TreeDistribution(np.log(np.array([[1, 1, 3], [1, 1, 1], [1, 1, 1.0]]))).marginals().round(6)
        array([[0.  , 0.25, 0.75],
               [0.  , 0.  , 0.25],
               [0.  , 0.75, 0.  ]])
        """
        marginals = self._solved.fresh_marginals()
        self._check_feasible()
        return self._batch.edges(marginals)  # type: ignore[no-any-return]

    @overload
    def entropy(self, *, with_grad: Literal[False] = False) -> Floats: ...
    @overload
    def entropy(self, *, with_grad: Literal[True]) -> tuple[Floats, Floats]: ...
    def entropy(self, *, with_grad: bool = False) -> Any:
        """Shannon entropy in nats.

        Parameters
        ----------
        with_grad : bool
            Whether its gradient is asked for.

        Returns
        -------
        float array (...)
            NaN where there is no tree and on_infeasible is "mask". With the gradient, a pair.

        Examples
        --------
        >>> import numpy as np, spantree
        >>> bool(np.isclose(spantree.TreeDistribution(np.zeros((4, 4))).entropy(), np.log(9)))
        True
        """
        with_grad = check_flag("with_grad", with_grad)
        return self._quantity(self._solved.expectation(None, with_grad, rounded=self._temperature == 1.0))

    @overload
    def cross_entropy(self, other: TreeDistribution[Any, Any, Any], *, with_grad: Literal[False] = False) -> Floats: ...
    @overload
    def cross_entropy(
        self, other: TreeDistribution[Any, Any, Any], *, with_grad: Literal[True]
    ) -> tuple[Floats, Floats]: ...
    @overload
    def cross_entropy(
        self, other: TreeDistribution[Any, Any, Any], *, with_grad: Literal["both"]
    ) -> tuple[Floats, Floats, Floats]: ...
    def cross_entropy(
        self, other: TreeDistribution[Any, Any, Any], *, with_grad: bool | Literal["both"] = False
    ) -> Any:
        """-E[log-probability under `other`], in nats; inf where this distribution has a tree that `other` has not.

        Parameters
        ----------
        other : TreeDistribution
            With as many sentences of the same lengths.
        with_grad : bool or "both"
            Whether the gradient is asked for, with respect to this distribution's scores; with "both", also the one
            with respect to `other`'s scores, which is `other`'s marginals minus this distribution's.

        Returns
        -------
        float array (...)
            With gradients, a tuple of it and of them.

        Notes
        -----
        Right whatever the scores: masks such as -1e30 in `other` that all trees here pay alike take no digits from a
        gradient. Of trees with more of them it counts how often this distribution has them as far as its marginals
        tell: less than about 1e-13 of all trees may count as none.

        Examples
        --------
        >>> import numpy as np, spantree
        >>> p = spantree.TreeDistribution(np.zeros((3, 3)))
        >>> q = spantree.TreeDistribution(np.array([[0, 0, 1], [0, 0, 0], [0, 0, 0.0]]))
        >>> bool(np.isclose(p.cross_entropy(q), p.entropy() + p.kl(q)))
        True
        """
        return self._compared(other, False, with_grad)

    @overload
    def kl(self, other: TreeDistribution[Any, Any, Any], *, with_grad: Literal[False] = False) -> Floats: ...
    @overload
    def kl(self, other: TreeDistribution[Any, Any, Any], *, with_grad: Literal[True]) -> tuple[Floats, Floats]: ...
    @overload
    def kl(
        self, other: TreeDistribution[Any, Any, Any], *, with_grad: Literal["both"]
    ) -> tuple[Floats, Floats, Floats]: ...
    def kl(self, other: TreeDistribution[Any, Any, Any], *, with_grad: bool | Literal["both"] = False) -> Any:
        """Kullback-Leibler divergence from `other`, in nats; inf where there is a tree that `other` has not.

        Parameters
        ----------
        other, with_grad : as for `cross_entropy`
            What it is compared with, and which gradients are asked for.

        Returns
        -------
        float array (...)
            With gradients, a tuple of it and of them.

        Examples
        --------
        >>> import numpy as np, spantree
        >>> p = spantree.TreeDistribution(np.zeros((3, 3)))
        >>> float(p.kl(p)), float(p.kl(spantree.TreeDistribution(np.array([[0, -np.inf, 1], [0, 0, 0], [0, 0, 0.0]]))))
        (0.0, inf)
        """
        return self._compared(other, True, with_grad)

    @overload
    def renyi_entropy(self, alpha: float, *, with_grad: Literal[False] = False) -> Floats: ...
    @overload
    def renyi_entropy(self, alpha: float, *, with_grad: Literal[True]) -> tuple[Floats, Floats]: ...
    def renyi_entropy(self, alpha: float, *, with_grad: bool = False) -> Any:
        """Renyi entropy in nats.

        Parameters
        ----------
        alpha : float
            The order, at least 0. At 0 it is the log of the number of trees, at 1 Shannon's entropy, at infinity the
            min-entropy.
        with_grad : bool
            Whether its gradient is asked for.

        Returns
        -------
        float array (...)
            With the gradient, a pair.

        Examples
        --------
        >>> import numpy as np, spantree
        >>> dist = spantree.TreeDistribution(np.array([[0, 1, 2, 0], [0, 0, 3, 1], [0, 2, 0, 1], [0, 0, 0, 0.0]]))
        >>> float(np.exp(dist.renyi_entropy(0)).round(6))
        9.0
        """
        alpha, with_grad = real_number("alpha", alpha), check_flag("with_grad", with_grad)
        if not alpha >= 0.0:
            raise ValueError(f"alpha must be at least 0, not {alpha!r}")
        quantity = _inference.renyi_entropy(self._batch, self._solved, self._solve, self._best_edges, alpha, with_grad)
        return self._quantity(quantity)

    @overload
    def norm(self, p: float, *, with_grad: Literal[False] = False) -> Floats: ...
    @overload
    def norm(self, p: float, *, with_grad: Literal[True]) -> tuple[Floats, Floats]: ...
    def norm(self, p: float, *, with_grad: bool = False) -> Any:
        """The p-norm of the vector of all trees' probabilities.

        Parameters
        ----------
        p : float
            Positive; inf gives the highest probability.
        with_grad : bool
            Whether its gradient is asked for.

        Returns
        -------
        float array (...)
            With the gradient, a pair.

        Examples
        --------
        >>> import numpy as np, spantree
        >>> float(spantree.TreeDistribution(np.zeros((3, 3))).norm(2).round(6))
        0.707107
        """
        p, with_grad = real_number("p", p), check_flag("with_grad", with_grad)
        if not p > 0.0:
            raise ValueError(f"p must be positive, not {p!r}")
        quantity = _inference.norm(self._batch, self._solved, self._solve, self._best_edges, p, with_grad)
        return self._quantity(quantity)

    @overload
    def expectation(self, values: Any, *, with_grad: Literal[False] = False) -> Floats: ...
    @overload
    def expectation(self, values: Any, *, with_grad: Literal[True]) -> tuple[Floats, Floats]: ...
    def expectation(self, values: Any, *, with_grad: bool = False) -> Any:
        """E[sum of values over the tree's edges].

        Parameters
        ----------
        values : array like the scores, or with one more axis of R values per edge
            Values of edges that are in no tree do not matter, whatever they are.
        with_grad : bool
            Whether its gradient is asked for.

        Returns
        -------
        float array (...), or (..., R)
            With the gradient, a pair of it and an array like `values`.

        Notes
        -----
        O(n^2) after the solve, each gradient O(n^3).

        Examples
        --------
        >>> import numpy as np, spantree
        >>> distance = np.abs(np.arange(4)[:, None] - np.arange(4)).astype(float)
        >>> float(spantree.TreeDistribution(np.zeros((4, 4))).expectation(distance).round(6))
        4.666667
        """
        with_grad = check_flag("with_grad", with_grad)
        batch = self._batch
        features, several = batch.flat_edges(values, "values")
        if not several:
            return self._quantity(self._solved.expectation(features[0], with_grad))
        totals, slopes = self._solved.expectations(features, with_grad)
        self._check_feasible()
        value = batch.stack_scalars(totals)
        if slopes is None:
            return value
        gradients = [self._by_given_scores(slope) for slope in slopes]
        pieces = batch.edges(_stacked(gradients, batch.core.edge_size).T, (len(features),))
        if batch.leading is None:
            return value, [np.moveaxis(piece, 0, -1) for piece in pieces]
        return value, np.moveaxis(pieces, 0, -1)

    @overload
    def product_expectation(self, values: Any, *, with_grad: Literal[False] = False) -> Floats: ...
    @overload
    def product_expectation(self, values: Any, *, with_grad: Literal[True]) -> tuple[Floats, Floats]: ...
    def product_expectation(self, values: Any, *, with_grad: bool = False) -> Any:
        """E[product of values over the tree's edges].

        Parameters
        ----------
        values : array like the scores
            Finite.
        with_grad : bool
            Whether its gradient is asked for.

        Returns
        -------
        float array (...)
            With the gradient, a pair.

        Notes
        -----
        Values that are not negative keep the relative accuracy of the solve. Negative ones (not for projective trees)
        cancel: the error is then relative to the expectation of the values' magnitudes, and they cost a determinant
        besides, in as many digits as the scores ask for: 32 for most, more, and slower by far, where trees of equal
        weight have edges whose scores lie many nats apart. Beyond 100,000 digits ValueError is raised.

        Examples
        --------
        >>> import numpy as np, spantree
        >>> dist = spantree.TreeDistribution(np.zeros((3, 3)))
        >>> float(dist.product_expectation(np.array([[0, 2, 3], [0, 0, 5], [0, 7, 0.0]])).round(6))
        15.5
        >>> float(dist.product_expectation(np.array([[0, -2, 3], [0, 0, 5], [0, 7, 0.0]])).round(6))
        5.5
        """
        with_grad = check_flag("with_grad", with_grad)
        features, several = self._batch.flat_edges(values, "values")
        if several:
            raise ValueError("values must have the shape of the scores")
        quantity = _inference.product_expectation(
            self._batch,
            self._solved,
            self._solve,
            self._core_root,
            features[0],
            with_grad,
            self._projective,
        )
        return self._quantity(quantity)

    def covariance(self, r: Any, s: Any) -> Floats:
        """Covariance of two additive functions of the tree.

        Parameters
        ----------
        r, s : arrays like the scores, or with one more axis of R (S) values per edge
            Or sparse matrices ``(edges, R)`` over flattened edges, one per sentence; or "edges": the indicators of all
            edges, which are never materialised (one of the two only).

        Returns
        -------
        float array (..., R, S)
            Without the axis of a side that has one value per edge; the axes of the scores in its place for "edges".

        Notes
        -----
        One product with the Hessian of log Z for each feature of the smaller side (T2v of Zmigrod et al. 2021):
        O(n^3 min(R, S) + n^2 R S).

        Examples
        --------
        >>> import numpy as np, spantree
        >>> dist = spantree.TreeDistribution(np.zeros((3, 3)))
        >>> dist.covariance(np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0.0]]), "edges").round(6)
        array([[ 0.  ,  0.25, -0.25],
               [ 0.  ,  0.  ,  0.25],
               [ 0.  , -0.25,  0.  ]])
        """
        return self._second_order(r, s, moment=False)

    def second_moment(self, r: Any, s: Any) -> Floats:
        """E[r s^T] for two additive functions of the tree.

        Parameters
        ----------
        r, s : as for `covariance`
            Values per edge, or "edges".

        Returns
        -------
        float array (..., R, S)
            As for `covariance`.

        Examples
        --------
        >>> import numpy as np, spantree
        >>> ones = np.ones((4, 4))  # every tree of three words has three edges
        >>> float(spantree.TreeDistribution(np.zeros((4, 4))).second_moment(ones, ones).round(6))
        9.0
        """
        return self._second_order(r, s, moment=True)

    @overload
    def expected_attachment(self, gold: Any, labels: Any = None, *, with_grad: Literal[False] = False) -> Floats: ...
    @overload
    def expected_attachment(
        self, gold: Any, labels: Any = None, *, with_grad: Literal[True]
    ) -> tuple[Floats, Floats]: ...
    def expected_attachment(self, gold: Any, labels: Any = None, *, with_grad: bool = False) -> Any:
        """Expected share of words with the gold head (labelled scores: and the gold label).

        Parameters
        ----------
        gold : integers (..., n+1), or Trees
            Gold heads; what is no node counts as wrong.
        labels : integers like `gold`, optional
            Gold labels, needed if the scores are labelled (or give `Trees`).
        with_grad : bool
            Whether its gradient is asked for.

        Returns
        -------
        float array (...)
            With the gradient, a pair.

        Examples
        --------
        >>> import numpy as np, spantree
        >>> float(spantree.TreeDistribution(np.zeros((3, 3))).expected_attachment([-1, 0, 1]))
        0.5
        """
        return self._quantity(self._attachment(gold, labels, check_flag("with_grad", with_grad)))

    @overload
    def risk(self, gold: Any, labels: Any = None, *, with_grad: Literal[False] = False) -> Floats: ...
    @overload
    def risk(self, gold: Any, labels: Any = None, *, with_grad: Literal[True]) -> tuple[Floats, Floats]: ...
    def risk(self, gold: Any, labels: Any = None, *, with_grad: bool = False) -> Any:
        """One minus `expected_attachment`.

        Parameters
        ----------
        gold, labels, with_grad : as for `expected_attachment`
            The gold tree, and whether the gradient is asked for.

        Returns
        -------
        float array (...)
            With the gradient, a pair.

        Examples
        --------
        >>> import numpy as np, spantree
        >>> float(spantree.TreeDistribution(np.zeros((3, 3))).risk([-1, 0, 1]))
        0.5
        """
        value, gradient = self._attachment(gold, labels, check_flag("with_grad", with_grad))
        return self._quantity((1.0 - value, None if gradient is None else -gradient))

    @overload
    def generalized_expectation(self, values: Any, target: Any, *, with_grad: Literal[False] = False) -> Floats: ...
    @overload
    def generalized_expectation(
        self, values: Any, target: Any, *, with_grad: Literal[True]
    ) -> tuple[Floats, Floats]: ...
    def generalized_expectation(self, values: Any, target: Any, *, with_grad: bool = False) -> Any:
        """Generalized expectation criterion: half the squared distance of E[values] from `target`.

        Parameters
        ----------
        values : as for `expectation`
            Features of the edges.
        target : array (..., R), or (...) where `values` has one value per edge
            What their expectations should be.
        with_grad : bool
            Whether its gradient is asked for.

        Returns
        -------
        float array (...)
            With the gradient, a pair.

        Examples
        --------
        >>> import numpy as np, spantree
        >>> dist = spantree.TreeDistribution(np.zeros((3, 3)))
        >>> float(dist.generalized_expectation(np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0.0]]), 1.0))
        0.125
        """
        with_grad = check_flag("with_grad", with_grad)
        batch = self._batch
        features, several = batch.flat_edges(values, "values")
        per_sentence = (len(features),) if several else ()
        shape = self.batch_shape + per_sentence
        wanted = _read_target(target, shape).reshape(len(batch), len(features))
        if not len(features):
            nothing = np.zeros(batch.core.edge_size) if with_grad else None
            return self._quantity((np.zeros(len(batch)), nothing))
        quantity = _inference.generalized_expectation(batch, self._solved, features, wanted, with_grad)
        return self._quantity(quantity)

    def mbr(self) -> Best:
        """The tree with the highest expected attachment score: the best tree when edges score their marginals.

        Returns
        -------
        int64 array (..., n+1), or Trees
            Heads; with labelled scores `Trees` with heads and labels.

        Examples
        --------
        >>> import numpy as np, spantree
        >>> spantree.TreeDistribution(np.array([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]])).mbr()
        array([-1,  2,  0])
        """
        decoded = _inference.mbr(self._batch, self._solved, self._core_root, self._projective)
        self._check_feasible()
        return self._trees(decoded)

    # Confidence

    def confidence(self) -> Confidence[Ints, Floats]:
        """How sure the distribution is of its best trees, word by word and sentence by sentence.

        Returns
        -------
        Confidence
            For each word the probability of its head, the runner-up and its probability, log-odds; for each sentence
            the log-probability of the best tree, its margin over the second, entropy, expected attachment score.

        Examples
        --------
        >>> import numpy as np, spantree
        >>> sure = spantree.TreeDistribution(np.array([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]])).confidence()
        >>> sure.head_probs.round(3), sure.runners_up
        (array([  nan, 0.953, 0.953]), array([-1,  0,  1]))
        >>> float(sure.margin), round(float(np.exp(sure.log_prob)), 3)
        (3.0, 0.953)
        """
        found = self._facts()
        two_best = _decoding.topk(self._batch, self._core_root, self._projective, 2)
        return _confidence.in_form(self._batch, found, self._margins(two_best, 2))

    def explain(self, words: Sequence[Any] | None = None) -> str | list[str]:
        """How likely the best tree is, and which word's head is least certain, as a sentence.

        Parameters
        ----------
        words : strings, optional
            The words of the sentence (a batch: a list of such lists), if they were not given to the distribution.

        Returns
        -------
        str
            For several sentences, a list of them.

        Examples
        --------
        >>> import numpy as np, spantree
        >>> scores = np.array([[0, 7, 8, 7], [0, 0, 4, 1], [0, 5, 0, 6], [0, 3, 5, 0.0]])
        >>> spantree.TreeDistribution(scores, words=["She", "saw", "stars"]).explain()
        'best tree 69%, entropy 1.04 nats; least certain is the head of She(1): saw(2) 79% or stars(3) 11%'
        """
        names = self._words if words is None else read_words(self._batch, words)
        told = _confidence.explanations(self._batch, self._facts(), names)
        return told[0] if self._batch.leading == () else told

    # Sampling

    def sample(
        self,
        k: int | None = None,
        *,
        rng: Rng = None,
        method: Method = "auto",
        first_sentence: int = 0,
        first_tree: int = 0,
    ) -> Best:
        """Random trees, exactly from the distribution, independent of each other.

        Parameters
        ----------
        k : int, optional
            How many trees for each sentence; one, without an axis for it, if not given.
        rng : None, int, numpy.random.Generator or one int for each sentence
            A seed, or where to draw one from. Tree t of sentence i depends on the seed, on the number
            ``first_sentence + i``, on t and on the sentence's scores: not on the number of threads, on the padding, on
            how many trees are drawn, or on the other sentences. With a seed for each sentence (of the batch's shape)
            it does not depend on i either: it is the tree that the sentence alone gives with that seed.
        method : {"auto", "wilson-marginal", "wilson-reject", "ancestral"}
            See Notes. The distribution is the same.
        first_sentence : int
            The number of the first sentence, for batches that are cut: ``xs[5:]`` with ``first_sentence=5`` gives the
            trees that it gives as part of ``xs``. Sentences are numbered in order, the last leading axis fastest.
        first_tree : int
            The number of the first tree, for who draws more than memory holds: ``sample(5, first_tree=10)`` gives the
            last five trees of ``sample(15)``.

        Returns
        -------
        int64 array (k, ..., n+1), or Trees
            Heads; with labelled scores `Trees` with heads and labels.

        Notes
        -----
        ``"auto"`` is ``"wilson-marginal"`` where that is faster than ``"ancestral"``, which is known before the first
        tree is drawn. Set-up is O(n^3) per sentence.

        - ``"wilson-marginal"`` draws the root word from its marginal and the rest by Wilson's algorithm (Stanojević
          2022): two steps per word on random scores, one on those of trained parsers, many where loops are likely.
        - ``"wilson-reject"`` draws trees with several roots until one has a single root, with all root edges reduced
          by one factor such that it soon has.
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
        check_choice("method", method, *_sampling.METHODS)
        trees = 1 if k is None else positive_integer("k", k)
        drawn = _sampling.sample(
            batch, self._core_root, self._projective, self._solved, trees, rng, method, first_sentence, first_tree
        )
        return self._trees(self._checked(drawn), None if k is None else trees)

    def sample_without_replacement(
        self, k: int, *, rng: Rng = None, method: DistinctMethod = "auto", first_sentence: int = 0
    ) -> Sample[Ints, Floats]:
        """Random trees of which no two are the same: each drawn in proportion to its probability among those left.

        Parameters
        ----------
        k : int
            How many trees for each sentence. Where there are fewer, all of them.
        rng, first_sentence : optional
            As in `sample`, but that ``"beam"`` draws other trees for another k.
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
        however little mass is left (Shi et al. 2020, Stanojević 2022). ``"beam"`` is stochastic beam search (Kool et
        al. 2019), O(n^3) per tree too. With labels, *labelled* trees are drawn without replacement. Projective trees
        are decided top down through the inside chart instead, O(n^2) per tree by either method.

        Log-probabilities are always exact. Once trees are left that together have less than exp(-750) of the mass,
        because all others are beyond soft masks, they still come one by one and none twice, but where masks have
        several sizes not always the likelier first; then keys and ``log_remaining`` are no more than estimates. Trees
        whose log-probability is beyond the range of doubles, below -1.8e308, may be left out.

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
        check_choice("method", method, *_sampling.DISTINCT_METHODS)
        k = positive_integer("k", k)
        drawn = _sampling.sample_distinct(
            self._batch, self._core_root, self._projective, self._solved, k, rng, method, first_sentence
        )
        return Sample(self._batch, self._within_range(self._checked(drawn), k), k)

    def iter_without_replacement(
        self, *, rng: Rng = None, first_sentence: int = 0
    ) -> Iterator[Trees[IntArray, np.floating[Any]]]:
        """One sentence's trees in random order, each when it is asked for, none twice, until none is left.

        Parameters
        ----------
        rng, first_sentence : optional
            As in `sample`: the trees are those of `sample_without_replacement`, in the same order.

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
        return self._iter_distinct(*_sampling.keys_from(rng, first_sentence, self._batch))

    def _iter_distinct(
        self, keys: npt.NDArray[np.uint64], first_sentence: int
    ) -> Iterator[Trees[IntArray, np.floating[Any]]]:
        self._require_one_sentence("iter_without_replacement")
        self._decode()  # raises here, not at the first step, if there is no tree
        trees = _sampling.iter_distinct(
            self._batch, self._core_root, self._projective, self._solved, keys, first_sentence
        )
        return TreeStream(self._tree_within_range(tree) for tree in trees)

    # As a sequence of sentences

    def __bool__(self) -> bool:
        return True

    def __len__(self) -> int:
        if self._batch.leading == ():
            raise TypeError("a distribution over one sentence's trees has no length")
        return self.batch_shape[0]

    @overload
    def __iter__(
        self: TreeDistribution[ListOfFloats, ListOfInts, ListOfInts],
    ) -> Iterator[TreeDistribution[FloatArray, IntArray, IntArray]]: ...
    @overload
    def __iter__(
        self: TreeDistribution[ListOfFloats, ListOfInts, Trees[ListOfInts, ListOfFloats]],
    ) -> Iterator[TreeDistribution[FloatArray, IntArray, Trees[IntArray, FloatArray]]]: ...
    @overload
    def __iter__(self) -> Iterator[Self]: ...
    def __iter__(self) -> Iterator[Any]:
        if self._batch.leading == ():
            raise TypeError("a distribution over one sentence's trees has no parts")
        return (self[i] for i in range(len(self)))

    @overload
    def __getitem__(
        self: TreeDistribution[ListOfFloats, ListOfInts, ListOfInts], index: int | np.integer[Any]
    ) -> TreeDistribution[FloatArray, IntArray, IntArray]: ...
    @overload
    def __getitem__(
        self: TreeDistribution[ListOfFloats, ListOfInts, Trees[ListOfInts, ListOfFloats]], index: int | np.integer[Any]
    ) -> TreeDistribution[FloatArray, IntArray, Trees[IntArray, FloatArray]]: ...
    @overload
    def __getitem__(self, index: Any) -> Self: ...
    def __getitem__(self, index: Any) -> Any:
        """The part of the batch that NumPy's indexing picks of an array of shape `batch_shape`."""
        batch, numbers = self._batch.select(index)
        part: TreeDistribution[Any, Any, Any] = self._with_batch(batch)
        part._words = None if self._words is None else [self._words[i] for i in numbers]
        return part

    def __repr__(self) -> str:
        batch = self._batch
        if batch.leading == () and self._words is not None:
            what = f"{' '.join(self._words[0])!r}, {batch.lengths[0]} words"
        elif batch.leading == ():
            what = f"{batch.lengths[0]} words"
        elif len(batch):
            least, most = batch.lengths.min(), batch.lengths.max()
            words = f"{least} words" if least == most else f"{least} to {most} words"
            what = f"{len(batch)} sentences of {words}"
        else:
            what = "no sentences"
        kind = ", projective" if self._projective else ""
        labels = f", {batch.arrays[0].shape[-1]} labels" if batch.labelled and len(batch) else ""
        if self._label_names:
            labels += f" ({', '.join(self._label_names[:3])}{', ...' if len(self._label_names) > 3 else ''})"
        return f"TreeDistribution({what}, {self._root} root{kind}{labels}, {batch.dtype})"

    def _repr_html_(self) -> str:
        from . import _html  # not all look at one

        best = _decoding.argmax(self._batch, self._core_root, self._projective, scored=True)
        picture = ""
        if self._batch.leading == () and self._words is not None:
            from .view.notebook import diagram  # here, because pictures are made with this class

            picture = diagram(self, self._words[0], self._label_names, self._batch.layout)
        return _html.summary(repr(self), self._batch, best, self._words, self._label_names) + picture

    # Shared steps

    @property
    def _solved(self) -> Solved:
        """The solve behind all of inference, kept."""
        if self._kept is None:
            self._kept = self._solve(self._batch)
        return self._kept

    def _solve(self, batch: Batch, keep: bool = True) -> Solved:
        return Solved(batch, self._core_root, self._projective, keep)

    def _facts(self) -> _confidence.Facts:
        best = self._decode()
        return _confidence.facts(self._batch, self._solved, best, self._log_probs_of(best))

    def _cuts(
        self, at_most_one: Sequence[Collection[Any]] | None, exactly: int | None, at_most: int | None
    ) -> list[_constraints.Cut]:
        def number(label: Any, option: str) -> int:
            found = label_number(label, self._label_names, option)
            if not 0 <= found < self._batch.labels:
                raise ValueError(f"{option}: there is no label {found}: there are {self._batch.labels}, from 0 on")
            return found

        return _constraints.read_cuts(self._root, at_most_one, exactly, at_most, self._batch.labelled, number)

    def _search(self, k: int, cuts: list[_constraints.Cut], limit: int) -> Trees[Any, Any]:
        """The k best trees of each sentence under constraints."""
        batch = self._batch
        self._decode()  # raises if there is no tree even without constraints
        limit = positive_integer("limit", limit)
        found = _constraints.k_best(batch, self._core_root, self._projective, cuts, k, limit)
        if self._on_infeasible == "raise":
            for i in np.flatnonzero(found.counts == 0):
                what = f"{self._tree_name()} that keeps the constraints"
                raise InfeasibleError(f"{batch.name(int(i))} has no {what}", int(i), 0)
        labels = None if found.labels is None else batch.nodes(found.labels, k)
        decodes = found.decodes.reshape(self.batch_shape)[()]
        return Trees(batch.nodes(found.heads, k), batch.scalars(found.scores, k), labels, decodes)

    def _tree_found(self, tree: _constraints.Found) -> Trees[Any, Any]:
        return Trees(*_constraints.padded(self._batch, tree), decodes=np.int64(tree.decodes))  # type: ignore

    def _decode(self, scored: bool = False) -> Decoded:
        return self._checked(_decoding.argmax(self._batch, self._core_root, self._projective, scored=scored))

    def _checked(self, found: _Found) -> _Found:
        self._refuse_infeasible(found.unattachable)
        return found

    def _check_feasible(self) -> None:
        self._refuse_infeasible(self._solved.unattachable)

    def _refuse_infeasible(self, words: IntArray | None) -> None:
        if words is not None and self._on_infeasible == "raise":
            raise_infeasible(self._batch, words, self._tree_name())

    def _tree_name(self) -> str:
        return name_of_trees(self._root, self._projective)

    def _require_one_sentence(self, method: str) -> None:
        if self._batch.leading != ():
            raise ValueError(f"{method} takes one sentence; index the batch first: dist[i].{method}()")

    def _check_comparable(self, other: TreeDistribution[Any, Any, Any]) -> None:
        if not isinstance(other, TreeDistribution):
            raise TypeError(f"other must be a TreeDistribution, not {type(other).__name__}")
        mine, theirs = self._batch, other._batch
        if (mine.labelled, mine.leading, mine.layout) != (theirs.labelled, theirs.leading, theirs.layout) or not (
            np.array_equal(mine.lengths, theirs.lengths) and mine.core.edge_size == theirs.core.edge_size
        ):
            raise ValueError("the two distributions must have the same sentences, labels and layout")
        if (self._root, self._projective) != (other._root, other._projective):
            raise ValueError("the two distributions must agree in root and projective")

    def _trees(self, found: Decoded | Drawn, k: int | None = None) -> Best:
        """Heads in the form of the scores, or heads and labels."""
        heads: Any = self._batch.nodes(found.heads, k)
        return heads if found.labels is None else Trees(heads, labels=self._batch.nodes(found.labels, k))  # type: ignore

    def _read_trees(
        self, heads: Any, labels: Any, name: str, partial: bool = False
    ) -> tuple[IntArray, IntArray | None, tuple[int, ...]]:
        """Rows of heads and of labels, and the axes that came before those of the sentences."""
        heads, labels = parts_of(heads, labels)
        if self._batch.labelled != (labels is not None) and not (partial and self._batch.labelled):
            raise ValueError("labels are needed with labelled scores, and only with them")
        rows, axes = self._batch.flat_nodes(heads, name)
        if labels is None:
            return rows, np.full_like(rows, _partial.UNKNOWN) if self._batch.labelled else None, axes
        label_rows, label_axes = self._batch.flat_nodes(labels, "labels")
        if label_axes != axes:
            raise ValueError(f"{name} and labels must have the same shape")
        return rows, label_rows, axes

    def _sum_over_completions(
        self, heads: IntArray, labels: IntArray | None, with_grad: bool
    ) -> tuple[Flat, npt.NDArray[np.bool_], Flat | None]:
        """log p of partial trees (k, row_size), whether there are completions of them, and their marginals.

        With t the best completion, log p(partial) = log p(t) - log p(t | partial): nothing large is subtracted.
        """
        shares = np.empty((len(heads), len(self._batch)))
        possible = np.ones(shares.shape, np.bool_)
        gradient = np.empty((len(heads), self._batch.core.edge_size)) if with_grad else None
        for t, row in enumerate(heads):
            batch = _partial.completions(self._batch, row, None if labels is None else labels[t])
            given: TreeDistribution[Any, Any, Any] = self._with_batch(batch)
            if gradient is not None:
                gradient[t] = given._solved.marginals()
            best = _decoding.argmax(batch, self._core_root, self._projective)
            if best.unattachable is not None:
                possible[t] = best.unattachable == 0
            with np.errstate(invalid="ignore"):
                share = self._log_probs_of(best) - given._log_probs_of(best)
            shares[t] = np.where(possible[t], np.minimum(share, 0.0), -np.inf)
        return shares, possible, gradient

    def _score(
        self, heads: IntArray, labels: IntArray | None, than: Decoded | None = None
    ) -> tuple[Flat, npt.NDArray[np.bool_]]:
        return _decoding.score(self._batch, self._core_root, self._projective, heads, labels, than)

    def _within_range(self, drawn: _sampling.DrawnDistinct, k: int) -> _sampling.DrawnDistinct:
        """The same with log-probabilities and keys of trees finite, however large the scores: -inf means no tree."""
        far = ~(np.abs(drawn.log_probs) < 1e4).reshape(k, -1) & (self._batch.lengths > 0)
        if far.any():
            rows, labels = (None if x is None else x.reshape(k, -1) for x in (drawn.heads, drawn.labels))
            assert rows is not None
            exact, drawn_at_all = self._solved.log_probs(rows, labels)
            lowest = np.finfo(np.float64).min
            far &= drawn_at_all
            for array, numbers in ((drawn.log_probs, exact), (drawn.keys, drawn.keys.reshape(k, -1))):
                array[far.ravel()] = np.maximum(numbers[far], lowest)
        return drawn

    def _tree_within_range(self, tree: Trees[IntArray, np.floating[Any]]) -> Trees[IntArray, np.floating[Any]]:
        """The same of one tree of one sentence."""
        if abs(tree.scores) < 1e4 or self._batch.lengths[0] == 0:
            return tree
        exact = self._solved.log_probs(tree.heads[np.newaxis], None if tree.labels is None else tree.labels[np.newaxis])
        log_prob = max(float(exact[0][0, 0]), np.finfo(np.float64).min)
        return Trees(tree.heads, self._batch.number(log_prob), tree.labels)

    def _log_probs_of(self, found: Decoded) -> Flat:
        """Of one tree per sentence."""
        labels = None if found.labels is None else found.labels[np.newaxis]
        return np.ravel(self._solved.log_probs(found.heads[np.newaxis], labels)[0])

    def _attachment(self, gold: Any, labels: Any, with_grad: bool) -> Quantity:
        rows, label_rows, axes = self._read_trees(gold, labels, "gold")
        if axes != ():
            raise ValueError("gold must be one tree per sentence")
        edges = edges_of(self._batch, rows, label_rows)[0]
        return _inference.expected_attachment(self._batch, self._solved, edges, with_grad)

    def _margins(self, best: Decoded, k: int) -> Flat:
        """How much likelier, in nats, the first of the k best trees is than the second; NaN where there is none."""
        heads, labels = (None if x is None else x.reshape(k, -1) for x in (best.heads, best.labels))
        assert heads is not None
        first = Decoded(heads[0], None if labels is None else labels[0], best.scores, None)
        lower, allowed = self._score(heads[:2], None if labels is None else labels[:2], first)
        margins = np.where(self._batch.lengths > 0, -lower[1], np.inf)  # without words there is one tree
        return np.where(allowed[0], margins, np.nan)

    def _edges_of(self, found: Decoded) -> Flat:
        """The edges of one tree per sentence as 0/1."""
        labels = None if found.labels is None else found.labels[np.newaxis]
        return np.ravel(edges_of(self._batch, found.heads[np.newaxis], labels))

    def _edges_of_trees(self, heads: IntArray, labels: IntArray | None, allowed: npt.NDArray[np.bool_]) -> Flat:
        """The edges of several trees per sentence as 0/1; none where it is no tree, which `allowed` (k, B) says."""
        return self._where(allowed, edges_of(self._batch, heads, labels))

    def _where(self, allowed: npt.NDArray[np.bool_], edges: Flat) -> Flat:
        """Numbers per edge, for each of k trees per sentence; 0 for those that `allowed` (k, B) rules out."""
        if allowed.all():  # nearly always, and looking at every edge costs as much as all the rest
            return edges
        sentence = _inference.spread_over_edges(self._batch, np.arange(len(self._batch)))
        return np.where(allowed[:, sentence], edges, 0.0)

    def _best_edges(self) -> tuple[Flat, Flat]:
        """Log-probability of the best tree of each sentence, NaN if it has none, and its edges as 0/1."""
        decoded = _decoding.argmax(self._batch, self._core_root, self._projective)
        log_probs = self._log_probs_of(decoded)
        if decoded.unattachable is not None:
            log_probs = np.where(decoded.unattachable != 0, np.nan, log_probs)
        return log_probs, self._edges_of(decoded)

    def _second_order(self, r: Any, s: Any, moment: bool) -> Floats:
        result = _moments.second_order(self._batch, self._solved, r, s, moment)
        self._check_feasible()
        return result  # type: ignore[no-any-return]

    def _compared(
        self, other: TreeDistribution[Any, Any, Any], divergence: bool, with_grad: bool | Literal["both"]
    ) -> Any:
        with_grad = check_with_grad(with_grad)
        self._check_comparable(other)
        of_other = other._solved.marginals() if with_grad == "both" else None  # first: one solve serves for both
        values, gradient = self._solved.compare(other._solved, divergence, bool(with_grad))
        other._check_feasible()
        result = self._quantity((values, gradient))
        if of_other is None:
            return result
        is_known = _inference.spread_over_edges(self._batch, np.isfinite(values))  # elsewhere nothing moves
        by_other = np.where(is_known, of_other - self._solved.marginals(), 0.0)
        return (*result, other._batch.edges(other._by_given_scores(by_other)))

    def _quantity(self, quantity: Quantity) -> Any:
        self._check_feasible()
        return self._in_form(quantity)

    def _in_form(self, quantity: Quantity, axes: tuple[int, ...] = ()) -> Any:
        """Values, and gradients if there are some, in the form of the scores behind the axes of several trees."""
        values, gradient = quantity
        shaped = self._batch.scalars_behind(values, axes)
        if gradient is None:
            return shaped
        return shaped, self._batch.edges(self._by_given_scores(gradient), axes)

    def _by_given_scores(self, gradient: Flat) -> Flat:
        """The gradient with respect to the scores before the temperature divided them."""
        if self._temperature == 1.0:
            return gradient
        with np.errstate(over="ignore", under="ignore"):
            return gradient / self._temperature


def _read_target(target: Any, shape: tuple[int, ...]) -> Flat:
    array = read_values(target, "target")
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(f"target has shape {array.shape}; it must be {shape}") from None


def _first(rows: Any) -> Any:
    """The first of k trees, for each sentence."""
    return [part[0] for part in rows] if isinstance(rows, list) else rows[0]


def _stacked(columns: list[Flat], rows: int) -> Flat:
    return np.stack(columns, -1) if columns else np.zeros((rows, 0))


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same memory, as an array that cannot be made writeable again."""
    return np.asarray(array.data.toreadonly())
