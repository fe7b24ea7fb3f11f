r"""Sparse precision matrices: the graphical lasso, alone or as Step 1 of Algorithm 1 (the paper's (8) over 1 - alpha).

    minimise    tr(C theta) - log det(theta + ridge I) + sum_{i != j} l1_penalty_ij |theta_ij|
                + coupling / 2 * || theta - anchor ||_F^2
    subject to  0 <= theta <= spectral_bound * I

The public function and who solves what: block descent without coupling (``plain.py``), proximal Newton with it
(``newton.py``), splitting where a bound turns out to bind (``splitting.py``). Whoever solved it, the result is proved:
one Cholesky says that it is positive definite, and the certificate how far from optimal it can be.
"""

from __future__ import annotations

import time

import numpy as np

from precisionnet.errors import InputError
from precisionnet.linalg import (
    into_spectral_box,
    inverse_from_cholesky,
    log_det_from_cholesky,
    symmetrize,
    try_cholesky,
)
from precisionnet.precision.certificate import Verdict, exact_divergence
from precisionnet.precision.newton import Newton, newton
from precisionnet.precision.component_solver import Solved, Start, power_of_two_units, solve_plain
from precisionnet.precision.problem import Problem, checked_matrix, is_number, normal_form
from precisionnet.precision.result import PrecisionResult, Status
from precisionnet.precision.admm import solve_by_splitting, within
from precisionnet.types import BoolArray, FloatArray

SMALLEST_EIGENVALUE = 1e-14
"""How far inside the cone a result stays, relative to the bound: definite, not only semi-definite."""
NEWTON_STEPS = 60
ROUNDING = 1e-12
REGULARISED = 1e-8
"""Share of the variances added to a singular covariance when there is no minimiser and something must be returned."""


def graphical_lasso(
    emp_cov: FloatArray,
    l1_penalty: float | FloatArray,
    *,
    anchor: FloatArray | None = None,
    coupling: float = 0.0,
    spectral_bound: float | None = None,
    ridge: float = 0.0,
    known_zeros: BoolArray | None = None,
    penalize_diagonal: bool = False,
    init: FloatArray | None = None,
    tol: float = 1e-6,
    max_iter: int = 2000,
) -> PrecisionResult:
    """Solve the problem above.

    Parameters
    ----------
    emp_cov : (N, N) symmetric sample covariance C.
    l1_penalty : weight of |theta_ij|, one number or a symmetric matrix of them.
    anchor, coupling : the quadratic term; both or neither.
    spectral_bound : largest eigenvalue allowed (None: no bound).
    ridge : added to theta inside the log-determinant.
    known_zeros : (N, N) mask, True where theta_ij must be zero.
    penalize_diagonal : put the penalty on the diagonal, too (the convention of R's glasso).
    init : where to start (a solution nearby); one that is not positive definite is ignored.
    tol : proved relative gap to stop at.
    max_iter : sweeps of block descent or iterations of the splitting.
    """
    started = time.perf_counter()
    check_stopping(tol, max_iter)
    problem = normal_form(
        emp_cov,
        l1_penalty,
        anchor=anchor,
        coupling=coupling,
        spectral_bound=spectral_bound,
        ridge=ridge,
        known_zeros=known_zeros,
        penalize_diagonal=penalize_diagonal,
    )
    start = None if init is None else starting_point(init, problem)
    return solve(problem, start, tol=tol, max_iter=max_iter, started=started)[0]


def check_stopping(tol: float, max_iter: int) -> None:
    """``tol`` and ``max_iter`` are usable."""
    if not (is_number(tol) and tol > 0):
        raise InputError(f"tol must be a number > 0, got {tol!r}.")
    if not (isinstance(max_iter, int | np.integer) and max_iter >= 1):
        raise InputError(f"max_iter must be a whole number, at least 1, got {max_iter!r}.")


def starting_point(init: FloatArray, problem: Problem) -> Start | None:
    """A caller's matrix, for block descent with its inverse; None where it has none."""
    phi = checked_matrix("init", init, like=problem.size) + problem.ridge * np.eye(problem.size)
    if not problem.penalty.uniform:
        phi[np.isinf(problem.penalty.matrix)] = 0.0  # known zeros
    if problem.anchor is not None:
        return Start(phi, phi)  # newton factorises it itself, and needs no more
    factor = try_cholesky(phi)
    return None if factor is None else Start(phi, inverse_from_cholesky(factor))


def solve(
    problem: Problem, start: Start | None, *, tol: float, max_iter: int, started: float, keep_dual: bool = False
) -> tuple[PrecisionResult, Start | None]:
    """The result and, with ``keep_dual``, where a neighbouring problem should start."""
    free, unbounded = _without_bounds(problem, start, tol, max_iter, keep_dual)
    bounded = np.isfinite(problem.high)
    if free is not None and not (unbounded and bounded) and within(free.theta, problem.low, problem.high):
        solved, active = free, False
    else:
        solved, active = _with_bounds(problem, free, tol, max_iter)
    phi, verdict, log_det = solved.theta, solved.verdict, solved.log_det
    if log_det is None:
        factor = try_cholesky(phi)
        if factor is None:  # rounding at the edge of the cone
            smallest = ROUNDING * float(np.abs(phi).sum(axis=0).max())
            phi, verdict = into_spectral_box(symmetrize(phi), smallest, np.inf), Verdict(np.inf, np.inf)
            factor = try_cholesky(phi)
            assert factor is not None
        log_det = log_det_from_cholesky(factor)
    objective = problem.objective(phi, log_det)
    gap = verdict.gap * problem.size / max(problem.size, abs(objective)) if np.isfinite(objective) else np.inf
    status: Status
    if unbounded and not bounded:
        status = "unbounded"
    elif gap <= tol:
        status = "optimal"
    else:
        status = "max_iter" if solved.exhausted else "ill_conditioned"
    precision = phi if problem.ridge == 0.0 else phi - problem.ridge * np.eye(problem.size)
    result = PrecisionResult(
        precision=precision,
        objective=objective,
        gap=gap,
        residual=verdict.residual,
        status=status,
        bound_active=active,
        n_iter=solved.n_iter,
        seconds=time.perf_counter() - started,
        tol=tol,
    )
    return result, None if free is None else Start(free.theta, free.dual)


