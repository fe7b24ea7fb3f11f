r"""Sparse precision matrices: the graphical lasso, alone or as Step 1 of Algorithm 1 (the paper's (8) over 1 - alpha).

    minimise    tr(C theta) - log det(theta + ridge I) + sum_{i != j} l1_penalty_ij |theta_ij|
                + coupling / 2 * || theta - anchor ||_F^2
    subject to  0 <= theta <= spectral_bound * I

The public functions and who solves what: block descent without coupling (``component_solver.py``), proximal Newton with
it (``newton.py``), ADMM where a bound turns out to bind (``admm.py``). Each result is proved: one Cholesky says that it
is positive definite, and the certificate how far from optimal it can be.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

import numpy as np

from precisionnet.errors import InputError
from precisionnet.linalg import (
    extreme_eigenvalues,
    into_spectral_box,
    inverse_from_cholesky,
    log_det_in_place,
    symmetrize,
    try_cholesky,
    within_spectral_box,
)
from precisionnet.precision.admm import solve_by_admm
from precisionnet.precision.certificate import Verdict, exact_divergence
from precisionnet.precision.component_solver import Solved, WarmStart, power_of_two_units, solve_plain
from precisionnet.precision.newton import newton
from precisionnet.precision.problem import PrecisionProblem, checked_matrix, is_number, normal_form
from precisionnet.precision.result import PrecisionResult, Status
from precisionnet.types import BoolArray, FloatArray

SMALLEST_EIGENVALUE = 1e-14
"""Smallest eigenvalue of a result, relative to its bounds: it keeps a result definite, not only semi-definite."""
NEWTON_STEPS = 60
ROUNDING = 1e-12
INDEFINITE = 1e-8
"""Share of the largest eigenvalue by which a negative one is more than rounding."""
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
    """Estimate a sparse precision matrix, with a proof of its accuracy.

    Minimises ``tr(C theta) - log det(theta + ridge I) + sum_{i != j} l1_ij |theta_ij|
    + coupling / 2 * ||theta - anchor||_F^2`` over symmetric ``theta`` with eigenvalues between 0 and
    ``spectral_bound``.

    Parameters
    ----------
    emp_cov : array-like of shape (n_features, n_features)
        Symmetric sample covariance ``C``.
    l1_penalty : float or array-like of shape (n_features, n_features)
        Weight of ``|theta_ij|``, one number or a symmetric matrix. From ``l1_max(emp_cov)`` on the graph is empty.
    anchor : array-like of shape (n_features, n_features), default=None
        Matrix that ``theta`` is tied to; needed where ``coupling`` is not zero.
    coupling : float, default=0.0
        Weight of the squared distance to ``anchor``.
    spectral_bound : float, default=None
        Largest eigenvalue allowed; None sets no bound.
    ridge : float, default=0.0
        Added to the diagonal of ``theta`` inside the log-determinant.
    known_zeros : array-like of bool of shape (n_features, n_features), default=None
        Symmetric mask, True where ``theta_ij`` must be zero.
    penalize_diagonal : bool, default=False
        Whether the penalty is on the diagonal, too, as in R's glasso.
    init : array-like of shape (n_features, n_features), default=None
        Where to start, such as a solution nearby; a matrix that is not positive definite is ignored.
    tol : float, default=1e-6
        Proved relative gap at which the solver stops.
    max_iter : int, default=2000
        Largest number of sweeps of block descent, or of iterations of ADMM.

    Returns
    -------
    PrecisionResult
        ``precision``, its proved ``gap``, ``status`` and ``message``.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.precision import graphical_lasso
    >>> emp_cov = np.array([[1.0, 0.6, 0.1], [0.6, 1.0, 0.2], [0.1, 0.2, 1.0]])
    >>> result = graphical_lasso(emp_cov, 0.3)
    >>> result.converged
    True
    >>> result.precision.round(2)
    array([[ 1.1 , -0.33,  0.  ],
           [-0.33,  1.1 ,  0.  ],
           [ 0.  ,  0.  ,  1.  ]])
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
    start = None if init is None else _starting_point(init, problem)
    return solve(problem, start, tol=tol, max_iter=max_iter, started=started)[0]


