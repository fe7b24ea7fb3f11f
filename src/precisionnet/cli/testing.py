"""``--folds``, ``--hold-out`` and ``--time``: how a fit is to be tested, from the columns that the options name."""

from __future__ import annotations

from typing import Any

import pandas as pd

from precisionnet.cli import console
from precisionnet.datasets import Dataset
from precisionnet.datasets.table_files import find
from precisionnet.errors import shown
from precisionnet.evaluation import Folds, group_folds, people_folds, time_folds
from precisionnet.evaluation.folds import people_of
from precisionnet.types import TaskName

TIME_NAMES = ("date", "time", "year", "month", "day", "week", "datetime", "timestamp")


def folds_to_test(
    data: Dataset, task: TaskName, seed: int, *, n_folds: int | None, hold_out: str | None, time: str | None
) -> Folds | None:
    """Return the folds that were asked for; None for what the networks leave out. A column of dates gives a hint."""
    given = {} if n_folds is None else {"n_folds": n_folds}
    if hold_out is not None:
        return group_folds(data, _column(data, hold_out), task, seed=seed, **given)
    if time is not None:
        return time_folds(data, _column(data, time), task, **given)
    hint = time_hint(data)
    if hint is not None:
        console.note(hint)
    return None if n_folds is None else people_folds(data, task, n_folds, seed)


def time_hint(data: Dataset) -> str | None:
    """Say that rows may be in the order of time, where a column looks like it; None where none does."""
    beside = pd.DataFrame(index=data.X.index) if data.covariates is None else data.covariates
    for frame in (beside, data.X):
        for name, values in frame.items():
            if str(name).lower() in TIME_NAMES or _is_date(values):
                return (
                    f"Column {shown(str(name))} looks like time. Folds mix past and future; where the future is to be "
                    f"predicted, test with --time {name}."
                )
    return None


def _is_date(values: pd.Series[Any]) -> bool:
    """Whether a column holds dates, or text that all looks like 2024-01-31."""
    if pd.api.types.is_datetime64_any_dtype(values.dtype):
        return True
    if pd.api.types.is_numeric_dtype(values.dtype) or not len(known := values.dropna().astype(str)):
        return False
    return bool(known.str.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T].*)?").all())


def _column(data: Dataset, name: str) -> pd.Series[Any]:
    """Return a column that was loaded beside the features; the id or the person where it is none of these."""
    found = None if data.covariates is None else find(name, data.covariates.columns)
    if data.covariates is not None and found is not None:
        return data.covariates[found].rename(name)
    return pd.Series(people_of(data), index=data.X.index, name=name)
