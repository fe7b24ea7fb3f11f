"""Covariates as numbers: numbers as they are, text and pandas categories as one column a level but the first.

The levels are learned from the training rows; a level that was not among them is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from precisionnet.errors import InputError, some
from precisionnet.linalg import LARGEST
from precisionnet.preprocessing.checks import in_order
from precisionnet.types import FloatArray


@dataclass(frozen=True)
class Coding:
    """How covariates become columns of numbers."""

    names: tuple[Any, ...]
    levels: tuple[tuple[Any, ...] | None, ...]
    """Of each covariate; None for a number."""

    @classmethod
    def fit(cls, frame: pd.DataFrame) -> Coding:
        """Learn which covariates are numbers, and the levels of the others."""
        levels = tuple(None if _is_number(column) else _levels(column) for _, column in frame.items())
        return cls(tuple(frame.columns), levels)

    @property
    def columns(self) -> list[str]:
        """A name for each encoded column."""
        named = zip(self.names, self.levels, strict=True)
        return [
            column
            for name, levels in named
            for column in ([str(name)] if levels is None else [f"{name}={level}" for level in levels[1:]])
        ]

    def encode(self, frame: pd.DataFrame) -> FloatArray:
        """(n_rows, n_columns) of float64."""
        frame = self._same_columns(frame)
        parts = [
            self._number(column, name) if levels is None else self._dummies(column, name, levels)
            for (_, column), name, levels in zip(frame.items(), self.names, self.levels, strict=True)
        ]
        return np.column_stack([np.empty((len(frame), 0)), *parts])

    def _same_columns(self, frame: pd.DataFrame) -> pd.DataFrame:
        if set(frame.columns) == set(self.names):
            return frame[list(self.names)]
        if [*map(str, frame.columns)] == [*map(str, range(len(self.names)))]:
            return frame  # an array: by position
        raise InputError(
            f"covariates are {some([str(name) for name in frame.columns])}, and were "
            f"{some([str(name) for name in self.names])} in fit: give the same."
        )

    def _number(self, column: pd.Series[Any], name: Any) -> FloatArray:
        if not _is_number(column):
            raise InputError(
                f"Covariate {str(name)!r} held numbers in fit and holds {column.iloc[0]!r} now: correct it."
            )
        values = pd.to_numeric(column).to_numpy(dtype=np.float64)
        if not (np.abs(values) <= LARGEST).all():
            raise InputError(
                f"Covariate {str(name)!r} holds infinity or values beyond {LARGEST:g}: correct those rows."
            )
        return values

    def _dummies(self, column: pd.Series[Any], name: Any, levels: tuple[Any, ...]) -> FloatArray:
        values = column.tolist()
        new = in_order(value for value in values if value not in levels)
        if new:
            raise InputError(
                f"Covariate {str(name)!r} has level {some(new)}, which no row given to fit had "
                f"({some(list(levels))}): merge it with one of those, or drop its rows."
            )
        return np.array([[float(value == level) for level in levels[1:]] for value in values])


def as_frame(covariates: Any, n_rows: int) -> pd.DataFrame:
    """Covariates of any accepted kind as a data frame, one row a row of X, nothing missing."""
    if isinstance(covariates, pd.Series):
        frame = covariates.to_frame() if covariates.name is not None else pd.DataFrame({0: covariates})
    elif isinstance(covariates, pd.DataFrame):
        frame = covariates
    elif isinstance(covariates, np.ndarray | list | tuple | pd.Categorical) and np.ndim(covariates) in (1, 2):
        frame = pd.DataFrame(covariates)
    else:
        raise InputError("covariates must be a data frame, a column or a 2-D array with one row a row of X.")
    if len(frame) != n_rows:
        raise InputError(
            f"covariates have {len(frame)} rows and X has {n_rows}: give one row of covariates a row of X."
        )
    twice = frame.columns[frame.columns.duplicated()].unique()
    if len(twice):
        raise InputError(f"Covariate {some([str(name) for name in twice])} stands there more than once: drop one.")
    missing = frame.isna()
    if missing.to_numpy().any():
        names = [str(name) for name in frame.columns[missing.any()]]
        raise InputError(
            f"Covariate {some(names)} is missing in {int(missing.any(axis=1).sum())} of {n_rows} rows: drop those "
            "rows, or fill them in."
        )
    return frame.infer_objects()


def _is_number(column: pd.Series[Any]) -> bool:
    if isinstance(column.dtype, pd.CategoricalDtype):
        return False
    return pd.api.types.is_numeric_dtype(column.dtype) and column.dtype.kind != "c"


def _levels(column: pd.Series[Any]) -> tuple[Any, ...]:
    values = column.tolist()
    what = {"text" if isinstance(value, str) else "numbers" for value in values}
    if column.dtype.kind in "mMc" or (column.dtype == object and "text" not in what):
        raise InputError(f"Covariate {str(column.name)!r} holds {values[0]!r}: use numbers, text or categories.")
    if len(what) > 1:
        raise InputError(f"Covariate {str(column.name)!r} mixes text and numbers: use one of them.")
    levels = in_order(values)
    if len(levels) > max(2, len(values) / 2):
        raise InputError(
            f"Covariate {str(column.name)!r} is {'text' if 'text' in what else 'a category'} with {len(levels)} levels "
            f"in {len(values)} rows: give numbers as numbers (a data frame keeps them beside text), or merge levels."
        )
    return tuple(levels)