def graphical_lasso_path(
    emp_cov: FloatArray,
    l1_penalties: Sequence[float] | FloatArray,
    *,
    tol: float = 1e-6,
    max_iter: int = 2000,
    **options: object,
) -> list[PrecisionResult]:
    """Solve the graphical lasso for many penalties, each started at its neighbour.

    Parameters
    ----------
    emp_cov : array-like of shape (n_features, n_features)
        Symmetric sample covariance.
    l1_penalties : sequence of float
        Penalties in any order; they are solved from the largest down. ``penalty_grid`` makes such a list.
    tol : float, default=1e-6
        Proved relative gap at which each solve stops.
    max_iter : int, default=2000
        Largest number of sweeps of each solve.
    **options : object
        Other parameters of :func:`graphical_lasso`, but not ``init``.

    Returns
    -------
    list of PrecisionResult
        One result per penalty, in the order given.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.precision import count_edges, graphical_lasso_path
    >>> emp_cov = np.array([[1.0, 0.6, 0.1], [0.6, 1.0, 0.2], [0.1, 0.2, 1.0]])
    >>> [count_edges(result.precision) for result in graphical_lasso_path(emp_cov, [0.7, 0.3, 0.01])]
    [0, 1, 3]
    """
    check_stopping(tol, max_iter)
    try:
        penalties = np.asarray(l1_penalties, dtype=np.float64)
    except (TypeError, ValueError):
        penalties = np.empty(0)
    if penalties.ndim != 1 or len(penalties) == 0:
        raise InputError("l1_penalties must be a list of numbers, at least one.")
    if "init" in options:
        raise InputError("a path starts each penalty at its neighbour: init is for graphical_lasso.")
    results: list[PrecisionResult | None] = [None] * len(penalties)
    start = None
    for position in np.argsort(-penalties, kind="stable"):
        started = time.perf_counter()
        problem = normal_form(emp_cov, float(penalties[position]), **options)  # type: ignore[arg-type]
        results[position], start = solve(problem, start, tol=tol, max_iter=max_iter, started=started, keep_dual=True)
    return [result for result in results if result is not None]


def check_stopping(tol: float, max_iter: int) -> None:
    """``tol`` and ``max_iter`` are usable."""
    if not (is_number(tol) and tol > 0):
        raise InputError(f"tol must be a number > 0, got {tol!r}.")
    if not (isinstance(max_iter, int | np.integer) and max_iter >= 1):
        raise InputError(f"max_iter must be a whole number, at least 1, got {max_iter!r}.")


def _starting_point(init: FloatArray, problem: PrecisionProblem) -> WarmStart | None:
    """A caller's matrix, for block descent with its inverse; None where it has none."""
    phi = checked_matrix("init", init, like=len(problem.emp_cov)) + problem.ridge * np.eye(len(problem.emp_cov))
    if not problem.penalty.uniform:
        phi[np.isinf(problem.penalty.matrix)] = 0.0  # known zeros
    if problem.anchor is not None:
        return WarmStart(phi, phi)  # newton factorises it itself, and needs no more
    factor = try_cholesky(phi)
    return None if factor is None else WarmStart(phi, inverse_from_cholesky(factor))


def solve(
    problem: PrecisionProblem,
    start: WarmStart | None,
    *,
    tol: float,
    max_iter: int,
    started: float,
    keep_dual: bool = False,
    with_log_det: bool = False,
) -> tuple[PrecisionResult, WarmStart | None]:
    """The result and, with ``keep_dual``, where a neighbouring problem should start.

    ``with_log_det`` is for one who needs it: a large matrix is factorised where it lies, not in a second one.
    """
    free, unbounded = _without_bounds(problem, start, tol, max_iter, keep_dual)
    bounded = np.isfinite(problem.high)
    if free is not None and not (unbounded and bounded) and within_spectral_box(free.theta, problem.low, problem.high):
        solved, active = free, False
    else:
        solved, active = _with_bounds(problem, free, tol, max_iter)
    phi, verdict, log_det = solved.theta, solved.verdict, solved.log_det
    # A factor of a large matrix takes as long as solving did.
    proved = solved.definite and problem.ridge == 0.0 and not with_log_det
    if log_det is None and not proved:
        log_det = log_det_in_place(phi)
    if log_det is None and not proved:  # rounding at the edge of the cone
        smallest = ROUNDING * float(np.abs(phi).sum(axis=0).max())
        phi, verdict = into_spectral_box(symmetrize(phi), smallest, np.inf), Verdict(np.inf, np.inf)
        log_det = log_det_in_place(phi)
        assert log_det is not None
    n, without_log_det = len(phi), problem.without_log_det(phi)
    # Hadamard: log det theta <= sum of log theta_ii. So the objective is this, or more.
    least = without_log_det - (float(np.log(phi.diagonal()).sum()) if log_det is None else log_det)
    scale = max(n, least if log_det is None else abs(least))
    gap = verdict.gap * n / scale if np.isfinite(least) else np.inf
    status: Status
    if unbounded and not bounded:
        status = "unbounded"
    elif gap <= tol:
        status = "optimal"
    else:
        status = "max_iter" if solved.exhausted else "ill_conditioned"
    eigenvalue = np.nan
    if status != "optimal" and not bounded and problem.anchor is None:
        eigenvalue = _negative_eigenvalue(problem)
        status = status if np.isnan(eigenvalue) else "indefinite"
    precision = phi if problem.ridge == 0.0 else phi - problem.ridge * np.eye(n)
    result = PrecisionResult(
        precision=precision if solved.definite else np.add(precision, 0.0, out=precision),  # -0.0 becomes 0.0
        without_log_det=without_log_det,
        log_det=log_det,
        gap=gap,
        residual=verdict.residual,
        status=status,
        bound_active=active,
        n_iter=solved.n_iter,
        seconds=time.perf_counter() - started,
        tol=tol,
        eigenvalue=eigenvalue,
    )
    return result, None if free is None else WarmStart(free.theta, free.dual)


