"""Covariances on which graphical-lasso solvers are known to stall, diverge or raise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import solve_triangular

from benchmarks.precision.graphs import correlation_of, sample_correlation, sparse_precision

Family = Callable[[int, np.random.Generator], np.ndarray]
FACTOR_NOISE = 0.5
CHAIN = 0.95
ORDERS = 6
"""Orders of magnitude that the units of unscaled columns span."""


def one_factor(n: int, rng: np.random.Generator) -> np.ndarray:
    """Everything hangs on one hidden variable: a dense truth with one large eigenvalue."""
    return _factors(n, 1, rng)


def five_factors(n: int, rng: np.random.Generator) -> np.ndarray:
    """The same with five."""
    return _factors(n, 5, rng)


def few_rows(n: int, rng: np.random.Generator) -> np.ndarray:
    """A sparse graph seen through T = N / 4 rows."""
    return sample_correlation(sparse_precision(n, rng), n // 4, rng)


def unscaled(n: int, rng: np.random.Generator) -> np.ndarray:
    """A sparse graph, T = 2N, in units from 1e-3 to 1e3."""
    unit = rng.permutation(np.logspace(-ORDERS / 2, ORDERS / 2, n))
    return sample_correlation(sparse_precision(n, rng), 2 * n, rng) * np.outer(unit, unit)


def duplicated(n: int, rng: np.random.Generator) -> np.ndarray:
    """A sparse graph, T = 2N, every column twice."""
    once = sample_correlation(sparse_precision(n // 2, rng), n, rng)
    return np.kron(np.ones((2, 2)), once)


def rank_deficient(n: int, rng: np.random.Generator) -> np.ndarray:
    """Columns that are combinations of N / 10 others, without noise."""
    rank = max(n // 10, 2)
    return correlation_of(rng.standard_normal((2 * n, rank)) @ rng.standard_normal((rank, n)))


def chain(n: int, rng: np.random.Generator) -> np.ndarray:
    """A stationary AR(1) series with coefficient 0.95, T = 2N: strong edges, long paths."""
    inverse_factor = np.diag(np.full(n, (1.0 - CHAIN**2) ** -0.5)) - np.diag(
        np.full(n - 1, CHAIN * (1.0 - CHAIN**2) ** -0.5), -1
    )
    inverse_factor[0, 0] = 1.0
    return correlation_of(solve_triangular(inverse_factor, rng.standard_normal((n, 2 * n)), lower=True).T)


def _factors(n: int, k: int, rng: np.random.Generator) -> np.ndarray:
    hidden, loading = rng.standard_normal((2 * n, k)), rng.standard_normal((k, n))
    return correlation_of(hidden @ loading + FACTOR_NOISE * rng.standard_normal((2 * n, n)))


FAMILIES: dict[str, Family] = {
    "factor1": one_factor,
    "factor5": five_factors,
    "few_rows": few_rows,
    "unscaled": unscaled,
    "duplicated": duplicated,
    "rank_deficient": rank_deficient,
    "chain": chain,
}
