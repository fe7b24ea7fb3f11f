"""From a frame with categories to a float array, the same way for every method."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

RAREST = 0.01
"""Share of the rows below which levels of a category are put together as "other"."""
FEWEST = 10
"""Rows below which they are."""


class Rows(NamedTuple):
    """What a loader returns."""

    X: np.ndarray
    y: np.ndarray
    columns: list[str]
    groups: np.ndarray | None = None


def plain(X: Any, y: Any) -> Rows:
    """Take numbers as they are."""
    X = np.asarray(X, dtype=float)
    return Rows(X, np.asarray(y), [f"x{i}" for i in range(X.shape[1])])


def from_frame(frame: pd.DataFrame, target: str, drop: tuple[str, ...] = (), rows: int | None = None) -> Rows:
    """One-hot encode the text columns; leave out rows with a missing number; draw ``rows`` of them (seed 0).

    A category of two levels becomes one column, one of more levels a column for each; missing is a level.
    """
    frame = frame.drop(columns=list(drop))
    numbers = [name for name in frame.columns if pd.api.types.is_numeric_dtype(frame[name])]
    frame = frame.dropna(subset=[*numbers, target])
    if rows is not None and rows < len(frame):
        frame = frame.sample(rows, random_state=0)
    features = frame.drop(columns=target)
    parts = [
        features[[name]].astype(float) if name in numbers else _one_hot(features[name]) for name in features.columns
    ]
    X = pd.concat(parts, axis=1)
    return Rows(X.to_numpy(dtype=float), frame[target].to_numpy(), [str(name) for name in X.columns])


def _one_hot(column: pd.Series[Any]) -> pd.DataFrame:
    levels = column.astype(object).where(column.notna(), "missing").astype(str)
    counts = levels.value_counts()
    rare = counts.index[counts < max(FEWEST, RAREST * len(levels))]
    levels = levels.where(~levels.isin(rare), "other")
    dummies = pd.get_dummies(levels, prefix=str(column.name), dtype=float)
    return dummies.iloc[:, 1:] if dummies.shape[1] <= 2 else dummies
