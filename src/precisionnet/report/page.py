"""What every page is made of: templates, pictures, parts, numbers as text, and what stands on all of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Environment, PackageLoader, Template, select_autoescape
from markupsafe import Markup, escape

from precisionnet.errors import printable
from precisionnet.evaluation.methods import METHODS, label
from precisionnet.evaluation.statistics import failed, methods_of, score_table
from precisionnet.plots.comparison import mark
from precisionnet.report.interactive import scripts
from precisionnet.runner.jobs import Row

NONE = "–"


@dataclass(frozen=True)
class Picture:
    """Inline SVG and its caption, which a screen reader reads."""

    svg: Markup
    caption: str


def template(name: str) -> Template:
    """Return a template of this package; everything that is not markup of ours is escaped."""
    return _environment().get_template(name)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("precisionnet.report"),
        autoescape=select_autoescape(default=True),
        trim_blocks=True,
        finalize=_without_control_characters,
    )
    made.filters["commas"] = "{:,}".format
    made.filters["breakable"] = _breakable
    made.globals["all_scripts"] = scripts
    return made


def _without_control_characters(value: Any) -> Any:
    """Spell control characters out: a name from a file may hold escape sequences or switch the writing direction."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _breakable(name: str) -> Markup:
    """Let a narrow page break a name after its underscores."""
    return escape(printable(name)).replace("_", Markup("_<wbr>"))


@dataclass(frozen=True)
class TextTable:
    """A table for the terminal and for pages: its first columns are text, the others numbers."""

    title: str
    columns: list[str]
    rows: list[list[str]]
    texts: int = 1
    """Number of columns that are text."""


@dataclass(frozen=True)
class PageParts:
    """The content that one kind of experiment provides for its page."""

    verdict: str
    template: str
    context: dict[str, Any]
    figures: dict[str, tuple[Any, str]]
    """Figures on the page, each with its caption."""
    files: dict[str, Any]
    """Figures that are written beside the page, as figure-NAME.svg and .png."""
    how: list[str]
    facts: list[tuple[str, str]]
    terminal: list[TextTable]
    where: list[str] = field(default_factory=lambda: ["repeat"])
    """Columns that tell the fits of one method apart."""
    wide: list[TextTable] = field(default_factory=list)
    """Tables of the page that no terminal has room for; the page over several experiments has them, too."""


def marks(rows: Sequence[Row]) -> dict[str, Markup]:
    """Return the marker of each method, as in the figures."""
    return {method: Markup(mark(method)) for method in methods_of(rows)}


def method_clauses(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Return what each method is, where the registry knows it."""
    return [(method, METHODS[method].what) for method in methods_of(rows) if method in METHODS]


def failures(rows: Sequence[Row], where: Sequence[str]) -> list[dict[str, str]]:
    """Return one line per failed fit; the same reason in several repeats is told once."""
    grouped: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if failed(row):
            grouped.setdefault((row["method"], row["error"]), []).append(row)
    return [
        {"method": method, "why": why, "where": "; ".join(_place(row, where) for row in found)}
        for (method, why), found in grouped.items()
    ]


def chosen(rows: Sequence[Row], where: Sequence[str]) -> list[dict[str, Any]]:
    """Return the parameters that won on the validation rows, fit by fit."""
    order = {method: place for place, method in enumerate(methods_of(rows))}
    found = [row for row in rows if row.get("parameters")]
    found.sort(key=lambda row: (order[row["method"]], *(row.get(name, 0) for name in where)))
    return [
        {
            "method": row["method"],
            "where": [_value(row.get(name)) for name in where],
            "parameters": ", ".join(f"{key} {_value(value)}" for key, value in row["parameters"].items()),
        }
        for row in found
    ]


def settings(manifest: Mapping[str, Any], rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Return everything that is needed to get the same numbers again."""
    about = manifest.get("about", {})
    seeds = sorted({(row["repeat"], row["seed"]) for row in rows if "seed" in row})
    known = [
        ("experiment", str(manifest.get("name", ""))),
        ("expected", _flat(about.get("expected") or "")),
        ("seeds", ", ".join(str(seed) for _, seed in seeds)),
        ("config hash", str(manifest.get("config_hash", ""))),
        ("data hash", str(manifest.get("data_hash", ""))),
        *((f"config: {key}", _flat(value)) for key, value in manifest.get("config", {}).items()),
        *_versions(manifest.get("versions") or {}, rows),
    ]
    return [(name, value) for name, value in known if value]


def _versions(first: Mapping[str, Any], rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Return all versions that made a row; where no row says, those that the run began with."""
    found: dict[str, set[str]] = {str(name): set() for name in first}
    for row in rows:
        for name, version in (row.get("versions") or {}).items():
            found.setdefault(str(name), set()).add(str(version))
    return [
        (name, ", ".join(sorted(versions, key=_by_number)) or str(first.get(name, "")))
        for name, versions in found.items()
    ]


def _by_number(version: str) -> tuple[list[int], str]:
    """2.9 before 2.10."""
    return [int(number) for number in re.findall(r"\d+", version)], version


def unfinished(done: int, total: int | None) -> list[str]:
    """Say how many fits are missing, where some are."""
    if total is None or done >= total:
        return []
    return [f"Not finished: {done} of {total} fits are here; run the same command again to go on where it stopped."]


def labels(rows: Sequence[Row]) -> dict[str, str]:
    """Return the names of methods for people."""
    return {method: label(method) for method in methods_of(rows)}


def _place(row: Row, where: Sequence[str]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {_value(row.get(name))}" for name in where)


def _value(value: Any) -> str:
    if value is None:
        return "none"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _flat(value: Any) -> str:
    """Nested settings on one line."""
    if isinstance(value, Mapping):
        return "; ".join(f"{key} = {_flat(inner)}" for key, inner in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_flat(inner) for inner in value)
    return _value(value)


def score_frame(rows: Sequence[Row], metric: str) -> pd.DataFrame:
    """Return scores with one row per repeat and one column per method; NaN where a fit failed or is not there yet."""
    repeats = sorted({int(row["repeat"]) for row in rows})
    return score_table(rows, metric).reindex(index=pd.Index(repeats, name="repeat"), columns=methods_of(rows))


def with_interval(value: float, low: float, high: float, decimals: int) -> str:
    """'+0.12 [-0.03, +0.27]'; without brackets where there is no interval, a dash where there is no difference."""
    if np.isnan(value):
        return NONE
    text = f"{value:+.{decimals}f}"
    return text if np.isnan(low) else f"{text} [{low:+.{decimals}f}, {high:+.{decimals}f}]"


def plus_minus(values: Any, decimals: int | None = None) -> str:
    """'3.21 ± 0.15' of the values that are there; without the second number where there is only one."""
    known = np.asarray(values, dtype=float)
    known = known[np.isfinite(known)]
    if len(known) == 0:
        return NONE
    mean = float(known.mean())
    digits = decimals_of([mean]) if decimals is None else decimals
    if len(known) == 1:
        return f"{mean:,.{digits}f}"
    return f"{mean:,.{digits}f} ± {known.std(ddof=1):,.{digits}f}"


def decimals_of(means: Any) -> int:
    """Return how many decimals a whole column has: three significant digits of its middle value, at most four."""
    known = np.abs(np.asarray(means, dtype=float))
    known = known[np.isfinite(known) & (known > 0)]
    return int(np.clip(2 - np.floor(np.log10(np.median(known))), 0, 4)) if len(known) else 2


def brief(seconds: float) -> str:
    """Seconds as a person would round them."""
    return f"{seconds:.1f}" if seconds < 9.95 else f"{seconds:,.0f}"
