"""The sample covariance and what is read off its spectrum: the bound M and the sample precision."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh, eigvalsh

from precisionnet.linalg import symmetrize
from precisionnet.types import FloatArray

EIGENVALUE_FLOOR = 1e-3
"""Smallest eigenvalue of the sample covariance that is believed, relative to the mean variance.

Below it (fewer rows than columns, duplicated columns) an inverse would be rounding noise.
"""


def sample_covariance(X: FloatArray, weight: FloatArray | None = None) -> FloatArray:
    """C = sum_t w_t (x_t - mean)(x_t - mean)' / sum_t w_t for X of shape (n_samples, n_features)."""
    X = np.asarray(X, dtype=np.float64)
    mean = np.average(X, axis=0, weights=weight)
    centred = X - mean
    weighted = centred if weight is None else centred * np.asarray(weight, dtype=np.float64)[:, None]
    total = len(X) if weight is None else float(np.sum(weight))
    return symmetrize(weighted.T @ centred / total)


def _floor(emp_cov: FloatArray) -> float:
    mean_variance = float(np.trace(emp_cov)) / len(emp_cov)
    return EIGENVALUE_FLOOR * mean_variance if mean_variance > 0 else EIGENVALUE_FLOOR


def spectral_bound(emp_cov: FloatArray, overshoot: float = 2.0) -> float:
    """M of the paper: ``overshoot`` / (smallest eigenvalue of the sample covariance, floored)."""
    return overshoot / max(float(eigvalsh(emp_cov)[0]), _floor(emp_cov))


def sample_precision(emp_cov: FloatArray) -> FloatArray:
    """Inverse of the sample covariance; eigenvalues under the floor are lifted to it, so a singular one works too."""
    values, vectors = eigh(emp_cov)
    return symmetrize((vectors / np.maximum(values, _floor(emp_cov))) @ vectors.T)
