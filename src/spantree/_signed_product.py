"""E[product of values over the tree's edges] where values have either sign.

With q the distribution whose weights are w |v|, and Z its partition function,

    E[prod v] = Z(w |v|) / Z(w) * E_q[prod sign v].

The first factor has no sign and keeps the accuracy of the solve. The second lies in [-1, 1] and is a quotient of
determinants, det L(w v) / det L(w |v|) (matrix-tree theorem), of which the lower one is known. The upper one cancels.
An error of size eps in the entries of column d changes it by at most eps times the largest cofactor of that column.
Every cofactor is a sum over forests with signs, so it is at most the product of the other columns' sums (with one root,
n times that). So relative to Z(w |v|) the error is at most

    n^3 eps prod_d (sum_h w[h, d] |v[h, d]|) / Z(w |v|),

which is known beforehand, and says how many digits are needed: 32 will do for most scores, and the core takes them;
for the others, `decimal` takes as many as it takes. Edges that q hardly ever has are left out first: without them far
fewer digits are needed.

For two words, several roots, weights w(1 -> 2) = w(2 -> 1) = exp(800) and w(0 -> d) = 1, the product of the columns'
sums is exp(1600), and Z is 2 exp(800) + 1: 350 digits more than those asked for are needed.

The gradient is that of the determinant, by cofactors: d det L / d a[h, d] = cofactor[d, d] - cofactor[h, d].
"""

from __future__ import annotations

import decimal
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from . import _core

if TYPE_CHECKING:
    import numpy.typing as npt

    Matrix = npt.NDArray[np.float64]
    Decimals = npt.NDArray[np.object_]

MOST_DIGITS = 100_000
_NEGLIGIBLE = 1e-17  # a marginal so small that even n^2 edges like it change nothing
_DIGITS_OF_CORE = 17  # those of its 32 that may be lost, so that 15 are left


def mean_of_product(
    scores: Matrix, ratios: Matrix, marginals: Matrix, log_partition: float, root: _core.Root, with_grad: bool
) -> tuple[float, Matrix | None]:
    """E_q[prod of ratios over edges], and its derivatives by the ratios; q has these scores, marginals and log Z.

    All are indexed [head, dep] over n+1 nodes, and no ratio is larger than 1 in magnitude. Of O(n^3) operations.
    """
    words = len(scores) - 1
    if words == 0:
        return 1.0, np.zeros(scores.shape) if with_grad else None
    kept = marginals > _NEGLIGIBLE
    scores = np.where(kept, scores, -np.inf)
    top = scores.max(axis=0)
    top[0] = 0.0
    with np.errstate(under="ignore"):
        column_sums = np.exp(scores - top).sum(axis=0)
    scores = scores - top
    log_partition = log_partition - float(top.sum())
    lost = (float(np.log(column_sums[1:]).sum()) - log_partition + 3.0 * np.log(words)) / np.log(10.0)
    if lost < _DIGITS_OF_CORE and np.abs(ratios[kept]).min() > 0.1:
        mean, slope = _in_core(scores, ratios, log_partition, root, with_grad)
        if not with_grad or abs(mean) > 10.0 ** (lost - _DIGITS_OF_CORE):
            return mean, slope
    if not lost < MOST_DIGITS:
        raise ValueError(
            f"values of both signs beside scores that lie so far apart need {lost:.0e} digits; "
            f"{MOST_DIGITS} are the limit. Without negative values there is none"
        )
    return _in_digits(scores, ratios, log_partition, root, with_grad, int(lost) + 40)


def _in_core(
    scores: Matrix, ratios: Matrix, log_partition: float, root: _core.Root, with_grad: bool
) -> tuple[float, Matrix | None]:
    nodes = len(scores)
    batch = _core.Batch.padded(scores[np.newaxis], None, False, False)
    sign, magnitude = np.empty(1), np.empty(1)
    slope = np.empty(nodes * nodes) if with_grad else None
    values = np.where(np.isneginf(scores), 0.0, ratios).reshape(-1)
    _core.signed_product(batch, root, 1, values, sign, magnitude, slope)
    mean = float(sign[0] * np.exp(magnitude[0] - log_partition))
    if slope is None:
        return mean, None
    used = values != 0.0
    with np.errstate(over="ignore", invalid="ignore"):  # infinite and huge values are the caller's
        slope[used] *= mean / values[used]  # so far, by the logarithm of the weight
    slope[~used] = 0.0
    return mean, slope.reshape(nodes, nodes)


