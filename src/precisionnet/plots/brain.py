"""Values of cortical regions, and edges between them, on the brain: both hemispheres from outside and from the midline.

Outlines are those of the 68 Desikan-Killiany regions, DKT's 62 among them. ``tools/brain_outlines.py`` drew them once,
and they are bundled with their licence: no surface is read and no other package is needed. Columns are recognised by
their names, however a file spells them (``datasets.neuro.regions``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, Normalize, TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path as MplPath

from precisionnet.datasets.neuro.regions import DESIKAN, Region, parse_region
from precisionnet.errors import InputError, some
from precisionnet.plots.style import (
    DIVERGING,
    INK,
    MUTED,
    NEGATIVE,
    POSITIVE,
    SEQUENTIAL,
    TIP,
    legend_below,
    new_figure,
)
from precisionnet.types import FloatArray

NO_VALUE = "#eceff2"
UNSURE = "#cbd2da"
"""Colour of values that are not told from chance; paler than for lines and bars, because regions are large."""
GROUND = "#f9fafb"
"""The medial wall, which belongs to no region."""
SIZE = (8.6, 7.2)
"""Width and height in inches."""
ACROSS, UP = 440, 345
"""Distance from one view to the next, across and up, in the outlines' units."""
VIEWS = {"lh_lateral": (0, 1), "rh_lateral": (1, 1), "lh_medial": (0, 0), "rh_medial": (1, 0)}
"""Column and row of each view: both fronts point outwards from outside, and inwards from the midline."""
TITLES = {
    "lh_lateral": "left, from outside (lateral)",
    "rh_lateral": "right, from outside (lateral)",
    "lh_medial": "left, from the midline (medial)",
    "rh_medial": "right, from the midline (medial)",
}


@cache
def outlines() -> dict[str, dict[str, Any]]:
    """Return each view's size, its outline and the polygons of its regions."""
    text = files("precisionnet.plots").joinpath("desikan_outlines.json").read_text(encoding="utf-8")
    found: dict[str, dict[str, Any]] = json.loads(text)["views"]
    return found


def brain_measures(names: Iterable[str]) -> list[str]:
    """Return what these columns measure of regions that can be drawn; of each measure there is one picture.

    Parameters
    ----------
    names : iterable of str
        Names of columns.

    Returns
    -------
    list of str
        Measures such as ``thickness``, empty where a name does not say; an empty list where no column is a
        Desikan-Killiany region.

    Examples
    --------
    >>> from precisionnet.plots import brain_measures
    >>> brain_measures(["lh_insula_thickness", "rh_insula_thickness", "age"])
    ['thickness']
    >>> brain_measures(["height", "weight"])
    []
    """
    return sorted({region.measure for region in _drawable(names).values()})


def _drawable(names: Iterable[str]) -> dict[str, Region]:
    parsed = {name: parse_region(str(name)) for name in names}
    return {name: region for name, region in parsed.items() if region is not None and region.region in DESIKAN}


def count_regions(names: Iterable[str]) -> int:
    """Return how many of the columns can be drawn."""
    return len(_drawable(names))


def regions_of(names: Iterable[str], measure: str | None = None) -> dict[str, str]:
    """Return the region of each column that is one, such as ``lh_insula``; refused where there is no picture."""
    names = list(names)
    found = _drawable(names)
    if not found:
        others = sum(parse_region(str(name)) is not None for name in names)
        why = (
            f"{others} of {len(names)} columns are regions of the Destrieux atlas, and outlines are there for the "
            "Desikan-Killiany atlas alone."
            if others
            else f"0 of {len(names)} columns are named after a region of the Desikan-Killiany atlas, such as lh_insula "
            "or 'left insula': rename those that are."
        )
        raise InputError(f"There is no picture for these names: {why}")
    measures = sorted({region.measure for region in found.values()})
    if measure is None and len(measures) > 1:
        listed = ", ".join(repr(one) for one in measures)
        raise InputError(f"These columns are several measures of regions ({listed}): choose one of them with measure=.")
    if measure is not None and measure not in measures:
        listed = ", ".join(repr(one) for one in measures)
        raise InputError(f"measure must be one that the columns have ({listed}), got {measure!r}.")
    kept = {name: region.name for name, region in found.items() if measure in (None, region.measure)}
    taken: dict[str, str] = {}
    for name, region in kept.items():
        if (other := taken.setdefault(region, name)) != name:
            raise InputError(f"Columns {some([other, name])} are both {region!r}: rename or remove one.")
    return kept


