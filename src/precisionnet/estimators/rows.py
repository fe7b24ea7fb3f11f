"""Rows before they become tensors: one canonical order, scaling, and the validation split.

Equal rows are merged into one with the sum of their weights and the rows are sorted. So the order of the table never
changes a fit, a weight of 2 is the same as the row standing there twice, a weight of 0 the same as its absence, and two
copies of a row never face each other across the validation split.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
    values, groups = np.unique(np.zeros(len(table)) if strata is None else strata, return_inverse=True)
    counts = np.bincount(groups)
    # Whole rows a class, the largest remainders first, so that the classes together get what was asked for.
    exact = np.round(fraction * counts, 9)  # 0.35 * 60 is 21, whatever floating point says
    quota = np.floor(exact).astype(int)
    missing = max(0, int(round(fraction * len(table), 9)) - int(quota.sum()))
    quota[np.argsort(quota - exact, kind="stable")[:missing]] += 1
    quota = np.minimum(quota, counts - 1)  # no class without a training row
    members = [rng.permutation(np.flatnonzero(groups == i)) for i in range(len(values))]
    validation = np.sort(np.concatenate([rows[:n] for rows, n in zip(members, quota, strict=True)]))
    if len(validation) < 2:
        return table, None
    training = np.setdiff1d(np.arange(len(table)), validation)
    return table.take(training), table.take(validation)


def _moments(values: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    mean = np.asarray(np.average(values, axis=0, weights=weight))
    return mean, np.asarray(np.sqrt(np.average((values - mean) ** 2, axis=0, weights=weight)))


def is_constant(values: FloatArray, weight: FloatArray) -> NDArray[np.bool_]:
    """Which columns do not vary, or vary by no more than rounding: a spread of eps * |mean| is not a spread at all."""
    mean, scale = _moments(values, weight)
    return (values.min(axis=0) == values.max(axis=0)) | (scale <= 16 * np.finfo(float).eps * np.abs(mean))


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
        mean, scale = _moments(values, weight)
        return cls(mean, np.where(is_constant(values, weight), 1.0, scale))

    def transform(self, values: FloatArray) -> FloatArray:
        """Into standard units."""
        return (values - self.mean) / self.scale

    def inverse(self, values: FloatArray) -> FloatArray:
        """Back into the units of the table."""
        return values * self.scale + self.mean
