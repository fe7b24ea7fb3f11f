"""Where a fit is wrong: its errors by parts of the rows, and whether its intervals and probabilities hold.

All of it is about rows that were not learned from. Intervals of errors are those of ``evaluation.error_intervals``:
rows of one person, or of one group that was held out, count together.

Whether prediction intervals hold is measured without the rows they are calibrated on: of each fold, by the errors of
the other folds, divided by the spread that the model expects of a row where it has learned one. For classes, predicted
probabilities are set beside shares.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from precisionnet.datasets import Dataset
from precisionnet.evaluation import Measured
from precisionnet.evaluation.error_intervals import Estimate, mean_interval, share_interval
from precisionnet.evaluation.metrics import decimals_of
from precisionnet.plots.fit import Whisker
from precisionnet.types import BoolArray, FloatArray, IndexArray

LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
STATED = 0.95
FIFTHS, MOST_DIGITS = 5, 12
MOST_LEVELS, MOST_COLUMNS = 12, 4
FEWEST_ROWS = 5
"""A part of fewer rows is put together with the other small ones."""
MOST_PARTS = 30
GROUPS = re.compile(r"(^|[\W_])(sex|gender|dx|diagnosis|group|scanner|cohort|study)([\W_]|$)", re.I)
"""Columns beside the features that a reader asks about first."""


@dataclass(frozen=True)
class ErrorTable:
    """Errors by parts of the rows."""

    name: str
    """Name for a file."""
    title: str
    columns: list[str]
    rows: list[list[str]]
    sentence: str
    whiskers: list[Whisker]
    centres: list[float]


@dataclass(frozen=True)
class CalibrationTable:
    """Stated coverages or probabilities, and the shares that were found for them."""

    stated: list[float]
    found: list[Whisker]
    sentence: str
    x_label: str
    y_label: str


@dataclass(frozen=True)
class FitErrors:
    """All that a page says of where a fit is wrong."""

    by_target: ErrorTable
    by_part: list[ErrorTable]
    calibration: CalibrationTable | None
    has_sites: bool


def fit_errors(result: Measured, data: Dataset | None = None) -> FitErrors:
    """Return the errors of a fit by parts of its rows; ``data`` are the rows that it was measured on."""
    hits = _covered(result)[STATED] if result.task == "regression" else None
    labels, by_target = list(_labels(result, data)), _by_target(result, hits)
    return FitErrors(
        by_target,
        [_table(result, f"By {name}", slug, values, hits) for name, slug, values in labels],
        _interval_calibration(result, by_target) if result.task == "regression" else _probability_calibration(result),
        _has_sites(data),
    )


def _labels(result: Measured, data: Dataset | None) -> Iterator[tuple[str, str, Any]]:
    """Name the parts of rows that errors are told of: held-out groups, sites, and columns with few levels."""
    tested, told = result.folds.tested, set[str]()
    if result.folds.kind in ("groups", "time"):
        told.add(result.folds.column)
        values = result.folds.cluster if result.folds.kind == "groups" else result.folds.fold + 1
        yield (
            f"{result.folds.column}{' (block of time)' if result.folds.kind == 'time' else ''}",
            "held-out",
            values[tested],
        )
    if data is None:
        return
    held_out = result.folds.cluster if result.folds.kind == "groups" else None
    if data.site is not None and _has_sites(data) and not _same_parts(held_out, data.site):
        yield str(data.site.name or "site"), "site", data.site.to_numpy()[tested]
        told.add(str(data.site.name))
    beside = data.covariates if data.covariates is not None else pd.DataFrame(index=data.X.index)
    found = [(name, beside[name]) for name in beside if GROUPS.search(str(name))]
    found += [(name, data.X[name]) for name in data.X if GROUPS.search(str(name)) or _is_labels(data.X[name])]
    n = 0
    for name, column in found:
        if n < MOST_COLUMNS and str(name) not in told and 2 <= column.nunique() <= MOST_LEVELS:
            n += 1
            told.add(str(name))
            yield str(name), f"column-{n}", column.to_numpy()[tested]


def _same_parts(held_out: Any, site: pd.Series[Any]) -> bool:
    """Whether the groups that were held out are the sites, under another name."""
    return held_out is not None and bool((np.asarray(held_out).astype(str) == site.astype(str).to_numpy()).all())


def _has_sites(data: Dataset | None) -> bool:
    return data is not None and data.site is not None and len(data.site.unique()) > 1


def _is_labels(column: pd.Series[Any]) -> bool:
    return not pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_bool_dtype(column.dtype)


def _by_target(result: Measured, hits: BoolArray | None) -> ErrorTable:
    """Errors by fifths of the target, or by class."""
    if result.task == "classification":
        return _table(result, f"By true {result.target}", "class", result.y, hits)
    y = np.asarray(result.y, dtype=float)
    edges = np.unique(np.quantile(y, np.linspace(0.0, 1.0, FIFTHS + 1)))
    place = np.clip(np.searchsorted(edges, y, side="right") - 1, 0, max(len(edges) - 2, 0))
    names = _part_names(edges)
    table = _table(result, f"By true {result.target}", "target", np.array(names, dtype=object)[place], hits, names)
    there, counts = np.unique(place, return_counts=True)
    centres = [float(np.mean(y[place == part])) for part in there]
    said = _leaning(result, table.whiskers, counts)
    return ErrorTable(table.name, table.title, table.columns, table.rows, said, table.whiskers, centres)


def _part_names(edges: FloatArray) -> list[str]:
    """Name parts by their ends, with as many digits as it takes for all ends to differ."""
    digits = decimals_of(float(np.ptp(edges)) or 1.0)
    while True:
        ends = [f"{end:,.{digits}f}" for end in edges]
        if len(set(ends)) == len(ends) or digits >= MOST_DIGITS:
            break
        digits += 1
    if len(set(ends)) < len(ends):
        ends = [repr(float(end)) for end in edges]
    return [f"{low} to {high}" for low, high in pairwise(ends)] or ends


def _leaning(result: Measured, parts: list[Whisker], counts: IndexArray) -> str:
    """Say whether low values are predicted too high and high ones too low."""
    if len(parts) < 2:
        return "All rows have about the same value, so that nothing can be told by it."
    low, high = parts[0], parts[-1]
    fifths = len(parts) == FIFTHS  # ties leave fewer parts, which are no fifths
    lowest, highest = ("fifth", "fifth") if fifths else (f"part ({counts[0]:,} rows)", f"part ({counts[-1]:,} rows)")
    if low.low > 0.0 > high.high:
        return (
            f"Predictions lean towards the middle: the lowest {lowest} is predicted {_amount(low.value)} too high on "
            f"average, the highest {highest} {_amount(-high.value)} too low. Every model does so that does not know "
            "all; correct for it before differences between predicted and true values are compared (precisionnet gap)."
        )
    off = [part.name for part in parts if part.low > 0.0 or part.high < 0.0]
    if off:
        return f"The mean error is not 0, more than chance explains, where {result.target} is {' and '.join(off)}."
    no = "fifth" if fifths else "part"
    return f"No {no} of the rows is predicted too high or too low on average, as far as these rows tell."


def _table(
    result: Measured, title: str, name: str, labels: Any, hits: BoolArray | None, order: list[str] | None = None
) -> ErrorTable:
    """Return errors by label; small parts are put together, and the largest ones are shown."""
    text = np.array([_level(value) for value in labels], dtype=object)
    counts = pd.Series(text).value_counts(sort=True)
    small = set(counts[counts < FEWEST_ROWS].index) | set(counts.index[MOST_PARTS:])
    if order is None and len(small) > 1:
        text = np.array([f"{len(small)} smaller ones" if value in small else value for value in text], dtype=object)
    parts = [part for part in order or _sorted(set(text)) if np.any(text == part)]
    cluster, said = result.folds.cluster[result.folds.tested], result.predictions[result.method].predicted
    rows, whiskers, worst = [], list[Whisker](), list[Estimate]()
    for part in parts:
        own = text == part
        n = f"{int(own.sum()):,}"
        if result.task == "classification":
            right = share_interval(result.y[own] == said[own], cluster[own])
            worst.append(right)
            whiskers.append(Whisker(part, *right))
            rows.append([part, n, f"{100 * right.value:.0f} %", _percent_ends(right)])
            continue
        error = said[own].astype(float) - np.asarray(result.y, dtype=float)[own]
        mean, size = mean_interval(error, cluster[own]), mean_interval(np.abs(error), cluster[own])
        digits = decimals_of(size.value)
        whiskers.append(Whisker(part, *mean))
        worst.append(size)
        held = "–" if hits is None else f"{100 * float(hits[own].mean()):.0f} %"
        rows.append(
            [part, n, f"{mean.value:+,.{digits}f}", _ends(mean, digits, "+"), f"{size.value:,.{digits}f}",
             _ends(size, digits), held]
        )  # fmt: skip
    columns = (
        ["Part", "Rows", "Right", "95 % interval"]
        if result.task == "classification"
        else ["Part", "Rows", "Mean error", "95 % interval", "MAE", "its 95 % interval", "Intervals that hold"]
    )
    return ErrorTable(name, title, columns, rows, _differing(result, parts, whiskers, worst), whiskers, [])


def _differing(result: Measured, parts: list[str], whiskers: list[Whisker], worst: list[Estimate]) -> str:
    if len(parts) < 2:
        return "All rows are in one part."
    sizes = [one.value for one in worst]
    low, high = int(np.argmin(sizes)), int(np.argmax(sizes))
    if result.task == "classification":
        return (
            f"Right in {100 * sizes[high]:.0f} % of the rows of {parts[high]}, and in {100 * sizes[low]:.0f} % of "
            f"those of {parts[low]}."
        )
    off = sum(one.low > 0.0 or one.high < 0.0 for one in whiskers)
    chance = "about one in twenty would by chance"
    return (
        f"The mean absolute error goes from {_amount(sizes[low])} ({parts[low]}) to {_amount(sizes[high])} "
        f"({parts[high]}). In {off} of {len(parts)} parts the mean error's interval leaves 0 out; {chance}."
    )


def _covered(result: Measured) -> dict[float, BoolArray]:
    """Whether each row lies in its interval, for each level; intervals are made of the other folds' errors."""
    y, said = np.asarray(result.y, dtype=float), result.predictions[result.method].predicted.astype(float)
    error, fold = np.abs(y - said), result.folds.fold[result.folds.tested]
    known = getattr(result.model, "calibration_", None)
    scaled = error
    if known is not None and len(known.residual) == len(error) and np.allclose(known.residual, error, rtol=1e-4):
        scaled = error / known.spread
    found = {level: np.ones(len(y), dtype=bool) for level in LEVELS}
    for part in np.unique(fold):
        others = np.sort(scaled[fold != part])
        for level in LEVELS:
            count = math.ceil(level * (len(others) + 1) * (1.0 - 1e-12))
            limit = others[count - 1] if 0 < count <= len(others) else math.inf
            found[level][fold == part] = scaled[fold == part] <= limit
    return found


