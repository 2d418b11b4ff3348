"""SuPar's `mst`, `chuliu_edmonds`, `tarjan`, `MatrixTree` and `DependencyCRF` (``supar.structs``): tensors
``[dependent, head]``.

>>> import torch
>>> from spantree.compat.supar import MatrixTree
>>> dist = MatrixTree(torch.tensor([[[0, 0, 0], [1, 0, 5], [2, 3, 0.0]]]))
>>> dist.argmax
tensor([[0, 2, 0]])
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import ClassVar

try:
    import torch
except ImportError as error:
    raise ImportError("spantree.compat.supar takes and gives tensors: pip install 'spantree[torch]'") from error
from torch.distributions import Distribution, constraints, register_kl

from torch import Tensor

from ..torch import TreeDistribution
from .stanza import tarjan as cycles_of


def mst(scores: Tensor, mask: Tensor, multiroot: bool = False) -> Tensor:
    """The best tree of each sentence. Unlike the original, it does not write into `scores`.

    Parameters
    ----------
    scores : tensor (B, n+1, n+1)
        ``[dependent, head]``, node 0 is ROOT.
    mask : boolean tensor (B, n+1)
        True at words; False at ROOT and in the padding.
    multiroot : bool
        Whether several edges may leave ROOT.

    Returns
    -------
    int64 tensor (B, n+1)
        Heads; 0 at ROOT and in the padding. On the device of `mask`.

    Examples
    --------
    >>> mst(torch.tensor([[[0, 0, 0], [1, 0, 5], [2, 3, 0.0]]]), torch.tensor([[False, True, True]]))
    tensor([[0, 2, 0]])
    """
    trees = TreeDistribution(
        scores.detach(), lengths=mask.sum(1), root="multi" if multiroot else "single", layout="dep_head"
    )
    return _with_zeros(trees.argmax()).to(mask.device)


def chuliu_edmonds(s: Tensor) -> Tensor:
    """The best tree of one sentence, several edges out of ROOT allowed. Unlike the original, it leaves `s` as it was.

    Parameters
    ----------
    s : tensor (n+1, n+1)
        ``[dependent, head]``, node 0 is ROOT.

    Returns
    -------
    int64 tensor (n+1,)
        Heads; 0 at ROOT.

    Examples
    --------
    >>> chuliu_edmonds(torch.tensor([[0, 0, 0], [1, 0, 5], [2, 3, 0.0]]))
    tensor([0, 2, 0])
    """
    return _with_zeros(TreeDistribution(s.detach(), root="multi", layout="dep_head").argmax())


def tarjan(sequence: Sequence[int]) -> Iterator[list[int]]:
    """The cycles among heads.

    Parameters
    ----------
    sequence : list of n integers
        Head of each word, from 0 (ROOT) to n; words count from 1.

    Yields
    ------
    list of int
        The words of a cycle of two or more, each the head of the one before it, the first word of the sentence last.

    Examples
    --------
    >>> next(tarjan([2, 5, 0, 3, 1]))  # 1 has head 2, 2 has head 5, 5 has head 1
    [2, 5, 1]
    """
    heads = [0, *sequence]
    for cycle in cycles_of(heads):
        first = int(cycle.argmax())
        words = [heads[first]]
        while words[-1] != first:
            words.append(heads[words[-1]])
        yield words


class MatrixTree(Distribution):
    """The distribution over trees, crossing arcs or not. Named after the theorem that the original uses.

    Parameters
    ----------
    scores : tensor (B, n+1, n+1)
        ``[dependent, head]``, node 0 is ROOT. Unlike the original, it is not made to require gradients.
    lens : integer tensor (B,), optional
        Words of each sentence, without ROOT.
    multiroot : bool
        Whether several edges may leave ROOT.

    Attributes
    ----------
    batch_shape, event_shape : torch.Size
        (B,) and (n+1,), that of heads.
    log_partition : tensor (B,)
    marginals : tensor (B, n+1, n+1)
        ``[dependent, head]``.
    max, entropy : tensor (B,)
    argmax, mode : int64 tensor (B, n+1)
        Heads of the best tree; 0 at ROOT and in the padding.

    Examples
    --------
    >>> dist = MatrixTree(torch.zeros(1, 4, 4), lens=torch.tensor([3]))
    >>> dist.log_partition.exp().round()  # three words have nine trees with one root
    tensor([9.])
    >>> dist.log_prob(torch.tensor([[0, 2, 0, 2]])).exp()
    tensor([0.1111])
    """

    _projective: ClassVar[bool] = False
    arg_constraints: ClassVar[dict[str, constraints.Constraint]] = {}

    def __init__(self, scores: Tensor, lens: Tensor | None = None, multiroot: bool = False) -> None:
        self.scores = scores
        self.multiroot = multiroot
        self._trees = TreeDistribution(
            scores,
            lengths=lens,
            root="multi" if multiroot else "single",
            projective=self._projective,
            layout="dep_head",
        )
        super().__init__(self._trees.batch_shape, self._trees.event_shape, validate_args=False)
        self.lens = self._trees.lengths
        positions = torch.arange(scores.shape[-1], device=scores.device)
        self.mask = (positions > 0) & (positions <= self.lens[:, None])

    def __repr__(self) -> str:
        return f"{type(self).__name__}(multiroot={self.multiroot})"

    @cached_property
    def log_partition(self) -> Tensor:
        return self._trees.log_partition()

    @cached_property
    def marginals(self) -> Tensor:
        return self._trees.marginals()

    @cached_property
    def max(self) -> Tensor:
        return self._trees.max()

    @cached_property
    def argmax(self) -> Tensor:
        return _with_zeros(self._trees.argmax())

    @property
    def mode(self) -> Tensor:
        return self.argmax

    @cached_property
    def entropy(self) -> Tensor:  # type: ignore[override]
        return self._trees.entropy()

    def perplexity(self) -> Tensor:
        """The number of equally likely trees that would be as hard to guess.

        Returns
        -------
        tensor (B,)
            exp of the entropy.
        """
        return self.entropy.exp()

    @property
    def support(self) -> constraints.Constraint:
        """Heads that are a tree of this distribution."""
        return self._trees.support

    def kmax(self, k: int) -> Tensor:
        """Scores of the k best trees; -inf where there are fewer.

        Parameters
        ----------
        k : int
            How many.

        Returns
        -------
        tensor (B, k)
            Best first.
        """
        return self._trees.topk(k).scores.movedim(0, -1)

    def topk(self, k: int) -> Tensor:
        """The k best trees.

        Parameters
        ----------
        k : int
            How many.

        Returns
        -------
        int64 tensor (B, n+1, k)
            Heads, best first; 0 at ROOT, in the padding, and where there are fewer trees.
        """
        return _with_zeros(self._trees.topk(k).heads).movedim(0, -1)

    def sample(self) -> Tensor:  # type: ignore[override]
        """A random tree of each sentence.

        Returns
        -------
        tensor (B, n+1, n+1)
            1 at its edges, ``[dependent, head]``, 0 elsewhere.
        """
        return self._trees.edges_of(self._trees.sample()).to(self.scores.dtype)

    def cross_entropy(self, other: MatrixTree) -> Tensor:
        """Cross entropy relative to another distribution over the same trees.

        Parameters
        ----------
        other : MatrixTree or DependencyCRF
            Of the same class.

        Returns
        -------
        tensor (B,)
            In nats.
        """
        return self._trees.cross_entropy(other._trees)

    def kl(self, other: MatrixTree) -> Tensor:
        """Kullback-Leibler divergence from another distribution over the same trees.

        Parameters
        ----------
        other : MatrixTree or DependencyCRF
            Of the same class.

        Returns
        -------
        tensor (B,)
            In nats.
        """
        return self._trees.kl(other._trees)

    def log_prob(self, value: Tensor, partial: bool = False) -> Tensor:
        """Log-probabilities of trees.

        Parameters
        ----------
        value : int64 tensor (B, n+1)
            Heads. What stands at ROOT and in the padding does not matter.
        partial : bool
            Whether heads below 0 are unknown: then the log of the sum over all completions.

        Returns
        -------
        tensor (B,)
            -inf where heads are no tree of this distribution. (The original's is finite.)
        """
        if not partial:
            return self._trees.log_prob(value)
        return self._trees.log_prob(torch.where(value < 0, -2, value), partial=True)

    def score(self, value: Tensor, partial: bool = False) -> Tensor:
        """Sums of the scores of trees' edges: log-probabilities before they are normalised.

        Parameters
        ----------
        value : int64 tensor (B, n+1)
            As for `log_prob`.
        partial : bool
            As for `log_prob`.

        Returns
        -------
        tensor (B,)
            -inf where heads are no tree of this distribution.
        """
        if not partial:
            return self._trees.score(value)
        return self.log_prob(value, partial=True) + self.log_partition


class DependencyCRF(MatrixTree):
    """The distribution over projective trees: no two arcs cross, ROOT stands left of the first word.

    Parameters
    ----------
    scores : tensor (B, n+1, n+1)
        ``[dependent, head]``, node 0 is ROOT.
    lens : integer tensor (B,), optional
        Words of each sentence, without ROOT.
    multiroot : bool
        Whether several edges may leave ROOT.

    Examples
    --------
    >>> dist = DependencyCRF(torch.zeros(1, 4, 4))
    >>> dist.log_partition.exp().round()  # of the nine trees of three words, two have crossing arcs
    tensor([7.])
    """

    _projective = True


@register_kl(MatrixTree, MatrixTree)  # type: ignore[no-untyped-call, untyped-decorator]
def _kl(p: MatrixTree, q: MatrixTree) -> Tensor:
    return p.kl(q)


def _with_zeros(heads: Tensor) -> Tensor:
    """As CoNLL-U and SuPar have it: 0 where there is no head."""
    return heads.clamp(min=0)