def brain_map(
    values: Mapping[str, float],
    *,
    label: str,
    signed: bool | None = None,
    sure: Mapping[str, bool] | None = None,
    edges: Iterable[tuple[str, str, float]] = (),
    measure: str | None = None,
    title: str = "",
) -> Figure:
    """Draw values of cortical regions on both hemispheres, seen from outside and from the midline.

    Parameters
    ----------
    values : mapping of str to float
        From columns to their values; NaN and regions that are no column are grey, columns that are no region are left
        out.
    label : str
        What the values are, with their unit, for the colour bar.
    signed : bool, default=None
        Whether a sign means a direction: two colours around zero. By default where a value is negative.
    sure : mapping of str to bool, default=None
        Columns that are beyond chance; the others are pale.
    edges : iterable of (str, str, float), default=()
        Lines between columns, blue above zero and red below; wider is stronger.
    measure : str, default=None
        Which columns to take, where there are several of a region, such as ``thickness``.
    title : str, default=""
        Title of the figure.

    Returns
    -------
    matplotlib.figure.Figure
        The figure. As svg, a region says its name and value when it is pointed at.

    Examples
    --------
    >>> from precisionnet.plots import brain_map
    >>> figure = brain_map({"lh_insula": 0.4, "rh_cuneus": -0.2, "sex": 1.0}, label="effect, years")
    >>> figure.axes[1].get_xlabel()  # the colour bar
    'effect, years'
    """
    figure, (axes,) = new_figure(*SIZE)
    draw_brain(axes, values, label=label, signed=signed, sure=sure, edges=edges, measure=measure, title=title)
    return figure


def draw_brain(
    axes: Axes,
    values: Mapping[str, float],
    *,
    label: str,
    signed: bool | None = None,
    sure: Mapping[str, bool] | None = None,
    edges: Iterable[tuple[str, str, float]] = (),
    measure: str | None = None,
    title: str = "",
) -> None:
    """Draw a brain map into axes, as ``brain_map`` says."""
    lines = list(edges)
    names = list(dict.fromkeys([*values, *(end for line in lines for end in line[:2])]))
    region_of = regions_of(names, measure)
    value_of = {region_of[name]: float(value) for name, value in values.items() if name in region_of}
    known = {region: value for region, value in value_of.items() if np.isfinite(value)}
    unsure = set() if sure is None else {region for name, region in region_of.items() if not sure.get(name, False)}
    if signed is None:
        signed = any(value < 0 for value in known.values())
    colored = np.array([abs(value) for region, value in known.items() if region not in unsure])
    limit = float(colored.max(initial=0.0)) or 1.0
    norm: Normalize = TwoSlopeNorm(0.0, -limit, limit) if signed else Normalize(0.0, limit)
    cmap = matplotlib.colormaps[DIVERGING if signed else SEQUENTIAL]
    colors = {region: _color(value, cmap, norm, region in unsure) for region, value in known.items()}
    said = {
        region: f"{region}: {value:{'+' if signed else ''}.3g}{', not told from chance' if region in unsure else ''}"
        for region, value in known.items()
    }
    drawn_bar = bool(len(colored))
    _draw_views(axes, colors, said)
    handles = []
    if unsure & set(known):
        handles.append(Patch(facecolor=UNSURE, label="not told from chance"))
    if value_of and len(known) < 2 * len(DESIKAN):
        handles.append(Patch(facecolor=NO_VALUE, edgecolor=MUTED, linewidth=0.4, label="no value"))
    handles += _draw_edges(axes, region_of, lines)
    if handles:
        legend_below(axes, 4, handles=handles, fontsize=9)
    if title:
        axes.set_title(title)
    left_out = [name for name in values if name not in region_of]
    if left_out:
        text = f"{len(values) - len(left_out)} of {len(values)} columns are shown; the others are no such regions"
        axes.text(ACROSS - 20, -12, text, ha="center", va="top", fontsize=8, color=MUTED)
        axes.set_ylim(bottom=-34)
    if drawn_bar:
        bar = axes.figure.colorbar(ScalarMappable(norm, cmap), ax=axes, location="bottom", shrink=0.5, aspect=34)
        bar.set_label(label)
        bar.outline.set_visible(False)


def _color(value: float, cmap: Colormap, norm: Normalize, unsure: bool) -> Any:
    return UNSURE if unsure else cmap(norm(value if norm.vmin != 0.0 else abs(value)))


