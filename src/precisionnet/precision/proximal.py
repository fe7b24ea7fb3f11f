r"""Graphical lasso with coupling and spectral bound: Step 1 of Algorithm 1, problem (8) of the paper divided by 1 - alpha.

    minimise    tr(C theta) - log det(theta + ridge I) + l1_penalty * sum_{i != j} |theta_ij|
                + coupling / 2 * || theta - anchor ||_F^2
    subject to  0 <= theta <= spectral_bound * I

Regime: dense, up to a few hundred variables, warm starts. Proximal gradient with Barzilai-Borwein steps and
backtracking (G-ISTA; Guillot, Rajaratnam, Rolfs, Maleki and Wong, 2012). A step is only taken when its result is
positive definite and lies under the quadratic model, so it cannot diverge; every iterate comes out of the soft
threshold, so zeros are exact. The spectral bound is not part of these steps. It is checked at the end, and only when
it binds the problem is solved again by splitting (``splitting.py``).
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from precisionnet.errors import InputError
from precisionnet.linalg import (
    extreme_eigenvalues,
    into_spectral_box,
    inverse_from_cholesky,
    log_det_from_cholesky,
    soft_threshold_off_diagonal,
    symmetrize,
    try_cholesky,
)
from precisionnet.precision.objective import min_norm_subgradient
from precisionnet.precision.splitting import solve_by_splitting
from precisionnet.types import FloatArray

SMALLEST_EIGENVALUE = 1e-10
"""How far inside the cone a result stays, relative to the bound: definite, not only semi-definite."""

MAX_BACKTRACKS = 60


@dataclass(frozen=True)
class PrecisionResult:
    """A solved problem: the matrix, how far it is from optimal, and what happened on the way."""

    precision: FloatArray
    residual: float
    """Largest entry of the smallest subgradient (without the bound), relative to max |C|; or, where the bound binds,
    the relative primal and dual residual of the splitting."""
    converged: bool
    bound_active: bool
    message: str
    n_iter: int
    seconds: float


def graphical_lasso(
    emp_cov: FloatArray,
    l1_penalty: float,
    *,
    anchor: FloatArray | None = None,
    coupling: float = 0.0,
    spectral_bound: float | None = None,
    ridge: float = 0.0,
    init: FloatArray | None = None,
    tol: float = 1e-6,
    max_iter: int = 2000,
) -> PrecisionResult:
    """Solve the problem above.

    Parameters
    ----------
    emp_cov : (N, N) symmetric sample covariance C.
    l1_penalty : weight of the off-diagonal l1 norm.
    anchor, coupling : the quadratic term; both or neither.
    spectral_bound : largest eigenvalue allowed (None: no bound).
    ridge : added to theta inside the log-determinant.
    init : where to start (the previous epoch's result, say); by default the solution for a diagonal C.
    tol : relative optimality residual to stop at.
    """
    started = time.perf_counter()
    emp_cov = np.asarray(emp_cov, dtype=np.float64)
    _check(emp_cov, l1_penalty, anchor, coupling, spectral_bound, ridge)
    anchor = np.zeros_like(emp_cov) if anchor is None else symmetrize(np.asarray(anchor, dtype=np.float64))
    bound = np.inf if spectral_bound is None else float(spectral_bound)
    low = SMALLEST_EIGENVALUE * min(bound, 1.0)

    theta = _start(emp_cov, anchor, coupling, ridge, bound) if init is None else np.asarray(init, dtype=np.float64)
    theta, residual, n_iter, stop = _descend(
        theta, emp_cov, anchor, l1_penalty, coupling, ridge, tol, max_iter, give_up_at=4.0 * bound
    )
    smallest, largest = extreme_eigenvalues(theta)
    bound_active = largest > bound or smallest < low
    if bound_active:
        theta, residual, n_split = solve_by_splitting(
            emp_cov, anchor, l1_penalty, coupling, ridge, low=low, high=bound, tol=tol, max_iter=max_iter
        )
        n_iter += n_split
        theta = into_spectral_box(theta, low, bound)
        stop = "converged" if residual <= tol else "max_iter"
    return PrecisionResult(
        precision=theta,
        residual=residual,
        converged=residual <= tol,
        bound_active=bound_active,
        message=_MESSAGES[stop].format(residual=residual, tol=tol, n_iter=n_iter),
        n_iter=n_iter,
        seconds=time.perf_counter() - started,
    )


_MESSAGES = {
    "converged": "converged: residual {residual:.1e} after {n_iter} iterations",
    "max_iter": "stopped after {n_iter} iterations with residual {residual:.1e} > {tol:.0e}: raise max_iter or tol",
    "stalled": (
        "no further descent is possible in float64: residual {residual:.1e} > {tol:.0e}; the problem is badly scaled, "
        "standardise the features or raise l1_penalty"
    ),
}


def _check(
    emp_cov: FloatArray,
    l1_penalty: float,
    anchor: FloatArray | None,
    coupling: float,
    bound: float | None,
    ridge: float,
) -> None:
    if emp_cov.ndim != 2 or emp_cov.shape[0] != emp_cov.shape[1]:
        raise InputError(f"emp_cov must be a square matrix, got shape {emp_cov.shape}: pass a covariance, not the data.")
    if not np.isfinite(emp_cov).all():
        raise InputError("emp_cov holds NaN or infinity: drop or impute the missing values before the covariance.")
    if not np.allclose(emp_cov, emp_cov.T, rtol=1e-8, atol=1e-10 * np.abs(emp_cov).max()):
        raise InputError("emp_cov is not symmetric: a covariance is; symmetrise it as (C + C.T) / 2 if that is meant.")
    for name, value in {"l1_penalty": l1_penalty, "coupling": coupling, "ridge": ridge}.items():
        if not (np.isfinite(value) and value >= 0):
            raise InputError(f"{name} must be a finite number >= 0, got {value}.")
    if bound is not None and not bound > 0:
        raise InputError(f"spectral_bound must be > 0, got {bound}.")
    if (anchor is None) != (coupling == 0) and anchor is None:
        raise InputError("coupling > 0 needs an anchor: the matrix that theta is tied to.")
    if anchor is not None and np.shape(anchor) != emp_cov.shape:
        raise InputError(f"anchor has shape {np.shape(anchor)}, emp_cov {emp_cov.shape}: they must agree.")


def _start(emp_cov: FloatArray, anchor: FloatArray, coupling: float, ridge: float, bound: float) -> FloatArray:
    """The exact solution when everything off the diagonal is zero: coupling x^2 + (c - coupling a) x - 1 = 0."""
    c = np.maximum(np.diag(emp_cov), 0.0)
    linear = c - coupling * (np.diag(anchor) + ridge)
    if coupling > 0:
        diagonal = (-linear + np.sqrt(linear**2 + 4.0 * coupling)) / (2.0 * coupling)
    else:
        diagonal = 1.0 / np.maximum(c, np.finfo(float).tiny ** 0.5)
    return np.diag(np.clip(diagonal - ridge, 1e-8, min(bound, 1e8)))


def _descend(
    theta: FloatArray,
    emp_cov: FloatArray,
    anchor: FloatArray,
    l1_penalty: float,
    coupling: float,
    ridge: float,
    tol: float,
    max_iter: int,
    give_up_at: float,
) -> tuple[FloatArray, float, int, str]:
    """G-ISTA: returns theta, its residual, the iterations, and why it stopped. Never leaves the cone."""
    identity = np.eye(len(theta))
    scale = max(float(np.abs(emp_cov).max()), np.finfo(float).tiny)

    def smooth(point: FloatArray, factor: FloatArray) -> float:
        distance = point - anchor
        fit = float(np.vdot(emp_cov, point)) - log_det_from_cholesky(factor)
        return fit + 0.5 * coupling * float(np.vdot(distance, distance))

    def gradient(point: FloatArray, factor: FloatArray) -> FloatArray:
        return emp_cov - inverse_from_cholesky(factor) + coupling * (point - anchor)

    factor = try_cholesky(theta + ridge * identity)
    if factor is None:  # a warm start from outside the cone: start over from its definite part
        theta = into_spectral_box(theta, 1e-6 * max(1.0, float(np.abs(theta).max())), np.inf)
        factor = try_cholesky(theta + ridge * identity)
        assert factor is not None
    value, grad = smooth(theta, factor), gradient(theta, factor)
    step = 1.0 / (coupling + float(np.abs(inverse_from_cholesky(factor)).sum(axis=0).max()) ** 2)

    residual = np.inf
    for iteration in range(max_iter):
        residual = float(np.abs(min_norm_subgradient(theta, grad, l1_penalty)).max()) / scale
        if residual <= tol:
            return theta, residual, iteration, "converged"
        if float(np.diag(theta).max()) > give_up_at:  # a diagonal entry never exceeds the largest eigenvalue
            return theta, residual, iteration, "max_iter"
        for _ in range(MAX_BACKTRACKS):
            candidate = soft_threshold_off_diagonal(theta - step * grad, step * l1_penalty)
            move = candidate - theta
            factor = try_cholesky(candidate + ridge * identity)
            if factor is not None:
                candidate_value = smooth(candidate, factor)
                model = value + float(np.vdot(grad, move)) + float(np.vdot(move, move)) / (2.0 * step)
                if candidate_value <= model + 1e-14 * max(1.0, abs(value)):
                    break
            step *= 0.5
        else:
            return theta, residual, iteration, "stalled"
        candidate_grad = gradient(candidate, factor)
        curvature = float(np.vdot(move, candidate_grad - grad))
        length = float(np.vdot(move, move))
        if length == 0.0:
            return theta, residual, iteration, "stalled"
        theta, value, grad = candidate, candidate_value, candidate_grad
        step = length / curvature if curvature > 0 else 2.0 * step
    return theta, residual, max_iter, "max_iter"
