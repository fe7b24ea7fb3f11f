r"""Do two groups differ, given age, covariates and site? Least squares, robust intervals, Freedman-Lane permutations.

For values v (gaps, or one column's part in them), group g in {0, 1} and covariates Z (a constant among them)

    v = difference * g + Z w + e.

With d = g - Z (Z'Z)^-1 Z' g and r = v - Z (Z'Z)^-1 Z' v, the difference is d'r / d'd. Its variance is HC3 (MacKinnon
and White, 1985), which holds where one group scatters more than the other:

    sum_i  d_i^2 e_i^2 / (1 - h_i)^2  /  (d'd)^2,        h_i the leverage of row i in the whole model.

The permutation test is that of Freedman and Lane (1983): r is given to other people, what Z explains is taken out anew,
and t, the difference by its HC3 error, is compared with the t of the drawn tables (DiCiccio and Romano, 2017: a
studentised statistic keeps its level where only the differences are equal and not the scatter). Rows must be people:
those of one person are averaged before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from precisionnet.errors import InputError
from precisionnet.evidence.permutations import permutation_p, pooled_p
from precisionnet.types import BoolArray, FloatArray

AT_ONCE = 4_000_000
"""Numbers in the largest array of drawn tables."""
NO_ROOM = 1e-8
"""1 - leverage below which a row says nothing: a level with one row."""


@dataclass(frozen=True)
class AdjustedDifferences:
    """Differences between two groups in one or several values, given covariates."""

    difference: FloatArray
    standard_error: FloatArray
    deviation: FloatArray
    """Standard deviation of what groups and covariates leave unexplained."""
    p_value: FloatArray
    pooled_p_value: FloatArray
    """Each compared with the drawn t of all values: finer, for values alike."""
    degrees: int
    """Degrees of freedom."""

    def interval(self, level: float = 0.95, relative_error: float = 0.0) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper ends; ``relative_error`` is that of a factor in the values, such as 1 / b."""
        error = np.hypot(self.standard_error, self.difference * relative_error)
        reach = stats.t.ppf(0.5 + level / 2.0, self.degrees) * error
        return self.difference - reach, self.difference + reach


def adjusted_differences(
    values: FloatArray, in_a: BoolArray, columns: FloatArray, n_permutations: int, rng: np.random.Generator
) -> AdjustedDifferences:
    """Compare the rows of group a with the others.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_values)
        What is compared, one row per person.
    in_a : ndarray of bool of shape (n_rows,)
        Who is of group a.
    columns : ndarray of shape (n_rows, n_columns)
        Covariates as numbers.
    n_permutations : int
        Drawn tables.
    rng : numpy.random.Generator
        Draws them.
    """
    basis = _basis(columns)
    group = in_a.astype(np.float64)
    d = group - basis @ (basis.T @ group)
    dd = float(d @ d)
    degrees = len(group) - basis.shape[1] - 1
    if dd < NO_ROOM * len(group) or degrees < 2:
        raise InputError(
            "Covariates and site tell which group a row is of: what they do and what the groups differ in cannot be "
            "told apart; leave some of them out."
        )
    r = values - basis @ (basis.T @ values)
    difference = d @ r / dd
    e = r - np.outer(d, difference)
    room = 1.0 - np.sum(basis**2, axis=1) - d**2 / dd
    weight = np.where(room > NO_ROOM, (d / dd / np.maximum(room, NO_ROOM)) ** 2, 0.0)
    error = np.sqrt(weight @ e**2)
    t = np.abs(difference) / np.where(error > 0.0, error, 1.0)
    drawn = np.empty((n_permutations, values.shape[1]))
    step = max(1, AT_ONCE // len(group))
    for begin in range(0, n_permutations, step):
        part = slice(begin, min(begin + step, n_permutations))
        order = rng.permuted(np.tile(np.arange(len(group)), (part.stop - part.start, 1)), axis=1)
        for j in range(values.shape[1]):
            drawn[part, j] = _drawn_t(r[:, j][order], basis, d, dd, weight)
    return AdjustedDifferences(
        difference,
        error,
        np.sqrt(np.sum(e**2, axis=0) / degrees),
        np.array([permutation_p(float(t[j]), drawn[:, j]) for j in range(len(t))]),
        pooled_p(t, drawn),
        degrees,
    )


def _basis(columns: FloatArray) -> FloatArray:
    """Orthonormal columns that span a constant and the covariates."""
    centred = columns - columns.mean(axis=0)
    spread = np.sqrt(np.mean(centred**2, axis=0))
    centred = centred[:, spread > 0.0] / spread[spread > 0.0]
    vectors, values, _ = np.linalg.svd(centred, full_matrices=False)
    constant = np.full((len(columns), 1), 1.0 / np.sqrt(len(columns)))
    return np.hstack([constant, vectors[:, values > 1e-7 * max(float(values.max(initial=0.0)), 1.0)]])


def _drawn_t(r: FloatArray, basis: FloatArray, d: FloatArray, dd: float, weight: FloatArray) -> FloatArray:
    """Sizes of t for drawn tables, (n_drawn,); r is (n_drawn, n_rows)."""
    left = r - (r @ basis) @ basis.T
    difference = left @ d / dd
    left -= np.outer(difference, d)
    error = np.sqrt(left**2 @ weight)
    size: FloatArray = np.abs(difference) / np.where(error > 0.0, error, 1.0)
    return size
