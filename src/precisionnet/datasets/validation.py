"""Whether features and target can be used for a fit, and what kind of target it is.

A parameter is written ``name=`` in every sentence, as in all of the library; the command line turns it into its option.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from precisionnet.datasets.dataset import NO_ID, Dataset
from precisionnet.errors import InputError, dropping, refuse_all, shown, some
from precisionnet.linalg import LARGEST
from precisionnet.preprocessing.column_kinds import begin_with_digits, is_label_column
from precisionnet.types import TaskName

MIN_ROWS = 10
"""Fewer cannot be split into rows to learn from and rows to test."""
SMALLEST_SPREAD = 1e-100
FEW_CLASSES = 10
"""A whole-numbered target with at most this many different values is taken for classes."""


def refuse_unusable(data: Dataset, *, missing: str = "error") -> tuple[pd.DataFrame, pd.Series[Any]]:
    """Refuse what no model can be fitted to, all of it at once, and return features and target in plain types.

    Features must be finite, at least two, none constant and none twice; the target must be known in every row. Columns
    of labels and dates are features as well.

    Parameters
    ----------
    data : Dataset
        Rows with a target.
    missing : str, default="error"
        The parameter of the estimators. With anything but "error" they fill in missing features themselves.

    Returns
    -------
    X : pandas.DataFrame
        The features.
    y : pandas.Series
        The target in NumPy's types.

    Raises
    ------
    InputError
        Something cannot be used. Each sentence names a column and says what to do.

    Examples
    --------
    >>> from precisionnet.datasets import make_gaussian_regression
    >>> X, y = refuse_unusable(make_gaussian_regression(20, 3, random_state=0))
    >>> X.shape, len(y)
    ((20, 3), 20)
    """
    refuse_all(unusable(data, missing=missing))
    assert data.y is not None
    return data.X, plain_target(data.y)


def unusable(data: Dataset, *, missing: str = "error") -> list[str]:
    """Say everything that ``refuse_unusable`` refuses: of the target first, then of the features."""
    no_target = "There is no target: name one with target=, or give the data set a y."
    target = [no_target] if data.y is None else _target_gaps(data.y)
    return [*target, *unusable_features(data, missing=missing)]


def unusable_features(data: Dataset, *, missing: str = "error") -> list[str]:
    """Say what of the features no model can be fitted to."""
    X, y, found = data.X, data.y, list[str]()
    named = X.rename(columns=dict(data.original_names))  # sentences use the names of the file, as drop= does
    if X.shape[1] < 2 and not (X.shape[1] and is_label_column(X.iloc[:, 0])):
        beside = "" if y is None else f"Beside target {shown(str(y.name))} "
        left = "only one feature column is left" if X.shape[1] == 1 else "no feature column is left"
        sentence = f"{beside}{left}: a graph needs at least two; add columns or use a plain regression."
        found.append(sentence[0].upper() + sentence[1:])
    return [*found, *bad_numbers(named, missing=missing), *_useless(named)]


def _target_gaps(y: pd.Series[Any]) -> list[str]:
    if y.isna().all():
        return [f"Target {shown(str(y.name))} has no value in any row: fill it in, or name another target."]
    if y.isna().any():
        return [
            f"Target {shown(str(y.name))} is missing in {int(y.isna().sum())} of {len(y)} rows "
            f"(row {first_row(y.isna())} is the first; empty cells, NA, n/a, None, nan and -9999 count as missing): "
            "leave those rows out with complete_rows=True."
        ]
    if pd.api.types.is_float_dtype(y.dtype) and not np.isfinite(y.to_numpy(dtype=np.float64)).all():
        return [
            f"Target {shown(str(y.name))} holds infinity (row {first_row(np.isinf(y))}): remove or correct that row."
        ]
    return []


def refuse_bad_numbers(
    X: pd.DataFrame, *, missing: str = "error", droppable: bool = True, first: int | None = None
) -> None:
    """Refuse missing, infinite and huge values and complex numbers, by column and row.

    Parameters
    ----------
    X : pandas.DataFrame
        The features.
    missing : str, default="error"
        The parameter of the estimators. With anything but "error" missing values are fine.
    droppable : bool, default=True
        Whether the sentence offers to leave the column out: in a fit one may, in a prediction one may not.
    first : int, optional
        The number of the first row where ``X`` is a part of a table: the sentence then counts no rows.

    Raises
    ------
    InputError
        Of each kind the first such column, its first row, and what to do.

    Examples
    --------
    >>> import pandas as pd
    >>> refuse_bad_numbers(pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, float("inf")]}))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    precisionnet.errors.InputError: Column 'b' holds infinity in 1 of 2 rows (row 2 is the first): ...
    """
    refuse_all(bad_numbers(X, missing=missing, droppable=droppable, first=first))


def bad_numbers(
    X: pd.DataFrame, *, missing: str = "error", droppable: bool = True, first: int | None = None
) -> list[str]:
    """One sentence per kind of bad value, with the first column that holds it; labels and dates may be missing, too."""
    found: dict[str, list[tuple[str, Any]]] = {}
    for name, column in X.items():
        if column.dtype.kind == "c":
            found.setdefault("holds complex numbers, not real numbers", []).append((str(name), None))
            continue
        gaps = column.isna().to_numpy()
        kinds = {"is missing (NaN)": gaps & (missing == "error")}
        if pd.api.types.is_numeric_dtype(column.dtype):
            values = column.to_numpy(dtype=np.float64, na_value=np.nan)
            kinds["holds infinity"] = np.isinf(values)
            kinds[f"holds values beyond {LARGEST:g}"] = ~np.isinf(values) & (np.abs(values) > LARGEST)
        for what, bad in kinds.items():
            if bad.any():
                found.setdefault(what, []).append((str(name), pd.Series(bad, X.index)))
    return [_bad_sentence(what, columns, droppable, first) for what, columns in found.items()]


def _bad_sentence(what: str, columns: list[tuple[str, Any]], droppable: bool, first: int | None) -> str:
    (name, bad), *others = columns
    ways = [f"leave it out with drop=[{shown(name)}]", "correct it"] if droppable else []
    if what.startswith("is missing"):
        ways.append(
            "let missing='indicator' fill it in or complete_rows=True leave those rows out"
            if droppable
            else "fit with missing='indicator'"
        )
    where = "" if bad is None else f" in {int(bad.sum())} of {len(bad)} rows (row {first_row(bad)} is the first)"
    if bad is not None and first is not None:
        where = f" in row {first + int(np.argmax(bad))}"
    also = f" ({some([other for other, _ in others])} as well)" if others else ""
    return f"Column {shown(name)} {what}{where}{also}: {_or(ways or ['correct it'])}."


def _or(ways: Sequence[str]) -> str:
    return ways[0] if len(ways) == 1 else f"{', '.join(ways[:-1])}, or {ways[-1]}"


def plain_target(y: pd.Series[Any]) -> pd.Series[Any]:
    """The target in NumPy's types: nullable integers and booleans among them."""
    kind = y.dtype.kind
    if pd.api.types.is_extension_array_dtype(y.dtype) and kind in "biuf":
        return y.astype({"b": bool, "i": np.int64, "u": np.uint64, "f": np.float64}[kind])
    return y


