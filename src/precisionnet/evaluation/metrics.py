"""The numbers a result is judged by.

``score`` is the short list that a fit shows; ``score_all`` adds what a comparison stores. ``judge`` is the one number
by which candidates are chosen on validation rows, ``headline`` the one by which methods are compared on test rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    mean_absolute_error,
    mean_squared_error,
    r2_score,
    roc_auc_score,
    root_mean_squared_error,
)

from precisionnet.types import TaskName

METRIC_LABELS = {
    "mae": "MAE",
    "mse": "MSE",
    "rmse": "RMSE",
    "r2": "R²",
    "r": "r",
    "accuracy": "Accuracy",
    "balanced_accuracy": "Balanced acc.",
    "auc": "AUC",
    "log_loss": "Log loss",
    "n_zeros": "Zeros",
    "density": "Density",
    "edges": "Edges",
    "l1_error": "l1 error",
    "frobenius_error": "Frobenius error",
    "edge_f1": "Edge F1",
    "edge_auc": "Edge AUC",
    "density_true": "True density",
    "validation": "Validation",
    "fit_seconds": "Fit s",
    "tune_seconds": "Tuning s",
    "predict_seconds": "Prediction s",
}
"""What tables and figures call a number that a row may hold, in their order."""

HIGHER_IS_BETTER = frozenset({"r2", "r", "accuracy", "balanced_accuracy", "auc", "edge_f1", "edge_auc"})

LEAST_PROBABILITY = 1e-15
"""A class that was called impossible and came all the same costs no more than this probability does."""


def score_regression(y: Any, predicted: Any) -> dict[str, float]:
    """Mean absolute and root mean squared error in the target's units, R2, Pearson's r."""
    y, predicted = np.asarray(y, dtype=float), np.asarray(predicted, dtype=float)
    varies = len(y) > 1 and np.ptp(y) > 0 and np.ptp(predicted) > 0
    return {
        "mae": float(mean_absolute_error(y, predicted)),
        "rmse": float(root_mean_squared_error(y, predicted)),
        "r2": float(r2_score(y, predicted)) if len(y) > 1 else np.nan,
        "r": float(np.corrcoef(y, predicted)[0, 1]) if varies else np.nan,
    }


def score_classification(y: Any, predicted: Any, probabilities: Any, classes: Any) -> dict[str, float]:
    """Accuracy, balanced accuracy, and the area under the ROC curve (one against the rest, averaged over classes)."""
    y, classes = np.asarray(y), np.asarray(classes)
    areas = [
        roc_auc_score(y == label, probabilities[:, i])
        for i, label in enumerate(classes)
        if 0 < (y == label).sum() < len(y)
    ]
    return {
        "accuracy": float(accuracy_score(y, predicted)),
        "balanced_accuracy": float(balanced_accuracy_score(y, predicted)),
        "auc": float(np.mean(areas)) if areas else np.nan,
    }


def score(y: Any, predicted: Any, probabilities: Any = None, classes: Any = None) -> dict[str, float]:
    """Regression scores, or classification scores where probabilities are given."""
    if probabilities is None:
        return score_regression(y, predicted)
    return score_classification(y, predicted, probabilities, classes)


def headline(task: TaskName) -> str:
    """The number by which methods are compared."""
    return "mae" if task == "regression" else "accuracy"


def score_all(y: Any, predicted: Any, probabilities: Any = None, classes: Any = None) -> dict[str, float]:
    """``score`` and the squared error, or the log loss of classes."""
    scores = score(y, predicted, probabilities, classes)
    if probabilities is None:
        return {"mae": scores.pop("mae"), "mse": float(mean_squared_error(y, predicted)), **scores}
    return {**scores, "log_loss": log_loss(y, probabilities, classes)}


def log_loss(y: Any, probabilities: Any, classes: Any) -> float:
    """Mean of -log of the probability given to the class that came; a class without a column had none."""
    came = np.asarray(y)[:, None] == np.asarray(classes)[None, :]
    given = np.where(came, probabilities, 0.0).sum(axis=1)
    return float(-np.log(np.maximum(given, LEAST_PROBABILITY)).mean())


def judge(y: Any, said: Any, classes: Any = None) -> float:
    """What validation rows say of a candidate, lower is better: MAE of numbers, log loss of class probabilities."""
    if classes is None:
        return float(np.abs(np.asarray(y, dtype=float) - np.asarray(said, dtype=float)).mean())
    return log_loss(y, said, classes)
