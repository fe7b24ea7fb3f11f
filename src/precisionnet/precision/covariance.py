r"""Covariances of complete rows, and what is made of them: shrunk, from ranks, or the nearest that is semi-definite.

Shrinkage pulls towards a multiple of the identity,

    C_shrunk = (1 - s) C + s mu I,    mu = tr C / N

with s from Ledoit and Wolf (2004) or, for Gaussian rows, from Chen, Wiesel, Eldar and Hero (2010, "OAS"). Regime: rows
not many more than columns, where C is far from what it estimates. Ledoit and Wolf's

    s = min(1, sum_ij Var(C_ij) / ||C - mu I||_F^2)

asks for nothing but the variance of each entry, so that rows with missing values have one, too: each entry's from the
rows that its pair shares. On complete rows both are scikit-learn's.

Ranks give correlations that survive any increasing transform of a column, the nonparanormal "skeptic",

    R_ij = 2 sin(pi/6 * rho_ij),    rho the Spearman correlation (ties get their average rank)

(Liu, Han, Yuan, Lafferty and Wasserman 2012). Regime: columns that are Gaussian after unknown increasing transforms:
skewed, heavy-tailed or with outliers.

Matrices put together entry by entry (from pairs of columns, from transformed ranks) may have negative eigenvalues. Then
the nearest correlation matrix (Higham 2002) takes their place,

    minimise  ||R - A||_F   subject to  R positive semi-definite,  R_ii = 1

by alternating projections with Dykstra's correction, one eigendecomposition each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, eigvalsh
from scipy.special import ndtri

from precisionnet.arguments import masked_as_missing
from precisionnet.errors import InputError
from precisionnet.linalg import psd_projection, symmetrize
from precisionnet.memory import free_memory, gigabytes
from precisionnet.types import BoolArray, FloatArray

MANY_COLUMNS = 5_000
"""With fewer columns than this a covariance always has room."""

EIGENVALUE_FLOOR = 1e-3
"""Smallest eigenvalue of the sample covariance that is believed, relative to the mean variance.

