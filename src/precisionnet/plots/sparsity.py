"""The accuracy-sparsity curve: error on rows left out against the number of edges."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from precisionnet.plots.style import INK, MUTED, new_figure

LINE = "#1d5fa6"


def sparsity_curve_figure(frame: pd.DataFrame, chosen: int, measure: str = "Mean absolute error") -> Figure:
    """``frame`` as in :class:`precisionnet.estimators.SparsityCurve`; ``chosen`` is the row to mark."""
    points = frame.sort_values("n_edges")
    best = frame.iloc[int(frame["error"].argmin())]
    figure, (axes,) = new_figure(6.4, 3.6)
    axes.errorbar(
        points["n_edges"],
        points["error"],
        yerr=points["standard_error"],
        fmt="o-",
        color=LINE,
        capsize=3,
        label="out of bag, with its standard error",
    )
    limit = best["error"] + best["standard_error"]
    axes.axhline(limit, color=MUTED, linestyle="--", linewidth=1, label="lowest error plus one standard error")
    mark = frame.iloc[chosen]
    axes.plot([mark["n_edges"]], [mark["error"]], "o", markersize=13, markerfacecolor="none", color=INK)
    axes.annotate(
        f"{int(mark['n_edges'])} edges",
        (mark["n_edges"], mark["error"]),
        textcoords="offset points",
        xytext=(8, 12),
        color=INK,
    )
    axes.set_xlabel("Edges of the graph")
    axes.set_ylabel(measure)
    axes.legend(frameon=False)
    return figure