def _draw_views(axes: Axes, colors: Mapping[str, Any], said: Mapping[str, str]) -> None:
    """Draw the four views, every region with its name and value to be pointed at."""
    number = 0
    for view, (column, row) in VIEWS.items():
        shape, shift = outlines()[view], np.array([column * ACROSS, row * UP])
        brain = _path(shape["outline"], shift)
        axes.add_patch(PathPatch(brain, facecolor=GROUND, linewidth=0.0))
        for name, polygons in shape["regions"].items():
            region = f"{view[:2]}_{name}"
            color = colors.get(region, NO_VALUE)
            patch = PathPatch(_path(polygons, shift), facecolor=color, edgecolor="white", linewidth=0.8)
            patch.set_gid(f"{TIP}{number}")
            patch.set_label(said.get(region, f"{region}: no value"))
            axes.add_patch(patch)
            number += 1
        axes.add_patch(PathPatch(brain, fill=False, edgecolor=MUTED, linewidth=1.0))
        width, height = shape["size"]
        axes.text(shift[0] + width / 2, shift[1] + height + 8, TITLES[view], ha="center", va="bottom", fontsize=9)
    axes.set(xlim=(-8, ACROSS + 408), ylim=(-6, UP + 318), aspect="equal")
    axes.set_axis_off()


def _path(polygons: Iterable[Any], shift: Any) -> MplPath:
    closed = [np.vstack([points, points[:1]]) + shift for points in polygons]
    return MplPath.make_compound_path(*(MplPath(points, closed=True) for points in closed))


@cache
def centres() -> dict[str, FloatArray]:
    """Return where the middle of each region is, in the view that shows most of it."""
    found: dict[str, tuple[float, FloatArray]] = {}
    for view, (column, row) in VIEWS.items():
        for name, polygons in outlines()[view]["regions"].items():
            for points in polygons:
                area, middle = _middle(np.asarray(points, dtype=float))
                region = f"{view[:2]}_{name}"
                if region not in found or area > found[region][0]:
                    found[region] = area, middle + np.array([column * ACROSS, row * UP])
    return {region: middle for region, (_, middle) in found.items()}


def _middle(points: FloatArray) -> tuple[float, FloatArray]:
    """Return a polygon's area and its centre of mass."""
    after = np.roll(points, -1, axis=0)
    cross = points[:, 0] * after[:, 1] - after[:, 0] * points[:, 1]
    area = cross.sum() / 2.0
    return abs(float(area)), ((points + after) * cross[:, None]).sum(axis=0) / (6.0 * area)


def _draw_edges(axes: Axes, region_of: Mapping[str, str], edges: Iterable[tuple[str, str, float]]) -> list[Any]:
    """Draw lines between the middles of regions, bent a little, and return what the legend says of them."""
    known = [
        (region_of[source], region_of[target], value)
        for source, target, value in edges
        if source in region_of and target in region_of and value
    ]
    if not known:
        return []
    largest = max(abs(value) for _, _, value in known)
    for first, second, value in sorted(known, key=lambda edge: abs(edge[2])):
        share = abs(value) / largest
        start, end = centres()[first], centres()[second]
        way = end - start
        bend = (start + end) / 2.0 + 0.12 * np.array([-way[1], way[0]])
        path = MplPath([start, bend, end], [MplPath.MOVETO, MplPath.CURVE3, MplPath.CURVE3])
        color = POSITIVE if value > 0 else NEGATIVE
        # A pale rim keeps lines apart from regions of the same colour.
        axes.add_patch(PathPatch(path, fill=False, color="white", linewidth=1.8 + 2.2 * share, alpha=0.7, zorder=3))
        axes.add_patch(PathPatch(path, fill=False, color=color, linewidth=0.8 + 2.2 * share, alpha=0.9, zorder=3))
    ends = np.array([centres()[region] for region in dict.fromkeys(end for edge in known for end in edge[:2])])
    axes.scatter(ends[:, 0], ends[:, 1], s=16, color=INK, edgecolor="white", linewidth=0.7, zorder=4)
    handles = []
    for color, text, there in (
        (POSITIVE, "edge, positive", any(value > 0 for _, _, value in known)),
        (NEGATIVE, "edge, negative", any(value < 0 for _, _, value in known)),
    ):
        if there:
            handles.append(axes.plot([], [], color=color, linewidth=2.5, label=text)[0])
    return handles
