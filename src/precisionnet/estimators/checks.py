"""What is looked at before a fit: errors that stop it, warnings that do not. Each names the column."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from precisionnet.errors import InputError, PrecisionNetWarning, some
from precisionnet.types import FloatArray

MIN_ROWS = 4


def column_names(estimator: Any) -> list[str]:
    """The table's own column names, or x0, x1, ... where it had none."""
    names = getattr(estimator, "feature_names_in_", None)
    return [f"x{i}" for i in range(estimator.n_features_in_)] if names is None else [str(name) for name in names]


def refuse_text_columns(X: Any) -> None:
    """Name the data frame's columns that hold text; scikit-learn's message would only show the value."""
    if not isinstance(X, pd.DataFrame):
        return
    for name, column in X.items():
        if pd.api.types.is_numeric_dtype(column.dtype):
            continue
        bad = column[pd.to_numeric(column, errors="coerce").isna() & column.notna()]
        if len(bad):
            raise InputError(
                f"Column {str(name)!r} holds text ({str(bad.iloc[0])!r}, for example): features must be numbers; "
                "drop the column or encode it."
            )


def refuse_bad_values(X: FloatArray, names: Sequence[str]) -> None:
    """NaN, infinity, too few rows or columns."""
    for label, bad in {"NaN": np.isnan(X), "infinity": np.isinf(X)}.items():
        columns = np.flatnonzero(bad.any(axis=0))
        if len(columns):
            listed = some([names[int(i)] for i in columns])
            raise InputError(
                f"Input X contains {label} in {int(bad.any(axis=1).sum())} of {len(X)} rows (column {listed}): "
                "drop those rows or columns, or impute them first."
            )
    if X.shape[1] < 2:
        raise InputError(
            f"Column {names[0]!r} is the only feature (n_features=1): a graph needs at least two; add columns or use a "
            "plain regression."
        )


def refuse_few_rows(n_rows: int) -> None:
    """A covariance, a validation split and a network need a few rows."""
    if n_rows < MIN_ROWS:
        raise InputError(f"Got n_samples={n_rows} different rows with weight: at least {MIN_ROWS} are needed to fit.")


def warn_about_columns(X: FloatArray, emp_cov: FloatArray, names: Sequence[str], n_rows: float) -> None:
    """Constant and repeated columns, and fewer rows than columns: a fit is possible, but the user should know."""
    constant = np.flatnonzero(X.min(axis=0) == X.max(axis=0))
    if len(constant):
        _warn(
            f"Column {some([names[int(i)] for i in constant])} is constant in the training rows: it carries no "
            "information and becomes a node without edges; drop it."
        )
    deviation = np.sqrt(np.diag(emp_cov))
    correlation = np.abs(emp_cov) / np.outer(deviation, deviation)
    pairs = np.argwhere(np.triu(correlation > 1.0 - 1e-10, k=1))
    if len(pairs):
        listed = "; ".join(f"{names[i]!r} and {names[j]!r}" for i, j in pairs[:3])
        more = f" and {len(pairs) - 3} more pairs" if len(pairs) > 3 else ""
        _warn(f"Columns are the same up to scale: {listed}{more}. The graph cannot tell them apart; drop one of each.")
    if n_rows < len(names):
        _warn(
            f"{n_rows:g} training rows for {len(names)} columns: the covariance is singular and the graph rests on the "
            "l1 penalty alone; read its edges with care, raise l1_scale, or bring more rows."
        )


def _warn(sentence: str) -> None:
    warnings.warn(sentence, PrecisionNetWarning, stacklevel=4)
