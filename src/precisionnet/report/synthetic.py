"""The page of the synthetic experiment: the paper's Figure 2, four measures over sparsity levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from precisionnet import plots
from precisionnet.evaluation.methods import METHODS, label
from precisionnet.evaluation.statistics import failed, interval, is_number, methods_of, paired
from precisionnet.evaluation.verdict import NO_INTERVAL
from precisionnet.paper.claims import VERDICTS
from precisionnet.plots.paper import Panel, sparsity_figure, sparsity_panel
from precisionnet.report.page import (
    NONE,
    PageParts,
    TextTable,
    decimals_of,
    labels,
    plus_minus,
    score_frame,
    with_interval,
)
from precisionnet.runner.jobs import Row

MEASURES = {
    "mae": ("Error of the prediction (MAE)", "Mean absolute error on test rows; lower is better."),
    "mse": ("Squared error (MSE)", "Mean squared error on test rows; lower is better."),
    "l1_error": ("Error of the precision (l1)", "Sum of |θ − true θ| over all entries; lower is better."),
    "density": ("Density of the graph", "Share of entries of θ that are not zero; on the dashed line is the truth."),
}
MOST_WITH_DEVIATION = 5
"""Methods side by side on 80 columns, mean and deviation."""
TERMINAL = 80
AVERAGED = "all, averaged"
"""The last line of the differences, in the place of a level."""


def sparsity_parts(rows: Sequence[Row], about: Mapping[str, Any], claims: Sequence[Mapping[str, Any]]) -> PageParts:
    """Return everything but what stands on every page."""
    levels = sorted({float(row["sparsity"]) for row in rows if row.get("sparsity") is not None})
    frames = {metric: _by_level(rows, levels, metric) for metric in MEASURES}
    frames = {metric: frame for metric, frame in frames.items() if not frame[0].empty}
    truth = _truth(rows, levels)
    names = labels(rows)
    drawn, figures, panels = [], dict[str, tuple[Any, str]](), []
    with plots.styled():
        for metric, (means, deviations) in frames.items():
            title, caption = MEASURES[metric]
            panel = Panel(metric, title, truth if metric == "density" else None)
            drawn.append((means, deviations, panel))
            figures[metric] = (sparsity_panel(means, deviations, panel, names), f"{title} over sparsity levels.")
            panels.append({"name": metric, "heading": title, "caption": caption})
        whole = sparsity_figure(drawn, names) if drawn else None
    tables = [_table(rows, levels, metric, truth) for metric in frames]
    if less := _less_joint(rows, levels):
        tables.insert(1, less)  # after the MAE itself
    context = {
        "panels": panels,
        "tables": [
            {"title": t.title, "columns": t.columns[1:], "rows": [(row[0], row[1:]) for row in t.rows]} for t in tables
        ],
    }
    repeats = len({row["repeat"] for row in rows})
    facts = [(len(levels), "sparsity levels"), (repeats, "repeats at each"), (about.get("n_rows"), "rows a draw")]
    return PageParts(
        _verdict(rows, frames["mae"][0] if "mae" in frames else None, claims),
        "synthetic.html.j2",
        context,
        figures,
        {} if whole is None else {"sparsity": whole},
        _how(rows, about, repeats),
        [(f"{value:,}", what) for value, what in [*facts, (about.get("n_features"), "columns")] if value],
        [_for_terminal(table) for table in tables],
        ["sparsity", "repeat"],
    )


def _by_level(rows: Sequence[Row], levels: Sequence[float], metric: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return means and deviations: one row per level, one column per method that has this measure."""
    frames = [score_frame([row for row in rows if row.get("sparsity") == level], metric) for level in levels]
    means = pd.DataFrame([frame.mean() for frame in frames], index=list(levels), columns=methods_of(rows), dtype=float)
    deviations = pd.DataFrame([frame.std() for frame in frames], index=list(levels), columns=means.columns, dtype=float)
    there = [method for method in means.columns if means[method].notna().any()]
    return means[there], deviations[there]


def _truth(rows: Sequence[Row], levels: Sequence[float]) -> list[float]:
    """Density of the precision that the rows were drawn from; the level itself where it was not noted."""
    noted = {
        level: [r["density_true"] for r in rows if r.get("sparsity") == level and r.get("density_true") is not None]
        for level in levels
    }
    return [sum(values) / len(values) if values else level for level, values in noted.items()]