Below it (fewer rows than columns, duplicated columns) an inverse would be rounding noise.
"""
NEAREST_TOLERANCE, NEAREST_MAX_ITER = 1e-8, 200


def refuse_covariance_without_room(n_features: int) -> None:
    """Refuse a covariance that memory has no room for twice: a matrix of its size always stands beside it.

    Parameters
    ----------
    n_features : int
        Number of columns.
    """
    if n_features < MANY_COLUMNS:
        return
    need, free = 16.0 * float(n_features) ** 2, free_memory()
    if need > free:
        raise InputError(
            f"A covariance of {n_features:,} columns takes {gigabytes(need)} to compute and {gigabytes(free)} are "
            "free: take fewer columns, or graphical_lasso_from_rows, which stores no matrix of all pairs."
        )


def sample_covariance(X: FloatArray, weight: FloatArray | None = None) -> FloatArray:
    """Compute the sample covariance of rows, divided by their number.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows without missing values.
    weight : array-like of shape (n_samples,), default=None
        Weight of each row; None weighs all rows the same.

    Returns
    -------
    ndarray of shape (n_features, n_features)
        ``sum_t w_t (x_t - mean)(x_t - mean)' / sum_t w_t``, exactly symmetric.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.precision import sample_covariance
    >>> sample_covariance(np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 3.0], [0.0, -3.0]]))
    array([[0.5, 0. ],
           [0. , 4.5]])
    """
    X = np.asarray(masked_as_missing(X), dtype=np.float64)
    if X.ndim == 2:
        refuse_covariance_without_room(X.shape[1])
    mean = np.average(X, axis=0, weights=weight)
    centred = X - mean
    weighted = centred if weight is None else centred * np.asarray(weight, dtype=np.float64)[:, None]
    total = len(X) if weight is None else float(np.sum(weight))
    return symmetrize(weighted.T @ centred / total)


def spectral_bound(emp_cov: FloatArray, overshoot: float = 2.0) -> float:
    """Compute the paper's bound M on the eigenvalues of a precision matrix.

    Parameters
    ----------
    emp_cov : ndarray of shape (n_features, n_features)
        Sample covariance.
    overshoot : float, default=2.0
        How far above the largest eigenvalue of the sample precision the bound lies.

    Returns
    -------
    float
        ``overshoot`` divided by the smallest eigenvalue of ``emp_cov``, which counts as at least a thousandth of the
        mean variance.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.precision import spectral_bound
    >>> spectral_bound(np.diag([1.0, 4.0]))
    2.0
    """
    return overshoot / max(float(eigvalsh(emp_cov)[0]), _floor(emp_cov))


def sample_precision(emp_cov: FloatArray) -> FloatArray:
    """Invert a sample covariance, also a singular one.

    Parameters
    ----------
    emp_cov : ndarray of shape (n_features, n_features)
        Sample covariance; eigenvalues below a thousandth of the mean variance are raised to that.

    Returns
    -------
    ndarray of shape (n_features, n_features)
        The inverse, exactly symmetric.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.precision import sample_precision
    >>> sample_precision(np.diag([1.0, 4.0]))
    array([[1.  , 0.  ],
           [0.  , 0.25]])
    """
    values, vectors = eigh(emp_cov)
    return symmetrize((vectors / np.maximum(values, _floor(emp_cov))) @ vectors.T)


def _floor(emp_cov: FloatArray) -> float:
    mean_variance = float(np.trace(emp_cov)) / len(emp_cov)
    return EIGENVALUE_FLOOR * mean_variance if mean_variance > 0 else EIGENVALUE_FLOOR


def nearest_correlation(matrix: FloatArray) -> FloatArray:
    """The nearest correlation matrix to a symmetric one with ones on its diagonal; a semi-definite one is returned."""
    values = eigvalsh(matrix)
    if values[0] >= -len(matrix) * np.finfo(float).eps * abs(values[-1]):
        return matrix
    nearest, correction = matrix, np.zeros_like(matrix)
    for _ in range(NEAREST_MAX_ITER):
        corrected = nearest - correction
        projected = psd_projection(corrected)
        correction = projected - corrected
        nearest = projected.copy()
        np.fill_diagonal(nearest, 1.0)
        if np.linalg.norm(nearest - projected) <= NEAREST_TOLERANCE * np.linalg.norm(projected):
            break
    # End with the semi-definite projection, and divide by its diagonal, which is one within the tolerance.
    _, unit = to_correlation(psd_projection(nearest))
    return unit


def to_correlation(covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Standard deviations, and the covariance divided by them on both sides: (d, R) with C = D R D."""
    deviation = np.sqrt(np.diag(covariance))
    correlation = symmetrize(covariance / deviation / deviation[:, None])
    np.fill_diagonal(correlation, 1.0)
    return deviation, correlation


def shrink(covariance: FloatArray, share: float) -> FloatArray:
    """C_shrunk of the module's text with s = ``share``."""
    shrunk = (1.0 - share) * covariance
    shrunk[np.diag_indices_from(shrunk)] += share * float(np.trace(covariance)) / len(covariance)
    return shrunk


def ledoit_wolf_share(covariance: FloatArray, entry_variance: FloatArray) -> float:
    """s of Ledoit and Wolf, with the variances of the entries (NaN where unknown: those count as the average)."""
    n = len(covariance)
    apart = float(np.sum(covariance**2)) - float(np.trace(covariance)) ** 2 / n
    return 1.0 if apart <= 0.0 else min(1.0, float(np.nanmean(entry_variance)) * n * n / apart)


def entry_variances(X: FloatArray, location: FloatArray, covariance: FloatArray) -> FloatArray:
    """Var(C_ij), estimated as mean_t (z_ti z_tj - C_ij)^2 / n over the n rows in which i and j are both present."""
    present = ~np.isnan(X)
    z = np.where(present, X - location, 0.0)
    counts = pair_counts(present)
    squares = (z**2).T @ z**2 - 2.0 * covariance * (z.T @ z) + counts * covariance**2
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(counts > 0, np.maximum(squares, 0.0) / counts**2, np.nan)


