r"""The plain graphical lasso: exact screening, one scale for all, block descent, and ADMM where that gives up.

    minimise over theta   tr(C theta) - log det theta + sum_{i != j} penalty_ij |theta_ij|

Screening (Witten, Friedman and Simon 2011; Mazumder and Hastie 2012): where no pair across two groups of variables has
|C_ij| > penalty_ij, the graphical lasso has no edge across them, and the groups are separate problems.

Each component is solved in units in which every variance lies between 1/2 and 2. The units are powers of two, so
nothing is rounded on the way there and back: C and 2^k C have the same answer to the last bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from precisionnet.compiled import compiled
from precisionnet.linalg import inverse_from_cholesky, log_det_in_place, try_cholesky
from precisionnet.precision.admm import solve_by_admm
from precisionnet.precision.block_descent import NEAR, block_descent, feasible_start
from precisionnet.precision.certificate import Verdict
from precisionnet.precision.objective import Penalty, row_of
from precisionnet.precision.problem import LARGE
from precisionnet.threads import Team, blas_threads
from precisionnet.types import FloatArray, IndexArray


class WarmStart(NamedTuple):
    """Where to start: a precision matrix and a positive definite estimate of its inverse."""

    theta: FloatArray
    dual: FloatArray


class Solved(NamedTuple):
    """The answer over all components."""

    theta: FloatArray
    dual: FloatArray
    verdict: Verdict
    n_iter: int
    exhausted: bool
    """Whether more iterations were not allowed (True) or would not have helped (False)."""
    log_det: float | None = None
    """The logarithm of theta's determinant, if the solver factorised theta."""
    definite: bool = False
    """Whether theta is known to be positive definite."""


def solve_plain(
    emp_cov: FloatArray,
    penalty: Penalty,
    *,
    tol: float,
    max_iter: int,
    start: WarmStart | None = None,
    screen: bool = True,
    keep_dual: bool = False,
) -> Solved:
    """Solve component by component, each to a relative gap of ``tol``.

    ``keep_dual`` asks for the dual point over all components, which a neighbouring problem can start from.
    """
    n = len(emp_cov)
    diagonal = np.diag(emp_cov)
    unit = power_of_two_units(diagonal)
    groups = components(emp_cov, penalty) if screen else [np.arange(n)]
    if len(groups) == 1:
        return _solve_component(emp_cov, penalty, unit, start, tol, max_iter, keep_dual)
    theta = np.zeros((n, n))
    dual = np.zeros((n, n)) if keep_dual else theta
    gap, residual, n_iter, exhausted = 0.0, 0.0, 0, False
    log_det: float | None = 0.0
    for members in groups:
        if len(members) == 1:
            only = members[0]
            theta[only, only] = 1.0 / diagonal[only]
            log_det = None if log_det is None else log_det - float(np.log(diagonal[only]))
            if keep_dual:
                dual[only, only] = diagonal[only]
            continue
        inner = None if start is None else WarmStart(_block(start.theta, members), _block(start.dual, members))
        solved = _solve_component(
            _block(emp_cov, members), penalty.block(members), unit[members], inner, tol, max_iter, keep_dual
        )
        _place(solved.theta, members, theta)
        own = log_det_in_place(solved.theta)
        log_det = None if log_det is None or own is None else log_det + own
        if keep_dual:
            _place(solved.dual, members, dual)
        gap += solved.verdict.gap * len(members)
        residual = max(residual, solved.verdict.residual)
        n_iter, exhausted = max(n_iter, solved.n_iter), exhausted or solved.exhausted
    return Solved(theta, dual, Verdict(gap / n, residual), n_iter, exhausted, log_det)


def components(emp_cov: FloatArray, penalty: Penalty) -> list[IndexArray]:
    """Groups of variables (sorted indices) that are separate problems."""
    labels = _labels(emp_cov, *penalty)
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)


def power_of_two_units(variance: FloatArray) -> FloatArray:
    """Powers of two that bring every variance between 1/2 and 2 when it is multiplied by their square."""
    return np.asarray(2.0 ** -np.round(0.5 * np.log2(variance)))


