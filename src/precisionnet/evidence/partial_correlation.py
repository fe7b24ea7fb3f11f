r"""Partial correlations of every pair with a variance that does not assume Gaussian rows.

The estimate is the partial correlation r of the sample covariance, judged on Fisher's scale z = artanh(r). With u and v
the residuals of both columns given the others, in standard units, the influence of a row on r is

    psi = u v - r (u^2 + v^2) / 2

and the variance of z is the sum of its squares, each row weighted by its leverage h (the others, the pair and the
intercept; hbar is its mean), over the people g whose rows are summed before they are squared:

    var(z) = sum_g psi_g^2 (1 - hbar)^(1/2) / (1 - h_g)^(3/2) / (T (1 - r^2))^2

With s columns held fixed Gaussian rows would have 1 / (T - s - 3); a variance below that is moved halfway towards it
(their geometric mean).

An interval is z -+ t_{G - s - 2} sd(z), brought back by tanh; a p-value comes from the same t distribution. G is the
number of people.

Regime: rows that are independent, or independent between people; no distribution is assumed but for fourth moments.

How this differs from the textbook. (1) Fisher's 1 / (T - s - 3) is right for Gaussian rows alone: with multivariate t
rows of 5 degrees of freedom its 95 % intervals cover 84 % at T = 20 N. (2) White's variance without a correction is too
small where residuals are shrunk by their own leverage, and HC3 too large, by a factor T / (T - N). The power 3/2, with
the mean taken out, is between HC2 and HC3 and unbiased where all leverages are equal. (3) Without the last step
too many of the smallest p-values of few rows belong to variances that came out small by chance: false discoveries at
q <= 0.1 were 12 to 20 % at T = N, with it 3 to 7 %. All three were chosen by simulation
(``benchmarks/evidence/coverage.py`` repeats it).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import stats

from precisionnet.evidence.observations import Observations
from precisionnet.evidence.pairs import pairs_of
from precisionnet.linalg import inverse_from_cholesky, try_cholesky
from precisionnet.precision import partial_correlations
from precisionnet.types import FloatArray, IndexArray

LEVERAGE_POWER = 1.5
LARGEST_LEVERAGE = 1.0 - 1e-3
"""A row that alone decides about its residual has none; its weight stays finite."""
LARGEST_CORRELATION = 1.0 - 1e-12
"""A larger correlation has no finite value on Fisher's scale; copies of a column are refused before."""


