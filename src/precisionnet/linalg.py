"""Small dense symmetric linear algebra shared by the solvers. NumPy and SciPy only."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh, eigvalsh, lapack

from precisionnet.types import FloatArray

TILE = 256
"""Rows and columns that are copied together."""
LARGEST = 1e100
"""Largest magnitude of a feature or target that is accepted: squares and their sums stay finite."""


def symmetrize(matrix: FloatArray) -> FloatArray:
    """The symmetric part, (A + A') / 2, exactly symmetric in floating point."""
    return 0.5 * (matrix + matrix.T)


def soft_threshold_off_diagonal(matrix: FloatArray, threshold: float | FloatArray) -> FloatArray:
    """Proximal operator of ``sum_{i != j} threshold_ij |a_ij|``; the diagonal is left alone."""
    shrunk = np.sign(matrix) * np.maximum(np.abs(matrix) - threshold, 0.0)
    np.fill_diagonal(shrunk, np.diag(matrix))
    return shrunk


def hard_threshold_off_diagonal(matrix: FloatArray, threshold: float) -> FloatArray:
    """Set off-diagonal entries to zero whose size is not above the threshold; the others stay as they are."""
    kept: FloatArray = np.where(np.abs(matrix) > threshold, matrix, 0.0)
    np.fill_diagonal(kept, np.diag(matrix))
    return kept


def count_zeros(matrix: FloatArray) -> int:
    """Number of entries that are exactly zero, as the paper's tables count them."""
    return int(np.count_nonzero(matrix == 0.0))


def extreme_eigenvalues(matrix: FloatArray) -> tuple[float, float]:
    """Smallest and largest eigenvalue of a symmetric matrix."""
    values = eigvalsh(matrix)
    return float(values[0]), float(values[-1])


def try_cholesky(matrix: FloatArray) -> FloatArray | None:
    """Lower Cholesky factor of a symmetric matrix, or None where it is not numerically positive definite."""
    # A symmetric matrix is its transpose, and the transpose is in LAPACK's order already.
    factor, info = lapack.dpotrf(matrix.T, lower=1, clean=1)
    # LAPACK lets NaN through; a NaN anywhere in a column reaches that column's pivot.
    return factor if info == 0 and np.isfinite(np.diag(factor)).all() else None


def inverse_from_cholesky(factor: FloatArray) -> FloatArray:
    """Inverse of L L' from its lower factor (zero above the diagonal), symmetric to the last bit."""
    lower, _ = lapack.dpotri(factor, lower=1)
    inverse: FloatArray = np.add(lower, lower.T, order="C")
    np.fill_diagonal(inverse, np.diag(lower))
    return inverse


def log_det_from_cholesky(factor: FloatArray) -> float:
    """log det(L L')."""
    return 2.0 * float(np.log(np.diag(factor)).sum())


def log_det_in_place(matrix: FloatArray) -> float | None:
    """log det of a symmetric matrix, or None where it is not numerically positive definite.

    The factor of a large matrix takes the place of its upper triangle, which is copied back from the lower one: no
    second matrix is needed, and the matrix is the same to the last bit afterwards.
    """
    if len(matrix) <= TILE:
        factor = try_cholesky(matrix)
        return None if factor is None else log_det_from_cholesky(factor)
    matrix = matrix if matrix.flags.c_contiguous else matrix.T
    diagonal = matrix.diagonal().copy()
    factor, info = lapack.dpotrf(matrix.T, lower=1, clean=0, overwrite_a=1)
    assert np.shares_memory(factor, matrix), "matrix must be contiguous float64"
    pivots = matrix.diagonal().copy()
    for first in range(0, len(matrix), TILE):
        last = min(first + TILE, len(matrix))
        corner = np.tril(matrix[first:last, first:last], -1)
        matrix[first:last, first:last] = corner + corner.T
        matrix[first:last, last:] = matrix[last:, first:last].T
    np.fill_diagonal(matrix, diagonal)
    return 2.0 * float(np.log(pivots).sum()) if info == 0 and np.isfinite(pivots).all() else None


def psd_projection(matrix: FloatArray) -> FloatArray:
    """Nearest positive semi-definite matrix in Frobenius norm. It fills zeros in: ``tests/joint/test_steps.py``."""
    values, vectors = eigh(matrix)
    return symmetrize((vectors * np.maximum(values, 0.0)) @ vectors.T)


def clip_eigenvalues(matrix: FloatArray, low: float, high: float) -> FloatArray:
    """Nearest matrix with every eigenvalue in [low, high]."""
    values, vectors = eigh(matrix)
    return symmetrize((vectors * np.clip(values, low, high)) @ vectors.T)


def into_spectral_box(matrix: FloatArray, low: float, high: float) -> FloatArray:
    """Return a matrix with the same zeros and its eigenvalues in [low, high].

    Not the nearest one (that would fill the zeros in): a multiple of the identity lifts the bottom, then a common
    factor lowers the top. Used to remove the last rounding-sized violation of a solver's result, and to make a
    thresholded matrix definite again.
    """
    smallest, largest = extreme_eigenvalues(matrix)
    # Eigenvalues are known to rounding only: a lift leaves room for that, so that the result is inside for certain.
    rounding = 4.0 * len(matrix) * np.finfo(float).eps * max(abs(smallest), abs(largest))
    if smallest < low + rounding:
        lift = low + 2.0 * rounding - smallest
        matrix = matrix + lift * np.eye(len(matrix))
        largest += lift
    if largest > high:
        # Pull towards low * I instead of towards 0, so that the bottom stays where it is.
        factor = (high - low) / (largest - low)
        diagonal = low + factor * (np.diag(matrix) - low)
        matrix = factor * matrix
        np.fill_diagonal(matrix, diagonal)
    return matrix


def within_spectral_box(matrix: FloatArray, low: float, high: float) -> bool:
    """Whether every eigenvalue of a positive definite matrix is in [low, high], by one Cholesky per bound."""
    if low > 0.0 and try_cholesky(matrix - low * np.eye(len(matrix))) is None:
        return False
    return not np.isfinite(high) or try_cholesky(high * np.eye(len(matrix)) - matrix) is not None


def weighted_median(values: FloatArray, weight: FloatArray) -> float:
    """Median of values, none missing; a weight of 2 counts as the value standing there twice."""
    order = np.argsort(values, kind="stable")
    passed = np.cumsum(weight[order])
    middle = [np.searchsorted(passed, passed[-1] / 2, side=side) for side in ("left", "right")]
    lower, upper = values[order][middle]
    return float(lower + (upper - lower) / 2)


def partial_correlations(precision: FloatArray) -> FloatArray:
    """Compute partial correlations: those of two columns given all the others.

    ``rho_ij = -theta_ij / sqrt(theta_ii theta_jj)``, which does not depend on the columns' units.

    Parameters
    ----------
    precision : ndarray of shape (n_features, n_features)
        Precision matrix ``theta``; its diagonal is positive.

    Returns
    -------
    ndarray of shape (n_features, n_features)
        Partial correlations, ones on the diagonal; exact zeros stay zero.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.precision import partial_correlations
    >>> partial_correlations(np.array([[2.0, -1.0], [-1.0, 2.0]]))
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    deviation = np.sqrt(np.diag(precision))
    result = -precision / np.outer(deviation, deviation) + 0.0  # + 0.0 turns -0.0 into 0.0
    np.fill_diagonal(result, 1.0)
    return result
