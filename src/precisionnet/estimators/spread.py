"""The spread: how large a predictor's error is expected to be at one row, relative to its errors at other rows.

The spread of fold k at x is s_k(x) = exp(eta_k(x)). eta_k is a sum over the prediction mu_k(x) and the columns of x,
each in standard units and cut off at +-2.5, of a slope and a slope of its absolute value. It is found on the errors r_i
that the *other* folds' predictors made on the rows they left out, by componentwise boosting of

    mean_i  r_i^p exp(-p eta_i) / p + eta_i,        p = 1/2,

which is least where exp(p eta) is the mean of r^p; the power keeps a heavy tail from deciding. Every step changes the
one slope that lowers this the fastest, the prediction's two counting twice as much as a column's. How many steps are
taken for fold k is decided by the other folds, too: what is learned without k and one more is judged on that one, and
the fewest steps are taken whose loss is within half a standard error of the least.

No step at all is a constant spread. It stays constant for all folds unless more than half of them find that the others'
gain exceeds one and a half of its standard errors: so nothing changes where errors have one size, or where rows are too
few to tell. This yes or no is the only thing that a fold's own errors have a say in. (Where every fold decided for
itself, some did and some did not, and mixtures of both were wider than either.)

How far members disagree is no input: those that learned from a row have seen the very error that is to be predicted.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from precisionnet.estimators.rows import Scaler
from precisionnet.types import FloatArray, IndexArray

POWER = 0.5
MOST_STEPS = 60
STEP = 0.2
"""Share of the full step that boosting takes in a slope."""
PREDICTION_FIRST = 2.0
"""How much more a slope of the prediction counts than one of a column when boosting chooses the next slope. The
prediction matters more because intervals should hold for small and large predictions alike."""
CUT = 2.5
"""Values farther from the mean than so many standard deviations are moved to this distance."""
WITHIN, BEYOND = 0.5, 1.5
"""Differences in loss, in standard errors: within the first a loss is as good as the least, and beyond the second a
gain is taken to be more than chance."""
TERMS = 40
"""Number of slopes that boosting chooses among: the ones that lower the loss fastest at its start."""
TAIL = 0.02
"""The spread is kept between these quantiles of the training rows' spreads: this share of rows at either end is cut."""
FEWEST_FOLDS, FEWEST_ROWS, MOST_ROWS = 3, 60, 5000
"""With fewer folds or fewer rows the spread is constant. It is learned from ``MOST_ROWS`` rows at most, evenly
spaced."""


@dataclass(frozen=True)
class Spread:
    """The spread of each fold's predictor.

    Parameters
    ----------
    scaler : Scaler
        Scales the prediction and the columns, in this order.
    slopes : ndarray of shape (n_folds, 1 + 2 (1 + n_columns))
        A constant, the slopes of the values, the slopes of their absolute values; all zero where the spread is 1.
    bounds : ndarray of shape (n_folds, 2)
        Least and largest logarithm of the spread.
    """

    scaler: Scaler
    slopes: FloatArray
    bounds: FloatArray

    def at(self, predictions: FloatArray, columns: FloatArray) -> FloatArray:
        """Return the spread at rows, (n_folds, n_rows), for the folds' predictions of them and the rows' columns."""
        return np.stack([self._of(fold, prediction, columns) for fold, prediction in enumerate(predictions)])

    def of_rows(self, fold: IndexArray, prediction: FloatArray, columns: FloatArray) -> FloatArray:
        """Return the spread of each row by the fold that left it out, (n_rows,)."""
        spread = np.empty(len(fold))
        for index in np.unique(fold):
            spread[fold == index] = self._of(index, prediction[fold == index], columns[fold == index])
        return spread

    def _of(self, fold: int, prediction: FloatArray, columns: FloatArray) -> FloatArray:
        slopes = self.slopes[fold, 1:].reshape(2, -1)
        used = np.flatnonzero(slopes[:, 1:].any(axis=0))
        chosen = np.concatenate([[0], 1 + used])
        scaler = Scaler(self.scaler.mean[chosen], self.scaler.scale[chosen])
        terms = _terms(scaler.transform(np.column_stack([prediction, columns[:, used]])))
        log_spread = self.slopes[fold, 0] + terms @ slopes[:, chosen].ravel()
        spread: FloatArray = np.exp(np.clip(log_spread, *self.bounds[fold]))
        return spread


