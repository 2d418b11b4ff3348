"""`TreeDistribution` with tensors: a `torch.distributions.Distribution` over the trees of sentences."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from torch.distributions import Distribution, constraints, register_kl

import spantree
import torch
from torch import Tensor

from .._options import Layout, OnInfeasible, RootMode, positive_integer
from .._trees import Trees
from . import _questions as ask
from ._door import Door, read, turned
from ._kernels import LABELLED, PROJECTIVE, SINGLE_ROOT, STRICT, UNKNOWN, edge_axes
from .samples import Sample

if TYPE_CHECKING:
    from typing_extensions import Self

    from .._sampling import DistinctMethod, Method


class TreeDistribution(Distribution):
    """The distribution over dependency trees in which a tree's log-weight is the sum of its edges' scores.

    Parameters
    ----------
    scores : tensor (..., n+1, n+1)
        ``scores[..., h, d]`` is the log-weight of the edge from head ``h`` to dependent ``d``; node 0 is ROOT. ``-inf``
        forbids an edge; column 0 and the diagonal are ignored. Any strides; results have its dtype and device.
    lengths : integers (...), optional
        Words of each sentence in a padded batch. What stands in the padding never matters.
    mask : boolean tensor, optional
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
        What to do about a sentence without a tree: raise `spantree.InfeasibleError`, or go on, with heads -1, log Z and
        scores of -inf, other numbers and all gradients 0.
    temperature : float
        Scores are divided by it: above 1 the distribution is flatter, below 1 sharper.
    validate_args : bool, optional
        As in `torch.distributions`; scores and trees are checked by who reads them, whatever it is.

    Notes
    -----
    Every quantity is differentiable by the scores as often as closed forms reach: log Z three times, all others twice.
    Computation is in double precision, on the host, and rounded once to the dtype of the scores; under `torch.autocast`
    half precision is answered in float32. Nothing is kept between calls.

    Examples
    --------
    >>> import torch
    >>> from spantree.torch import TreeDistribution
    >>> dist = TreeDistribution(torch.tensor([[0, 1, 2], [0, 0, 3], [0, 1.5, 0]]))
    >>> dist.argmax()
    tensor([-1,  0,  1])
    >>> dist.log_prob(dist.argmax()).exp()
    tensor(0.6225)
    """

    has_rsample = False

    def __init__(
        self,
        scores: Tensor,
        *,
        lengths: Any = None,
        mask: Tensor | None = None,
        root: RootMode = "single",
        projective: bool = False,
        labelled: bool = False,
        layout: Layout = "head_dep",
        on_infeasible: OnInfeasible = "raise",
        temperature: float = 1.0,
        validate_args: bool | None = None,
    ) -> None:
        door = read(
            scores,
            lengths,
            mask,
            root=root,
            projective=projective,
            labelled=labelled,
            layout=layout,
            on_infeasible=on_infeasible,
            temperature=temperature,
        )
        self._set(door, layout, bool(validate_args))

    def _set(self, door: Door, layout: Layout, validate_args: bool) -> None:
        self._scores, self._lengths, self._form = door
        self._layout = layout
        axes = edge_axes(self._form)
        shape = self._scores.shape
        super().__init__(shape[: len(shape) - axes], shape[-axes : len(shape) - axes + 1], validate_args=False)
        self._validate_args = validate_args

    def _with(self, scores: Tensor, lengths: Tensor | None) -> Self:
        other = type(self).__new__(type(self))
        other._set(Door(scores, lengths, self._form), self._layout, self._validate_args)
        return other

    # What it is

    @property
    def scores(self) -> Tensor:
        """The scores that count: after mask and temperature, in the caller's layout."""
        return self._turned(self._scores)

    @property
    def lengths(self) -> Tensor:
        """Words of each sentence, in the shape of the batch."""
        if self._lengths is not None:
            return self._lengths
        return torch.full(self.batch_shape, self._nodes - 1, device=self._scores.device)

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
    def _nodes(self) -> int:
        return self.event_shape[0]

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        """Scores are numbers, or -inf."""
        return {"scores": _Scores(edge_axes(self._form))}

    @property
    def support(self) -> constraints.Constraint:
        """Heads that are a tree of this distribution."""
        return _TreesOf(self)

    @property
    def mode(self) -> Any:
        """The best tree of each sentence: `argmax`."""
        return self.argmax()

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        """Whether `enumerate_support` lists all trees: for at most seven words, without labels."""
        return self._nodes <= 8 and not self.labelled

    def expand(self, batch_shape: Any, _instance: Any = None) -> Self:
        """The same distribution with more, or longer, axes of the batch: a view.

        Parameters
        ----------
        batch_shape : sizes
            What `batch_shape` shall be.

        Returns
        -------
        TreeDistribution
            Over the same trees.

        Examples
        --------
        >>> import torch, spantree.torch
        >>> spantree.torch.TreeDistribution(torch.zeros(3, 3)).expand((2, 5)).entropy().shape
        torch.Size([2, 5])
        """
        batch = torch.Size(batch_shape)
        lengths = None if self._lengths is None else self._lengths.expand(batch)
        return self._with(self._scores.expand(*batch, *self._scores.shape[len(self.batch_shape) :]), lengths)

    def __getitem__(self, index: Any) -> Self:
        """The part of the batch that the index picks of a tensor of shape `batch_shape`."""
        given = index if isinstance(index, tuple) else (index,)
        torch.empty(self.batch_shape, device="meta")[given]  # raises if it asks for more axes than there are
        edges = (slice(None),) * edge_axes(self._form) if any(part is Ellipsis for part in given) else (...,)
        return self._with(self._scores[(*given, *edges)], None if self._lengths is None else self._lengths[given])

    def __len__(self) -> int:
        if not self.batch_shape:
            raise TypeError("a distribution over one sentence's trees has no length")
        return self.batch_shape[0]

    def __repr__(self) -> str:
        kind = ", projective" if self.projective else ""
        labels = f", {self._scores.shape[-1]} labels" if self.labelled else ""
        return (
            f"TreeDistribution(batch_shape: {tuple(self.batch_shape)}, {self._nodes - 1} words, {self.root} root{kind}"
            f"{labels}, {self._scores.dtype})"
        )

    def numpy(self) -> spantree.TreeDistribution[Any, Any, Any]:
        """The same distribution with NumPy arrays, without gradients: for what has no derivative.

        Returns
        -------
        spantree.TreeDistribution
            A copy.

        Examples
        --------
        >>> import torch, spantree.torch
        >>> spantree.torch.TreeDistribution(torch.tensor([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]])).numpy().explain()
        'best tree 95%, entropy 0.19 nats; least certain is the head of word 1: word 2 95% or ROOT 5%'
        """
        scores = self.scores.detach().cpu()
        return spantree.TreeDistribution(
            (scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores).numpy(),
            lengths=None if self._lengths is None else self._lengths.cpu().numpy(),
            root=self.root,
            projective=self.projective,
            labelled=self.labelled,
            layout=self._layout,
            on_infeasible="raise" if self._form & STRICT else "mask",
        )

    def with_scores(self, scores: Tensor) -> Self:
        """The distribution over the same sentences' trees with other scores.

        Parameters
        ----------
        scores : tensor like `scores`
            In the same layout. Mask and temperature do not apply again.

        Returns
        -------
        TreeDistribution
            With the same lengths and settings.

        Examples
        --------
        >>> import torch, spantree.torch
        >>> dist = spantree.torch.TreeDistribution(torch.zeros(3, 3), root="multi")
        >>> dist.with_scores(dist.scores + torch.eye(3)).root
        'multi'
        """
        if scores.shape != self._scores.shape:
            raise ValueError(f"scores have shape {tuple(scores.shape)}; they must be {tuple(self._scores.shape)}")
        return self._with(self._turned(scores), self._lengths)

    # Trees

    def argmax(self) -> Any:
        """The best tree of each sentence.

        Returns
        -------
        int64 tensor (..., n+1), or Trees
            Heads; with labelled scores `spantree.Trees` with heads and labels.

        Examples
        --------
        >>> import torch, spantree.torch
        >>> scores = torch.tensor([[0, 7, 8, 7], [0, 0, 4, 1], [0, 5, 0, 6], [0, 3, 2, 0.0]])
        >>> spantree.torch.TreeDistribution(scores).argmax()
        tensor([-1,  2,  0,  2])
        >>> spantree.torch.TreeDistribution(scores, root="multi").argmax()
        tensor([-1,  0,  0,  0])
        """
        return self._trees(*ask.argmax(*self._question))

    def max(self) -> Tensor:
        """The score of the best tree of each sentence; -inf where there is none.

        Returns
        -------
        tensor (...)
            Its gradient is 1 at the edges of the best tree.

        Examples
        --------
        >>> import torch, spantree.torch
        >>> spantree.torch.TreeDistribution(torch.tensor([[0, 2.0], [0, 0]])).max()
        tensor(2.)
        """
        heads, labels = ask.argmax(*self._question)
        return self._score(heads, labels if self.labelled else None)

    def topk(self, k: int) -> Trees[Tensor, Tensor]:
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
        >>> import torch, spantree.torch
        >>> spantree.torch.TreeDistribution(torch.tensor([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]])).topk(3).scores
        tensor([7., 4., -inf])
        """
        heads, labels, scores = ask.topk(*self._question, positive_integer("k", k))
        given = labels if self.labelled else None
        return Trees(heads, self._score(heads, given) if self._with_gradient else scores, given)  # type: ignore

    def mbr(self) -> Any:
        """The tree with the highest expected attachment score: the best tree when edges score their marginals.

        Returns
        -------
        int64 tensor (..., n+1), or Trees
            Heads; with labelled scores `spantree.Trees` with heads and labels.

        Examples
        --------
        >>> import torch, spantree.torch
        >>> spantree.torch.TreeDistribution(torch.tensor([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]])).mbr()
        tensor([-1,  2,  0])
        """
        scores, lengths, form = self._question
        scores = scores.detach()
        reward = torch.where(scores > -torch.inf, ask.marginals(scores, lengths, form), -torch.inf)
        return self._trees(*ask.argmax(reward, lengths, form))

    def score(self, heads: Any, labels: Tensor | None = None) -> Tensor:
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
        tensor (...)
            -inf, with gradient 0, where heads is no tree of this distribution.

        Examples
        --------
        >>> import torch, spantree.torch
        >>> dist = spantree.torch.TreeDistribution(torch.tensor([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]]))
        >>> dist.score(torch.tensor([[-1, 0, 1], [-1, 2, 0], [-1, 0, 0]]))
        tensor([4., 7., -inf])
        """
        dist, heads, labels = self._read_trees(heads, labels)
        return dist._score(heads, labels)

    def log_prob(self, value: Any, labels: Tensor | None = None, *, partial: bool = False) -> Tensor:
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
        tensor (...)
            -inf, with gradient 0, where heads is no tree of this distribution.

        Examples
        --------
        >>> import torch, spantree.torch
        >>> dist = spantree.torch.TreeDistribution(torch.zeros(3, 3))
        >>> dist.log_prob(torch.tensor([[-1, 0, 1], [-1, 2, 0], [-1, 0, 0]])).exp()
        tensor([0.5000, 0.5000, 0.0000])
        >>> dist.log_prob(torch.tensor([-1, -2, 0]), partial=True).exp()
        tensor(0.5000)
        """
        dist, heads, labels = self._read_trees(value, labels, partial)
        if self._validate_args and not partial and bool((dist._score(heads, labels) == -torch.inf).any()):
            raise ValueError("a value is no tree of this distribution")
        if not partial:
            return ask.log_prob(dist._scores, heads, labels, dist._lengths, dist._form, dist._with_gradient)[0]
        dist = dist.expand(heads.shape[:-1])
        return -ask.crf_loss(dist._scores, heads, labels, dist._lengths, dist._form, True, dist._with_gradient)[0]

    def edges_of(self, heads: Any, labels: Tensor | None = None) -> Tensor:
        """The edges of trees, as True among the scores.

        Parameters
        ----------
        heads, labels : as for `score`
            Heads of trees, and labels of their edges.

        Returns
        -------
        boolean tensor (..., n+1, n+1), or (..., n+1, n+1, labels)
            In the layout of the scores. False at ROOT and in the padding.

        Examples
        --------
        >>> import torch, spantree.torch
        >>> spantree.torch.TreeDistribution(torch.zeros(3, 3)).edges_of(torch.tensor([-1, 2, 0])).int()
        tensor([[0, 0, 1],
                [0, 0, 0],
                [0, 1, 0]], dtype=torch.int32)
        """
        dist, heads, labels = self._read_trees(heads, labels)
        scores, lengths, form = dist._question
        heads = torch.where(heads == UNKNOWN, -1, heads)
        return self._turned(ask.agreeing_edges(heads, labels, scores, form) & ask.real_edges(scores, lengths, form))

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
        >>> dist = spantree.torch.TreeDistribution(torch.tensor([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]]))
        >>> dist.condition(include=[(1, 2)]).argmax()
        tensor([-1,  0,  1])
        """
        allowed = torch.ones(self._scores.shape[-edge_axes(self._form) :], dtype=torch.bool, device=self._scores.device)
        for head, dep, *label in include:
            here = (head, dep, *label)
            kept = allowed[here].clone()
            allowed[:, dep] = False
            allowed[here] = kept
        for edge in exclude:
            allowed[tuple(edge)] = False
        if heads is not None:
            if labels is None and isinstance(heads, Trees):
                heads, labels = heads.heads, heads.labels
            allowed = allowed & ask.agreeing_edges(heads, labels, self._scores, self._form)
        return self._with(torch.where(allowed, self._scores, -torch.inf), self._lengths)

    def complete(self, heads: Any, labels: Any = None) -> tuple[Any, Tensor]:
        """The best tree that agrees with a partial one, and its probability.

        Parameters
        ----------
        heads : integers (..., n+1)
            A partial tree for each sentence: known heads, and -2 where the head is unknown.
        labels : integers like `heads`, optional
            Known labels, and -2 where the label is unknown.

        Returns
        -------
        tree : int64 tensor (..., n+1), or Trees
            As from `argmax`.
        probability : tensor (...)
            Of that tree.

        Examples
        --------
        >>> import torch, spantree.torch
        >>> dist = spantree.torch.TreeDistribution(torch.zeros(4, 4))
        >>> dist.complete(torch.tensor([-1, -2, 0, 2]))
        (tensor([-1,  2,  0,  2]), tensor(0.1111))
        """
        best = self.condition(heads=heads, labels=labels).argmax()
        return best, self.log_prob(best).exp()

    # Inference

    def log_partition(self) -> Tensor:
        """The log-partition log Z: the logarithm of the sum of all trees' weights.

        Returns
        -------
        tensor (...)
            -inf where there is no tree and on_infeasible is "mask". Its gradient are the marginals.

        Examples
        --------
        >>> import torch, spantree.torch
        >>> spantree.torch.TreeDistribution(torch.zeros(4, 4)).log_partition()  # Cayley: log n^(n-1)
        tensor(2.1972)
        """
        return ask.log_partition(*self._question, self._with_gradient)[0]

    def marginals(self) -> Tensor:
        """The probability of every edge, in the shape of the scores; 0 in column 0, on the diagonal and in the padding.

        Returns
        -------
        tensor like the scores
            With labels, the probability of the edge with that label.

        Examples
        --------
        >>> import torch, spantree.torch
        >>> spantree.torch.TreeDistribution(torch.zeros(3, 3)).marginals()
        tensor([[0.0000, 0.5000, 0.5000],
                [0.0000, 0.0000, 0.5000],
                [0.0000, 0.5000, 0.0000]])
        """
        return self._turned(ask.marginals(*self._question))

    def entropy(self) -> Tensor:
        """Shannon entropy in nats.

        Returns
        -------
        tensor (...)
            0 where there is no tree and on_infeasible is "mask".

        Examples
        --------
        >>> import torch, spantree.torch
        >>> spantree.torch.TreeDistribution(torch.zeros(4, 4)).entropy()
        tensor(2.1972)
        """
        return ask.entropy(*self._question, self._with_gradient)[0]

    def cross_entropy(self, other: TreeDistribution) -> Tensor:
        """-E[log-probability under `other`], in nats; inf where this distribution has a tree that `other` has not.

        Parameters
        ----------
        other : TreeDistribution
            Over trees of the same sentences.

        Returns
        -------
        tensor (...)
            Differentiable by the scores of both.

        Examples
        --------
        >>> import torch, spantree.torch
        >>> p = spantree.torch.TreeDistribution(torch.zeros(3, 3))
        >>> p.cross_entropy(p).exp()
        tensor(2.)
        """
        return ask.cross_entropy(*self._compared(other))[0]

    def kl(self, other: TreeDistribution) -> Tensor:
        """Kullback-Leibler divergence from `other`, in nats; inf where there is a tree that `other` has not.

        Parameters
        ----------
        other : TreeDistribution
            Over trees of the same sentences.

        Returns
        -------
        tensor (...)
            Differentiable by the scores of both. `torch.distributions.kl_divergence` is the same.

        Examples
        --------
        >>> import torch, spantree.torch
        >>> p = spantree.torch.TreeDistribution(torch.zeros(3, 3))
        >>> p.kl(spantree.torch.TreeDistribution(torch.tensor([[0, 0, 1], [0, 0, 0], [0, 0, 0.0]])))
        tensor(0.1201)
        """
        return ask.kl(*self._compared(other))[0]

    def renyi_entropy(self, alpha: float) -> Tensor:
        """Renyi entropy in nats.

        Parameters
        ----------
        alpha : float
            The order, at least 0. At 0 it is the log of the number of trees, at 1 Shannon's entropy, at infinity the
            min-entropy.

        Returns
        -------
        tensor (...)
            0 where there is no tree and on_infeasible is "mask".

        Examples
        --------
        >>> import torch, spantree.torch
        >>> spantree.torch.TreeDistribution(torch.zeros(4, 4)).renyi_entropy(2.0)
        tensor(2.1972)
        """
        if not alpha >= 0.0:
            raise ValueError(f"alpha must be at least 0, not {alpha!r}")
        if alpha == 1.0:
            return self.entropy()
        if alpha == math.inf:
            return -_or_0(self.log_prob(self.argmax()))
        relative = self._relative()
        if abs(alpha - 1.0) < 1e-5:
            # The difference of two logarithms has no digits left; the series has.
            values = torch.where(relative._scores > -torch.inf, relative._scores, 0.0)
            return self.entropy() - 0.5 * (alpha - 1.0) * relative.covariance(values, values)
        difference = _or_0(relative._power(alpha).log_partition()) - alpha * _or_0(relative.log_partition())
        return difference / (1.0 - alpha)

    def norm(self, p: float) -> Tensor:
        """The p-norm of the vector of all trees' probabilities.

        Parameters
        ----------
        p : float
            Positive; inf gives the highest probability.

        Returns
        -------
        tensor (...)
            0 where there is no tree and on_infeasible is "mask".

        Examples
        --------
        >>> import torch, spantree.torch
        >>> spantree.torch.TreeDistribution(torch.zeros(3, 3)).norm(2)
        tensor(0.7071)
        """
        if not p > 0.0:
            raise ValueError(f"p must be positive, not {p!r}")
        if p == math.inf:
            return self.log_prob(self.argmax()).exp()
        relative = self._relative()
        log_norm = _or_0(relative._power(p).log_partition()) / p - _or_0(relative.log_partition())
        return self._where_trees(log_norm.exp())

    def expectation(self, values: Tensor) -> Tensor:
        """E[sum of values over the tree's edges].

        Parameters
        ----------
        values : tensor like the scores, or with one more axis of R values per edge
            Values of edges that are in no tree do not matter, whatever they are.

        Returns
        -------
        tensor (...), or (..., R)
            Differentiable by the scores and by the values. 0 where there is no tree and on_infeasible is "mask".

        Examples
        --------
        >>> import torch, spantree.torch
        >>> distance = (torch.arange(4.0).unsqueeze(1) - torch.arange(4.0)).abs()
        >>> spantree.torch.TreeDistribution(torch.zeros(4, 4)).expectation(distance)
        tensor(4.6667)
        """
        scores, lengths, form = self._question
        features, several = self._read_values(values, "values")
        if not several:
            return ask.expectation(scores, features, lengths, form, self._with_gradient)[0]
        edges = ask.marginals(*self._question)
        axes = tuple(range(-edge_axes(form), 0))
        return (torch.where(edges > 0.0, features, 0.0) * edges).sum(axes).movedim(0, -1)

    def product_expectation(self, values: Tensor) -> Tensor:
        """E[product of values over the tree's edges].

        Parameters
        ----------
        values : tensor like the scores
            Not negative (`spantree.TreeDistribution` takes negative ones too).

        Returns
        -------
        tensor (...)
            Differentiable by the scores and by the values.

        Examples
        --------
        >>> import torch, spantree.torch
        >>> dist = spantree.torch.TreeDistribution(torch.zeros(3, 3))
        >>> dist.product_expectation(torch.tensor([[0, 2, 3], [0, 0, 5], [0, 7, 0.0]]))
        tensor(15.5000)
        """
        features, several = self._read_values(values, "values")
        if several:
            raise ValueError("values must have the shape of the scores")
        relative = self._relative()
        weighted = relative._with(relative._scores + features.log(), self._lengths)
        weighted._form &= ~STRICT
        return (weighted.log_partition() - _or_0(relative.log_partition())).exp()

    def covariance(self, r: Tensor | Literal["edges"], s: Tensor | Literal["edges"]) -> Tensor:
        """Covariance of two additive functions of the tree.

        Parameters
        ----------
        r, s : tensors like the scores, or with one more axis of R (S) values per edge
            Or "edges": the indicators of all edges, which are never materialised (one of the two only).

        Returns
        -------
        tensor (..., R, S)
            Without the axis of a side that has one value per edge; the axes of the scores in its place for "edges".
            Differentiable by the scores and by the values.

        Notes
        -----
        One product with the Hessian of log Z for each feature of the first side that is not "edges".

        Examples
        --------
        >>> import torch, spantree.torch
        >>> dist = spantree.torch.TreeDistribution(torch.zeros(3, 3))
        >>> dist.covariance(torch.tensor([[0, 1, 0], [0, 0, 0], [0, 0, 0.0]]), "edges")
        tensor([[ 0.0000,  0.2500, -0.2500],
                [ 0.0000,  0.0000,  0.2500],
                [ 0.0000, -0.2500,  0.0000]])
        """
        if isinstance(r, str) and isinstance(s, str):
            raise ValueError("the covariances of all pairs of edges are n^4 numbers; give r or s as values")
        first, other = (s, r) if isinstance(r, str) else (r, s)
        columns, several = self._read_values(first, "r or s")
        scores, lengths, form = self._question
        possible = ask.marginals(scores.detach(), lengths, form) > 0.0
        slopes = ask.hessian(scores, torch.where(possible, columns, 0.0), lengths, form)
        if isinstance(other, str):
            turned_slopes = self._turned(slopes)
            if not several:
                return turned_slopes
            return turned_slopes.movedim(0, -1 if isinstance(r, str) else len(self.batch_shape))
        rows, both = self._read_values(other, "r or s")
        rows = torch.where(possible, rows, 0.0)
        axes = tuple(range(-edge_axes(form), 0))
        if several and both:
            return (slopes.unsqueeze(1) * rows).sum(axes).movedim((0, 1), (-2, -1))
        result = (slopes * rows).sum(axes)
        return result.movedim(0, -1) if several or both else result

    def second_moment(self, r: Tensor, s: Tensor) -> Tensor:
        """E[r s^T] for two additive functions of the tree.

        Parameters
        ----------
        r, s : tensors like the scores, or with one more axis of R (S) values per edge
            Values per edge.

        Returns
        -------
        tensor (..., R, S)
            As for `covariance`.

        Examples
        --------
        >>> import torch, spantree.torch
        >>> ones = torch.ones(4, 4)  # every tree of three words has three edges
        >>> spantree.torch.TreeDistribution(torch.zeros(4, 4)).second_moment(ones, ones)
        tensor(9.)
        """
        of_r, of_s = self.expectation(r), self.expectation(s)
        r_has_axis, s_has_axis = (mean.dim() > len(self.batch_shape) for mean in (of_r, of_s))
        if r_has_axis and s_has_axis:
            of_r, of_s = of_r.unsqueeze(-1), of_s.unsqueeze(-2)
        elif r_has_axis or s_has_axis:
            of_r, of_s = (x if has else x.unsqueeze(-1) for x, has in ((of_r, r_has_axis), (of_s, s_has_axis)))
        return self.covariance(r, s) + of_r * of_s

    def expected_attachment(self, gold: Any, labels: Tensor | None = None) -> Tensor:
        """Expected share of words with the gold head (labelled scores: and the gold label).

        Parameters
        ----------
        gold : integers (..., n+1), or Trees
            Gold heads; what is no node counts as wrong.
        labels : integers like `gold`, optional
            Gold labels, needed if the scores are labelled (or give `Trees`).

        Returns
        -------
        tensor (...)
            Differentiable.

        Examples
        --------
        >>> import torch, spantree.torch
        >>> spantree.torch.TreeDistribution(torch.zeros(3, 3)).expected_attachment(torch.tensor([-1, 0, 1]))
        tensor(0.5000)
        """
        dist, heads, labels = self._read_trees(gold, labels)
        scores, lengths, form = dist._question
        there = ask.agreeing_edges(heads, labels, scores, form)
        words = dist.lengths.to(scores.dtype)
        share = torch.where(words > 0, 1.0 / words.clamp(min=1.0), 0.0)
        values = there * share.reshape(*share.shape, *(1,) * edge_axes(form))
        expected = ask.expectation(scores, values.to(scores.dtype), lengths, form, dist._with_gradient)[0]
        return torch.where(words > 0, expected, 1.0)

    def risk(self, gold: Any, labels: Tensor | None = None) -> Tensor:
        """One minus `expected_attachment`.

        Parameters
        ----------
        gold, labels : as for `expected_attachment`
            The gold tree.

        Returns
        -------
        tensor (...)
            Differentiable.

        Examples
        --------
        >>> import torch, spantree.torch
        >>> spantree.torch.TreeDistribution(torch.zeros(3, 3)).risk(torch.tensor([-1, 0, 1]))
        tensor(0.5000)
        """
        return 1.0 - self.expected_attachment(gold, labels)

    def generalized_expectation(self, values: Tensor, target: Any) -> Tensor:
        """Generalized expectation criterion: half the squared distance of E[values] from `target`.

        Parameters
        ----------
        values : as for `expectation`
            Features of the edges.
        target : tensor (..., R), or (...) where `values` has one value per edge
            What their expectations should be.

        Returns
        -------
        tensor (...)
            Differentiable.

        Examples
        --------
        >>> import torch, spantree.torch
        >>> dist = spantree.torch.TreeDistribution(torch.zeros(3, 3))
        >>> dist.generalized_expectation(torch.tensor([[0, 1, 0], [0, 0, 0], [0, 0, 0.0]]), 1.0)
        tensor(0.1250)
        """
        distance = self.expectation(values) - target
        half: Tensor = 0.5 * distance * distance
        return half.sum(-1) if values.dim() > self._scores.dim() else half

    # Random trees

    def sample(
        self, sample_shape: Any = (), *, generator: torch.Generator | None = None, method: Method = "auto"
    ) -> Any:
        """Random trees, exactly from the distribution, independent of each other.

        Parameters
        ----------
        sample_shape : sizes, or an int
            How many trees for each sentence: the axes before those of the batch.
        generator : torch.Generator, optional
            Where random bits come from: torch's default generator if not given. With the same state it gives the same
            trees, whatever the number of threads.
        method : {"auto", "wilson-marginal", "wilson-reject", "ancestral"}
            As in `spantree.TreeDistribution.sample`.

        Returns
        -------
        int64 tensor ``(*sample_shape, ..., n+1)``, or Trees
            Heads; with labelled scores `spantree.Trees` with heads and labels.

        Examples
        --------
        >>> import torch, spantree.torch
        >>> dist = spantree.torch.TreeDistribution(torch.tensor([[0, 1, 2], [0, 0, 3], [0, 5, 0.0]]))
        >>> dist.sample((2, 3), generator=torch.Generator().manual_seed(0)).shape
        torch.Size([2, 3, 3])
        """
        shape = torch.Size([sample_shape] if isinstance(sample_shape, int) else sample_shape)
        keys = self._keys(generator)
        scores, lengths, form = self._question
        heads, labels = ask.sample(scores, keys, lengths, form, shape.numel(), method)
        return self._trees(*(x.reshape(*shape, *x.shape[1:]) if x.numel() else x for x in (heads, labels)))

    def sample_without_replacement(
        self, k: int, *, generator: torch.Generator | None = None, method: DistinctMethod = "auto"
    ) -> Sample:
        """Random trees of which no two are the same: each drawn in proportion to its probability among those left.

        Parameters
        ----------
        k : int
            How many trees for each sentence. Where there are fewer, all of them.
        generator : torch.Generator, optional
            Where random bits come from.
        method : {"auto", "trie", "beam"}
            As in `spantree.TreeDistribution.sample_without_replacement`.

        Returns
        -------
        Sample
            ``heads``, ``labels``, ``log_probs`` (differentiable), Gumbel ``keys``, ``threshold``, and estimators.

        Examples
        --------
        >>> import torch, spantree.torch
        >>> sample = spantree.torch.TreeDistribution(torch.zeros(4, 4)).sample_without_replacement(9)
        >>> len({tuple(heads) for heads in sample.heads.tolist()})  # three words have nine trees
        9
        """
        scores, lengths, form = self._question
        drawn = ask.sample_without_replacement(
            scores, self._keys(generator), lengths, form, positive_integer("k", k), method
        )
        heads, labels, log_probs, *rest = drawn
        given = labels if self.labelled else None
        if self._with_gradient:
            log_probs = ask.log_prob(scores, heads, given, lengths, form, True)[0]
        return Sample(heads, given, log_probs, *rest)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All trees, for at most seven words.

        Parameters
        ----------
        expand : bool
            Whether the axes of the batch are filled, or of size 1.

        Returns
        -------
        int64 tensor (trees, ..., n+1)
            Heads. Sentences must be of equal lengths.

        Examples
        --------
        >>> import torch, spantree.torch
        >>> spantree.torch.TreeDistribution(torch.zeros(3, 3)).enumerate_support()
        tensor([[-1,  0,  1],
                [-1,  2,  0]])
        """
        full = self._lengths is None or bool((self._lengths == self._nodes - 1).all())
        if not (self.has_enumerate_support and full):
            raise NotImplementedError("trees are listed for at most seven words, without labels and of equal lengths")
        zeros = torch.zeros(self._nodes, self._nodes, dtype=torch.float64)
        count = round(ask.log_partition(zeros, None, self._form, False)[0].exp().item())
        heads = ask.topk(zeros, None, self._form, count)[0].to(self._scores.device)
        heads = heads.reshape(count, *(1,) * len(self.batch_shape), self._nodes)
        return heads.expand(count, *self.batch_shape, self._nodes) if expand else heads

    # Shared steps

    @property
    def _question(self) -> Door:
        return Door(self._scores, self._lengths, self._form)

    @property
    def _with_gradient(self) -> bool:
        return torch.is_grad_enabled() and self._scores.requires_grad

    def _turned(self, edges: Tensor) -> Tensor:
        return turned(edges, self._layout, self.labelled)

    def _trees(self, heads: Tensor, labels: Tensor) -> Any:
        return Trees(heads, labels=labels) if self.labelled else heads

    def _score(self, heads: Tensor, labels: Tensor | None) -> Tensor:
        return ask.score(self._scores, heads, labels, self._lengths, self._form)

    def _keys(self, generator: torch.Generator | None) -> Tensor:
        """128 random bits for each sentence."""
        least, most = torch.iinfo(torch.int64).min, torch.iinfo(torch.int64).max
        device = "cpu" if generator is None else generator.device
        return torch.randint(least, most, (*self.batch_shape, 2), generator=generator, device=device)

    def _read_trees(self, heads: Any, labels: Any, partial: bool = False) -> tuple[Self, Tensor, Tensor | None]:
        """Trees broadcast against the batch, and this distribution if its batch is the smaller one."""
        if isinstance(heads, Trees):
            heads, labels = heads.heads, heads.labels
        if self.labelled != (labels is not None) and not (partial and self.labelled):
            raise ValueError("labels are needed with labelled scores, and only with them")
        if heads.dim() == 0 or heads.shape[-1] != self._nodes or heads.is_floating_point():
            raise ValueError(f"heads must be integers (..., {self._nodes}), not {heads.dtype} of {tuple(heads.shape)}")
        if labels is not None and labels.shape != heads.shape:
            raise ValueError("heads and labels must have the same shape")
        shape = torch.broadcast_shapes(heads.shape[:-1], self.batch_shape)
        batch = shape[len(shape) - len(self.batch_shape) :]
        dist = self if batch == self.batch_shape else self.expand(batch)
        heads, labels = (None if x is None else x.long().expand(*shape, self._nodes) for x in (heads, labels))
        return dist, heads, labels

    def _read_values(self, values: Any, name: str) -> tuple[Tensor, bool]:
        """Values per edge as (*batch, head, dep(, label)), or (R, ...) and True if they came with an axis for R."""
        shape = self._scores.shape
        several = values.dim() == len(shape) + 1
        moved = values.movedim(-1, 0) if several else values
        if values.dim() > len(shape) + 1 or torch.broadcast_shapes(moved.shape[several:], shape) != shape:
            raise ValueError(
                f"{name} have shape {tuple(values.shape)}; they must be {tuple(shape)}, or that and one more"
            )
        wide = moved.expand(*moved.shape[:several], *shape)
        return self._turned(wide).to(self._scores.dtype), several

    def _compared(self, other: TreeDistribution) -> tuple[Tensor, Tensor, Tensor | None, int, bool]:
        if not isinstance(other, TreeDistribution):
            raise TypeError(f"other must be a spantree.torch.TreeDistribution, not {type(other).__name__}")
        if (self._form ^ other._form) & ~STRICT:
            raise ValueError("the two distributions must agree in root, projective and labelled")
        batch = torch.broadcast_shapes(self.batch_shape, other.batch_shape)
        p, q = (x if x.batch_shape == batch else x.expand(batch) for x in (self, other))
        if p._scores.shape != q._scores.shape:
            raise ValueError("the two distributions must have the same sentences and labels")
        if p._lengths is not q._lengths and not torch.compiler.is_compiling() and bool((p.lengths != q.lengths).any()):
            raise ValueError("the two distributions must have sentences of the same lengths")
        dtype = torch.promote_types(p._scores.dtype, q._scores.dtype)
        with_gradient = p._with_gradient or q._with_gradient
        return p._scores.to(dtype), q._scores.to(dtype), p._lengths, self._form & other._form, with_gradient

    def _relative(self) -> Self:
        """The same distribution with the best edge into each word at 0, so that no digits are lost to a shift."""
        axes = (-3, -1) if self.labelled else (-2,)
        real = ask.real_edges(*self._question)
        scores = torch.where(real, self._scores, -torch.inf)
        best = scores.detach().amax(axes, keepdim=True)
        other = self._with(torch.where(scores > -torch.inf, scores - best, -torch.inf), self._lengths)
        other._layout = "head_dep"
        return other

    def _power(self, alpha: float) -> Self:
        """Scores times alpha; what is forbidden stays so."""
        possible = self._scores > -torch.inf
        scores = torch.where(possible, self._scores, 0.0)
        return self._with(torch.where(possible, alpha * scores, -torch.inf), self._lengths)

    def _where_trees(self, values: Tensor) -> Tensor:
        """The values, 0 for sentences without a tree."""
        if self._form & STRICT:
            return values
        some = ask.log_partition(self._scores.detach(), self._lengths, self._form, False)[0] > -torch.inf
        return torch.where(some, values, 0.0)


def _or_0(log_z: Tensor) -> Tensor:
    """0 for a sentence without a tree."""
    return torch.where(log_z > -torch.inf, log_z, 0.0)


class _Scores(constraints.Constraint):
    """Numbers or -inf, but in column 0 and on the diagonal, where anything may stand."""

    def __init__(self, event_dim: int) -> None:
        self.event_dim = event_dim

    def check(self, value: Tensor) -> Tensor:
        fine = ~(value.isnan() | (value == torch.inf))
        nodes = torch.arange(value.shape[-self.event_dim], device=value.device)
        edge = (nodes != nodes.unsqueeze(-1)) & (nodes > 0)
        fine = fine | ~(edge.unsqueeze(-1) if self.event_dim == 3 else edge)
        return fine.flatten(-self.event_dim).all(-1)


class _TreesOf(constraints.Constraint):
    """Heads that are a tree of a distribution."""

    is_discrete = True
    event_dim = 1

    def __init__(self, dist: TreeDistribution) -> None:
        self._dist = dist

    def check(self, value: Any) -> Tensor:
        with torch.no_grad():
            return self._dist.score(value) > -torch.inf


@register_kl(TreeDistribution, TreeDistribution)
def _kl(p: TreeDistribution, q: TreeDistribution) -> Tensor:
    return p.kl(q)
