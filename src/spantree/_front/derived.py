"""What follows from other answers, in the same words for PyTorch and for JAX.

With p the distribution, H its entropy, p^a the one with a times its scores, and p v the one with its scores plus log v:

    risk(gold)              1 - expected attachment
    covariance(r, s)        <hessian(r), s>                      second_moment: E[r] E[s] more
    renyi_entropy(a)        H(p^a) + a / (a - 1) KL(p^a | p)     norm(a): exp((1 - a) / a renyi_entropy(a))
    product_expectation(v)  exp(E_pv[log v] - KL(p v | p))
    complete(heads)         the best tree of condition(heads=heads)

Entropies and divergences instead of differences of log Z, which lose their digits to what all trees have in common.
"""

# mypy: disable-error-code="no-any-return,operator,return-value"

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._condition import listed_edges, read_edge
from .._options import real_number
from .._trees import LABELS_NEED_HEADS, Trees, parts_of
from .base import A, Base, Names, in_double, in_full
from .form import STRICT, edge_axes

if TYPE_CHECKING:
    from typing_extensions import Self


class Derived(Base[A]):
    """A distribution over trees that has `argmax`, `log_prob`, `log_partition`, `entropy` and `expectation`."""

    def with_scores(self, scores: A) -> Self:
        """The distribution over the same sentences' trees with other scores.

        Parameters
        ----------
        scores : like `scores`
            In the same layout; copied. Mask and temperature do not apply again.

        Returns
        -------
        TreeDistribution
            With the same lengths and settings.

        Examples
        --------
        >>> import torch, spantree.torch
        >>> dist = spantree.torch.TreeDistribution(torch.zeros((3, 3)), root="multi")
        >>> dist.with_scores(dist.scores + torch.eye(3)).root
        'multi'
        """
        given = self._turned(self._numbers_in(scores, "scores"))
        if given.shape != self._scores.shape:
            raise ValueError(f"scores have shape {tuple(given.shape)}; they must be {tuple(self._scores.shape)}")
        return self._with(self._copied(given), self._lengths)

    # Trees

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
        >>> import torch, spantree.torch
        >>> dist = spantree.torch.TreeDistribution(torch.asarray([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]]))
        >>> dist.condition(include=[(1, 2)]).argmax().tolist()
        [-1, 0, 1]
        """
        allowed = np.ones(self._scores.shape[-edge_axes(self._form) :], dtype=bool)
        labels_of_edges = allowed.shape[-1] if self.labelled else None
        for given in listed_edges(include, "include"):
            edge = read_edge(given, self._nodes - 1, labels_of_edges, "include", "every sentence")
            kept = allowed[edge].copy()
            allowed[:, edge[1]] = False
            allowed[edge] = kept
        for given in listed_edges(exclude, "exclude"):
            allowed[read_edge(given, self._nodes - 1, labels_of_edges, "exclude", "every sentence")] = False
        left = self._constant(allowed)
        if heads is None and labels is not None:
            raise ValueError(LABELS_NEED_HEADS)
        if heads is not None:
            heads, labels = parts_of(heads, labels)
            heads = self._nodes_in(heads, "heads")
            labels = None if labels is None else self._nodes_in(labels, "labels")
            left = left & self._agreeing(heads, labels)
        return self._with(self._xp.where(left, self._scores, -math.inf), self._lengths)

    def edges_of(self, heads: Any, labels: Any = None) -> A:
        """The edges of trees, as True among the scores.

        Parameters
        ----------
        heads, labels : as for `score`
            Heads of trees, and labels of their edges.

        Returns
        -------
        booleans (..., n+1, n+1), or (..., n+1, n+1, labels)
            In the layout of the scores. False at ROOT and in the padding.

        Examples
        --------
        >>> import torch, spantree.torch
        >>> edges = spantree.torch.TreeDistribution(torch.zeros((3, 3))).edges_of(torch.asarray([-1, 2, 0]))
        >>> [(h, d) for h in range(3) for d in range(3) if edges[h, d]]
        [(0, 2), (2, 1)]
        """
        return self._edges_out(self._edges_of(heads, labels))

    def complete(self, heads: Any, labels: Any = None) -> tuple[Any, A]:
        """The best tree that agrees with a partial one, and its probability.

        Parameters
        ----------
        heads : integers (..., n+1)
            A partial tree for each sentence: known heads, and -2 where the head is unknown.
        labels : integers like `heads`, optional
            Known labels, and -2 where the label is unknown.

        Returns
        -------
        tree : integers (..., n+1), or Trees
            As from `argmax`.
        probability : numbers (...)
            Of that tree.

        Examples
        --------
        >>> import torch, spantree.torch
        >>> dist = spantree.torch.TreeDistribution(torch.zeros((4, 4)))
        >>> tree, probability = dist.complete(torch.asarray([-1, -2, 0, 2]))
        >>> tree.tolist(), round(float(probability), 4)
        ([-1, 2, 0, 2], 0.1111)
        """
        if heads is None:
            raise TypeError("heads must be a partial tree for each sentence, not None")
        best = self.condition(heads=heads, labels=labels).argmax()
        return best, self._xp.exp(self.log_prob(best))

    def iter_best(self, *, where: Callable[..., bool] | None = None, **constraints: Any) -> Iterator[Trees[Any, Any]]:
        """One sentence's trees from best to worst, each when it is asked for; outside of any transformation.

        Parameters
        ----------
        where : function, optional
            Of heads ``(n+1,)`` (labelled: heads and labels): only trees of which it is true are wanted.
        **constraints
            `at_most_one`, `exactly`, `at_most`, `limit`: as in `spantree.TreeDistribution.iter_best`.

        Yields
        ------
        Trees
            ``heads (n+1,)``, ``scores`` a number, ``labels (n+1,)`` if the scores are labelled.

        Examples
        --------
        >>> import torch, spantree.torch
        >>> dist = spantree.torch.TreeDistribution(torch.asarray([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]]))
        >>> [(tree.heads.tolist(), float(tree.scores)) for tree in dist.iter_best()]
        [([-1, 2, 0], 7.0), ([-1, 0, 1], 4.0)]
        """
        wanted = None if where is None else (lambda *tree: bool(where(*map(self._from_numpy, tree))))
        return map(self._scored, self.numpy().iter_best(where=wanted, **constraints))

    def _one_by_one(self, key: Any) -> Iterator[Trees[Any, Any]]:
        """One sentence's trees in random order, none twice, with their log-probabilities; key: 128 bits."""
        return map(self._with_log_prob, self.numpy()._iter_distinct(key.reshape(-1, 2), 0))

    def _with_log_prob(self, found: Trees[Any, Any]) -> Trees[Any, Any]:
        heads = self._from_numpy(found.heads)
        labels = None if found.labels is None else self._from_numpy(found.labels)
        return Trees(heads, self.log_prob(heads, labels), labels)

    def explain(self, words: Sequence[Any] | None = None) -> Any:
        """The least certain word of each sentence, as a sentence for people; outside of any transformation.

        Parameters
        ----------
        words : lists of strings, optional
            Names of the words, if they were not given before.

        Returns
        -------
        str, or a list of them
            As `spantree.TreeDistribution.explain` gives them.

        Examples
        --------
        >>> import torch, spantree.torch
        >>> spantree.torch.TreeDistribution(torch.asarray([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]])).explain(["so", "be"])
        'best tree 95%, entropy 0.19 nats; least certain is the head of so(1): be(2) 95% or ROOT 5%'
        """
        return self.numpy().explain(words)

    def confidence(self) -> Any:
        """How sure the distribution is of each word's head; outside of any transformation, as NumPy arrays.

        Returns
        -------
        spantree.Confidence
            As `spantree.TreeDistribution.confidence` gives it.

        Examples
        --------
        >>> import torch, spantree.torch
        >>> spantree.torch.TreeDistribution(torch.zeros((3, 3))).confidence().head_probs[1:].tolist()
        [0.5, 0.5]
        """
        return self.numpy().confidence()

    # Inference

    @in_double
    def renyi_entropy(self, alpha: float) -> A:
        """Renyi entropy in nats.

        Parameters
        ----------
        alpha : float
            The order, at least 0. At 0 it is the log of the number of trees, at 1 Shannon's entropy, at infinity the
            min-entropy.

        Returns
        -------
        numbers (...)
            NaN, with gradient 0, where there is no tree.

        Examples
        --------
        >>> import torch, spantree.torch
        >>> round(float(spantree.torch.TreeDistribution(torch.zeros((4, 4))).renyi_entropy(2.0)), 4)
        2.1972
        """
        alpha = real_number("alpha", alpha)
        if not alpha >= 0.0:
            raise ValueError(f"alpha must be at least 0, not {alpha!r}")
        if alpha == 1.0:
            return self.entropy()
        if alpha == math.inf:
            return self._where_trees(-self._or_0(self.log_prob(self.argmax())))
        if alpha == 0.0:
            return self._power(0.0).entropy()
        if abs(alpha - 1.0) < 0.01:
            return self._renyi_near_one(alpha)
        power = self._power(alpha)
        return power.entropy() + alpha / (alpha - 1.0) * power.kl(self)

    def _renyi_near_one(self, alpha: float) -> A:
        """The mean of H(p^(1/u)) over u from 1/alpha to 1, by Gauss's three points: off by about (alpha - 1)^6.

        From d/da (log Z_a / a) = -H(p^a) / a^2. Here the divergence from p has no digits left to divide by alpha - 1.
        """
        away, length = 0.15**0.5, 1.0 - 1.0 / alpha
        points = ((0.5 - away, 5 / 18), (0.5, 8 / 18), (0.5 + away, 5 / 18))
        return sum(weight * self._power(1.0 / (1.0 - length * at)).entropy() for at, weight in points)

    @in_double
    def norm(self, p: float) -> A:
        """The p-norm of the vector of all trees' probabilities.

        Parameters
        ----------
        p : float
            Positive; inf gives the highest probability.

        Returns
        -------
        numbers (...)
            NaN, with gradient 0, where there is no tree.

        Examples
        --------
        >>> import torch, spantree.torch
        >>> round(float(spantree.torch.TreeDistribution(torch.zeros((3, 3))).norm(2)), 4)
        0.7071
        """
        p = real_number("p", p)
        if not p > 0.0:
            raise ValueError(f"p must be positive, not {p!r}")
        if p == math.inf:
            return self._where_trees(self._xp.exp(self._or_0(self.log_prob(self.argmax()))))
        return self._where_trees(self._xp.exp((1.0 - p) / p * self._or_0(self.renyi_entropy(p))))

    @in_double
    def covariance(self, r: A | Literal["edges"], s: A | Literal["edges"]) -> A:
        """Covariance of two additive functions of the tree.

        Parameters
        ----------
        r, s : like the scores, or with one more axis of R (S) values per edge
            Or "edges": the indicators of all edges, which are never materialised (one of the two only).

        Returns
        -------
        numbers (..., R, S)
            Without the axis of a side that has one value per edge; the axes of the scores in its place for "edges".
            Differentiable by the scores and by the values.

        Notes
        -----
        One product with the Hessian of log Z for each feature of the first side that is not "edges".

        Examples
        --------
        >>> import torch, spantree.torch
        >>> dist = spantree.torch.TreeDistribution(torch.zeros((3, 3)))
        >>> dist.covariance(torch.asarray([[0, 1, 0], [0, 0, 0], [0, 0, 0.0]]), "edges").tolist()
        [[0.0, 0.25, -0.25], [0.0, 0.0, 0.25], [0.0, -0.25, 0.0]]
        """
        if isinstance(r, str) and isinstance(s, str):
            raise ValueError("the covariances of all pairs of edges are n^4 numbers; give r or s as values")
        first, other = (s, r) if isinstance(r, str) else (r, s)
        columns, several = self._read_values(first, "r or s")
        possible = self._possible()
        slopes = self._hessian(self._xp.where(possible, columns, 0.0))
        move = self._moved
        if isinstance(other, str):
            out = self._edges_out(slopes)
            if not several:
                return out
            if isinstance(out, list):
                return [move(part, 0, -1 if isinstance(r, str) else 0) for part in out]
            return move(out, 0, -1 if isinstance(r, str) else len(self.batch_shape))
        rows, both = self._read_values(other, "r or s")
        rows = self._xp.where(possible, rows, 0.0)
        axes = tuple(range(-edge_axes(self._form), 0))
        if several and both:
            return move(self._where_trees((slopes[:, None] * rows).sum(axes)), (0, 1), (-2, -1))
        result = self._where_trees((slopes * rows).sum(axes))
        return move(result, 0, -1) if several or both else result

    @in_double
    def second_moment(self, r: A, s: A) -> A:
        """E[r s^T] for two additive functions of the tree.

        Parameters
        ----------
        r, s : like the scores, or with one more axis of R (S) values per edge
            Values per edge.

        Returns
        -------
        numbers (..., R, S)
            As for `covariance`.

        Examples
        --------
        >>> import torch, spantree.torch
        >>> ones = torch.ones((4, 4))  # every tree of three words has three edges
        >>> round(float(spantree.torch.TreeDistribution(torch.zeros((4, 4))).second_moment(ones, ones)), 4)
        9.0
        """
        of_r, of_s = self._or_0(self.expectation(r)), self._or_0(self.expectation(s))
        r_has_axis, s_has_axis = (mean.ndim > len(self.batch_shape) for mean in (of_r, of_s))
        if s_has_axis:
            of_r = of_r[..., None]
        if r_has_axis:
            of_s = of_s[..., None, :] if s_has_axis else of_s[..., None]
        return self.covariance(r, s) + of_r * of_s

    @in_full
    def expected_attachment(self, gold: Any, labels: A | None = None) -> A:
        """Expected share of words with the gold head (labelled scores: and the gold label).

        Parameters
        ----------
        gold : integers (..., n+1), or Trees
            Gold heads; what is no node counts as wrong.
        labels : integers like `gold`, optional
            Gold labels, needed if the scores are labelled (or give `Trees`).

        Returns
        -------
        numbers (...)
            Differentiable. NaN, with gradient 0, where there is no tree.

        Examples
        --------
        >>> import torch, spantree.torch
        >>> float(spantree.torch.TreeDistribution(torch.zeros((3, 3))).expected_attachment(torch.asarray([-1, 0, 1])))
        0.5
        """
        dist, heads, labels = self._read_trees(gold, labels)
        words = self._like_scores(dist.lengths)[(..., *(None,) * edge_axes(self._form))]
        share = self._xp.where(dist._agreeing(heads, labels), 1.0 / words.clip(1.0), 0.0)
        return self._xp.where(dist.lengths > 0, dist._expectation(share), 1.0)

    @in_full
    def risk(self, gold: Any, labels: A | None = None) -> A:
        """One minus `expected_attachment`: the expected share of words with a wrong head (or label).

        Parameters
        ----------
        gold, labels : as for `expected_attachment`
            The gold tree.

        Returns
        -------
        numbers (...)
            Differentiable.

        Examples
        --------
        >>> import torch, spantree.torch
        >>> float(spantree.torch.TreeDistribution(torch.zeros((3, 3))).risk(torch.asarray([-1, 0, 1])))
        0.5
        """
        return 1.0 - self.expected_attachment(gold, labels)

    @in_double
    def generalized_expectation(self, values: A, target: Any) -> A:
        """Generalized expectation criterion: half the squared distance of E[values] from `target`.

        Parameters
        ----------
        values : as for `expectation`
            Features of the edges.
        target : numbers (..., R), or (...) where `values` has one value per edge
            What their expectations should be.

        Returns
        -------
        numbers (...)
            Differentiable.

        Examples
        --------
        >>> import torch, spantree.torch
        >>> dist = spantree.torch.TreeDistribution(torch.zeros((3, 3)))
        >>> float(dist.generalized_expectation(torch.asarray([[0, 1, 0], [0, 0, 0], [0, 0, 0.0]]), 1.0))
        0.125
        """
        mean = self.expectation(values)
        half = 0.5 * (self._or_0(mean) - self._read_target(target, tuple(mean.shape))) ** 2
        return self._where_trees(half.sum(-1) if mean.ndim > len(self.batch_shape) else half)

    # Shared steps

    def _best(self, constraints: dict[str, Any]) -> Any:
        """The best tree under constraints, by the NumPy side."""
        found = self.numpy().argmax(**constraints)
        if not isinstance(found, Trees):
            return self._from_numpy(found)
        heads, labels = self._from_numpy(found.heads), self._from_numpy(found.labels)
        return Trees(heads, labels=labels, decodes=found.decodes)

    def _scored(self, found: Trees[Any, Any]) -> Trees[Any, Any]:
        """The NumPy side's trees; their scores, which may have a gradient, are these scores'."""
        heads = self._from_numpy(found.heads)
        labels = None if found.labels is None else self._from_numpy(found.labels)
        scores = self.score(heads, labels)
        if isinstance(heads, list):
            scores = self._several_out(scores)
        return Trees(heads, scores, labels, found.decodes)

    def _product_of_nonnegative(self, values: A) -> A:
        """E[product of values], NaN if one is negative. Its derivatives are those of log Z of p v less that of p.

        Derivatives by values of 0 are limits: edges weigh too little there to be noticed, but are not forbidden.
        """
        where, exp, log, relative = self._xp.where, self._xp.exp, self._xp.log, self._relative()
        values = where(relative._scores > -math.inf, values, 1.0)
        positive, little = values > 0.0, float(self._xp.finfo(self._scores.dtype).tiny) ** 0.5
        logs = log(where(positive, values, values + little))
        of_product = relative._with(relative._scores + logs, self._lengths)
        exactly = self._fixed(of_product._expectation(logs) - of_product.kl(relative))
        slope = self._or_0(of_product.log_partition()) - self._or_0(relative.log_partition())
        found = exp(where(exactly > -math.inf, exactly, 0.0) + (slope - self._fixed(slope)))  # 0 in the place of NaN
        without_zeros = self._with(where(positive, self._scores, -math.inf), self._lengths)
        without_zeros._form &= ~STRICT
        found = where(without_zeros._has_trees(), found, found - self._fixed(found))
        negative = self._xp.amin(values, tuple(range(-edge_axes(self._form), 0))) < 0.0
        return self._where_trees(where(negative, math.nan, found))

    def _relative(self) -> Self:
        """The same distribution without what all trees have in common: what is added to its scores keeps its digits."""
        found = self._relative_scores()
        moving = self._scores - self._fixed(self._scores)
        other = self._with(self._xp.where(found > -math.inf, found + moving, found), self._lengths)
        other._layout, other._names = "head_dep", Names()
        return other

    def _power(self, alpha: float) -> Self:
        """Scores times alpha; what is forbidden stays so."""
        possible = self._scores > -math.inf
        scores = alpha * self._xp.where(possible, self._scores, 0.0)
        return self._with(self._xp.where(possible, scores, -math.inf), self._lengths)

    def _or_0(self, numbers: Any) -> Any:
        """0 for -inf and NaN, of a sentence without a tree: nothing that is made of it has a NaN for a gradient."""
        return self._xp.where(numbers > -math.inf, numbers, 0.0)

    def _where_trees(self, values: Any, otherwise: float = math.nan) -> Any:
        """The values; NaN, or what is said, for sentences without a tree."""
        has_trees = self._has_trees()
        return values if has_trees is None else self._xp.where(has_trees, values, otherwise)
