r"""The graphical-lasso loss, eq. (6) of the paper, with the coupling of problem (7), and what optimality means for it.

    L_GL(theta) = tr(C theta) - log det(theta + ridge I) + l1_penalty * sum_{i != j} |theta_ij|
    F(theta)    = L_GL(theta) + coupling / 2 * || theta - anchor ||_F^2

Small pure functions: the loss is what the joint method reports, and the tests judge the solvers by both.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from precisionnet.linalg import l1_off_diagonal, log_det_from_cholesky, try_cholesky
from precisionnet.types import FloatArray


class LossTerms(NamedTuple):
    """The three terms of the graphical-lasso loss; their sum is the loss."""

    trace: float
    neg_log_det: float
    l1: float

    @property
    def total(self) -> float:
        """The loss itself."""
        return self.trace + self.neg_log_det + self.l1


def graphical_lasso_terms(theta: FloatArray, emp_cov: FloatArray, l1_penalty: float, ridge: float = 0.0) -> LossTerms:
    """Terms of L_GL; the log-determinant is +inf outside its domain."""
    factor = try_cholesky(theta + ridge * np.eye(len(theta)))
    return LossTerms(
        trace=float(np.vdot(emp_cov, theta)),
        neg_log_det=np.inf if factor is None else -log_det_from_cholesky(factor),
        l1=l1_penalty * l1_off_diagonal(theta),
    )


def min_norm_subgradient(theta: FloatArray, smooth_gradient: FloatArray, l1_penalty: float) -> FloatArray:
    """Smallest element of the subdifferential of F at theta: zero exactly at the minimiser.

    Where an off-diagonal entry is non-zero the l1 term is smooth; where it is zero, the subgradient may cancel up to
    ``l1_penalty`` of the smooth gradient. The diagonal carries no penalty.
    """
    at_zero = np.sign(smooth_gradient) * np.maximum(np.abs(smooth_gradient) - l1_penalty, 0.0)
    result = np.where(theta == 0.0, at_zero, smooth_gradient + l1_penalty * np.sign(theta))
    np.fill_diagonal(result, np.diag(smooth_gradient))
    return result