def guess_task(y: pd.Series[Any]) -> TaskName:
    """Guess what kind of target this is: text, booleans and few whole numbers are classes, other numbers are not.

    Parameters
    ----------
    y : pandas.Series
        The target, nothing missing.

    Returns
    -------
    {"regression", "classification"}
        The task.

    Examples
    --------
    >>> import pandas as pd
    >>> guess_task(pd.Series(["control", "patient"])), guess_task(pd.Series([20.5, 31.0, 44.2]))
    ('classification', 'regression')
    """
    _refuse_complex(y)
    if not pd.api.types.is_numeric_dtype(y.dtype) or pd.api.types.is_bool_dtype(y.dtype):
        return "classification"
    whole = bool((y == np.floor(y)).all())
    return "classification" if whole and y.nunique() <= FEW_CLASSES else "regression"


def check_target(y: pd.Series[Any], task: TaskName) -> pd.Series[Any]:
    """Return the target as the task needs it, or refuse it.

    Parameters
    ----------
    y : pandas.Series
        The target, nothing missing.
    task : {"regression", "classification"}
        Regression needs numbers that vary, classification at least two classes of three rows each.

    Returns
    -------
    pandas.Series
        Numbers as float64, or labels.

    Raises
    ------
    InputError
        The target does not fit the task. The sentence names it and says what to do.

    Examples
    --------
    >>> import pandas as pd
    >>> check_target(pd.Series([20, 31, 44], name="age"), "regression").dtype
    dtype('float64')
    """
    name = str(y.name)
    _refuse_complex(y)
    if pd.api.types.is_datetime64_any_dtype(y.dtype):
        raise InputError(f"Target {shown(name)} holds dates: turn them into a number, such as years, or name another.")
    if len(y) and pd.api.types.is_numeric_dtype(y.dtype) and y.nunique() < 2:
        raise InputError(
            f"Target {shown(name)} is always {y.iloc[0]!s}: there is nothing to predict; name another target."
        )
    if task == "regression":
        if not pd.api.types.is_numeric_dtype(y.dtype) or pd.api.types.is_bool_dtype(y.dtype):
            raise InputError(
                f"Target {shown(name)} holds {shown(str(y.iloc[0]))}, not numbers: use task='classification', or "
                "name a column of numbers."
            )
        if (y.abs() > LARGEST).any():
            row = first_row(y.abs() > LARGEST)
            raise InputError(f"Target {shown(name)} holds values beyond {LARGEST:g} (row {row}): rescale it.")
        if y.min() < y.max() and not float(y.std()) > SMALLEST_SPREAD:
            raise InputError(f"Target {shown(name)} varies by no more than {float(y.std()):.1g}: rescale it.")
        return y.astype(np.float64)
    if y.dtype.kind not in "biuf":
        y = y.astype(str).str.strip()
    counts = y.value_counts()
    if len(counts) < 2:
        raise InputError(
            f"Target {shown(name)} has only one class ({counts.index[0]!s}), and two are needed: name another target."
        )
    if len(counts) > max(FEW_CLASSES, len(y) // 5):
        words = "write them as plain numbers" if begin_with_digits(y) else "merge some of them"
        use = "use task='regression'" if y.dtype.kind in "biuf" else words
        raise InputError(
            f"Target {shown(name)} has {len(counts)} different values in {len(y)} rows: too many for classes; {use}, "
            "or name another target."
        )
    rare = [str(value) for value, count in counts.items() if count < 3]
    if rare:
        raise InputError(
            f"Class {some(rare)} of target {shown(name)} has fewer than 3 rows: too few for training, validation and "
            "test; merge it with another class or remove its rows."
        )
    return y


def _refuse_complex(y: pd.Series[Any]) -> None:
    if y.dtype.kind == "c":
        raise InputError(f"Target {shown(str(y.name))} holds complex numbers: give real numbers or labels.")


def _useless(X: pd.DataFrame) -> list[str]:
    """Columns without a value, with one value, or equal to another."""
    found = list[str]()
    empty = [name for name in X.columns if X[name].isna().all()]
    constant = [name for name in X.columns if name not in empty and _is_constant(X[name])]
    if len(X.columns) > 1 and len(empty) + len(constant) == len(X.columns):
        none = f"None of the {len(X.columns)} columns varies"
        return [f"{none}: a fit needs columns that differ from row to row; bring others."]
    for names, one, several in (
        (empty, "has no value at all", "have no value at all"),
        (constant, "is constant: it carries no information", "are constant: they carry no information"),
    ):
        if len(names) == 1:
            found.append(f"Column {some(names)} {one}; leave it out with {dropping(names)}.")
        elif names:
            found.append(f"Columns {some(names)} {several}; leave them out with {dropping(names)}.")
    seen: dict[bytes, str] = {}
    for name, column in X.items():
        if name in empty or name in constant or is_label_column(column):
            continue
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        first = seen.setdefault(values.tobytes(), str(name))
        if first != name:
            found.append(
                f"Column {shown(name)} repeats column {shown(first)}: the graph could not tell them apart; leave it "
                f"out with drop=[{shown(name)}]."
            )
    return found


def _is_constant(column: pd.Series[Any]) -> bool:
    known = column.dropna()
    whole = len(known) == len(column) or not is_label_column(column)  # gaps in labels are a level of their own
    return whole and bool((known == known.iloc[0]).all())


def first_row(mask: pd.Series[Any]) -> str:
    """Name the first row as a person finds it: by its id, by its number in the file, or counted from 1."""
    place = int(np.flatnonzero(mask.to_numpy())[0])
    label = mask.index[place]
    if isinstance(label, str):
        return shown(label)
    return str(label if mask.index.name == NO_ID else place + 1)
