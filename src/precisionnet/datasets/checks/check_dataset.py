"""The list of the checks. Each is a small function that returns sentences; its thresholds stand beside it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from precisionnet.datasets.checks.columns import coded_target, coded_values
from precisionnet.datasets.checks.columns import Columns, constant_columns, huge_values, missing_values, outliers
from precisionnet.datasets.checks.finding import Finding, column_list, counted, drop_options
from precisionnet.datasets.checks.redundancy import repeated_columns, repeated_rows, totals
from precisionnet.datasets.checks.site import site_confounding
from precisionnet.datasets.checks.check_dataset import people, size
from precisionnet.datasets.checks.target import leakage, target_facts
from precisionnet.datasets.validation import MIN_ROWS
from precisionnet.datasets.dataset import Dataset
from precisionnet.types import TaskName


def check_dataset(data: Dataset, task: TaskName | None = None, missing: str = "error") -> list[Finding]:
    """Facts, then what may mislead, check by check; the same data gives the same sentences in the same order.

    ``task`` says what the target is; without it that is guessed, as ``precisionnet fit`` does. ``missing`` is the
    parameter of the estimators that says what becomes of missing values.
    """
    text = [str(name) for name, kind in data.X.dtypes.items() if not pd.api.types.is_numeric_dtype(kind)]
    found = [Finding("warning", "loading", sentence) for sentence in data.doubts]
    if text:
        sentence = f"{column_list(text)} hold{'s' * (len(text) == 1)} text, not numbers: leave out with "
        found.append(Finding("error", "text", sentence + drop_options(text) + "."))
    X = data.X.drop(columns=text)
    if len(X) < MIN_ROWS or X.shape[1] < 2:
        sentence = f"{counted(len(X), 'row')} and {counted(X.shape[1], 'column')} of numbers: a fit needs at least "
        return [*found, Finding("error", "size", f"{sentence}{MIN_ROWS} rows and 2 columns; bring more.")]
    names = [str(data.original_names.get(str(name), name)) for name in X.columns]
    facts = target_facts(data.y, task)
    found += [*size(data, X.shape[1]), *facts, *people(data)]
    huge = huge_values(X, names)
    if huge:
        return [*found, *huge]  # nothing else can be computed with them
    with np.errstate(over="ignore", invalid="ignore"):
        columns = Columns.of(X, names)
        found += missing_values(columns, filled_in=missing != "error")
        usable = all(finding.level != "error" for finding in facts)
        target_codes, y = coded_target(data.y if usable else None)
        codes, is_coded = coded_values(columns)
        found += [*target_codes, *codes, *constant_columns(columns)]
        repeated, distinct = repeated_columns(columns)
        found += [*repeated, *totals(columns, distinct), *repeated_rows(columns, data.groups)]
        found += [*outliers(columns, is_coded), *site_confounding(y, data.site, task), *leakage(columns, y, task)]
    return found
