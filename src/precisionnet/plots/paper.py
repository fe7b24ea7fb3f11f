"""Figures of the paper's experiments: Figure 2 over sparsity levels, Theorem 1 on logarithmic axes, convergence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FixedLocator, LogLocator, NullFormatter, NullLocator

from precisionnet.plots.comparison import look
from precisionnet.plots.style import INK, MAIN, MUTED, SECOND, new_figure
from precisionnet.types import BoolArray, FloatArray

SPREAD = 16.0
"""An axis is logarithmic where the largest mean is so many times the median method's."""

FLAT = 3.0
"""The least range of a logarithmic axis of errors, as a factor."""

VARIANT_LINES = {"listing": (SECOND, "--"), "exact": (INK, "-."), "monotone": (MAIN, "-")}
"""Colour and line of each variant; another one is grey."""


@dataclass(frozen=True)
class Panel:
    """One measure over the sparsity levels."""

    metric: str
    title: str
    truth: Sequence[float] | None = None
    """The value that the measure would have at each level if the precision were known."""


def sparsity_panel(means: pd.DataFrame, deviations: pd.DataFrame, panel: Panel, labels: Mapping[str, str]) -> Figure:
    """Draw one panel with its legend; ``means`` has one row per sparsity level and one column per method."""
    figure, (axes,) = new_figure(4.9, 3.9)
    _draw(axes, means, deviations, panel, labels)
    _legend(figure, [axes], 3)
    return figure


