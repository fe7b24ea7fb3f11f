"""The paper's synthetic recipe: a sparse precision, Gaussian rows from its inverse, a linear target with noise."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.linalg import cholesky, eigvalsh, solve_triangular

from precisionnet.errors import InputError
from precisionnet.types import FloatArray


class GaussianRegression(NamedTuple):
    """A drawn table and the truth behind it."""

    X: pd.DataFrame
    y: pd.Series[float]
    theta_true: FloatArray
    coefficients: FloatArray


def make_sparse_precision(
    n_features: int, sparsity: float, rng: np.random.Generator, condition_number: float = 10.0
) -> FloatArray:
    """Symmetric positive definite with about ``sparsity`` * N^2 non-zero entries (||theta||_0 / N^2 of the paper).

    Edges are uniform over all pairs, their values uniform in +-[0.5, 1]; the diagonal is then raised until the
    condition number is the one asked for, and the whole scaled to unit mean variance.
    """
    if not 0 < sparsity <= 1:
        raise InputError(f"sparsity must be in (0, 1], got {sparsity}: it is the share of non-zero entries.")
    rows, cols = np.triu_indices(n_features, k=1)
    n_edges = int(np.clip(round((sparsity * n_features**2 - n_features) / 2), 0, len(rows)))
    chosen = rng.choice(len(rows), size=n_edges, replace=False)
    theta = np.zeros((n_features, n_features))
    theta[rows[chosen], cols[chosen]] = rng.choice([-1.0, 1.0], n_edges) * rng.uniform(0.5, 1.0, n_edges)
    theta += theta.T
    values = eigvalsh(theta)
    # (largest + d) / (smallest + d) = condition_number, solved for d
    lift = (values[-1] - condition_number * values[0]) / (condition_number - 1.0)
    theta[np.diag_indices(n_features)] = lift if n_edges else 1.0
    mean_variance = float(np.trace(np.linalg.inv(theta))) / n_features
    return theta * mean_variance


def make_gaussian_regression(
    n_samples: int = 100,
    n_features: int = 20,
    *,
    sparsity: float = 0.2,
    snr: float = 10.0,
    condition_number: float = 10.0,
    random_state: int | None = None,
) -> GaussianRegression:
    """x ~ N(0, inverse of theta_true), y = w'x + noise, w ~ N(0, I), with signal variance ``snr`` times the noise's."""
    rng = np.random.default_rng(random_state)
    theta = make_sparse_precision(n_features, sparsity, rng, condition_number)
    # theta = L L', so x = L'^-1 z has covariance theta^-1.
    factor = cholesky(theta, lower=True)
    X = solve_triangular(factor, rng.standard_normal((n_features, n_samples)), lower=True, trans="T").T
    w = rng.standard_normal(n_features)
    signal = X @ w
    noise = rng.standard_normal(n_samples) * np.sqrt(w @ np.linalg.solve(theta, w) / snr)
    names = [f"x{i}" for i in range(n_features)]
    return GaussianRegression(pd.DataFrame(X, columns=names), pd.Series(signal + noise, name="y"), theta, w)
