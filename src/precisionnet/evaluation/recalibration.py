"""Predictions of another place, put right by a few of its rows whose target is known.

The target is taken for the prediction plus an offset, y = a + yhat, or for a line, y = a + b yhat, fitted by least
squares. The line is taken where its slope differs from 1 by the t-test, and there are twenty rows at least: of fewer
the offset is nearly all that can be learned.

With an offset from k rows the bias that is left has a standard deviation of s / sqrt(k), s that of the residuals.
Intervals come from the errors of the labelled rows, each predicted without itself (the jackknife): the networks' own
were calibrated elsewhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from precisionnet.arguments import masked_as_missing
from precisionnet.errors import InputError
from precisionnet.estimators.intervals import keep_within, refuse_coverage
from precisionnet.evaluation.error_intervals import Estimate, mean_interval
from precisionnet.types import FloatArray

FEWEST_ROWS = 5
FEWEST_FOR_LINE = 20
CHANCE = 0.05
"""Probability below which a slope other than 1 is no chance."""


@dataclass(frozen=True)
class Recalibration:
    """A correction of predictions, learned from labelled rows.

    Parameters
    ----------
    offset : float
        What is added.
    slope : float
        What predictions are multiplied by before; 1 where only an offset was learned.
    bias : Estimate
        Mean of prediction minus target on the labelled rows before the correction, with its 95 % interval.
    errors : ndarray of shape (n_labelled,)
        Target minus corrected prediction of each labelled row, by a correction that was learned without it.
    limits : (float, float), default=(-inf, inf)
        What the target can be at least and at most; corrected predictions and intervals stay within.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.evaluation import recalibrate
    >>> correction = recalibrate(np.arange(10.0), np.arange(10.0) + 3.0)
    >>> correction.apply(np.array([1.0])).tolist()
    [4.0]
    """

    offset: float
    slope: float
    bias: Estimate
    errors: FloatArray
    limits: tuple[float, float] = (-math.inf, math.inf)

    def apply(self, predicted: Any) -> FloatArray:
        """Correct predictions.

        Parameters
        ----------
        predicted : array-like of shape (n_rows,)
            Predictions of the model.

        Returns
        -------
        ndarray of shape (n_rows,)
            Corrected.
        """
        return np.clip(self._moved(predicted), *self.limits)

    def interval(self, predicted: Any, coverage: float) -> FloatArray:
        """Return the ends of intervals around corrected predictions.

        Parameters
        ----------
        predicted : array-like of shape (n_rows,)
            Predictions of the model, not corrected.
        coverage : float
            Share of targets that they hold.

        Returns
        -------
        ndarray of shape (n_rows, 2)
            Lower and upper ends.
        """
        refuse_coverage(coverage)
        n = len(self.errors)
        rank = math.ceil(coverage * (n + 1) * (1.0 - 1e-12))
        if rank > n:
            raise InputError(
                f"Intervals of coverage {coverage:g} need {math.ceil(round(coverage / (1 - coverage), 6))} labelled "
                f"rows of the new place, and there are {n}: bring more, or ask for less coverage."
            )
        half = float(np.sort(np.abs(self.errors))[rank - 1])
        return keep_within(np.add.outer(self._moved(predicted), np.array([-half, half])), self.limits)

    def _moved(self, predicted: Any) -> FloatArray:
        return self.offset + self.slope * np.asarray(predicted, dtype=float)


def recalibrate(predicted: Any, y: Any, *, limits: tuple[float, float] = (-math.inf, math.inf)) -> Recalibration:
    """Learn a correction from labelled rows.

    Parameters
    ----------
    predicted : array-like of shape (n_labelled,)
        Predictions of a model.
    y : array-like of shape (n_labelled,)
        The rows' targets.
    limits : (float, float), default=(-inf, inf)
        What the target can be at least and at most: ``model.calibration_.limits``.

    Returns
    -------
    Recalibration
        An offset, or a line where its slope is not 1 by chance.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.evaluation import recalibrate
    >>> rng = np.random.default_rng(0)
    >>> predicted = rng.normal(size=60)
    >>> recalibrate(predicted, 5.0 + 2.0 * predicted + 0.1 * rng.normal(size=60)).slope > 1.5
    True
    """
    predicted, y = (np.asarray(masked_as_missing(one), dtype=float) for one in (predicted, y))
    n = len(y)
    if not (np.isfinite(predicted).all() and np.isfinite(y).all()):
        raise InputError("Labelled rows have a missing or infinite target or prediction: leave those rows out.")
    if n < FEWEST_ROWS:
        raise InputError(
            f"{n} labelled row{'' if n == 1 else 's'} cannot correct a model: at least {FEWEST_ROWS} with a known "
            "target are needed; 30 are a good number."
        )
    residual = y - predicted
    errors = (residual - residual.mean()) * n / (n - 1)  # without the row itself
    bias = Estimate(*(-residual.mean(), *sorted(-end for end in mean_interval(residual, np.arange(n))[1:])))
    offset = Recalibration(float(residual.mean()), 1.0, bias, errors, limits)
    if n < FEWEST_FOR_LINE or np.ptp(predicted) == 0.0:
        return offset
    found = stats.linregress(predicted, residual)
    if found.pvalue >= CHANCE:
        return offset
    slope = 1.0 + float(found.slope)
    if slope <= 0.0:
        raise InputError(
            f"On the {n} labelled rows the target falls where predictions rise (slope {slope:.2g}): no correction "
            "makes such a model useful; check their targets and units, or fit a model on rows of that place."
        )
    centred = predicted - predicted.mean()
    leverage = 1.0 / n + centred**2 / (centred @ centred)
    line_errors = (y - y.mean() - slope * centred) / (1.0 - leverage)
    return Recalibration(float(y.mean() - slope * predicted.mean()), slope, bias, line_errors, limits)
