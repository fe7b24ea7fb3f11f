"""Rows before they become tensors: one canonical order, scaling, the validation split, and the members' folds.

Equal rows are merged into one with the sum of their weights, and the rows are sorted. So the order of the table never
changes a fit, a weight of 2 is the same as having the row twice, a weight of 0 the same as not having it, and two
copies of a row are never on different sides of the validation split.

A missing value is NaN until the split is made; then the training rows' medians may take its place.

The training rows are dealt into folds, and each member leaves one fold out. If members are of several kinds, there are
four folds by default and each is left out by one member of every kind, so that every kind predicts every row. If all
members are alike, there are at least eight folds and each member has one of its own. The rows of its fold are new to a
member: they choose the epoch and the kinds' weights, the out-of-bag error is measured on them, and they calibrate the
prediction intervals. (A bootstrap, in which a member sees 63 % of the rows, cost accuracy:
``docs/decisions/0009-recipe.md``.)
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from precisionnet.linalg import weighted_median
from precisionnet.types import BoolArray, FloatArray, IndexArray

LEAST_SHARE = 1e-12
"""Of the other rows' weight; a row of less has no say."""


@dataclass(frozen=True)
class Table:
    """Checked rows: features, target (a number or a class index), weight, and whose row it is."""

    X: FloatArray
    y: FloatArray
    weight: FloatArray
    group: IndexArray
    place: IndexArray
    """Position of each row among the canonical rows."""

    def __len__(self) -> int:
        return len(self.X)

    def take(self, index: IndexArray) -> Table:
        """Return the rows at ``index``."""
        return Table(self.X[index], self.y[index], self.weight[index], self.group[index], self.place[index])

    def hash(self) -> str:
        """Return a hash of the rows, from which another fit knows that it has the same ones."""
        digest = hashlib.sha256()
        for array in (self.X, self.y, self.weight, self.group):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def filled(self, values: FloatArray) -> Table:
        """Return the rows with missing values replaced by ``values``, which has one number per column."""
        return replace(self, X=fill(self.X, values))


def canonical(
    X: FloatArray, y: FloatArray, weight: FloatArray, group: IndexArray | None = None
) -> tuple[Table, IndexArray]:
    """Return the canonical rows, and for each given row its position among them; -1 for a row without weight.

    Canonical rows are sorted, equal ones merged (NaN equals NaN). Without ``group`` every row is a group of its own.
    """
    kept = weight > 0
    # A NaN does not equal another NaN, so infinity, which cannot occur here, stands for it while rows are compared.
    stacked = np.column_stack([np.where(np.isnan(X[kept]), np.inf, X[kept]), y[kept]])
    unique, inverse = np.unique(stacked, axis=0, return_inverse=True)
    merged = np.bincount(inverse.ravel(), weights=weight[kept], minlength=len(unique)).astype(np.float64)
    values = unique[:, :-1]
    owner: IndexArray = np.arange(len(unique))
    if group is not None:  # groups with a row in common become one group
        size = len(unique) + int(group.max()) + 1
        ends = inverse.ravel(), group[kept] + len(unique)
        links = coo_array((np.ones(kept.sum()), ends), shape=(size, size))
        owner = connected_components(links, directed=False)[1][: len(unique)]
    places: IndexArray = np.full(len(X), -1, dtype=np.intp)
    places[kept] = inverse.ravel()
    X = np.where(np.isposinf(values), np.nan, values)
    return Table(X, unique[:, -1], merged, owner, np.arange(len(unique))), places


def medians(X: FloatArray, weight: FloatArray) -> FloatArray:
    """Return each column's median of the values that are present; a value of weight 2 counts twice."""
    return np.array([weighted_median(column[~(gap := np.isnan(column))], weight[~gap]) for column in X.T])


def fill(X: FloatArray, values: FloatArray) -> FloatArray:
    """Replace every NaN by the number that ``values`` has for its column."""
    return np.where(np.isnan(X), values, X)


