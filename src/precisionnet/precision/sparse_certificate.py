r"""The proof of a sparse solution: a duality gap over all pairs, a block of columns at a time.

theta is a sparse precision matrix in units in which R, the covariance, has a unit diagonal. The proof is that of
``certificate.py``: K is theta^-1 moved into the box |K_ij - R_ij| <= penalty_ij, with theta's own signs on its edges,
and the gap is at most ||E||_F^2 / (2 (1 - rho)) with E = theta K - I. The box has all pairs: every column of theta^-1
is solved once, and every column of R computed, a block of columns at a time; neither matrix is stored.

R off the edges may be computed in single precision. The box there is made smaller by the most that this can be wrong,
so that K is inside the true one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from scipy import sparse

from precisionnet.compiled import compiled_alongside
from precisionnet.precision.partitions import ROWS_AT_A_TIME
from precisionnet.precision.sparse_cholesky import Factor, inverse_columns
from precisionnet.types import FloatArray, IndexArray

COLUMNS_AT_A_TIME = 64


class Proof(NamedTuple):
    """A bound on the loss less the optimum, and the pairs outside the box that are not in use yet."""

    gap: float
    first: IndexArray
    second: IndexArray


def prove(
    theta: sparse.csr_array,
    factor: Factor,
    in_use: sparse.csr_array,
    rows: FloatArray,
    unit: FloatArray,
    l1_penalty: float,
    margin: float,
    outside: float,
    workers: int,
) -> Proof:
    """Compute the certificate over all pairs, a block of columns at a time.

    ``factor`` is that of ``theta``, and ``in_use`` has K on the pairs in use, NaN where theta is zero. R is computed
    from ``rows``, the standardised columns; ``margin`` is the most by which it may be wrong. ``unit`` has one over each
    column's deviation. The proof lists the pairs that are outside the box by more than a share ``outside`` of its
    width.
    """
    n = len(rows)

    def judge(first: int) -> tuple[float, float, IndexArray]:
        width = min(COLUMNS_AT_A_TIME, n - first)
        K = np.empty((n, width))
        inverse_columns(*factor, first, K)
        R = _correlations(rows, first, width)
        new = _into_box(K, R, unit, l1_penalty, margin, outside, first, in_use.indptr, in_use.indices, in_use.data)
        frobenius, column_sum = _error_norms(K, first, theta.indptr, theta.indices, theta.data)
        return frobenius, column_sum, new

    frobenius, column_sum = 0.0, 0.0
    found: list[IndexArray] = []
    for part, largest, pairs in _in_threads(judge, range(0, n, COLUMNS_AT_A_TIME), workers):
        frobenius, column_sum = frobenius + part, max(column_sum, largest)
        found.append(pairs)
    together = np.concatenate(found)
    return Proof(bound(frobenius, column_sum), together[:, 0], together[:, 1])


def bound(frobenius: float, column_sum: float) -> float:
    """Bound the loss less the optimum by ||E||_F^2 (``frobenius``) and the largest absolute column sum of E."""
    rho = min(np.sqrt(frobenius), column_sum)
    return float(frobenius / (2.0 * (1.0 - rho))) if rho < 1.0 else np.inf


def _correlations(rows: FloatArray, first: int, width: int) -> FloatArray:
    """Return ``width`` columns of R from ``first`` on, summed in chunks of rows of the table."""
    total = rows[:, :ROWS_AT_A_TIME] @ rows[first : first + width, :ROWS_AT_A_TIME].T
    for begin in range(ROWS_AT_A_TIME, rows.shape[1], ROWS_AT_A_TIME):
        here = slice(begin, begin + ROWS_AT_A_TIME)
        total += rows[:, here] @ rows[first : first + width, here].T
    return total


def _in_threads(
    judge: Callable[[int], tuple[float, float, IndexArray]], blocks: range, workers: int
) -> Iterator[tuple[float, float, IndexArray]]:
    """Judge the blocks in ``workers`` threads and yield their results in order.

    The threads bound the memory: no more blocks are in work at once than there are threads.
    """
    if workers == 1:
        yield from map(judge, blocks)
        return
    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(judge, blocks)


@compiled_alongside
def _into_box(
    K: FloatArray,
    R: FloatArray,
    unit: FloatArray,
    l1_penalty: float,
    margin: float,
    outside: float,
    first: int,
    start: IndexArray,
    index: IndexArray,
    exact: FloatArray,
) -> IndexArray:
    """Move columns of theta^-1 into the box, in place; an entry whose value ``exact`` gives takes that value.

    Returns the pairs (i, j) with i < j that were outside the box and are not in use.
    """
    n, width = K.shape
    reach = np.empty(width)
    moved = np.zeros(width)
    for c in range(width):
        reach[c] = l1_penalty * unit[first + c]
    for i in range(n):
        for c in range(width):
            box = reach[c] * unit[i] - margin
            inside = min(max(K[i, c], R[i, c] - box), R[i, c] + box)
            moved[c] = max(moved[c], abs(K[i, c] - inside) - outside * box)
    known = np.zeros(n, np.bool_)
    room, found = 256, 0
    pairs = np.empty((room, 2), np.int64)
    for c in range(width):
        j = first + c
        if moved[c] <= 0.0:
            continue
        for p in range(start[j], start[j + 1]):
            known[index[p]] = True
        for i in range(j):
            box = reach[c] * unit[i] - margin
            if abs(K[i, c] - R[i, c]) > (1.0 + outside) * box and not known[i]:
                if found == room:
                    larger = np.empty((2 * room, 2), np.int64)
                    larger[:room] = pairs
                    pairs, room = larger, 2 * room
                pairs[found, 0], pairs[found, 1] = i, j
                found += 1
        for p in range(start[j], start[j + 1]):
            known[index[p]] = False
    for i in range(n):
        for c in range(width):
            box = reach[c] * unit[i] - margin
            K[i, c] = min(max(K[i, c], R[i, c] - box), R[i, c] + box)
    for c in range(width):
        for p in range(start[first + c], start[first + c + 1]):
            if not np.isnan(exact[p]):
                K[index[p], c] = exact[p]
    return pairs[:found]


@compiled_alongside
def _error_norms(
    K: FloatArray, first: int, start: IndexArray, index: IndexArray, value: FloatArray
) -> tuple[float, float]:
    """Return the sum of squares and the largest absolute column sum of some columns of E = theta K - I.

    ``K`` holds those columns of K, which are the ones from ``first`` on.
    """
    n, width = K.shape
    error, sums, squares = np.empty(width), np.zeros(width), np.zeros(width)
    for i in range(n):
        error[:] = 0.0
        for p in range(start[i], start[i + 1]):
            k, v = index[p], value[p]
            for c in range(width):
                error[c] += v * K[k, c]
        if first <= i < first + width:
            error[i - first] -= 1.0
        for c in range(width):
            squares[c] += error[c] * error[c]
            sums[c] += abs(error[c])
    return squares.sum(), sums.max()
