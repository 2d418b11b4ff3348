"""torch-struct's dependency distributions: tensors ``[head, dependent]`` without ROOT, root scores on the diagonal.

Trees ("events") are 0/1 tensors of the shape of the potentials. Two words, where word 2 is the root and the head of
word 1:

    scores                         event
    root -> 1      1 -> 2          0   0
    2 -> 1      root -> 2          1   1
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

try:
    import torch
except ImportError as error:
    raise ImportError("spantree.compat.torch_struct takes and gives tensors: pip install 'spantree[torch]'") from error
from torch.distributions import Distribution, constraints, register_kl

from torch import Tensor

from ..torch import TreeDistribution

_NO_EDGE = -1e9


def convert(logits: Tensor) -> Tensor:
    """Moves root scores from the diagonal to a row 0 of their own.

    Parameters
    ----------
    logits : tensor (B, N, N) or (B, N, N, L)
        Root scores on the diagonal.

    Returns
    -------
    tensor (B, N+1, N+1) or (B, N+1, N+1, L)
        Row 0 is ROOT; -1e9 in column 0 and on the diagonal.
    """
    size = logits.shape[1]
    nodes = range(1, size + 1)
    moved = logits.new_full((logits.shape[0], size + 1, size + 1, *logits.shape[3:]), _NO_EDGE)
    moved[:, 1:, 1:] = logits
    moved[:, 0, 1:] = logits[:, range(size), range(size)]
    moved[:, nodes, nodes] = _NO_EDGE
    return moved


def unconvert(logits: Tensor) -> Tensor:
    """Moves what row 0 holds to the diagonal: the inverse of `convert`.

    Parameters
    ----------
    logits : tensor (B, N+1, N+1) or (B, N+1, N+1, L)
        Row 0 is ROOT.

    Returns
    -------
    tensor (B, N, N) or (B, N, N, L)
        Root scores on the diagonal.
    """
    size = logits.shape[1] - 1
    moved = logits[:, 1:, 1:].clone()
    moved[:, range(size), range(size)] = logits[:, 0, 1:]
    return moved


def deptree_part(arc_scores: Tensor, multi_root: bool, lengths: Any = None, eps: float = 1e-5) -> Tensor:
    """Log-partition function over trees, crossing arcs or not.

    Parameters
    ----------
    arc_scores : tensor (B, N, N)
        Root scores on the diagonal.
    multi_root : bool
        Whether several edges may leave ROOT.
    lengths : integers (B,), optional
        Words of each sentence.
    eps : float
        Without effect: nothing is added to the weights.

    Returns
    -------
    tensor (B,)
        Differentiable.
    """
    return NonProjectiveDependencyCRF(arc_scores, lengths, multiroot=multi_root).partition


def deptree_nonproj(arc_scores: Tensor, multi_root: bool, lengths: Any = None, eps: float = 1e-5) -> Tensor:
    """Marginals of the edges of trees, crossing arcs or not.

    Parameters
    ----------
    arc_scores : tensor (B, N, N)
        Root scores on the diagonal.
    multi_root : bool
        Whether several edges may leave ROOT.
    lengths : integers (B,), optional
        Words of each sentence.
    eps : float
        Without effect: nothing is added to the weights.

    Returns
    -------
    tensor (B, N, N)
        Those of root edges on the diagonal.
    """
    return NonProjectiveDependencyCRF(arc_scores, lengths, multiroot=multi_root).marginals


class DepTree:
    """Heads to 0/1 tensors and back."""

    @staticmethod
    def to_parts(sequence: Tensor, extra: None = None, lengths: Any = None) -> Tensor:
        """The edges of trees.

        Parameters
        ----------
        sequence : int64 tensor (B, N)
            Head of each word, from 0 (ROOT) to N.
        extra : None
            Without effect, as there.
        lengths : integers (B,), optional
            Words of each sentence.

        Returns
        -------
        int64 tensor (B, N, N)
            1 at the trees' edges; those of roots on the diagonal.

        Examples
        --------
        >>> DepTree.to_parts(torch.tensor([[2, 0]]))
        tensor([[[0, 0],
                 [1, 1]]])
        """
        batch, size = sequence.shape
        device = sequence.device
        words = torch.as_tensor([size] * batch if lengths is None else lengths, device=device)
        real = torch.arange(size, device=device) < words[:, None]
        edges = torch.nn.functional.one_hot(sequence, size + 1) * real[..., None]
        with_root = torch.cat([edges.new_zeros(batch, size + 1, 1), edges.transpose(1, 2)], dim=2)
        return unconvert(with_root)

    @staticmethod
    def from_parts(arcs: Tensor) -> tuple[Tensor, None]:
        """The heads of trees.

        Parameters
        ----------
        arcs : tensor (B, N, N)
            1 at the trees' edges; those of roots on the diagonal.

        Returns
        -------
        heads : int64 tensor (B, N)
            From 0 (ROOT, or none) to N.
        nothing : None
            As there.

        Examples
        --------
        >>> DepTree.from_parts(torch.tensor([[[0, 0], [1, 1]]]))
        (tensor([[2, 0]]), None)
        """
        size = arcs.shape[-1]
        words = torch.arange(size, device=arcs.device)
        heads = arcs.long().argmax(dim=1)
        return torch.where((heads == words) | (arcs == 0).all(dim=1), 0, heads + 1), None


class NonProjectiveDependencyCRF(Distribution):
    """The distribution over trees, crossing arcs or not.

    Parameters
    ----------
    log_potentials : tensor (B, N, N) or (B, N, N, L)
        ``[head, dependent]`` (and label), root scores on the diagonal.
    lengths : integers (B,), optional
        Words of each sentence.
    args : dict
        Without effect, as there.
    multiroot : bool
        Whether several edges may leave ROOT. (There, a projective distribution's is changed by the next one made.)
    validate_args : bool
        Without effect.

    Attributes
    ----------
    batch_shape, event_shape : torch.Size
        (B,), and that of one sentence's potentials.
    partition : tensor (B,)
        Log-partition function.
    marginals : tensor like `log_potentials`
    max, entropy : tensor (B,)
    argmax, mode : tensor like `log_potentials`
        The best tree: 1 at its edges.
    count : tensor (B,)
        How many trees there are.

    Examples
    --------
    >>> dist = NonProjectiveDependencyCRF(torch.tensor([[[1, 3], [5, 2.0]]]))
    >>> dist.argmax
    tensor([[[0., 0.],
             [1., 1.]]])
    >>> dist.log_prob(dist.argmax).exp()
    tensor([0.9526])
    """

    _projective: ClassVar[bool] = False
    struct = DepTree
    arg_constraints: ClassVar[dict[str, constraints.Constraint]] = {}

    def __init__(
        self,
        log_potentials: Tensor,
        lengths: Any = None,
        args: Any = None,
        multiroot: bool = False,
        validate_args: bool = False,
    ) -> None:
        self.log_potentials = log_potentials
        self.lengths = lengths
        self.args = {} if args is None else args
        self.multiroot = multiroot
        super().__init__(log_potentials.shape[:1], log_potentials.shape[1:], validate_args=False)
        self._trees = self._distribution(log_potentials)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(log_potentials: {tuple(self.log_potentials.shape)}, multiroot={self.multiroot})"

    def _distribution(self, log_potentials: Tensor) -> TreeDistribution:
        return TreeDistribution(
            convert(log_potentials),
            lengths=self.lengths,
            root="multi" if self.multiroot else "single",
            projective=self._projective,
            labelled=log_potentials.dim() == 4,
        )

    @cached_property
    def partition(self) -> Tensor:
        return self._trees.log_partition()

    @cached_property
    def marginals(self) -> Tensor:
        return unconvert(self._trees.marginals())

    @cached_property
    def max(self) -> Tensor:
        return self._trees.max()

    @cached_property
    def argmax(self) -> Tensor:
        return self._events(self._trees.argmax())

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

    @cached_property
    def count(self) -> Tensor:
        allowed = self.log_potentials.detach() > -torch.inf
        all_equal = torch.where(allowed, 0.0, -torch.inf).to(self.log_potentials.device, torch.float64)
        return self._distribution(all_equal).log_partition().exp().round().to(self.log_potentials.dtype)

    def kmax(self, k: int) -> Tensor:
        """Scores of the k best trees.

        Parameters
        ----------
        k : int
            How many.

        Returns
        -------
        tensor (k, B)
            Best first; -inf where there are fewer.
        """
        return self._trees.topk(k).scores

    def topk(self, k: int) -> Tensor:
        """The k best trees.

        Parameters
        ----------
        k : int
            How many.

        Returns
        -------
        tensor (k, B, N, N) or (k, B, N, N, L)
            1 at their edges, best first; all 0 where there are fewer.
        """
        return self._events(self._trees.topk(k))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Random trees.

        Parameters
        ----------
        sample_shape : sizes
            How many for each sentence.

        Returns
        -------
        tensor (*sample_shape, B, N, N) or (*sample_shape, B, N, N, L)
            1 at their edges.
        """
        return self._events(self._trees.sample(sample_shape))

    def gumbel_crf(self, temperature: float = 1.0) -> Tensor:
        """A random tree of each sentence, through which gradients flow.

        Parameters
        ----------
        temperature : float
            Of the relaxation whose gradient it is.

        Returns
        -------
        tensor like `log_potentials`
            1 at the edges of a tree drawn from this distribution, 0 elsewhere. Its gradient is that of the marginals of
            the potentials divided by the temperature. (There, it is that of a Gumbel-softmax in the place of each
            choice that the sampler makes; not to be had without the chart, for trees with crossing arcs.)
        """
        tree = self.sample((1,))[0].to(self.log_potentials.dtype)
        soft = unconvert(self._distribution(self.log_potentials / temperature).marginals())
        return tree + (soft - soft.detach())

    def log_prob(self, value: Tensor) -> Tensor:
        """Log-probabilities of trees.

        Parameters
        ----------
        value : tensor (..., B, N, N) or (..., B, N, N, L)
            1 at their edges, 0 elsewhere.

        Returns
        -------
        tensor (..., B)
            -inf where it is no tree of this distribution. (The original's is finite.)
        """
        lead = value.shape[: value.dim() - len(self.event_shape)]
        edges = convert((value != 0).reshape(-1, *self.event_shape).int()) > 0
        edges = edges.reshape(*lead, *edges.shape[1:]).int()
        if self._trees.labelled:
            heads, labels = edges.amax(-1).argmax(-2), edges.amax(-3).argmax(-1)
        else:
            heads, labels = edges.argmax(-2), None
        same = (self._trees.edges_of(heads, labels) == edges).flatten(len(lead)).all(-1)
        return torch.where(same, self._trees.log_prob(heads, labels), -torch.inf)

    def cross_entropy(self, other: NonProjectiveDependencyCRF) -> Tensor:
        """Cross entropy relative to another distribution over the same trees.

        Parameters
        ----------
        other : distribution
            Of the same class.

        Returns
        -------
        tensor (B,)
            In nats.
        """
        return self._trees.cross_entropy(other._trees)

    def kl(self, other: NonProjectiveDependencyCRF) -> Tensor:
        """Kullback-Leibler divergence from another distribution over the same trees.

        Parameters
        ----------
        other : distribution
            Of the same class.

        Returns
        -------
        tensor (B,)
            In nats.
        """
        return self._trees.kl(other._trees)

    def to_event(self, sequence: Tensor, extra: None = None, lengths: Any = None) -> Tensor:
        """The edges of trees: `DepTree.to_parts`.

        Parameters
        ----------
        sequence : int64 tensor (B, N)
            Head of each word, from 0 (ROOT) to N.
        extra : None
            Without effect, as there.
        lengths : integers (B,), optional
            Words of each sentence.

        Returns
        -------
        int64 tensor (B, N, N)
            1 at the trees' edges.
        """
        return DepTree.to_parts(sequence, extra, lengths)

    def from_event(self, event: Tensor) -> tuple[Tensor, None]:
        """The heads of trees: `DepTree.from_parts`.

        Parameters
        ----------
        event : tensor (B, N, N)
            1 at the trees' edges.

        Returns
        -------
        heads : int64 tensor (B, N)
            From 0 (ROOT) to N.
        nothing : None
            As there.
        """
        return DepTree.from_parts(event)

    def _events(self, trees: Any) -> Tensor:
        edges = self._trees.edges_of(trees).to(self.log_potentials.dtype)
        lead = edges.shape[: edges.dim() - len(self.event_shape)]
        return unconvert(edges.reshape(-1, *edges.shape[len(lead) :])).reshape(*lead, *self.event_shape)


class DependencyCRF(NonProjectiveDependencyCRF):
    """The distribution over projective trees: no two arcs cross, ROOT stands left of the first word.

    Parameters
    ----------
    log_potentials : tensor (B, N, N) or (B, N, N, L)
        As for `NonProjectiveDependencyCRF`, and the others too.
    lengths : integers (B,), optional
        Words of each sentence.
    args : dict
        Without effect, as there.
    multiroot : bool
        Whether several edges may leave ROOT: yes, if nothing is said.
    validate_args : bool
        Without effect.
    """

    _projective = True

    def __init__(
        self,
        log_potentials: Tensor,
        lengths: Any = None,
        args: Any = None,
        multiroot: bool = True,
        validate_args: bool = False,
    ) -> None:
        super().__init__(log_potentials, lengths, args, multiroot, validate_args)


@register_kl(NonProjectiveDependencyCRF, NonProjectiveDependencyCRF)  # type: ignore[no-untyped-call, untyped-decorator]
def _kl(p: NonProjectiveDependencyCRF, q: NonProjectiveDependencyCRF) -> Tensor:
    return p.kl(q)
