"""How well rows were predicted that were not learned from, and how training went."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from sklearn.metrics import confusion_matrix, roc_curve

from precisionnet.plots.style import INK, MAIN, MUTED, SECOND, new_figure, short


def predicted_against_true(y: Any, predicted: Any, target: str) -> Figure:
    """Draw one dot per row; on the line, the prediction is right.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        True values.
    predicted : array-like of shape (n_rows,)
        Predicted values.
    target : str
        Name of what is predicted.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> from precisionnet.plots import predicted_against_true
    >>> predicted_against_true([1.0, 2.0], [1.1, 1.8], "age").axes[0].get_xlabel()
    'true age'
    """
    figure, (axes,) = new_figure(5.2, 5.0)
    draw_predicted(axes, y, predicted, target)
    return figure


def draw_predicted(axes: Axes, y: Any, predicted: Any, target: str) -> None:
    """Draw one dot per row."""
    y, predicted = np.asarray(y, dtype=float), np.asarray(predicted, dtype=float)
    low, high = min(y.min(), predicted.min()), max(y.max(), predicted.max())
    pad = 0.04 * (high - low or 1.0)
    ends = [low - pad, high + pad]
    axes.plot(ends, ends, color=MUTED, linewidth=1, linestyle="--", label="prediction = truth")
    axes.scatter(y, predicted, s=18, color=MAIN, alpha=0.55, linewidth=0)
    axes.set(xlim=ends, ylim=ends, xlabel=f"true {short(target)}", ylabel=f"predicted {short(target)}", aspect="equal")
    axes.legend(loc="upper left", handlelength=1.6)


def confusion(y: Any, predicted: Any, classes: Any) -> Figure:
    """Draw the counts of true against predicted classes.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        True classes.
    predicted : array-like of shape (n_rows,)
        Predicted classes.
    classes : sequence
        All classes, in the order to show.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> from precisionnet.plots import confusion
    >>> [text.get_text() for text in confusion(["a", "b"], ["a", "a"], ["a", "b"]).axes[0].texts]
    ['1', '0', '1', '0']
    """
    side = confusion_side(len(classes))
    figure, (axes,) = new_figure(side + 0.6, side)
    draw_confusion(axes, y, predicted, classes)
    return figure


def confusion_side(n_classes: int) -> float:
    """Return the inches that so many classes need."""
    return min(3.0 + 0.45 * n_classes, 9.0)


def draw_confusion(axes: Axes, y: Any, predicted: Any, classes: Any) -> None:
    """Draw the counts of true against predicted classes."""
    counts = confusion_matrix(y, predicted, labels=classes)
    axes.imshow(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1), cmap="Blues", vmin=0, vmax=1)
    for (i, j), count in np.ndenumerate(counts):
        share = count / max(counts[i].sum(), 1)
        axes.text(j, i, str(count), ha="center", va="center", color="white" if share > 0.6 else INK)
    labels = [short(str(label), 14) for label in classes]
    axes.set_xticks(range(len(classes)), labels, rotation=45 if max(map(len, labels)) > 4 else 0)
    axes.set_yticks(range(len(classes)), labels)
    axes.set(xlabel="predicted class", ylabel="true class")
    axes.grid(False)


def roc(y: Any, probabilities: Any, classes: Any) -> Figure:
    """Draw one ROC curve per class against the rest; of two classes, that of the second.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        True classes.
    probabilities : array of shape (n_rows, n_classes)
        Predicted probabilities.
    classes : sequence
        Classes in the order of the columns.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.plots import roc
    >>> len(roc(["a", "b"], np.array([[0.8, 0.2], [0.3, 0.7]]), ["a", "b"]).axes[0].lines)  # with the diagonal
    2
    """
    figure, (axes,) = new_figure(5.0, 4.6)
    axes.plot([0, 1], [0, 1], color=MUTED, linewidth=1, linestyle="--")
    shown = range(1, 2) if len(classes) == 2 else range(len(classes))
    for i in shown:
        truth = np.asarray(y) == classes[i]
        if 0 < truth.sum() < len(truth):
            false_rate, true_rate, _ = roc_curve(truth, probabilities[:, i])
            color = MAIN if len(classes) == 2 else None
            axes.plot(false_rate, true_rate, label=short(str(classes[i]), 20), color=color, linewidth=1.8)
    axes.set(xlabel="false positive rate", ylabel="true positive rate", aspect="equal", xlim=(0, 1), ylim=(0, 1.01))
    if len(classes) <= 10:
        axes.legend(title="class", loc="lower right")
    return figure


def training_curves(history: pd.DataFrame, best_epoch: int, metric: str) -> Figure:
    """Draw the metric, the distance of the two matrices and the exact zeros, epoch by epoch.

    Parameters
    ----------
    history : DataFrame
        ``history_`` of a fitted model.
    best_epoch : int
        The epoch that was kept.
    metric : str
        Name of the metric.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> import pandas as pd
    >>> from precisionnet.plots import training_curves
    >>> history = pd.DataFrame(
    ...     {"epoch": [1, 2], "train_metric": [2.0, 1.0], "validation_metric": [2.1, 1.2], "distance": [0.1, 0.2],
    ...      "n_zeros": [4, 6]}
    ... )
    >>> len(training_curves(history, 2, "Mean absolute error").axes)
    3
    """
    figure, (left, middle, right) = new_figure(11.0, 3.3, 3)
    draw_metric(left, history, best_epoch, metric)
    for axes, column, title in (
        (middle, "distance", "Distance of θ and θ_task"),
        (right, "n_zeros", "Exact zeros in θ"),
    ):
        axes.plot(history["epoch"], history[column], color=MAIN, marker="o", markersize=3.5)
        axes.set(title=title, ylim=(0, max(1e-12 if column == "distance" else 1, 1.15 * history[column].max())))
        _mark_epoch(axes, best_epoch)
    return figure


def draw_metric(axes: Axes, history: pd.DataFrame, best_epoch: int, metric: str) -> None:
    """Draw the metric by epoch; a dotted line marks the one that was kept."""
    epochs = history["epoch"]
    axes.plot(epochs, history["train_metric"], color=MAIN, marker="o", markersize=3.5, label="training rows")
    if history["validation_metric"].notna().any():
        axes.plot(
            epochs, history["validation_metric"], color=SECOND, marker="o", markersize=3.5, label="validation rows"
        )
    axes.set_title(metric)
    axes.legend()
    _mark_epoch(axes, best_epoch)


def _mark_epoch(axes: Axes, best_epoch: int) -> None:
    axes.set_xlabel("epoch")
    axes.axvline(best_epoch, color=MUTED, linewidth=1, linestyle=":")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
