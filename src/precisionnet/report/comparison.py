"""The page of a comparison: which method predicts the target best here, by how much, and whether that is chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from precisionnet import plots
from precisionnet.errors import printable
from precisionnet.evaluation.methods import label
from precisionnet.evaluation.metrics import HIGHER_IS_BETTER, METRIC_LABELS, PERCENT, headline
from precisionnet.evaluation.protocol import HELD_OUT
from precisionnet.evaluation.statistics import apart, failed, paired, shift_costs
from precisionnet.evaluation.verdict import shift_verdict, verdict
from precisionnet.report.page import (
    NONE,
    PageParts,
    TextTable,
    brief,
    decimals_of,
    labels,
    plus_minus,
    score_frame,
    with_interval,
)
from precisionnet.runner.jobs import Row

NO_INTERVAL = "no interval"
"""Shown for a difference that has no interval although there are several repeats: all of them differ by the same."""
MEASURES = {
    "regression": ("mae", "mse", "rmse", "r2", "r"),
    "classification": ("accuracy", "balanced_accuracy", "auc", "log_loss"),
}
ALSO = (
    "edges",
    "n_near_zeros",
    "density",
    "l1_error",
    "frobenius_error",
    "edge_f1",
    "edge_auc",
    "fit_seconds",
    "predict_seconds",
)
"""Measures of the graph, where there is one, and of the time that the chosen model took."""


@dataclass(frozen=True)
class MethodLine:
    """A method in the table of a comparison; every cell is text, empty where there is nothing to say."""

    method: str
    own: bool
    score: str
    paper: str
    difference: str
    meaning: str
    zeros: str
    paper_zeros: str
    seconds: str


@dataclass(frozen=True)
class ComparisonTable:
    """What is shown of a comparison, best method first."""

    metric: str
    score_label: str
    reference: str | None
    """The method that the others are compared with: joint, if it took part."""
    scores: pd.DataFrame
    """One row per repeat and one column per method, as shown (accuracies in percent)."""
    differences: pd.DataFrame
    """One row per method: difference, low, high."""
    lines: list[MethodLine]


def comparison_parts(rows: Sequence[Row], about: Mapping[str, Any]) -> PageParts:
    """Return everything but what stands on every page."""
    everything, (rows, left_out) = rows, apart(rows)
    table = compare_methods(rows, about)
    task, target = about.get("task", "regression"), printable(str(about.get("target") or "the target"))
    n = len(table.scores)
    names = labels(rows)
    caption = f"{table.score_label} of every method in every repeat."
    with plots.styled():
        figures: dict[str, tuple[Any, str]] = {
            "repeats": (plots.repeats(table.scores, names, f"{table.score_label} on test rows"), caption)
        }
        if table.reference is not None:
            axis = f"{METRIC_LABELS.get(table.metric, table.metric)}: difference to {label(table.reference)}"
            drawn = plots.differences(table.differences, names, table.reference, _with_unit(axis, table.score_label))
            figures["differences"] = (drawn, f"Difference of every method to {label(table.reference)}.")
    published = about.get("published") or {}
    context = {
        "lines": table.lines,
        "heading": "Accuracy" if table.metric in PERCENT else "Error",
        "score_label": table.score_label,
        "reading": _reading(table, target),
        "difference_label": "" if table.reference is None else f"Difference to {label(table.reference)}",
        "reference_label": "" if table.reference is None else label(table.reference),
        "compared": table.reference is not None and n > 0,
        "zeros": any(line.zeros for line in table.lines),
        "published": any(line.paper for line in table.lines),
        "published_zeros": any(line.paper_zeros for line in table.lines),
        "table_notes": _table_notes(table, published),
        "repeats_caption": _repeats_caption(table),
        "differences_caption": _differences_caption(table),
        **_measures(rows, task, table),
        "shift": None,
    }
    unit = printable(str(about.get("unit") or ""))
    answer, terminal = verdict(rows, task, target, unit), [terminal_table(table)]
    if left_out:
        group = printable(str(about.get("hold_out") or "group"))
        shift = shift_table(everything, table, group)
        context["shift"] = {"group": group, "columns": shift.columns, "lines": shift.rows, "notes": _shift_notes(about)}
        answer = f"{answer} {shift_verdict(everything, task, target, group, unit)}"
        terminal.append(shift)
    return PageParts(
        answer,
        "comparison.html.j2",
        context,
        figures,
        {name: figure for name, (figure, _) in figures.items()},
        _how(rows, about),
        _facts(rows, about, n),
        terminal,
        [HELD_OUT, "repeat"] if left_out else ["repeat"],
    )


def shift_table(rows: Sequence[Row], table: ComparisonTable, group: str) -> TextTable:
    """Ordinary splits and groups left out whole, side by side; the best on groups left out first."""
    costs = shift_costs(rows, table.metric)
    scale = 100.0 if table.metric in PERCENT else 1.0
    higher = table.metric in HIGHER_IS_BETTER
    costs[["ordinary", "left_out", "cost"]] *= scale
    costs = costs.sort_values("left_out", ascending=not higher, kind="stable", na_position="last")
    decimals = decimals_of(costs["ordinary"])
    reference = "joint" if "joint" in costs["left_out"].dropna().index else None
    differences = _differences(apart(rows)[1], reference, table.metric, scale, [str(name) for name in costs.index])
    lines = []
    for method, line in costs.iterrows():
        ordinary, left_out, cost = (
            NONE if np.isnan(value) else f"{value:{sign}.{decimals}f}"
            for value, sign in ((line["ordinary"], ""), (line["left_out"], ""), (line["cost"], "+"))
        )
        difference, _ = _difference(differences, str(method), higher, decimals)
        lines.append([str(method), ordinary, left_out, cost, *([difference] if reference else [])])
    columns = ["method", "ordinary", "left out", "cost", *([f"to {reference} [95 %]"] if reference else [])]
    return TextTable(f"{table.score_label} where whole groups ({group}) are left out:", columns, lines)


def _shift_notes(about: Mapping[str, Any]) -> list[str]:
    n = about.get("n_groups")
    many = "The groups were" if n is None else f"The {n:,} groups were"
    return [
        f"{many} divided into folds of about as many rows. Every fold was tested once by models that had seen none of "
        "its groups; a fifth of the other rows chose their parameters.",
        "Cost: how much worse a method is there than on ordinary splits, in which it has seen every group. The guess "
        "by group is not to be had at a group that nobody has seen.",
    ]


def compare_methods(rows: Sequence[Row], about: Mapping[str, Any]) -> ComparisonTable:
    """The main table: score, the paper's, difference to the reference, zeros of the graph, seconds."""
    metric = headline(about.get("task", "regression"))
    scale = 100.0 if metric in PERCENT else 1.0
    scores = scale * score_frame(rows, metric)
    higher = metric in HIGHER_IS_BETTER
    order = scores.mean().sort_values(ascending=not higher, kind="stable", na_position="last").index
    scores = scores[list(order)]
    reference = _reference(scores)
    differences = _differences(rows, reference, metric, scale, [m for m in order if m != reference])
    zeros, seconds = score_frame(rows, "n_zeros"), score_frame(rows, "tune_seconds")
    published = (about.get("published") or {}).get("rows", {})
    decimals, lines = decimals_of(scores.mean()), []
    for method in scores.columns:
        known = published.get(method, {})
        difference, meaning = _difference(differences, method, higher, decimals)
        meaning = NO_INTERVAL if difference and not meaning and len(scores) > 1 else meaning
        lines.append(
            MethodLine(
                method,
                method == "joint",
                "failed" if scores[method].isna().all() else plus_minus(scores[method], decimals),
                str(known.get(metric, "")),
                difference,
                meaning,
                "" if zeros[method].isna().all() else plus_minus(zeros[method], 0),
                str(known.get("n_zeros", "")),
                "" if seconds[method].isna().all() else brief(float(seconds[method].mean())),
            )
        )
    unit = "%" if metric in PERCENT else printable(str(about.get("unit") or ""))
    name = METRIC_LABELS.get(metric, metric)
    return ComparisonTable(metric, f"{name} ({unit})" if unit else name, reference, scores, differences, lines)


