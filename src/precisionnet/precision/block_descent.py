r"""The plain graphical lasso by dual block-coordinate descent (Banerjee 2008; Friedman, Hastie and Tibshirani 2008).

    maximise over W  log det W + N   subject to  |W_ij - S_ij| <= penalty_ij,  W_ii = S_ii

Regime: one connected component of any size; fastest where the answer is sparse. A column of W is optimal given the
others when w = W11 b with b the lasso solution of ``lasso_kernel.py``; then theta_jj = 1 / (W_jj - w' b), and the rest
of the column is -b theta_jj. W stays positive definite from a positive definite start inside the box.

How this differs from the textbook:

- b is kept sparse from sweep to sweep and solved on its own small Gram block; one product with those few rows of W
  gives the whole column, and one scan of it the coordinates that should enter;
- in the first sweeps those wait for the next sweep, so a column costs one product; once that was not enough (nearly
  singular S) a column is solved again until none is left out;
- the start is (1 - e) S + e diag(S) with e as large as the box allows: positive definite for any covariance;
- it stops on the certificate of ``certificate.py``, which needs neither a Cholesky factor nor an inverse;
- from ``SINGLE_PRECISION_FROM`` columns on W is stored in single precision, until the certificate, always evaluated in
  double, asks for more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from precisionnet.compiled import compiled, compiled_alongside
from precisionnet.precision.block_sweep import BLOCK, blocks_of, list_candidates, sweep_block
from precisionnet.precision.certificate import SparseSymmetric, Verdict, divergence, divergence_bound, symmetric_rows
from precisionnet.precision.lasso_kernel import LassoColumns, combine_rows, solve_column, violators
from precisionnet.precision.objective import NO_MATRIX, Penalty, row_of
from precisionnet.precision.problem import LARGE
from precisionnet.threads import Team
from precisionnet.types import FloatArray, IndexArray

SINGLE_PRECISION_FROM, SINGLE_PRECISION_TOL = 400, 1e-8
QUICK_SWEEPS, QUICK_PASSES = 3, 20
CAREFUL_ROUNDS, CAREFUL_PASSES = 50, 400
FIRST_TOLERANCE = 1e-3
TIGHT, TIGHTEST = 1e-13, 1e-15
STALLED_SWEEPS = 60
NEAR = 0.1
"""Relative gap below which an unfinished descent is a better start for another solver than none."""
WORTH_CERTIFYING = 25.0
"""The gap after a sweep is about a thirtieth of the squared change of W in it."""
NEARLY = 1.0 - 1e-12
BUDGET, SMALLEST_BUDGET = 100, 1e9
"""Multiplications, over N^3, after which ADMM would have been done: dense answers of nearly singular problems."""


class Descent(NamedTuple):
    """The end of the descent: the best precision matrix and how good it is, and the last W."""

    theta: SparseSymmetric
    dual: FloatArray
    verdict: Verdict
    n_iter: int
    room: FloatArray
    """The memory of W, as large as a dense theta: for one who has no need of W."""


def block_descent(
    S: FloatArray,
    penalty: Penalty,
    *,
    tol: float,
    max_iter: int,
    start: tuple[FloatArray, FloatArray] | None = None,
    team: Team | None = None,
) -> Descent | None:
    """Solve one component to a relative gap of ``tol``; None where S leaves no positive definite dual point.

    ``start`` is a pair (theta, W) of matrices, W positive definite with the diagonal of S.
    """
    team = team or Team()
    budget = max(BUDGET * float(len(S)) ** 3, SMALLEST_BUDGET)
    descent, budget = _descend(S, penalty, tol, max_iter, start, QUICK_SWEEPS, budget, team)
    if descent is None and budget > 0.0:
        # Quick sweeps leave the box, and far outside it no column may have a positive definite answer: never leave it.
        descent, _ = _descend(S, penalty, tol, max_iter, None, 0, budget, team)
    return descent


def _descend(
    S: FloatArray,
    penalty: Penalty,
    tol: float,
    max_iter: int,
    start: tuple[FloatArray, FloatArray] | None,
    quick_sweeps: int,
    budget: float,
    team: Team,
) -> tuple[Descent | None, float]:
    """Sweep to the end: the best point, if W stayed definite or one was certified, and what is left of the budget."""
    n = len(S)
    single = n >= SINGLE_PRECISION_FROM and tol >= SINGLE_PRECISION_TOL and quick_sweeps > 0
    room = np.empty((n, n))
    W = room.ravel().view(np.float32)[: n * n].reshape(n, n) if single else room
    _start_inside(W, S, penalty, None if start is None else start[1], team)
    columns = LassoColumns.of(None if start is None else start[0], n)
    theta_diagonal = np.empty(n)
    best: tuple[Verdict, SparseSymmetric] | None = None
    last_best = sweep_number = 0
    moved, fresh = 0.0, start is None
    tightest = max(min(TIGHT, 1e-4 * tol), TIGHTEST)
    for sweep_number in range(1, max_iter + 1):
        careful = sweep_number > quick_sweeps
        tolerance = max(FIRST_TOLERANCE * 10.0 ** (1 - sweep_number), tightest) if quick_sweeps else tightest
        sweep = _sweep_in_blocks if n >= LARGE and not careful else _sweep_all
        moved, budget = sweep(S, W, penalty, columns, theta_diagonal, fresh, careful, tolerance, budget, team)
        fresh = False
        if np.isnan(moved):
            break
        # The next sweep moves W by less than this one did: not worth a certificate while that was a lot.
        if moved > WORTH_CERTIFYING * tol * n and sweep_number < max_iter:
            continue
        theta = SparseSymmetric(*symmetric_rows(columns.index, columns.value, columns.count, theta_diagonal))
        verdict = divergence_bound(theta, W, S, penalty, team)
        if verdict.gap > tol and careful:
            exact = divergence(theta, W, S, penalty)
            verdict = exact if exact.gap < verdict.gap else verdict
        if best is None or verdict.gap < best[0].gap:
            last_best = sweep_number if best is None or verdict.gap < 0.9 * best[0].gap else last_best
            best = verdict, theta
        if verdict.gap <= tol or sweep_number - last_best >= STALLED_SWEEPS:
            break
        if W.dtype == np.float32 and careful:
            W = room = W.astype(np.float64)
    if np.isnan(moved) and (best is None or best[0].gap > NEAR):
        return None, budget
    if best is None:
        theta = SparseSymmetric(*symmetric_rows(columns.index, columns.value, columns.count, theta_diagonal))
        best = Verdict(np.inf, np.inf), theta
    verdict, theta = best
    return Descent(theta, W, verdict, sweep_number, room), budget


def feasible_start(S: FloatArray, penalty: Penalty) -> FloatArray:
    """(1 - e) S + e diag(S) with e <= 1 as large as the box |W - S| <= penalty allows."""
    W = np.empty_like(S)
    _start_inside(W, S, penalty, None, Team())
    return W


def _start_inside(W: FloatArray, S: FloatArray, penalty: Penalty, near: FloatArray | None, team: Team) -> None:
    """Set W to S + e (near - S), by default with near = diag(S), and e <= 1 as large as the box allows.

    Positive definite where ``near`` is and S is semi-definite. A start outside the box would not do: there may be no
    positive definite W with the other columns as they are.
    """
    n, near = len(S), NO_MATRIX if near is None else np.asarray(near, dtype=np.float64)
    if team.size == 1:
        _blend(S, near, _largest_share(S, near, *penalty, 0, n), W, 0, n)
        return
    share = min(team(lambda k: _largest_share(S, near, *penalty, *team.part(n, k))))
    team(lambda k: _blend(S, near, share, W, *team.part(n, k)))


def _sweep_all(
    S: FloatArray,
    W: FloatArray,
    penalty: Penalty,
    columns: LassoColumns,
    theta_diagonal: FloatArray,
    fresh: bool,
    careful: bool,
    tolerance: float,
    budget: float,
    team: Team,
    within: tuple[int, int] | None = None,
) -> tuple[float, float]:
    """One sweep, or its columns ``within``, making room where a column needs more.

    Returns the squared change of W (NaN where it had to stop) and what is left of the budget.
    """
    total = 0.0
    j, end = within or (0, len(S))
    while j < end:
        j, needed, moved, work = _sweep(
            S,
            W,
            *penalty,
            columns.index,
            columns.value,
            columns.count,
            theta_diagonal,
            j,
            end,
            fresh,
            careful,
            tolerance,
            budget,
        )
        total, budget = total + moved, budget - work
        if needed < 0:
            return np.nan, budget
        columns.grow(needed)
    return total, budget


def _sweep_in_blocks(
    S: FloatArray,
    W: FloatArray,
    penalty: Penalty,
    columns: LassoColumns,
    theta_diagonal: FloatArray,
    fresh: bool,
    careful: bool,
    tolerance: float,
    budget: float,
    team: Team,
) -> tuple[float, float]:
    """Make one sweep in the blocks of ``block_sweep.py``, or column by column if these would be small.

    Returns the same as ``_sweep_all``.
    """
    one_by_one = S, W, penalty, columns, theta_diagonal
    if fresh:
        list_candidates(S, penalty, columns, team)
    blocks = blocks_of(columns)
    if blocks is None:
        return _sweep_all(*one_by_one, False, careful, tolerance, budget, team)
    total, rows = 0.0, np.empty((BLOCK, len(S)))
    for block in blocks:
        done = sweep_block(S, W, penalty, columns, theta_diagonal, block, tolerance, team, rows)
        if done is not None:
            moved, work = done
            total, budget = total + moved, budget - work
            if budget < 0.0:
                return np.nan, budget
            continue
        for j in block:
            moved, budget = _sweep_all(*one_by_one, False, careful, tolerance, budget, team, within=(j, j + 1))
            total += moved
            if np.isnan(moved):
                return np.nan, budget
    return total, budget


@compiled
def _sweep(
    S: FloatArray,
    W: FloatArray,
    l1: float,
    unit: FloatArray,
    matrix: FloatArray,
    index: IndexArray,
    value: FloatArray,
    count: IndexArray,
    theta_diagonal: FloatArray,
    begin: int,
    end: int,
    fresh: bool,
    careful: bool,
    tol: float,
    budget: float,
) -> tuple[int, int, float, int]:
    """Columns ``begin`` to ``end``.

    Returns where it stopped, the room needed there (-1: W is not definite or the budget is spent), the squared change
    of W and the multiplications spent on column problems.
    """
    N = S.shape[0]
    capacity = index.shape[1]
    w = np.empty(N)
    penalty = np.empty(N)
    member = np.zeros(N, np.bool_)
    gram = np.empty((capacity, capacity))
    factor = np.empty((capacity, capacity))
    b, s, r, y, p = (np.empty(capacity), np.empty(capacity), np.empty(capacity), np.empty(capacity), np.empty(capacity))
    support = np.empty(capacity, np.int64)
    moved = 0.0
    work = 0
    for j in range(begin, end):
        if work > budget:
            return j, -1, moved, work
        row_of(l1, unit, matrix, j, penalty)
        n = count[j]
        if fresh:
            n = 0
            for i in range(N):
                if abs(S[j, i]) > penalty[i] and i != j:
                    if n < capacity:
                        index[j, n] = i
                        value[j, n] = 0.0
                    n += 1
            if n > capacity:
                count[j] = 0
                return j, n, moved, work
        # A column that was not solved well enough can leave W indefinite: then it is solved again, carefully.
        schur, carefully, column_tol = 0.0, careful, tol
        while not schur > 0.0:
            for _ in range(CAREFUL_ROUNDS if carefully else 1):
                for a in range(n):
                    ia = index[j, a]
                    for c in range(n):
                        gram[a, c] = W[ia, index[j, c]]
                    b[a], s[a], p[a] = value[j, a], S[j, ia], penalty[ia]
                work += solve_column(
                    gram, s, p, b, r, n, column_tol, CAREFUL_PASSES if carefully else QUICK_PASSES, factor, y, support
                )
                m = 0
                for a in range(n):
                    if b[a] != 0.0:
                        index[j, m], value[j, m] = index[j, a], b[a]
                        m += 1
                combine_rows(W, index[j], value[j], m, w)
                w[j] = S[j, j]
                entered = violators(S[j], w, penalty, index[j], m, member, value[j])
                count[j] = n = min(m + entered, capacity)
                if m + entered > capacity:
                    return j, m + entered, moved, work
                if entered == 0:
                    break
            schur = S[j, j]
            for a in range(m):
                schur -= value[j, a] * w[index[j, a]]
            if carefully and not schur > 0.0:
                return j, -1, moved, work
            carefully, column_tol = True, TIGHT
        theta_diagonal[j] = 1.0 / schur
        for i in range(N):
            change = w[i] - W[j, i]
            moved += change * change
            W[j, i] = w[i]
        for i in range(N):
            W[i, j] = w[i]
    return end, 0, moved, work


@compiled_alongside
def _largest_share(
    S: FloatArray, near: FloatArray, l1: float, unit: FloatArray, matrix: FloatArray, begin: int, end: int
) -> float:
    """Largest e <= 1 with e |near_ij - S_ij| <= penalty_ij wherever there is a penalty; empty ``near``: diag(S)."""
    N = len(S)
    penalty = np.empty(N)
    share = 1.0
    for j in range(begin, end):
        row_of(l1, unit, matrix, j, penalty)
        for i in range(j):
            away = abs(S[j, i]) if near.shape[0] == 0 else abs(near[j, i] - S[j, i])
            # The smallest quotient, whatever is looked at first: the part of each thread is joined to the others'.
            if share * away > NEARLY * penalty[i] and penalty[i] > 0.0:
                share = min(share, penalty[i] / away)
    return share


@compiled_alongside
def _blend(S: FloatArray, near: FloatArray, share: float, out: FloatArray, begin: int, end: int) -> None:
    for j in range(begin, end):
        for i in range(len(S)):
            out[j, i] = (1.0 - share) * S[j, i]
            if near.shape[0] > 0:
                out[j, i] += share * near[j, i]
        out[j, j] = S[j, j]
