"""Methods side by side: every repeat of each, and how far each is from a reference.

A method has one colour, one marker and one line style in every figure. The colours stay apart for the colour-blind;
models that are no networks share a grey, rivals a violet, as they are told apart by their names on the axis.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.markers import MarkerStyle

from precisionnet.plots.style import INK, MUTED, new_figure, short

PLAIN, RIVAL, TRIVIAL = "#3e4c59", "#6b4c9a", "#7b8794"
FAR, FAR_APART = 3.0, 8.0
"""An error or a difference of so many times the median is written at the edge; drawn, it would shrink all others."""


@dataclass(frozen=True)
class Look:
    """How a method is drawn: colour, marker and line style."""

    color: str
    marker: Any
    """A name, or (corners, 1 for a star, degrees): whatever matplotlib takes."""
    line: Any = "-"


LOOKS = {
    "joint": Look("#1d5fa6", "o", "-"),
    "naive": Look("#d98500", "s", (0, (5, 2))),
    "glasso": Look("#007a5a", "^", (0, (3, 1, 1, 1))),
    "sample": Look("#cc79a7", "D", (0, (1, 1))),
    "vnn": Look("#8a2b00", "v", (0, (6, 2, 1, 2))),
    # With the flattened readout: the method's colour and line, a mark of its own.
    "joint_mean": Look("#1d5fa6", (7, 0, 0), (0, (1, 1))),
    "naive_mean": Look("#d98500", "H", (0, (1, 1))),
    "glasso_mean": Look("#007a5a", (5, 1, 0), (0, (1, 1))),
    "sample_mean": Look("#cc79a7", (6, 1, 0), (0, (3, 2))),
    "vnn_mean": Look("#8a2b00", (3, 1, 0), (0, (1, 1))),
    "joint_mlp": Look("#1d5fa6", "P", "-"),
    "naive_mlp": Look("#d98500", "8", (0, (5, 2))),
    "glasso_mlp": Look("#007a5a", "*", (0, (3, 1, 1, 1))),
    "sample_mlp": Look("#cc79a7", (4, 1, 0), (0, (1, 1))),
    "vnn_mlp": Look("#8a2b00", (3, 1, 180), (0, (6, 2, 1, 2))),
    "pca_mlp": Look("#56b4e9", "p", (0, (4, 1, 1, 1, 1, 1))),
    "ridge": Look(PLAIN, ">"),
    "logistic": Look(PLAIN, ">"),
    "svr": Look(PLAIN, "<"),
    "svc": Look(PLAIN, "<"),
    "gp": Look(PLAIN, "h"),
    "hist_gb": Look(PLAIN, "d"),
    "catboost": Look(RIVAL, (8, 1, 0)),
    "realmlp": Look(RIVAL, (9, 1, 0)),
    "xrfm": Look(RIVAL, (10, 1, 0)),
    "tabicl": Look(RIVAL, (11, 1, 0)),
    "group_median": Look(TRIVIAL, (12, 1, 0)),
    "group_majority": Look(TRIVIAL, (12, 1, 0)),
    "median": Look(TRIVIAL, "X"),
    "majority": Look(TRIVIAL, "X"),
}


def look(method: str) -> Look:
    """Return how a method is drawn; one without a look of its own is grey."""
    return LOOKS.get(method, Look(PLAIN, "*"))


def mark(method: str) -> str:
    """Return the method's marker as a small ``<svg>``, for tables and text: the same as in the figures."""
    style = MarkerStyle(look(method).marker)
    path = style.get_path().transformed(style.get_transform())
    corners = path.to_polygons(width=0.0, height=0.0)[0]
    corners = corners / np.abs(corners).max()
    points = " ".join(f"{x:.2f},{-y:.2f}" for x, y in corners)
    return (
        f'<svg class="mark" viewBox="-1.1 -1.1 2.2 2.2" aria-hidden="true"><polygon points="{points}" '
        f'fill="{look(method).color}"/></svg>'
    )


