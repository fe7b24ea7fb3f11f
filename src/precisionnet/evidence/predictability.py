r"""How well a node is predicted by the others: the adjusted R2 of least squares, with the influence of each person.

    R2 = 1 - (1 - R2_sample) (T - 1) / (T - k - 1),    k predictors

Draws are on the scale log(1 - R2), where the influence of a row is e^2 - x^2 (residual and value in standard units).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import inv, solve

from precisionnet.evidence.observations import Observations
from precisionnet.evidence.partial_correlation import leverage_weights
from precisionnet.types import BoolArray, FloatArray


@dataclass(frozen=True)
class Predictability:
    """``unexplained`` is log(1 - adjusted R2) of each node; ``influence`` is (n_people, n_nodes)."""

    unexplained: FloatArray
    influence: FloatArray

    @property
    def values(self) -> FloatArray:
        """Adjusted R2, at least 0."""
        return np.maximum(0.0, -np.expm1(self.unexplained))

    def draws(self, multipliers: FloatArray) -> FloatArray:
        """Return draws of the adjusted R2, (n_draws, n_nodes)."""
        return np.maximum(0.0, -np.expm1(self.unexplained + multipliers @ self.influence))


def predictability(data: Observations, joined: BoolArray) -> Predictability:
    """Regress every node on the nodes that it is joined to."""
    n_rows, n_nodes = data.X.shape
    covariance = data.X.T @ data.X / n_rows
    unexplained, influence = np.zeros(n_nodes), np.zeros((data.n_people, n_nodes))
    regress = _on_neighbours(data.X, covariance, joined) if not joined.all() else _on_all_others(data.X, covariance)
    for node, (n_others, residual, leverage) in enumerate(regress):
        if not n_others:
            continue  # nothing is explained, and exactly so
        share = float(np.mean(residual**2))
        by_person: FloatArray = np.bincount(data.person, leverage, minlength=data.n_people).astype(np.float64)
        weight = np.sqrt(leverage_weights(by_person, (n_others + 1.0) / data.n_people)) / n_rows
        rows = residual**2 / share - data.X[:, node] ** 2
        influence[:, node] = weight * np.bincount(data.person, weights=rows, minlength=data.n_people)
        unexplained[node] = np.log(share * (n_rows - 1.0) / max(n_rows - n_others - 1.0, 1.0))
    return Predictability(unexplained, influence)


Regression = tuple[int, FloatArray, FloatArray]
"""Number of predictors, residuals, leverages."""


def _on_neighbours(X: FloatArray, covariance: FloatArray, joined: BoolArray) -> Iterator[Regression]:
    for node in range(len(joined)):
        others = np.flatnonzero(joined[node] & (np.arange(len(joined)) != node))
        if not len(others):
            yield 0, X[:, node], np.full(len(X), 1.0 / len(X))
            continue
        inverse_rows = solve(covariance[np.ix_(others, others)], X[:, others].T, assume_a="pos")
        residual = X[:, node] - inverse_rows.T @ covariance[others, node]
        yield len(others), residual, (np.einsum("tk,kt->t", X[:, others], inverse_rows) + 1.0) / len(X)


def _on_all_others(X: FloatArray, covariance: FloatArray) -> Iterator[Regression]:
    """Return the same where all are joined, from one inverse for all nodes."""
    precision = inv(covariance)
    weighted = X @ precision
    with_itself = (np.sum(weighted * X, axis=1) + 1.0) / len(X)
    for node in range(len(covariance)):
        own = precision[node, node]
        yield len(covariance) - 1, weighted[:, node] / own, with_itself - weighted[:, node] ** 2 / own / len(X)
