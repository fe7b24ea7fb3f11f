r"""Correlations that survive any increasing transform of a column: the nonparanormal "skeptic".

    R_ij = 2 sin(pi/6 * rho_ij),    rho the Spearman correlation (ties get their average rank)

(Liu, Han, Yuan, Lafferty and Wasserman 2012, "High-dimensional semiparametric Gaussian copula graphical models").
Regime: columns that are Gaussian after unknown increasing transforms: skewed, heavy-tailed or with outliers. Where R
has negative eigenvalues the nearest correlation matrix takes its place. Missing values: each column is ranked among its
own values, and ``covariance`` decides what to do with the gaps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from precisionnet.errors import InputError
from precisionnet.precision.correlation import nearest_correlation, to_correlation
from precisionnet.precision.covariance import sample_covariance
from precisionnet.types import FloatArray


def column_ranks(X: FloatArray) -> FloatArray:
    """Average ranks within each column, over its number of values plus one; NaN stays NaN."""
    counts = (~np.isnan(X)).sum(axis=0)
    return (NormalScores.fit(X).n_below(X) + 0.5) / (counts + 1.0)


def nonparanormal_correlation(
    X: FloatArray, *, covariance: Callable[[FloatArray], FloatArray] = sample_covariance
) -> FloatArray:
    """R above for X (n_samples, n_features); ``covariance`` is what is taken of the ranks."""
    return skeptic(covariance(column_ranks(np.asarray(X, dtype=np.float64))))


def skeptic(rank_covariance: FloatArray) -> FloatArray:
    """R above from the covariance of the ranks."""
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
        """From training rows; NaN is left out."""
        return cls(tuple(np.sort(column[~np.isnan(column)]) for column in np.asarray(X, dtype=np.float64).T))

    def transform(self, X: FloatArray) -> FloatArray:
        """Scores of the rows of X; NaN stays NaN."""
        counts = np.array([len(column) for column in self.columns])
        return ndtri(np.clip(self.n_below(X) / counts, 0.5 / counts, 1.0 - 0.5 / counts))

    def n_below(self, X: FloatArray) -> FloatArray:
        """How many training values lie below each value, equal ones counted half; NaN stays NaN."""
        below = np.empty(X.shape)
        for i, column in enumerate(self.columns):
            below[:, i] = np.searchsorted(column, X[:, i], "left")
            below[:, i] += np.searchsorted(column, X[:, i], "right")
        return np.where(np.isnan(X), np.nan, 0.5 * below)