def oas_share(covariance: FloatArray, n_samples: float) -> float:
    """Return the share s of the oracle approximating shrinkage (OAS)."""
    n = len(covariance)
    return oas_share_of(float(np.mean(covariance**2)), (float(np.trace(covariance)) / n) ** 2, n, n_samples)


def oas_share_of(mean_square: float, mu_squared: float, n: int, n_samples: float) -> float:
    """Return ``oas_share`` from the mean square of all n x n entries and the squared mean of the diagonal."""
    denominator = (n_samples + 1.0) * (mean_square - mu_squared / n)
    return 1.0 if denominator <= 0.0 else min(1.0, (mean_square + mu_squared) / denominator)


def pair_counts(present: BoolArray) -> FloatArray:
    """Count, for each pair of columns, the rows in which both are present."""
    weight = present.astype(np.float64)
    return weight.T @ weight


def nonparanormal_correlation(
    X: FloatArray, *, covariance: Callable[[FloatArray], FloatArray] = sample_covariance
) -> FloatArray:
    """Estimate correlations from ranks, for columns that are Gaussian after increasing transforms.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows; each column is ranked among its own values.
    covariance : callable, default=sample_covariance
        Covariance of the ranks; one that knows missing values lets ``X`` have some.

    Returns
    -------
    ndarray of shape (n_features, n_features)
        ``2 sin(pi / 6 * spearman)``, or the nearest correlation matrix where that is not semi-definite.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.precision import nonparanormal_correlation
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> bool((nonparanormal_correlation(X) == nonparanormal_correlation(np.exp(X))).all())
    True
    """
    return skeptic(covariance(column_ranks(np.asarray(masked_as_missing(X), dtype=np.float64))))


def column_ranks(X: FloatArray) -> FloatArray:
    """Average ranks within each column, over its number of values plus one; NaN stays NaN."""
    counts = (~np.isnan(X)).sum(axis=0)
    return (NormalScores.fit(X).n_below(X) + 0.5) / (counts + 1.0)


def skeptic(rank_covariance: FloatArray) -> FloatArray:
    """R of the module's text from the covariance of the ranks."""
    if not (np.diag(rank_covariance) > 0.0).all():
        flat = int(np.flatnonzero(~(np.diag(rank_covariance) > 0.0))[0])
        raise InputError(f"Column {flat} is constant: it has no ranks; drop it.")
    _, spearman = to_correlation(rank_covariance)
    correlation = 2.0 * np.sin(np.pi / 6.0 * spearman)
    np.fill_diagonal(correlation, 1.0)  # 2 sin(pi/6) is one, but for the last bit
    return nearest_correlation(correlation)


@dataclass(frozen=True)
class NormalScores:
    """Rows in the units of R: z = Phi^-1(F_i(x)), with F_i the distribution of column i in the training rows.

    A value beyond all training values gets the score of the most extreme one.
    """

    columns: tuple[FloatArray, ...]
    """The values of each column, sorted."""

    @classmethod
    def fit(cls, X: FloatArray) -> NormalScores:
        """Learn the scores from training rows; NaN is left out."""
        return cls(tuple(np.sort(column[~np.isnan(column)]) for column in np.asarray(X, dtype=np.float64).T))

    def transform(self, X: FloatArray) -> FloatArray:
        """Scores of the rows of X; NaN stays NaN."""
        counts = np.array([len(column) for column in self.columns])
        return ndtri(np.clip(self.n_below(X) / counts, 0.5 / counts, 1.0 - 0.5 / counts))

    def n_below(self, X: FloatArray) -> FloatArray:
        """Count the training values below each value, equal ones as half; NaN stays NaN."""
        below = np.empty(X.shape)
        for i, column in enumerate(self.columns):
            below[:, i] = np.searchsorted(column, X[:, i], "left")
            below[:, i] += np.searchsorted(column, X[:, i], "right")
        return np.where(np.isnan(X), np.nan, 0.5 * below)