def fit_spread(
    fold: IndexArray,
    residual: FloatArray,
    weight: FloatArray,
    prediction: FloatArray,
    columns: FloatArray,
    n_folds: int,
) -> Spread | None:
    """Learn each fold's spread from the errors of the others.

    Parameters
    ----------
    fold : ndarray of int of shape (n_rows,)
        The fold that left the row out.
    residual : ndarray of shape (n_rows,)
        Absolute error of that fold's predictor.
    weight : ndarray of shape (n_rows,)
        How often the row counts.
    prediction : ndarray of shape (n_rows,)
        What that fold's predictor says.
    columns : ndarray of shape (n_rows, n_columns)
        The rows, nothing missing.
    n_folds : int
        Number of folds, those without rows included.

    Returns
    -------
    Spread or None
        None where a constant spread is as good for every fold, or nothing is to be learned from.
    """
    values = np.column_stack([prediction, columns])
    scaler = Scaler.fit(values, weight)
    taken = np.unique(np.linspace(0, len(fold) - 1, min(len(fold), MOST_ROWS)).astype(np.intp))
    fold, residual, weight = fold[taken], residual[taken], weight[taken]
    with_rows = np.unique(fold)
    if len(with_rows) < FEWEST_FOLDS or len(fold) < FEWEST_ROWS:
        return None
    if min(residual[fold == index].max() for index in with_rows) == 0.0:
        return None
    terms = _terms(scaler.transform(values[taken]))
    # What is learned without folds a and b judges b for the spread of a, and a for that of b.
    without = {}
    for a, b in combinations(with_rows, 2):
        kept = (fold != a) & (fold != b)
        without[a, b] = without[b, a] = _boost(terms[kept], residual[kept], weight[kept], MOST_STEPS)
    chosen = {}
    for index in with_rows:
        others = fold != index
        losses = np.empty((int(others.sum()), MOST_STEPS + 1))
        for judge in with_rows[with_rows != index]:
            judged = fold == judge
            losses[judged[others]] = without[index, judge].losses(terms[judged], residual[judged])
        chosen[index] = _steps(losses, weight[others])
    if 2 * sum(sure for _, sure in chosen.values()) <= len(with_rows):
        return None
    slopes, bounds = np.zeros((n_folds, 1 + terms.shape[1])), np.zeros((n_folds, 2))
    for index, (steps, _) in chosen.items():
        others = fold != index
        path = _boost(terms[others], residual[others], weight[others], steps)
        slopes[index] = path.slopes(terms.shape[1])
        relative = slopes[index, 0] + terms[others] @ slopes[index, 1:]
        bounds[index] = _quantiles(relative, weight[others], (TAIL, 1.0 - TAIL))
    return Spread(scaler, slopes, bounds)


def _terms(standard: FloatArray) -> FloatArray:
    cut = np.clip(standard, -CUT, CUT)
    return np.hstack([cut, np.abs(cut)])


@dataclass(frozen=True)
class _Path:
    """Slopes after 0, 1, 2, ... steps, for some of the terms in standard units."""

    level: float
    kept: IndexArray
    mean: FloatArray
    scale: FloatArray
    coefficients: FloatArray

    def losses(self, terms: FloatArray, residual: FloatArray) -> FloatArray:
        """Return what each row loses after each number of steps, (n_rows, n_steps + 1)."""
        log_spread: FloatArray = self.level + ((terms[:, self.kept] - self.mean) / self.scale) @ self.coefficients.T
        return residual[:, None] ** POWER * np.exp(-POWER * log_spread) / POWER + log_spread

    def slopes(self, n_terms: int) -> FloatArray:
        """Return the constant and the slopes after the last step: the mean logarithm is zero."""
        slopes = np.zeros(1 + n_terms)
        slopes[1 + self.kept] = self.coefficients[-1] / self.scale
        slopes[0] = -slopes[1 + self.kept] @ self.mean
        return slopes


def _boost(terms: FloatArray, residual: FloatArray, weight: FloatArray, n_steps: int) -> _Path:
    share, powered = weight / weight.sum(), residual**POWER
    level = float(np.log(share @ powered) / POWER)
    mean = share @ terms
    scale = np.sqrt(np.maximum(share @ terms**2 - mean**2, 0.0))
    varies = scale > 1e-9
    prefer = np.ones(terms.shape[1])
    prefer[[0, terms.shape[1] // 2]] = PREDICTION_FIRST
    pull = share * (powered * np.exp(-POWER * level) - 1.0)  # adds up to zero
    promise = np.where(varies, prefer * np.abs(pull @ terms) / np.where(varies, scale, 1.0), -1.0)
    kept = np.sort(np.argsort(-promise, kind="stable")[: min(TERMS, int(varies.sum()))])
    standard = (terms[:, kept] - mean[kept]) / scale[kept]
    path = np.zeros((n_steps + 1, len(kept)))
    if not len(kept):  # rows that do not differ
        return _Path(level, kept, mean[kept], scale[kept], path)
    log_spread = np.full(len(residual), level)
    for step in range(1, n_steps + 1):
        pull = share * (powered * np.exp(-POWER * log_spread) - 1.0)
        slope = pull @ standard
        best = int(np.argmax(prefer[kept] * np.abs(slope)))
        change = STEP * slope[best] / POWER
        path[step] = path[step - 1]
        path[step, best] += change
        log_spread += change * standard[:, best]
    return _Path(level, kept, mean[kept], scale[kept], path)


def _steps(losses: FloatArray, weight: FloatArray) -> tuple[int, bool]:
    """Return the number of steps to take, and whether the gain over none is beyond chance.

    The fewest whose loss is at most ``WITHIN`` standard errors above the least.
    """
    total = weight.sum()
    best = int(np.argmin(weight @ losses))
    above = losses - losses[:, [best]]
    mean = weight @ above / total
    error = np.sqrt(weight @ (above - mean) ** 2) / total
    return int(np.argmax(mean <= WITHIN * error)), bool(mean[0] > BEYOND * error[0])


def _quantiles(values: FloatArray, weight: FloatArray, shares: tuple[float, ...]) -> FloatArray:
    order = np.argsort(values, kind="stable")
    passed = np.cumsum(weight[order])
    places = np.searchsorted(passed, np.array(shares) * passed[-1])
    return values[order][np.minimum(places, len(values) - 1)]
