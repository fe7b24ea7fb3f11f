"""Rows before they become tensors: one canonical order, scaling, and the validation split.

Equal rows are merged into one with the sum of their weights and the rows are sorted. So the order of the table never
changes a fit, a weight of 2 is the same as the row standing there twice, a weight of 0 the same as its absence, and two
copies of a row never face each other across the validation split.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from precisionnet.types import FloatArray, IndexArray


@dataclass(frozen=True)
class Table:
    """Checked rows: features, target (a number or a class index), weight."""

    X: FloatArray
    y: FloatArray
    weight: FloatArray

    def __len__(self) -> int:
        return len(self.X)

    def take(self, index: IndexArray) -> Table:
        """The rows at ``index``."""
        return Table(self.X[index], self.y[index], self.weight[index])


def canonical(X: FloatArray, y: FloatArray, weight: FloatArray) -> Table:
    """Sorted, equal rows merged, rows without weight dropped."""
    kept = weight > 0
    stacked = np.column_stack([X[kept], y[kept]])
    unique, inverse = np.unique(stacked, axis=0, return_inverse=True)
    merged = np.bincount(inverse.ravel(), weights=weight[kept], minlength=len(unique)).astype(np.float64)
    return Table(np.ascontiguousarray(unique[:, :-1]), unique[:, -1], merged)


def split_validation(
    table: Table, fraction: float, strata: FloatArray | None, rng: np.random.RandomState
) -> tuple[Table, Table | None]:
    """Training and validation rows; stratified by class where ``strata`` is given. None where too few are left over."""
    groups = np.zeros(len(table)) if strata is None else strata
    aside: list[IndexArray] = []
    for value in np.unique(groups):
        members = rng.permutation(np.flatnonzero(groups == value))
        aside.append(members[: int(fraction * len(members))])
    validation = np.sort(np.concatenate(aside))
    if len(validation) < 2:
        return table, None
    training = np.setdiff1d(np.arange(len(table)), validation)
    return table.take(training), table.take(validation)


@dataclass(frozen=True)
class Scaler:
    """(value - mean) / scale, fitted on training rows."""

    mean: FloatArray
    scale: FloatArray

    @classmethod
    def fit(cls, values: FloatArray, weight: FloatArray, active: bool = True) -> Scaler:
        """Weighted mean and standard deviation a column; a constant column keeps scale 1."""
        if not active:
            return cls(np.zeros(values.shape[1:]), np.ones(values.shape[1:]))
        mean: Any = np.average(values, axis=0, weights=weight)
        scale: Any = np.sqrt(np.average((values - mean) ** 2, axis=0, weights=weight))
        # Rounding leaves a constant column with a scale of about eps * |mean|: not a scale at all.
        constant = scale <= 16 * np.finfo(float).eps * np.abs(mean)
        return cls(np.asarray(mean), np.where(constant, 1.0, scale))

    def transform(self, values: FloatArray) -> FloatArray:
        """Into standard units."""
        return (values - self.mean) / self.scale

    def inverse(self, values: FloatArray) -> FloatArray:
        """Back into the units of the table."""
        return values * self.scale + self.mean