def _negative_eigenvalue(problem: PrecisionProblem) -> float:
    """Return the smallest eigenvalue of the caller's covariance if it is negative beyond rounding, else NaN."""
    if (np.diag(problem.given) == 0.0).any():
        return np.nan
    unit = power_of_two_units(np.diag(problem.given))
    smallest, largest = extreme_eigenvalues(problem.given * np.outer(unit, unit))
    return extreme_eigenvalues(problem.given)[0] if smallest < -INDEFINITE * largest else np.nan


def _without_bounds(
    problem: PrecisionProblem, start: WarmStart | None, tol: float, max_iter: int, keep_dual: bool
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


def _inverse(problem: PrecisionProblem) -> tuple[Solved, bool]:
    """Solve without a penalty: invert C, or a regularised C if C has no inverse; return also whether it has none."""
    scale = power_of_two_units(np.diag(problem.emp_cov))
    unit_cov = problem.emp_cov * np.outer(scale, scale)
    factor = try_cholesky(unit_cov)
    singular = factor is None
    if factor is None:
        smallest = float(np.linalg.eigvalsh(unit_cov)[0])
        factor = try_cholesky(unit_cov + (REGULARISED - min(smallest, 0.0)) * np.eye(len(problem.emp_cov)))
        assert factor is not None
    theta = inverse_from_cholesky(factor)
    gap = np.inf if singular else exact_divergence(theta, unit_cov) / len(problem.emp_cov)
    residual = float(np.abs(theta @ unit_cov - np.eye(len(problem.emp_cov))).max())
    theta *= np.outer(scale, scale)
    return Solved(theta, problem.emp_cov, Verdict(gap, residual), 1, False), singular


def _coupled(
    problem: PrecisionProblem, anchor: FloatArray, start: WarmStart | None, tol: float, max_iter: int
) -> Solved:
    """Solve by Newton steps from the start given or from a diagonal one, and by ADMM if those do not converge."""
    steps_from = partial(
        newton,
        problem.emp_cov,
        problem.penalty,
        anchor,
        problem.coupling,
        tol=tol,
        max_iter=min(max_iter, NEWTON_STEPS),
    )
    solution = None if start is None else steps_from(start.theta)
    if solution is None:
        solution = steps_from(_diagonal_start(problem, anchor))
    assert solution is not None, "a positive diagonal is positive definite"
    if solution.verdict.gap <= tol or max_iter < NEWTON_STEPS:
        exhausted = solution.n_iter >= max_iter
        return Solved(solution.theta, solution.theta, solution.verdict, solution.n_iter, exhausted, solution.log_det)
    admm = solve_by_admm(
        problem.emp_cov,
        problem.penalty.dense(),
        anchor,
        problem.coupling,
        solution.theta,
        low=0.0,
        high=np.inf,
        tol=tol,
        max_iter=max_iter,
    )
    return Solved(admm.theta, admm.theta, admm.verdict, admm.n_iter, admm.n_iter >= max_iter)


def _with_bounds(problem: PrecisionProblem, near: Solved | None, tol: float, max_iter: int) -> tuple[Solved, bool]:
    """Solve by ADMM; return the solution, and whether a bound is active."""
    anchor = np.zeros_like(problem.emp_cov) if problem.anchor is None else problem.anchor
    start = _diagonal_start(problem, anchor) if near is None else near.theta
    low = problem.low + SMALLEST_EIGENVALUE * (problem.high if np.isfinite(problem.high) else problem.low)
    admm = solve_by_admm(
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
    exhausted = admm.n_iter >= max_iter
    return Solved(admm.theta, admm.theta, admm.verdict, admm.n_iter, exhausted), admm.bound_active


def _diagonal_start(problem: PrecisionProblem, anchor: FloatArray) -> FloatArray:
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
