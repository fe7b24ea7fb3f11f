r"""Covariances pulled towards a multiple of the identity.

    C_shrunk = (1 - s) C + s mu I,    mu = tr C / N

with s from Ledoit and Wolf (2004) or, for Gaussian rows, from Chen, Wiesel, Eldar and Hero (2010, "OAS"). Regime: rows
not many more than columns, where C is far from what it estimates. Ledoit and Wolf's

    s = min(1, sum_ij Var(C_ij) / ||C - mu I||_F^2)

asks for nothing but the variance of each entry, so that rows with missing values have one, too: each entry's from the
rows that its pair shares. On complete rows both are scikit-learn's.
"""

from __future__ import annotations

import numpy as np

from precisionnet.precision.missing import pair_counts
from precisionnet.types import FloatArray


def shrink(covariance: FloatArray, share: float) -> FloatArray:
    """C_shrunk above with s = ``share``."""
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
    """s of the oracle approximating shrinkage."""
    n = len(covariance)
    mean_square, mu_squared = float(np.mean(covariance**2)), (float(np.trace(covariance)) / n) ** 2
    denominator = (n_samples + 1.0) * (mean_square - mu_squared / n)
    return 1.0 if denominator <= 0.0 else min(1.0, (mean_square + mu_squared) / denominator)
