"""The numbers a result is judged by, of predictions and of graphs.

``score`` is the short list that a fit shows; ``score_all`` adds what a comparison stores. ``judge`` is the one number
by which candidates are chosen on validation rows, ``headline`` the one by which methods are compared on test rows.
``graph_scores`` says how sparse an estimated precision is, and how near the true one where that is known.
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

from precisionnet.arguments import masked_as_missing
from precisionnet.linalg import count_zeros
from precisionnet.precision import count_edges
from precisionnet.types import FloatArray, TaskName

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
    "n_near_zeros": "Below 1e-8",
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
"""Names of the numbers of a row in tables and figures, in their order."""

HIGHER_IS_BETTER = frozenset({"r2", "r", "accuracy", "balanced_accuracy", "auc", "edge_f1", "edge_auc"})

NEAR_ZERO = 1e-8
"""Entries of theta smaller than this are counted beside exact zeros: solvers that do not threshold leave such ones."""

SHARES = frozenset({"r2", "r", "accuracy", "balanced_accuracy", "auc"})
"""Scores without a unit, at most one."""

PERCENT = ("accuracy", "balanced_accuracy")
"""Scores that are shares of rows; an AUC is none."""

LEAST_PROBABILITY = 1e-15
"""Smallest probability that the log loss counts with."""


def score_regression(y: Any, predicted: Any) -> dict[str, float]:
    """Return mean absolute and root mean squared error in the target's units, R2 and Pearson's r."""
    y, predicted = (np.asarray(masked_as_missing(one), dtype=float) for one in (y, predicted))
    varies = len(y) > 1 and np.ptp(y) > 0 and np.ptp(predicted) > 0
    return {
        "mae": float(mean_absolute_error(y, predicted)),
        "rmse": float(root_mean_squared_error(y, predicted)),
        "r2": float(r2_score(y, predicted)) if len(y) > 1 else np.nan,
        "r": float(np.corrcoef(y, predicted)[0, 1]) if varies else np.nan,
    }


def score_classification(y: Any, predicted: Any, probabilities: Any, classes: Any) -> dict[str, float]:
    """Return accuracy, balanced accuracy and the area under the ROC curve (one against the rest, averaged)."""
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
    """Score predictions: of numbers, or of classes where probabilities are given.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        True values or classes.
    predicted : array-like of shape (n_samples,)
        Predicted values or classes.
    probabilities : array-like of shape (n_samples, n_classes), default=None
        Predicted probabilities of classes.
    classes : array-like of shape (n_classes,), default=None
        The class of each column of ``probabilities``.

    Returns
    -------
    dict of str to float
        Of numbers mae, rmse, r2 and r; of classes accuracy, balanced_accuracy and auc. NaN where a score is not
        defined.

    Examples
    --------
    >>> from precisionnet.evaluation import score
    >>> round(score([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])["mae"], 2)
    0.33
    """
    if probabilities is None:
        return score_regression(y, predicted)
    return score_classification(y, predicted, probabilities, classes)


def headline(task: TaskName) -> str:
    """Return the number by which methods are compared."""
    return "mae" if task == "regression" else "accuracy"


def score_all(y: Any, predicted: Any, probabilities: Any = None, classes: Any = None) -> dict[str, float]:
    """Return ``score`` and the squared error, or the log loss of classes."""
    scores = score(y, predicted, probabilities, classes)
    if probabilities is None:
        return {"mae": scores.pop("mae"), "mse": float(mean_squared_error(y, predicted)), **scores}
    return {**scores, "log_loss": log_loss(y, probabilities, classes)}


def log_loss(y: Any, probabilities: Any, classes: Any) -> float:
    """Return the mean of -log of the probability of the true class; a class without a column has probability 0."""
    came = np.asarray(y)[:, None] == np.asarray(classes)[None, :]
    given = np.where(came, probabilities, 0.0).sum(axis=1)
    return float(-np.log(np.maximum(given, LEAST_PROBABILITY)).mean())


def judge(y: Any, said: Any, classes: Any = None) -> float:
    """Judge a candidate on validation rows, lower is better: MAE of numbers, log loss of class probabilities."""
    if classes is None:
        return float(np.abs(np.asarray(y, dtype=float) - np.asarray(said, dtype=float)).mean())
    return log_loss(y, said, classes)


def graph_scores(theta: FloatArray, theta_true: FloatArray | None = None) -> dict[str, float]:
    """Count zeros, density and edges of theta; with the truth also its distance and how well edges are found.

    Zeros and density count all N x N entries, the diagonal among them, as the paper does. ``n_zeros`` are exact zeros,
    ``n_near_zeros`` all entries below 1e-8: the paper does not say which it counts. ``edge_f1`` takes an entry other
    than zero for an edge, ``edge_auc`` ranks the pairs by size; both are NaN where the truth leaves nothing to find (no
    pair is an edge, or all are).
    """
    theta = np.asarray(theta, dtype=np.float64)
    n_zeros = count_zeros(theta)
    scores = {
        "n_zeros": n_zeros,
        "n_near_zeros": int((np.abs(theta) < NEAR_ZERO).sum()),
        "density": 1.0 - n_zeros / theta.size,
        "edges": count_edges(theta),
    }
    if theta_true is None:
        return scores
    theta_true = np.asarray(theta_true, dtype=np.float64)
    difference = theta - theta_true
    pairs = np.triu_indices(len(theta), k=1)
    found, true = theta[pairs] != 0.0, theta_true[pairs] != 0.0
    decidable = bool(true.any() and not true.all())
    return {
        **scores,
        "l1_error": float(np.abs(difference).sum()),
        "frobenius_error": float(np.linalg.norm(difference)),
        "edge_f1": 2.0 * float((found & true).sum()) / float(found.sum() + true.sum()) if decidable else np.nan,
        "edge_auc": float(roc_auc_score(true, np.abs(theta[pairs]))) if decidable else np.nan,
        "density_true": 1.0 - count_zeros(theta_true) / theta.size,
    }


def decimals_of(value: float, digits: int = 3) -> int:
    """Return the decimals that show so many significant digits of a value; none of a large one, 2 of zero."""
    if not np.isfinite(value) or value == 0.0:
        return 2
    return int(np.clip(digits - 1 - np.floor(np.log10(abs(value))), 0, 12))


def significant(value: float, digits: int = 3) -> str:
    """Write a number with so many significant digits, without an exponent where that is readable; a dash for NaN."""
    if np.isnan(value):
        return "–"
    if value != 0.0 and not 1e-6 <= abs(value) < 1e9:
        return f"{value:.{digits - 1}e}"
    return f"{value:,.{decimals_of(value, digits)}f}"


def score_text(metric: str, value: float) -> str:
    """Write a score: errors with three significant digits, shares with three decimals."""
    if np.isnan(value):
        return "–"
    return f"{value:.3f}" if metric in SHARES else significant(value)
