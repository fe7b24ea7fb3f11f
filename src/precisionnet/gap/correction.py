r"""The age bias of a gap, and how it is taken out.

A regressor that cannot know everything predicts towards the mean: the young too old, the old too young. Over controls

    predicted = a + b * age + error,        mostly 0 < b < 1,

so that the gap, predicted - age, falls by 1 - b with every year of age, whatever the brains are like. Three ways out:

    scaled        (predicted - a) / b - age             the default
    subtractive    predicted - a - b * age              b times the scaled gap
    smooth        (predicted - g(age)) / g'(age)        g a natural cubic spline with four knots in place of a + b * age

None of them goes with age over controls; the smooth one is zero on average at every age, also where the bias is curved.
A brain like that of a person s years older is predicted b * s higher: the scaled and the smooth gap find s, the
subtractive one finds b * s. What is divided by b is noisier by 1 / b, so b must be well away from zero.

Cross-fitting. Rows of outer fold k, and new rows that are dealt to fold k, are predicted by the regressor that left
fold k out, and corrected by a, b and g of the out-of-fold predictions of the *other* folds. No row takes part in the
fit that corrects it, and controls and patients are treated alike. (A row has taken part in the training of the
regressors of the other folds, whose predictions a and b come from. Leaving it out there, too, would take regressors of
two folds fewer, whose b is not that of the regressors that are corrected.)

A corrected prediction, age + corrected gap, has used the true age. Its error is no measure of accuracy, and nothing
here computes it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from precisionnet.errors import InputError
from precisionnet.types import FloatArray, IndexArray

KINDS = ("scaled", "subtractive", "smooth")
"""The values that ``correction`` may have."""
NONE = "none"
LEAST_SLOPE = 0.1
"""Smallest slope b, or g', that can be corrected for: a smaller one would make errors more than ten times larger."""
LEAST_STANDARD_ERRORS = 4.0
"""b must be so many of its standard errors above zero."""
KNOTS = (0.05, 0.35, 0.65, 0.95)
"""Quantiles at which the spline's knots lie (Harrell, Regression Modeling Strategies, section 2.4)."""


@dataclass(frozen=True)
class NaturalSpline:
    """Terms of a natural cubic spline: cubic between knots, linear outside; without a constant.

    Parameters
    ----------
    knots : ndarray of shape (n_knots,)
        Ascending. With fewer than three the spline is a straight line.
    """

    knots: FloatArray

    def terms(self, x: FloatArray) -> FloatArray:
        """Return (n_rows, n_knots - 1), the first column being x itself."""
        return np.column_stack([x, *self._bends(x, 3)])

    def slopes(self, x: FloatArray) -> FloatArray:
        """Return the derivative of every term."""
        return np.column_stack([np.ones_like(x), *(3.0 * bend for bend in self._bends(x, 2))])

    def _bends(self, x: FloatArray, power: int) -> list[FloatArray]:
        knots = self.knots
        if len(knots) < 3:
            return []
        reach = [np.maximum(x - knot, 0.0) ** power for knot in knots]
        last, before = knots[-1], knots[-2]
        scale = (last - knots[0]) ** 2
        return [
            (
                reach[j]
                - reach[-2] * (last - knots[j]) / (last - before)
                + reach[-1] * (before - knots[j]) / (last - before)
            )
            / scale
            for j in range(len(knots) - 2)
        ]


def natural_spline(x: FloatArray) -> NaturalSpline:
    """Return a spline with its knots at quantiles of ``x``."""
    return NaturalSpline(np.unique(np.quantile(x, KNOTS)))


@dataclass(frozen=True)
class Correction:
    """How predictions depend on age among the rows it was fitted on.

    Parameters
    ----------
    kind : {"none", "scaled", "subtractive", "smooth"}
        How the bias is taken out.
    intercept, slope : float
        a and b of ``predicted = a + b * age``.
    slope_error : float
        Standard error of b.
    n_rows : int
        Rows it was fitted on.
    spline : NaturalSpline
        Of g; used by the smooth correction alone.
    weights : ndarray
        Constant of g, and the weights of the spline's terms.
    """

    kind: str
    intercept: float
    slope: float
    slope_error: float
    n_rows: int
    spline: NaturalSpline
    weights: FloatArray

    def gap(self, prediction: FloatArray, age: FloatArray) -> FloatArray:
        """Return the corrected gap of each row; the plain one of kind "none"."""
        if self.kind == NONE:
            return prediction - age
        if self.kind == "smooth":
            return (prediction - self.curve(age)) / (self.spline.slopes(age) @ self.weights[1:])
        left = prediction - self.intercept - self.slope * age
        return left if self.kind == "subtractive" else left / self.slope

    def curve(self, age: FloatArray) -> FloatArray:
        """Return g(age), the prediction that is usual at this age."""
        usual: FloatArray = self.weights[0] + self.spline.terms(age) @ self.weights[1:]
        return usual


