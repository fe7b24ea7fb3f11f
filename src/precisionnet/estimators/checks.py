"""The checks before a fit: errors stop it, and warnings do not. Each names the column."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import validate_data

from precisionnet.arguments import masked_as_missing
from precisionnet.errors import InputError, PrecisionNetWarning, some
from precisionnet.linalg import LARGEST
from precisionnet.sparse_matrices import Matrix, is_sparse
from precisionnet.types import BoolArray, FloatArray, IndexArray

MIN_ROWS = 4
"""A covariance, a validation split and a network need a few rows."""


def names_of(names: Sequence[Any] | None, n_features: int) -> list[str]:
    """Return the table's own column names, or x0, x1, ... where it had none."""
    return [f"x{i}" for i in range(n_features)] if names is None else [str(name) for name in names]


def column_names(estimator: Any) -> list[str]:
    """Return the names of the columns that a fitted estimator shows: those given to fit that it uses."""
    fitted = getattr(estimator, "fitted", None)
    if fitted is not None:
        return list(fitted.blocks.names)
    return names_of(getattr(estimator, "feature_names_in_", None), estimator.n_features_in_)


def refuse_text_columns(X: Any) -> None:
    """Name the columns that hold text or dates; scikit-learn's message would only show the value."""
    if isinstance(X, str | Path):
        raise InputError(f"X is the path {str(X)!r}, and rows in memory are needed: read the file first.")
    if not isinstance(X, pd.DataFrame):
        X = X.tolist() if isinstance(X, np.ndarray) and X.dtype.kind in "OUS" else X
        if not (isinstance(X, list) and X and isinstance(X[0], list | tuple)):
            return
        X = pd.DataFrame(X, columns=[f"x{i}" for i in range(len(X[0]))], dtype=object)
    twice = X.columns[X.columns.duplicated()].unique().tolist()
    if twice:
        raise InputError(f"Column {some(twice)} stands more than once in X: rename or drop one.")
    for name, column in X.items():
        if pd.api.types.is_numeric_dtype(column.dtype):
            continue
        dates = column.dtype.kind in "mM" or isinstance(column.dtype, pd.DatetimeTZDtype | pd.PeriodDtype)
        bad = [v for v in column if dates or (isinstance(v, str) and pd.isna(pd.to_numeric(v, errors="coerce")))]
        if bad:
            raise InputError(
                f"Column {str(name)!r} holds {'dates' if dates else 'text'} ({str(bad[0])!r}, for example): features "
                "must be numbers; drop the column or encode it."
            )


CHECKED_ROWS = 8192
"""Rows looked at together, so that a check needs no memory of the table's size."""


class NumberRows:
    """A table whose rows become float64 when they are asked for, so that no second table is made.

    Parameters
    ----------
    X : DataFrame or ndarray of shape (n_samples, n_features)
        Numbers of any kind.
    """

    def __init__(self, X: Any) -> None:
        self._rows = X.iloc if isinstance(X, pd.DataFrame) else X
        self.shape: tuple[int, ...] = X.shape

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> FloatArray:
        part = self._rows[rows]
        numbers: FloatArray = (
            part.to_numpy(dtype=np.float64, na_value=np.nan)
            if isinstance(part, pd.DataFrame)
            else part.astype(np.float64, copy=False)
        )
        return numbers


Rows = FloatArray | NumberRows
"""Rows in memory or in a source: anything with a shape, a length and slices that are float64."""


def number_rows(estimator: Any, X: Any) -> Rows:
    """Return new rows as numbers, checked against those of the fit by scikit-learn; a large table is not copied."""
    X = masked_as_missing(X)
    refuse_text_columns(X)
    refuse_complex(X, "X")
    large = isinstance(X, pd.DataFrame | np.ndarray) and len(X) > CHECKED_ROWS
    if large and (isinstance(X, pd.DataFrame) or (X.ndim == 2 and X.dtype.kind in "biuf")):
        validate_data(estimator, X[:CHECKED_ROWS], dtype=np.float64, reset=False, ensure_all_finite=False)
        return NumberRows(X)
    rows: FloatArray = validate_data(estimator, X, dtype=np.float64, reset=False, ensure_all_finite=False)
    return rows


def refuse_complex(values: Any, name: str) -> None:
    """Refuse complex numbers in a sentence; scikit-learn would print the array."""
    dtypes = values.dtypes if isinstance(values, pd.DataFrame) else [getattr(values, "dtype", None)]
    if any(getattr(dtype, "kind", None) == "c" for dtype in dtypes):
        raise InputError(
            f"Complex data not supported: {name} holds complex numbers; pass its real part where the imaginary part is "
            "zero."
        )


HUGE = f"Column {{columns}} holds values beyond {LARGEST:g}, whose squares cannot be added up: rescale or drop it."

BAD_VALUES: tuple[tuple[Callable[[FloatArray], BoolArray], str], ...] = (
    (
        np.isnan,
        "Input X contains NaN in {rows} of {n} rows (column {columns}): drop those rows or columns, impute them first, "
        "or fit with missing='median'.",
    ),
    (
        np.isinf,
        "Input X contains infinity in {rows} of {n} rows (column {columns}): drop those rows or columns or correct "
        "them.",
    ),
    (lambda part: np.abs(part) > LARGEST, HUGE),
)
"""Tests for values that no cell may hold, each with its message."""


