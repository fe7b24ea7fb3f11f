r"""The graphical-lasso loss, eq. (6) of the paper, with the coupling of problem (7), and what optimality means for it.

    L_GL(theta) = tr(C theta) - log det(theta + ridge I) + l1_penalty * sum_{i != j} |theta_ij|
    F(theta)    = L_GL(theta) + coupling / 2 * || theta - anchor ||_F^2

Small pure functions: the loss is what the joint method reports, and the tests judge the solvers by both. ``Penalty`` is
the weight of each |theta_ij| as the compiled kernels read it: one number, scaled by a unit per variable, or a matrix.

    penalty_ij = l1 * unit_i * unit_j      or      penalty_ij = matrix_ij   (infinity: a known zero)

A single number never becomes an N x N matrix: that would cost as much memory traffic as the covariance itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from precisionnet.compiled import compiled
from precisionnet.linalg import log_det_from_cholesky, try_cholesky
from precisionnet.types import FloatArray, IndexArray

NO_MATRIX = np.empty((0, 0))


class LossTerms(NamedTuple):
    """The three terms of the graphical-lasso loss; their sum is the loss.

    Parameters
    ----------
    trace : float
        ``tr(C theta)``.
    neg_log_det : float
        ``-log det(theta + ridge I)``; infinite where that matrix is not positive definite.
    l1 : float
        ``l1_penalty`` times the sum of the absolute off-diagonal entries.

    Examples
    --------
    >>> from precisionnet.precision import LossTerms
    >>> LossTerms(trace=2.0, neg_log_det=-0.5, l1=0.25).total
    1.75
    """

    trace: float
    neg_log_det: float
    l1: float

    @property
    def total(self) -> float:
        """The loss: the sum of the three terms."""
        return self.trace + self.neg_log_det + self.l1


def graphical_lasso_terms(theta: FloatArray, emp_cov: FloatArray, l1_penalty: float, ridge: float = 0.0) -> LossTerms:
    """Compute the terms of the graphical-lasso loss at a precision matrix.

    Parameters
    ----------
    theta : ndarray of shape (n_features, n_features)
        Symmetric matrix at which the loss is taken.
    emp_cov : ndarray of shape (n_features, n_features)
        Sample covariance ``C``.
    l1_penalty : float
        Weight of the absolute off-diagonal entries.
    ridge : float, default=0.0
        Added to the diagonal of ``theta`` inside the log-determinant.

    Returns
    -------
    LossTerms
        The three terms; ``total`` is their sum.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.precision import graphical_lasso_terms
    >>> graphical_lasso_terms(np.eye(2), np.eye(2), 0.1).total
    2.0
    """
    factor = try_cholesky(theta + ridge * np.eye(len(theta)))
    size = np.abs(theta)
    np.fill_diagonal(size, 0.0)  # subtracting its sum would cancel where the diagonal is large
    return LossTerms(
        trace=float(np.vdot(emp_cov, theta)),
        neg_log_det=np.inf if factor is None else -log_det_from_cholesky(factor),
        l1=l1_penalty * float(size.sum()),
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


class Penalty(NamedTuple):
    """Weights of the absolute off-diagonal entries; the diagonal carries none."""

    l1: float
    unit: FloatArray
    matrix: FloatArray

    @classmethod
    def of(cls, l1: float | FloatArray, n: int) -> Penalty:
        """Make a penalty from one number or a symmetric matrix."""
        if np.ndim(l1) == 0:
            return cls(float(l1), np.ones(n), NO_MATRIX)
        if not np.any(l1):
            return cls(0.0, np.ones(n), NO_MATRIX)
        return cls(1.0, np.ones(n), np.ascontiguousarray(l1, dtype=np.float64))

    @property
    def uniform(self) -> bool:
        """Whether one number is the penalty of every pair, so that no matrix is stored."""
        return self.matrix.size == 0

    def rescaled(self, unit: FloatArray) -> Penalty:
        """Return the penalty of theta_ij / (unit_i unit_j)."""
        if self.uniform:
            return self._replace(unit=self.unit * unit)
        return self._replace(matrix=self.matrix * unit * unit[:, None])

    def block(self, members: IndexArray) -> Penalty:
        """Return the penalty among some of the variables."""
        matrix = self.matrix if self.uniform else np.ascontiguousarray(self.matrix[np.ix_(members, members)])
        return Penalty(self.l1, self.unit[members], matrix)

    def dense(self) -> FloatArray:
        """Return the penalty as an N x N matrix with a diagonal of zeros."""
        full = self.l1 * np.outer(self.unit, self.unit) if self.uniform else self.matrix.copy()
        np.fill_diagonal(full, 0.0)
        return full

    def norm(self, theta: FloatArray) -> float:
        """sum_{i != j} penalty_ij |theta_ij|; a known zero that is zero costs nothing."""
        return float(_norm(theta, *self))


@compiled
def row_of(l1: float, unit: FloatArray, matrix: FloatArray, j: int, out: FloatArray) -> None:
    """Row j of the penalty; its diagonal entry is zero."""
    if matrix.shape[0] == 0:
        factor = l1 * unit[j]
        for i in range(len(out)):
            out[i] = factor * unit[i]
    else:
        for i in range(len(out)):
            out[i] = matrix[j, i]
    out[j] = 0.0


@compiled
def _norm(theta: FloatArray, l1: float, unit: FloatArray, matrix: FloatArray) -> float:
    row = np.empty(len(theta))
    total = 0.0
    for j in range(len(theta)):
        row_of(l1, unit, matrix, j, row)
        for i in range(len(theta)):
            if theta[j, i] != 0.0:
                total += row[i] * abs(theta[j, i])
    return total
