"""The numbers a result is judged by."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    mean_absolute_error,
    r2_score,
    roc_auc_score,
    root_mean_squared_error,
)

METRIC_LABELS = {
    "mae": "MAE",
    "rmse": "RMSE",
    "r2": "R²",
    "r": "r",
    "accuracy": "Accuracy",
    "balanced_accuracy": "Balanced acc.",
    "auc": "AUC",
}


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
