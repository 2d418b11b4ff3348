"""SynJax's `SpanningTreeCRF`: with JAX arrays compiled and differentiable, with NumPy arrays without JAX.

Potentials are ``[head, dependent]`` with node 0 as root, trees ("events") 0/1 float32 matrices of that shape. An
undirected tree is read from its root on, and its matrix made symmetric again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from .._options import check_choice
from ..distribution import TreeDistribution
from ..trees import heads_to_edges

if TYPE_CHECKING:
    from typing_extensions import Self

Floats = npt.NDArray[Any]
Noise = Literal["Sum-of-Gamma", "Gumbel", "None"] | Callable[..., Any]

GAMMAS = 10  # how many gamma variables approximate a share of a Gumbel variable, as there


class SpanningTreeCRF:
    """The distribution over spanning trees of graphs with n nodes, node 0 their root.

    Parameters
    ----------
    log_potentials : JAX array, or array_like (..., n, n)
        ``[head, dependent]``; column 0 is ignored. What they are, results are: with JAX arrays everything is a function
        of JAX, the distribution a pytree, and keys are those of `jax.random`. If the trees are undirected, its mean
        with its transpose counts.
    directed : bool
        Whether an edge from i to j is another than one from j to i.
    projective : bool
        Whether no two edges cross.
    single_root_edge : bool
        Whether exactly one edge leaves node 0.
    lengths : integers (...), optional
        Nodes of each graph, node 0 among them. (SynJax's documentation says "non-root nodes", its code counts all.)

    Examples
    --------
    >>> crf = SpanningTreeCRF(np.zeros((4, 4)), directed=False, projective=False, single_root_edge=False)
    >>> float(np.exp(crf.log_count()).round())  # Cayley: 4 nodes have 4 ** 2 trees
    16.0
    >>> crf.argmax().sum()  # three edges, each there and back
    np.float32(6.0)
    """

    def __new__(  # numpydoc ignore=GL08
        cls,
        log_potentials: Any,
        *,
        directed: bool,
        projective: bool,
        single_root_edge: bool,
        lengths: Any = None,
    ) -> Self:
        if cls is SpanningTreeCRF and "jax" in sys.modules and isinstance(log_potentials, sys.modules["jax"].Array):
            from ..jax._synjax import SpanningTreeCRF as InJax

            return object.__new__(InJax)  # type: ignore[return-value]
        return object.__new__(cls)

    def __init__(
        self,
        log_potentials: npt.ArrayLike,
        *,
        directed: bool,
        projective: bool,
        single_root_edge: bool,
        lengths: npt.ArrayLike | None = None,
    ) -> None:
        given = np.asarray(log_potentials)
        self.log_potentials = given if directed else (given + given.swapaxes(-2, -1)) / 2
        self.directed, self.projective, self.single_root_edge = directed, projective, single_root_edge
        self.batch_shape, self.event_shape = given.shape[:-2], given.shape[-2:]
        self.lengths = np.full(self.batch_shape, given.shape[-1]) if lengths is None else np.asarray(lengths)
        self._trees = self._distribution(self.log_potentials)

    def _distribution(self, log_potentials: Floats) -> TreeDistribution[Any, Any, Any]:
        return TreeDistribution(
            log_potentials,
            lengths=self.lengths - 1,
            root="single" if self.single_root_edge else "multi",
            projective=self.projective,
        )

    def _with_potentials(self, log_potentials: Floats, lengths: Any = None) -> Self:
        return type(self)(
            log_potentials,
            directed=self.directed,
            projective=self.projective,
            single_root_edge=self.single_root_edge,
            lengths=self.lengths if lengths is None else lengths,
        )

    def __getitem__(self, i: Any) -> Self:
        return self._with_potentials(self.log_potentials[i], self.lengths[i])

    @property
    def batch_ndim(self) -> int:
        """Number of the batch's axes."""
        return len(self.batch_shape)

    def with_temperature(self, temperature: float = 1.0) -> Self:
        """The distribution with all potentials divided by a temperature.

        Parameters
        ----------
        temperature : float
            Above 1 it is flatter, below 1 sharper.

        Returns
        -------
        SpanningTreeCRF
            Over the same trees.
        """
        return self._with_potentials(self.log_potentials / temperature)

    def with_perturbation(self, key: Any, noise: Noise, temperature: float) -> Self:
        """The distribution with noise added to all potentials, and all divided by a temperature.

        Parameters
        ----------
        key : as for `sample`
            Where the noise comes from.
        noise : {"Sum-of-Gamma", "Gumbel", "None"}, or a function
            Of the sums over a tree's edges, those of the first are nearly Gumbel's (Niepert et al. 2021). A function is
            given the key and a shape.
        temperature : float
            Above 1 it is flatter, below 1 sharper.

        Returns
        -------
        SpanningTreeCRF
            Over the same trees.
        """
        return self._with_potentials((self.log_potentials + self._noise(key, noise)) / temperature)

    def differentiable_sample(
        self,
        key: Any,
        *,
        method: Literal[
            "Perturb-and-Marginals",
            "Perturb-and-SoftmaxDP",
            "Perturb-and-SparsemaxDP",
            "Perturb-and-MAP-Implicit-MLE",
            "Gumbel-CRF",
        ],
        noise: Noise = "Sum-of-Gamma",
        temperature: float = 1.0,
        sample_shape: int | Sequence[int] = (),
        straight_through: bool = False,
        implicit_MLE_lr: float = 1.0,
    ) -> Floats:
        """Random trees, or what is nearly one, through which gradients flow (with JAX arrays).

        Parameters
        ----------
        key : as for `sample`
            Where the noise comes from.
        method : str
            "Perturb-and-Marginals" (Paulus et al. 2020): marginals of perturbed potentials.
            "Perturb-and-MAP-Implicit-MLE" (Niepert et al. 2021): the best tree of perturbed potentials. Others relax
            the choices of a dynamic program, and raise: there is none here.
        noise, temperature : optional
            As for `with_perturbation`.
        sample_shape : int or sizes
            How many for each graph.
        straight_through : bool
            Without effect on these methods.
        implicit_MLE_lr : float
            How far implicit MLE goes along the gradient: lambda of Niepert et al.

        Returns
        -------
        float array (*sample_shape, ..., n, n)
            1, or shares of 1, at their edges.
        """
        shape = (sample_shape,) if isinstance(sample_shape, int) else tuple(sample_shape)
        potentials, lengths = self._spread(shape)
        many = self._with_potentials(potentials, lengths)
        if method == "Perturb-and-Marginals":
            return many.with_perturbation(key, noise, temperature).marginals()
        if method == "Perturb-and-MAP-Implicit-MLE":
            return many._implicit_mle(temperature * many._noise(key, noise), implicit_MLE_lr)
        if method in ("Perturb-and-SoftmaxDP", "Perturb-and-SparsemaxDP", "Gumbel-CRF"):
            raise ValueError(f"{method} can be applied only to distributions that use dynamic programming")
        raise NotImplementedError(f"there is no method {method!r}")

    def _spread(self, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
        """Potentials and lengths with more axes before theirs."""
        potentials = np.broadcast_to(self.log_potentials, (*shape, *self.log_potentials.shape))
        return potentials, np.broadcast_to(self.lengths, (*shape, *self.batch_shape))

    def _implicit_mle(self, noise: Floats, step: float) -> Floats:
        return self._with_potentials(self.log_potentials + noise).argmax()

    def _noise(self, key: Any, noise: Noise) -> Floats:
        shape, edges = self.log_potentials.shape, np.maximum(self.lengths - 1, 1)[..., None, None]
        if callable(noise):
            return np.asarray(noise(key, shape))
        rng = _generator(key)
        if noise == "Sum-of-Gamma":
            terms = np.arange(1, GAMMAS + 1)
            parts = rng.gamma(np.broadcast_to(1.0 / edges[..., None], (*shape, GAMMAS))) / terms
            return np.asarray(parts.sum(-1) - np.log(GAMMAS) / edges)
        if noise not in ("Gumbel", "None"):
            raise NotImplementedError(f"there is no noise {noise!r}")
        return rng.gumbel(size=shape) if noise == "Gumbel" else np.zeros(shape)

    def log_partition(self) -> Floats:
        """Log of the sum of all trees' weights.

        Returns
        -------
        float array (...)
            One for each graph.
        """
        return np.asarray(self._trees.log_partition())

    def log_count(self) -> Floats:
        """Log of the number of trees.

        Returns
        -------
        float array (...)
            One for each graph.
        """
        potentials = np.where(self.log_potentials > -np.inf, 0.0, -np.inf).astype(self.log_potentials.dtype)
        return np.asarray(self._distribution(potentials).log_partition())

    def marginals(self) -> Floats:
        """Probabilities of edges.

        Returns
        -------
        float array (..., n, n)
            Symmetric if the trees are undirected.
        """
        return self._both_ways(self._trees.marginals())

    def log_marginals(self) -> Floats:
        """Logs of the probabilities of edges.

        Returns
        -------
        float array (..., n, n)
            -inf for an edge of no tree. (SynJax has -1e5.)
        """
        with np.errstate(divide="ignore"):
            return np.log(self.marginals())

    def argmax(self) -> Floats:
        """The best tree of each graph.

        Returns
        -------
        float32 array (..., n, n)
            1 at its edges.
        """
        return self._events(self._trees.argmax())

    def argmax_and_max(self) -> tuple[Floats, Floats]:
        """The best tree of each graph, and its score.

        Returns
        -------
        event : float32 array (..., n, n)
            1 at its edges.
        score : float array (...)
            Sum of their potentials.
        """
        return self.argmax(), np.asarray(self._trees.max())

    def top_k(self, k: int, approximate: bool = False) -> tuple[Floats, Floats]:
        """The k best trees of each graph, and their scores.

        Parameters
        ----------
        k : int
            How many.
        approximate : bool
            Without effect: they are exact. (SynJax's are found by a beam, unless the trees are projective.)

        Returns
        -------
        events : float32 array (k, ..., n, n)
            1 at their edges, best first; all 0 where there are fewer.
        scores : float array (k, ...)
            Sums of their potentials; -inf where there are fewer.
        """
        best = self._trees.topk(k)
        return self._events(best.heads), np.asarray(best.scores)

    def sample(
        self,
        key: Any,
        sample_shape: int | Sequence[int] = (),
        temperature: float = 1.0,
        *,
        algorithm: Literal["colbourn", "wilson"] = "colbourn",
    ) -> Floats:
        """Random trees.

        Parameters
        ----------
        key : int, integers or numpy.random.Generator
            Seed; the numbers of a JAX key will do. The trees are not those that JAX would draw with it.
        sample_shape : int or sizes
            How many for each graph.
        temperature : float
            Potentials are divided by it.
        algorithm : {"colbourn", "wilson"}
            Without effect: either draws exactly from this distribution. (SynJax has it for trees that may cross.)

        Returns
        -------
        float32 array (*sample_shape, ..., n, n)
            1 at their edges.
        """
        shape = (sample_shape,) if isinstance(sample_shape, int) else tuple(sample_shape)
        check_choice("algorithm", algorithm, "colbourn", "wilson")
        trees = self.with_temperature(temperature)._trees
        drawn = trees.sample(int(np.prod(shape, dtype=int)), rng=_generator(key))
        return self._events(drawn.reshape(*shape, *drawn.shape[1:]))

    def sample_without_replacement(self, key: Any, k: int) -> tuple[Floats, Floats, Floats]:
        """Random trees of which no two are the same.

        Parameters
        ----------
        key : int, integers or numpy.random.Generator
            As for `sample`.
        k : int
            How many for each graph.

        Returns
        -------
        events : float32 array (k, ..., n, n)
            1 at their edges, in the order of their keys; all 0 where there are fewer.
        log_probs : float array (k, ...)
            Their log-probabilities.
        gumbels : float array (k, ...)
            Log-probabilities with Gumbel noise, decreasing.
        """
        drawn = self._trees.sample_without_replacement(k, rng=_generator(key))
        return self._events(drawn.heads), np.asarray(drawn.log_probs), np.asarray(drawn.keys)

    def log_prob(self, event: npt.ArrayLike) -> Floats:
        """Log-probabilities of trees.

        Parameters
        ----------
        event : array_like (..., n, n)
            1 at their edges.

        Returns
        -------
        float array (...)
            -inf where it is no tree of this distribution. (SynJax's is finite.)
        """
        heads, is_tree = self._heads(event)
        return np.where(is_tree, self._trees.log_prob(heads), -np.inf)

    def unnormalized_log_prob(self, event: npt.ArrayLike) -> Floats:
        """Sums of the potentials of trees.

        Parameters
        ----------
        event : array_like (..., n, n)
            1 at their edges.

        Returns
        -------
        float array (...)
            -inf where it is no tree of this distribution.
        """
        heads, is_tree = self._heads(event)
        return np.where(is_tree, self._trees.score(heads), -np.inf)

    def entropy(self) -> Floats:
        """Entropy.

        Returns
        -------
        float array (...)
            In nats.
        """
        return np.asarray(self._trees.entropy())

    def cross_entropy(self, other: SpanningTreeCRF) -> Floats:
        """Cross entropy relative to another distribution over the same trees.

        Parameters
        ----------
        other : SpanningTreeCRF
            With the same settings.

        Returns
        -------
        float array (...)
            In nats.
        """
        return np.asarray(self._trees.cross_entropy(self._comparable(other)))

    def kl_divergence(self, other: SpanningTreeCRF) -> Floats:
        """Kullback-Leibler divergence from another distribution over the same trees.

        Parameters
        ----------
        other : SpanningTreeCRF
            With the same settings.

        Returns
        -------
        float array (...)
            In nats.
        """
        return np.asarray(self._trees.kl(self._comparable(other)))

    def _comparable(self, other: SpanningTreeCRF) -> TreeDistribution[Any, Any, Any]:
        if self.directed != other.directed:
            raise ValueError("one distribution is over directed trees, the other over undirected ones")
        return other._trees

    def _events(self, heads: npt.NDArray[np.int64]) -> Floats:
        return self._both_ways(heads_to_edges(heads).astype(np.float32))

    def _both_ways(self, edges: Floats) -> Floats:
        return edges if self.directed else edges + edges.swapaxes(-2, -1)

    def _heads(self, event: npt.ArrayLike) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """Heads, and whether their edges, and no others, are the event's."""
        edges = np.asarray(event) != 0
        heads = (edges if self.directed else _away_from_root(edges)).argmax(axis=-2)
        nodes = np.arange(edges.shape[-1])
        words = (nodes > 0) & (nodes < self.lengths[..., None])
        expected = (heads[..., None, :] == nodes[:, None]) & words[..., None, :]
        return heads, (self._both_ways(expected) == edges).all(axis=(-2, -1))


def _away_from_root(edges: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Of symmetric matrices: the edges by which a walk in breadth from node 0 first reaches each node."""
    directed = np.zeros_like(edges)
    reached = np.zeros(edges.shape[:-1], dtype=bool)
    reached[..., 0] = True
    for _ in range(edges.shape[-1] - 1):
        out = edges & reached[..., :, None] & ~reached[..., None, :]
        directed |= out
        reached |= out.any(axis=-2)
    return directed


def _generator(key: Any) -> np.random.Generator:
    return key if isinstance(key, np.random.Generator) else np.random.default_rng(np.asarray(key).ravel())
