r"""Graphical lasso with coupling and spectral bound: Step 1 of Algorithm 1, the paper's (8) divided by 1 - alpha.

    minimise    tr(C theta) - log det(theta + ridge I) + l1_penalty * sum_{i != j} |theta_ij|
                + coupling / 2 * || theta - anchor ||_F^2
    subject to  0 <= theta <= spectral_bound * I

The public function: checks, a start, the solver of ``splitting.py``, and a result that says how good it is.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from precisionnet.errors import InputError
from precisionnet.linalg import into_spectral_box, symmetrize
from precisionnet.precision.splitting import Smooth, solve_by_splitting
from precisionnet.types import FloatArray

SMALLEST_EIGENVALUE = 1e-10
"""How far inside the cone a result stays, relative to the bound: definite, not only semi-definite."""


@dataclass(frozen=True)
class PrecisionResult:
    """A solved problem: the matrix, how far it is from optimal, and what happened on the way."""

    precision: FloatArray
    residual: float
    """Largest entry of the smallest subgradient, relative to the problem's scale; where a bound binds, the relative
    residuals of the splitting."""
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

    start = (
        _start(emp_cov, anchor, coupling, ridge, bound) if init is None else symmetrize(np.asarray(init, np.float64))
    )
    split = solve_by_splitting(
        Smooth(emp_cov, anchor, coupling, ridge), l1_penalty, start, low=low, high=bound, tol=tol, max_iter=max_iter
    )
    converged = split.residual <= tol
    return PrecisionResult(
        precision=into_spectral_box(split.theta, low, bound),
        residual=split.residual,
        converged=converged,
        bound_active=split.bound_active,
        message=_MESSAGES[converged].format(residual=split.residual, tol=tol, n_iter=split.n_iter),
        n_iter=split.n_iter,
        seconds=time.perf_counter() - started,
    )


_MESSAGES = {
    True: "converged: residual {residual:.1e} after {n_iter} iterations",
    False: (
        "stopped after {n_iter} iterations with residual {residual:.1e} > {tol:.0e}: standardise the features, raise "
        "the l1 penalty, or raise max_iter"
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
        raise InputError(
            f"emp_cov must be a square matrix, got shape {emp_cov.shape}: pass a covariance, not the data."
        )
    if not np.isfinite(emp_cov).all():
        raise InputError("emp_cov holds NaN or infinity: drop or impute the missing values before the covariance.")
    if not np.allclose(emp_cov, emp_cov.T, rtol=1e-8, atol=1e-10 * np.abs(emp_cov).max()):
        raise InputError("emp_cov is not symmetric: a covariance is; symmetrise it as (C + C.T) / 2 if that is meant.")
    for name, value in {"l1_penalty": l1_penalty, "coupling": coupling, "ridge": ridge}.items():
        if not (np.isfinite(value) and value >= 0):
            raise InputError(f"{name} must be a finite number >= 0, got {value}.")
    if bound is not None and not bound > 0:
        raise InputError(f"spectral_bound must be > 0, got {bound}.")
    if anchor is None and coupling > 0:
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
