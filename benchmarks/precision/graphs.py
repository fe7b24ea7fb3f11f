"""Random sparse graphs, and correlation matrices of Gaussian rows drawn from them, block by block."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.linalg import cholesky, solve_triangular
from scipy.sparse.linalg import eigsh

DEGREE = 4
SMALLEST_EIGENVALUE = 0.2
WEIGHTS = 0.2, 0.5
ROWS_AT_A_TIME = 1000


def sparse_precision(n: int, rng: np.random.Generator) -> sparse.csr_array:
    """``DEGREE`` n / 2 random pairs, weights of random sign, the diagonal such that it is just definite."""
    n_edges = DEGREE * n // 2
    pairs = np.empty((0, 2), dtype=np.int64)
    while len(pairs) < n_edges:
        drawn = np.sort(rng.integers(n, size=(2 * n_edges, 2)), axis=1)
        both = np.vstack([pairs, drawn[drawn[:, 0] != drawn[:, 1]]])
        pairs = both[np.sort(np.unique(both, axis=0, return_index=True)[1])]
    i, j = pairs[:n_edges].T
    weight = rng.uniform(*WEIGHTS, n_edges) * rng.choice([-1.0, 1.0], n_edges)
    off_diagonal = sparse.coo_array((weight, (i, j)), shape=(n, n))
    off_diagonal = (off_diagonal + off_diagonal.T).tocsr()
    start = np.full(n, n**-0.5)
    lowest = eigsh(off_diagonal, k=1, which="SA", v0=start, return_eigenvectors=False)[0]
    return (off_diagonal + (SMALLEST_EIGENVALUE - lowest) * sparse.eye_array(n)).tocsr()


def sample_correlation(theta: sparse.csr_array, n_rows: int, rng: np.random.Generator) -> np.ndarray:
    """Correlations of ``n_rows`` rows drawn from N(0, theta^-1); never more than a block of rows at once."""
    n = theta.shape[0]
    factor = cholesky(theta.toarray(), lower=True, overwrite_a=True, check_finite=False)
    total, second = np.zeros(n), np.zeros((n, n))
    for first in range(0, n_rows, ROWS_AT_A_TIME):
        normal = rng.standard_normal((n, min(ROWS_AT_A_TIME, n_rows - first)))
        block = solve_triangular(factor, normal, lower=True, trans="T", overwrite_b=True, check_finite=False)
        total += block.sum(axis=1)
        second += block @ block.T
    del factor
    mean = total / n_rows
    second /= n_rows
    second -= np.outer(mean, mean)
    return to_correlation(second)


def to_correlation(cov: np.ndarray) -> np.ndarray:
    """Unit diagonal, symmetric to the last bit."""
    scale = 1.0 / np.sqrt(np.diag(cov))
    cov = cov * scale
    cov *= scale[:, None]
    cov = 0.5 * (cov + cov.T)
    np.fill_diagonal(cov, 1.0)
    return cov


def correlation_of(rows: np.ndarray) -> np.ndarray:
    """Correlations of the columns of a table."""
    centred = rows - rows.mean(axis=0)
    return to_correlation(centred.T @ centred / len(rows))
