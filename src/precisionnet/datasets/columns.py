"""From a table to features and a target: which columns are which, and whether they can be used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from precisionnet.errors import InputError, did_you_mean, some
from precisionnet.types import TaskName

FEW_CLASSES = 10
"""A whole-numbered target with at most this many different values is taken for classes."""


def split_columns(
    frame: pd.DataFrame, target: str, id_column: str | None = None, drop: Sequence[str] = ()
) -> tuple[pd.DataFrame, pd.Series[Any]]:
    """Features (numbers, all finite, none constant, none twice) and target (none missing)."""
    for name, option in [(target, "--target"), *((name, "--drop") for name in drop)]:
        if name not in frame.columns:
            raise InputError(
                f"There is no column {name!r}{did_you_mean(name, frame.columns)}: {option} must name one of the "
                f"table's columns ({some(list(frame.columns))})."
            )
    y = frame[target]
    if y.isna().any():
        raise InputError(
            f"Target {target!r} is missing in {int(y.isna().sum())} of {len(y)} rows (row {_first(y.isna())} is the "
            "first): remove those rows."
        )
    if pd.api.types.is_float_dtype(y.dtype) and not np.isfinite(y.to_numpy()).all():
        raise InputError(f"Target {target!r} holds infinity (row {_first(np.isinf(y))}): remove or correct that row.")
    X = numeric_features(frame.drop(columns=[c for c in {target, id_column, *drop} if c is not None]))
    if X.shape[1] < 2:
        raise InputError(
            f"Only {X.shape[1]} feature column is left beside {target!r}: a graph needs at least two; add columns or "
            "use a plain regression."
        )
    _refuse_useless(X)
    return X, y


def numeric_features(X: pd.DataFrame) -> pd.DataFrame:
    """The features as float64; text, missing and infinite values are refused by column and row."""
    for name, column in X.items():
        numbers = pd.to_numeric(column, errors="coerce") if not pd.api.types.is_bool_dtype(column.dtype) else column
        text = numbers.isna() & column.notna()
        if text.any() or pd.api.types.is_datetime64_any_dtype(column.dtype):
            where = _first(text) if text.any() else 1
            raise InputError(
                f"Column {str(name)!r} holds text ({str(column.iloc[where - 1])!r} in row {where}): features must be "
                f"numbers; leave it out with --drop {str(name)!r}, or correct it."
            )
        if numbers.isna().any():
            raise InputError(
                f"Column {str(name)!r} is missing (NaN) in {int(numbers.isna().sum())} of {len(numbers)} rows (row "
                f"{_first(numbers.isna())} is the first): remove those rows, or leave the column out with --drop "
                f"{str(name)!r}."
            )
        infinite = np.isinf(numbers.to_numpy(dtype=np.float64))
        if infinite.any():
            raise InputError(
                f"Column {str(name)!r} holds infinity (row {_first(infinite)}): correct it, or leave the column out "
                f"with --drop {str(name)!r}."
            )
    return X.apply(pd.to_numeric).astype(np.float64)


def guess_task(y: pd.Series[Any]) -> TaskName:
    """Text, booleans and few whole numbers are classes; anything else is a number to predict."""
    if not pd.api.types.is_numeric_dtype(y.dtype) or pd.api.types.is_bool_dtype(y.dtype):
        return "classification"
    whole = bool((y == np.floor(y)).all())
    return "classification" if whole and y.nunique() <= FEW_CLASSES else "regression"


def check_target(y: pd.Series[Any], task: TaskName) -> pd.Series[Any]:
    """The target as the task needs it: numbers for regression, labels that come often enough for classification."""
    name = str(y.name)
    if task == "regression":
        if not pd.api.types.is_numeric_dtype(y.dtype) or pd.api.types.is_bool_dtype(y.dtype):
            raise InputError(
                f"Target {name!r} holds {str(y.iloc[0])!r}, not numbers: use --task classification, or a number column."
            )
        if y.nunique() < 2:
            raise InputError(f"Target {name!r} is always {y.iloc[0]!s}: there is nothing to predict; check --target.")
        return y.astype(np.float64)
    counts = y.value_counts()
    if len(counts) < 2:
        raise InputError(
            f"Target {name!r} has only one class ({counts.index[0]!s}): two or more are needed; check --target."
        )
    if len(counts) > max(FEW_CLASSES, len(y) // 5):
        raise InputError(
            f"Target {name!r} has {len(counts)} different values in {len(y)} rows: too many for classes; use "
            "--task regression, or another target."
        )
    rare = [str(value) for value, count in counts.items() if count < 3]
    if rare:
        raise InputError(
            f"Class {some(rare)} of target {name!r} has fewer than 3 rows: too few for training, validation and test; "
            "merge it with another class or remove its rows."
        )
    return y if y.dtype.kind in "biu" else (y.astype(str) if y.dtype.kind != "f" else y)


def _refuse_useless(X: pd.DataFrame) -> None:
    constant = [name for name in X.columns if X[name].min() == X[name].max()]
    if constant:
        raise InputError(
            f"Column {some(constant)} is constant: it carries no information; leave it out with "
            f"{' '.join(f'--drop {name!r}' for name in constant[:3])}."
        )
    values = np.ascontiguousarray(X.to_numpy().T)
    seen: dict[bytes, str] = {}
    for name, column in zip(X.columns, values, strict=True):
        first = seen.setdefault(column.tobytes(), name)
        if first != name:
            raise InputError(
                f"Column {name!r} repeats column {first!r}: the graph could not tell them apart; leave it out with "
                f"--drop {name!r}."
            )


def _first(mask: Any) -> int:
    """Row number as a person counts: the first row under the header is 1."""
    return int(np.flatnonzero(np.asarray(mask))[0]) + 1
