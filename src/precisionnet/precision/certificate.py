r"""How far a precision matrix is from optimal, proved: a duality gap from a dual point that fits it exactly.

For F(theta) = tr(C theta) - log det theta + sum_{i != j} penalty_ij |theta_ij| + coupling/2 ||theta - anchor||_F^2 take

    K_ij = C_ij + coupling (theta_ij - anchor_ij) + u_ij,   u_ij = penalty_ij sign(theta_ij)   where theta_ij != 0,
                                                            |u_ij| <= penalty_ij               where theta_ij = 0,

with u_ij at the zeros as near as allowed to what makes K the solver's own estimate W of theta^-1. Such a K is dual
feasible and complementary to theta, so the whole gap is the log-determinant divergence between theta and K^-1,

    F(theta) - min F  <=  tr(theta K) - N - log det(theta K)  =  sum_k (x_k - log(1 + x_k)),   x = eigenvalues of E,

with E = theta K - I. It is second order in E, and zero exactly at the optimum. Clipping theta^-1 into the dual box
instead leaves a first-order term, and certifies hundreds of times worse. Two ways to evaluate it:

- ``divergence_bound``: <= ||E||_F^2 / (2 (1 - rho)) with rho = min(||E||_F, ||E||_1) < 1. No factorisation; with a
  sparse theta it costs one product with its non-zeros;
- ``divergence``: exactly, with the Cholesky factors of theta and K.

The first takes theta to be positive definite. Where it has a dominant diagonal, that proves it; else ``api.py`` does,
with one Cholesky of the result.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from precisionnet.compiled import compiled, compiled_alongside
from precisionnet.linalg import log_det_from_cholesky, try_cholesky
from precisionnet.precision.objective import Penalty, row_of
from precisionnet.threads import Team
from precisionnet.types import FloatArray, IndexArray

LANES = 8
"""Columns of K handled together: as many as a vector register takes."""
PART = 512
"""Columns of K that one thread takes at a time."""
DOMINANT, ROUNDS = 1.0 - 1e-9, 100


class Verdict(NamedTuple):
    """A proved bound on F(theta) - min F, over N, and the largest entry of theta K - I."""

    gap: float
    residual: float


class SparseSymmetric(NamedTuple):
    """A symmetric matrix by rows: row i holds ``values[start[i]:start[i + 1]]`` in ``columns[...]``."""

    start: IndexArray
    columns: IndexArray
    values: FloatArray

    def toarray(self, out: FloatArray | None = None, team: Team | None = None) -> FloatArray:
        """Dense, in ``out`` where that is given."""
        n = len(self.start) - 1
        dense = np.empty((n, n)) if out is None else out
        if team is None or team.size == 1:
            _scatter(*self, dense, 0, n)
        else:
            team(lambda share: _scatter(*self, dense, *team.part(n, share)))
        return dense

    def has_dominant_diagonal(self) -> bool:
        """Whether some v > 0 has theta_ii v_i > sum_j |theta_ij| v_j for every i: a proof of positive definiteness.

        Scaled by v, rows have a dominant diagonal, and by Gershgorin's theorem every eigenvalue is positive. Rounding
        of the sums is far below the margin that is asked for. False proves nothing.
        """
        return bool(_is_dominant(*self))


def divergence_bound(
    theta: SparseSymmetric, W: FloatArray, S: FloatArray, penalty: Penalty, team: Team | None = None
) -> Verdict:
    """The gap of the plain problem, bounded without a factorisation; infinite where E is too large for the bound."""
    frobenius, column_sum, largest = _norms(theta, W, S, penalty, team or Team())
    rho = min(np.sqrt(frobenius), column_sum)
    if not rho < 1.0:
        return Verdict(np.inf, largest)
    return Verdict(frobenius / (2.0 * (1.0 - rho)) / len(S), largest)


def divergence(theta: SparseSymmetric, W: FloatArray, S: FloatArray, penalty: Penalty) -> Verdict:
    """The gap of the plain problem, exactly; infinite where theta or K is not positive definite."""
    dense = theta.toarray()
    residual = _norms(theta, W, S, penalty, Team())[2]
    if not np.isfinite(penalty.norm(dense)):  # a known zero that is not zero
        return Verdict(np.inf, residual)
    K = fitted_dual(dense, W, S, penalty.dense())
    return Verdict(exact_divergence(dense, K) / len(S), residual)


def fitted_dual(theta: FloatArray, W: FloatArray, target: FloatArray, penalty: FloatArray) -> FloatArray:
    """K of the module's text, dense; ``target`` is C + coupling (theta - anchor)."""
    K = np.clip(W, target - penalty, target + penalty)
    here = (theta != 0.0) & np.isfinite(penalty)
    K[here] = (target + np.where(here, penalty, 0.0) * np.sign(theta))[here]
    return K