def _reference(scores: pd.DataFrame) -> str | None:
    """Joint, or the best method where joint is not among them; nothing where only one method has a result."""
    known = [str(method) for method in scores.columns if scores[method].notna().any()]
    if len(known) < 2:
        return None
    return "joint" if "joint" in known else known[0]


def _differences(
    rows: Sequence[Row], reference: str | None, metric: str, scale: float, methods: Sequence[str]
) -> pd.DataFrame:
    columns = ["difference", "low", "high"]
    if reference is None:
        return pd.DataFrame(columns=columns, dtype=float)
    table = paired(rows, reference=reference, metric=metric)
    return scale * table.reindex(list(methods))[columns]


def _difference(table: pd.DataFrame, method: str, higher: bool, decimals: int) -> tuple[str, str]:
    if method not in table.index or np.isnan(table["difference"][method]):
        return "", ""
    value, low, high = (float(table[column][method]) for column in ("difference", "low", "high"))
    text = with_interval(value, low, high, decimals)
    if not np.isfinite(low):
        return text, ""
    if low <= 0.0 <= high:
        return text, "could be chance"
    return text, "better" if (value > 0) == higher else "worse"


def terminal_table(table: ComparisonTable) -> TextTable:
    """The main table within 80 columns: the paper's zeros and the words are left to the page."""
    columns = ["method", table.score_label]
    paper = any(line.paper for line in table.lines)
    zeros = any(line.zeros for line in table.lines)
    columns += ["paper"] if paper else []
    columns += [f"to {table.reference} [95 %]"] if table.reference else []
    columns += ["zeros"] if zeros else []
    rows = []
    for line in table.lines:
        cells = [line.method, line.score]
        cells += [line.paper] if paper else []
        cells += [line.difference] if table.reference else []
        cells += [line.zeros.replace(",", "")] if zeros else []
        rows.append([*cells, line.seconds])
    return TextTable("", [*columns, "seconds"], rows)