def _in_digits(
    scores: Matrix, ratios: Matrix, log_partition: float, root: _core.Root, with_grad: bool, digits: int
) -> tuple[float, Matrix | None]:
    with decimal.localcontext() as context:
        context.Emin, context.Emax = decimal.MIN_EMIN, decimal.MAX_EMAX
        context.prec = 30  # of these numbers; what they are is then exact
        weights = _decimals([[Decimal(x).exp() if x > -np.inf else Decimal(0) for x in row] for row in scores.tolist()])
        partition = Decimal(log_partition).exp()
        signed = weights * _decimals([[Decimal(x) for x in row] for row in ratios.tolist()])
        context.prec = digits
        mean = _determinant(_laplacian(signed, root)) / partition
        if not with_grad:
            return float(mean), None
        # Cofactors are the determinant times the inverse. Where there is next to no determinant, the weights are
        # changed by 1e-25 of them, and so are the cofactors: there is an inverse then, and it has digits to spare.
        if abs(mean) < Decimal("1e-20"):
            noise = np.random.default_rng(0).integers(1, 1000, size=signed.shape)
            signed = signed * _decimals([[1 + Decimal(x).scaleb(-28) for x in row] for row in noise.tolist()])
        context.prec = digits + 100
        slope = weights * _slopes(_cofactors(_laplacian(signed, root)), root) / partition
        return float(mean), slope.astype(np.float64)


def _decimals(rows: list[list[Decimal]]) -> Decimals:
    return np.array(rows, object)


def _laplacian(weights: Decimals, root: _core.Root) -> Decimals:
    """The matrix whose determinant is the sum over trees; with one root, its first row are the root's weights.

    Koo, Globerson, Carreras and Collins (2007), "Structured Prediction Models via the Matrix-Tree Theorem".
    """
    matrix: Decimals = -weights[1:, 1:]
    words = np.arange(len(matrix))
    matrix[words, words] = weights[1 if root == _core.Root.single else 0 :, 1:].sum(axis=0)
    if root == _core.Root.single:
        matrix[0] = weights[0, 1:]
    return matrix


def _slopes(cofactors: Decimals, root: _core.Root) -> Decimals:
    """The derivatives of the determinant by the weights, from its cofactors [row, column]."""
    slopes = np.full((len(cofactors) + 1, len(cofactors) + 1), Decimal(0), object)
    of_word = cofactors.copy()
    if root == _core.Root.single:
        of_word[0] = Decimal(0)  # this row holds the root's weights only
    diagonal = of_word.diagonal()
    slopes[1:, 1:] = diagonal - of_word
    slopes[0, 1:] = cofactors[0] if root == _core.Root.single else diagonal
    return slopes


def _determinant(matrix: Decimals) -> Decimal:
    """By elimination with partial pivoting."""
    matrix = matrix.copy()
    result = Decimal(1)
    for k in range(len(matrix)):
        best = k + int(np.argmax(np.abs(matrix[k:, k])))
        if best != k:
            matrix[[k, best]] = matrix[[best, k]]
            result = -result
        pivot: Decimal = matrix[k, k]
        result *= pivot
        if not result:
            return result
        matrix[k + 1 :, k + 1 :] -= np.multiply.outer(matrix[k + 1 :, k] / pivot, matrix[k, k + 1 :])
    return result


def _cofactors(matrix: Decimals) -> Decimals:
    """[row, column]: the determinant times the inverse, transposed; all 0 if the matrix lacks two in rank."""
    words = len(matrix)
    identity = np.full(matrix.shape, Decimal(0), object)
    identity[np.arange(words), np.arange(words)] = Decimal(1)
    both = np.hstack([matrix, identity])
    determinant = Decimal(1)
    for k in range(words):
        best = k + int(np.argmax(np.abs(both[k:, k])))
        if best != k:
            both[[k, best]] = both[[best, k]]
            determinant = -determinant
        pivot = both[k, k]
        if pivot == 0:
            return identity * 0
        determinant *= pivot
        both[k] = both[k] / pivot
        others = np.arange(words) != k
        both[others] -= np.multiply.outer(both[others, k], both[k])
    cofactors: Decimals = determinant * both[:, words:].T
    return cofactors
