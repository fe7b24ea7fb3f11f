"""Rows as evidence needs them: numbers without gaps, the columns' names, and whose row each one is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from precisionnet.arguments import masked_as_missing
from precisionnet.errors import InputError, shown, some
from precisionnet.linalg import LARGEST
from precisionnet.types import FloatArray, IndexArray

ROUNDING = 16 * np.finfo(float).eps
"""A spread below this share of the values themselves is rounding, not a spread."""


@dataclass(frozen=True)
class Observations:
    """Checked rows in standard units: every column has mean zero and variance one.

    ``person`` numbers the rows' groups 0, 1, ...; without groups every row is a person of its own.
    """

    X: FloatArray
    names: list[str]
    person: IndexArray
    n_people: int

    @property
    def repeated(self) -> bool:
        """Whether a person has more than one row."""
        return self.n_people < len(self.X)

    def rows_of(self, people: IndexArray) -> FloatArray:
        """Return all rows of these people."""
        return self.X[np.isin(self.person, people)]

    def restricted_to(self, people: IndexArray) -> Observations:
        """Return these people alone, in standard units of their own; a column that does not vary any more is zero."""
        rows = np.isin(self.person, people)
        _, person = np.unique(self.person[rows], return_inverse=True)
        return Observations(_standard_units(self.X[rows]), self.names, person, len(np.unique(person)))


def read_observations(X: Any, groups: Any = None) -> Observations:
    """Return the rows of a table, or refuse it with every complaint at once."""
    values, names = _numbers(X)
    complaints = [*_complaints_about(values, names)]
    person: IndexArray = np.arange(len(values))
    try:
        person = people_of(groups, len(values))
    except InputError as error:
        complaints.append(str(error))
    if complaints:
        raise InputError(" ".join(complaints))
    return Observations(_standard_units(values), names, person, int(person.max()) + 1)


def _standard_units(values: FloatArray) -> FloatArray:
    size = np.abs(values).max(axis=0)
    centred = values / np.where(size > 0.0, size, 1.0)  # squares of tiny and of huge values stay finite
    centred = centred - centred.mean(axis=0)
    spread = np.sqrt(np.mean(centred**2, axis=0))
    return centred / np.where(spread > 0.0, spread, 1.0)


def _numbers(X: Any) -> tuple[FloatArray, list[str]]:
    """Return float64 (n_rows, n_columns) and the columns' names."""
    if isinstance(X, pd.DataFrame):
        names = [str(name) for name in X.columns]
        twice = pd.Index(names)[pd.Index(names).duplicated()].unique().tolist()
        if twice:
            raise InputError(f"Column {some(twice)} stands more than once in X: rename or drop one.")
        wrong = [name for name, dtype in zip(names, X.dtypes, strict=True) if not _is_real(dtype)]
        if wrong:
            raise InputError(
                f"Column {some(wrong)} does not hold real numbers: drop it, or turn text and dates into numbers first."
            )
        return X.to_numpy(dtype=np.float64, na_value=np.nan), names
    try:
        values = np.asarray(masked_as_missing(X))
    except ValueError as error:  # ragged
        raise InputError("X must be a table whose rows have the same number of columns.") from error
    if values.ndim != 2:
        raise InputError(f"X must be a table of rows and columns, got an array with {values.ndim} dimension(s).")
    if values.dtype.kind == "O":
        try:
            values = values.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise InputError("X holds text or other things that are not numbers: drop or encode them.") from error
    if values.dtype.kind not in "biuf":
        what = "complex numbers" if values.dtype.kind == "c" else "text or dates"
        raise InputError(f"X holds {what}: partial correlations need real numbers.")
    return values.astype(np.float64), [f"x{i}" for i in range(values.shape[1])]


def _is_real(dtype: Any) -> bool:
    return pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype)


def _complaints_about(values: FloatArray, names: list[str]) -> list[str]:
    """Return one sentence for each thing that is wrong with the values."""
    n_rows, n_columns = values.shape
    if n_columns < 2:
        return [f"X has {n_columns} column(s): a graph needs at least two."]
    if n_rows < 2:
        return [f"X has {n_rows} row(s): bring more, an interval needs many."]

    def listed(bad: Any) -> str:
        return some([names[int(i)] for i in np.flatnonzero(bad)])

    found = []
    missing, infinite = np.isnan(values), np.isinf(values)
    if missing.any():
        found.append(
            f"X has missing values in {int(missing.any(axis=1).sum())} of {n_rows} rows (column "
            f"{listed(missing.any(axis=0))}): drop those rows or columns, or impute them first."
        )
    if infinite.any():
        found.append(f"X holds infinity in column {listed(infinite.any(axis=0))}: correct or drop those rows.")
    huge = np.abs(np.where(infinite | missing, 0.0, values)).max(axis=0) > LARGEST
    if huge.any():
        found.append(f"Column {listed(huge)} holds values beyond {LARGEST:g}: rescale or drop it.")
    if found:
        return found
    size = np.abs(values).max(axis=0)
    spread = (values / np.where(size > 0, size, 1.0)).std(axis=0)
    constant = spread <= ROUNDING
    if constant.sum() > 1:
        return [f"Columns {listed(constant)} do not vary: they have no correlation with any other; drop them."]
    if constant.any():
        return [f"Column {listed(constant)} does not vary: it has no correlation with any other; drop it."]
    return []


def people_of(groups: Any, n_rows: int) -> IndexArray:
    """Return a number for each row's group, in the order of the labels; without groups, each row's position."""
    if groups is None:
        return np.arange(n_rows)
    if isinstance(groups, str) or not hasattr(groups, "__iter__"):
        raise InputError(f"groups must be one label per row, got {shown(groups)}.")
    labels = pd.Series(list(groups), dtype=object)
    if len(labels) != n_rows:
        raise InputError(f"groups has {len(labels)} labels for {n_rows} rows: give one label per row.")
    if labels.isna().any():
        raise InputError(f"groups has no label for {int(labels.isna().sum())} of {n_rows} rows: give every row one.")
    codes: IndexArray = np.unique(labels.astype(str).to_numpy(dtype=str), return_inverse=True)[1]
    return codes
