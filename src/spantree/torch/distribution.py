"""`TreeDistribution` with tensors: a `torch.distributions.Distribution` over the trees of sentences."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from torch.distributions import Distribution, constraints, register_kl

import spantree
import torch
from torch import Tensor

from .._front.base import NO_NAMES, Names, in_double, in_full, rounded
from .._front.form import LABELLED, STRICT, divided, edge_axes, root_label_edges
from .._names import names_of_labels
from .._options import Layout, OnInfeasible, RootMode, check_flag, positive_integer, read_sizes
from .._trees import Trees
from . import _questions as ask
from ._constraints import ScoresOf, TreesOf
from ._door import copied, divisor, read, read_list, widened
from ._operator import can_be_looked_at
from ._steps import SignedProduct, TensorSteps
from .samples import Sample

if TYPE_CHECKING:
    from typing_extensions import Self

    from .._sampling import DistinctMethod, Method


class TreeDistribution(TensorSteps, Distribution):
    """The distribution over dependency trees in which a tree's log-weight is the sum of its edges' scores.

    Parameters
    ----------
    scores : tensor (..., n+1, n+1), or a list of matrices of different sizes
        ``scores[..., h, d]`` is the log-weight of the edge from head ``h`` to dependent ``d``; node 0 is ROOT. ``-inf``
        forbids an edge; column 0 and the diagonal are ignored. Any strides; results have its dtype and device. A list
        in gives lists of trees and of marginals out.
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
        scores of -inf, marginals and all gradients 0, and NaN for entropies and expectations.
    temperature : float
        Scores are divided by it: above 1 the distribution is flatter, below 1 sharper.
    root_label : int or str, optional
        With labels: that label stands on root edges and nowhere else.
    words, labels : names, optional
        Of the words of each sentence, and of the labels: for `explain` and `numpy`.
    validate_args : bool, optional
        As in `torch.distributions`; scores and trees are checked by who reads them, whatever it is.

    Notes
    -----
    Every quantity is differentiable by the scores, as often as you like, by closed forms. Those of log Z up to the
    third (of most others to the second) need one solve; each further one needs as many as there are edges.

    Computation is in double precision, on the host, and rounded once to the dtype of the scores; under `torch.autocast`
    half precision is answered in float32. Scores and lengths are copied, once, here; gradients flow through the copy.
    Nothing else is kept between calls.

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
        scores: Tensor | Sequence[Tensor],
        *,
        lengths: Any = None,
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
        validate_args: bool | None = None,
    ) -> None:
        sizes = None
        if isinstance(scores, (list, tuple)):
            scores, lengths, mask, sizes = read_list(scores, lengths, mask)
        settings = root, projective, labelled, layout, on_infeasible
        read_scores, lengths, form = read(scores, lengths, mask, *settings, snapshot=sizes is None)  # type: ignore[arg-type]
        dtype = read_scores.dtype
        by = divisor(temperature)
        if isinstance(by, Tensor) or by != 1.0:
            read_scores = divided(torch, widened(read_scores), by)
        if root_label is not None:
            if not labelled:
                raise ValueError("root_label needs labelled scores; say labelled=True")
            edges = torch.tensor(root_label_edges(root_label, labels, read_scores.shape), device=read_scores.device)
            read_scores = torch.where(edges, read_scores, -torch.inf)
        if labels is not None:
            labels = names_of_labels(labels, labelled, read_scores.shape[-1])
        named = words is not None or labels is not None or sizes is not None
        names = Names(words, labels, sizes) if named else NO_NAMES
        validate = validate_args is not None and check_flag("validate_args", validate_args)
        self._set(read_scores, lengths, form, layout, validate, names, dtype)

    def _set(
        self,
        scores: Tensor,
        lengths: Tensor | None,
        form: int,
        layout: Layout,
        validate_args: bool,
        names: Names,
        dtype: torch.dtype,
    ) -> None:
        self._scores, self._lengths, self._form, self._dtype = scores, lengths, form, dtype
        self._layout, self._names = layout, names
        axes = 3 if form & LABELLED else 2
        shape = scores.shape
        Distribution.__init__(self, shape[:-axes], shape[-axes : len(shape) - axes + 1], validate_args=False)
        self._validate_args = validate_args

    def _with(
        self,
        scores: Tensor,
        lengths: Tensor | None,
        names: Names | None = None,
        dtype: torch.dtype | None = None,
    ) -> Self:
        other = type(self).__new__(type(self))
        names = self._names if names is None else names
        dtype = self._dtype if dtype is None else dtype
        other._set(scores, lengths, self._form, self._layout, self._validate_args, names, dtype)
        return other

    # What it is

    @property
    def lengths(self) -> Tensor:
        """Words of each sentence, in the shape of the batch."""
        if self._lengths is not None:
            return self._lengths.to(self._scores.device)  # type: ignore[no-any-return]
        return torch.full(self.batch_shape, self._nodes - 1, device=self._scores.device)

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        """Scores are numbers, or -inf."""
        return {"scores": ScoresOf(edge_axes(self._form))}

    @property
    def support(self) -> constraints.Constraint:
        """Heads that are a tree of this distribution."""
        return TreesOf(self)

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
        names = self._names if batch == self.batch_shape else Names(labels=self._names.labels)
        return self._with(self._scores.expand(*batch, *self._scores.shape[len(self.batch_shape) :]), lengths, names)

    def __getitem__(self, index: Any) -> Self:
        """The part of the batch that the index picks of a tensor of shape `batch_shape`."""
        given = index if isinstance(index, tuple) else (index,)
        torch.empty(self.batch_shape, device="meta")[given]  # raises if it asks for more axes than there are
        edges = (slice(None),) * edge_axes(self._form) if any(part is Ellipsis for part in given) else (...,)
        lengths = None if self._lengths is None else self._lengths[given]
        scores, names = self._scores[(*given, *edges)], self._names.at(index)
        if self._sizes is not None and isinstance(index, int):
            size = self._sizes[index]
            scores, lengths = scores[:size, :size], None
        return self._with(scores, lengths, names)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """With tensors of its own; gradients flow to the same scores."""
        lengths = None if self._lengths is None else self._lengths.clone()
        return self._with(copied(self._scores), lengths, copy.deepcopy(self._names, memo))

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
        lengths = None if self._lengths is None else self._lengths.cpu().numpy()
        return self._as_numpy(
            self._host(self._edges_out(self._scores)), lengths, "raise" if self._form & STRICT else "mask"
        )

    @staticmethod
    def _host(scores: Any) -> Any:
        if isinstance(scores, list):
            return [TreeDistribution._host(matrix) for matrix in scores]
        wide = scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores
        return wide.detach().cpu().numpy()

    # Trees

    def argmax(self, **constraints: Any) -> Any:
        """The best tree of each sentence.

        Parameters
        ----------
        **constraints
            `at_most_one`, `exactly`, `at_most`, `limit`: as in `spantree.TreeDistribution.argmax`, which is asked then.

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
        return self._best(constraints) if constraints else self._trees(*ask.argmax(*self._question))

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
        return self._rounded(self._scores_of(heads, labels if self.labelled else None))  # type: ignore[no-any-return]

    def topk(self, k: int, **constraints: Any) -> Trees[Tensor, Tensor]:
        """The k best trees, best first, exact.

        Parameters
        ----------
        k : int
            How many.
        **constraints
            `at_most_one`, `exactly`, `at_most`, `limit`: as in `spantree.TreeDistribution.topk`, which is asked then.

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
        if constraints:
            return self._scored(self.numpy().topk(k, **constraints))
        heads, labels, scores = ask.topk(*self._question, positive_integer("k", k))
        given = labels if self.labelled else None
        if self._may_have_derivative:
            there = scores > -torch.inf
            scores = torch.where(there, self._for_many(heads)._scores_of(heads, given), -torch.inf)
        named = None if given is None else self._nodes_out(given)
        return Trees(self._nodes_out(heads), self._several_out(self._rounded(scores)), named)

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
        return self._rounded(dist._for_many(heads)._scores_of(heads, labels))  # type: ignore[no-any-return]

    @rounded
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
        partial = check_flag("partial", partial)
        dist, heads, labels = self._read_trees(value, labels, partial)
        dist = dist._for_many(heads)
        if self._validate_args and not partial:
            is_none = dist._scores_of(heads, labels).detach() == -torch.inf
            if can_be_looked_at(is_none) and bool(is_none.any()):
                raise ValueError("a value is no tree of this distribution")
        if not partial and heads.shape[:-1] != dist.batch_shape:
            return ask.log_prob(dist._scores, heads, labels, dist._lengths, dist._form, dist._with_gradient)[0]
        dist = dist.expand(heads.shape[:-1])
        loss, *_ = ask.crf_loss(dist._scores, heads, labels, dist._lengths, dist._form, partial, dist._with_gradient)
        return 0.0 - loss  # of a tree that is certain 0, not -0

    # Inference

    @rounded
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

    @rounded
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
        return self._edges_out(ask.marginals(*self._question))  # type: ignore[no-any-return]

    @rounded
    def entropy(self) -> Tensor:
        """Shannon entropy in nats.

        Returns
        -------
        tensor (...)
            NaN, with gradient 0, where there is no tree and on_infeasible is "mask".

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
        return ask.cross_entropy(*self._compared(other))[0].to(torch.promote_types(self._dtype, other._dtype))

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
        return ask.kl(*self._compared(other))[0].to(torch.promote_types(self._dtype, other._dtype))

    @in_full
    def expectation(self, values: Tensor) -> Tensor:
        """E[sum of values over the tree's edges].

        Parameters
        ----------
        values : tensor like the scores, or with one more axis of R values per edge
            Values of edges that are in no tree do not matter, whatever they are.

        Returns
        -------
        tensor (...), or (..., R)
            Differentiable by the scores and by the values. NaN, with gradient 0, where there is no tree.

        Examples
        --------
        >>> import torch, spantree.torch
        >>> distance = (torch.arange(4.0).unsqueeze(1) - torch.arange(4.0)).abs()
        >>> spantree.torch.TreeDistribution(torch.zeros(4, 4)).expectation(distance)
        tensor(4.6667)
        """
        features, several = self._read_values(values, "values")
        found = self._expectation(features)
        return found.movedim(0, -1) if several else found

    @in_double
    def product_expectation(self, values: Tensor) -> Tensor:
        """E[product of values over the tree's edges].

        Parameters
        ----------
        values : tensor like the scores
            Negative ones go by way of `spantree.TreeDistribution`, see there: then there is a first derivative by the
            scores, none by the values, and neither `torch.func` nor `torch.compile`.

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
        >>> dist.product_expectation(torch.tensor([[0, -2, 3], [0, 0, 5], [0, 7, 0.0]]))
        tensor(5.5000)
        """
        features, several = self._read_values(values, "values")
        if several:
            raise ValueError("values must have the shape of the scores")
        if can_be_looked_at(features) and bool((features < 0).any()):
            product: Tensor = SignedProduct.apply(self._scores, features, self._lengths, self._form)
            return product
        return self._product_of_nonnegative(features)

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
        shape = torch.Size(read_sizes("sample_shape", sample_shape))
        keys = self._keys(generator)
        scores, lengths, form = self._question
        heads, labels = ask.sample(scores, keys, lengths, form, shape.numel(), method)
        size = *shape, *heads.shape[1:]
        return self._trees(heads.reshape(size), labels.reshape(size) if self.labelled else None)

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
        if self._may_have_derivative:
            wide = self._for_many(heads)._scores
            log_probs = ask.log_prob(wide, heads, given, lengths, form, self._with_gradient)[0]
        keys, *of_sentences = rest
        named = None if given is None else self._nodes_out(given)
        return Sample(
            self._nodes_out(heads),
            named,
            *(self._several_out(self._rounded(numbers)) for numbers in (log_probs, keys)),
            *map(self._rounded, of_sentences),
        )

    def iter_without_replacement(self, *, generator: torch.Generator | None = None) -> Iterator[Trees[Tensor, Tensor]]:
        """One sentence's trees in random order, each when it is asked for, none twice, until none is left.

        Parameters
        ----------
        generator : torch.Generator, optional
            Where random bits come from: the trees are those of `sample_without_replacement`, in the same order.

        Yields
        ------
        Trees
            ``heads (n+1,)``, ``scores``: the tree's log-probability, differentiable, ``labels (n+1,)`` if the scores
            are labelled.

        Examples
        --------
        >>> import torch, spantree.torch
        >>> dist = spantree.torch.TreeDistribution(torch.zeros(4, 4))
        >>> round(sum(tree.scores.exp().item() for tree in dist.iter_without_replacement()), 4)  # all of its trees
        1.0
        """
        return self._one_by_one(self._keys(generator).cpu().numpy().view(np.uint64))

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
        expand = check_flag("expand", expand)
        full = self._lengths is None or bool((self._lengths == self._nodes - 1).all())
        if not (self.has_enumerate_support and full):
            raise NotImplementedError("trees are listed for at most seven words, without labels and of equal lengths")
        zeros = torch.zeros(self._nodes, self._nodes, dtype=torch.float64, device="cpu")
        count = round(ask.log_partition(zeros, None, self._form, False)[0].exp().item())
        heads = ask.topk(zeros, None, self._form, count)[0].to(self._scores.device)
        heads = heads.reshape(count, *(1,) * len(self.batch_shape), self._nodes)
        return heads.expand(count, *self.batch_shape, self._nodes) if expand else heads

    # Shared steps

    def _keys(self, generator: torch.Generator | None) -> Tensor:
        """128 random bits for each sentence."""
        least, most = torch.iinfo(torch.int64).min, torch.iinfo(torch.int64).max
        size = *self.batch_shape, 2
        if generator is None:  # with None in its place torch does not compile for batches of any size
            return torch.randint(least, most, size, device="cpu")
        return torch.randint(least, most, size, generator=generator, device=generator.device)

    def _compared(self, other: TreeDistribution) -> tuple[Tensor, Tensor, Tensor | None, int, bool]:
        if not isinstance(other, TreeDistribution):
            raise TypeError(f"other must be a spantree.torch.TreeDistribution, not {type(other).__name__}")
        if (self._form ^ other._form) & ~STRICT:
            raise ValueError("the two distributions must agree in root, projective and labelled")
        batch = torch.broadcast_shapes(self.batch_shape, other.batch_shape)
        p, q = (x if x.batch_shape == batch else x.expand(batch) for x in (self, other))
        if p._scores.shape != q._scores.shape:
            raise ValueError("the two distributions must have the same sentences and labels")
        if p._lengths is not q._lengths:
            different = p.lengths != q.lengths
            if can_be_looked_at(different) and bool(different.any()):
                raise ValueError("the two distributions must have sentences of the same lengths")
        dtype = torch.promote_types(p._scores.dtype, q._scores.dtype)
        with_gradient = p._with_gradient or q._with_gradient
        return p._scores.to(dtype), q._scores.to(dtype), p._lengths, self._form & other._form, with_gradient


@register_kl(TreeDistribution, TreeDistribution)
def _kl(p: TreeDistribution, q: TreeDistribution) -> Tensor:
    return p.kl(q)
