"""The learned graph: as a matrix, as a drawing, in its spectrum, and what its edges are worth."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from precisionnet.errors import InputError
from precisionnet.plots.circle import Arc, draw_circle, empty_circle
from precisionnet.plots.style import (
    DIVERGING,
    INK,
    MAIN,
    MUTED,
    NEGATIVE,
    NO_DIRECTION,
    POSITIVE,
    SECOND,
    UNSIGNED,
    new_figure,
    short,
    without_common_ending,
)
from precisionnet.types import FloatArray, IndexArray

EDGES_DRAWN = 80


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


def heat_map(partial: FloatArray, names: Sequence[str], unsigned: Collection[str] = ()) -> Figure:
    """Draw partial correlations in clustered order; white is an exact zero, grey the diagonal.

    Parameters
    ----------
    partial : array of shape (n_columns, n_columns)
        Partial correlations, as ``precisionnet.precision.partial_correlations`` makes them from a precision.
    names : sequence of str
        Names of the columns.
    unsigned : collection of str, default=()
        Columns without a direction, whose values are sizes: they are drawn in grey.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.plots import heat_map
    >>> heat_map(np.array([[1.0, 0.3], [0.3, 1.0]]), ["a", "b"]).axes[0].get_xticks().tolist()
    [0, 1]
    """
    partial = _partial_correlations(partial, names)
    plain = np.array([name in unsigned for name in names], dtype=bool)
    names = without_common_ending(names)
    order = clustered_order(partial)
    shown = partial[np.ix_(order, order)].copy()
    sizes = plain[order][:, None] | plain[order]
    np.fill_diagonal(shown, 0.0)
    figure, (axes,) = new_figure(8.6, 7.6)
    limit = float(np.abs(shown).max()) or 1.0
    axes.imshow(np.where(np.eye(len(shown)) > 0, 0.12, 0.0), cmap="Greys", vmin=0, vmax=1, interpolation="nearest")
    shown[shown == 0.0] = np.nan  # an exact zero is white, not the pale middle of the colours
    if sizes.any():
        grey = np.where(sizes, np.abs(shown), np.nan)
        axes.imshow(grey, cmap="Greys", vmin=-0.15 * limit, vmax=1.1 * limit, interpolation="nearest")
        shown = np.where(sizes, np.nan, shown)
        axes.plot([], [], color=UNSIGNED, linewidth=6, label=f"grey: {NO_DIRECTION}")
        figure.legend(loc="outside lower center")
    image = axes.imshow(shown, cmap=DIVERGING, norm=TwoSlopeNorm(0.0, -limit, limit), interpolation="nearest")
    size = float(np.clip(380.0 / len(names), 3.5, 9.0))
    if len(names) <= 130:
        labels = [short(names[int(i)], 26) for i in order]
        axes.set_xticks(range(len(names)), labels, rotation=90, fontsize=size)
        axes.set_yticks(range(len(names)), labels, fontsize=size)
    else:
        axes.set(xlabel=f"{len(names)} columns, clustered", ylabel=f"{len(names)} columns, clustered")
    axes.tick_params(length=0)
    axes.grid(False)
    bar = figure.colorbar(image, ax=axes, shrink=0.5, pad=0.015)
    bar.set_label("partial correlation")
    bar.outline.set_visible(False)
    return figure


def edge_graph(
    partial: FloatArray, names: Sequence[str], most: int = EDGES_DRAWN, unsigned: Collection[str] = ()
) -> Figure:
    """Draw the strongest edges as arcs in a circle; columns are in clustered order, so strong ties are short.

    Parameters
    ----------
    partial : array of shape (n_columns, n_columns)
        Partial correlations, as ``precisionnet.precision.partial_correlations`` makes them. A precision is refused:
        the signs of its entries are the opposite ones.
    names : sequence of str
        Names of the columns.
    most : int, default=80
        Edges to draw at most.
    unsigned : collection of str, default=()
        Columns without a direction, whose edges have a size and no sign: they are drawn in a colour of their own.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.precision import partial_correlations
    >>> from precisionnet.plots import edge_graph
    >>> precision = np.array([[2.0, -0.5], [-0.5, 1.0]])
    >>> len(edge_graph(partial_correlations(precision), ["a", "b"]).axes[0].patches)
    1
    """
    partial = _partial_correlations(partial, names)
    rows, cols = np.nonzero(np.triu(partial, k=1))
    figure, axes = empty_circle("" if len(rows) else "The graph has no edges.")
    if len(rows) == 0:
        return figure
    strength = np.abs(partial[rows, cols])
    drawn = np.argsort(strength)[::-1][:most][::-1]  # the strongest last, on top
    rows, cols, strength = rows[drawn], cols[drawn], strength[drawn] / strength.max()
    plain = np.array([name in unsigned for name in names], dtype=bool)
    colors = [
        UNSIGNED if plain[i] or plain[j] else POSITIVE if partial[i, j] > 0 else NEGATIVE
        for i, j in zip(rows, cols, strict=True)
    ]
    arcs = [
        Arc(int(i), int(j), color, 0.5 + 3.0 * share, 0.25 + 0.6 * share)
        for i, j, color, share in zip(rows, cols, colors, strength, strict=True)
    ]
    draw_circle(axes, names, clustered_order(partial), arcs)
    for color, label in (
        (POSITIVE, "positive partial correlation"),
        (NEGATIVE, "negative"),
        (UNSIGNED, NO_DIRECTION),
    ):
        if color in colors:
            axes.plot([], [], color=color, linewidth=3, label=label)
    figure.legend(loc="outside lower center", ncols=3)
    return figure


def _partial_correlations(matrix: FloatArray, names: Sequence[str]) -> FloatArray:
    """Refuse what cannot be partial correlations: drawn as such, every edge of a precision has the wrong sign."""
    partial = np.asarray(matrix, dtype=float)
    if partial.ndim != 2 or partial.shape != (len(names), len(names)):
        raise InputError(f"{len(names)} names need a square matrix of that size, got one of shape {partial.shape}.")
    diagonal, largest = np.diag(partial), float(np.abs(partial).max(initial=0.0))
    of_one_kind = np.allclose(diagonal, 1.0) or np.allclose(diagonal, 0.0)
    if not (of_one_kind and largest <= 1.0 + 1e-8 and np.allclose(partial, partial.T)):
        raise InputError(
            "These are no partial correlations, which are symmetric, 1 (or 0) on the diagonal and at most 1 elsewhere: "
            "pass precisionnet.precision.partial_correlations(precision), as a precision has the opposite signs."
        )
    return partial


def spectrum(theta: FloatArray, theta_task: FloatArray, vnn: bool = False) -> Figure:
    """Draw the eigenvalues of the two matrices, smallest first.

    Parameters
    ----------
    theta : array of shape (n_columns, n_columns)
        The sparse precision.
    theta_task : array of shape (n_columns, n_columns)
        The matrix that the network runs on.
    vnn : bool, default=False
        Whether that matrix is a covariance, for the legend.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.plots import spectrum
    >>> spectrum(np.eye(3), 2.0 * np.eye(3)).axes[0].get_yscale()
    'log'
    """
    figure, (axes,) = new_figure(5.2, 3.8)
    index = np.arange(1, len(theta) + 1)
    label = "covariance" if vnn else "θ_task (task-aware)"
    axes.plot(
        index, np.linalg.eigvalsh(theta), color=MAIN, linewidth=2.2, label="θ (sparse)" if not vnn else "θ (inverse)"
    )
    axes.plot(index, np.linalg.eigvalsh(theta_task), color=SECOND, linewidth=1.4, linestyle="--", label=label)
    axes.set(xlabel="index", ylabel="eigenvalue µ", yscale="log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend()
    return figure


def frequency_responses(mu: FloatArray, responses: Sequence[FloatArray]) -> Figure:
    """Draw h(µ) of every filter, one panel per layer; ticks at the bottom mark the eigenvalues.

    Parameters
    ----------
    mu : array of shape (n_columns,)
        Eigenvalues of the scaled matrix that the network runs on.
    responses : sequence of arrays of shape (n_points, n_filters)
        Of each layer, the responses of its filters on an even grid over the range of ``mu``.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.plots import frequency_responses
    >>> layers = [np.ones((50, 4)), np.zeros((50, 2))]
    >>> len(frequency_responses(np.array([0.1, 0.5, 1.0]), layers).axes)
    2
    """
    figure, panels = new_figure(min(5.2 * len(responses), 13.0), 3.8, len(responses))
    grid = np.linspace(float(mu.min()), float(mu.max()), len(responses[0]))
    for layer, (axes, response) in enumerate(zip(panels, responses, strict=True), start=1):
        many = response.shape[1] > 16
        axes.plot(grid, response, color=MAIN, linewidth=0.8 if many else 1.4, alpha=0.35 if many else 0.75)
        axes.axhline(0.0, color=MUTED, linewidth=0.8)
        axes.plot(
            mu, np.full_like(mu, 0.02), "|", color=INK, markersize=7, alpha=0.6, transform=axes.get_xaxis_transform()
        )
        axes.set(xlabel="eigenvalue µ of the scaled matrix", ylabel="response h(µ)", title=f"Layer {layer}")
    return figure


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
    points = frame.sort_values("n_edges")
    best = frame.iloc[int(frame["error"].argmin())]
    figure, (axes,) = new_figure(6.4, 3.6)
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
    return figure