def _reading(table: ComparisonTable, target: str) -> str:
    """Explain how to read the main table."""
    better = "Higher" if table.metric in HIGHER_IS_BETTER else "Lower"
    what = (
        f"Accuracy is the share of test rows whose {target} was predicted right."
        if table.metric in PERCENT
        else f"MAE is how far predictions of {target} are off on average."
    )
    n = len(table.scores)
    spread = f"mean ± standard deviation over {n} repeats" if n > 1 else "one repeat"
    return f"{what} {better} is better; {spread}, best method first."


def _table_notes(table: ComparisonTable, published: Mapping[str, Any]) -> list[str]:
    notes = []
    if any("[" in line.difference for line in table.lines):
        notes.append(
            "In brackets: 95 % interval of the difference between the two methods on the same splits. Where it "
            "contains 0, the difference could be chance."
        )
    elif len(table.scores) == 1:
        notes.append("One repeat gives no interval: more repeats tell a difference from chance.")
    if _some_without_interval(table):
        notes.append("No interval: one repeat in common, or repeats that all differ by the same amount, give none.")
    notes += _picked(table)
    if any(line.zeros for line in table.lines):
        notes.append("Zeros in θ: entries of the precision matrix that are exactly zero, pairs without an edge.")
    notes.append("Seconds: mean time of a repeat, tuning included, on one worker.")
    if published.get("caption"):
        notes.append(f"In the paper: {published['caption']}")
    return notes


def _picked(table: ComparisonTable) -> list[str]:
    """Say that the best of several methods is best by luck as well, where there was a choice."""
    known = sum(table.scores[method].notna().any() for method in table.scores)
    if table.reference == "joint" and known > 2:
        return ["The best other method was picked by these same test scores, which favours it a little."]
    if table.reference not in (None, "joint"):
        return ["The differences are to the best method, picked by these same test scores, which favours it a little."]
    return []


def _some_without_interval(table: ComparisonTable) -> bool:
    return any(line.meaning == NO_INTERVAL for line in table.lines)


