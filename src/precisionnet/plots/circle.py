"""Columns on a circle and arcs between them: what every drawing of a graph is made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path as MplPath

from precisionnet.plots.style import INK, MUTED, new_figure, short, without_common_ending
from precisionnet.types import IndexArray

LABELS_DRAWN = 90
LONGEST = 26
"""Letters of a name that is shown."""
SIDE = 8.4
"""Inches."""


class Arc(NamedTuple):
    """An edge between the columns at two positions, and how it looks."""

    first: int
    second: int
    color: str
    width: float
    alpha: float


def square_figure() -> tuple[Figure, Axes]:
    """Return a figure for a circle."""
    figure, (axes,) = new_figure(SIDE, SIDE)
    return figure, axes


def empty_circle(axes: Axes, said: str = "") -> None:
    """Take the lines of the axes away; ``said`` stands in their middle."""
    axes.set_axis_off()
    axes.set(aspect="equal", xlim=(-1.0, 1.0), ylim=(-1.0, 1.0))
    if said:
        axes.text(0.0, 0.0, said, ha="center", va="center", color=MUTED)


def draw_circle(axes: Axes, names: Sequence[str], order: IndexArray, arcs: Iterable[Arc]) -> None:
    """Put the columns on a circle in this order and draw the arcs, the last ones on top.

    Of many columns only those are shown that have an arc.
    """
    arcs, names = list(arcs), without_common_ending(names)
    if len(names) > LABELS_DRAWN:
        order = order[np.isin(order, [end for arc in arcs for end in arc[:2]])]
    angle = np.full(len(names), np.nan)
    angle[order] = np.pi / 2 - 2.0 * np.pi * np.arange(len(order)) / max(len(order), 1)
    place = np.column_stack([np.cos(angle), np.sin(angle)])
    for i, j, color, width, alpha in arcs:
        middle = 0.5 * (place[i] + place[j])
        bend = middle * (0.35 if np.linalg.norm(middle) < 0.9 else 0.8)
        path = MplPath([place[i], bend, place[j]], [MplPath.MOVETO, MplPath.CURVE3, MplPath.CURVE3])
        axes.add_patch(PathPatch(path, fill=False, color=color, linewidth=width, alpha=alpha))
    axes.scatter(place[order, 0], place[order, 1], s=22, color=INK, linewidth=0, zorder=3)
    figure = axes.get_figure(root=True)
    assert figure is not None
    place_of, (width, height) = axes.get_position(original=True), figure.get_size_inches()
    side = min(float(width) * place_of.width, float(height) * place_of.height, SIDE)
    side = SIDE if len(figure.axes) == 1 else side  # beside others, letters are as small as the axes
    size = float(np.clip(520.0 / max(len(order), 1), 5.5, 10.0)) * max(side / SIDE, 0.4)
    # A letter is about 0.6 of the font's size wide; the circle takes what the longest name leaves.
    letters = max((len(short(names[int(i)], LONGEST)) for i in order), default=0)
    reach = max(1.15, 1.08 / (1.0 - 2.0 * letters * 0.6 * size / 72.0 / side))
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach))
    for i in order:
        degrees, left = np.degrees(angle[i]), place[i, 0] < -1e-9
        axes.text(
            1.04 * place[i, 0],
            1.04 * place[i, 1],
            short(names[int(i)], LONGEST),
            rotation=degrees + 180 if left else degrees,
            rotation_mode="anchor",
            ha="right" if left else "left",
            va="center",
            fontsize=size,
        )
