"""Predict a class."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from scipy.special import log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from torch import Tensor
from torch.nn.functional import cross_entropy

from precisionnet.errors import InputError, some
from precisionnet.estimators.base import BasePNN
from precisionnet.estimators.intervals import Unseen
from precisionnet.types import FloatArray, IndexArray


class PNNClassifier(ClassifierMixin, BasePNN):  # type: ignore[misc]
    """Precision Neural Network for two or more classes: cross-entropy.

    Parameters and attributes as :class:`PNNRegressor`; ``history_`` shows accuracies, and ``classes_`` are the labels.
    In place of the out-of-bag attributes there it has

    oob_decision_function_ : (n_samples, n_classes) probabilities of each row of the table given to fit, by the network
        that left it out; NaN for rows that all networks saw or that have no weight. Not in a loaded model.
    oob_log_loss_, oob_accuracy_ : mean negative log-probability of the true class, and share of rows whose most
        probable class is the true one; NaN where no row was left out.
    """

    _oob_errors: ClassVar[tuple[str, ...]] = ("oob_log_loss_", "oob_accuracy_")

    @property
    def _n_outputs(self) -> int:
        return len(self.classes_)

    def _encode_target(self, y: Any, weight: FloatArray) -> FloatArray:
        check_classification_targets(y)
        try:
            self.classes_ = np.unique(np.asarray(y)[weight > 0])
        except TypeError as error:
            raise InputError(
                "The target mixes labels of different types, such as text and numbers: use one."
            ) from error
        if len(self.classes_) < 2:
            raise InputError(
                f"The target has only one class ({self.classes_[0]!s}): a classifier needs at least two classes; "
                "check the target column or the rows that were selected."
            )
        encoded = np.searchsorted(self.classes_, y)
        # A label that only stands in rows without weight may fall off the end; those rows are dropped anyway.
        return np.minimum(encoded, len(self.classes_) - 1).astype(np.float64)

    def _encode_known_target(self, y: Any) -> FloatArray:
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise InputError(f"y_val holds classes that y has not: {some(list(unknown))}; leave those rows out.")
        return np.searchsorted(self.classes_, y).astype(np.float64)

    def _target_tensor(self, y: FloatArray) -> Tensor:
        return torch.from_numpy(y.astype(np.int64))

    def _task_loss(self, output: Tensor, y: Tensor, weight: Tensor) -> Tensor:
        surprise = cross_entropy(output.movedim(-1, 1), y, reduction="none")  # its classes are the second axis
        return (weight * surprise).sum(dim=-1) / weight.sum(dim=-1)

    def _metric(self, output: Tensor, y: Tensor, weight: Tensor) -> float:
        """Accuracy."""
        return float((weight * (output.argmax(dim=1) == y)).sum() / weight.sum())

    def _keep_out_of_bag(self, output: FloatArray, unseen: Unseen, places: IndexArray) -> None:
        self.oob_decision_function_ = unseen.given(softmax(output, axis=1), places)
        self.oob_log_loss_ = self.oob_accuracy_ = np.nan
        if unseen.out_of_bag and len(output):
            true, weight = unseen.table.y.astype(np.intp), unseen.table.weight
            surprise = -log_softmax(output, axis=1)[np.arange(len(output)), true]
            self.oob_log_loss_ = float(np.average(surprise, weights=weight))
            self.oob_accuracy_ = float(np.average(output.argmax(axis=1) == true, weights=weight))

    def _out_of_bag_errors(self, y: Any) -> FloatArray:
        """Log losses of the rows given to fit that were left out."""
        said = self.oob_decision_function_
        known = np.isfinite(said[:, 0])
        likely = said[known, np.searchsorted(self.classes_, np.asarray(y)[known])]
        return -np.log(np.maximum(likely, np.finfo(float).tiny))

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each class, in the order of ``classes_``."""
        probabilities: FloatArray = softmax(self._output(X), axis=1)
        return probabilities

    def predict(self, X: Any) -> Any:
        """Most probable class for each row of X."""
        output = self._output(X)  # first of all: it refuses a model that is not fitted
        return self.classes_[output.argmax(axis=1)]
