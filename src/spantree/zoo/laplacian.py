"""The Laplacian zoo: several roots, one root, labels.

Zmigrod, Vieira and Cotterell, "Efficient Computation of Expectations under Spanning Tree Distributions",
section 2.2; the single-root Laplacian is due to Koo et al. (2007). Each Laplacian is a linear map from edge
weights ``(n+1, n+1)`` to a matrix ``(n, n)`` over the words whose determinant is the sum of the weights of
all trees.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._graph import FloatArray, IntArray, Root, check_root


def laplacian(weights: FloatArray, root: Root = "single") -> FloatArray:
    """The matrix whose determinant is Z: equation (4) for several roots, equation (6) for one.

    Several roots: ``L[j, j]`` is the total weight entering word ``j``, ``L[i, j] = -w[i, j]``. One root: the
    same without the root edges, and row 1 (any row would do) replaced by the root edges.

    Parameters
    ----------
    weights : FloatArray, shape (n+1, n+1, ...)
        Edge weights (not logarithms), zero in column 0 and on the diagonal. Further axes are carried along.
    root : {"single", "multi"}, default "single"
        How many edges may leave ROOT.

    Returns
    -------
    FloatArray, shape (n, n, ...)

    Notes
    -----
    O(n^2). The diagonal is a sum, so the small terms of a column are rounded away against its largest: the
    first of the two places where sharp weights are lost (the other is the elimination that follows).

    Examples
    --------
    The complete graph on ROOT and two words has 3 trees, 2 of them with one root.

    >>> ones = np.array([[0.0, 1, 1], [0, 0, 1], [0, 1, 0]])
    >>> laplacian(ones, "multi")
    array([[ 2., -1.],
           [-1.,  2.]])
    >>> laplacian(ones, "single")
    array([[ 1.,  1.],
           [-1.,  1.]])
    """
    check_root(root)
    matrix = 0.0 - weights[1:, 1:]
    words = np.arange(len(matrix))
    if root == "multi":
        matrix[words, words] = weights[:, 1:].sum(axis=0)
    else:
        matrix[words, words] = weights[1:, 1:].sum(axis=0)
        matrix[:1] = weights[:1, 1:]
    return matrix


def laplacian_pullback(matrix: FloatArray, root: Root = "single") -> FloatArray:
    """From derivatives with respect to the Laplacian to derivatives with respect to the edge weights.

    The adjoint of `laplacian`: ``out[i, j] = sum over (i', j') of matrix[i', j'] * L'[i'j', ij]`` with ``L'``
    of equation (24), which has at most two terms, both in column ``j``. With ``matrix = B``, the transposed
    inverse, this is the gradient of log Z, equation (22).

    Parameters
    ----------
    matrix : FloatArray, shape (n, n)
        Derivatives with respect to the entries of the Laplacian.
    root : {"single", "multi"}, default "single"
        Which Laplacian.

    Returns
    -------
    FloatArray, shape (n+1, n+1)
        Zero in column 0 and on the diagonal; O(n^2).

    Examples
    --------
    >>> laplacian_pullback(np.array([[5.0, 6.0], [7.0, 8.0]]), "multi")
    array([[ 0.,  5.,  8.],
           [ 0.,  0.,  2.],
           [ 0., -2.,  0.]])
    """
    n = len(matrix)
    out = np.zeros((n + 1, n + 1))
    if root == "multi":
        out[0, 1:] = matrix.diagonal()
        out[1:, 1:] = matrix.diagonal() - matrix
    else:
        without_first_row = matrix.copy()
        without_first_row[:1] = 0.0
        out[0, 1:] = matrix[:1].sum(axis=0)
        out[1:, 1:] = without_first_row.diagonal() - without_first_row
    return out


def column_derivatives(B: FloatArray, heads: IntArray, j: int, root: Root) -> FloatArray:
    """``sum over i' of B[i', :] L'[i'j, ij]`` for some heads ``i`` of the word `j`: shape (len(heads), n).

    Equation (24) is printed for both Laplacians at once and holds for neither. The nonzero ``L'[i'j', ij]``, all with
    ``j' = j``, are: several roots, 1 at ``i' = j`` and, if ``i`` is a word, -1 at ``i' = i``; one root, 1 at ``i' = 1``
    if ``i`` is ROOT, otherwise the same two without those in row 1.

    Examples
    --------
    >>> column_derivatives(np.eye(3), np.array([0, 1, 3]), 2, "single")
    array([[ 1.,  0.,  0.],
           [ 0.,  1.,  0.],
           [ 0.,  1., -1.]])
    """
    rows = np.concatenate([np.zeros((1, B.shape[1])), B])
    if root == "single":
        rows[1:2] = 0.0
    derivatives: FloatArray = rows[j] - rows[heads]
    if root == "single":
        derivatives[heads == 0] = B[0]
    return derivatives


def sum_labels(scores: ArrayLike) -> FloatArray:
    """Unlabelled log-weights of a labelled graph, equation (8): ``log sum over y of exp(scores[i, j, y])``.

    Parameters
    ----------
    scores : array_like, shape (n+1, n+1, Y)
        Log-weights of labelled edges; column 0 and the diagonal are ignored.

    Returns
    -------
    FloatArray, shape (n+1, n+1)
        ``-inf`` in column 0 and on the diagonal. Any algorithm on unlabelled scores then sums over labels
        too. O(n^2 Y).

    Examples
    --------
    >>> two_labels = np.log(np.full((2, 2, 2), 3.0))
    >>> np.exp(sum_labels(two_labels))
    array([[0., 6.],
           [0., 0.]])
    """
    labelled = np.array(scores, dtype=np.float64)
    if labelled.ndim != 3 or labelled.shape[0] != labelled.shape[1] or labelled.shape[0] == 0:
        raise ValueError(f"labelled scores must have shape (n+1, n+1, Y), not {labelled.shape}")
    labelled[:, 0] = -np.inf
    nodes = np.arange(len(labelled))
    labelled[nodes, nodes] = -np.inf
    summed: FloatArray = np.logaddexp.reduce(labelled, axis=2)
    return summed
