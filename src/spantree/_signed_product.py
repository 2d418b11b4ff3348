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
    Decimals = list[list[Decimal]]

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
    """Number by number in Python: a product of long ones takes milliseconds, and Ctrl-C is seen between any two."""
    with decimal.localcontext() as context:
        context.Emin, context.Emax = decimal.MIN_EMIN, decimal.MAX_EMAX
        context.prec = 30  # of these numbers; what they are is then exact
        weights = [[Decimal(x).exp() if x > -np.inf else Decimal(0) for x in row] for row in scores.tolist()]
        partition = Decimal(log_partition).exp()
        signed = _products(weights, [[Decimal(x) for x in row] for row in ratios.tolist()])
        context.prec = digits
        mean = _determinant(_laplacian(signed, root)) / partition
        if not with_grad:
            return float(mean), None
        # Cofactors are the determinant times the inverse. Where there is next to no determinant, ratios are changed by
        # 1e-25, also those that are 0, and so are the cofactors: there is an inverse then, and it has digits to spare.
        if abs(mean) < Decimal("1e-20"):
            noise = np.random.default_rng(0).integers(1, 1000, size=scores.shape)
            changes = _products(weights, [[Decimal(x).scaleb(-28) for x in row] for row in noise.tolist()])
            signed = [[x + y for x, y in zip(*rows, strict=True)] for rows in zip(signed, changes, strict=True)]
        context.prec = digits + 100
        slopes = _products(weights, _slopes(_cofactors(_laplacian(signed, root)), root))
        return float(mean), np.array([[float(slope / partition) for slope in row] for row in slopes])


def _products(a: Decimals, b: Decimals) -> Decimals:
    return [[x * y for x, y in zip(*rows, strict=True)] for rows in zip(a, b, strict=True)]


def _laplacian(weights: Decimals, root: _core.Root) -> Decimals:
    """The matrix whose determinant is the sum over trees; with one root, its first row are the root's weights.

    Koo, Globerson, Carreras and Collins (2007), "Structured Prediction Models via the Matrix-Tree Theorem".
    """
    of_root, *of_words = (row[1:] for row in weights)
    matrix = [[-x for x in row] for row in of_words]
    columns = zip(*(of_words if root == _core.Root.single else [of_root, *of_words]), strict=True)
    for word, column in enumerate(columns):
        matrix[word][word] = sum(column, Decimal(0))
    if root == _core.Root.single:
        matrix[0] = of_root
    return matrix


def _slopes(cofactors: Decimals, root: _core.Root) -> Decimals:
    """The derivatives of the determinant by the weights, from its cofactors [row, column]."""
    nothing = Decimal(0)
    of_words = cofactors
    if root == _core.Root.single:
        of_words = [[nothing] * len(cofactors), *cofactors[1:]]  # the first row holds the root's weights only
    diagonal = [row[word] for word, row in enumerate(of_words)]
    of_root = cofactors[0] if root == _core.Root.single else diagonal
    return [
        [nothing, *of_root],
        *([nothing, *(own - other for own, other in zip(diagonal, row, strict=True))] for row in of_words),
    ]


def _determinant(matrix: Decimals) -> Decimal:
    """By elimination with partial pivoting; what is left of the matrix loses a row and a column at a time."""
    rows = list(matrix)
    result = Decimal(1)
    while rows:
        if _bring_up_the_largest(rows, 0):
            result = -result
        pivot, *top = rows[0]
        result *= pivot
        if not result:
            return result
        rows = [_less(row[1:], row[0] / pivot, top) for row in rows[1:]]
    return result


def _cofactors(matrix: Decimals) -> Decimals:
    """[row, column]: the determinant times the inverse, transposed; all 0 if the matrix lacks two in rank.

    The inverse by elimination beside the identity: of both together, the first column is done and goes, n times.
    """
    words = range(len(matrix))
    rows = [row + [Decimal(int(i == j)) for j in words] for i, row in enumerate(matrix)]
    determinant = Decimal(1)
    for k in words:
        if _bring_up_the_largest(rows, k):
            determinant = -determinant
        pivot, *others = rows[k]
        if not pivot:
            return [[Decimal(0) for _ in words] for _ in words]
        determinant *= pivot
        top = [x / pivot for x in others]
        rows = [top if i == k else _less(row[1:], row[0], top) for i, row in enumerate(rows)]
    return [[determinant * x for x in column] for column in zip(*rows, strict=True)]


def _bring_up_the_largest(rows: Decimals, k: int) -> bool:
    """Exchanges row k for the one from there on that begins with the largest number; whether that is another one."""
    largest = max(range(k, len(rows)), key=lambda i: abs(rows[i][0]))
    rows[k], rows[largest] = rows[largest], rows[k]
    return largest != k


def _less(row: list[Decimal], factor: Decimal, other: list[Decimal]) -> list[Decimal]:
    """row - factor * other"""
    return [x - factor * y for x, y in zip(row, other, strict=True)] if factor else row
