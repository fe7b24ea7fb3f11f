"""Graphs and columns with how sure each of them is: what is beyond chance in colour, the rest pale."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from precisionnet.errors import InputError
from precisionnet.plots.circle import Arc, draw_circle, empty_circle, square_figure
from precisionnet.plots.graph import EDGES_DRAWN, clustered_order
from precisionnet.plots.style import (
    GRID,
    MUTED,
    NEGATIVE,
    NO_DIRECTION,
    PALE,
    POSITIVE,
    UNSIGNED,
    legend_below,
    new_figure,
    short,
    without_common_ending,
)
from precisionnet.types import FloatArray, IndexArray

SURE = 0.05
"""Largest q-value of what is shown as beyond chance."""
UNSURE_DRAWN = 25
SIGNS = ("beyond chance, positive", "beyond chance, negative")
BARS = 25


def evidence_graph(
    edges: pd.DataFrame,
    names: Sequence[str],
    *,
    value: str,
    sure: str = "sure",
    most: int = EDGES_DRAWN,
    most_unsure: int = UNSURE_DRAWN,
    signs: tuple[str, str] = SIGNS,
    unsigned: Collection[str] = (),
) -> Figure:
    """Draw the edges that are beyond chance in colour, and some of the others pale, thin and behind them.

    Parameters
    ----------
    edges : DataFrame
        One row per edge with ``source``, ``target`` and the columns that ``value`` and ``sure`` name.
    names : sequence of str
        Names of all columns.
    value : str
        Column with the edge's signed size. Widths are relative to the largest one shown.
    sure : str, default="sure"
        Column that says whether the edge is beyond chance.
    most : int, default=80
        Edges beyond chance to draw at most, the largest ones.
    most_unsure : int, default=25
        Other edges to draw at most, the largest ones.
    signs : tuple of two str, default=("beyond chance, positive", "beyond chance, negative")
        What the legend says of the two signs.
    unsigned : collection of str, default=()
        Columns without a direction, whose edges have a size and no sign: they are drawn in a colour of their own.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> import pandas as pd
    >>> from precisionnet.plots import evidence_graph
    >>> edges = pd.DataFrame(
    ...     {"source": ["a", "a"], "target": ["b", "c"], "effect": [0.4, -0.1], "sure": [True, False]}
    ... )
    >>> len(evidence_graph(edges, ["a", "b", "c"], value="effect").axes[0].patches)
    2
    """
    figure, axes = square_figure()
    draw_evidence_graph(
        axes, edges, names, value=value, sure=sure, most=most, most_unsure=most_unsure, signs=signs, unsigned=unsigned
    )
    return figure


def draw_evidence_graph(
    axes: Axes,
    edges: pd.DataFrame,
    names: Sequence[str],
    *,
    value: str,
    sure: str = "sure",
    most: int = EDGES_DRAWN,
    most_unsure: int = UNSURE_DRAWN,
    signs: tuple[str, str] = SIGNS,
    unsigned: Collection[str] = (),
) -> None:
    """Draw edges in a circle, as ``evidence_graph`` says."""
    places = {name: place for place, name in enumerate(names)}
    if not set(edges["source"]).union(edges["target"]) <= set(places):
        raise InputError("An edge has an end that is not among the names: give the names of all columns.")
    ordered = edges.loc[edges[value].abs().sort_values(ascending=False, kind="stable").index]
    certain, others = (ordered[ordered[sure]].head(most), ordered[~ordered[sure]].head(most_unsure))
    empty_circle(axes, "" if len(ordered) else "There is no edge to draw.")
    if len(ordered) == 0:
        return
    largest = float(certain[value].abs().max()) if len(certain) else 1.0
    arcs = [
        Arc(places[row["source"]], places[row["target"]], PALE, 0.6, 0.8)
        for row in others.iloc[::-1].to_dict("records")
    ]
    for row in certain.iloc[::-1].to_dict("records"):  # the strongest last, on top
        share = abs(row[value]) / (largest or 1.0)
        plain = row["source"] in unsigned or row["target"] in unsigned
        color = UNSIGNED if plain else POSITIVE if row[value] > 0 else NEGATIVE
        arcs.append(Arc(places[row["source"]], places[row["target"]], color, 0.9 + 2.6 * share, 0.35 + 0.5 * share))
    draw_circle(axes, names, _order(pd.concat([certain, others]), places, value), arcs)
    drawn = {arc.color for arc in arcs}
    for color, label in zip((POSITIVE, NEGATIVE, UNSIGNED), (*signs, f"beyond chance, {NO_DIRECTION}"), strict=True):
        if color in drawn:
            axes.plot([], [], color=color, linewidth=3, label=label)
    if len(others):
        axes.plot([], [], color=PALE, linewidth=1.2, label="not told from chance")
    legend_below(axes, 2 if UNSIGNED in drawn else 3)


def node_bars(nodes: pd.DataFrame, *, value: str, low: str, high: str, sure: str = "sure", label: str = "") -> Figure:
    """Draw the columns with the largest values as bars with intervals, those not beyond chance pale.

    Parameters
    ----------
    nodes : DataFrame
        One row per column with ``node`` and the columns that the other parameters name; ``direction`` gives the
        colour where it is there.
    value : str
        Column with the length of the bars.
    low : str
        Column with the interval's lower end.
    high : str
        Column with the interval's upper end.
    sure : str, default="sure"
        Column that says whether the value is beyond chance.
    label : str, default=""
        What the axis says.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> import pandas as pd
    >>> from precisionnet.plots import node_bars
    >>> nodes = pd.DataFrame({"node": ["a", "b"], "size": [1.0, 2.0], "low": [0.5, 0.0], "high": [1.5, 4.0]})
    >>> len(node_bars(nodes.assign(sure=[True, False]), value="size", low="low", high="high").axes[0].patches)
    2
    """
    figure, (axes,) = new_figure(7.6, bars_height(len(nodes)))
    draw_node_bars(axes, nodes, value=value, low=low, high=high, sure=sure, label=label)
    return figure


def bars_height(n: int) -> float:
    """Return the inches that the bars of so many columns need."""
    return 1.3 + 0.26 * min(n, BARS)


def draw_node_bars(
    axes: Axes,
    nodes: pd.DataFrame,
    *,
    value: str,
    low: str,
    high: str,
    sure: str = "sure",
    label: str = "",
    beyond: str = "beyond chance, ",
) -> None:
    """Draw bars of columns, as ``node_bars`` says; without an interval where ``low`` is empty.

    Sizes go to the right alone, numbers with a sign to either side of zero.
    """
    short_names = dict(zip(nodes["node"], without_common_ending([str(name) for name in nodes["node"]]), strict=True))
    order = np.lexsort((-nodes[value].abs().to_numpy(dtype=float), ~nodes[sure].to_numpy(dtype=bool)))
    shown = nodes.iloc[order[:BARS][::-1]]
    size, place = shown[value].to_numpy(dtype=float), np.arange(len(shown))
    direction = shown["direction"].to_numpy() if "direction" in shown else np.ones(len(shown))
    certain = shown[sure].to_numpy(dtype=bool)
    of_direction = {1: POSITIVE, -1: NEGATIVE, 0: UNSIGNED}
    colors = [of_direction[int(np.sign(d))] if c else PALE for c, d in zip(certain, direction, strict=True)]
    axes.barh(place, size, color=colors, height=0.68)
    if (size < 0.0).any():
        axes.axvline(0.0, color=MUTED, linewidth=0.8)
    if low:
        ends = [size - shown[low].to_numpy(dtype=float), shown[high].to_numpy(dtype=float) - size]
        reach: FloatArray = np.maximum(np.vstack(ends), 0.0)
        axes.errorbar(size, place, xerr=reach, fmt="none", ecolor=MUTED, elinewidth=1, capsize=2)
    axes.set_yticks(place, [short(short_names[name], 30) for name in shown["node"]], fontsize=9)
    axes.tick_params(axis="y", length=0)
    axes.grid(False, axis="y")
    axes.grid(True, axis="x", color=GRID)
    axes.set_xlabel(label)
    axes.set_ylim(-0.6, len(shown) - 0.4)
    told = "direction" in shown
    for color, text, there in (
        (POSITIVE, f"{beyond}prediction rises" if told else beyond.strip(", "), (certain & (direction > 0)).any()),
        (NEGATIVE, f"{beyond}prediction falls", (certain & (direction < 0)).any()),
        (UNSIGNED, f"{beyond}no direction", (certain & (direction == 0)).any()),
        (PALE, "not told from chance", (~certain).any()),
    ):
        if there and text:
            axes.plot([], [], color=color, linewidth=6, label=text)
    if axes.get_legend_handles_labels()[0]:
        legend_below(axes, 3, inside="lower right", fontsize=9)


def evidence_frame(evidence: Any, part: str, needed: tuple[str, ...]) -> pd.DataFrame:
    """Return the table of edges or nodes in what an evidence function returned, or the data frame itself."""
    found = getattr(evidence, part, evidence)
    if not isinstance(found, pd.DataFrame) or not set(needed) <= set(found.columns):
        raise InputError(
            "evidence must be what an evidence function returned, or a data frame with the columns "
            f"{', '.join(needed)}."
        )
    return found


def sure_edges(edges: pd.DataFrame, evidence: Any) -> Any:
    """Return which edges are beyond chance, whichever end the evidence names first."""
    judged = evidence_frame(evidence, "edges", ("source", "target", "q_value"))
    pairs = zip(judged["source"], judged["target"], judged["q_value"] <= SURE, strict=True)
    sure = {frozenset((a, b)) for a, b, believed in pairs if believed}
    return [frozenset(pair) in sure for pair in zip(edges["source"], edges["target"], strict=True)]


def sure_nodes(evidence: Any) -> dict[str, bool]:
    """Return which columns are beyond chance; q-values by name will do, too."""
    if isinstance(evidence, Mapping):
        return {str(name): bool(q <= SURE) for name, q in evidence.items()}
    nodes = evidence_frame(evidence, "nodes", ("node", "q_value"))
    return dict(zip(nodes["node"].astype(str), (nodes["q_value"] <= SURE).tolist(), strict=True))


def _order(edges: pd.DataFrame, places: dict[str, int], value: str) -> IndexArray:
    """Return an order in which joined columns stand side by side."""
    size = np.zeros((len(places), len(places)))
    first, second = (edges[name].map(places).to_numpy() for name in ("source", "target"))
    size[first, second] = size[second, first] = edges[value].abs().to_numpy()
    return clustered_order(size / max(float(size.max()), 1e-300))