def _solve_component(
    emp_cov: FloatArray,
    penalty: Penalty,
    unit: FloatArray,
    start: WarmStart | None,
    tol: float,
    max_iter: int,
    keep_dual: bool,
) -> Solved:
    S = emp_cov
    if not (unit == 1.0).all():
        S = _times_outer(emp_cov.copy(), unit)
        penalty = penalty.rescaled(unit)
    begin = None if start is None else _matching(start, S)
    definite = False
    with Team(blas_threads() if len(S) >= LARGE else 1) as team:
        descent = block_descent(S, penalty, tol=tol, max_iter=max_iter, start=begin, team=team)
        if descent is not None and (descent.verdict.gap <= tol or descent.n_iter >= max_iter):
            definite = len(S) >= LARGE and descent.theta.has_dominant_diagonal()
            theta = descent.theta.toarray(None if keep_dual else descent.room, team)
            dual, verdict, n_iter = descent.dual if keep_dual else theta, descent.verdict, descent.n_iter
        else:
            near = None if descent is None or descent.verdict.gap > NEAR else descent.theta.toarray(descent.room)
            admm = solve_by_admm(
                S,
                penalty.dense(),
                np.zeros_like(S),
                0.0,
                _regularised_inverse(S, penalty) if near is None else near,
                low=0.5 / float(np.trace(S)),  # never binds: no eigenvalue of W is above its trace, which is that of S
                high=np.inf,
                tol=tol,
                max_iter=max_iter,
            )
            factor = try_cholesky(admm.theta)
            dual = np.diag(np.diag(S)) if factor is None else inverse_from_cholesky(factor)
            theta, verdict, n_iter = admm.theta, admm.verdict, admm.n_iter
    if S is not emp_cov:
        theta = _times_outer(theta, unit)
        if keep_dual:  # in double: the caller's units may be beyond single precision
            dual = _times_outer(dual.astype(np.float64), 1.0 / unit)
    return Solved(theta, dual, verdict, n_iter, n_iter >= max_iter, definite=definite)


def _regularised_inverse(S: FloatArray, penalty: Penalty) -> FloatArray:
    """Return the inverse of block descent's own start, which has the right size even for a nearly singular answer."""
    factor = try_cholesky(feasible_start(S, penalty))
    return np.diag(1.0 / np.diag(S)) if factor is None else inverse_from_cholesky(factor)


def _times_outer(matrix: FloatArray, unit: FloatArray) -> FloatArray:
    """Multiply matrix_ij by unit_i unit_j, in place."""
    matrix *= unit
    matrix *= unit[:, None]
    return matrix


def _matching(start: WarmStart, S: FloatArray) -> WarmStart:
    """The start in the component's units, its dual rescaled to the diagonal of S, which block descent never moves."""
    scale = np.sqrt(np.diag(S) / np.diag(start.dual))
    return WarmStart(_times_outer(start.theta.copy(), 1.0 / scale), _times_outer(start.dual.copy(), scale))


@compiled
def _block(matrix: FloatArray, members: IndexArray) -> FloatArray:
    """Return the rows and columns of ``members``."""
    n = len(members)
    out = np.empty((n, n))
    for a in range(n):
        row = members[a]
        for b in range(n):
            out[a, b] = matrix[row, members[b]]
    return out


@compiled
def _place(block: FloatArray, members: IndexArray, out: FloatArray) -> None:
    """Write a block into the rows and columns of ``members`` in ``out``: the reverse of ``_block``."""
    for a in range(len(members)):
        row = members[a]
        for b in range(len(members)):
            out[row, members[b]] = block[a, b]


@compiled
def _labels(emp_cov: FloatArray, l1: float, unit: FloatArray, matrix: FloatArray) -> IndexArray:
    """Return the smallest member of each variable's group, by union-find over the pairs above the penalty."""
    N = len(emp_cov)
    parent = np.arange(N)
    penalty = np.empty(N)
    groups = N
    for j in range(N):
        if groups == 1:
            break
        row_of(l1, unit, matrix, j, penalty)
        for i in range(j):
            if abs(emp_cov[j, i]) > penalty[i]:
                a, b = i, j
                while parent[a] != a:
                    parent[a] = parent[parent[a]]
                    a = parent[a]
                while parent[b] != b:
                    parent[b] = parent[parent[b]]
                    b = parent[b]
                if a != b:
                    parent[max(a, b)] = min(a, b)
                    groups -= 1
    for i in range(N):
        parent[i] = parent[parent[i]]
    return parent