def fit_correction(kind: str, prediction: FloatArray, age: FloatArray, people: Any = None) -> Correction:
    """Fit a correction to out-of-fold predictions of controls; it is refused where it would divide by nearly nothing.

    Parameters
    ----------
    kind : {"none", "scaled", "subtractive", "smooth"}
        How the bias is taken out; "none" is never refused.
    prediction, age : ndarray of shape (n_rows,)
        Out-of-fold predictions, and the truth.
    people : array-like of shape (n_rows,), optional
        Whose row it is: rows of one person are not independent, which the standard error of b allows for.
    """
    centred = age - age.mean()
    slope = float(centred @ prediction / (centred @ centred))
    intercept = float(prediction.mean() - slope * age.mean())
    left = prediction - intercept - slope * age
    error = _slope_error(centred, left, people)
    if kind != NONE and slope < max(LEAST_SLOPE, LEAST_STANDARD_ERRORS * error):
        raise InputError(
            f"Out of fold the predictions hardly rise with the target (slope {slope:.3f}, standard error {error:.3f}, "
            f"{len(age)} rows): dividing by that slope would make gaps out of noise; bring more controls, columns that "
            "say more about the target, or a better regressor."
        )
    spline = natural_spline(age)
    terms = np.column_stack([np.ones_like(age), spline.terms(age)])
    weights = np.linalg.lstsq(terms, prediction, rcond=None)[0]
    if kind == "smooth":
        slopes = spline.slopes(age) @ weights[1:]
        flattest = int(np.argmin(slopes))
        if slopes[flattest] < LEAST_SLOPE:
            raise InputError(
                f"Out of fold the predictions stop rising with the target near {age[flattest]:.3g} (slope "
                f"{slopes[flattest]:.3f}): the smooth correction would divide by that slope, the scaled one does not."
            )
    return Correction(kind, intercept, slope, error, len(age), spline, weights)


def _slope_error(centred: FloatArray, left: FloatArray, people: Any) -> float:
    """Return the standard error of b; with people, the jackknife's over them."""
    size = float(centred @ centred)
    if people is None:
        return math.sqrt(float(left @ left) / (len(left) - 2) / size)
    person = pd.factorize(pd.Series(list(people), dtype=object))[0]
    n_people = int(person.max()) + 1
    moved = np.bincount(person, weights=centred * left) / (size - np.bincount(person, weights=centred**2))
    return math.sqrt((1.0 - 1.0 / n_people) * float(moved @ moved))


@dataclass(frozen=True)
class CrossFitted:
    """One correction per outer fold, fitted on the rows of the other folds.

    Parameters
    ----------
    corrections : tuple of Correction
        One per fold.
    sizes : tuple of ndarray
        For each fold the sizes of the other folds' gaps under its correction, ascending.
    """

    corrections: tuple[Correction, ...]
    sizes: tuple[FloatArray, ...]

    def gap(self, prediction: FloatArray, age: FloatArray, fold: IndexArray) -> FloatArray:
        """Return the gap of each row under the correction of its fold."""
        found = np.empty(len(prediction))
        for k, correction in enumerate(self.corrections):
            found[fold == k] = correction.gap(prediction[fold == k], age[fold == k])
        return found

    def reach(self, coverage: float) -> FloatArray:
        """Return per fold the size that a share ``coverage`` of controls' gaps does not exceed.

        The k-th smallest of n sizes with k = ceil(coverage (n + 1)), as in split conformal prediction.
        """
        found = []
        for sizes in self.sizes:
            count = math.ceil(coverage * (len(sizes) + 1) * (1.0 - 1e-12))
            if count > len(sizes):
                raise InputError(
                    f"Intervals of coverage {coverage:g} need {math.ceil(round(coverage / (1 - coverage), 6))} rows "
                    f"outside each fold, and there are {len(sizes)}: ask for less coverage, or bring more controls."
                )
            found.append(float(sizes[count - 1]))
        return np.array(found)


def cross_fit(
    kind: str, prediction: FloatArray, age: FloatArray, fold: IndexArray, n_folds: int, people: Any = None
) -> CrossFitted:
    """Fit one correction per fold, on the out-of-fold predictions of the other folds."""
    corrections, sizes = [], []
    whose = None if people is None else np.array(list(people), dtype=object)
    for k in range(n_folds):
        others = fold != k
        correction = fit_correction(kind, prediction[others], age[others], None if whose is None else whose[others])
        corrections.append(correction)
        sizes.append(np.sort(np.abs(correction.gap(prediction[others], age[others]))))
    return CrossFitted(tuple(corrections), tuple(sizes))
