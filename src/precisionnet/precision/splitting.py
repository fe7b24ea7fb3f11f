r"""The same problem where the spectral bound binds: splitting (ADMM) between the eigenvalues and the l1 norm.

    minimise  [ tr(C T) - log det(T + ridge I) + coupling/2 ||T - anchor||_F^2,  low <= eig(T) <= high ]  + l1 |Z|_1
    subject to  T = Z

The T-update is one eigendecomposition and a scalar equation an eigenvalue; the Z-update is a soft threshold, so the
returned Z has exact zeros. Z meets the bound up to the primal residual, which the caller removes. Boyd, Parikh, Chu,
Peleato and Eckstein (2011), sections 3.3, 3.4 and 6.5.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from precisionnet.linalg import soft_threshold_off_diagonal, symmetrize
from precisionnet.types import FloatArray


def solve_by_splitting(
    emp_cov: FloatArray,
    anchor: FloatArray,
    l1_penalty: float,
    coupling: float,
    ridge: float,
    *,
    low: float,
    high: float,
    tol: float,
    max_iter: int,
) -> tuple[FloatArray, float, int]:
    """Returns Z, the larger of the relative primal and dual residuals, and the iterations."""
    n = len(emp_cov)
    z = np.diag(np.clip(1.0 / np.maximum(np.diag(emp_cov), 1e-12), low, min(high, 1e8)))
    dual = np.zeros_like(z)  # scaled: the multiplier over rho
    rho = max(coupling, float(np.abs(emp_cov).max()) / max(float(np.abs(z).max()), 1e-12))
    residual = np.inf
    for iteration in range(1, max_iter + 1):
        centre = (rho * (z - dual) + coupling * anchor - emp_cov) / (rho + coupling)
        values, vectors = eigh(symmetrize(centre))
        # (rho + coupling)(x - value) = 1 / (x + ridge), its positive root in x + ridge
        shifted = values + ridge
        root = 0.5 * (shifted + np.sqrt(shifted**2 + 4.0 / (rho + coupling))) - ridge
        t = symmetrize((vectors * np.clip(root, low, high)) @ vectors.T)
        previous = z
        z = soft_threshold_off_diagonal(t + dual, l1_penalty / rho)
        dual = dual + t - z
        primal, change = float(np.linalg.norm(t - z)), float(np.linalg.norm(z - previous))
        norm = max(float(np.linalg.norm(z)), np.finfo(float).tiny)
        dual_norm = max(float(np.linalg.norm(dual)), norm * 1e-3)
        residual = max(primal / norm, change / dual_norm)
        if residual <= tol:
            return symmetrize(z), residual, iteration
        if iteration % 10 == 0 and iteration < max_iter // 2:  # balance the two residuals (section 3.4.1)
            if primal > 10.0 * change:
                rho, dual = 2.0 * rho, dual / 2.0
            elif change > 10.0 * primal:
                rho, dual = rho / 2.0, dual * 2.0
    assert z.shape == (n, n)
    return symmetrize(z), residual, max_iter
