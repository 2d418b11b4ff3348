"""`TreeDistribution` with JAX arrays: a pytree whose methods are compiled, mapped and differentiated."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jax.experimental import checkify

import jax
import spantree
from jax import Array

from .._front.base import Door, Names, in_double, in_full
from .._front.form import UNKNOWN, divided, edge_axes, root_label_edges
from .._names import names_of_labels
from .._options import Layout, OnInfeasible, RootMode, check_choice, check_flag, positive_integer, read_sizes
from .._trees import Trees
from . import _host
from . import _primitives as ask
from ._door import divisor, is_traced, read, read_list
from ._form import sum_over_edges
from ._steps import ArraySteps, widest
from .samples import Sample

if TYPE_CHECKING:
    from typing_extensions import Self


@jax.tree_util.register_pytree_node_class
class TreeDistribution(ArraySteps):
    """The distribution over dependency trees in which a tree's log-weight is the sum of its edges' scores.

    Parameters
    ----------
    scores : array (..., n+1, n+1), or a list of matrices of different sizes
        ``scores[..., h, d]`` is the log-weight of the edge from head ``h`` to dependent ``d``; node 0 is ROOT. ``-inf``
        forbids an edge; column 0 and the diagonal are ignored. Results have the dtype of the scores; half precision is
        computed with as float32. A list of matrices in gives lists of trees and of marginals out.
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
        Outside of any transformation, what to do about a sentence without a tree: raise `spantree.InfeasibleError`, or
        go on. Traced values cannot raise, and always go on (see Notes).
    temperature : float
        Scores are divided by it: above 1 the distribution is flatter, below 1 sharper.
    root_label : int or str, optional
        With labels: that label stands on root edges and nowhere else.
    words, labels : names, optional
        Of the words of each sentence, and of the labels: for `explain` and `numpy`.

    Notes
    -----
    A sentence without a tree has heads -1, log Z and scores of -inf, marginals and all gradients 0, and NaN for
    entropies and expectations; so has one with a NaN or +inf among its scores, but for its log Z, which is NaN. `check`
    tells which.

    Every quantity is differentiable by the scores in both modes, as often as you like, by closed forms. Those of log Z
    up to the third (of most others to the second) need one solve; each further one needs as many as there are edges.

    On the CPU, computation is in double precision, with and without ``jax_enable_x64``, and rounded once. On other
    devices sums over trees are array operations, in the widest type that JAX has there; best trees and random trees,
    and everything projective, go through the host.

    As a pytree, scores and lengths are its leaves.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from spantree.jax import TreeDistribution
    >>> dist = TreeDistribution(jnp.array([[0, 1, 2], [0, 0, 3], [0, 1.5, 0]]))
    >>> dist.argmax()
    Array([-1,  0,  1], dtype=int32)
    >>> round(float(jax.jit(lambda dist: jnp.exp(dist.log_prob(dist.argmax())))(dist)), 4)
    0.6225
    """

    _on_infeasible: OnInfeasible
    _checked: bool

    def __init__(
        self,
        scores: Any,
        *,
        lengths: Any = None,
        mask: Any = None,
        root: RootMode = "single",
        projective: bool = False,
        labelled: bool = False,
        layout: Layout = "head_dep",
        on_infeasible: OnInfeasible = "raise",
        temperature: Any = 1.0,
        root_label: int | str | None = None,
        words: Sequence[Any] | None = None,
        labels: Sequence[str] | None = None,
    ) -> None:
        check_choice("on_infeasible", on_infeasible, "raise", "mask")
        sizes = None
        if isinstance(scores, (list, tuple)) and all(hasattr(matrix, "shape") for matrix in scores):
            scores, lengths, mask, sizes = read_list(scores, lengths, mask)
        door = read(
            scores,
            lengths,
            mask,
            root=root,
            projective=projective,
            labelled=labelled,
            layout=layout,
        )
        dtype = door.scores.dtype
        by = divisor(temperature)
        if isinstance(by, Array) or by != 1.0:
            door = door._replace(scores=divided(jnp, door.scores.astype(widest()), by))
        if root_label is not None:
            if not labelled:
                raise ValueError("root_label needs labelled scores; say labelled=True")
            edges = root_label_edges(root_label, labels, door.scores.shape)
            door = door._replace(scores=jnp.where(edges, door.scores, -jnp.inf))
        if labels is not None:
            labels = names_of_labels(labels, labelled, door.scores.shape[-1])
        self._set(door, layout, on_infeasible, Names(_frozen(words), labels, sizes), dtype)

    def _set(self, door: Door, layout: Layout, on_infeasible: OnInfeasible, names: Names, dtype: Any) -> None:
        self._scores, self._lengths, self._form = door
        self._dtype = dtype
        self._layout, self._on_infeasible, self._names, self._checked = layout, on_infeasible, names, False

    def _with(self, scores: Array, lengths: Array, names: Names | None = None, dtype: Any = None) -> Self:
        other = type(self).__new__(type(self))
        names = self._names if names is None else names
        dtype = self._dtype if dtype is None else dtype
        other._set(Door(scores, lengths, self._form), self._layout, self._on_infeasible, names, dtype)
        return other

    def tree_flatten(self) -> tuple[tuple[Array, Array], tuple[int, Layout, OnInfeasible, Names, Any]]:
        """Leaves and what is static, as pytrees have them.

        Returns
        -------
        leaves, static : tuples
            Scores ``[..., head, dep]`` and lengths; settings.
        """
        static = self._form, self._layout, self._on_infeasible, self._names, self._dtype
        return (self._scores, self._lengths), static

    @classmethod
    def tree_unflatten(cls, static: Any, leaves: Any) -> Self:
        """The distribution again; leaves may be anything.

        Parameters
        ----------
        static, leaves : tuples
            From `tree_flatten`.

        Returns
        -------
        TreeDistribution
            Nothing is checked.
        """
        self = cls.__new__(cls)
        form, *settings = static
        self._set(Door(leaves[0], leaves[1], form), *settings)
        return self

    # What it is

    @property
    def lengths(self) -> Array:
        """Words of each sentence, in the shape of the batch."""
        return self._lengths  # type: ignore[no-any-return]

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Axes of the batch."""
        return self._scores.shape[: self._scores.ndim - edge_axes(self._form)]  # type: ignore[no-any-return]

    @property
    def event_shape(self) -> tuple[int, ...]:
        """Of one tree's heads: (n+1,)."""
        return (self._nodes,)

    def __getitem__(self, index: Any) -> Self:
        """The part of the batch that the index picks of an array of shape `batch_shape`."""
        given = index if isinstance(index, tuple) else (index,)
        for number, size in zip(given, self.batch_shape, strict=False):
            if type(number) is not int:
                break
            if not -size <= number < size:  # which JAX would take for the last one, and a loop would never end
                raise IndexError(f"index {number} is out of bounds for an axis of {size} sentences")
        lengths = self._lengths[given]  # raises if it asks for more axes than there are
        edges = (slice(None),) * edge_axes(self._form) if any(part is Ellipsis for part in given) else (...,)
        scores, names = self._scores[(*given, *edges)], self._names.at(index)
        if self._sizes is not None and isinstance(index, int):
            size = self._sizes[index]
            scores = scores[:size, :size]
        return self._with(scores, lengths, names)

    def numpy(self) -> spantree.TreeDistribution[Any, Any, Any]:
        """The same distribution with NumPy arrays: for what has no place in a compiled program.

        Returns
        -------
        spantree.TreeDistribution
            A copy.

        Examples
        --------
        >>> import jax.numpy as jnp, spantree.jax
        >>> spantree.jax.TreeDistribution(jnp.array([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]])).numpy().explain()
        'best tree 95%, entropy 0.19 nats; least certain is the head of word 1: word 2 95% or ROOT 5%'
        """
        return self._as_numpy(self._edges_out(self._scores), np.asarray(self._lengths), self._on_infeasible)

    @in_full
    def check(self) -> None:
        """Raises if a sentence has no tree, or a NaN or +inf among its scores, and says which.

        Inside of `jax.experimental.checkify.checkify` it becomes a check of the compiled program.

        Examples
        --------
        >>> import jax, jax.numpy as jnp, spantree.jax
        >>> from jax.experimental import checkify
        >>> def log_z(scores):
        ...     dist = spantree.jax.TreeDistribution(scores)
        ...     dist.check()
        ...     return dist.log_partition()
        >>> error, _ = jax.jit(checkify.checkify(log_z))(jnp.zeros((2, 3, 3)).at[1, :, 2].set(-jnp.inf))
        >>> error.get().split(" (")[0]
        'sentence 1 has no tree: word 2 cannot be attached'
        """
        status = ask.argmax(self._scores, self._lengths, self._form)[3].reshape(-1)
        if is_traced(status):
            first = jnp.argmax(status != 0) if status.size else jnp.zeros((), jnp.int32)
            of_first = status[first] if status.size else jnp.zeros((), jnp.int32)
            bad, none = (
                "sentence {i} has a NaN or +inf among its scores",
                "sentence {i} has no tree: word {w} cannot be attached",
            )
            checkify.check(of_first >= 0, bad, i=first)
            checkify.check(of_first <= 0, none, i=first, w=of_first)
            return
        self._raise(status, "raise")

    def _raise(self, status: Array, on_infeasible: OnInfeasible) -> None:
        """The error, in the words of the NumPy side, if the status of a sentence is one."""
        found = np.asarray(status)
        if np.any(found if on_infeasible == "raise" else found < 0):
            self._as_numpy(self.scores, np.asarray(self._lengths), on_infeasible).argmax()

    # Trees

    @in_full
    def argmax(self, **constraints: Any) -> Any:
        """The best tree of each sentence.

        Parameters
        ----------
        **constraints
            `at_most_one`, `exactly`, `at_most`, `limit`: as in `spantree.TreeDistribution.argmax`, which is asked then,
            outside of any transformation.

        Returns
        -------
        int32 array (..., n+1), or Trees
            Heads; with labelled scores `spantree.Trees` with heads and labels.

        Examples
        --------
        >>> import jax.numpy as jnp, spantree.jax
        >>> scores = jnp.array([[0, 7, 8, 7], [0, 0, 4, 1], [0, 5, 0, 6], [0, 3, 2, 0.0]])
        >>> spantree.jax.TreeDistribution(scores).argmax()
        Array([-1,  2,  0,  2], dtype=int32)
        >>> spantree.jax.TreeDistribution(scores, root="multi").argmax()
        Array([-1,  0,  0,  0], dtype=int32)
        """
        return self._best(constraints) if constraints else self._trees(*ask.argmax(*self._question)[:2])

    @in_full
    def max(self) -> Array:
        """The score of the best tree of each sentence; -inf where there is none.

        Returns
        -------
        array (...)
            Its gradient is 1 at the edges of the best tree.

        Examples
        --------
        >>> import jax.numpy as jnp, spantree.jax
        >>> spantree.jax.TreeDistribution(jnp.array([[0, 2.0], [0, 0]])).max()
        Array(2., dtype=float32)
        """
        return ask.argmax(*self._question)[2]

    @in_full
    def topk(self, k: int, **constraints: Any) -> Trees[Array, Array]:
        """The k best trees, best first, exact.

        Parameters
        ----------
        k : int
            How many.
        **constraints
            As for `argmax`.

        Returns
        -------
        Trees
            ``heads (k, ..., n+1)``, ``scores (k, ...)``, differentiable, and ``labels (k, ..., n+1)`` if the scores are
            labelled. Where a sentence has fewer than k trees, heads are -1 and scores -inf.

        Examples
        --------
        >>> import jax.numpy as jnp, spantree.jax
        >>> spantree.jax.TreeDistribution(jnp.array([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]])).topk(3).scores
        Array([  7.,   4., -inf], dtype=float32)
        """
        if constraints:
            return self._scored(self.numpy().topk(k, **constraints))
        scores, lengths, form = self._question
        heads, labels, best = ask.topk(scores, lengths, positive_integer("k", k), form)
        named = self._nodes_out(labels) if self.labelled else None
        return Trees(self._nodes_out(heads), self._several_out(best), named)

    @in_full
    def mbr(self) -> Any:
        """The tree with the highest expected attachment score: the best tree when edges score their marginals.

        Returns
        -------
        int32 array (..., n+1), or Trees
            Heads; with labelled scores `spantree.Trees` with heads and labels.

        Examples
        --------
        >>> import jax.numpy as jnp, spantree.jax
        >>> spantree.jax.TreeDistribution(jnp.array([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]])).mbr()
        Array([-1,  2,  0], dtype=int32)
        """
        scores, lengths, form = self._question
        scores = jax.lax.stop_gradient(scores)
        reward = jnp.where(scores > -jnp.inf, ask.marginals(scores, lengths, form), -jnp.inf)
        return self._trees(*ask.argmax(reward, lengths, form)[:2])

    @in_full
    def score(self, heads: Any, labels: Any = None) -> Array:
        """The sum of a tree's edge scores: its unnormalised log-probability.

        Parameters
        ----------
        heads : integers (..., n+1), or Trees
            Broadcast against the batch; axes before it are several trees a sentence. What stands at ROOT and in the
            padding does not matter.
        labels : integers like `heads`, optional
            Needed if the scores are labelled (or give `Trees`).

        Returns
        -------
        array (...)
            -inf, with gradient 0, where heads is no tree of this distribution.

        Examples
        --------
        >>> import jax.numpy as jnp, spantree.jax
        >>> dist = spantree.jax.TreeDistribution(jnp.array([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]]))
        >>> dist.score(jnp.array([[-1, 0, 1], [-1, 2, 0], [-1, 0, 0]]))
        Array([  4.,   7., -inf], dtype=float32)
        """
        dist, heads, labels = self._read_trees(heads, labels)
        labels = heads[..., :0] if labels is None else labels
        scores, lengths, form = dist._question
        is_tree = ask.log_prob(jax.lax.stop_gradient(scores), lengths, heads, labels, form) > -jnp.inf
        return jnp.where(is_tree, sum_over_edges(scores, heads, labels, lengths, form), -jnp.inf)

    @in_full
    def log_prob(self, value: Any, labels: Any = None, *, partial: bool = False) -> Array:
        """The log-probability of a tree, `score` minus log Z: minus the loss of a conditional random field.

        Parameters
        ----------
        value, labels : as for `score`
            Heads of trees, and labels of their edges.
        partial : bool
            Whether heads (and labels) may be -2, unknown: then it is the log of the sum over all completions. Without
            labels, all of them are unknown.

        Returns
        -------
        array (...)
            -inf, with gradient 0, where heads is no tree of this distribution.

        Examples
        --------
        >>> import jax.numpy as jnp, spantree.jax
        >>> dist = spantree.jax.TreeDistribution(jnp.zeros((3, 3)))
        >>> jnp.exp(dist.log_prob(jnp.array([[-1, 0, 1], [-1, 2, 0], [-1, 0, 0]])))
        Array([0.5, 0.5, 0. ], dtype=float32)
        >>> jnp.exp(dist.log_prob(jnp.array([-1, -2, 0]), partial=True))
        Array(0.5, dtype=float32)
        """
        partial = check_flag("partial", partial)
        dist, heads, labels = self._read_trees(value, labels, partial)
        if labels is None:
            labels = jnp.full_like(heads, UNKNOWN) if partial and self.labelled else heads[..., :0]
        if not partial:
            scores, lengths, form = dist._question
            return ask.log_prob(scores, lengths, heads, labels, form)
        scores, lengths, form = dist._expanded(heads.shape[:-1])._question
        return -ask.crf_loss(scores, lengths, heads, labels, form, True)

    # Inference

    @in_full
    def log_partition(self) -> Array:
        """The log-partition log Z: the logarithm of the sum of all trees' weights.

        Returns
        -------
        array (...)
            -inf where there is no tree. Its gradient are the marginals.

        Examples
        --------
        >>> import jax.numpy as jnp, spantree.jax
        >>> spantree.jax.TreeDistribution(jnp.zeros((4, 4))).log_partition()  # Cayley: log n^(n-1)
        Array(2.1972246, dtype=float32)
        """
        return ask.log_partition(*self._question)

    @in_full
    def marginals(self) -> Array:
        """The probability of every edge, in the shape of the scores; 0 in column 0, on the diagonal and in the padding.

        Returns
        -------
        array like the scores
            With labels, the probability of the edge with that label.

        Examples
        --------
        >>> import jax.numpy as jnp, spantree.jax
        >>> spantree.jax.TreeDistribution(jnp.zeros((3, 3))).marginals()
        Array([[0. , 0.5, 0.5],
               [0. , 0. , 0.5],
               [0. , 0.5, 0. ]], dtype=float32)
        """
        return self._edges_out(ask.marginals(*self._question))  # type: ignore[no-any-return]

    @in_full
    def entropy(self) -> Array:
        """Shannon entropy in nats.

        Returns
        -------
        array (...)
            NaN, with gradient 0, where there is no tree.

        Examples
        --------
        >>> import jax.numpy as jnp, spantree.jax
        >>> spantree.jax.TreeDistribution(jnp.zeros((4, 4))).entropy()
        Array(2.1972246, dtype=float32)
        """
        return ask.entropy(*self._question)

    def cross_entropy(self, other: TreeDistribution) -> Array:
        """-E[log-probability under `other`], in nats; inf where this distribution has a tree that `other` has not.

        Parameters
        ----------
        other : TreeDistribution
            Over trees of the same sentences.

        Returns
        -------
        array (...)
            Differentiable by the scores of both.

        Examples
        --------
        >>> import jax.numpy as jnp, spantree.jax
        >>> p = spantree.jax.TreeDistribution(jnp.zeros((3, 3)))
        >>> jnp.exp(p.cross_entropy(p))
        Array(2., dtype=float32)
        """
        return ask.cross_entropy(*self._compared(other)).astype(jnp.promote_types(self._dtype, other._dtype))

    def kl(self, other: TreeDistribution) -> Array:
        """Kullback-Leibler divergence from `other`, in nats; inf where there is a tree that `other` has not.

        Parameters
        ----------
        other : TreeDistribution
            Over trees of the same sentences.

        Returns
        -------
        array (...)
            Differentiable by the scores of both.

        Examples
        --------
        >>> import jax.numpy as jnp, spantree.jax
        >>> p = spantree.jax.TreeDistribution(jnp.zeros((3, 3)))
        >>> round(float(p.kl(spantree.jax.TreeDistribution(jnp.array([[0, 0, 1], [0, 0, 0], [0, 0, 0.0]])))), 4)
        0.1201
        """
        return ask.kl(*self._compared(other)).astype(jnp.promote_types(self._dtype, other._dtype))

    @in_full
    def expectation(self, values: Any) -> Array:
        """E[sum of values over the tree's edges].

        Parameters
        ----------
        values : array like the scores, or with one more axis of R values per edge
            Values of edges that are in no tree do not matter, whatever they are.

        Returns
        -------
        array (...), or (..., R)
            Differentiable by the scores and by the values. NaN, with gradient 0, where there is no tree.

        Examples
        --------
        >>> import jax.numpy as jnp, spantree.jax
        >>> distance = abs(jnp.arange(4.0)[:, None] - jnp.arange(4.0))
        >>> round(float(spantree.jax.TreeDistribution(jnp.zeros((4, 4))).expectation(distance)), 4)
        4.6667
        """
        features, several = self._read_values(values, "values")
        found = self._expectation(features)
        return jnp.moveaxis(found, 0, -1) if several else found

    @in_double
    def product_expectation(self, values: Any) -> Array:
        """E[product of values over the tree's edges].

        Parameters
        ----------
        values : array like the scores
            Not negative (`spantree.TreeDistribution` takes negative ones too); inside of a transformation, where that
            cannot be told, the result is NaN if one is.

        Returns
        -------
        array (...)
            Differentiable by the scores and by the values.

        Examples
        --------
        >>> import jax.numpy as jnp, spantree.jax
        >>> dist = spantree.jax.TreeDistribution(jnp.zeros((3, 3)))
        >>> round(float(dist.product_expectation(jnp.array([[0, 2, 3], [0, 0, 5], [0, 7, 0.0]]))), 3)
        15.5
        """
        features, several = self._read_values(values, "values")
        if several:
            raise ValueError("values must have the shape of the scores")
        negative = self._real_edges() & (features < 0.0)
        if not is_traced(negative) and bool(jnp.any(negative)):
            raise ValueError("values must not be negative; spantree.TreeDistribution takes such too: dist.numpy()")
        return self._product_of_nonnegative(features)

    # Random trees

    @in_full
    def sample(self, key: Array, sample_shape: Any = ()) -> Any:
        """Random trees, exactly from the distribution, independent of each other.

        Parameters
        ----------
        key : a key of `jax.random`, old or new
            The same key gives the same trees, compiled or not, mapped or not, on any number of threads; other keys give
            independent ones.
        sample_shape : sizes, or an int
            How many trees for each sentence: the axes before those of the batch.

        Returns
        -------
        int32 array ``(*sample_shape, ..., n+1)``, or Trees
            Heads; with labelled scores `spantree.Trees` with heads and labels.

        Examples
        --------
        >>> import jax, jax.numpy as jnp, spantree.jax
        >>> dist = spantree.jax.TreeDistribution(jnp.array([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]]))
        >>> dist.sample(jax.random.key(0), (2, 3)).shape
        (2, 3, 3)
        """
        shape = read_sizes("sample_shape", sample_shape)
        scores, lengths, form = self._question
        heads, labels = ask.sample(scores, lengths, self._keys(key), math.prod(shape), form)
        return self._trees(*(x.reshape(*shape, *x.shape[1:]) for x in (heads, labels)))

    @in_full
    def sample_without_replacement(self, key: Array, k: int) -> Sample:
        """Random trees of which no two are the same: each drawn in proportion to its probability among those left.

        Parameters
        ----------
        key : a key of `jax.random`, old or new
            As for `sample`.
        k : int
            How many trees for each sentence. Where there are fewer, all of them.

        Returns
        -------
        Sample
            ``heads``, ``labels``, ``log_probs`` (differentiable), Gumbel ``keys``, ``threshold``, and an estimator.

        Examples
        --------
        >>> import jax, jax.numpy as jnp, spantree.jax
        >>> sample = spantree.jax.TreeDistribution(jnp.zeros((4, 4))).sample_without_replacement(jax.random.key(0), 9)
        >>> len({tuple(heads) for heads in sample.heads.tolist()})  # three words have nine trees
        9
        """
        scores, lengths, form = self._question
        drawn = ask.sample_without_replacement(scores, lengths, self._keys(key), positive_integer("k", k), form)
        heads, labels, log_probs, keys, *of_sentences = drawn
        named = self._nodes_out(labels) if self.labelled else None
        return Sample(
            self._nodes_out(heads), named, self._several_out(log_probs), self._several_out(keys), *of_sentences
        )

    def iter_without_replacement(self, key: Array) -> Iterator[Trees[Array, Array]]:
        """One sentence's trees in random order, each when it is asked for, none twice, until none is left.

        Parameters
        ----------
        key : a key of `jax.random`, old or new
            The trees are those of `sample_without_replacement` with the same key, in the same order.

        Yields
        ------
        Trees
            ``heads (n+1,)``, ``scores``: the tree's log-probability, ``labels (n+1,)`` if the scores are labelled.

        Notes
        -----
        Outside of any transformation, as with `iter_best`.

        Examples
        --------
        >>> import jax, jax.numpy as jnp, spantree.jax
        >>> dist = spantree.jax.TreeDistribution(jnp.zeros((4, 4)))
        >>> trees = dist.iter_without_replacement(jax.random.key(0))
        >>> round(sum(float(jnp.exp(tree.scores)) for tree in trees), 4)  # all of its trees
        1.0
        """
        return self._one_by_one(_host.of_128_bits(np.atleast_2d(self._keys(key))))

    # Shared steps

    @property
    def _question(self) -> Door:
        """What is asked about; outside of transformations it has been checked."""
        door = Door(self._scores, self._lengths, self._form)
        if not self._checked and not is_traced(self._scores, self._lengths):
            status = ask.argmax(*door)[3].reshape(-1)
            if not is_traced(status):  # inside of `jit` all answers are, also those about constants
                self._raise(status, self._on_infeasible)
                self._checked = True
        return door

    def _keys(self, key: Array) -> Array:
        """One for each sentence, as uint32."""
        return jax.random.key_data(jax.random.split(key, self.batch_shape) if self.batch_shape else key)

    def _compared(self, other: TreeDistribution) -> tuple[Array, Array, Array, int]:
        if not isinstance(other, TreeDistribution):
            raise TypeError(f"other must be a spantree.jax.TreeDistribution, not {type(other).__name__}")
        if self._form != other._form:
            raise ValueError("the two distributions must agree in root, projective and labelled")
        batch = jnp.broadcast_shapes(self.batch_shape, other.batch_shape)
        p, q = self._full()._expanded(batch), other._full()._expanded(batch)
        if p._scores.shape != q._scores.shape:
            raise ValueError("the two distributions must have the same sentences and labels")
        if not is_traced(p._lengths, q._lengths) and np.any(np.asarray(p._lengths) != np.asarray(q._lengths)):
            raise ValueError("the two distributions must have sentences of the same lengths")
        dtype = jnp.promote_types(p._scores.dtype, q._scores.dtype)
        of_p, of_q = (x._question.scores.astype(dtype) for x in (p, q))
        return of_p, p._lengths, of_q, self._form


def _frozen(names: Any) -> Any:
    """Lists as tuples, which can be compared and hashed as what is static must be."""
    return tuple(_frozen(part) for part in names) if isinstance(names, (list, tuple)) else names


def _flatten_trees(trees: Trees[Any, Any]) -> tuple[tuple[Any, ...], None]:
    return (trees.heads, trees.scores, trees.labels), None


jax.tree_util.register_pytree_node(Trees, _flatten_trees, lambda _, parts: Trees(*parts))
