"""From a table to features and a target: which columns are which, and whether they can be used."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from precisionnet.errors import InputError, did_you_mean, some
from precisionnet.linalg import LARGEST
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
    if target in drop:
        raise InputError(f"Column {target!r} is named as --target and as --drop: it can only be one of them.")
    y = _plain(frame[target])
    if y.isna().any():
        raise InputError(
            f"Target {target!r} is missing in {int(y.isna().sum())} of {len(y)} rows (row {_first(y.isna())} is the "
            "first; empty cells, NA, n/a, None and nan count as missing): remove those rows."
        )
    if pd.api.types.is_float_dtype(y.dtype) and not np.isfinite(y.to_numpy()).all():
        raise InputError(f"Target {target!r} holds infinity (row {_first(np.isinf(y))}): remove or correct that row.")
    nameless = [c for c in frame.columns if c.startswith("Unnamed: ") and c not in (target, id_column, *drop)]
    if nameless:
        position = list(frame.columns).index(nameless[0]) + 1
        raise InputError(
            f"Column {position} of the table has no name (a row number saved along?): "
            f"name it in the header, or leave it out with --drop {nameless[0]!r}."
        )
    X = numeric_features(frame.drop(columns=[c for c in {target, id_column, *drop} if c is not None]))
    if X.shape[1] < 2:
        left = "only one feature column is" if X.shape[1] == 1 else "no feature column is"
        raise InputError(
            f"Beside target {target!r} {left} left: a graph needs at least two; add columns or use a plain regression."
        )
    _refuse_useless(X)
    return X, y


def numeric_features(X: pd.DataFrame, *, droppable: bool = True) -> pd.DataFrame:
    """The features as float64; text, missing, infinite and huge values are refused by column and row.

    ``droppable`` says whether leaving the column out is a way on (in a fit it is, in a prediction it is not).
    """
    # An integer of hundreds of digits is more than pandas can convert: let it be huge, and refused as such.
    X = X.apply(
        lambda c: c.map(lambda v: 1e300 if isinstance(v, int) and abs(v) > 1e300 else v) if c.dtype == object else c
    )
    texts = {str(name): row for name, column in X.items() if (row := _first_text(column)) is not None}
    if texts:
        first, row = next(iter(texts.items()))
        value = str(X[first].iloc[row - 1])
        others = f" ({some(list(texts)[1:])} as well)" if len(texts) > 1 else ""
        comma = " (decimal commas? save it with decimal points)" if re.fullmatch(r"-?\d+,\d+", value) else ""
        way = _ways(first, droppable, "give it to --id if it names the rows")
        raise InputError(f"Column {first!r} holds text{others}, not numbers: {value!r} in row {row}{comma}; {way}.")
    numbers = {name: pd.to_numeric(c).to_numpy(dtype=np.float64, na_value=np.nan) for name, c in X.items()}
    for name, values in numbers.items():
        kinds = {"is missing (NaN)": np.isnan(values), "holds infinity": np.isinf(values)}
        kinds[f"holds values beyond {LARGEST:g}"] = np.abs(values) > LARGEST
        for what, bad in kinds.items():
            if bad.any():
                where = f"in {int(bad.sum())} of {len(values)} rows (row {_first(bad)} is the first)"
                raise InputError(
                    f"Column {str(name)!r} {what} {where}: {_ways(str(name), droppable, 'remove those rows')}."
                )
    return pd.DataFrame(numbers, index=X.index)


def _first_text(column: pd.Series[Any]) -> int | None:
    """Row of the first value that is no number (a date or a duration is none, either), counted as a person does."""
    if pd.api.types.is_numeric_dtype(column.dtype):
        return None
    if pd.api.types.is_datetime64_any_dtype(column.dtype) or pd.api.types.is_timedelta64_dtype(column.dtype):
        return 1
    text = pd.to_numeric(column, errors="coerce").isna() & column.notna()
    return _first(text) if text.any() else None


def _ways(name: str, droppable: bool, first: str) -> str:
    if not droppable:
        return "correct it"
    return f"leave it out with --drop {name!r}, correct it, or {first}"


def _plain(y: pd.Series[Any]) -> pd.Series[Any]:
    """The target in NumPy's types: nullable integers and booleans, decimals and numbers kept as objects among them."""
    if y.isna().any():
        return y  # refused anyway
    kind = y.dtype.kind
    if pd.api.types.is_extension_array_dtype(y.dtype) and kind in "biuf":
        return y.astype({"b": bool, "i": np.int64, "u": np.uint64, "f": np.float64}[kind])
    if y.dtype == object and _first_text(y) is None and not any(isinstance(value, str | bool) for value in y):
        return pd.to_numeric(y).astype(np.float64)
    return y


def guess_task(y: pd.Series[Any]) -> TaskName:
    """Text, booleans and few whole numbers are classes; anything else is a number to predict."""
    if not pd.api.types.is_numeric_dtype(y.dtype) or pd.api.types.is_bool_dtype(y.dtype):
        return "classification"
    whole = bool((y == np.floor(y)).all())
    return "classification" if whole and y.nunique() <= FEW_CLASSES else "regression"


def check_target(y: pd.Series[Any], task: TaskName) -> pd.Series[Any]:
    """The target as the task needs it: numbers for regression, labels that come often enough for classification."""
    name = str(y.name)
    if pd.api.types.is_datetime64_any_dtype(y.dtype):
        raise InputError(f"Target {name!r} holds dates: turn them into a number, such as years, or name another.")
    if task == "regression":
        if not pd.api.types.is_numeric_dtype(y.dtype) or pd.api.types.is_bool_dtype(y.dtype):
            raise InputError(
                f"Target {name!r} holds {str(y.iloc[0])!r}, not numbers: use --task classification, or a number column."
            )
        if (y.abs() > LARGEST).any():
            raise InputError(
                f"Target {name!r} holds values beyond {LARGEST:g} (row {_first(y.abs() > LARGEST)}): rescale it."
            )
        if y.nunique() < 2:
            raise InputError(f"Target {name!r} is always {y.iloc[0]!s}: there is nothing to predict; check --target.")
        return y.astype(np.float64)
    if y.dtype.kind not in "biuf":
        y = y.astype(str).str.strip()
    counts = y.value_counts()
    if len(counts) < 2:
        raise InputError(
            f"Target {name!r} has only one class ({counts.index[0]!s}): two or more are needed; check --target."
        )
    if len(counts) > max(FEW_CLASSES, len(y) // 5):
        raise InputError(
            f"Target {name!r} has {len(counts)} different values in {len(y)} rows: too many for classes; use "
            "--task regression if it is a number, or another target."
        )
    rare = [str(value) for value, count in counts.items() if count < 3]
    if rare:
        raise InputError(
            f"Class {some(rare)} of target {name!r} has fewer than 3 rows: too few for training, validation and test; "
            "merge it with another class or remove its rows."
        )
    return y


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