def exact_divergence(theta: FloatArray, K: FloatArray) -> float:
    """tr(theta K) - N - log det(theta K)."""
    factors = try_cholesky(theta), try_cholesky(K)
    if factors[0] is None or factors[1] is None:
        return np.inf
    log_dets = log_det_from_cholesky(factors[0]), log_det_from_cholesky(factors[1])
    return above_rounding(theta, K, -float(len(theta)), -log_dets[0], -log_dets[1])


def above_rounding(theta: FloatArray, K: FloatArray, *terms: float) -> float:
    """tr(theta K) + the terms, or what rounding leaves unknown of it: no smaller gap can be proved.

    A gap is never negative: a negative sum is all rounding, and says how large that is.
    """
    total = float(np.vdot(theta, K)) + sum(terms)
    summed = float(np.vdot(np.abs(theta), np.abs(K))) + sum(map(abs, terms))
    return max(abs(total), 4.0 * float(np.finfo(float).eps) * summed)


def _norms(
    theta: SparseSymmetric, W: FloatArray, S: FloatArray, penalty: Penalty, team: Team
) -> tuple[float, float, float]:
    """||E||_F^2, largest column sum and largest entry of E = theta K - I.

    Columns are divided by their number alone, so that the sum does not depend on the number of threads.
    """
    if len(S) <= PART:
        return _error_norms(*theta, W, S, *penalty, 0, len(S))
    parts = list(pairwise([*range(0, len(S), PART), len(S)]))

    def norms(share: int) -> list[tuple[float, float, float]]:
        return [_error_norms(*theta, W, S, *penalty, *part) for part in parts[share :: team.size]]

    found = np.empty((len(parts), 3))
    for share, values in enumerate(team(norms)):
        found[share :: team.size] = np.reshape(values, (-1, 3))
    return float(found[:, 0].sum()), float(found[:, 1].max()), float(found[:, 2].max())


@compiled_alongside
def _error_norms(
    start: IndexArray,
    index: IndexArray,
    value: FloatArray,
    W: FloatArray,
    S: FloatArray,
    l1: float,
    unit: FloatArray,
    matrix: FloatArray,
    begin: int,
    end: int,
) -> tuple[float, float, float]:
    """``_norms`` of some columns of E, a few columns of K at a time."""
    N = len(S)
    penalty = np.empty(N)
    K = np.empty((N, LANES))
    error = np.empty(LANES)
    sums = np.empty(LANES)
    frobenius, column_sum, largest = 0.0, 0.0, 0.0
    for first in range(begin, end, LANES):
        width = min(LANES, end - first)
        for lane in range(width):
            j = first + lane
            row_of(l1, unit, matrix, j, penalty)
            for i in range(N):
                K[i, lane] = min(max(W[j, i], S[j, i] - penalty[i]), S[j, i] + penalty[i])
            for k in range(start[j], start[j + 1]):
                i = index[k]
                if i != j:
                    K[i, lane] = S[j, i] + (penalty[i] if value[k] > 0.0 else -penalty[i])
            sums[lane] = 0.0
        for lane in range(width, LANES):
            K[:, lane] = 0.0
            sums[lane] = 0.0
        for i in range(N):
            e0 = e1 = e2 = e3 = e4 = e5 = e6 = e7 = 0.0
            for k in range(start[i], start[i + 1]):
                v, c = value[k], index[k]
                e0 += v * K[c, 0]
                e1 += v * K[c, 1]
                e2 += v * K[c, 2]
                e3 += v * K[c, 3]
                e4 += v * K[c, 4]
                e5 += v * K[c, 5]
                e6 += v * K[c, 6]
                e7 += v * K[c, 7]
            error[0], error[1], error[2], error[3] = e0, e1, e2, e3
            error[4], error[5], error[6], error[7] = e4, e5, e6, e7
            if first <= i < first + width:
                error[i - first] -= 1.0
            for lane in range(LANES):
                size = abs(error[lane])
                frobenius += size * size
                sums[lane] += size
                largest = max(largest, size)
        for lane in range(width):
            column_sum = max(column_sum, sums[lane])
    return frobenius, column_sum, largest