def _interval_calibration(result: Measured, by_target: ErrorTable) -> CalibrationTable | None:
    if len(np.unique(result.folds.fold[result.folds.tested])) < 2:
        return None
    cluster = result.folds.cluster[result.folds.tested]
    found = [Whisker(f"{level:.0%}", *share_interval(hits, cluster)) for level, hits in _covered(result).items()]
    last = found[-1]
    holds = np.isnan(last.low) or last.low <= STATED <= last.high
    verdict = "as stated" if holds else "more than stated" if last.value > STATED else "less than stated"
    ends = "" if np.isnan(last.low) else f" (95 % interval {100 * last.low:.1f} to {100 * last.high:.1f})"
    shares = {row[0]: row[-1] for row in by_target.rows}
    least = min(shares, key=lambda part: float(shares[part].split()[0]))
    where = f" Where {result.target} is {least}, it is {shares[least]}." if len(shares) > 1 else ""
    return CalibrationTable(
        list(LEVELS),
        found,
        f"Intervals that should hold 95 % of the true values hold {100 * last.value:.1f} %{ends}: {verdict}.{where}",
        "coverage that is stated",
        "coverage that is found",
    )


def _probability_calibration(result: Measured) -> CalibrationTable | None:
    """Set predicted probabilities beside shares: of the second of two classes, or of the class that is predicted."""
    said = result.predictions[result.method]
    if said.probabilities is None or len(result.model.classes_) < 2:
        return None
    two = len(result.model.classes_) == 2
    stated = said.probabilities[:, 1] if two else said.probabilities.max(axis=1)
    true = result.y == result.model.classes_[1] if two else result.y == said.predicted
    edges = np.unique(np.quantile(stated, np.linspace(0.0, 1.0, min(8, max(2, len(stated) // 25)) + 1)))
    place = np.clip(np.searchsorted(edges, stated, side="right") - 1, 0, max(len(edges) - 2, 0))
    cluster = result.folds.cluster[result.folds.tested]
    parts = [np.flatnonzero(place == part) for part in np.unique(place)]
    means = [float(stated[rows].mean()) for rows in parts]
    found = [
        Whisker(f"{m:.0%}", *share_interval(true[rows], cluster[rows])) for m, rows in zip(means, parts, strict=True)
    ]
    gap = float(
        sum(len(rows) * abs(m - one.value) for m, rows, one in zip(means, parts, found, strict=True)) / len(true)
    )
    what = f"of {_level(result.model.classes_[1])}" if two else "of the predicted class"
    return CalibrationTable(
        means,
        found,
        f"Predicted probabilities {what} are off by {100 * gap:.1f} points on average, in {len(parts)} groups of rows "
        "with about the same probability; some of that is chance.",
        f"predicted probability {what}",
        "share that is found",
    )


def _level(value: Any) -> str:
    if isinstance(value, float):
        return "missing" if np.isnan(value) else f"{value:g}"
    return "missing" if value is None or value is pd.NA else str(value)


def _sorted(values: set[str]) -> list[str]:
    """Numbers by size, then words; what was put together last."""

    def key(text: str) -> tuple[int, float, str]:
        if text.endswith(" smaller ones"):
            return 2, 0.0, text
        try:
            return 0, float(text), text
        except ValueError:
            return 1, 0.0, text

    return sorted(values, key=key)


def _amount(value: float) -> str:
    return f"{value:,.{decimals_of(abs(value) or 1.0)}f}"


def _ends(found: Estimate, digits: int, sign: str = "") -> str:
    return "–" if np.isnan(found.low) else f"{found.low:{sign},.{digits}f} to {found.high:{sign},.{digits}f}"


def _percent_ends(found: Estimate) -> str:
    return "–" if np.isnan(found.low) else f"{100 * found.low:.0f} to {100 * found.high:.0f} %"
