"""The learned graph: as a matrix, as a drawing, and what its edges are worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.spatial.distance import squareform
from sklearn.utils.validation import check_is_fitted

from precisionnet.arguments import check_choice
from precisionnet.errors import InputError
from precisionnet.estimators.checks import column_names
from precisionnet.estimators.interop import GraphInterop
from precisionnet.plots.circle import LABELS_DRAWN, Arc, draw_circle, empty_circle, square_figure
from precisionnet.plots.style import (
    DIVERGING,
    INK,
    MAIN,
    MUTED,
    NEGATIVE,
    NO_DIRECTION,
    POSITIVE,
    SEQUENTIAL,
    UNSIGNED,
    legend_below,
    new_figure,
    short,
    without_common_ending,
)
from precisionnet.sparse_matrices import entries_at
from precisionnet.types import BoolArray, FloatArray, IndexArray

EDGES_DRAWN = 80
WHICH = ("data", "task")
NAMES_DRAWN = 130
"""Columns up to which a matrix has their names on it."""
CELLS = 500
"""Cells of a matrix on a side, at most: more could not be told apart."""
CLUSTERED = 1500
"""Columns up to which a matrix is ordered by clustering, which takes their number squared."""


def clustered_order(partial: FloatArray) -> IndexArray:
    """Order columns so that those that depend on each other stand side by side.

    Average linkage on ``1 - |partial correlation|``.

    Parameters
    ----------
    partial : array of shape (n_columns, n_columns)
        Partial correlations.

    Returns
    -------
    array of shape (n_columns,)
        Indices of the columns in their new order.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.plots import clustered_order
    >>> partial = np.eye(4)
    >>> partial[0, 3] = partial[3, 0] = 0.9
    >>> order = clustered_order(partial).tolist()
    >>> abs(order.index(0) - order.index(3))
    1
    """
    if len(partial) < 3:
        return np.arange(len(partial))
    distance = 1.0 - np.abs(partial)
    np.fill_diagonal(distance, 0.0)
    condensed = squareform(np.clip(distance, 0.0, None), checks=False)
    order = leaves_list(linkage(condensed, "average", optimal_ordering=len(partial) <= 500)).astype(np.intp)
    return order


@dataclass(frozen=True)
class ModelGraph:
    """The edges of one of a model's graphs and what their numbers are: drawings take this and never a bare matrix.

    Only ``graph_of`` makes it, from the model, so that signs and units are those of the model.
    """

    names: list[str]
    first: IndexArray
    second: IndexArray
    value: FloatArray
    label: str
    """Name of the numbers, with their unit."""
    title: str
    signs: tuple[str, str]
    """What the two signs mean; the second is empty where there is no direction."""
    unsigned: BoolArray
    """Whether each edge has a size and no sign, because one of its columns has several levels."""


def graph_of(model: Any, which: str = "data") -> ModelGraph:
    """Return the edges of a fitted model, strongest first: partial correlations, or what pairs do for the task.

    Both graphs have the edges of the sparse precision.
    """
    refuse_no_model(model)
    check_choice("which", which, WHICH)
    names, edges = column_names(model), model.to_edge_frame()
    place = {name: i for i, name in enumerate(names)}
    first, second = (edges[end].map(place).to_numpy(dtype=np.intp) for end in ("source", "target"))
    without = set(model.fitted.blocks.unsigned) if _has_task(model) else set()
    unsigned = edges["source"].isin(without).to_numpy() | edges["target"].isin(without).to_numpy()
    if which == "data":
        value = edges["partial_correlation"].to_numpy(dtype=float)
        signs = ("positive partial correlation", "negative")
        return ModelGraph(names, first, second, value, "partial correlation", "The data's graph", signs, unsigned)
    effect = model.fitted.blocks.matrix_norms(model.task_graph_) if _has_task(model) else None
    if effect is None:
        raise InputError(f"{type(model).__name__} predicts nothing, so that it has no task's graph: use which='data'.")
    value = entries_at(effect, first, second)
    order = np.argsort(-np.abs(value), kind="stable")
    signed = len(getattr(model, "classes_", ())) < 3
    signs = ("together they raise the prediction", "lower it") if signed else ("together they move the prediction", "")
    label, title = f"joint effect of two columns, {unit_of(model)}", "The task's graph (not tested)"
    return ModelGraph(names, first[order], second[order], value[order], label, title, signs, unsigned[order])


def refuse_no_model(model: Any) -> None:
    """Refuse a matrix, whose signs and units nobody can tell, and a model that is not fitted."""
    if not isinstance(model, GraphInterop):
        raise InputError(
            f"Pass the fitted model itself, got {type(model).__name__}: a matrix does not say whether it is a "
            "precision, whose signs are the opposite ones, or partial correlations."
        )
    check_is_fitted(model, msg="This %(name)s is not fitted: call fit before drawing it.")


def _has_task(model: Any) -> bool:
    return hasattr(type(model), "task_graph_")


def unit_of(model: Any) -> str:
    """Return the unit of effects on the prediction, in words."""
    classes = getattr(model, "classes_", None)
    if classes is None:
        return f"units of {short(model.target_name_)}" if model.target_name_ else "the target's units"
    return f"log-odds of {short(str(classes[1]), 20)}" if len(classes) == 2 else "log-odds, without a direction"


def heat_map(model: Any, which: str = "data") -> Figure:
    """Draw one of a model's graphs as a matrix in clustered order; white is an exact zero, grey the diagonal.

    Parameters
    ----------
    model : PNNRegressor, PNNClassifier, GraphicalLasso or GraphicalLassoCV
        Fitted. A matrix is refused: it does not say what its numbers are.
    which : {"data", "task"}, default="data"
        Partial correlations, or what pairs of columns do for the prediction.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet import GraphicalLasso
    >>> from precisionnet.plots import heat_map
    >>> model = GraphicalLasso(l1_penalty=0.1).fit(np.random.default_rng(0).normal(size=(50, 3)))
    >>> heat_map(model).axes[0].get_xticks().tolist()
    [0, 1, 2]
    """
    graph = graph_of(model, which)
    figure, (axes,) = new_figure(8.6, 7.6)
    draw_matrix(axes, graph)
    return figure


def draw_matrix(axes: Axes, graph: ModelGraph) -> None:
    """Draw a graph as a matrix. Of more columns than can be told apart, a cell is the strongest edge of several."""
    n, names = len(graph.names), without_common_ending(graph.names)
    order = linked_order(n, graph.first, graph.second, graph.value)
    at = np.empty(n, dtype=np.intp)
    at[order] = np.arange(n)
    pooled = -(-n // CELLS)  # columns that share a row of cells, rounded up
    size = -(-n // pooled)
    shown = np.zeros((size, size))
    i, j = (at[ends][::-1] // pooled for ends in (graph.first, graph.second))
    shown[i, j] = shown[j, i] = graph.value[::-1]  # the strongest come last and stay
    limit = float(np.abs(shown).max(initial=0.0)) or 1.0
    grey = np.where(np.eye(size) > 0, 0.12, 0.0)
    axes.imshow(grey, cmap="Greys", vmin=0, vmax=1, interpolation="nearest")
    shown[shown == 0.0] = np.nan  # an exact zero is white, not the pale middle of the colours
    if graph.unsigned.any() and graph.signs[1]:
        plain = np.zeros((size, size), dtype=bool)
        plain[i, j] = plain[j, i] = graph.unsigned[::-1]
        sizes = np.where(plain, np.abs(shown), np.nan)
        axes.imshow(sizes, cmap="Greys", vmin=-0.15 * limit, vmax=1.1 * limit, interpolation="nearest")
        shown = np.where(plain, np.nan, shown)
        axes.plot([], [], color=UNSIGNED, linewidth=6, label=f"grey: {NO_DIRECTION}")
        legend_below(axes, 1)
    if graph.signs[1]:
        image = axes.imshow(shown, cmap=DIVERGING, norm=TwoSlopeNorm(0.0, -limit, limit), interpolation="nearest")
    else:
        image = axes.imshow(shown, cmap=SEQUENTIAL, vmin=0.0, vmax=limit, interpolation="nearest")
    if n <= NAMES_DRAWN:
        labels, letters = [short(names[int(i)], 26) for i in order], float(np.clip(380.0 / n, 3.5, 9.0))
        axes.set_xticks(range(n), labels, rotation=90, fontsize=letters)
        axes.set_yticks(range(n), labels, fontsize=letters)
    else:
        said = (
            f"{n} columns, clustered" if pooled == 1 else f"{n} columns in groups of {pooled}, strongest edge of each"
        )
        axes.set(xlabel=said, ylabel=said, xticks=[], yticks=[])
    axes.tick_params(length=0)
    axes.grid(False)
    bar = axes.figure.colorbar(image, ax=axes, shrink=0.5, pad=0.015)
    bar.set_label(graph.label)
    bar.outline.set_visible(False)


def linked_order(n: int, first: IndexArray, second: IndexArray, value: FloatArray) -> IndexArray:
    """Return an order in which joined columns stand side by side; of many, a quick one that needs the edges alone.

    ``first`` and ``second`` are the ends of the edges, counted among ``n`` columns.
    """
    if n <= CLUSTERED:
        return clustered_order(_square(n, first, second, value, np.arange(n)))
    ends = (np.r_[first, second], np.r_[second, first])
    joined = csr_array((np.ones(len(ends[0])), ends), shape=(n, n))
    return reverse_cuthill_mckee(joined, symmetric_mode=True).astype(np.intp)


def _square(n: int, first: IndexArray, second: IndexArray, value: FloatArray, kept: IndexArray) -> FloatArray:
    """Return the sizes of edges among some of ``n`` columns as a matrix, at most 1."""
    place = np.full(n, -1)
    place[kept] = np.arange(len(kept))
    inside = (place[first] >= 0) & (place[second] >= 0)
    size = np.abs(value[inside])
    largest = float(size.max(initial=0.0))
    found = np.zeros((len(kept), len(kept)))
    i, j = place[first[inside]], place[second[inside]]
    found[i, j] = found[j, i] = size / largest if largest > 1.0 else size
    return found


def edge_graph(model: Any, which: str = "data", most: int = EDGES_DRAWN) -> Figure:
    """Draw the strongest edges as arcs in a circle; columns are in clustered order, so strong ties are short.

    Parameters
    ----------
    model : PNNRegressor, PNNClassifier, GraphicalLasso or GraphicalLassoCV
        Fitted. A matrix is refused: the signs of a precision are the opposite of those of partial correlations.
    which : {"data", "task"}, default="data"
        Partial correlations, or what pairs of columns do for the prediction.
    most : int, default=80
        Edges to draw at most.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet import GraphicalLasso
    >>> from precisionnet.plots import edge_graph
    >>> model = GraphicalLasso(covariance="precomputed", l1_penalty=0.1).fit([[1.0, 0.5], [0.5, 1.0]])
    >>> len(edge_graph(model).axes[0].patches)
    1
    """
    figure, axes = square_figure()
    draw_edges(axes, graph_of(model, which), most)
    return figure


def draw_edges(axes: Axes, graph: ModelGraph, most: int) -> None:
    """Draw the strongest edges of a graph in a circle."""
    drawn = np.flatnonzero(graph.value)[:most][::-1]  # the strongest last, on top
    empty_circle(axes, "" if len(drawn) else "The graph has no edges.")
    if len(drawn) == 0:
        return
    first, second, value = graph.first[drawn], graph.second[drawn], graph.value[drawn]
    strength = np.abs(value) / np.abs(value).max()
    colors = np.where(graph.unsigned[drawn], UNSIGNED, np.where(value > 0, POSITIVE, NEGATIVE)).tolist()
    arcs = [
        Arc(int(i), int(j), color, 0.5 + 3.0 * share, 0.25 + 0.6 * share)
        for i, j, color, share in zip(first, second, colors, strength, strict=True)
    ]
    n = len(graph.names)
    kept = np.arange(n) if n <= LABELS_DRAWN else np.unique(np.r_[first, second])
    square = _square(n, graph.first, graph.second, graph.value, kept)
    draw_circle(axes, graph.names, kept[clustered_order(square)], arcs)
    for color, label in zip((POSITIVE, NEGATIVE, UNSIGNED), (*graph.signs, NO_DIRECTION), strict=True):
        if color in colors:
            axes.plot([], [], color=color, linewidth=3, label=label)
    legend_below(axes, 3)


def sparsity_curve_figure(frame: pd.DataFrame, chosen: int, measure: str = "Mean absolute error") -> Figure:
    """Draw the error on rows left out against the number of edges.

    Parameters
    ----------
    frame : DataFrame
        One row per penalty with ``n_edges``, ``error`` and ``standard_error``, as a ``SparsityCurve`` holds it.
    chosen : int
        The row to mark.
    measure : str, default="Mean absolute error"
        Label of the error's axis.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> import pandas as pd
    >>> from precisionnet.plots import sparsity_curve_figure
    >>> frame = pd.DataFrame({"n_edges": [3, 9], "error": [1.1, 1.0], "standard_error": [0.1, 0.1]})
    >>> sparsity_curve_figure(frame, chosen=0).axes[0].get_xlabel()
    'Edges of the graph'
    """
    figure, (axes,) = new_figure(6.4, 3.6)
    draw_sparsity_curve(axes, frame, chosen, measure)
    return figure


def draw_sparsity_curve(axes: Axes, frame: pd.DataFrame, chosen: int, measure: str) -> None:
    """Draw the error on rows left out against the number of edges."""
    points = frame.sort_values("n_edges")
    best = frame.iloc[int(frame["error"].argmin())]
    axes.errorbar(
        points["n_edges"],
        points["error"],
        yerr=points["standard_error"],
        fmt="o-",
        color=MAIN,
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


def draw_strengths(axes: Axes, graph: ModelGraph) -> None:
    """Draw how many edges are at least how strong: how much of a graph a threshold leaves."""
    size = np.sort(np.abs(graph.value))[::-1]
    n = len(graph.names)
    if len(size):
        axes.step(np.r_[size[0], size, 0.0], np.r_[0, np.arange(1, len(size) + 1), len(size)], color=MAIN, linewidth=2)
    else:
        axes.text(0.5, 0.5, "The graph has no edges.", transform=axes.transAxes, ha="center", color=MUTED)
    pairs = n * (n - 1) // 2
    axes.set(xlabel=f"size of the {graph.label}, at least", ylabel="Edges of the graph", ylim=(0, None))
    axes.set_title(f"{len(size):,} of {pairs:,} pairs are joined, {1 - len(size) / max(pairs, 1):.1%} are exact zeros")
