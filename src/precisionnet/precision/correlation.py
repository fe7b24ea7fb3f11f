r"""The nearest correlation matrix (Higham 2002).

    minimise  ||R - A||_F   subject to  R positive semi-definite,  R_ii = 1

Regime: matrices put together entry by entry (pairwise covariances, transformed rank correlations), which are symmetric
but may have negative eigenvalues. Alternating projections with Dykstra's correction; each costs an eigendecomposition,
and a matrix that is semi-definite already is returned as it is.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigvalsh

from precisionnet.linalg import psd_projection, symmetrize
from precisionnet.types import FloatArray

TOLERANCE = 1e-8
MAX_ITER = 200


def nearest_correlation(matrix: FloatArray) -> FloatArray:
    """The solution above for a symmetric matrix with ones on its diagonal."""
    if is_semi_definite(matrix):
        return matrix
    nearest, correction = matrix, np.zeros_like(matrix)
    for _ in range(MAX_ITER):
        corrected = nearest - correction
        projected = psd_projection(corrected)
        correction = projected - corrected
        nearest = projected.copy()
        np.fill_diagonal(nearest, 1.0)
        if np.linalg.norm(nearest - projected) <= TOLERANCE * np.linalg.norm(projected):
            break
    # The last word is that of the semi-definite projection: its diagonal, within tolerance of one, is divided out.
    _, unit = to_correlation(psd_projection(nearest))
    return unit


def is_semi_definite(matrix: FloatArray) -> bool:
    """No eigenvalue below zero by more than rounding."""
    values = eigvalsh(matrix)
    return bool(values[0] >= -len(matrix) * np.finfo(float).eps * abs(values[-1]))


def to_correlation(covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Standard deviations, and the covariance divided by them on both sides: (d, R) with C = D R D."""
    deviation = np.sqrt(np.diag(covariance))
    correlation = symmetrize(covariance / deviation / deviation[:, None])
    np.fill_diagonal(correlation, 1.0)
    return deviation, correlation
