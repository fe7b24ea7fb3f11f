r"""The solver: splitting (ADMM) between the eigenvalues and the l1 norm.

    minimise  tr(C T) - log det(T + ridge I) + coupling/2 ||T - anchor||_F^2 + l1_penalty * sum_{i != j} |Z_ij|
    subject to  T = Z,  low <= eigenvalues of T <= high

Regime: dense, up to a few hundred variables. The T-update is one eigendecomposition and a quadratic an eigenvalue, so
the log-determinant's barrier, the coupling and both bounds are met exactly, and no step length exists that could be too
long. The Z-update is a soft threshold, so the returned Z has exact zeros; it meets the bounds up to the residual,
which the caller removes. Boyd, Parikh, Chu, Peleato and Eckstein (2011), sections 3.3, 3.4.1, 3.4.3 and 6.5.

How this differs from the textbook: the start of the dual is read off the optimality conditions at the starting point,
so that a matrix is all a warm start needs; and it stops on the optimality residual of the result itself (every few
rounds), not on the iterates' distance, which says little when C is badly conditioned.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from precisionnet.linalg import inverse_from_cholesky, soft_threshold_off_diagonal, symmetrize, try_cholesky
from precisionnet.precision.objective import min_norm_subgradient
from precisionnet.types import FloatArray

CHECK_EVERY = 5
RELAXATION = 1.6
SETTLE = 100


class Smooth(NamedTuple):
    """The smooth part of the problem."""

    emp_cov: FloatArray
    anchor: FloatArray
    coupling: float
    ridge: float

    def gradient(self, theta: FloatArray) -> FloatArray | None:
        """C - (theta + ridge I)^-1 + coupling (theta - anchor), or None outside the log-determinant's domain."""
        factor = try_cholesky(theta + self.ridge * np.eye(len(theta)))
        if factor is None:
            return None
        return self.emp_cov - inverse_from_cholesky(factor) + self.coupling * (theta - self.anchor)

    def residual(self, theta: FloatArray, l1_penalty: float) -> float:
        """Largest entry of the smallest subgradient, relative to the largest of C: zero at an interior optimum."""
        gradient = self.gradient(theta)
        if gradient is None:
            return np.inf
        scale = float(np.abs(self.emp_cov).max()) + self.coupling * float(np.abs(theta).max())
        return float(np.abs(min_norm_subgradient(theta, gradient, l1_penalty)).max()) / scale


class Split(NamedTuple):
    """Where the iteration ended."""

    theta: FloatArray
    residual: float
    bound_active: bool
    n_iter: int


def solve_by_splitting(
    smooth: Smooth, l1_penalty: float, start: FloatArray, *, low: float, high: float, tol: float, max_iter: int
) -> Split:
    """Iterate until the residual is below ``tol`` or ``max_iter`` is reached."""
    emp_cov, anchor, coupling, ridge = smooth
    z = start
    rho = coupling + _curvature(start, ridge)
    dual = _dual_at(smooth, z, l1_penalty) / rho
    residual, active = np.inf, False
    for iteration in range(1, max_iter + 1):
        centre = (rho * (z - dual) + coupling * anchor - emp_cov) / (rho + coupling)
        values, vectors = eigh(symmetrize(centre), check_finite=False)
        # (rho + coupling)(x - value) = 1 / (x + ridge): the root with x + ridge > 0
        shifted = values + ridge
        root = 0.5 * (shifted + np.sqrt(shifted**2 + 4.0 / (rho + coupling))) - ridge
        clipped = np.clip(root, low, high)
        t = symmetrize((vectors * clipped) @ vectors.T)
        relaxed = RELAXATION * t + (1.0 - RELAXATION) * z
        previous, z = z, soft_threshold_off_diagonal(relaxed + dual, l1_penalty / rho)
        dual = dual + relaxed - z
        if iteration % CHECK_EVERY and iteration < max_iter:
            continue
        active = bool((root > high).any() or (root < low).any())
        primal, change = float(np.linalg.norm(t - z)), float(np.linalg.norm(z - previous))
        # With a bound active the subgradient does not vanish; then the two residuals of the splitting have to serve.
        norm = float(np.linalg.norm(z))
        residual = max(primal, change) / norm if active else smooth.residual(z, l1_penalty)
        if residual <= tol:
            break
        # Balance the two residuals (section 3.4.1), less and less: a rho that never settles would not converge.
        ratio = np.sqrt(max(primal, np.finfo(float).tiny) / max(change, np.finfo(float).tiny))
        factor = float(np.clip(ratio, 0.5, 2.0)) ** (SETTLE / (SETTLE + iteration))
        rho, dual = rho * factor, dual / factor
    return Split(symmetrize(z), residual, active, iteration)


def _curvature(start: FloatArray, ridge: float) -> float:
    """Typical second derivative of -log det at the start, the geometric mean of 1 / eigenvalue^2."""
    factor = try_cholesky(start + ridge * np.eye(len(start)))
    if factor is None:
        return 1.0
    return float(np.exp(-4.0 * np.mean(np.log(np.diag(factor)))))


def _dual_at(smooth: Smooth, theta: FloatArray, l1_penalty: float) -> FloatArray:
    """The multiplier that optimality asks for at theta: minus the smooth gradient, off the diagonal, in the l1 box."""
    gradient = smooth.gradient(theta)
    if gradient is None:
        return np.zeros_like(theta)
    dual = np.clip(-gradient, -l1_penalty, l1_penalty)
    np.fill_diagonal(dual, 0.0)
    return dual