def _without_bounds(
    problem: Problem, start: Start | None, tol: float, max_iter: int, keep_dual: bool
) -> tuple[Solved | None, bool]:
    """The solution if no eigenvalue were bounded (None: there is none to speak of), and whether none exists."""
    if problem.anchor is not None:
        return _coupled(problem, problem.anchor, start, tol, max_iter), False
    if (np.diag(problem.emp_cov) == 0.0).any():
        return None, True
    if problem.penalty.uniform and problem.penalty.l1 == 0.0:
        return _inverse(problem)
    solved = solve_plain(problem.emp_cov, problem.penalty, tol=tol, max_iter=max_iter, start=start, keep_dual=keep_dual)
    return solved, False


def _inverse(problem: Problem) -> tuple[Solved, bool]:
    """No penalty: the inverse of C, or of a regularised C where it has none."""
    scale = power_of_two_units(np.diag(problem.emp_cov))
    unit_cov = problem.emp_cov * np.outer(scale, scale)
    factor = try_cholesky(unit_cov)
    singular = factor is None
    if factor is None:
        smallest = float(np.linalg.eigvalsh(unit_cov)[0])
        factor = try_cholesky(unit_cov + (REGULARISED - min(smallest, 0.0)) * np.eye(problem.size))
        assert factor is not None
    theta = inverse_from_cholesky(factor)
    gap = np.inf if singular else exact_divergence(theta, unit_cov) / problem.size
    residual = float(np.abs(theta @ unit_cov - np.eye(problem.size)).max())
    theta *= np.outer(scale, scale)
    return Solved(theta, problem.emp_cov, Verdict(gap, residual), 1, False), singular


def _coupled(problem: Problem, anchor: FloatArray, start: Start | None, tol: float, max_iter: int) -> Solved:
    def steps_from(theta: FloatArray) -> Newton | None:
        limit = min(max_iter, NEWTON_STEPS)
        return newton(problem.emp_cov, problem.penalty, anchor, problem.coupling, theta, tol=tol, max_iter=limit)

    steps = None if start is None else steps_from(start.theta)
    steps = steps or steps_from(_diagonal_start(problem, anchor))
    assert steps is not None, "a positive diagonal is positive definite"
    if steps.verdict.gap <= tol or max_iter < NEWTON_STEPS:
        exhausted = steps.n_iter >= max_iter
        return Solved(steps.theta, steps.theta, steps.verdict, steps.n_iter, exhausted, steps.log_det)
    split = solve_by_splitting(
        problem.emp_cov,
        problem.penalty.dense(),
        anchor,
        problem.coupling,
        steps.theta,
        low=0.0,
        high=np.inf,
        tol=tol,
        max_iter=max_iter,
    )
    return Solved(split.theta, split.theta, split.verdict, split.n_iter, split.n_iter >= max_iter)


def _with_bounds(problem: Problem, near: Solved | None, tol: float, max_iter: int) -> tuple[Solved, bool]:
    """By splitting, and whether a bound is active."""
    anchor = np.zeros_like(problem.emp_cov) if problem.anchor is None else problem.anchor
    start = _diagonal_start(problem, anchor) if near is None else near.theta
    low = problem.low + SMALLEST_EIGENVALUE * (problem.high if np.isfinite(problem.high) else problem.low)
    split = solve_by_splitting(
        problem.emp_cov,
        problem.penalty.dense(),
        anchor,
        problem.coupling,
        into_spectral_box(start, low, problem.high),
        low=low,
        high=problem.high,
        tol=tol,
        max_iter=max_iter,
        stated_low=problem.low,
    )
    exhausted = split.n_iter >= max_iter
    return Solved(split.theta, split.theta, split.verdict, split.n_iter, exhausted), split.bound_active


def _diagonal_start(problem: Problem, anchor: FloatArray) -> FloatArray:
    """The exact solution when everything off the diagonal is zero: coupling x^2 + (c - coupling a) x - 1 = 0."""
    c, coupling = np.diag(problem.emp_cov), problem.coupling
    if coupling > 0:
        linear = c - coupling * np.diag(anchor)
        root = np.sqrt(linear**2 + 4.0 * coupling)
        # The form without cancellation, whichever sign the linear term has.
        with np.errstate(divide="ignore"):
            diagonal = np.where(linear > 0.0, 2.0 / (linear + root), (root - linear) / (2.0 * coupling))
    else:
        diagonal = 1.0 / np.maximum(c, np.finfo(float).tiny ** 0.5)
    return np.diag(np.clip(diagonal, problem.low, problem.high))
