"""Predict a number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal, overload

import numpy as np
import torch
from sklearn.base import RegressorMixin
from torch import Tensor
from torch.nn.functional import huber_loss

from precisionnet.errors import InputError
from precisionnet.estimators.base import BasePNN
from precisionnet.estimators.intervals import NOTHING_TO_CALIBRATE_ON, Calibration, Unseen
from precisionnet.estimators.rows import Scaler, Table
from precisionnet.linalg import LARGEST
from precisionnet.parameters import BY_NAME
from precisionnet.types import FloatArray, IndexArray

HUBER = 0.5
"""Errors beyond half a standard deviation of the target count by their size, smaller ones by their square."""

LOSSES: dict[str, Callable[[Tensor], Tensor]] = {
    "absolute": torch.abs,
    "huber": lambda error: huber_loss(error, torch.zeros_like(error), reduction="none", delta=HUBER),
    "squared": torch.square,
}


class PNNRegressor(RegressorMixin, BasePNN):  # type: ignore[misc]
    """Precision Neural Network for regression: mean squared error on the standardised target.

    See ``docs/parameters.md`` for every parameter, ``docs/notation.md`` for the paper's symbols.

    Attributes
    ----------
    precision_ : (N, N) the sparse precision theta of the standardised features; its zeros are exact.
    task_precision_ : (N, N) the task-aware matrix the network was trained on.
    covariance_ : (N, N) sample covariance of the standardised training rows.
    history_ : data frame with a row an epoch: every term of the objective, losses and mean absolute errors.
    networks_, shifts_ : the fitted :class:`precisionnet.nn.PrecisionNetwork` objects, and the matrix each runs on.
    oob_prediction_ : (n_samples,) each row of the table given to fit, predicted by the network that left it out; NaN
        for rows that no network left out (with ``n_members`` below 8, with ``recipe="paper"``) or that have no weight.
        A loaded model does not have it: the folder holds no rows.
    oob_mae_ : mean absolute error of these predictions, in the target's units; NaN where there are none.
    calibration_ : the errors that intervals are made of, see ``estimators/intervals.py``; None where no rows were kept
        from training.
    n_missing_ : missing values a column in the rows given to fit.
    medians_ : what takes their place, from the training rows; None with ``missing="error"``.
    n_iter_, best_epoch_ : epochs run, and the one whose state was kept.
    """

    calibration_: Calibration | None

    _n_outputs = 1
    _oob_errors: ClassVar[tuple[str, ...]] = ("oob_mae_",)
    _target_checks: ClassVar[dict[str, Any]] = {"y_numeric": True}

    def _encode_target(self, y: Any, weight: FloatArray) -> FloatArray:
        return self._encode_known_target(y)

    def _encode_known_target(self, y: Any) -> FloatArray:
        target = np.asarray(y, dtype=np.float64)
        if (np.abs(target) > LARGEST).any():
            raise InputError(
                f"The target holds values beyond {LARGEST:g}, whose squares cannot be added up: rescale it."
            )
        return target

    def _fit_target_scaler(self, table: Table) -> None:
        self._y_scaler = Scaler.fit(table.y, table.weight, self.standardize_target)

    def _target_tensor(self, y: FloatArray) -> Tensor:
        return torch.from_numpy(self._y_scaler.transform(y))

    def _task_loss(self, output: Tensor, y: Tensor, weight: Tensor) -> Tensor:
        return (weight * LOSSES[self._loss](output[..., 0] - y)).sum(dim=-1) / weight.sum(dim=-1)

    @property
    def _loss(self) -> str:
        return str(BY_NAME["loss"].of(self.recipe) if self.loss is None else self.loss)

    def _metric(self, output: Tensor, y: Tensor, weight: Tensor) -> float:
        """Mean absolute error in the target's units."""
        error = (weight * (output[:, 0] - y).abs()).sum() / weight.sum()
        return float(error) * float(self._y_scaler.scale)

    def _keep_out_of_bag(self, output: FloatArray, unseen: Unseen, places: IndexArray) -> None:
        prediction, weight = self._y_scaler.inverse(output[:, 0]), unseen.table.weight
        residual = np.abs(unseen.table.y - prediction)
        self.calibration_ = Calibration(unseen.member, residual, weight) if len(residual) else None
        self.oob_prediction_ = unseen.given(prediction, places)
        measured = unseen.out_of_bag and len(residual)
        self.oob_mae_ = float(np.average(residual, weights=weight)) if measured else np.nan

    def _out_of_bag_errors(self, y: Any) -> FloatArray:
        """Absolute errors of the rows given to fit that were left out."""
        errors = np.abs(np.asarray(y, dtype=np.float64) - self.oob_prediction_)
        return errors[np.isfinite(errors)]

    @overload
    def predict(self, X: Any, return_std: Literal[False] = False) -> FloatArray: ...

    @overload
    def predict(self, X: Any, return_std: Literal[True]) -> tuple[FloatArray, FloatArray]: ...

    def predict(self, X: Any, return_std: bool = False) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Predicted target for each row of X.

        With ``return_std`` a standard deviation for each row, too, in the target's units: the square root of the
        variance of the networks' predictions, which grows where they disagree, plus the mean squared error on rows that
        they did not learn from (out-of-bag rows; validation rows of a single network).
        """
        outputs = self._member_outputs(X)  # first of all: it refuses a model that is not fitted
        prediction = self._y_scaler.inverse(outputs.mean(dim=0).numpy()[:, 0])
        if not return_std:
            return prediction
        noise = self._calibrated().mean_squared_error
        return prediction, np.sqrt(self._y_scaler.inverse(outputs.numpy()[..., 0]).var(axis=0) + noise)

    def predict_interval(self, X: Any, coverage: float = 0.95) -> FloatArray:
        """Lower and upper end, (n_samples, 2), of an interval that holds a new row's target in ``coverage`` of cases.

        Calibrated on the rows that the networks left out (CV+), or on the validation rows of a single network (split
        conformal prediction). The share is one over all rows like those of the fit, not a promise for each kind of row.
        """
        outputs = self._member_outputs(X).numpy()  # first of all: it refuses a model that is not fitted
        return self._calibrated().interval(self._y_scaler.inverse(outputs[..., 0]), coverage)

    def _calibrated(self) -> Calibration:
        if self.calibration_ is None:
            raise InputError(NOTHING_TO_CALIBRATE_ON)
        return self.calibration_
