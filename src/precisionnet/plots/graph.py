"""The learned graph: as a matrix, as a drawing, and in its spectrum."""

from __future__ import annotations

from collections.abc import Sequence

import networkx as nx
import numpy as np
import pandas as pd
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from precisionnet.plots.outcome import short
from precisionnet.plots.style import DIVERGING, INK, MAIN, MUTED, NEGATIVE, POSITIVE, SECOND, new_figure
from precisionnet.types import FloatArray, IndexArray


def clustered_order(partial: FloatArray) -> IndexArray:
    """Columns that depend on each other side by side: average linkage on 1 - |partial correlation|."""
    if len(partial) < 3:
        return np.arange(len(partial))
    distance = 1.0 - np.abs(partial)
    np.fill_diagonal(distance, 0.0)
    condensed = squareform(np.clip(distance, 0.0, None), checks=False)
    order = leaves_list(linkage(condensed, "average", optimal_ordering=len(partial) <= 500)).astype(np.intp)
    return order


def heat_map(partial: FloatArray, names: Sequence[str]) -> Figure:
    """Partial correlations in clustered order; white is an exact zero, grey the diagonal."""
    order = clustered_order(partial)
    shown = partial[np.ix_(order, order)].copy()
    np.fill_diagonal(shown, 0.0)
    figure, (axes,) = new_figure(8.6, 7.6)
    limit = float(np.abs(shown).max()) or 1.0
    axes.imshow(np.where(np.eye(len(shown)) > 0, 0.12, 0.0), cmap="Greys", vmin=0, vmax=1, interpolation="nearest")
    shown[shown == 0.0] = np.nan  # an exact zero is white, not the pale middle of the colours
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


def edge_graph(edges: pd.DataFrame, most: int = 80) -> Figure:
    """The strongest edges, drawn so that strongly tied columns lie close."""
    figure, (axes,) = new_figure(9.2, 7.2)
    axes.set_axis_off()
    strongest = edges.head(most)
    if strongest.empty:
        axes.text(0.5, 0.5, "The graph has no edges.", ha="center", va="center", color=MUTED)
        return figure
    graph: nx.Graph[str] = nx.Graph()
    for source, target, partial in strongest[["source", "target", "partial_correlation"]].to_numpy():
        graph.add_edge(source, target, partial=partial, weight=abs(partial))
    place = _layout(graph)
    limit = float(strongest["partial_correlation"].abs().max())
    for source, target, data in graph.edges(data=True):
        (x0, y0), (x1, y1) = place[source], place[target]
        share = data["weight"] / limit
        axes.plot(
            [x0, x1],
            [y0, y1],
            color=POSITIVE if data["partial"] > 0 else NEGATIVE,
            linewidth=0.6 + 3.4 * share,
            alpha=0.25 + 0.6 * share,
            solid_capstyle="round",
            zorder=1,
        )
    points = np.array([place[node] for node in graph])
    axes.scatter(points[:, 0], points[:, 1], s=34, color=INK, zorder=2, linewidth=0)
    size = float(np.clip(300.0 / len(graph), 5.5, 9.0))
    for node in graph:
        axes.annotate(
            short(str(node), 24),
            tuple(place[node]),
            xytext=(0, 5),
            textcoords="offset points",
            ha="center",
            fontsize=size,
            color=INK,
            zorder=3,
        )
    axes.plot([], [], color=POSITIVE, linewidth=3, label="positive partial correlation")
    axes.plot([], [], color=NEGATIVE, linewidth=3, label="negative")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=2)
    axes.margins(0.09)
    return figure


def _layout(graph: nx.Graph[str]) -> dict[str, FloatArray]:
    """Each connected piece laid out on its own, the pieces packed in a grid by size: no hairball, no lost islands."""
    pieces = sorted(nx.connected_components(graph), key=len, reverse=True)
    place: dict[str, FloatArray] = {}
    x = y = row_height = 0.0
    width = 1.6 * np.sqrt(sum(len(piece) for piece in pieces))
    for piece in pieces:
        part = graph.subgraph(piece)
        side = np.sqrt(len(piece)) * 1.15
        lengths = {(u, v): 1.0 / (0.15 + data["weight"]) for u, v, data in part.edges(data=True)}
        measured = part.copy()
        nx.set_edge_attributes(measured, lengths, "length")
        points = nx.kamada_kawai_layout(measured, weight="length") if len(piece) > 2 else nx.circular_layout(measured)
        if x > 0 and x + side > width:
            x, y, row_height = 0.0, y - row_height, 0.0
        for node, point in points.items():
            place[node] = np.array([x, y]) + side * np.array([0.5, -0.5]) + 0.42 * side * np.asarray(point)
        x += side
        row_height = max(row_height, side)
    return place


def spectrum(theta: FloatArray, theta_task: FloatArray, vnn: bool) -> Figure:
    """Eigenvalues of the matrices, smallest first."""
    figure, (axes,) = new_figure(5.2, 3.8)
    index = np.arange(1, len(theta) + 1)
    label = "covariance" if vnn else "θ_task (task-aware)"
    axes.plot(
        index, np.linalg.eigvalsh(theta), color=MAIN, linewidth=2.2, label="θ (sparse)" if not vnn else "θ (inverse)"
    )
    axes.plot(index, np.linalg.eigvalsh(theta_task), color=SECOND, linewidth=1.4, linestyle="--", label=label)
    axes.set(xlabel="index", ylabel="eigenvalue µ", yscale="log")
    axes.legend()
    return figure


def frequency_responses(mu: FloatArray, responses: Sequence[FloatArray]) -> Figure:
    """h(µ) of every filter, one panel a layer; ticks at the bottom mark the eigenvalues.

    ``responses[l]`` has shape (n_points, filters) on a grid over the range of ``mu``.
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
