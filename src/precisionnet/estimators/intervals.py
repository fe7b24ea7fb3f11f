"""Prediction intervals, calibrated on rows that a network did not learn from.

CV+ (Barber, Candes, Ramdas and Tibshirani, *Predictive inference with the jackknife+*, 2021), normalised by a spread.
Let mu_k be the predictor that left fold k out, k(i) the fold of row i, s_k(x) > 0 the spread that ``spread`` expects of
mu_k at x, R_i = |y_i - mu_k(i)(x_i)| / s_k(i)(x_i), and n the number of rows left out. The interval of coverage
1 - alpha at a new x goes

    from the floor(alpha (n + 1))-th smallest      of  mu_k(i)(x) - s_k(i)(x) R_i
    to   the ceil((1 - alpha) (n + 1))-th smallest of  mu_k(i)(x) + s_k(i)(x) R_i.

With s = 1 that is CV+; it is taken where the rows left out do not show that the errors differ in size. With one network
and the validation rows for calibration the same formula, with s = 1, is split conformal prediction.

A row of weight w counts w times, as everywhere: n is the sum of the weights, and "the k-th smallest" is the smallest
value up to which the weights add up to k, so that weights need not be whole numbers.

The ends stay within what the target can be, as far as the training targets tell. If none of them is below 0, neither is
an end (an age, a volume); likewise above 0. If they lie in [0, 1] and several of them stand exactly at 0 and several at
1, so do the ends (a share); one at each could be a scaling of just these rows. No other limit is believed: the largest
age of a table is not the largest there is. A new row of the same kind is beyond the outermost of n training targets
with probability 1 / (n + 1) at most, and that is all of the coverage that a limit can cost.

What is promised is what was measured, not the theorem. The spread of fold k is learned from the errors of the other
folds alone; but their predictors have learned from the rows of fold k, the columns' scaling and covariance are those of
all training rows, and the rows left out have chosen the epoch. All of it matters little: coverage, overall and in every
fifth of the prediction, is measured on other rows in ``tests/estimators/test_intervals.py``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from precisionnet.errors import InputError
from precisionnet.estimators.spread import Spread, fit_spread
from precisionnet.types import FloatArray, IndexArray

NOTHING_TO_CALIBRATE_ON = (
    "How far this model is off is not known, because no rows were kept from its training, or because it was carried "
    "to other columns without labels: fit it with recipe='standard', with a validation_fraction above 0, or with X_val "
    "and y_val."
)
HALVINGS = 64
"""Number of bisections, enough for a float64 not to change any more."""


@dataclass(frozen=True)
class Calibration:
    """Errors on rows not learned from, and what makes intervals of them.

    Parameters
    ----------
    fold : ndarray of int of shape (n_rows,)
        The fold that left the row out.
    residual : ndarray of shape (n_rows,)
        Absolute error of that fold's predictor, in the target's units.
    weight : ndarray of shape (n_rows,)
        How often the row counts.
    spread : ndarray of shape (n_rows,)
        What that fold's spread was expected to be at the row; 1 where there is no model of it.
    model : Spread or None
        The spread at other rows.
    limits : (float, float)
        What the target can be at least and at most.
    """

    fold: IndexArray
    residual: FloatArray
    weight: FloatArray
    spread: FloatArray
    model: Spread | None = None
    limits: tuple[float, float] = (-math.inf, math.inf)

    @property
    def mean_squared_error(self) -> float:
        """Mean squared error on the rows left out."""
        return float(np.average(self.residual**2, weights=self.weight))

    def interval(self, predictions: FloatArray, coverage: float, columns: FloatArray | None = None) -> FloatArray:
        """Return lower and upper ends, (rows, 2).

        ``predictions`` are those of the folds, (folds, rows); ``columns`` the rows, which a model of the spread needs.
        """
        total = float(self.weight.sum())
        refuse_coverage(coverage)
        # The small factor is there for rounding: 0.95 * 20 rows must be 19 of them.
        count = coverage * (total + 1.0) * (1.0 - 1e-12)
        if count > total:
            raise InputError(
                f"Intervals of coverage {coverage:g} need {math.ceil(round(coverage / (1 - coverage), 6))} rows to be "
                f"calibrated on, and this model has {total:g}: ask for less coverage, or fit it on more rows, with "
                "n_members=8 or more, or with a larger validation_fraction."
            )
        spread = np.ones_like(predictions)
        if self.model is not None:
            assert columns is not None
            spread = self.model.at(predictions, columns)
        ends = [-self._reach(-predictions, spread, count), self._reach(predictions, spread, count)]
        return keep_within(np.column_stack(ends), self.limits)

    def _reach(self, predictions: FloatArray, spread: FloatArray, count: float) -> FloatArray:
        """Return for each row the smallest value up to which the weights of mu_k(i)(x) + s_k(i)(x) R_i reach ``count``.

        The value is found by bisection. A fold's R are sorted once, so counting those below a value is a search among
        them. The sums of every prediction and every residual are not stored, which would take memory for all pairs.
        """
        folds = np.unique(self.fold)
        relative = self.residual / self.spread
        sorted_folds = [self._sorted(relative, int(index)) for index in folds]
        used, wide = predictions[folds], spread[folds]
        low, high = used.min(axis=0), used.max(axis=0) + wide.max(axis=0) * relative.max()
        for _ in range(HALVINGS):
            middle = low + (high - low) / 2.0
            below = sum(
                passed[np.searchsorted(values, (middle - prediction) / one, side="right")]
                for (values, passed), prediction, one in zip(sorted_folds, used, wide, strict=True)
            )
            enough = below >= count
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return high

    def _sorted(self, relative: FloatArray, index: int) -> tuple[FloatArray, FloatArray]:
        """A fold's R in order, and the weight of the first 0, 1, 2, ... of them."""
        values, weight = relative[self.fold == index], self.weight[self.fold == index]
        order = np.argsort(values)
        return values[order], np.concatenate([[0.0], np.cumsum(weight[order])])


