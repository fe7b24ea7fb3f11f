"""Methods compared on the same repeats, with an interval that allows for repeats that share rows.

Repeats of one table have most of their rows in common, so their differences are not independent and a plain t-test
finds too much. The corrected resampled t-test (Nadeau and Bengio, Inference for the generalization error, Machine
Learning 52, 2003) widens the variance of the mean of n differences from s^2 / n to s^2 (1/n + n_test/n_train).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from precisionnet.experiments.methods.registry import METHODS
from precisionnet.experiments.runner.jobs import Row

LEVEL = 0.95
"""Of every interval."""
SAME = 1e-9
"""Differences that deviate by less than this share of their mean are one and the same, but for rounding."""


def paired(
    rows: Sequence[Row], reference: str = "joint", metric: str = "mae", *, resampled: bool = True
) -> pd.DataFrame:
    """Method minus ``reference`` on the same repeats: difference, low, high (95 %) and n, indexed by method.

    One repeat has no interval (NaN), nor have repeats that all differ by the same amount. With ``resampled=False``
    repeats are taken for independent draws of the data, and the interval is that of the plain paired t-test.
    """
    table = score_table(rows, metric)
    ratio = _test_to_train(rows) if resampled else 0.0
    lines = {}
    for method in table.columns:
        if method != reference and reference in table:
            difference = (table[method] - table[reference]).dropna().to_numpy()
            lines[method] = (*interval(difference, ratio), len(difference))
    frame = pd.DataFrame.from_dict(lines, orient="index", columns=["difference", "low", "high", "n"])
    return frame.rename_axis("method")


def interval(differences: np.ndarray[Any, Any], test_to_train: float) -> tuple[float, float, float]:
    """Mean difference and its 95 % interval by the corrected resampled t-test; NaN where there is none to be had.

    Scores such as accuracies are discrete, so that a few repeats can all differ by the same amount by chance. Their
    deviation of 0 is no certainty: there is no interval then, unless nothing differs at all.
    """
    n = len(differences)
    if n == 0:
        return np.nan, np.nan, np.nan
    mean = float(np.mean(differences))
    if n == 1:
        return mean, np.nan, np.nan
    deviation = float(np.std(differences, ddof=1))
    if mean != 0.0 and deviation <= SAME * abs(mean):
        return mean, np.nan, np.nan
    error = deviation * np.sqrt(1.0 / n + test_to_train)
    half = float(stats.t.ppf(0.5 + LEVEL / 2.0, n - 1) * error)
    return mean, mean - half, mean + half


def score_table(rows: Sequence[Row], metric: str) -> pd.DataFrame:
    """A row a repeat, a column a method; NaN where there is no result. The rows are those of one setting."""
    scored = [row for row in rows if not failed(row) and is_number(row.get(metric))]
    cells = {(row["repeat"], str(row["method"])): float(row[metric]) for row in scored}
    if len(cells) < len(scored):
        raise ValueError("A method has two rows of one repeat: compare the rows of one setting at a time.")
    methods, repeats = methods_of(scored), sorted({repeat for repeat, _ in cells})
    values = [[cells.get((repeat, method), np.nan) for method in methods] for repeat in repeats]
    return pd.DataFrame(values, index=pd.Index(repeats, name="repeat"), columns=methods, dtype=float)


def methods_of(rows: Sequence[Row]) -> list[str]:
    """The methods that the rows are of, in the order of every table."""
    found = {str(row["method"]) for row in rows}
    return [*(name for name in METHODS if name in found), *sorted(found - set(METHODS))]


def failed(row: Row) -> bool:
    """Whether the row tells why there is no result."""
    return isinstance(row.get("error"), str)


def is_number(value: Any) -> bool:
    """A finite one; true and false are none."""
    return isinstance(value, int | float | np.number) and not isinstance(value, bool) and bool(np.isfinite(value))


def _test_to_train(rows: Sequence[Row]) -> float:
    ratios = [row["n_test"] / row["n_train"] for row in rows if not failed(row)]
    return float(np.mean(ratios)) if ratios else 0.0
