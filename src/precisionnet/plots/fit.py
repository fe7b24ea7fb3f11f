"""Figures of a fit's page: scores with intervals, errors by the target, calibration, and what the prediction uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from precisionnet.plots.evidence import bars_height
from precisionnet.plots.style import MAIN, MUTED, SECOND, new_figure, short
from precisionnet.types import FloatArray

LONGEST_LABEL = 70
"""Letters of an axis' label, which may hold a name from a table."""
DOTS_DRAWN = 4_000
"""Rows that are drawn as dots; of more, as many are taken, evenly spaced."""


class Whisker(NamedTuple):
    """A number with its interval, NaN where there is none."""

    name: str
    value: float
    low: float
    high: float


def score_intervals(rows: Sequence[Whisker], label: str, own: str = "", reference: float | None = None) -> Figure:
    """Draw numbers with their intervals, one under the other.

    Parameters
    ----------
    rows : sequence of (name, value, low, high)
        What to draw, from top to bottom.
    label : str
        What the axis says.
    own : str, default=""
        The row to set apart.
    reference : float, default=None
        Where to draw a dashed line.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> from precisionnet.plots import score_intervals
    >>> figure = score_intervals([("joint", 4.0, 3.8, 4.2), ("ridge", 4.1, 3.9, 4.3)], "mean absolute error", "joint")
    >>> [text.get_text() for text in figure.axes[0].get_yticklabels()]
    ['joint', 'ridge']
    """
    figure, (axes,) = new_figure(6.0, 1.0 + 0.36 * max(len(rows), 1))
    drawn = [Whisker(*row) for row in rows]
    if reference is not None:
        axes.axvline(reference, color=MUTED, linewidth=1, linestyle="--")
    for place, row in enumerate(drawn):
        color = MAIN if row.name == own or not own else MUTED
        if np.isfinite(row.low) and np.isfinite(row.high):
            axes.plot([row.low, row.high], [place, place], color=color, linewidth=2.4, solid_capstyle="round")
        axes.plot([row.value], [place], "o", color=color, markersize=7)
    axes.set_yticks(range(len(drawn)), [short(row.name, 34) for row in drawn])
    axes.tick_params(axis="y", length=0)
    axes.grid(False, axis="y")
    axes.set(xlabel=short(label, LONGEST_LABEL), ylim=(len(drawn) - 0.5, -0.5))
    return figure


def error_by_target(y: Any, predicted: Any, parts: Sequence[Whisker], centres: Sequence[float], target: str) -> Figure:
    """Draw each row's error against its true value, and the mean error of parts of the rows with its interval.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        True values.
    predicted : array-like of shape (n_rows,)
        Predicted values.
    parts : sequence of (name, value, low, high)
        Mean error of parts of the rows.
    centres : sequence of float
        Where on the axis each part stands.
    target : str
        Name of what is predicted.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> from precisionnet.plots import error_by_target
    >>> error_by_target([1.0, 2.0], [1.1, 1.8], [("all", -0.05, -0.3, 0.2)], [1.5], "age").axes[0].get_xlabel()
    'true age'
    """
    y, predicted = np.asarray(y, dtype=float), np.asarray(predicted, dtype=float)
    figure, (axes,) = new_figure(6.4, 4.0)
    some = _evenly(len(y))
    axes.axhline(0.0, color=MUTED, linewidth=1, linestyle="--")
    axes.scatter(y[some], (predicted - y)[some], s=14, color=MAIN, alpha=0.35, linewidth=0, label="a row")
    _draw_whiskers(axes, centres, parts, SECOND, "mean of a fifth of the rows, 95 % interval")
    axes.set(xlabel=f"true {short(target)}", ylabel=f"error: predicted − true {short(target, 18)}")
    axes.legend(loc="best", handlelength=1.4)
    return figure


def calibration_figure(stated: Sequence[float], found: Sequence[Whisker], x_label: str, y_label: str) -> Figure:
    """Draw shares that were stated against shares that were found, with intervals; on the line, both agree.

    Parameters
    ----------
    stated : sequence of float
        What was stated, between 0 and 1.
    found : sequence of (name, value, low, high)
        What was found.
    x_label : str
        What the axis of stated shares says.
    y_label : str
        What the axis of found shares says.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> from precisionnet.plots import calibration_figure
    >>> calibration_figure([0.5], [("half", 0.48, 0.4, 0.56)], "stated", "found").axes[0].get_xlabel()
    'stated'
    """
    figure, (axes,) = new_figure(4.6, 4.4)
    axes.plot([0, 1], [0, 1], color=MUTED, linewidth=1, linestyle="--", label="as stated")
    _draw_whiskers(axes, stated, found, MAIN, "found, 95 % interval")
    ends = [*stated, *(float(end) for one in found for end in one[1:] if np.isfinite(end))]
    low, high = (max(0.0, min(ends) - 0.04), min(1.02, max(ends) + 0.04)) if ends else (0.0, 1.02)
    axes.set(
        xlabel=short(x_label, LONGEST_LABEL),
        ylabel=short(y_label, LONGEST_LABEL),
        xlim=(low, high),
        ylim=(low, high),
        aspect="equal",
    )
    axes.legend(loc="upper left", handlelength=1.6)
    return figure


def effect_bars(model: Any, evidence: Any = None) -> Figure:
    """Draw the columns that the prediction owes most to, as ``model.plot.nodes`` does, without pyplot.

    Parameters
    ----------
    model : PNNRegressor or PNNClassifier
        Fitted.
    evidence : TaskEvidence, default=None
        What ``task_evidence`` returned: columns that are not told from chance are pale.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> from precisionnet import PNNRegressor
    >>> from precisionnet.datasets import make_gaussian_regression
    >>> from precisionnet.plots import effect_bars
    >>> data = make_gaussian_regression(n_samples=40, n_features=4, random_state=0)
    >>> model = PNNRegressor(n_members=1, max_epochs=1, random_state=0).fit(data.X, data.y)
    >>> len(effect_bars(model).axes[0].patches)
    4
    """
    figure, (axes,) = new_figure(7.6, bars_height(len(model.fitted.blocks)))
    model.plot.nodes(evidence=evidence, ax=axes)
    axes.set_title("")
    return figure


def _draw_whiskers(axes: Axes, x: Sequence[float], rows: Sequence[Whisker], color: str, label: str) -> None:
    """Draw numbers with their intervals against ``x``; without an interval where there is none."""
    if len(rows) == 0:
        return
    value, low, high = (np.array([row[part] for row in rows], dtype=float) for part in (1, 2, 3))
    reach: FloatArray = np.maximum(np.nan_to_num(np.vstack([value - low, high - value])), 0.0)
    axes.errorbar(x, value, yerr=reach, fmt="o-", color=color, capsize=3, linewidth=1.8, label=label)


def _evenly(n: int) -> Any:
    """Return the places of the rows that are drawn."""
    return np.arange(n) if n <= DOTS_DRAWN else np.linspace(0, n - 1, DOTS_DRAWN).astype(int)
