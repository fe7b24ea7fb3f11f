"""One look for every figure, and figures as inline SVG or as files.

Figures are drawn without pyplot, so nothing global is touched and no display is needed.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Any, Literal

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from precisionnet.errors import printable

INK = "#1f2933"
MUTED = "#7b8794"
GRID = "#e4e7eb"
MAIN = "#1d5fa6"
SECOND = "#d9822b"
POSITIVE = "#2166ac"
NEGATIVE = "#b2182b"
UNSIGNED = "#3e4c59"
"""Colour of edges without a direction, such as those between columns of several levels."""
NO_DIRECTION = "no direction (several levels)"
PALE = "#b8c1cc"
"""Colour of whatever is not told from chance."""
DIVERGING = "RdBu"
SEQUENTIAL = "YlGnBu"
PAGE_COLORS = {
    INK: "ink",
    MUTED: "muted",
    GRID: "line",
    MAIN: "main",
    SECOND: "second",
    POSITIVE: "positive",
    NEGATIVE: "negative",
    UNSIGNED: "unsigned",
    PALE: "pale",
}
"""Colours that a page may change, for dark screens, by a CSS variable of this name."""
TIP = "tip-"
"""Artists whose gid begins with this have a label that shows when one points at them in an svg."""

_RC: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 10,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "text.parse_math": False,  # a column called a$b$ is a name, not a formula
    "svg.fonttype": "none",
}


@contextmanager
def styled() -> Iterator[None]:
    """Draw inside this block: one look for all figures, and names are never read as formulas.

    Returns
    -------
    context manager
        Sets matplotlib's style and restores the earlier one.

    Examples
    --------
    >>> from precisionnet.plots import predicted_against_true, styled, to_svg
    >>> with styled():
    ...     svg = to_svg(predicted_against_true([1.0, 2.0], [1.1, 1.8], "age"), "age")
    >>> svg.startswith("<svg")
    True
    """
    with matplotlib.rc_context(_RC):
        yield


def new_figure(width: float, height: float, n_axes: int = 1) -> tuple[Figure, list[Axes]]:
    """A figure with its axes side by side."""
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(1, n_axes, squeeze=False)[0]
    return figure, list(axes)


def to_svg(figure: Figure, name: str) -> str:
    """Return a figure as an ``<svg>`` element that scales with the page.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        A figure of this package.
    name : str
        Keeps the ids of several figures on one page apart, and makes the same figure the same text.

    Returns
    -------
    str
        The element, without a date and without references to other files.

    Examples
    --------
    >>> from precisionnet.plots import predicted_against_true, to_svg
    >>> to_svg(predicted_against_true([1.0, 2.0], [1.1, 1.8], "age"), "age").count("<svg")
    1
    """
    buffer = io.StringIO()
    with matplotlib.rc_context({**_RC, "svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    tips = {str(one.get_gid()): str(one.get_label()) for one in figure.findobj(_has_tip)}
    svg = re.sub(rf'<g id="({TIP}\d+)">', lambda found: f"<g><title>{escape(printable(tips[found[1]]))}</title>", svg)
    # matplotlib numbers groups anew in each figure; only hashed ids are referred to.
    svg = re.sub(
        r' id="(?:figure|axes|patch|line2d|text|matplotlib\.axis|xtick|ytick|legend|PathCollection|LineCollection'
        r'|QuadMesh|image|FillBetweenPolyCollection)_\d+"',
        "",
        svg,
    )
    svg = re.sub(r'style="[^"]*"', lambda found: re.sub(r": (#[0-9a-f]{6})", _page_color, found[0]), svg)
    width, height = (float(value) for value in re.findall(r'(?:width|height)="([\d.]+)pt"', svg[:400])[:2])
    head = f'<svg role="img" style="max-width:{width * 4 / 3:.0f}px" viewBox="0 0 {width:g} {height:g}"'
    return re.sub(r'<svg [^>]*?viewBox="[^"]*"', head, svg, count=1)


def _page_color(found: re.Match[str]) -> str:
    """Make a colour one that the page may replace; without the page, as in other viewers, it stays as it is."""
    name = PAGE_COLORS.get(found[1])
    return found[0] if name is None else f": var(--{name}, {found[1]})"


def _has_tip(artist: Any) -> bool:
    return str(artist.get_gid() or "").startswith(TIP)


def to_file(figure: Figure, path: Path, ending: str, name: str) -> None:
    """Write a figure on white, the same bytes for the same figure and name.

    Letters are outlines: where the font is missing, nothing moves.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        A figure of this package.
    path : path
        The file to write.
    ending : {"svg", "png", "pdf"}
        The format.
    name : str
        Makes the ids inside an svg reproducible.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from precisionnet.plots import predicted_against_true, to_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "age.png"
    ...     to_file(predicted_against_true([1.0, 2.0], [1.1, 1.8], "age"), path, "png", "age")
    ...     path.read_bytes()[1:4]
    b'PNG'
    """
    metadata: dict[str, Any] = {
        "svg": {"Date": None, "Creator": None},
        "png": {"Software": None},
        "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    }[ending]
    with matplotlib.rc_context({**_RC, "svg.fonttype": "path", "svg.hashsalt": name}):
        figure.savefig(path, format=ending, metadata=metadata, facecolor="white", dpi=160)


def to_files(figure: Figure, folder: Path, name: str) -> None:
    """Write a figure as svg, png and pdf, as ``to_file`` does.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        A figure of this package.
    folder : path
        Where to write the files.
    name : str
        Their name, without an ending.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from precisionnet.plots import predicted_against_true, to_files
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     to_files(predicted_against_true([1.0, 2.0], [1.1, 1.8], "age"), Path(folder), "age")
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['age.pdf', 'age.png', 'age.svg']
    """
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # laid out now; to do so for each file takes most of the time
    for ending in ("svg", "png", "pdf"):
        to_file(figure, folder / f"{name}.{ending}", ending, name)


def legend_below(axes: Axes, ncols: int, inside: Literal["", "lower right"] = "", **how: Any) -> None:
    """Put the legend under a figure that has no other axes; under its own, or in a corner ``inside``, otherwise."""
    figure = axes.get_figure()
    assert figure is not None
    if isinstance(figure, Figure) and len(figure.axes) == 1 and figure.get_constrained_layout():
        figure.legend(loc="outside lower center", ncols=ncols, **how)
    elif inside:
        axes.legend(loc=inside, **how)
    else:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=ncols, **how)


def names_stay_names(axes: Axes) -> Axes:
    """Show every text of these axes literally: in a caller's own axes matplotlib would read ``$...$`` as a formula."""
    for text in axes.findobj(Text):
        text.set_parse_math(False)
    return axes


def without_common_ending(names: Sequence[str]) -> list[str]:
    """lh_insula_thickness, rh_insula_thickness, ... -> lh_insula, rh_insula, ...: what all names share says nothing."""
    shortest = min(names, key=len)
    ending = next(shortest[i:] for i in range(len(shortest) + 1) if all(n.endswith(shortest[i:]) for n in names))
    cut = ending[ending.index("_") :] if len(names) > 1 and "_" in ending else ""
    return [name.removesuffix(cut) or name for name in names]


def short(name: str, most: int = 28) -> str:
    """Shorten a name so that it fits on an axis."""
    name = printable(" ".join(name.split()))
    return name if len(name) <= most else name[: most - 1] + "…"
