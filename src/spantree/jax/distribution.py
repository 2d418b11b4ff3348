"""`TreeDistribution` with JAX arrays: a pytree whose methods are compiled, mapped and differentiated."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jax.experimental import checkify

import jax
import spantree
from jax import Array

from .._options import Layout, OnInfeasible, RootMode, check_choice, positive_integer
from .._trees import Trees
from . import _primitives as ask
from ._door import Door, is_traced, read, turned
from ._form import (
    LABELLED,
    PROJECTIVE,
    SINGLE_ROOT,
    UNKNOWN,
    agreeing_edges,
    edge_axes,
    over_edges,
    real_edges,
    sum_over_edges,
)
from .samples import Sample

if TYPE_CHECKING:
    from typing_extensions import Self


@jax.tree_util.register_pytree_node_class
class TreeDistribution:
    """The distribution over dependency trees in which a tree's log-weight is the sum of its edges' scores.

    Parameters
    ----------
    scores : array (..., n+1, n+1)
        ``scores[..., h, d]`` is the log-weight of the edge from head ``h`` to dependent ``d``; node 0 is ROOT. ``-inf``
        forbids an edge; column 0 and the diagonal are ignored. Results are float32 or float64 as the scores are
        (half precision: float32).
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

    Notes
    -----
    A sentence without a tree has heads -1, log Z and scores of -inf, marginals and all gradients 0, and NaN for
    entropies and expectations; so has one with a NaN or +inf among its scores, but for its log Z, which is NaN. `check`
    tells which.

    Every quantity is differentiable by the scores as often as closed forms reach, in both modes: log Z three times, all
    others twice. On the CPU, computation is in double precision, with and without ``jax_enable_x64``, and rounded once.
    On other devices sums over trees are array operations, in the widest type that JAX has there; best trees and random
    trees, and everything projective, go through the host.

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

    _scores: Array
    _lengths: Array
    _form: int
    _layout: Layout
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
    ) -> None:
        check_choice("on_infeasible", on_infeasible, "raise", "mask")
        door = read(
            scores,
            lengths,
            mask,
            root=root,
            projective=projective,
            labelled=labelled,
            layout=layout,
            temperature=temperature,
        )
        self._set(door, layout, on_infeasible)

    def _set(self, door: Door, layout: Layout, on_infeasible: OnInfeasible) -> None:
        self._scores, self._lengths, self._form = door
        self._layout, self._on_infeasible, self._checked = layout, on_infeasible, False

    def _with(self, scores: Array, lengths: Array) -> Self:
        other = type(self).__new__(type(self))
        other._set(Door(scores, lengths, self._form), self._layout, self._on_infeasible)
        return other

    def tree_flatten(self) -> tuple[tuple[Array, Array], tuple[int, Layout, OnInfeasible]]:
        """Leaves and what is static, as pytrees have them.

        Returns
        -------
        leaves, static : tuples
            Scores ``[..., head, dep]`` and lengths; settings.
        """
        return (self._scores, self._lengths), (self._form, self._layout, self._on_infeasible)

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
        form, layout, on_infeasible = static
        self._set(Door(leaves[0], leaves[1], form), layout, on_infeasible)
        return self

    # What it is

    @property
    def scores(self) -> Array:
        """The scores that count: after mask and temperature, in the caller's layout."""
        return self._turned(self._scores)

    @property
    def lengths(self) -> Array:
        """Words of each sentence, in the shape of the batch."""
        return self._lengths

    @property
    def root(self) -> RootMode:
        """Whether one edge leaves ROOT ("single") or any number ("multi")."""
        return "single" if self._form & SINGLE_ROOT else "multi"

    @property
    def projective(self) -> bool:
        """Whether only trees without crossing arcs count."""
        return bool(self._form & PROJECTIVE)

    @property
    def labelled(self) -> bool:
        """Whether edges have labels."""
        return bool(self._form & LABELLED)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Axes of the batch."""
        return self._scores.shape[: self._scores.ndim - edge_axes(self._form)]

    @property
    def event_shape(self) -> tuple[int, ...]:
        """Of one tree's heads: (n+1,)."""
        return (self._nodes,)

    @property
    def mode(self) -> Any:
        """The best tree of each sentence: `argmax`."""
        return self.argmax()

    @property
    def _nodes(self) -> int:
        return self._scores.shape[-edge_axes(self._form)]

    def __getitem__(self, index: Any) -> Self:
        """The part of the batch that the index picks of an array of shape `batch_shape`."""
        given = index if isinstance(index, tuple) else (index,)
        lengths = self._lengths[given]  # raises if it asks for more axes than there are
        edges = (slice(None),) * edge_axes(self._form) if any(part is Ellipsis for part in given) else (...,)
        return self._with(self._scores[(*given, *edges)], lengths)

    def __len__(self) -> int:
        if not self.batch_shape:
            raise TypeError("a distribution over one sentence's trees has no length")
        return self.batch_shape[0]

    def __repr__(self) -> str:
        if not hasattr(self._scores, "ndim"):
            return f"TreeDistribution({self._scores!r}, {self._lengths!r})"
        kind = ", projective" if self.projective else ""
        labels = f", {self._scores.shape[-1]} labels" if self.labelled else ""
        return (
            f"TreeDistribution(batch_shape: {self.batch_shape}, {self._nodes - 1} words, {self.root} root{kind}"
            f"{labels}, {self._scores.dtype})"
        )

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
        return spantree.TreeDistribution(
            np.asarray(self.scores),
            lengths=np.asarray(self._lengths),
            root=self.root,
            projective=self.projective,
            labelled=self.labelled,
            layout=self._layout,
            on_infeasible=self._on_infeasible,
        )

    def with_scores(self, scores: Any) -> Self:
        """The distribution over the same sentences' trees with other scores.

        Parameters
        ----------
        scores : array like `scores`
            In the same layout. Mask and temperature do not apply again.

        Returns
        -------
        TreeDistribution
            With the same lengths and settings.

        Examples
        --------
        >>> import jax.numpy as jnp, spantree.jax
        >>> dist = spantree.jax.TreeDistribution(jnp.zeros((3, 3)), root="multi")
        >>> dist.with_scores(dist.scores + jnp.eye(3)).root
        'multi'
        """
        scores = self._turned(jnp.asarray(scores))
        if scores.shape != self._scores.shape:
            raise ValueError(f"scores have shape {scores.shape}; they must be {self._scores.shape}")
        return self._with(scores, self._lengths)

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
        found = np.asarray(status)
        wrong = np.flatnonzero(found if on_infeasible == "raise" else found < 0)
        if wrong.size:
            i = int(wrong[0])
            if found[i] < 0:
                raise ValueError(f"sentence {i} has a NaN or +inf among its scores")
            raise spantree.InfeasibleError(
                f"sentence {i} has no tree: word {found[i]} cannot be attached", sentence=i, word=int(found[i])
            )

    # Trees

    def argmax(self) -> Any:
        """The best tree of each sentence.

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
        return self._trees(*ask.argmax(*self._question)[:2])

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

    def topk(self, k: int) -> Trees[Array, Array]:
        """The k best trees, best first, exact.

        Parameters
        ----------
        k : int
            How many.

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
        scores, lengths, form = self._question
        heads, labels, best = ask.topk(scores, lengths, positive_integer("k", k), form)
        return Trees(heads, best, labels if self.labelled else None)  # type: ignore[type-var,arg-type]

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
        scores, lengths, form = dist._question
        is_tree = ask.log_prob(jax.lax.stop_gradient(scores), lengths, heads, labels, form) > -jnp.inf
        return jnp.where(is_tree, sum_over_edges(scores, heads, labels, lengths, form), -jnp.inf)

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
        dist, heads, labels = self._read_trees(value, labels, partial)
        if not partial:
            scores, lengths, form = dist._question
            return ask.log_prob(scores, lengths, heads, labels, form)
        scores, lengths, form = dist._expanded(heads.shape[:-1])._question
        return -ask.crf_loss(scores, lengths, heads, labels, form, True)

    def edges_of(self, heads: Any, labels: Any = None) -> Array:
        """The edges of trees, as True among the scores.

        Parameters
        ----------
        heads, labels : as for `score`
            Heads of trees, and labels of their edges.

        Returns
        -------
        boolean array (..., n+1, n+1), or (..., n+1, n+1, labels)
            In the layout of the scores. False at ROOT and in the padding.

        Examples
        --------
        >>> import jax.numpy as jnp, spantree.jax
        >>> spantree.jax.TreeDistribution(jnp.zeros((3, 3))).edges_of(jnp.array([-1, 2, 0])).astype(int)
        Array([[0, 0, 1],
               [0, 0, 0],
               [0, 1, 0]], dtype=int32)
        """
        dist, heads, labels = self._read_trees(heads, labels)
        agrees = agreeing_edges(jnp.where(heads == UNKNOWN, -1, heads), labels, dist._scores, self._form)
        return self._turned(agrees & real_edges(self._nodes, dist._lengths, self._form))

    def condition(
        self, include: Iterable[Any] = (), exclude: Iterable[Any] = (), *, heads: Any = None, labels: Any = None
    ) -> Self:
        """The distribution given that some edges are, or are not, in the tree.

        Parameters
        ----------
        include, exclude : edges
            Pairs ``(head, dep)``, or ``(head, dep, label)`` with labelled scores, which hold for every sentence.
        heads : integers (..., n+1), optional
            A partial tree for each sentence: known heads, and -2 where the head is unknown.
        labels : integers like `heads`, optional
            Known labels, and -2 where the label is unknown.

        Returns
        -------
        TreeDistribution
            Over the trees that are left; gradients flow to these scores.

        Examples
        --------
        >>> import jax.numpy as jnp, spantree.jax
        >>> dist = spantree.jax.TreeDistribution(jnp.array([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]]))
        >>> dist.condition(include=[(1, 2)]).argmax()
        Array([-1,  0,  1], dtype=int32)
        """
        allowed = np.ones(self._scores.shape[-edge_axes(self._form) :], dtype=bool)
        for head, dep, *label in include:
            here = (head, dep, *label)
            kept = allowed[here].copy()
            allowed[:, dep] = False
            allowed[here] = kept
        for edge in exclude:
            allowed[tuple(edge)] = False
        given = jnp.asarray(allowed)
        if heads is not None:
            if labels is None and isinstance(heads, Trees):
                heads, labels = heads.heads, heads.labels
            heads = jnp.asarray(heads)
            labels = heads[..., :0] if labels is None else jnp.asarray(labels)
            given = given & agreeing_edges(heads, labels, self._scores, self._form)
        return self._with(jnp.where(given, self._scores, -jnp.inf), self._lengths)

    def complete(self, heads: Any, labels: Any = None) -> tuple[Any, Array]:
        """The best tree that agrees with a partial one, and its probability.

        Parameters
        ----------
        heads : integers (..., n+1)
            A partial tree for each sentence: known heads, and -2 where the head is unknown.
        labels : integers like `heads`, optional
            Known labels, and -2 where the label is unknown.

        Returns
        -------
        tree : int32 array (..., n+1), or Trees
            As from `argmax`.
        probability : array (...)
            Of that tree.

        Examples
        --------
        >>> import jax.numpy as jnp, spantree.jax
        >>> dist = spantree.jax.TreeDistribution(jnp.zeros((4, 4)))
        >>> dist.complete(jnp.array([-1, -2, 0, 2]))[0]
        Array([-1,  2,  0,  2], dtype=int32)
        """
        best = self.condition(heads=heads, labels=labels).argmax()
        return best, jnp.exp(self.log_prob(best))

    # Inference

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
        return self._turned(ask.marginals(*self._question))

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
        return ask.cross_entropy(*self._compared(other))

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
        return ask.kl(*self._compared(other))

    def renyi_entropy(self, alpha: float) -> Array:
        """Renyi entropy in nats.

        Parameters
        ----------
        alpha : float
            The order, at least 0. At 0 it is the log of the number of trees, at 1 Shannon's entropy, at infinity the
            min-entropy.

        Returns
        -------
        array (...)
            NaN where there is no tree.

        Examples
        --------
        >>> import jax.numpy as jnp, spantree.jax
        >>> round(float(spantree.jax.TreeDistribution(jnp.zeros((4, 4))).renyi_entropy(2.0)), 4)
        2.1972
        """
        if not alpha >= 0.0:
            raise ValueError(f"alpha must be at least 0, not {alpha!r}")
        if alpha == 1.0:
            return self.entropy()
        if alpha == math.inf:
            return self._where_trees(-self.log_prob(self.argmax()))
        relative = self._relative()
        if abs(alpha - 1.0) < 1e-5:
            # The difference of two logarithms has no digits left; the series has.
            values = jnp.where(relative._scores > -jnp.inf, relative._scores, 0.0)
            return self.entropy() - 0.5 * (alpha - 1.0) * relative.covariance(values, values)
        difference = relative._power(alpha).log_partition() - alpha * relative.log_partition()
        return self._where_trees(difference / (1.0 - alpha))

    def norm(self, p: float) -> Array:
        """The p-norm of the vector of all trees' probabilities.

        Parameters
        ----------
        p : float
            Positive; inf gives the highest probability.

        Returns
        -------
        array (...)
            NaN where there is no tree.

        Examples
        --------
        >>> import jax.numpy as jnp, spantree.jax
        >>> round(float(spantree.jax.TreeDistribution(jnp.zeros((3, 3))).norm(2)), 4)
        0.7071
        """
        if not p > 0.0:
            raise ValueError(f"p must be positive, not {p!r}")
        if p == math.inf:
            return self._where_trees(jnp.exp(self.log_prob(self.argmax())))
        relative = self._relative()
        return self._where_trees(jnp.exp(relative._power(p).log_partition() / p - relative.log_partition()))

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
        scores, lengths, form = self._question
        features, several = self._read_values(values, "values")
        found = ask.expectation(scores, lengths, features, form)
        return jnp.moveaxis(found, 0, -1) if several else found

    def product_expectation(self, values: Any) -> Array:
        """E[product of values over the tree's edges].

        Parameters
        ----------
        values : array like the scores
            Not negative (`spantree.TreeDistribution` takes negative ones too).

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
        relative = self._relative()
        scores, lengths, form = relative._scores + jnp.log(features), self._lengths, self._form
        return self._where_trees(jnp.exp(ask.log_partition(scores, lengths, form) - relative.log_partition()))

    def covariance(self, r: Any, s: Any) -> Array:
        """Covariance of two additive functions of the tree.

        Parameters
        ----------
        r, s : arrays like the scores, or with one more axis of R (S) values per edge
            Or "edges": the indicators of all edges, which are never materialised (one of the two only).

        Returns
        -------
        array (..., R, S)
            Without the axis of a side that has one value per edge; the axes of the scores in its place for "edges".
            Differentiable by the scores and by the values.

        Notes
        -----
        One product with the Hessian of log Z for each feature of the first side that is not "edges".

        Examples
        --------
        >>> import jax.numpy as jnp, spantree.jax
        >>> dist = spantree.jax.TreeDistribution(jnp.zeros((3, 3)))
        >>> dist.covariance(jnp.array([[0, 1, 0], [0, 0, 0], [0, 0, 0.0]]), "edges")
        Array([[ 0.  ,  0.25, -0.25],
               [ 0.  ,  0.  ,  0.25],
               [ 0.  , -0.25,  0.  ]], dtype=float32)
        """
        if isinstance(r, str) and isinstance(s, str):
            raise ValueError("the covariances of all pairs of edges are n^4 numbers; give r or s as values")
        first, other = (s, r) if isinstance(r, str) else (r, s)
        columns, several = self._read_values(first, "r or s")
        scores, lengths, form = self._question
        possible = ask.marginals(jax.lax.stop_gradient(scores), lengths, form) > 0.0
        slopes = ask.hessian(scores, lengths, jnp.where(possible, columns, 0.0), form)
        if isinstance(other, str):
            if not several:
                return self._turned(slopes)
            return jnp.moveaxis(self._turned(slopes), 0, -1 if isinstance(r, str) else len(self.batch_shape))
        rows, both = self._read_values(other, "r or s")
        rows = jnp.where(possible, rows, 0.0)
        axes = tuple(range(-edge_axes(form), 0))
        if several and both:
            return jnp.moveaxis(jnp.sum(slopes[:, None] * rows, axis=axes), (0, 1), (-2, -1))
        result = jnp.sum(slopes * rows, axis=axes)
        return jnp.moveaxis(result, 0, -1) if several or both else result

    def second_moment(self, r: Any, s: Any) -> Array:
        """E[r s^T] for two additive functions of the tree.

        Parameters
        ----------
        r, s : arrays like the scores, or with one more axis of R (S) values per edge
            Values per edge.

        Returns
        -------
        array (..., R, S)
            As for `covariance`.

        Examples
        --------
        >>> import jax.numpy as jnp, spantree.jax
        >>> ones = jnp.ones((4, 4))  # every tree of three words has three edges
        >>> round(float(spantree.jax.TreeDistribution(jnp.zeros((4, 4))).second_moment(ones, ones)), 4)
        9.0
        """
        of_r, of_s = self.expectation(r), self.expectation(s)
        r_has_axis, s_has_axis = (mean.ndim > len(self.batch_shape) for mean in (of_r, of_s))
        if s_has_axis:
            of_r = of_r[..., None]
        if r_has_axis:
            of_s = of_s[..., None, :] if s_has_axis else of_s[..., None]
        return self.covariance(r, s) + of_r * of_s

    def expected_attachment(self, gold: Any, labels: Any = None) -> Array:
        """Expected share of words with the gold head (labelled scores: and the gold label).

        Parameters
        ----------
        gold : integers (..., n+1), or Trees
            Gold heads; what is no node counts as wrong.
        labels : integers like `gold`, optional
            Gold labels, needed if the scores are labelled (or give `Trees`).

        Returns
        -------
        array (...)
            Differentiable.

        Examples
        --------
        >>> import jax.numpy as jnp, spantree.jax
        >>> spantree.jax.TreeDistribution(jnp.zeros((3, 3))).expected_attachment(jnp.array([-1, 0, 1]))
        Array(0.5, dtype=float32)
        """
        dist, heads, labels = self._read_trees(gold, labels)
        scores, lengths, form = dist._question
        there = agreeing_edges(heads, labels, scores, form)
        words = lengths.astype(scores.dtype)
        values = there / over_edges(jnp.maximum(words, 1.0), form)
        expected = ask.expectation(scores, lengths, values.astype(scores.dtype), form)
        return jnp.where(words > 0, expected, 1.0)

    def risk(self, gold: Any, labels: Any = None) -> Array:
        """One minus `expected_attachment`.

        Parameters
        ----------
        gold, labels : as for `expected_attachment`
            The gold tree.

        Returns
        -------
        array (...)
            Differentiable.

        Examples
        --------
        >>> import jax.numpy as jnp, spantree.jax
        >>> spantree.jax.TreeDistribution(jnp.zeros((3, 3))).risk(jnp.array([-1, 0, 1]))
        Array(0.5, dtype=float32)
        """
        return 1.0 - self.expected_attachment(gold, labels)

    def generalized_expectation(self, values: Any, target: Any) -> Array:
        """Generalized expectation criterion: half the squared distance of E[values] from `target`.

        Parameters
        ----------
        values : as for `expectation`
            Features of the edges.
        target : array (..., R), or (...) where `values` has one value per edge
            What their expectations should be.

        Returns
        -------
        array (...)
            Differentiable.

        Examples
        --------
        >>> import jax.numpy as jnp, spantree.jax
        >>> dist = spantree.jax.TreeDistribution(jnp.zeros((3, 3)))
        >>> dist.generalized_expectation(jnp.array([[0, 1, 0], [0, 0, 0], [0, 0, 0.0]]), 1.0)
        Array(0.125, dtype=float32)
        """
        distance = self.expectation(values) - target
        half = 0.5 * distance * distance
        return jnp.sum(half, axis=-1) if jnp.ndim(values) > self._scores.ndim else half

    # Random trees

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
        shape = (sample_shape,) if isinstance(sample_shape, int) else tuple(sample_shape)
        scores, lengths, form = self._question
        heads, labels = ask.sample(scores, lengths, self._keys(key), math.prod(shape), form)
        return self._trees(*(x.reshape(*shape, *x.shape[1:]) for x in (heads, labels)))

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
        heads, labels, *rest = drawn
        return Sample(heads, labels if self.labelled else None, *rest)

    # Shared steps

    @property
    def _question(self) -> Door:
        """What is asked about; outside of transformations it has been checked."""
        door = Door(self._scores, self._lengths, self._form)
        if not self._checked and not is_traced(self._scores, self._lengths):
            self._raise(ask.argmax(*door)[3].reshape(-1), self._on_infeasible)
            self._checked = True
        return door

    def _turned(self, edges: Array) -> Array:
        return turned(edges, self._layout, self.labelled)

    def _trees(self, heads: Array, labels: Array) -> Any:
        return Trees(heads, labels=labels) if self.labelled else heads

    def _keys(self, key: Array) -> Array:
        """One for each sentence, as uint32."""
        return jax.random.key_data(jax.random.split(key, self.batch_shape) if self.batch_shape else key)

    def _expanded(self, batch: tuple[int, ...]) -> Self:
        if batch == self.batch_shape:
            return self
        edges = self._scores.shape[self._scores.ndim - edge_axes(self._form) :]
        return self._with(jnp.broadcast_to(self._scores, (*batch, *edges)), jnp.broadcast_to(self._lengths, batch))

    def _read_trees(self, heads: Any, labels: Any, partial: bool = False) -> tuple[Self, Array, Array]:
        """Trees broadcast against the batch, and this distribution if its batch is smaller. No labels: (..., 0)"""
        if isinstance(heads, Trees):
            heads, labels = heads.heads, heads.labels
        heads = jnp.asarray(heads)
        if self.labelled != (labels is not None) and not (partial and self.labelled):
            raise ValueError("labels are needed with labelled scores, and only with them")
        if heads.ndim == 0 or heads.shape[-1] != self._nodes or not jnp.issubdtype(heads.dtype, jnp.integer):
            raise ValueError(f"heads must be integers (..., {self._nodes}), not {heads.dtype} of {heads.shape}")
        if labels is not None and jnp.shape(labels) != heads.shape:
            raise ValueError("heads and labels must have the same shape")
        labels = heads[..., :0] if labels is None else jnp.asarray(labels)
        shape = jnp.broadcast_shapes(heads.shape[:-1], self.batch_shape)
        if partial and self.labelled and labels.shape[-1] == 0:
            labels = jnp.full(heads.shape, UNKNOWN)
        dist = self._expanded(shape[len(shape) - len(self.batch_shape) :])
        heads, labels = (jnp.broadcast_to(x.astype(jnp.int32), (*shape, x.shape[-1])) for x in (heads, labels))
        return dist, heads, labels

    def _read_values(self, values: Any, name: str) -> tuple[Array, bool]:
        """Values per edge as (*batch, head, dep(, label)), or (R, ...) and True if they came with an axis for R."""
        values, shape = jnp.asarray(values), self._scores.shape
        several = values.ndim == len(shape) + 1
        moved = jnp.moveaxis(values, -1, 0) if several else values
        if values.ndim > len(shape) + 1 or jnp.broadcast_shapes(moved.shape[several:], shape) != shape:
            raise ValueError(f"{name} have shape {values.shape}; they must be {shape}, or that and one more")
        wide = jnp.broadcast_to(moved, (*moved.shape[:several], *shape))
        return self._turned(wide).astype(self._scores.dtype), several

    def _compared(self, other: TreeDistribution) -> tuple[Array, Array, Array, int]:
        if not isinstance(other, TreeDistribution):
            raise TypeError(f"other must be a spantree.jax.TreeDistribution, not {type(other).__name__}")
        if self._form != other._form:
            raise ValueError("the two distributions must agree in root, projective and labelled")
        batch = jnp.broadcast_shapes(self.batch_shape, other.batch_shape)
        p, q = self._expanded(batch), other._expanded(batch)
        if p._scores.shape != q._scores.shape:
            raise ValueError("the two distributions must have the same sentences and labels")
        if not is_traced(p._lengths, q._lengths) and bool(jnp.any(p._lengths != q._lengths)):
            raise ValueError("the two distributions must have sentences of the same lengths")
        dtype = jnp.promote_types(p._scores.dtype, q._scores.dtype)
        of_p, of_q = (x._question.scores.astype(dtype) for x in (p, q))
        return of_p, p._lengths, of_q, self._form

    def _relative(self) -> Self:
        """The same distribution with the best edge into each word at 0, so that no digits are lost to a shift."""
        axes = (-3, -1) if self.labelled else (-2,)
        scores, lengths, form = self._question
        scores = jnp.where(real_edges(self._nodes, lengths, form), scores, -jnp.inf)
        best = jax.lax.stop_gradient(jnp.max(scores, axis=axes, keepdims=True))
        other = self._with(
            jnp.where(scores > -jnp.inf, scores - jnp.where(best > -jnp.inf, best, 0.0), -jnp.inf), lengths
        )
        other._layout, other._checked = "head_dep", self._checked
        return other

    def _power(self, alpha: float) -> Self:
        """Scores times alpha; what is forbidden stays so."""
        possible = self._scores > -jnp.inf
        scores = jnp.where(possible, alpha * jnp.where(possible, self._scores, 0.0), -jnp.inf)
        return self._with(scores, self._lengths)

    def _where_trees(self, values: Array) -> Array:
        """The values, NaN for sentences without a tree."""
        some = ask.log_partition(jax.lax.stop_gradient(self._scores), self._lengths, self._form) > -jnp.inf
        return jnp.where(some, values, jnp.nan)


def _flatten_trees(trees: Trees[Any, Any]) -> tuple[tuple[Any, ...], None]:
    return (trees.heads, trees.scores, trees.labels), None


jax.tree_util.register_pytree_node(Trees, _flatten_trees, lambda _, parts: Trees(*parts))
