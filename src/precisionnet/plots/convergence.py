"""Objective and residual of training over epochs, one line per repeat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from precisionnet.plots.style import INK, MAIN, MUTED, SECOND, new_figure
from precisionnet.types import FloatArray

LOOKS = {"listing": (SECOND, "--"), "exact": (INK, "-."), "monotone": (MAIN, "-")}
"""Colour and line of each variant; another one is grey."""


@dataclass(frozen=True)
class Curves:
    """One measure over epochs."""

    label: str
    """What the axis says."""
    lines: Mapping[str, Sequence[FloatArray]]
    """By variant, one array per repeat; the first value is that of the start."""


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
        color, line = LOOKS.get(variant, (MUTED, ":"))
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
