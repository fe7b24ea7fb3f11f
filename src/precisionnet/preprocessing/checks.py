"""What is looked at before a preparation is fitted or used: rows, sites, and covariates that are the target."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import validate_data

from precisionnet.arguments import masked_as_missing
from precisionnet.errors import InputError, PrecisionNetWarning, some
from precisionnet.linalg import LARGEST
from precisionnet.types import FloatArray

SAME_AS_TARGET = 0.9999
"""A covariate whose correlation with the target is larger than this is the target."""

ROUTING = (
    "; around a Pipeline switch sklearn.set_config(enable_metadata_routing=True) on and pass it there (scorers by name "
    "and cross_val_predict do not pass it on: use scoring=None, or cross_validate with return_estimator=True)"
)
"""How metadata reaches a step of a pipeline, and where scikit-learn does not pass it on."""


def forget(estimator: Any) -> None:
    """Drop everything fitted, so that a fit that fails leaves no half of the last one."""
    for name in [name for name in vars(estimator) if name.endswith("_") and not name.endswith("__")]:
        delattr(estimator, name)


def checked_rows(estimator: Any, X: Any, *, reset: bool, **beside: Any) -> FloatArray:
    """X as float64; text, missing, infinite and huge values are refused by column.

    What is given ``beside`` goes by position; labels that say another order are refused.
    """
    for name, other in beside.items():
        labelled = isinstance(X, pd.DataFrame) and isinstance(other, pd.DataFrame | pd.Series)
        if labelled and not X.index.equals(other.index) and set(X.index) == set(other.index):
            raise InputError(f"{name} has the index of X in another order: pass {name}.loc[X.index].")
    if isinstance(X, pd.DataFrame):
        text = [name for name, column in X.items() if not _may_be_numbers(column)]
        if text:
            raise InputError(
                f"Column {some([str(name) for name in text])} does not hold numbers: drop it, encode it, or give it as "
                "a covariate."
            )
    try:
        X = validate_data(estimator, masked_as_missing(X), dtype=np.float64, reset=reset, ensure_all_finite=False)
    except ValueError as error:
        if "Complex data not supported" not in str(error):
            raise
        raise InputError("Complex data not supported: X must hold real numbers.") from error
    names = column_names(estimator)
    kinds = {"NaN": np.isnan(X), "infinity": np.isinf(X), f"values beyond {LARGEST:g}": np.abs(X) > LARGEST}
    for label, bad in kinds.items():
        columns = np.flatnonzero(bad.any(axis=0))
        if len(columns):
            raise InputError(
                f"Input X contains {label} in {int(bad.any(axis=1).sum())} of {len(X)} rows (column "
                f"{some([names[int(i)] for i in columns])}): drop those rows or columns, or impute them in a step "
                "before this one."
            )
    rows: FloatArray = X
    return rows


def column_names(estimator: Any) -> list[str]:
    """The table's own column names, or x0, x1, ... where it had none."""
    names = getattr(estimator, "feature_names_in_", None)
    return [f"x{i}" for i in range(estimator.n_features_in_)] if names is None else [str(name) for name in names]


def site_labels(site: Any, n_rows: int, method: str) -> list[Any]:
    """Return one label per row, in Python's own types."""
    if site is None:
        raise InputError(f"ComBat.{method} needs site, one label per row: pass site=...{ROUTING}.")
    if isinstance(site, pd.DataFrame):
        site = site.iloc[:, 0] if site.shape[1] == 1 else site.to_numpy()
    if isinstance(site, pd.Series | pd.Index | pd.Categorical | np.ndarray):
        site = np.asarray(site)
        site = (site[:, 0] if site.ndim == 2 and site.shape[1] == 1 else site).tolist()
    if not isinstance(site, list | tuple) or any(isinstance(label, list | dict | set) for label in site):
        raise InputError(
            "site must hold one label per row (a list, an array or a column), such as ['NYU', 'UCLA', ...]."
        )
    if len(site) != n_rows:
        raise InputError(f"site has {len(site)} labels and X has {n_rows} rows: give one label per row.")
    unknown = np.flatnonzero(pd.isna(pd.Series(list(site), dtype=object)))
    if len(unknown):
        raise InputError(
            f"site is missing in {len(unknown)} of {n_rows} rows (row {int(unknown[0]) + 1} is the first): give those "
            "rows a label, or drop them."
        )
    return list(site)


def in_order(labels: Iterable[Any]) -> list[Any]:
    """Each label once, sorted where they can be compared, else by kind and spelling."""
    different = list(dict.fromkeys(labels))
    try:
        return sorted(different)
    except TypeError:
        return sorted(different, key=lambda label: (type(label).__name__, str(label)))


def warn_about_target(y: Any, covariates: pd.DataFrame) -> None:
    """Warn if a covariate is the target: covariates must be known for new rows, so nothing is left to predict."""
    target = np.asarray(y, dtype=object)
    if len(target) != len(covariates) or target.ndim > 2:
        return
    for column in target.reshape(len(target), -1).T:
        same = [str(name) for name in covariates if _same(pd.Series(column), covariates[name].reset_index(drop=True))]
        if same:
            warnings.warn(
                f"Covariate {some(same)} is the target y: rows to be predicted would need their true target, and "
                "scores would be flattered by it; leave it out of covariates.",
                PrecisionNetWarning,
                stacklevel=4,
            )
            return


def _same(target: pd.Series[Any], covariate: pd.Series[Any]) -> bool:
    if target.nunique() < 2 or covariate.nunique() < 2:
        return False
    classes = target.nunique() <= len(target) / 2
    if classes and np.array_equal(pd.factorize(target)[0], pd.factorize(covariate)[0]):
        return True  # the same partition, whatever the names
    try:
        pair = np.corrcoef(target.to_numpy(dtype=np.float64), covariate.to_numpy(dtype=np.float64))
    except (TypeError, ValueError):
        return False
    return bool(np.abs(pair[0, 1]) > SAME_AS_TARGET)


def _may_be_numbers(column: pd.Series[Any]) -> bool:
    if column.dtype == object:
        return not pd.to_numeric(column, errors="coerce").isna()[column.notna()].any()
    return pd.api.types.is_numeric_dtype(column.dtype)
