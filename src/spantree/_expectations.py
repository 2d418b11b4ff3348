"""What `TreeDistribution` can be asked beyond its best trees: log Z, marginals, expectations, and their gradients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Literal

import numpy as np

from . import _core, _decoding, _inference
from ._batch import Batch
from ._decoding import Trees
from ._errors import OnInfeasible, raise_infeasible
from ._inference import Flat, Quantity, Solved
from ._second_order import Features, covariance


class Expectations(ABC):
    """Every quantity follows from a `Solved`, whatever kind of trees it is about; it is made once and kept.

    With ``with_grad=True``, scalar quantities come with their gradient with respect to the scores, shaped like them.
    """

    __slots__ = ("__weakref__", "_batch", "_core_root", "_kept", "_on_infeasible", "_projective", "_root")

    _batch: Batch
    _root: Literal["single", "multi"]
    _core_root: _core.Root
    _projective: bool
    _on_infeasible: OnInfeasible
    _kept: Solved | None

    @abstractmethod
    def _solve(self, batch: Batch, keep: bool = True) -> Solved:
        """Solves trees of this distribution's kind, with the scores of `batch`; without `keep`, for marginals only."""

    @abstractmethod
    def _tree_name(self) -> str: ...

    @abstractmethod
    def score(self, heads: Any, labels: Any = None) -> Any: ...

    def log_partition(self, *, with_grad: bool = False) -> Any:
        """log Z, the logarithm of the sum of all trees' weights, shape (...); its gradient are the marginals.

        Notes
        -----
        O(n^3), by elimination without a subtraction: exact to rounding at any scale of scores. -inf where there is no
        tree and on_infeasible is "mask".

        Examples
        --------
        >>> import numpy as np, spantree
        >>> bool(np.isclose(spantree.TreeDistribution(np.zeros((4, 4))).log_partition(), np.log(9)))  # Cayley: n^(n-1)
        True
        """
        solved = self._solved
        gradient = solved.marginals().copy() if with_grad else None  # first, so that one solve serves both
        return self._quantity((solved.log_partition.copy(), gradient))

    def log_prob(self, heads: Any, labels: Any = None) -> Any:
        """The log-probability of a tree, `score` minus log Z; -inf if it is no tree of this distribution.

        Examples
        --------
        >>> import numpy as np, spantree
        >>> dist = spantree.TreeDistribution(np.zeros((3, 3)))
        >>> np.exp(dist.log_prob([[-1, 0, 1], [-1, 2, 0], [-1, 0, 0]])).round(6)
        array([0.5, 0.5, 0. ])
        """
        scores = self.score(heads, labels)
        log_z = self.log_partition()

        def normalise(score: Any, z: Any) -> Any:
            with np.errstate(invalid="ignore"):
                return np.where(np.isneginf(score), score, score - z).astype(self._batch.dtype)[()]

        if self._batch.leading is None:
            return [normalise(score, z) for score, z in zip(scores, log_z, strict=True)]
        return normalise(scores, log_z)

    def marginals(self) -> Any:
        """The probability of every edge, in the shape of the scores; 0 in column 0, on the diagonal and in the padding.

        Notes
        -----
        O(n^3). Every entry has a small *relative* error, whatever the scale of the scores; none is negative, and the
        heads of a word sum to 1. With labels, the probability of the edge with that label.

        Examples
        --------
        >>> import numpy as np, spantree
        >>> spantree.TreeDistribution(np.log(np.array([[1, 1, 3], [1, 1, 1], [1, 1, 1.0]]))).marginals().round(6)
        array([[0.  , 0.25, 0.75],
               [0.  , 0.  , 0.25],
               [0.  , 0.75, 0.  ]])
        """
        marginals = self._solved.marginals()
        self._check_feasible()
        return self._batch.edges(marginals.copy())

    def entropy(self, *, with_grad: bool = False) -> Any:
        """Shannon entropy in nats, shape (...).

        Examples
        --------
        >>> import numpy as np, spantree
        >>> bool(np.isclose(spantree.TreeDistribution(np.zeros((4, 4))).entropy(), np.log(9)))
        True
        """
        return self._quantity(self._solved.expectation(None, with_grad))

    def cross_entropy(self, other: Expectations, *, with_grad: bool = False) -> Any:
        """-E[log-probability under `other`], in nats; inf where this distribution has a tree that `other` has not.

        The gradient is with respect to this distribution's scores. `other` has as many sentences of the same lengths.

        Examples
        --------
        >>> import numpy as np, spantree
        >>> p = spantree.TreeDistribution(np.zeros((3, 3)))
        >>> q = spantree.TreeDistribution(np.array([[0, 0, 1], [0, 0, 0], [0, 0, 0.0]]))
        >>> bool(np.isclose(p.cross_entropy(q), p.entropy() + p.kl(q)))
        True
        """
        self._check_comparable(other)
        quantity = _inference.cross_entropy(self._batch, self._solved, other._batch, other._solved, with_grad)
        other._check_feasible()
        return self._quantity(quantity)

    def kl(self, other: Expectations, *, with_grad: bool = False) -> Any:
        """Kullback-Leibler divergence from `other`, in nats; inf where there is a tree that `other` has not.

        Examples
        --------
        >>> import numpy as np, spantree
        >>> p = spantree.TreeDistribution(np.zeros((3, 3)))
        >>> float(p.kl(p)), float(p.kl(spantree.TreeDistribution(np.array([[0, -np.inf, 1], [0, 0, 0], [0, 0, 0.0]]))))
        (0.0, inf)
        """
        self._check_comparable(other)
        quantity = _inference.kl(self._batch, self._solved, other._batch, other._solved, with_grad)
        other._check_feasible()
        return self._quantity(quantity)

    def renyi_entropy(self, alpha: float, *, with_grad: bool = False) -> Any:
        """Renyi entropy of order `alpha` >= 0 in nats.

        At 0 the log of the number of trees, at 1 Shannon's entropy, at infinity the min-entropy.

        Examples
        --------
        >>> import numpy as np, spantree
        >>> dist = spantree.TreeDistribution(np.array([[0, 1, 2, 0], [0, 0, 3, 1], [0, 2, 0, 1], [0, 0, 0, 0.0]]))
        >>> float(np.exp(dist.renyi_entropy(0)).round(6))
        9.0
        """
        if not alpha >= 0.0:
            raise ValueError(f"alpha must be at least 0, not {alpha!r}")
        quantity = _inference.renyi_entropy(
            self._batch, self._solved, self._solve, self._best_edges, float(alpha), with_grad
        )
        return self._quantity(quantity)

    def norm(self, p: float, *, with_grad: bool = False) -> Any:
        """The p-norm of the vector of all trees' probabilities, p > 0; inf gives the highest probability.

        Examples
        --------
        >>> import numpy as np, spantree
        >>> float(spantree.TreeDistribution(np.zeros((3, 3))).norm(2).round(6))
        0.707107
        """
        if not p > 0.0:
            raise ValueError(f"p must be positive, not {p!r}")
        quantity = _inference.norm(self._batch, self._solved, self._solve, self._best_edges, float(p), with_grad)
        return self._quantity(quantity)

    def expectation(self, values: Any, *, with_grad: bool = False) -> Any:
        """E[sum of values over the tree's edges].

        Parameters
        ----------
        values : array like the scores, or with one more axis of R values per edge
            Values of edges that are in no tree do not matter, whatever they are.

        Returns
        -------
        float array (...), or (..., R); with the gradient, an array like `values`.

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
        features, several = self._batch.flat_edges(values, "values")
        results = [self._solved.expectation(feature, with_grad) for feature in features]
        if not several:
            return self._quantity(results[0])
        self._check_feasible()
        value = self._batch.stack_scalars(np.stack([total for total, _ in results], -1))
        if not with_grad:
            return value
        gradients = [self._batch.edges(gradient) for _, gradient in results if gradient is not None]
        if self._batch.leading is None:
            return value, [np.stack(parts, -1) for parts in zip(*gradients, strict=True)]
        return value, np.stack(gradients, -1)

    def product_expectation(self, values: Any, *, with_grad: bool = False) -> Any:
        """E[product of values over the tree's edges].

        Notes
        -----
        Values that are not negative keep the relative accuracy of the solve. Negative ones (unlabelled scores only)
        cancel: they cost a determinant in quadruple precision, and the error is relative to the expectation of the
        values' magnitudes.

        Examples
        --------
        >>> import numpy as np, spantree
        >>> dist = spantree.TreeDistribution(np.zeros((3, 3)))
        >>> float(dist.product_expectation(np.array([[0, 2, 3], [0, 0, 5], [0, 7, 0.0]])).round(6))
        15.5
        >>> float(dist.product_expectation(np.array([[0, -2, 3], [0, 0, 5], [0, 7, 0.0]])).round(6))
        5.5
        """
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
            signed_allowed=not (self._projective or self._batch.labelled),
        )
        return self._quantity(quantity)

    def covariance(self, r: Any, s: Any) -> Any:
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
        The T2 algorithm: O(n^3 min(R, S) + n^2 R S).

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

    def second_moment(self, r: Any, s: Any) -> Any:
        """E[r s^T] for two additive functions of the tree; arguments and result as for `covariance`.

        Examples
        --------
        >>> import numpy as np, spantree
        >>> ones = np.ones((4, 4))  # every tree of three words has three edges
        >>> float(spantree.TreeDistribution(np.zeros((4, 4))).second_moment(ones, ones).round(6))
        9.0
        """
        return self._second_order(r, s, moment=True)

    def expected_attachment(self, gold: Any, labels: Any = None, *, with_grad: bool = False) -> Any:
        """Expected share of words with the gold head (labelled scores: and the gold label), shape (...).

        Parameters
        ----------
        gold : integers (..., n+1), or Trees
            Gold heads; what is no node counts as wrong.

        Examples
        --------
        >>> import numpy as np, spantree
        >>> float(spantree.TreeDistribution(np.zeros((3, 3))).expected_attachment([-1, 0, 1]))
        0.5
        """
        indicator = self._gold_edges(gold, labels)
        quantity = _inference.expected_attachment(self._batch, self._solved, indicator, with_grad)
        return self._quantity(quantity)

    def risk(self, gold: Any, labels: Any = None, *, with_grad: bool = False) -> Any:
        """One minus `expected_attachment`.

        Examples
        --------
        >>> import numpy as np, spantree
        >>> float(spantree.TreeDistribution(np.zeros((3, 3))).risk([-1, 0, 1]))
        0.5
        """
        indicator = self._gold_edges(gold, labels)
        value, gradient = _inference.expected_attachment(self._batch, self._solved, indicator, with_grad)
        return self._quantity((1.0 - value, None if gradient is None else -gradient))

    def generalized_expectation(self, values: Any, target: Any, *, with_grad: bool = False) -> Any:
        """Generalized expectation criterion: half the squared distance of E[values] from `target`, shape (...).

        Parameters
        ----------
        values : as for `expectation`
        target : array (..., R), or (...) where `values` has one value per edge

        Examples
        --------
        >>> import numpy as np, spantree
        >>> dist = spantree.TreeDistribution(np.zeros((3, 3)))
        >>> float(dist.generalized_expectation(np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0.0]]), 1.0))
        0.125
        """
        features, several = self._batch.flat_edges(values, "values")
        shape = (len(self._batch), len(features)) if several else (len(self._batch),)
        if self._batch.leading is not None:
            shape_given = self._batch.leading + ((len(features),) if several else ())
            wanted = np.broadcast_to(np.asarray(target, dtype=np.float64), shape_given).reshape(shape)
        else:
            wanted = np.broadcast_to(np.asarray(target, dtype=np.float64), shape)
        quantity = _inference.generalized_expectation(
            self._batch, self._solved, features, wanted.reshape(len(self._batch), len(features)), with_grad
        )
        return self._quantity(quantity)

    def mbr(self) -> Any:
        """The tree with the highest expected attachment score: the best tree when edges score their marginals.

        Returns
        -------
        int64 array (..., n+1), or `Trees` with heads and labels if the scores are labelled.

        Examples
        --------
        >>> import numpy as np, spantree
        >>> spantree.TreeDistribution(np.array([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]])).mbr()
        array([-1,  2,  0])
        """
        decoded = _inference.mbr(self._batch, self._solved, self._core_root, self._projective)
        self._check_feasible()
        heads = self._batch.nodes(decoded.heads)
        if decoded.labels is None:
            return heads
        return Trees(heads, labels=self._batch.nodes(decoded.labels))

    # Shared steps

    def _log_partition_only(self) -> Any:
        """`log_partition` of a distribution that will be asked nothing else."""
        self._kept = solved = self._solve(self._batch, keep=False)
        value = solved.log_partition
        if solved.infeasible:
            self._check_feasible()
        return self._batch.scalars(value)

    def _marginals_only(self) -> Any:
        """`marginals` of a distribution that will be asked nothing else."""
        self._kept = self._solve(self._batch, keep=False)
        marginals = self._kept.marginals()
        self._check_feasible()
        return self._batch.edges(marginals)

    @property
    def _solved(self) -> Solved:
        """The solve behind all of inference, kept."""
        if self._kept is None:
            self._kept = self._solve(self._batch)
        return self._kept

    def _quantity(self, quantity: Quantity) -> Any:
        self._check_feasible()
        value, gradient = quantity
        if gradient is None:
            return self._batch.scalars(value)
        return self._batch.scalars(value), self._batch.edges(gradient)

    def _check_feasible(self) -> None:
        if self._solved.infeasible and self._on_infeasible == "raise":
            words = _decoding.unattachable(self._batch, self._core_root, self._projective)
            raise_infeasible(self._batch, words, self._tree_name())

    def _check_comparable(self, other: Expectations) -> None:
        mine, theirs = self._batch, other._batch
        if (mine.labelled, mine.leading, mine.layout) != (theirs.labelled, theirs.leading, theirs.layout) or not (
            np.array_equal(mine.lengths, theirs.lengths) and mine.core.edge_size == theirs.core.edge_size
        ):
            raise ValueError("the two distributions must have the same sentences, labels and layout")
        if (self._root, self._projective) != (other._root, other._projective):
            raise ValueError("the two distributions must agree in root and projective")

    def _best_edges(self) -> tuple[Flat, Flat]:
        """Score of the best tree of each sentence, and its edges as 0/1."""
        decoded = _decoding.argmax(self._batch, self._core_root, self._projective, scored=True)
        return decoded.scores, self._edge_indicator(decoded.heads, decoded.labels)

    def _edge_indicator(self, heads: Any, labels: Any) -> Flat:
        """1 at the edges of flat heads (and labels), 0 elsewhere, as flat edges."""
        batch = self._batch
        start, parts = 0, []
        for array, words in zip(batch.arrays, batch.lengths, strict=True):
            indicator = np.zeros(array.shape)
            deps = np.arange(1, words + 1)
            own = heads[start + 1 : start + 1 + words]
            valid = (own >= 0) & (own <= words)
            where: tuple[Any, ...] = (own[valid], deps[valid])
            if labels is not None:
                label = labels[start + 1 : start + 1 + words]
                valid &= (label >= 0) & (label < array.shape[-1])
                where = (own[valid], deps[valid], label[valid])
            indicator[where] = 1.0
            parts.append(np.ravel(_inference.in_layout(batch, indicator)))
            start += len(array)
        return np.concatenate(parts) if parts else np.empty(0)

    def _gold_edges(self, gold: Any, labels: Any) -> Flat:
        if isinstance(gold, Trees):
            gold, labels = gold.heads, gold.labels
        if self._batch.labelled != (labels is not None):
            raise ValueError("labels are needed with labelled scores, and only with them")
        heads = self._batch.flat_nodes(gold, "gold")
        rows = None if labels is None else self._batch.flat_nodes(labels, "labels")
        if len(heads) != 1 or (rows is not None and len(rows) != 1):
            raise ValueError("gold must be one tree per sentence")
        return self._edge_indicator(heads[0], None if rows is None else rows[0])

    def _second_order(self, r: Any, s: Any, moment: bool) -> Any:
        batch = self._batch
        left, right = Features(batch, r, "r"), Features(batch, s, "s")
        result, left_mean, right_mean = covariance(batch, self._solved, left, right)
        self._check_feasible()
        if left.one_hot or right.one_hot:
            return self._with_every_edge(result, left_mean, right_mean, left, right, moment)
        if moment:
            assert left_mean is not None
            assert right_mean is not None
            result = result + left_mean[:, :, None] * right_mean[:, None, :]
        result = result[:, :, 0] if not right.several else result
        result = result[:, 0] if not left.several else result
        return batch.stack_scalars(result)

    def _with_every_edge(
        self,
        result: Flat,
        left_mean: Flat | None,
        right_mean: Flat | None,
        left: Features,
        right: Features,
        moment: bool,
    ) -> Any:
        batch = self._batch
        mean = right_mean if left_mean is None else left_mean
        assert mean is not None
        pieces = []
        for c in range(result.shape[1]):
            flat = result[:, c]
            if moment:
                flat = flat + self._solved.marginals() * _inference.spread_over_edges(batch, mean[:, c])
            pieces.append(batch.edges(flat))
        if not (right if left.one_hot else left).several:
            return pieces[0]
        edge_axes = 3 if batch.labelled else 2
        axis = -1 if left.one_hot else -1 - edge_axes
        if batch.leading is None:
            return [np.stack(parts, axis) for parts in zip(*pieces, strict=True)]
        return np.stack(pieces, axis)
