"""What the rows of an experiment say: means, paired differences with an interval, and two sentences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from precisionnet.experiments.metrics import HIGHER_IS_BETTER, METRIC_LABELS
from precisionnet.experiments.pairing import failed, is_number, methods_of, paired
from precisionnet.experiments.runner.jobs import Row
from precisionnet.experiments.verdict import verdict

__all__ = ["paired", "summarise", "summarise_paired", "verdict"]

SCORES = HIGHER_IS_BETTER | {"mae", "mse", "rmse", "log_loss", "l1_error", "frobenius_error"}
"""What a method is better or worse by; a density or a time is not, nor a number that parameters were chosen by."""
NOT_SUMMARISED = frozenset({"repeat", "seed", "n_train", "n_validation", "n_test"})


def summarise(rows: Sequence[Row], by: Sequence[str] = ()) -> pd.DataFrame:
    """Mean, standard deviation and number of repeats, indexed by ``by``, method and metric.

    ``std`` is that of a sample (n - 1), NaN where there is one repeat. Fits that failed count for nothing.
    """
    fine = [row for row in rows if not failed(row)]
    groups = _settings(fine, by)
    metrics = _metrics(fine, by)
    lines = [
        (*setting, method, metric, values.mean(), values.std(ddof=1) if len(values) > 1 else np.nan, len(values))
        for setting, here in groups.items()
        for method in methods_of(here)
        for metric in metrics
        if len(values := np.array([row[metric] for row in here if row["method"] == method and _has(row, metric)]))
    ]
    index = [*by, "method", "metric"]
    return pd.DataFrame(lines, columns=[*index, "mean", "std", "n"]).set_index(index)


def summarise_paired(rows: Sequence[Row], by: Sequence[str] = (), *, resampled: bool) -> pd.DataFrame:
    """``summarise``, and the difference of every score to that of joint on the same repeats: difference, low, high.

    NaN for joint itself, for what is no score, and where there is no difference or no interval to be had.
    """
    table = summarise(rows, by)
    columns = ["difference", "low", "high"]
    lines = {}
    for setting, here in _settings([row for row in rows if not failed(row)], by).items():
        for metric in sorted(SCORES.intersection(_metrics(here, by))):
            for method, line in paired(here, "joint", metric, resampled=resampled).iterrows():
                lines[(*setting, method, metric)] = [line[name] for name in columns]
    found = [lines.get(key, [np.nan] * 3) for key in table.index]
    return table.join(pd.DataFrame(found, index=table.index, columns=columns, dtype=float))


def _settings(rows: Sequence[Row], by: Sequence[str]) -> dict[tuple[object, ...], list[Row]]:
    """The rows of each setting, in the order they come."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(name) for name in by), []).append(row)
    return groups


def _metrics(rows: Sequence[Row], by: Sequence[str]) -> list[str]:
    """Every number that a row holds: first those with a label, in the order of every table."""
    found = {name for row in rows for name in row if _has(row, name)} - NOT_SUMMARISED - set(by)
    return [*(name for name in METRIC_LABELS if name in found), *sorted(found - set(METRIC_LABELS))]


def _has(row: Row, metric: str) -> bool:
    return is_number(row.get(metric))
