"""How a claim of the paper is judged: by paired differences that count only where chance is excluded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import stats

from precisionnet.experiments.methods.registry import label
from precisionnet.experiments.pairing import LEVEL, is_number, paired
from precisionnet.experiments.runner.jobs import Row

Judged = tuple[str, bool | None, str, str]
"""The claim, whether it holds (None: open), the numbers, and the rule."""


def best(claim: str, rows: Sequence[Row], others: Sequence[str], *, resampled: bool) -> Judged | None:
    """Whether Joint's MAE is lower than that of all others."""
    table = paired(rows, "joint", "mae", resampled=resampled)
    table = table.loc[[method for method in others if method in table.index]]
    if table.empty:
        return None
    holds = False if (table["high"] < 0).any() else True if (table["low"] > 0).all() else None
    differences = [
        f"{label(str(method))} {interval(line.difference, line.low, line.high)}" for method, line in table.iterrows()
    ]
    rule = "every paired difference to Joint is above zero with its 95 % interval"
    return claim, holds, f"MAE less Joint's: {', '.join(differences)}", rule


def worse_than(rows_by_level: Mapping[float, Sequence[Row]], ours: str, others: Sequence[str]) -> tuple[list[str], int]:
    """Where another method's MAE is lower than ours beyond chance, and how many comparisons there were.

    All comparisons together keep to 5 % (Bonferroni): of a dozen by themselves, one in four tables would show some.
    """
    found = []
    for level, here in rows_by_level.items():
        table = paired([row for row in here if row["method"] in (ours, *others)], ours, "mae", resampled=False)
        for method, line in table[table["low"].notna()].iterrows():
            found.append((f"{label(str(method))} at {level:g}", _chance_of_lower(line.difference, line.high, line.n)))
    return [where for where, p in found if p * len(found) < 1.0 - LEVEL], len(found)


def _chance_of_lower(difference: float, high: float, n: float) -> float:
    """How likely a difference as far below zero would be by chance (two-sided); 1 where it is not below."""
    if difference >= 0.0:
        return 1.0
    error = (high - difference) / stats.t.ppf(0.5 + LEVEL / 2.0, n - 1)
    return float(2.0 * stats.t.cdf(difference / error, n - 1))


def ordered(claim: str, rows: Sequence[Row], better: str, worse: str, metric: str, *, resampled: bool) -> Judged | None:
    """Whether the error of ``better`` is the lower one."""
    table = paired([row for row in rows if row["method"] in (better, worse)], better, metric, resampled=resampled)
    if worse not in table.index:
        return None
    difference, low, high = (float(table[column][worse]) for column in ("difference", "low", "high"))
    numbers = f"{label(worse)} less {label(better)}: {interval(difference, low, high)}"
    rule = "the paired difference is above zero with its 95 % interval"
    return claim, True if low > 0 else False if high < 0 else None, numbers, rule


def no_zeros(rows: Sequence[Row]) -> Judged | None:
    """Of the sample precision."""
    zeros = [row["n_zeros"] for row in rows if row["method"] == "sample" and is_number(row.get("n_zeros"))]
    if not zeros:
        return None
    return "Sample's precision has no zeros", max(zeros) == 0, f"at most {max(zeros)} zeros", "no entry is exactly zero"


def zero_shares(rows: Sequence[Row], method: str) -> list[float]:
    """Of the entries of theta, fit by fit."""
    return [1.0 - row["density"] for row in rows if row["method"] == method and is_number(row.get("density"))]


def mean(rows: Sequence[Row], method: str, metric: str) -> float:
    """Over the rows of a method that have the metric; NaN where none has."""
    values = [row[metric] for row in rows if row["method"] == method and is_number(row.get(metric))]
    return float(np.mean(values)) if values else np.nan


def interval(difference: float, low: float, high: float) -> str:
    """+1.2 [+0.8, +1.6]; one repeat, or repeats that all differ by the same amount, give no interval."""
    return f"{difference:+.3g}" + (" (no interval)" if np.isnan(low) else f" [{low:+.3g}, {high:+.3g}]")