def refuse_bad_values(X: Rows, names: Sequence[str], missing: str = "error") -> None:
    """Refuse NaN (unless ``missing`` says what takes its place), infinity, huge values, too few columns."""
    for is_bad, sentence in BAD_VALUES if missing == "error" else BAD_VALUES[1:]:
        columns, rows = np.zeros(X.shape[1], dtype=bool), 0
        for begin in range(0, len(X), CHECKED_ROWS):
            bad = is_bad(X[begin : begin + CHECKED_ROWS])
            columns |= bad.any(axis=0)
            rows += int(bad.any(axis=1).sum())
        if rows:
            listed = some([names[int(i)] for i in np.flatnonzero(columns)])
            raise InputError(sentence.format(rows=rows, n=len(X), columns=listed))
    if X.shape[1] < 2:
        raise InputError(
            f"Column {names[0]!r} is the only feature (n_features=1): a graph needs at least two; add columns or use a "
            "plain regression."
        )


def refuse_no_logarithm(y: FloatArray) -> None:
    """Refuse a target that is not above zero, if its logarithm is to be learned."""
    if (y <= 0).any():
        raise InputError(
            f"target_scale='log' needs a target above 0, but {int((y <= 0).sum())} rows have none (the lowest is "
            f"{y.min():g}): set target_scale='linear', or leave it at 'auto'."
        )


def refuse_empty_columns(empty: IndexArray, names: Sequence[str], rows: str) -> None:
    """Refuse columns without a single value in some rows: they have no median."""
    if len(empty):
        raise InputError(
            f"Column {some([names[int(i)] for i in empty])} is missing (NaN) in all {rows}: there is "
            "no median to take its place; drop it."
        )


def check_split(n_training: int, n_validation: int, fraction: float) -> None:
    """Enough rows on both sides of the validation split."""
    if n_training < MIN_ROWS:
        raise InputError(
            f"validation_fraction={fraction:g} leaves {n_training} rows for training: at least {MIN_ROWS} are needed; "
            "lower it, or bring more rows."
        )
    if fraction > 0 and n_validation == 0:
        _warn(
            f"validation_fraction={fraction:g} of {n_training} rows is fewer than 2: nothing is set aside, and the "
            "last epoch is kept; raise it, or bring more rows."
        )


def group_codes(groups: Any, n_rows: int) -> IndexArray:
    """A number for each label, in the order of the labels, so that the order of the rows never matters."""
    labels = pd.Series(list(masked_as_missing(groups)))
    if len(labels) != n_rows:
        raise InputError(f"groups has {len(labels)} labels for {n_rows} rows: give one label per row.")
    if labels.isna().any():
        raise InputError(f"groups has no label for {int(labels.isna().sum())} of {n_rows} rows: give every row one.")
    return np.unique(labels.astype(str), return_inverse=True)[1]


def warn_about_scale(emp_cov: Matrix) -> None:
    """Features left in their own units may be far from what the other parameters are made for."""
    mean_variance = float(emp_cov.diagonal().sum()) / emp_cov.shape[0]
    if not 1e-3 <= mean_variance <= 1e3:
        _warn(
            f"The features are not standardised and their mean variance is {mean_variance:.2g}: coupling, ridge and "
            "the step lengths are made for variances near one; use standardize=True or rescale the features."
        )


def warn_about_columns(emp_cov: Matrix, constant: IndexArray, names: Sequence[str], n_rows: int) -> None:
    """Constant and repeated columns, and few rows: a fit is possible, but the user should know."""
    if len(constant):
        _warn(
            f"Column {some([names[int(i)] for i in constant])} is constant in the training rows: it carries no "
            "information, and the rows give it no edges; drop it."
        )
    deviation = np.sqrt(emp_cov.diagonal())
    if is_sparse(emp_cov):  # only pairs that are stored can be compared
        first, second = emp_cov.nonzero()
        same = (first < second) & (
            np.abs(emp_cov[first, second]) > (1.0 - 1e-10) * deviation[first] * deviation[second]
        )
        pairs = np.stack([first[same], second[same]], axis=1)
    else:
        correlation = np.abs(emp_cov) / np.outer(deviation, deviation)
        pairs = np.argwhere(np.triu(correlation > 1.0 - 1e-10, k=1))
    if len(pairs):
        listed = "; ".join(f"{names[i]!r} and {names[j]!r}" for i, j in pairs[:3])
        more = f" and {len(pairs) - 3} more pairs" if len(pairs) > 3 else ""
        _warn(f"Columns are the same up to scale: {listed}{more}. The graph cannot tell them apart; drop one of each.")
    if n_rows <= len(names):
        _warn(
            f"{n_rows} training rows for {len(names)} columns: the covariance is singular and the graph rests on the "
            "l1 penalty alone; read its edges with care, raise l1_scale=, or bring more rows."
        )


def warn_about_left_out(sentence: str) -> None:
    """Columns of labels that cannot be used: ids, free text, one value."""
    if sentence:
        _warn(sentence)


def _warn(sentence: str) -> None:
    warnings.warn(sentence, PrecisionNetWarning, stacklevel=4)
