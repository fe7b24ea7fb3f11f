"""Lines 3-8 of Algorithm 1, literally as printed in the paper (``step1="paper"``).

How the listing differs from the problem it is meant to solve, and so from ``api.py``:

- its gradient and its threshold drop the factor (1 - task_weight): it minimises L_GL + coupling/2 ||.||^2;
- its step is fixed, so it diverges once ``step > 2 / curvature``, which happens when an eigenvalue of
  ``theta + ridge I`` nears zero;
- the projection onto the positive semi-definite cone comes after the soft threshold and fills its zeros in again.

Kept for comparison with the paper, not for use.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, inv, norm

from precisionnet.linalg import extreme_eigenvalues, psd_projection, soft_threshold_off_diagonal
from precisionnet.types import FloatArray


def listing_passes(
    theta: FloatArray,
    emp_cov: FloatArray,
    anchor: FloatArray,
    *,
    l1_penalty: float,
    coupling: float,
    bound: float,
    ridge: float,
    step: float,
    n_passes: int,
) -> FloatArray:
    """``n_passes`` of gradient step, soft threshold, projection and norm clip; NaN where an inverse does not exist."""
    identity = np.eye(len(theta))
    for _ in range(n_passes):
        try:
            inverse = inv(theta + ridge * identity)
        except (LinAlgError, ValueError):
            return np.full_like(theta, np.nan)
        theta = theta - step * (emp_cov - inverse + coupling * (theta - anchor))
        if not np.isfinite(theta).all():
            return np.full_like(theta, np.nan)
        theta = soft_threshold_off_diagonal(theta, step * l1_penalty)
        theta = psd_projection(theta)
        theta = bound / max(bound, float(norm(theta, 2))) * theta
    return theta


def listing_curvature(theta: FloatArray, *, coupling: float, ridge: float) -> float:
    """Largest curvature of what the listing descends on, at ``theta``: steps below 2 / curvature lower it nearby.

    Of - log det(theta + ridge I) it is 1 / (smallest eigenvalue + ridge)^2, of the coupling's square ``coupling``.
    """
    smallest, _ = extreme_eigenvalues(theta)
    return 1.0 / (smallest + ridge) ** 2 + coupling