@dataclass(frozen=True)
class PairEstimates:
    """One number per pair i < j: partial correlation, variance on Fisher's scale, degrees of freedom."""

    correlation: FloatArray
    variance: FloatArray
    dof: FloatArray

    @property
    def z(self) -> FloatArray:
        """Fisher's scale."""
        z: FloatArray = np.arctanh(np.clip(self.correlation, -LARGEST_CORRELATION, LARGEST_CORRELATION))
        return z

    def intervals(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Return both ends of the confidence intervals of the partial correlations."""
        reach = stats.t.ppf(0.5 + level / 2.0, self.dof) * np.sqrt(self.variance)
        return np.tanh(self.z - reach), np.tanh(self.z + reach)

    def p_values(self) -> FloatArray:
        """Return the two-sided p-values of no partial correlation."""
        return np.asarray(2.0 * stats.t.sf(np.abs(self.z) / np.sqrt(self.variance), self.dof))


def moderated(variance: FloatArray, n_rows: int, n_given: FloatArray) -> FloatArray:
    """Return the variance, moved halfway towards that of Gaussian rows where it is smaller."""
    gaussian = 1.0 / np.maximum(n_rows - n_given - 3.0, 1.0)
    return np.sqrt(variance * np.maximum(variance, gaussian))


@dataclass(frozen=True)
class SaturatedGraph:
    """The inverse of the sample covariance and what its inference needs.

    ``residuals`` has a column per node: what the other nodes leave of it, scaled by the square root of its precision.
    ``weight`` is the root of the leverage correction of each row's person, over T.
    """

    precision: FloatArray
    residuals: FloatArray
    weight: FloatArray
    person: IndexArray
    n_people: int

    @property
    def matrix(self) -> FloatArray:
        """Partial correlations with zeros on the diagonal."""
        matrix = partial_correlations(self.precision)
        np.fill_diagonal(matrix, 0.0)
        return matrix

    def estimates(self) -> PairEstimates:
        """Return the inference for every pair."""
        n_rows, n_nodes = self.residuals.shape
        first, second = pairs_of(n_nodes)
        correlation = self.matrix
        spread = self._sum_of_squares(correlation) / (1.0 - correlation**2) ** 2
        n_given = np.full(len(first), float(n_nodes - 2))
        return PairEstimates(
            correlation[first, second],
            moderated(spread[first, second], n_rows, n_given),
            self.n_people - n_given - 2.0,
        )

    def influence(self, first: IndexArray, second: IndexArray) -> FloatArray:
        """Return each person's influence on Fisher's z of the pairs, (n_people, n_pairs)."""
        r = self.matrix[first, second]
        a, b = self.residuals[:, first], self.residuals[:, second]
        rows = (a * b + 0.5 * r * (a**2 + b**2)) * self.weight[:, None] / (1.0 - r**2)
        return _summed_by_person(rows, self.person, self.n_people)

    def _sum_of_squares(self, r: FloatArray) -> FloatArray:
        """Sum over people of the squared influence on r, for all pairs at once."""
        # With residuals a given *all* others (not given all but the pair) psi is a_i a_j + r (a_i^2 + a_j^2) / 2.
        if self.n_people == len(self.residuals):
            A, W = self.residuals, self.weight[:, None] ** 2
            square = A**2
            both = square.T @ (square * W)
            skew = (square * A).T @ (A * W)
            fourth = (square**2 * W).sum(axis=0)
            return both + r * (skew + skew.T) + 0.25 * r**2 * (fourth[:, None] + 2.0 * both + fourth)
        total = np.zeros_like(r)
        order = np.argsort(self.person, kind="stable")
        starts = np.searchsorted(self.person[order], np.arange(self.n_people + 1))
        for begin, end in pairwise(starts):
            rows = order[begin:end]
            A, W = self.residuals[rows], self.weight[rows, None]
            own = (A**2 * W).sum(axis=0)
            total += (A.T @ (A * W) + 0.5 * r * (own[:, None] + own)) ** 2
        return total * self.n_people / (self.n_people - 1.0)


def saturated_graph(data: Observations) -> SaturatedGraph | None:
    """Return the graph of all pairs, or None where the sample covariance has no inverse."""
    n_rows, n_nodes = data.X.shape
    factor = try_cholesky(data.X.T @ data.X / n_rows)
    if factor is None or np.diag(factor).min() < 1e-7:  # in standard units: a column is a sum of others
        return None
    precision = inverse_from_cholesky(factor)
    weighted = data.X @ precision
    leverage = ((weighted * data.X).sum(axis=1) + 1.0) / n_rows
    if data.repeated:
        leverage = np.bincount(data.person, weights=leverage)[data.person]
    weight = np.sqrt(leverage_weights(leverage, (n_nodes + 1.0) / data.n_people)) / n_rows
    return SaturatedGraph(precision, weighted / np.sqrt(np.diag(precision)), weight, data.person, data.n_people)


def leverage_weights(leverage: FloatArray, mean: float) -> FloatArray:
    """Return what squared influences are multiplied by."""
    room = 1.0 - np.minimum(leverage, LARGEST_LEVERAGE)
    weights: FloatArray = max(1.0 - mean, 1.0 - LARGEST_LEVERAGE) ** (LEVERAGE_POWER - 1.0) / room**LEVERAGE_POWER
    return weights


def _summed_by_person(rows: FloatArray, person: IndexArray, n_people: int) -> FloatArray:
    if n_people == len(rows):
        return rows
    summed = np.zeros((n_people, rows.shape[1]))
    np.add.at(summed, person, rows)
    return summed * np.sqrt(n_people / (n_people - 1.0))
