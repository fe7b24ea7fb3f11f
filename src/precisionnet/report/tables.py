"""The tables of an experiment as text, the same for the page and the terminal, made from stored rows alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from precisionnet.errors import printable
from precisionnet.evaluation.metrics import HIGHER_IS_BETTER, METRIC_LABELS, headline
from precisionnet.evaluation.statistics import methods_of, paired, score_table
from precisionnet.runner.jobs import Row

NONE = "–"
PERCENT = ("accuracy", "balanced_accuracy")
NO_INTERVAL = "no interval"
"""Of a difference that cannot be told from chance or from certainty, though there are several repeats."""


@dataclass(frozen=True)
class Line:
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
class Comparison:
    """What is shown of a comparison, best method first."""

    metric: str
    score_label: str
    reference: str | None
    """What the differences are to: joint where it took part."""
    scores: pd.DataFrame
    """A row a repeat, a column a method, as shown (accuracies in percent)."""
    differences: pd.DataFrame
    """A row a method: difference, low, high."""
    lines: list[Line]


def score_frame(rows: Sequence[Row], metric: str) -> pd.DataFrame:
    """A row a repeat, a column a method; NaN where a fit failed or has not come yet."""
    repeats = sorted({int(row["repeat"]) for row in rows})
    return score_table(rows, metric).reindex(index=pd.Index(repeats, name="repeat"), columns=methods_of(rows))


def compare_methods(rows: Sequence[Row], about: Mapping[str, Any]) -> Comparison:
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
            Line(
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
    return Comparison(metric, f"{name} ({unit})" if unit else name, reference, scores, differences, lines)


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
    """For a whole column: three significant digits of its middle value, at most four after the point."""
    known = np.abs(np.asarray(means, dtype=float))
    known = known[np.isfinite(known) & (known > 0)]
    return int(np.clip(2 - np.floor(np.log10(np.median(known))), 0, 4)) if len(known) else 2


def brief(seconds: float) -> str:
    """Seconds as a person would round them."""
    return f"{seconds:.1f}" if seconds < 9.95 else f"{seconds:,.0f}"
