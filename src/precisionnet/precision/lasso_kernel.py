r"""One column's problem in block descent: a lasso on a small Gram block, solved to the end.

    minimise over b   1/2 b' G b - s' b + sum_a penalty_a |b_a|

Coordinate descent finds the signs; with the signs known the minimiser is a linear system, so every few passes that
system is solved directly. Where its solution changes a sign, the step stops at the first coordinate that reaches zero,
which leaves the support (the objective is quadratic up to there and falls all the way), and the system is solved again.
Plain coordinate descent alone needs thousands of passes where columns are nearly collinear.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from precisionnet.compiled import compiled
from precisionnet.types import BoolArray, FloatArray, IndexArray

FIRST_DIRECT = 4
MAX_WORK = 1e7, 20.0
"""Multiplications one column may take, a constant and a multiple of n^3: past that it is not worth finishing."""
PIVOT = 1e-14
ROUNDING = 1e-12
FIRST_CAPACITY = 64
OUTSIDE, OUTSIDE_ROUNDING = 1.0 + 1e-6, 1e-13


@dataclass
class LassoColumns:
    """The lasso coefficients of every column, sparse: the first ``count[j]`` of row j are in use."""

    index: IndexArray
    value: FloatArray
    count: IndexArray

    @classmethod
    def of(cls, theta: FloatArray | None, n: int) -> LassoColumns:
        """Empty, or those that belong to a precision matrix."""
        if theta is None:
            capacity = min(n, FIRST_CAPACITY)
            return cls(np.zeros((n, capacity), np.int32), np.zeros((n, capacity)), np.zeros(n, np.int64))
        count = np.count_nonzero(theta, axis=1) - 1
        columns = cls.of(None, n)
        columns.grow(int(count.max()))
        _fill(theta, columns.index, columns.value, columns.count)
        return columns

    def grow(self, capacity: int) -> None:
        """Make room for at least ``capacity`` coefficients per column."""
        n, old = self.index.shape
        if capacity > old:
            extra = min(n, max(capacity, 2 * old)) - old
            self.index = np.hstack([self.index, np.zeros((n, extra), np.int32)])
            self.value = np.hstack([self.value, np.zeros((n, extra))])


@compiled
def residual(G: FloatArray, s: FloatArray, b: FloatArray, r: FloatArray, n: int) -> None:
    """Compute r = s - G b, in place."""
    for a in range(n):
        total = s[a]
        for c in range(n):
            total -= G[a, c] * b[c]
        r[a] = total


@compiled
def coordinate_pass(G: FloatArray, penalty: FloatArray, b: FloatArray, r: FloatArray, n: int) -> float:
    """Make one pass over the coordinates; return the largest change, in the units of r."""
    largest = 0.0
    for a in range(n):
        z = r[a] + G[a, a] * b[a]
        shrunk = abs(z) - penalty[a]
        new = 0.0 if shrunk <= 0.0 else (shrunk / G[a, a] if z > 0.0 else -shrunk / G[a, a])
        change = new - b[a]
        if change != 0.0:
            b[a] = new
            for c in range(n):
                r[c] -= G[a, c] * change
            largest = max(largest, abs(change) * G[a, a])
    return largest


@compiled
def solve_on_support(
    G: FloatArray,
    s: FloatArray,
    penalty: FloatArray,
    b: FloatArray,
    n: int,
    factor: FloatArray,
    y: FloatArray,
    support: IndexArray,
) -> tuple[bool, int]:
    """Move b to the minimiser with its zeros and signs, by Cholesky, or towards it until a coefficient becomes zero.

    Returns whether the signs agreed to the end, and the multiplications it took.
    """
    work = 0
    while work <= MAX_WORK[0] + MAX_WORK[1] * n**3:
        m = 0
        for a in range(n):
            if b[a] != 0.0:
                support[m] = a
                m += 1
        work += m * m * m // 6 + m * m
        for p in range(m):
            for q in range(p + 1):
                total = G[support[p], support[q]]
                for k in range(q):
                    total -= factor[p, k] * factor[q, k]
                if q < p:
                    factor[p, q] = total / factor[q, q]
                elif total <= PIVOT * G[support[p], support[p]]:
                    return False, work
                else:
                    factor[p, p] = np.sqrt(total)
        for p in range(m):
            a = support[p]
            total = s[a] - np.sign(b[a]) * penalty[a]
            for k in range(p):
                total -= factor[p, k] * y[k]
            y[p] = total / factor[p, p]
        for p in range(m - 1, -1, -1):
            y[p] /= factor[p, p]
            for k in range(p):
                y[k] -= factor[p, k] * y[p]
        step, first = 1.0, -1
        for p in range(m):
            here = b[support[p]]
            if y[p] * here <= 0.0 and here / (here - y[p]) < step:
                step, first = here / (here - y[p]), p
        for p in range(m):
            a = support[p]
            b[a] = y[p] if first < 0 else b[a] + step * (y[p] - b[a])
        if first < 0:
            return True, work
        b[support[first]] = 0.0
    return False, work


@compiled
def solve_column(
    G: FloatArray,
    s: FloatArray,
    penalty: FloatArray,
    b: FloatArray,
    r: FloatArray,
    n: int,
    tol: float,
    max_passes: int,
    factor: FloatArray,
    y: FloatArray,
    support: IndexArray,
) -> int:
    """Minimise over b, from the b given; r ends as s - G b. Returns the multiplications it took."""
    work = n * n
    residual(G, s, b, r, n)
    next_direct = FIRST_DIRECT
    for iteration in range(max_passes):
        if work > MAX_WORK[0] + MAX_WORK[1] * n**3:
            break
        work += n * n
        if coordinate_pass(G, penalty, b, r, n) <= tol:
            break
        if iteration >= next_direct:
            next_direct += FIRST_DIRECT
            agreed, spent = solve_on_support(G, s, penalty, b, n, factor, y, support)
            work += n * n + spent
            residual(G, s, b, r, n)
            optimal = agreed
            for a in range(n):
                if b[a] == 0.0 and abs(r[a]) > penalty[a] * (1.0 + ROUNDING):
                    optimal = False
            if optimal:
                break
    return work


@compiled
def combine_rows(W: FloatArray, index: IndexArray, value: FloatArray, m: int, out: FloatArray) -> None:
    """out = sum_a value_a W[index_a], four rows at a time."""
    N = W.shape[0]
    out[:] = 0.0
    a = 0
    while a + 3 < m:
        i0, i1, i2, i3 = index[a], index[a + 1], index[a + 2], index[a + 3]
        v0, v1, v2, v3 = value[a], value[a + 1], value[a + 2], value[a + 3]
        for i in range(N):
            out[i] += v0 * W[i0, i] + v1 * W[i1, i] + v2 * W[i2, i] + v3 * W[i3, i]
        a += 4
    while a < m:
        i0, v0 = index[a], value[a]
        for i in range(N):
            out[i] += v0 * W[i0, i]
        a += 1


@compiled
def violators(
    s: FloatArray, w: FloatArray, penalty: FloatArray, index: IndexArray, m: int, member: BoolArray, value: FloatArray
) -> int:
    """Append the coordinates outside the box that are not in use yet; how many there are, even past the room."""
    excess = 0.0
    for i in range(len(s)):
        excess = max(excess, abs(s[i] - w[i]) - OUTSIDE * penalty[i])
    if excess <= OUTSIDE_ROUNDING:
        return 0
    for a in range(m):
        member[index[a]] = True
    entered = 0
    for i in range(len(s)):
        if abs(s[i] - w[i]) - OUTSIDE * penalty[i] > OUTSIDE_ROUNDING and not member[i]:
            if m + entered < len(index):
                index[m + entered] = i
                value[m + entered] = 0.0
            entered += 1
    for a in range(m):
        member[index[a]] = False
    return entered


@compiled
def _fill(theta: FloatArray, index: IndexArray, value: FloatArray, count: IndexArray) -> None:
    """Lasso coefficients of each column of a precision matrix: -theta_ij / theta_jj."""
    for j in range(len(theta)):
        n = 0
        for i in range(len(theta)):
            if i != j and theta[j, i] != 0.0:
                index[j, n] = i
                value[j, n] = -theta[j, i] / theta[j, j]
                n += 1
        count[j] = n
