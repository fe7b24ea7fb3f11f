"""The list of the checks. Each is a small function that returns sentences; its thresholds stand beside it."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from precisionnet.datasets.checks.columns import (
    ColumnSummaries,
    coded_target,
    coded_values,
    constant_columns,
    huge_values,
    missing_values,
    outliers,
    row_numbers,
)
from precisionnet.datasets.checks.finding import Finding, column_list, counted
from precisionnet.datasets.checks.labels import encoding, label_columns
from precisionnet.datasets.checks.redundancy import repeated_columns, repeated_rows, totals
from precisionnet.datasets.checks.target import leakage, site_confounding, target_facts
from precisionnet.datasets.dataset import Dataset
from precisionnet.datasets.neuro.regions import parse_region
from precisionnet.datasets.validation import MIN_ROWS
from precisionnet.errors import dropping, shown, some
from precisionnet.preprocessing.column_kinds import columns_of_labels, is_label_column
from precisionnet.types import TaskName

FEWEST_PEOPLE = 3
ROWS_PER_COLUMN = 5
"""With fewer rows per column than this, correlations are so noisy that the edges change with the sample."""
_SESSION = re.compile(r"[_\-. ]?(ses|session|run|visit|scan|tp|timepoint|wave)[_\-]?\w{1,12}$", re.IGNORECASE)


def check_dataset(data: Dataset, task: TaskName | None = None, missing: str = "error") -> list[Finding]:
    """Say what is in a data set and what may mislead a fit, in plain sentences.

    The same data gives the same sentences in the same order: facts first, then check by check.

    Parameters
    ----------
    data : Dataset
        The rows.
    task : {"regression", "classification"} or None, default=None
        What the target is; None guesses it.
    missing : str, default="error"
        The parameter of the estimators: what becomes of missing values.

    Returns
    -------
    list of Finding
        Notes, warnings and errors.

    Examples
    --------
    >>> from precisionnet.datasets import make_gaussian_regression
    >>> found = check_dataset(make_gaussian_regression(n_samples=200, n_features=5, random_state=0))
    >>> found[0].sentence
    '200 rows, 5 columns.'
    """
    found = [Finding("warning", "loading", sentence) for sentence in data.doubts]
    wrong = [str(name) for name, kind in data.X.dtypes.items() if kind.kind == "c"]
    if wrong:
        sentence = f"{column_list(wrong)} hold{'s' * (len(wrong) == 1)} complex numbers: leave out with "
        found.append(Finding("error", "text", sentence + dropping(wrong) + "."))
    table = data.X.drop(columns=wrong) if wrong else data.X
    labels = [str(name) for name in columns_of_labels(table)]
    X = table.drop(columns=labels)
    if len(X) < MIN_ROWS or X.shape[1] + len(labels) < 2:
        sentence = f"{counted(len(X), 'row')} and {counted(X.shape[1] + len(labels), 'column')}: a fit needs at least "
        return [*found, Finding("error", "size", f"{sentence}{MIN_ROWS} rows and 2 columns; bring more.")]
    found += encoding(table, missing)
    if labels:
        found += label_columns(table[labels], data.y, filled_in=missing != "error")
    filled_in = missing != "error"
    if not X.shape[1]:
        coded = _coded(table)
        gaps = missing_values(coded, filled_in=True, labels=True) if filled_in else []
        same = repeated_rows(coded, data.groups)
        return [*found, *size(data, len(labels)), *target_facts(data.y, task), *people(data), *gaps, *same]
    names = [str(data.original_names.get(str(name), name)) for name in X.columns]
    facts = target_facts(data.y, task)
    found += [*size(data, X.shape[1] + len(labels)), *facts, *people(data)]
    huge = huge_values(X, names)
    if huge:
        return [*found, *huge]  # nothing else can be computed with them
    with np.errstate(over="ignore", invalid="ignore"):
        columns = ColumnSummaries.of(X, names)
        every = _coded(table) if labels else columns
        found += missing_values(every if filled_in else columns, filled_in=filled_in, labels=bool(labels))
        usable = all(finding.level != "error" for finding in facts)
        target_codes, y = coded_target(data.y if usable else None)
        codes, is_coded = coded_values(columns)
        found += [*target_codes, *codes, *constant_columns(columns), *row_numbers(columns)]
        repeated, distinct = repeated_columns(columns)
        found += [*repeated, *totals(columns, distinct)]
        found += repeated_rows(every, data.groups)
        found += [*outliers(columns, is_coded), *site_confounding(y, data.site, task), *leakage(columns, y, task)]
    return found


def same_rows(data: Dataset) -> list[Finding]:
    """Check only whether rows have the same values, for commands that make no other check."""
    usable = len(data) >= MIN_ROWS and not any(kind.kind == "c" for kind in data.X.dtypes) and data.X.shape[1]
    with np.errstate(over="ignore", invalid="ignore"):
        return repeated_rows(_coded(data.X), data.groups) if usable else []


def _coded(table: pd.DataFrame) -> ColumnSummaries:
    """A table in which a number stands for each label, so that rows can be compared."""
    codes = {
        name: pd.Series(pd.factorize(column)[0], column.index).astype(float).where(column.notna())
        if is_label_column(column)
        else column
        for name, column in table.items()
    }
    return ColumnSummaries.of(pd.DataFrame(codes, index=table.index), [str(name) for name in table])


def size(data: Dataset, n_columns: int) -> list[Finding]:
    """Rows, columns, people, sites; and rows against columns."""
    n = len(data)
    parts = [counted(n, "row"), counted(n_columns, "column")]
    if data.groups is not None:
        parts.append(counted(data.groups.nunique(), "person", "people"))
    if data.site is not None:
        parts.append(counted(data.site.nunique(), "site"))
    found = [Finding("note", "size", ", ".join(parts) + ".")]
    if n <= n_columns:
        sentence = (
            f"There are {counted(n, 'row')} for {counted(n_columns, 'column')}: the covariance has no inverse and the "
            "graph rests on the l1 penalty alone; read its edges with care, raise l1_scale=, or bring more rows."
        )
        found.append(Finding("note", "rows against columns", sentence))
    elif n < ROWS_PER_COLUMN * n_columns:
        sentence = (
            f"There are {n / n_columns:.1f} rows a column, fewer than {ROWS_PER_COLUMN}: weak edges will change from "
            "sample to sample; trust the strongest, or see which ones return with another random_state=."
        )
        found.append(Finding("note", "rows against columns", sentence))
    return found


def people(data: Dataset) -> list[Finding]:
    """People with several rows, and ids that look as if there were some."""
    who = data.groups if data.groups is not None else pd.Series(data.X.index, dtype=object)
    scans = who.astype(str).value_counts()
    several, things = scans[scans > 1], "scans" if of_brains(data) else "rows"
    if len(several) and len(scans) >= FEWEST_PEOPLE:
        name = min(several.index[several == several.iloc[0]])
        sentence = (
            f"{counted(len(several), 'person', 'people')} of {len(scans):,} {'has' if len(several) == 1 else 'have'} "
            f"several {things} (at most {several.iloc[0]}: {shown(name)}); a split keeps the {things} of a person "
            "together."
        )
        return [Finding("note", "people", sentence)]
    if len(scans) < FEWEST_PEOPLE and len(data) > len(scans):
        few = "one person" if len(scans) == 1 else f"{len(scans)} people"
        listed = some(scans.index.tolist())
        sentence = f"All rows are of {few} ({listed}): a split by person needs at least {FEWEST_PEOPLE} people."
        return [Finding("error", "people", sentence)]
    own = data.groups is None or bool((data.groups.astype(str).to_numpy() == data.X.index.astype(str)).all())
    if own and not pd.api.types.is_numeric_dtype(data.X.index.dtype):
        stripped = data.X.index.astype(str).map(lambda name: _SESSION.sub("", name))
        counts = pd.Series(stripped[stripped != ""]).value_counts()
        if len(counts) >= 5 and 1 < counts.iloc[0] <= 20:
            rows = [name for name, short in zip(data.X.index, stripped, strict=True) if short == counts.index[0]]
            sentence = (
                f"Ids such as {shown(rows[0])} and {shown(rows[1])} look like {things} of one person: name the "
                "person's column with person=, so that a split keeps them together."
            )
            return [Finding("warning", "people", sentence)]
    return _named_elsewhere(data) if data.groups is None else []


def of_brains(data: Dataset) -> bool:
    """Whether the rows are scans of brains: words follow the kind of table."""
    return bool(data.measure) or any(parse_region(str(name)) is not None for name in data.X.columns)


def _named_elsewhere(data: Dataset) -> list[Finding]:
    """A column of labels that repeat a few times each, where nothing says whose row it is."""
    for name, column in ({} if data.covariates is None else data.covariates).items():
        labels = column.dropna()
        if pd.api.types.is_float_dtype(labels.dtype) or not len(labels):
            continue
        counts = labels.astype(str).value_counts()
        if len(labels) / 5 <= len(counts) < len(labels) and len(counts) >= 10 and counts.iloc[0] <= 20:
            sentence = (
                f"Nothing says whose row it is, and {shown(name)} looks as if it did, {counted(len(counts), 'label')} "
                f"for {counted(len(labels), 'row')}: name it with id= or person=, or people may stand on both sides "
                "of a split."
            )
            return [Finding("warning", "people", sentence)]
    return []