def _repeats_caption(table: ComparisonTable) -> str:
    if len(table.scores) == 1:
        return "One repeat: one mark per method."
    return "Small marks are repeats, joined where the split is the same; the large mark is the mean ± one deviation."


def _differences_caption(table: ComparisonTable) -> str:
    if table.reference is None:
        return ""
    side = "left" if table.metric in HIGHER_IS_BETTER else "right"
    where = f"Methods to the {side} of the line do worse than {label(table.reference)}."
    where += "" if len(table.scores) == 1 else " A bar that crosses the line could be chance."
    return where + (" A mark without a bar has no interval." if _some_without_interval(table) else "")


def _measures(rows: Sequence[Row], task: str, table: ComparisonTable) -> dict[str, Any]:
    wanted = {name: METRIC_LABELS.get(name, name) for name in (*MEASURES[task], *ALSO)}
    frames = {name: score_frame(rows, name) for name in wanted}
    frames = {name: frame for name, frame in frames.items() if frame.notna().any(axis=None)}
    frames = {name: 100 * frame if name in PERCENT else frame for name, frame in frames.items()}
    digits = {
        name: 0 if name in ("edges", "n_near_zeros") else decimals_of(frame.mean()) for name, frame in frames.items()
    }
    lines = []
    for method in table.scores.columns:
        cells = [plus_minus(frame[method], digits[name]) for name, frame in frames.items()]
        if any(cell != NONE for cell in cells):
            lines.append((method, cells))
    names = [f"{wanted[name]} (%)" if name in PERCENT else wanted[name] for name in frames]
    return {"measures": lines, "measure_labels": names}


def _how(rows: Sequence[Row], about: Mapping[str, Any]) -> list[str]:
    fitted = [row for row in rows if not failed(row)]
    if not fitted:
        return ["No fit has come to an end yet."]
    repeats = len({row["repeat"] for row in fitted})
    sizes = [int(np.median([row.get(name) or 0 for row in fitted])) for name in ("n_train", "n_validation", "n_test")]
    times = "once" if repeats == 1 else f"anew in each of {repeats} repeats"
    return [
        f"The rows were split {times}: about {sizes[0]} to learn from, {sizes[1]} to tune on and {sizes[2]} to test. "
        f"{_people(about)}, and every method got the same splits (splits.csv).",
        f"{_chosen(fitted, about)} The test rows were used once, at the end.",
        "Differences are paired by split. Their intervals come from the corrected resampled t-test (Nadeau and Bengio, "
        "2003), which allows for repeats that share rows.",
    ]


def _chosen(fitted: Sequence[Row], about: Mapping[str, Any]) -> str:
    """Say how the parameters were chosen."""
    if about.get("tuned") is False:
        return (
            "Nothing was tuned: every method has its defaults, the plain ones scikit-learn’s on standardised features. "
            "Networks took the validation rows to choose their epoch, the plain methods left them alone."
        )
    tried, stopped = (sum(row.get(name) or 0 for row in fitted) for name in ("n_candidates", "n_stopped"))
    early = f", of which {stopped:,} were stopped early as hopeless" if stopped else ""
    return (
        f"Each method’s parameters were chosen on the validation rows alone: {tried:,} candidates were trained in all"
        f"{early}."
    )


def _people(about: Mapping[str, Any]) -> str:
    people, rows = about.get("n_people"), about.get("n_rows")
    if people is not None and people == rows:
        return "Every row counts as a person of its own"
    return "Rows of one person stay together" if people is None else f"Rows of one of {people:,} people stay together"


def _facts(rows: Sequence[Row], about: Mapping[str, Any], n: int) -> list[tuple[str, str]]:
    facts = [(about.get("n_rows"), "rows"), (about.get("n_features"), "columns"), (n, "repeats")]
    tried = sum(row.get("n_candidates") or 0 for row in rows)
    return [(f"{value:,}", what) for value, what in [*facts, (tried, "candidates trained")] if value]


def _with_unit(axis: str, score_label: str) -> str:
    unit = score_label.partition(" (")[2].rstrip(")")
    return f"{axis} ({unit})" if unit and unit != "%" else f"{axis} (points)" if unit else axis
