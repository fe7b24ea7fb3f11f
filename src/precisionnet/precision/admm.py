r"""The solver of last resort: ADMM, which splits the problem between the eigenvalues and the l1 norm.

    minimise  tr(C T) - log det T + coupling/2 ||T - anchor||_F^2 + sum_{i != j} penalty_ij |Z_ij|
    subject to  T = Z,  low <= eigenvalues of T <= high

Regime: where a spectral bound binds, and dense answers of nearly singular problems; up to about a thousand variables.
The T-update is one eigendecomposition and a quadratic an eigenvalue, so the log-determinant's barrier, the coupling and
both bounds are met exactly, and no step length exists that could be too long. The Z-update is a soft threshold, so the
returned Z has exact zeros. Boyd, Parikh, Chu, Peleato and Eckstein (2011), sections 3.3, 3.4.1, 3.4.3 and 6.5.

How this differs from the textbook: the start of the dual is read off the optimality conditions at the starting point,
so that a matrix is all a warm start needs; and it stops on a proved gap instead of the iterates' distance. The scaled
dual is a subgradient of the l1 norm at Z by construction, so K = C + coupling (Z - anchor) + rho dual is the dual point
of ``certificate.py``; with bounds its eigenvalues outside [1 / high, 1 / low] are taken up by the bounds' multipliers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh, eigvalsh

from precisionnet.linalg import (
    into_spectral_box,
    inverse_from_cholesky,
    log_det_from_cholesky,
    soft_threshold_off_diagonal,
    symmetrize,
    try_cholesky,
)
from precisionnet.precision.certificate import Verdict, above_rounding
from precisionnet.types import FloatArray

CHECK_EVERY = 10
RELAXATION = 1.6
SETTLE = 100


class AdmmSolution(NamedTuple):
    """The best point met, inside the bounds."""

    theta: FloatArray
    verdict: Verdict
    bound_active: bool
    n_iter: int


def solve_by_admm(
    emp_cov: FloatArray,
    penalty: FloatArray,
    anchor: FloatArray,
    coupling: float,
    start: FloatArray,
    *,
    low: float,
    high: float,
    tol: float,
    max_iter: int,
    stated_low: float | None = None,
) -> AdmmSolution:
    """Iterate until the gap, over N, is below ``tol`` or ``max_iter`` is reached; ``penalty`` is a dense matrix.

    ``stated_low`` is the bound that the gap is proved for, where iterates stay further inside.
    """
    proved_low = low if stated_low is None else stated_low
    z = np.where(np.isinf(penalty), 0.0, start)
    curvature, dual = _warm_start(z, emp_cov + coupling * (z - anchor), penalty)
    rho = coupling + curvature
    dual = dual / rho
    best = AdmmSolution(into_spectral_box(z, low, high), Verdict(np.inf, np.inf), False, 0)
    for iteration in range(1, max_iter + 1):
        centre = (rho * (z - dual) + coupling * anchor - emp_cov) / (rho + coupling)
        values, vectors = eigh(symmetrize(centre), check_finite=False, overwrite_a=True)
        # (rho + coupling)(x - value) = 1 / x: the positive root
        root = 0.5 * (values + np.sqrt(values**2 + 4.0 / (rho + coupling)))
        clipped = np.clip(root, low, high)
        t = symmetrize((vectors * clipped) @ vectors.T)
        relaxed = RELAXATION * t + (1.0 - RELAXATION) * z
        previous, z = z, soft_threshold_off_diagonal(relaxed + dual, penalty / rho)
        dual = dual + relaxed - z
        if iteration % CHECK_EVERY and iteration < max_iter:
            continue
        primal, change = float(np.linalg.norm(t - z)), float(np.linalg.norm(z - previous))
        theta = into_spectral_box(symmetrize(z), low, high)
        K = emp_cov + coupling * (theta - anchor) + rho * symmetrize(dual)
        gap = bounded_divergence(theta, K, proved_low, high) / len(theta)
        if gap < best.verdict.gap or not np.isfinite(best.verdict.gap):
            active = bool((root > high).any() or (root < low).any())
            best = AdmmSolution(theta, Verdict(gap, max(primal, change) / float(np.linalg.norm(z))), active, iteration)
        if gap <= tol:
            break
        # Balance the two residuals (section 3.4.1), less and less: a rho that never settles would not converge.
        ratio = np.sqrt(max(primal, np.finfo(float).tiny) / max(change, np.finfo(float).tiny))
        factor = float(np.clip(ratio, 0.25, 4.0)) ** (SETTLE / (SETTLE + iteration))
        rho, dual = rho * factor, dual / factor
    return best._replace(n_iter=iteration)


def bounded_divergence(theta: FloatArray, K: FloatArray, low: float, high: float) -> float:
    """The gap of a theta inside the bounds with the dual point K: ``certificate.py``, with the bounds' multipliers.

    An eigenvalue k of K outside [1 / high, 1 / low] is W = the nearest end plus a multiplier that pays for the rest.
    """
    factor = try_cholesky(theta)
    if factor is None:
        return np.inf
    k = eigvalsh(K, check_finite=False)
    if k[0] <= 0.0 and not np.isfinite(high):
        return np.inf
    inside = np.clip(k, 1.0 / high, 1.0 / low if low > 0.0 else np.inf)
    upper, lower = np.maximum(inside - k, 0.0), np.maximum(k - inside, 0.0)
    paid = (high * upper.sum() if upper.any() else 0.0) - low * lower.sum()
    log_dets = log_det_from_cholesky(factor), float(np.log(inside).sum())
    return above_rounding(theta, K, -float(len(theta)), -log_dets[0], -log_dets[1], paid)


def _warm_start(theta: FloatArray, target: FloatArray, penalty: FloatArray) -> tuple[float, FloatArray]:
    """Curvature and dual at the start.

    The typical second derivative of -log det, the geometric mean of 1 / eigenvalue^2; and the multiplier that
    optimality asks for: minus the smooth gradient, off the diagonal, in the l1 box.
    """
    factor = try_cholesky(theta)
    if factor is None:
        return 1.0, np.zeros_like(theta)
    curvature = float(np.exp(-4.0 * np.mean(np.log(np.diag(factor)))))
    dual = np.clip(inverse_from_cholesky(factor) - target, -penalty, penalty)
    np.fill_diagonal(dual, 0.0)
    return curvature, dual
