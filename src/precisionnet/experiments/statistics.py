"""What the rows of an experiment say: means, paired differences with an interval, and two sentences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from precisionnet.experiments.metrics import METRIC_LABELS
from precisionnet.experiments.pairing import failed, is_number, methods_of, paired
from precisionnet.experiments.runner.jobs import Row
from precisionnet.experiments.verdict import verdict

__all__ = ["paired", "summarise", "verdict"]

NOT_SUMMARISED = frozenset({"repeat", "seed", "n_train", "n_validation", "n_test"})


def summarise(rows: Sequence[Row], by: Sequence[str] = ()) -> pd.DataFrame:
    """Mean, standard deviation and number of repeats, indexed by ``by``, method and metric.

    ``std`` is that of a sample (n - 1), NaN where there is one repeat. Fits that failed count for nothing.
    """
    fine = [row for row in rows if not failed(row)]
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in fine:
        groups.setdefault(tuple(row.get(name) for name in by), []).append(row)
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


def _metrics(rows: Sequence[Row], by: Sequence[str]) -> list[str]:
    """Every number that a row holds: first those with a label, in the order of every table."""
    found = {name for row in rows for name in row if _has(row, name)} - NOT_SUMMARISED - set(by)
    return [*(name for name in METRIC_LABELS if name in found), *sorted(found - set(METRIC_LABELS))]


def _has(row: Row, metric: str) -> bool:
    return is_number(row.get(metric))
