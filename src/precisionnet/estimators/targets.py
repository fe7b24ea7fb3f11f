"""What is predicted: a number or a class. How it becomes a tensor, what is lost on it, and what an output means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.special import log_softmax, softmax
from sklearn.utils.multiclass import check_classification_targets
from torch import Tensor
from torch.nn.functional import cross_entropy, huber_loss

from precisionnet.errors import InputError, some
from precisionnet.estimators.rows import Scaler
from precisionnet.parameters import Settings
from precisionnet.types import FloatArray

HUBER = 0.5
"""Errors beyond half a standard deviation of the target count by their size, smaller ones by their square."""

LOSSES: dict[str, Callable[[Tensor], Tensor]] = {
    "absolute": torch.abs,
    "huber": lambda error: huber_loss(error, torch.zeros_like(error), reduction="none", delta=HUBER),
    "squared": torch.square,
}


@dataclass(frozen=True)
class NumberTarget:
    """A number, in standard units while the networks learn: the target itself, or its logarithm.

    Parameters
    ----------
    scaler : Scaler
        Mean and standard deviation of what is learned, on the training rows.
    loss : {"absolute", "huber", "squared"}
        What is lost on an error in standard units.
    logarithm : bool, default=False
        Whether the networks learn the target's logarithm.
    """

    scaler: Scaler
    loss: str
    logarithm: bool = False
    n_outputs = 1

    @classmethod
    def of(cls, y: FloatArray, weight: FloatArray, settings: Settings, *, logarithm: bool) -> NumberTarget:
        """Return how the targets of these training rows are learned."""
        learned = np.log(y) if logarithm else y
        return cls(Scaler.fit(learned, weight, settings.standardize_target), settings.loss, logarithm)

    def tensor(self, y: FloatArray) -> Tensor:
        """Return the target as the networks learn it."""
        return torch.from_numpy(self.scaler.transform(np.log(y) if self.logarithm else y))

    def task_loss(self, output: Tensor, y: Tensor, weight: Tensor) -> Tensor:
        """L_task of the paper: the weighted mean over the rows, of each member where several come."""
        return (weight * LOSSES[self.loss](output[..., 0] - y)).sum(dim=-1) / weight.sum(dim=-1)

    def metric(self, output: Tensor, y: Tensor, weight: Tensor) -> float:
        """Mean absolute error in the target's units."""
        scale, error = float(self.scaler.scale), output[:, 0] - y
        if self.logarithm:  # in float32 some targets are infinite
            output, y, weight = (one.double().cpu() for one in (output, y, weight))
            middle = float(self.scaler.mean)
            error = ((output[:, 0] * scale + middle).exp() - (y * scale + middle).exp()) / scale
        return float((weight * error.abs()).sum() / weight.sum()) * scale

    def meaning(self, output: FloatArray) -> FloatArray:
        """Return outputs (..., 1) in the target's units, (...)."""
        learned = self.scaler.inverse(output[..., 0])
        return np.exp(learned) if self.logarithm else learned

    def slope(self, output: FloatArray) -> FloatArray:
        """Return by how much the meaning of outputs (..., 1) grows with them, (...)."""
        scale = np.full(output.shape[:-1], float(self.scaler.scale))
        return scale * self.meaning(output) if self.logarithm else scale

    def errors_out_of_bag(self, output: FloatArray, y: FloatArray, weight: FloatArray) -> dict[str, float]:
        """Return the errors on rows left out, by the attribute that shows them."""
        return {"oob_mae_": float(np.average(np.abs(self.meaning(output) - y), weights=weight)) if len(y) else np.nan}


@dataclass(frozen=True)
class ClassTarget:
    """One of several classes.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        Labels, sorted.
    """

    classes: Any

    @property
    def n_outputs(self) -> int:
        """Number of classes."""
        return len(self.classes)

    def tensor(self, y: FloatArray) -> Tensor:
        """Return the classes' numbers."""
        return torch.from_numpy(y.astype(np.int64))

    def task_loss(self, output: Tensor, y: Tensor, weight: Tensor, doubt: float = 0.0) -> Tensor:
        """Cross-entropy: the weighted mean over the rows, of each member where several come.

        With a share of ``doubt`` a row may have any class.
        """
        classes_second = output.movedim(-1, 1)
        surprise = cross_entropy(classes_second, y, reduction="none", label_smoothing=doubt)
        return (weight * surprise).sum(dim=-1) / weight.sum(dim=-1)

    def metric(self, output: Tensor, y: Tensor, weight: Tensor) -> float:
        """Accuracy."""
        return float((weight * (output.argmax(dim=1) == y)).sum() / weight.sum())

    def meaning(self, output: FloatArray) -> FloatArray:
        """Return probabilities from logits, (..., n_classes)."""
        probabilities: FloatArray = softmax(output, axis=-1)
        return probabilities

    def errors_out_of_bag(self, output: FloatArray, y: FloatArray, weight: FloatArray) -> dict[str, float]:
        """Return the errors on rows left out, by the attribute that shows them."""
        if not len(y):
            return {"oob_log_loss_": np.nan, "oob_accuracy_": np.nan}
        true = y.astype(np.intp)
        surprise = -log_softmax(output, axis=1)[np.arange(len(output)), true]
        return {
            "oob_log_loss_": float(np.average(surprise, weights=weight)),
            "oob_accuracy_": float(np.average(output.argmax(axis=1) == true, weights=weight)),
        }


Target = NumberTarget | ClassTarget


def learns_logarithm(target: Target) -> bool:
    """Whether the networks learn the target's logarithm."""
    return isinstance(target, NumberTarget) and target.logarithm


def classes_of(y: Any, weight: FloatArray) -> Any:
    """Return the labels of the rows that carry weight, sorted; at least two."""
    check_classification_targets(y)
    try:
        classes = np.unique(np.asarray(y)[weight > 0])
    except TypeError as error:
        raise InputError("The target mixes labels of different types, such as text and numbers: use one.") from error
    if len(classes) < 2:
        raise InputError(
            f"The target has only one class ({classes[0]!s}): a classifier needs at least two classes; "
            "check the target column or the rows that were selected."
        )
    return classes


def all_classes(y: Any, weight: FloatArray, classes: Any) -> Any:
    """Return the labels that are said to be all there are, sorted; others in the rows are refused."""
    check_classification_targets(y)
    known = np.unique(np.asarray(classes))
    if known.ndim != 1 or len(known) < 2:
        raise InputError("classes must list all labels of the target, at least two.")
    unknown = sorted(set(np.asarray(y)[(weight > 0) & ~np.isin(y, known)].tolist()), key=str)
    if unknown:
        raise InputError(
            f"The target holds label {some(unknown)}, which is not one of the {len(known)} classes of the first call: "
            "name all labels with classes= in the first call, or leave those rows out."
        )
    return known


def class_numbers(y: Any, classes: Any, weight: FloatArray | None = None) -> FloatArray:
    """Return each label's number; a label that is none of ``classes`` is refused, unless its row has no weight."""
    known = np.isin(y, classes) if weight is None else np.isin(y, classes) | (weight == 0)
    if not known.all():
        unknown = sorted(set(np.asarray(y)[~known].tolist()), key=str)
        raise InputError(f"y_val holds classes that y has not: {some(unknown)}; leave those rows out.")
    # A label that only stands in rows without weight may fall off the end; those rows are dropped anyway.
    return np.minimum(np.searchsorted(classes, y), len(classes) - 1).astype(np.float64)
