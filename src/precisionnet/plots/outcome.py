"""How well the held-out rows were predicted, and how training went."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from sklearn.metrics import confusion_matrix, roc_curve

from precisionnet.plots.style import INK, MAIN, MUTED, SECOND, new_figure, short


def predicted_against_true(y: Any, predicted: Any, target: str) -> Figure:
    """One dot a held-out row; on the line, the prediction is right."""
    figure, (axes,) = new_figure(5.2, 5.0)
    y, predicted = np.asarray(y, dtype=float), np.asarray(predicted, dtype=float)
    low, high = min(y.min(), predicted.min()), max(y.max(), predicted.max())
    pad = 0.04 * (high - low or 1.0)
    ends = [low - pad, high + pad]
    axes.plot(ends, ends, color=MUTED, linewidth=1, linestyle="--", label="prediction = truth")
    axes.scatter(y, predicted, s=18, color=MAIN, alpha=0.55, linewidth=0)
    axes.set(xlim=ends, ylim=ends, xlabel=f"true {short(target)}", ylabel=f"predicted {short(target)}", aspect="equal")
    axes.legend(loc="upper left", handlelength=1.6)
    return figure


def confusion(y: Any, predicted: Any, classes: Any) -> Figure:
    """Counts of true against predicted class."""
    counts = confusion_matrix(y, predicted, labels=classes)
    side = min(3.0 + 0.45 * len(classes), 9.0)
    figure, (axes,) = new_figure(side + 0.6, side)
    axes.imshow(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1), cmap="Blues", vmin=0, vmax=1)
    for (i, j), count in np.ndenumerate(counts):
        share = count / max(counts[i].sum(), 1)
        axes.text(j, i, str(count), ha="center", va="center", color="white" if share > 0.6 else INK)
    labels = [short(str(label), 14) for label in classes]
    axes.set_xticks(range(len(classes)), labels, rotation=45 if max(map(len, labels)) > 4 else 0)
    axes.set_yticks(range(len(classes)), labels)
    axes.set(xlabel="predicted class", ylabel="true class")
    axes.grid(False)
    return figure


def roc(y: Any, probabilities: Any, classes: Any) -> Figure:
    """One curve a class against the rest; for two classes, the second."""
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
    """The metric a person reads, and what happened to the two matrices."""
    figure, (left, middle, right) = new_figure(11.0, 3.3, 3)
    epochs = history["epoch"]
    left.plot(epochs, history["train_metric"], color=MAIN, marker="o", markersize=3.5, label="training rows")
    if history["validation_metric"].notna().any():
        left.plot(
            epochs, history["validation_metric"], color=SECOND, marker="o", markersize=3.5, label="validation rows"
        )
    left.set_title(metric)
    left.legend()
    middle.plot(epochs, history["distance"], color=MAIN, marker="o", markersize=3.5)
    middle.set(title="Distance of θ and θ_task", ylim=(0, max(1e-12, 1.15 * history["distance"].max())))
    right.plot(epochs, history["n_zeros"], color=MAIN, marker="o", markersize=3.5)
    right.set(title="Exact zeros in θ", ylim=(0, max(1, 1.15 * history["n_zeros"].max())))
    for axes in (left, middle, right):
        axes.set_xlabel("epoch")
        axes.axvline(best_epoch, color=MUTED, linewidth=1, linestyle=":")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure
