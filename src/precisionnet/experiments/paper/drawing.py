"""True precisions and rows for Theorem 1, drawn so that only what is varied changes.

The constants of the theorem depend on the eigenvalues of theta_0. So its condition number is the same everywhere, and
every feature has the same number of neighbours, S / N of them, in a random graph. With edges dealt at random the
largest number of neighbours would grow with N, and at one condition number the edges would fade: constants would drift.
"""

from __future__ import annotations

import networkx as nx
import numpy as np
from scipy.linalg import cholesky, eigvalsh, solve_triangular

from precisionnet.datasets import make_sparse_precision
from precisionnet.types import FloatArray, IndexArray

CONDITION_NUMBER = 10.0


def draw_truth(n_features: int, n_edges: int, rng: np.random.Generator) -> FloatArray:
    """theta_0: every feature with 2 n_edges / n_features neighbours, the condition number the same always."""
    edges = regular_graph(n_features, 2 * n_edges // n_features, rng)
    return make_sparse_precision(n_features, None, rng, CONDITION_NUMBER, edges)


def regular_graph(n_features: int, degree: int, rng: np.random.Generator) -> IndexArray:
    """Edges of a random graph in which every feature has ``degree`` neighbours."""
    few = min(degree, n_features - 1 - degree)  # the complement of a dense one is sparse, and quick to draw
    graph = nx.random_regular_graph(few, n_features, seed=rng)
    graph = graph if few == degree else nx.complement(graph)
    edges = np.array(sorted(sorted(edge) for edge in graph.edges), dtype=np.intp)
    return edges.reshape(-1, 2)


def draw_covariance(theta_true: FloatArray, n_samples: int, rng: np.random.Generator) -> FloatArray:
    """X'X / T of rows with mean zero, as the theorem has it."""
    factor = cholesky(theta_true, lower=True)
    X = solve_triangular(factor, rng.standard_normal((len(theta_true), n_samples)), lower=True, trans="T")
    return X @ X.T / n_samples


def draw_direction(direction: str, n_features: int, rng: np.random.Generator) -> FloatArray:
    """Symmetric, of nuclear norm one."""
    if direction == "one":
        v = rng.standard_normal(n_features)
        return np.outer(v, v) / (v @ v)
    away = rng.standard_normal((n_features, n_features))
    away = away + away.T
    return away / np.abs(eigvalsh(away)).sum()