def _table(rows: Sequence[Row], levels: Sequence[float], metric: str, truth: Sequence[float]) -> TextTable:
    frames = [score_frame([row for row in rows if row.get("sparsity") == level], metric) for level in levels]
    there = [m for m in methods_of(rows) if any(m in frame and frame[m].notna().any() for frame in frames)]
    decimals = 2 if metric == "density" else decimals_of([frame[m].mean() for frame in frames for m in frame])
    cells = [
        [f"{level:g}", *(plus_minus(frame.get(m, []), decimals) for m in there)]
        for level, frame in zip(levels, frames, strict=True)
    ]
    columns = ["sparsity", *(label(method) for method in there)]
    if metric == "density":
        columns.append("truth")
        cells = [[*line, f"{value:.2f}"] for line, value in zip(cells, truth, strict=True)]
    return TextTable(MEASURES[metric][0], columns, cells)


def _less_joint(rows: Sequence[Row], levels: Sequence[float]) -> TextTable | None:
    """MAE less Joint's on the same draws, level by level and averaged over all levels; None where none compares."""
    others = [method for method in methods_of(rows) if method != "joint"]
    by_level = [
        paired([row for row in rows if row.get("sparsity") == level], "joint", "mae", resampled=False)
        for level in levels
    ]
    there = [method for method in others if any(method in table.index for table in by_level)]
    if not there:
        return None
    decimals = decimals_of([row["mae"] for row in rows if is_number(row.get("mae")) and not failed(row)])
    lines = [
        [f"{level:g}", *(_cell(table, method, decimals) for method in there)]
        for level, table in zip(levels, by_level, strict=True)
    ]
    averaged = _over_levels(rows, levels)
    last = [
        with_interval(*interval((averaged[method] - averaged["joint"]).dropna().to_numpy(dtype=float), 0.0), decimals)
        if {method, "joint"} <= averaged.keys()
        else NONE
        for method in there
    ]
    columns = ["sparsity", *(label(method) for method in there)]
    return TextTable("MAE less Joint’s [95 % interval]", columns, [*lines, [AVERAGED, *last]])


def _cell(table: pd.DataFrame, method: str, decimals: int) -> str:
    if method not in table.index:
        return NONE
    difference, low, high = (float(table[name][method]) for name in ("difference", "low", "high"))
    return with_interval(difference, low, high, decimals)


def _width(table: TextTable) -> int:
    """Return the width of a table in a terminal, with two spaces between columns."""
    return sum(max(map(len, column)) + 2 for column in zip(table.columns, *table.rows, strict=True)) - 1


def _for_terminal(table: TextTable) -> TextTable:
    """Shorten a table that is too wide: means without deviations, or one line per method averaged over the levels."""
    if table.rows and table.rows[-1][0] == AVERAGED:
        if _width(table) <= TERMINAL:
            return table
        lines = [[method, cell] for method, cell in zip(table.columns[1:], table.rows[-1][1:], strict=True)]
        return TextTable(f"{table.title}, averaged over the levels", ["method", "difference"], lines)
    if len(table.columns) - 1 <= MOST_WITH_DEVIATION:
        return table
    return TextTable(table.title, table.columns, [[cell.partition(" ±")[0] for cell in row] for row in table.rows])


def _verdict(rows: Sequence[Row], means: pd.DataFrame | None, claims: Sequence[Mapping[str, Any]]) -> str:
    """Who predicts best at how many levels, whether that is chance, and how many of the paper's claims hold."""
    if means is None:
        return "No fit has come to an end yet."
    plain = [str(method) for method in means if method in METHODS and METHODS[str(method)].family != "network"]
    if means.shape[1] - len(plain) > 1:  # the paper's question is which network is best; y is linear, so ridge wins
        means = means.drop(columns=plain)
    else:
        plain = []
    means = means.dropna(thresh=min(2, means.shape[1]))  # a method that is alone at a level has won nothing
    if means.empty:
        return "No sparsity level has the results of two methods yet: there is nothing to compare."
    best = [str(line.idxmin()) for _, line in means.iterrows()]
    winner = "joint" if "joint" in means else max(dict.fromkeys(best), key=best.count)
    finding = f"{label(winner)} has the lowest mean error at {best.count(winner)} of {len(means)} sparsity levels"
    finding += " among the networks" if plain else ""
    averaged = _over_levels(rows, list(means.index))
    others = {method: float(values.mean()) for method, values in averaged.items() if method in means}
    others.pop(winner, None)
    if winner in averaged and others:
        rival = min(others, key=others.__getitem__)
        kind = "network" if plain else "method"
        finding += (
            f"; averaged over the levels its MAE is {averaged[winner].mean():.3g}, that of the best other {kind} "
            f"({label(rival)}) {others[rival]:.3g}{_chance(averaged[rival] - averaged[winner])}"
        )
    beside = [f"{label(method)} has {averaged[method].mean():.3g}" for method in plain if method in averaged]
    finding += f"; {', '.join(beside)}" if beside else ""
    return f"{finding}. {claims_sentence(claims)}" if claims else f"{finding}."


