r"""One column's problem in block descent: a lasso on a small Gram block, solved to the end.

    minimise over b   1/2 b' G b - s' b + sum_a penalty_a |b_a|

Coordinate descent finds the signs; with the signs known the minimiser is a linear system, so every few passes that
system is solved directly. Where its solution changes a sign, the step stops at the first coordinate that reaches zero,
which leaves the support (the objective is quadratic up to there and falls all the way), and the system is solved again.
Plain coordinate descent alone needs thousands of passes where columns are nearly collinear.
"""

from __future__ import annotations

import numpy as np

from precisionnet.compiled import compiled
from precisionnet.types import FloatArray, IndexArray

FIRST_DIRECT = 4
MAX_WORK = 1e7, 20.0
"""Multiplications one column may take, a constant and a multiple of n^3: past that it is not worth finishing."""
PIVOT = 1e-14
ROUNDING = 1e-12


@compiled
def residual(G: FloatArray, s: FloatArray, b: FloatArray, r: FloatArray, n: int) -> None:
    """r = s - G b."""
    for a in range(n):
        total = s[a]
        for c in range(n):
            total -= G[a, c] * b[c]
        r[a] = total


@compiled
def coordinate_pass(G: FloatArray, penalty: FloatArray, b: FloatArray, r: FloatArray, n: int) -> float:
    """One pass over the coordinates; the largest change, in the units of r."""
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
    """The minimiser with b's zeros and signs kept, by Cholesky, or the step towards it that ends at the first zero.

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
