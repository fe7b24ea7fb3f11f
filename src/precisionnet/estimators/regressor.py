"""Predict a number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import RegressorMixin
from torch import Tensor
from torch.nn.functional import huber_loss

from precisionnet.errors import InputError
from precisionnet.estimators.base import BasePNN
from precisionnet.estimators.rows import Scaler, Table
from precisionnet.linalg import LARGEST
from precisionnet.types import FloatArray


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
    network_ : the fitted :class:`precisionnet.nn.PrecisionNetwork`.
    n_missing_ : missing values a column in the rows given to fit.
    medians_ : what takes their place, from the training rows; None with ``missing="error"``.
    n_iter_, best_epoch_ : epochs run, and the one whose state was kept.
    """

    _n_outputs = 1
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
        return (weight * LOSSES[self._loss](output[:, 0] - y)).sum() / weight.sum()

    @property
    def _loss(self) -> str:
        return str(self.settings.loss)

    def _metric(self, output: Tensor, y: Tensor, weight: Tensor) -> float:
        """Mean absolute error in the target's units."""
        error = (weight * (output[:, 0] - y).abs()).sum() / weight.sum()
        return float(error) * float(self._y_scaler.scale)

    def predict(self, X: Any) -> FloatArray:
        """Predicted target for each row of X."""
        output = self._output(X)  # first of all: it refuses a model that is not fitted
        return self._y_scaler.inverse(output[:, 0])