def _over_levels(rows: Sequence[Row], levels: Sequence[float]) -> dict[str, pd.Series[float]]:
    """Mean error over all levels by repeat, of the methods that have them all."""
    frames = [score_frame([row for row in rows if row.get("sparsity") == level], "mae") for level in levels]
    shared = [method for method in frames[0] if all(method in frame for frame in frames)]
    whole = {str(m): pd.concat([frame[m] for frame in frames], axis=1).mean(axis=1, skipna=False) for m in shared}
    return {method: values.dropna() for method, values in whole.items() if values.notna().any()}


def _chance(difference: pd.Series[float]) -> str:
    """Whether the difference of two methods on the same draws could be chance: repeats are draws of their own."""
    shared = difference.dropna().to_numpy(dtype=float)
    _, low, high = interval(shared, 0.0)
    if np.isnan(low) and len(shared) > 1:
        return f", and {NO_INTERVAL}"
    if np.isnan(low):
        return ", and one repeat cannot tell whether that difference is chance"
    return ", a difference that could be chance" if low <= 0.0 <= high else ", a difference beyond chance"


def claims_sentence(claims: Sequence[Mapping[str, Any]]) -> str:
    """How many of the paper's claims hold."""
    held, failed, level, never, unsure = (sum(claim["verdict"] == verdict for claim in claims) for verdict in VERDICTS)
    if held == len(claims) > 1:
        return f"All {held} of the paper’s claims that this experiment can test hold."
    counts = [
        f"{held} {'holds' if held == 1 else 'hold'}",
        f"{failed} {'does' if failed == 1 else 'do'} not",
        *([f"{level} {'is' if level == 1 else 'are'} level"] if level else []),
        *([f"{never} cannot be told on this cohort with any number of repeats"] if never else []),
        *([f"{unsure} {'is' if unsure == 1 else 'are'} open"] if unsure else []),
    ]
    plural = "" if len(claims) == 1 else "s"
    return f"Of the paper’s {len(claims)} claim{plural} that this experiment can test, {', '.join(counts)}."


def _how(rows: Sequence[Row], about: Mapping[str, Any], repeats: int) -> list[str]:
    tuned = sorted({row["sparsity"] for row in rows if (row.get("n_candidates") or 0) > 1})
    at = f"at sparsity {' and '.join(f'{level:g}' for level in tuned)}" if tuned else "at one sparsity level"
    paired_by = (
        "Differences to Joint are paired by draw. Draws are independent, so their intervals are those of the plain "
        "paired t-test; one draw, or draws that all differ by the same amount, give none."
    )
    return [
        f"Each of {repeats} repeats draws a new precision, new rows from it and a new split{_sizes(rows)}, the same "
        "for every method. Bands and ± are standard deviations over the repeats.",
        *([paired_by] if "joint" in methods_of(rows) else []),
        f"Parameters are chosen on validation rows {at} and reused at the other levels, as in the paper; the test rows "
        "are used once, at the end.",
    ]


def _sizes(rows: Sequence[Row]) -> str:
    """' (60 rows to learn from, 20 to tune on, 20 to test)'; nothing where the rows do not say."""
    names = ("n_train", "n_validation", "n_test")
    known = [[int(row[name]) for name in names] for row in rows if all(is_number(row.get(name)) for name in names)]
    if not known:
        return ""
    train, validation, test = (int(np.median(side)) for side in zip(*known, strict=True))
    return f" ({train} rows to learn from, {validation} to tune on, {test} to test)"
