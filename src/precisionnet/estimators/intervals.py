"""How far a prediction may be off: intervals calibrated on rows that a network did not learn from.

CV+ (Barber, Candes, Ramdas and Tibshirani, *Predictive inference with the jackknife+*, 2021). Let
R_i = |y_i - mu_k(i)(x_i)| be the error on row i of the member k(i) that left it out, and n the number of such rows. The
interval of coverage 1 - alpha at a new x goes

    from the floor(alpha (n + 1))-th smallest      of  mu_k(i)(x) - R_i
    to   the ceil((1 - alpha) (n + 1))-th smallest of  mu_k(i)(x) + R_i.

With one network and the validation rows for calibration the same formula is split conformal prediction.

A row of weight w counts w times, as everywhere: n is the sum of the weights, and "the k-th smallest" is the smallest
value up to which the weights add up to k, so that weights need not be whole numbers.

Two things are shared between the members, and keep the theorem from holding to the letter: the columns' scaling and
covariance are those of all training rows, and the rows left out have chosen the epoch. Both matter little; the coverage
is measured on other rows in ``tests/estimators/test_intervals.py``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from precisionnet.errors import InputError
from precisionnet.types import FloatArray, IndexArray

NOTHING_TO_CALIBRATE_ON = (
    "How far this model is off is not known, because no rows were kept from its training: fit it again with "
    "recipe='standard', with a validation_fraction above 0, or with X_val and y_val."
)
HALVINGS = 64
"""As many as it takes until a float64 does not change any more."""


@dataclass(frozen=True)
class Calibration:
    """Absolute errors on rows not learned from, in the target's units: whose they are, and how often they count."""

    member: IndexArray
    residual: FloatArray
    weight: FloatArray

    @property
    def mean_squared_error(self) -> float:
        """Of those rows."""
        return float(np.average(self.residual**2, weights=self.weight))

    def interval(self, predictions: FloatArray, coverage: float) -> FloatArray:
        """Lower and upper ends, (rows, 2), for the members' predictions, (members, rows)."""
        total = float(self.weight.sum())
        refuse_coverage(coverage)
        # The small factor: 0.95 * 20 rows shall be 19 of them, whatever floating point says.
        count = coverage * (total + 1.0) * (1.0 - 1e-12)
        if count > total:
            raise InputError(
                f"Intervals of coverage {coverage:g} need {math.ceil(round(coverage / (1 - coverage), 6))} rows to be "
                f"calibrated on, and this model has {total:g}: ask for less coverage, or fit it on more rows, with "
                "n_members=8 or more, or with a larger validation_fraction."
            )
        return np.column_stack([-self._reach(-predictions, count), self._reach(predictions, count)])

    def _reach(self, predictions: FloatArray, count: float) -> FloatArray:
        """For each row the smallest value up to which the weights of mu_k(i)(x) + R_i add up to ``count``.

        By bisection: a member's residuals are sorted once, and counting those below a value is a search among them. All
        sums of a prediction and a residual are never made, so memory grows neither with one nor with the other.
        """
        sorted_members = [self._sorted(int(index)) for index in np.unique(self.member)]
        used = predictions[np.unique(self.member)]
        low, high = used.min(axis=0), used.max(axis=0) + self.residual.max()
        for _ in range(HALVINGS):
            middle = low + (high - low) / 2.0
            below = sum(
                passed[np.searchsorted(residual, middle - prediction, side="right")]
                for (residual, passed), prediction in zip(sorted_members, used, strict=True)
            )
            enough = below >= count
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return high

    def _sorted(self, index: int) -> tuple[FloatArray, FloatArray]:
        """A member's residuals in order, and the weight of the first 0, 1, 2, ... of them."""
        residual, weight = self.residual[self.member == index], self.weight[self.member == index]
        order = np.argsort(residual)
        return residual[order], np.concatenate([[0.0], np.cumsum(weight[order])])


def refuse_coverage(coverage: float) -> None:
    """Below one half the two ends could change places."""
    if not 0.5 <= coverage < 1.0:
        raise InputError(f"The coverage of an interval must be at least 0.5 and below 1, got {coverage:g}; try 0.95.")