def repeats(scores: pd.DataFrame, labels: Mapping[str, str], axis: str) -> Figure:
    """Draw one line per method with one small mark per repeat; thin lines join the same split.

    The large mark is the mean, its bar one standard deviation.

    Parameters
    ----------
    scores : DataFrame
        One row per repeat and one column per method, in the order to show from the top.
    labels : mapping of str to str
        Names of methods for people.
    axis : str
        Label of the axis.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> import pandas as pd
    >>> from precisionnet.plots import repeats
    >>> figure = repeats(pd.DataFrame({"joint": [3.1, 3.3], "ridge": [3.6, 3.5]}), {"joint": "Joint"}, "MAE")
    >>> [text.get_text() for text in figure.axes[0].get_yticklabels()]
    ['Joint', 'ridge']
    """
    figure, axes = _rows_of_methods(list(scores.columns), labels)
    means, spreads = (values.to_numpy(dtype=float) for values in (scores.mean(), scores.std(ddof=1).fillna(0.0)))
    drawn = np.vstack([scores.to_numpy(dtype=float), means - spreads, means + spreads])
    low, high = _limits(means, drawn, FAR)
    height = np.arange(scores.shape[1])
    for values in scores.to_numpy(dtype=float):
        inside = np.where((values >= low) & (values <= high), values, np.nan)
        axes.plot(inside, height, color=MUTED, linewidth=0.7, alpha=0.45, zorder=1)
    for place, method in enumerate(scores.columns):
        values = scores[method].dropna().to_numpy(dtype=float)
        if len(values) == 0:
            axes.annotate("failed", (0.5, place), xycoords=("axes fraction", "data"), ha="center", va="center")
            continue
        style, mean, spread = look(str(method)), float(means[place]), float(spreads[place])
        inside = values[(values >= low) & (values <= high)]
        axes.scatter(
            inside, np.full(len(inside), place), s=20, marker=style.marker, color=style.color, alpha=0.5, lw=0, zorder=2
        )
        if not low <= mean <= high:
            _at_the_edge(axes, place, mean, high)
            continue
        axes.errorbar(
            mean, place, xerr=spread or None, color=style.color, marker=style.marker, markersize=9, linewidth=2,
            capsize=4, markeredgecolor="white", markeredgewidth=1, zorder=3,
        )  # fmt: skip
    axes.set(xlim=(low, high), xlabel=axis)
    return figure


def differences(table: pd.DataFrame, labels: Mapping[str, str], reference: str, axis: str) -> Figure:
    """Draw the paired difference of each method to a reference with its interval; the reference is the line at zero.

    Parameters
    ----------
    table : DataFrame
        One row per method with ``difference``, ``low`` and ``high``; the last two are NaN where there is no interval.
    labels : mapping of str to str
        Names of methods for people.
    reference : str
        The method that the others are compared with.
    axis : str
        Label of the axis.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> import pandas as pd
    >>> from precisionnet.plots import differences
    >>> table = pd.DataFrame({"difference": [0.4], "low": [0.1], "high": [0.7]}, index=["ridge"])
    >>> differences(table, {}, "joint", "MAE: difference to joint").axes[0].get_xlabel()
    'MAE: difference to joint'
    """
    figure, axes = _rows_of_methods(list(table.index), labels)
    axes.axvline(0.0, color=look(reference).color, linewidth=1.6, zorder=1)
    middle = table["difference"].to_numpy(dtype=float)
    ends = table[["low", "high"]].to_numpy(dtype=float)
    low, high = _limits(middle, np.column_stack([ends, middle, np.zeros(len(middle))]), FAR_APART)
    for place, method in enumerate(table.index):
        style, value = look(str(method)), middle[place]
        if np.isnan(value):
            axes.annotate("failed", (0.5, place), xycoords=("axes fraction", "data"), ha="center", va="center")
            continue
        if not low <= value <= high:
            _at_the_edge(axes, place, value, high)
            continue
        if np.isfinite(ends[place]).all():
            axes.plot(ends[place], [place, place], color=style.color, linewidth=2, zorder=2)
        axes.plot(
            value, place, color=style.color, marker=style.marker, markersize=9, markeredgecolor="white",
            markeredgewidth=1, zorder=3,
        )  # fmt: skip
    axes.set(xlim=(low, high), xlabel=axis)
    return figure


def _rows_of_methods(methods: list[Any], labels: Mapping[str, str]) -> tuple[Figure, Axes]:
    figure, (axes,) = new_figure(5.0, 1.0 + 0.42 * max(len(methods), 2))
    axes.set_yticks(range(len(methods)), [short(labels.get(str(m), str(m)), 24) for m in methods])
    axes.set_ylim(len(methods) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    return figure, axes


def _limits(centres: Any, values: Any, far: float) -> tuple[float, float]:
    """Return the axis range of all values, except those so far off that the others would shrink to one spot."""
    finite, known = values[np.isfinite(values)], centres[np.isfinite(centres)]
    if len(finite) == 0:
        return 0.0, 1.0
    low, high = float(finite.min()), float(finite.max())
    usual = float(np.median(np.abs(known))) if len(known) else high
    if len(known) > 2 and 0.0 < far * usual < known.max():
        near = finite[finite <= far * usual]
        high = float(near.max()) if len(near) else high
    pad = 0.06 * (high - low) or 0.05 * abs(high) or 0.5
    return low - pad, high + pad


def _at_the_edge(axes: Axes, place: int, value: float, high: float) -> None:
    axes.annotate(
        f"{value:.3g} →", (high, place), xytext=(-4, 0), textcoords="offset points", ha="right", va="center", color=INK
    )