@compiled
def symmetric_rows(
    index: IndexArray, value: FloatArray, count: IndexArray, diagonal: FloatArray
) -> tuple[IndexArray, IndexArray, FloatArray]:
    """``SparseSymmetric`` of lasso coefficients: the mean of -b_ij theta_jj and -b_ji theta_ii, zero where both are."""
    N = len(count)
    # Where each coefficient lies in the transpose, by counting.
    begin = np.zeros(N + 1, np.int64)
    for j in range(N):
        for a in range(count[j]):
            begin[index[j, a] + 1] += 1
    for i in range(N):
        begin[i + 1] += begin[i]
    used = begin[:-1].copy()
    across = np.empty(begin[N], np.int32)
    across_value = np.empty(begin[N])
    for j in range(N):
        for a in range(count[j]):
            i = index[j, a]
            across[used[i]] = j
            across_value[used[i]] = -value[j, a] * diagonal[j]
            used[i] += 1
    # Row i is the mean of column i's own coefficients and those that other columns have for i.
    start = np.zeros(N + 1, np.int64)
    out_index = np.empty(2 * begin[N] + N, np.int32)
    out_value = np.empty(2 * begin[N] + N)
    total = np.zeros(N)
    filled = 0
    for i in range(N):
        for a in range(count[i]):
            total[index[i, a]] -= 0.5 * value[i, a] * diagonal[i]
        for k in range(begin[i], begin[i + 1]):
            total[across[k]] += 0.5 * across_value[k]
        out_index[filled], out_value[filled] = i, diagonal[i]
        filled += 1
        total[i] = 0.0
        for a in range(count[i]):
            j = index[i, a]
            if total[j] != 0.0:
                out_index[filled], out_value[filled] = j, total[j]
                filled += 1
                total[j] = 0.0
        for k in range(begin[i], begin[i + 1]):
            j = across[k]
            if total[j] != 0.0:
                out_index[filled], out_value[filled] = j, total[j]
                filled += 1
                total[j] = 0.0
        start[i + 1] = filled
    return start, out_index[:filled], out_value[:filled]


@compiled_alongside
def _scatter(start: IndexArray, index: IndexArray, value: FloatArray, out: FloatArray, begin: int, end: int) -> None:
    for i in range(begin, end):
        out[i, :] = 0.0
        for k in range(start[i], start[i + 1]):
            out[i, index[k]] = value[k]


@compiled
def _is_dominant(start: IndexArray, index: IndexArray, value: FloatArray) -> bool:
    """Look for v by power iteration: its limit, if any v, will do."""
    N = len(start) - 1
    v, beside = np.ones(N), np.empty(N)
    for _ in range(ROUNDS):
        largest, smallest = 0.0, np.inf
        for i in range(N):
            total, own = 0.0, 0.0
            for k in range(start[i], start[i + 1]):
                if index[k] == i:
                    own = value[k]
                else:
                    total += abs(value[k]) * v[index[k]]
            if not own > 0.0:
                return False
            beside[i] = total / own
            largest, smallest = max(largest, beside[i] / v[i]), min(smallest, beside[i] / v[i])
        if largest < DOMINANT:
            return True
        if smallest >= 1.0:  # the limit lies between the two
            return False
        for i in range(N):
            v[i] = (v[i] + beside[i]) / (1.0 + largest)  # with v itself: some graphs would go to and fro for ever
    return False