def sparsity_figure(tables: Sequence[tuple[pd.DataFrame, pd.DataFrame, Panel]], labels: Mapping[str, str]) -> Figure:
    """Draw all panels, two in a row, with one legend, as the paper's Figure 2."""
    columns = min(2, len(tables))
    lines = -(-len(tables) // columns)
    figure = Figure(figsize=(4.8 * columns, 3.4 * lines + 0.5), layout=_spaced())
    for i, (means, deviations, panel) in enumerate(tables):
        axes = figure.add_subplot(lines, columns, i + 1)
        axes.set_title(panel.title)
        _draw(axes, means, deviations, panel, labels)
    _legend(figure, figure.axes, 6)
    return figure


def _draw(axes: Axes, means: pd.DataFrame, deviations: pd.DataFrame, panel: Panel, labels: Mapping[str, str]) -> None:
    levels = means.index.to_numpy(dtype=float)
    for method in reversed(means.columns):  # the first method on top
        style, mean = look(str(method)), means[method].to_numpy(dtype=float)
        spread = np.nan_to_num(deviations[method].to_numpy(dtype=float))
        axes.fill_between(
            levels, np.maximum(mean - spread, 0.0), mean + spread, color=style.color, alpha=0.11, linewidth=0
        )
        axes.plot(
            levels, mean, color=style.color, marker=style.marker, linestyle=style.line, linewidth=1.8, markersize=6,
            markeredgecolor="white", markeredgewidth=0.6, label=labels.get(str(method), str(method)),
        )  # fmt: skip
    if panel.truth is not None:
        axes.plot(levels, panel.truth, color=INK, linewidth=1.4, linestyle="--", label="truth")
    largest = means.max().to_numpy(dtype=float)
    if panel.truth is not None:
        axes.set_ylim(0.0, 1.04)
    elif largest.max() > SPREAD * np.median(largest):
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
    else:
        axes.set_ylim(bottom=0.0)  # no measure is below zero, whatever the deviation says
    axes.set(xlabel="sparsity: non-zero share of the true precision")
    axes.xaxis.set_major_locator(FixedLocator(list(levels)))
    axes.xaxis.set_major_formatter("{x:g}")


def _legend(figure: Figure, axes: Sequence[Axes], columns: int) -> None:
    """One legend of every line: a method without a graph, such as ridge, is not in every panel."""
    drawn = [pair for one in axes for pair in zip(*one.get_legend_handles_labels(), strict=True)]
    found = {label: handle for handle, label in reversed(drawn)}  # the first panel has all methods, the last on top
    names = [*(label for label in found if label != "truth"), *(label for label in found if label == "truth")]
    figure.legend([found[name] for name in names], names, loc="outside upper left", ncols=columns, handlelength=2.6)


@dataclass(frozen=True)
class Rate:
    """Errors over one quantity, the line fitted to them, and the slope a theorem gives."""

    title: str
    axis: str
    x: FloatArray
    error: FloatArray
    """One value per draw; ``x`` is as long."""
    judged: BoolArray
    """Draws that the line is fitted to."""
    slope: float | None = None
    """Fitted to the logarithms; None where no line is fitted."""
    deviation: float | None = None
    """Its standard error."""
    theory: float | None = None
    measure: str = "error of θ (Frobenius)"
    """Label of the axis of errors."""
    expected: str = "theorem's slope"
    """Label of the line ``theory``."""


def rate_panel(rate: Rate) -> Figure:
    """Draw one panel of Theorem 1."""
    figure, (axes,) = new_figure(4.9, 3.7)
    _draw_rate(axes, rate)
    return figure


def rate_figure(rates: Sequence[Rate]) -> Figure:
    """Draw all panels of Theorem 1, two in a row."""
    columns = min(2, len(rates))
    lines = -(-len(rates) // columns)
    figure = Figure(figsize=(4.9 * columns, 3.8 * lines), layout=_spaced())
    for i, rate in enumerate(rates):
        axes = figure.add_subplot(lines, columns, i + 1)
        axes.set_title(rate.title)
        _draw_rate(axes, rate)
    return figure


def _draw_rate(axes: Axes, rate: Rate) -> None:
    positive = np.isfinite(rate.error) & (rate.error > 0)
    keep = positive & (rate.x > 0)
    x, error, judged = rate.x[keep], rate.error[keep], rate.judged[keep]
    axes.set(xlabel=rate.axis, ylabel=rate.measure)
    if len(x) == 0:
        axes.text(0.5, 0.5, "no results yet", transform=axes.transAxes, ha="center", color=MUTED)
        return
    axes.set(xscale="log", yscale="log")
    axes.scatter(x, error, s=13, color=MUTED, alpha=0.5, linewidth=0)
    at_zero = rate.error[positive & (rate.x == 0)]
    if len(at_zero):  # a logarithmic axis has no zero
        axes.axhline(float(at_zero.mean()), color=MUTED, linewidth=1.2, linestyle=":", label="at distance 0")
    levels = np.unique(x)
    for chosen, face in ((True, MAIN), (False, "white")):
        here = [level for level in levels if judged[x == level].any() == chosen]
        mean = [float(np.exp(np.log(error[x == level]).mean())) for level in here]  # as the line has it
        axes.plot(here, mean, "o", color=MAIN, markerfacecolor=face, markersize=6.5, zorder=3)
    if judged.any():
        _lines(axes, rate, x[judged], error[judged])
    _plain_ticks(axes, levels)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=9)


def _lines(axes: Axes, rate: Rate, x: FloatArray, error: FloatArray) -> None:
    """The fitted line and the theorem's, through the middle of the draws that are judged."""
    ends = np.array([x.min(), x.max()])
    if ends[0] == ends[1]:
        return
    middle = np.exp(np.log(x).mean()), np.exp(np.log(error).mean())
    spread = "" if rate.deviation is None else f" ± {rate.deviation:.2f}"
    if rate.slope is not None:
        line = middle[1] * (ends / middle[0]) ** rate.slope
        axes.plot(ends, line, color=MAIN, linewidth=1.8, label=f"fitted slope {rate.slope:.2f}{spread}")
    if rate.theory is not None:
        line = middle[1] * (ends / middle[0]) ** rate.theory
        axes.plot(ends, line, color=SECOND, linewidth=1.8, linestyle="--", label=f"{rate.expected} {rate.theory:g}")


def _plain_ticks(axes: Axes, levels: FloatArray) -> None:
    """Numbers as a person writes them, where they fit: at the levels, and at round ones."""
    shown = [levels[0]]
    for level in levels[1:]:
        if np.log(level / shown[-1]) > 0.13 * np.log(levels[-1] / levels[0]):
            shown.append(level)
    axes.xaxis.set_major_locator(FixedLocator([float(level) for level in shown]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter("{x:.3g}" if levels.max() < 1000 else "{x:,.0f}")
    low, high = axes.get_ylim()
    if high < FLAT * low:  # what hardly changes should look like it
        middle = np.sqrt(low * high)
        low, high = axes.set_ylim(middle / np.sqrt(FLAT), middle * np.sqrt(FLAT))
    subs = (1, 1.5, 2, 3, 5, 7) if high < 10 * low else (1, 2, 5) if high < 200 * low else (1,)
    axes.yaxis.set_major_locator(LogLocator(subs=subs))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter("{x:g}")


@dataclass(frozen=True)
class Curves:
    """One measure over epochs."""

    label: str
    """Label of the axis."""
    lines: Mapping[str, Sequence[FloatArray]]
    """For each variant one array per repeat, whose first value is that of the start."""


def curves_panel(curves: Curves) -> Figure:
    """Draw one measure of one table; the axis is logarithmic."""
    figure, (axes,) = new_figure(4.9, 3.7)
    draw_curves(axes, curves)
    return figure


def curves_figure(tables: Mapping[str, Sequence[Curves]]) -> Figure:
    """Draw all tables, one in a row, the measures side by side."""
    columns = max(len(found) for found in tables.values())
    figure = Figure(figsize=(4.9 * columns, 3.5 * len(tables)), layout="constrained")
    for i, (title, found) in enumerate(tables.items()):
        for j, curves in enumerate(found):
            axes = figure.add_subplot(len(tables), columns, i * columns + j + 1)
            axes.set_title(title)
            draw_curves(axes, curves)
    return figure


def draw_curves(axes: Axes, curves: Curves) -> None:
    """Draw the lines; what is not above zero has no place on the axis and is left out."""
    axes.set(xlabel="epoch", ylabel=curves.label, yscale="log")
    for variant, lines in curves.lines.items():
        color, line = VARIANT_LINES.get(variant, (MUTED, ":"))
        for number, values in enumerate(lines):
            shown = np.where(values > 0, values, np.nan)
            axes.plot(
                np.arange(len(values)), shown, color=color, linestyle=line, linewidth=1.6,
                alpha=1.0 if number == 0 else 0.45, label=variant if number == 0 else None,
            )  # fmt: skip
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=9)


def _spaced() -> ConstrainedLayoutEngine:
    """Room between panels, so that the end of one axis is not read with the next."""
    return ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1)
