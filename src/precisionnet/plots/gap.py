"""Gaps against age before and after their bias is taken out, and what drives a difference between groups."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from precisionnet.plots.style import (
    GRID,
    INK,
    MAIN,
    MUTED,
    NEGATIVE,
    PALE,
    POSITIVE,
    SECOND,
    new_figure,
    short,
    without_common_ending,
)

COLORS = (MAIN, SECOND, "#2f855a", "#805ad5", "#b83280", "#718096")
BARS = 20


def gap_against_age(gaps: pd.DataFrame, target: str) -> Figure:
    """Draw one dot per row, the gap on the left and the corrected gap on the right.

    Parameters
    ----------
    gaps : DataFrame
        ``gaps`` of a ``GapStudy``.
    target : str
        Name of what is predicted.

    Returns
    -------
    matplotlib.figure.Figure
        The figure; lines are means over fifths of the rows learned from.

    Examples
    --------
    >>> import pandas as pd
    >>> from precisionnet.plots import gap_against_age
    >>> gaps = pd.DataFrame({"true": [20.0, 40.0], "gap": [3.0, -3.0], "corrected_gap": [0.1, -0.1],
    ...                      "learned_from": [True, True]})
    >>> gap_against_age(gaps, "age").axes[0].get_xlabel()
    'true age'
    """
    figure, axes = new_figure(11.0, 4.2, 2)
    whose = gaps["group"].astype(str) if "group" in gaps else pd.Series("all rows", index=gaps.index)
    names = [*dict.fromkeys(whose[gaps["learned_from"]]), *dict.fromkeys(whose[~gaps["learned_from"]])]
    learned = gaps[gaps["learned_from"]].sort_values("true", kind="stable")
    fifths = [part for part in np.array_split(np.arange(len(learned)), 5) if len(part)]
    for one, (column, title) in zip(axes, (("gap", "Before"), ("corrected_gap", "After")), strict=True):
        one.axhline(0.0, color=MUTED, linewidth=1, linestyle="--")
        for color, name in zip(COLORS * len(names), dict.fromkeys(names), strict=False):
            own = gaps[whose == name]
            one.scatter(own["true"], own[column], s=14, color=color, alpha=0.45, linewidth=0, label=short(name, 20))
        middle = [learned["true"].to_numpy()[part].mean() for part in fifths]
        mean = [learned[column].to_numpy()[part].mean() for part in fifths]
        one.plot(middle, mean, color=INK, linewidth=2, marker="o", markersize=4, label="mean of rows learned from")
        one.set(title=f"{title} correction", xlabel=f"true {short(target)}", ylabel="gap")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=9)
    return figure


def gap_regions(regions: pd.DataFrame) -> Figure:
    """Draw what the columns with the largest parts add to a difference between two groups.

    Parameters
    ----------
    regions : DataFrame
        Rows of one pair of groups of ``regions`` of a ``GapStudy``, with a column ``sure``.

    Returns
    -------
    matplotlib.figure.Figure
        Bars with intervals; those not told from chance are pale.

    Examples
    --------
    >>> import pandas as pd
    >>> from precisionnet.plots import gap_regions
    >>> regions = pd.DataFrame({"column": ["a", "b"], "difference": [0.3, -0.1], "low": [0.1, -0.3],
    ...                         "high": [0.5, 0.1], "sure": [True, False]})
    >>> len(gap_regions(regions).axes[0].patches)
    2
    """
    names = dict(zip(regions["column"], without_common_ending([str(c) for c in regions["column"]]), strict=True))
    order = regions["difference"].abs().sort_values(ascending=False, kind="stable").index[:BARS]
    shown = regions.loc[order[::-1]]
    size, place = shown["difference"].to_numpy(dtype=float), np.arange(len(shown))
    color = np.where(shown["sure"], np.where(size > 0, POSITIVE, NEGATIVE), PALE)
    figure, (axes,) = new_figure(8.0, 1.2 + 0.26 * len(shown))
    axes.barh(place, size, color=list(color), height=0.7)
    reach = np.abs(np.vstack([size - shown["low"].to_numpy(dtype=float), shown["high"].to_numpy(dtype=float) - size]))
    axes.errorbar(size, place, xerr=reach, fmt="none", ecolor=MUTED, elinewidth=1, capsize=2)
    axes.axvline(0.0, color=MUTED, linewidth=1)
    axes.set_yticks(place, [short(names[name], 30) for name in shown["column"]], fontsize=9)
    axes.tick_params(axis="y", length=0)
    axes.grid(False, axis="y")
    axes.grid(True, axis="x", color=GRID)
    axes.set_xlabel("part in the difference of corrected gaps, 95 % interval")
    return figure