def calibrate(
    fold: IndexArray,
    y: FloatArray,
    prediction: FloatArray,
    weight: FloatArray,
    columns: FloatArray,
    n_folds: int,
    targets: FloatArray,
) -> Calibration:
    """Make a calibration of the rows left out.

    Parameters
    ----------
    fold : ndarray of int of shape (n_rows,)
        The fold that left the row out.
    y, prediction : ndarray of shape (n_rows,)
        The target, and what that fold's predictor says, in the target's units.
    weight : ndarray of shape (n_rows,)
        How often the row counts.
    columns : ndarray of shape (n_rows, n_columns)
        The rows, nothing missing.
    n_folds : int
        Number of folds, those without rows included.
    targets : ndarray
        All targets that are known: they say what a target can be.
    """
    residual = np.abs(y - prediction)
    model = fit_spread(fold, residual, weight, prediction, columns, n_folds)
    spread = np.ones(len(fold)) if model is None else model.of_rows(fold, prediction, columns)
    return Calibration(fold, residual, weight, spread, model, target_limits(targets))


def target_limits(y: FloatArray) -> tuple[float, float]:
    """Return what a target can be at least and at most, as far as these tell; infinite where they do not."""
    if not y.any():
        return -math.inf, math.inf
    least = 0.0 if y.min() >= 0.0 else -math.inf
    most = 0.0 if y.max() <= 0.0 else math.inf
    if y.min() == 0.0 and y.max() == 1.0 and min(np.sum(y == 0.0), np.sum(y == 1.0)) > 1:
        most = 1.0
    return least, most


def keep_within(ends: FloatArray, limits: tuple[float, float]) -> FloatArray:
    """Keep intervals within what the target can be, and no shorter than half of what they were.

    Without the second an interval of a row far from all others, which holds hardly a possible target, would shrink to
    a point that looks certain. Both ends move with the interval's: a larger coverage never has a smaller interval.
    """
    low, high = limits
    lower, upper = ends.T
    half = (upper - lower) / 2.0
    ends = np.column_stack([np.minimum(lower, high - half), np.maximum(upper, low + half)])
    return np.clip(ends, low, high)


def refuse_coverage(coverage: float) -> None:
    """Refuse a coverage that is not below 1, or below one half, where the ends of an interval could change places."""
    if not 0.5 <= coverage < 1.0:
        raise InputError(f"The coverage of an interval must be at least 0.5 and below 1, got {coverage:g}; try 0.95.")