def split_validation(
    table: Table, fraction: float, strata: FloatArray | None, rng: np.random.RandomState
) -> tuple[Table, Table | None]:
    """Return training and validation rows, split by class if ``strata`` is given; None if too few rows are left over.

    All rows of a group are on one side.
    """
    if len(np.unique(table.group)) < len(table):
        return _split_groups(table, fraction, strata, rng)
    values, groups = np.unique(np.zeros(len(table)) if strata is None else strata, return_inverse=True)
    counts = np.bincount(groups)
    # Each class gets a whole number of rows. What rounding down leaves over goes to the largest remainders, so that all
    # classes together get as many rows as were asked for.
    exact = np.round(fraction * counts, 9)  # so that 0.35 * 60 is 21 in spite of rounding
    quota = np.floor(exact).astype(int)
    missing = max(0, int(round(fraction * len(table), 9)) - int(quota.sum()))
    quota[np.argsort(quota - exact, kind="stable")[:missing]] += 1
    quota = np.minimum(quota, counts - 1)  # every class keeps a training row
    members = [rng.permutation(np.flatnonzero(groups == i)) for i in range(len(values))]
    validation = np.sort(np.concatenate([rows[:n] for rows, n in zip(members, quota, strict=True)]))
    if len(validation) < 2:
        return table, None
    training = np.setdiff1d(np.arange(len(table)), validation)
    return table.take(training), table.take(validation)


def _split_groups(
    table: Table, fraction: float, strata: FloatArray | None, rng: np.random.RandomState
) -> tuple[Table, Table | None]:
    """Choose whole groups, in random order, as long as they bring a stratum nearer to its share of rows."""
    _, first, group, size = np.unique(table.group, return_index=True, return_inverse=True, return_counts=True)
    stratum = np.zeros(len(size)) if strata is None else strata[first]
    chosen = np.zeros(len(size), dtype=bool)
    for value in np.unique(stratum):
        members = rng.permutation(np.flatnonzero(stratum == value))
        wanted = fraction * size[members].sum()
        for member in members[: len(members) - 1]:  # at least one group stays for training
            if size[chosen & (stratum == value)].sum() + size[member] / 2 <= wanted:
                chosen[member] = True
    validation = np.flatnonzero(chosen[group])
    if len(validation) < 2:
        return table, None
    return table.take(np.flatnonzero(~chosen[group])), table.take(validation)


FEWEST_FOLDS = 8


def left_out_rows(
    table: Table, n_folds: int, strata: FloatArray | None, rng: np.random.RandomState, fewest: int = FEWEST_FOLDS
) -> list[IndexArray]:
    """Return the rows of each fold; a group is whole in one fold, and every fold has about the same share of a class.

    Rows are dealt into at least ``fewest`` folds, of which the first ``n_folds`` are returned.
    """
    _, first, group = np.unique(table.group, return_index=True, return_inverse=True)
    if len(first) < 2:
        return [np.array([], dtype=np.intp)] * n_folds
    order = rng.permutation(len(first))
    if strata is not None:  # deal the groups out class by class
        order = order[np.argsort(strata[first][order], kind="stable")]
    fold = np.empty(len(first), dtype=np.intp)
    fold[order] = np.arange(len(first)) % max(n_folds, fewest)
    return [np.flatnonzero(fold[group] == i) for i in range(n_folds)]


def moments(values: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Return each column's mean and standard deviation, and whether it is constant.

    A column that varies by no more than rounding is constant, too: a spread of eps * |mean| is not a spread at all.
    """
    mean = np.asarray(np.average(values, axis=0, weights=weight))
    scale = np.asarray(np.sqrt(np.average((values - mean) ** 2, axis=0, weights=weight)))
    tiny = 16 * np.finfo(float).eps * np.abs(mean)
    return mean, scale, (values.min(axis=0) == values.max(axis=0)) | (scale <= tiny)


@dataclass(frozen=True)
class Scaler:
    """(value - mean) / scale, fitted on training rows."""

    mean: FloatArray
    scale: FloatArray

    @classmethod
    def fit(cls, values: FloatArray, weight: FloatArray, active: bool = True) -> Scaler:
        """Compute the weighted mean and standard deviation per column; a constant column keeps scale 1.

        A constant column is centred even if ``active`` is false and the others are not: otherwise it would act as a
        bias on its neighbours.
        """
        mean, scale, constant = moments(values, weight)
        if not active:
            return cls(np.where(constant, mean, 0.0), np.ones(values.shape[1:]))
        return cls(mean, np.where(constant, 1.0, scale))

    def transform(self, values: FloatArray) -> FloatArray:
        """Convert values into standard units."""
        return (values - self.mean) / self.scale

    def inverse(self, values: FloatArray) -> FloatArray:
        """Convert values back into the units of the table."""
        return values * self.scale + self.mean
