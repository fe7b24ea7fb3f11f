"""What one pass over a large table finds out: moments, the target's facts, and a sample of rows.

Everything is mergeable: parts of a table are surveyed where they are, and the surveys are joined. Moments are exact
(``precision.streaming_moments``). The sample is uniform: every row has a random number that follows from the seed and
its place in the table, and those with the smallest ones are the sample. So it depends neither on how the table is cut
into blocks nor on where its parts are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from precisionnet.datasets.row_source import PARTS, RowBlock, RowSource
from precisionnet.errors import InputError, some
from precisionnet.estimators.checks import refuse_bad_values
from precisionnet.estimators.rows import fill
from precisionnet.linalg import LARGEST
from precisionnet.precision import StreamingMoments
from precisionnet.types import BoolArray, FloatArray, IndexArray

MOST_CLASSES = 1000
MOST_GROUPS = 10_000
"""Groups whose hashes are kept, to deal them into folds evenly; more are dealt by their hashes alone."""

Hashes = NDArray[np.uint64]


@dataclass(frozen=True)
class Survey:
    """The results of one pass over the rows of a table, or of a part of it.

    Parameters
    ----------
    moments : StreamingMoments
        Of the features, gaps filled.
    target : StreamingMoments
        Of the target, one column; of a number alone.
    n_rows : int
        Rows with weight.
    n_missing : ndarray of shape (n_columns,)
        Missing values per column.
    limits : ndarray of shape (2, n_columns + 1)
        Least and largest value of every feature, and of the target.
    classes : tuple
        Labels of the target, of a class alone.
    groups : ndarray of uint64 or None
        Hashes of the groups, in order; None where there are too many, or none.
    sample : RowBlock
        Rows with the smallest random numbers.
    chance : ndarray of shape (n_sampled,)
        These numbers, in order.
    """

    moments: StreamingMoments
    target: StreamingMoments
    n_rows: int
    n_missing: IndexArray
    limits: FloatArray
    classes: tuple[Any, ...]
    groups: Hashes | None
    sample: RowBlock
    chance: FloatArray

    @property
    def constant(self) -> BoolArray:
        """Columns that do not vary, or by no more than rounding (``rows.moments``)."""
        mean, deviation = self.moments.mean, np.sqrt(np.diag(self.moments.covariance))
        low, high = self.limits[:, :-1]
        return (low == high) | (deviation <= 16 * np.finfo(float).eps * np.abs(mean))

    @property
    def target_range(self) -> FloatArray:
        """The least and the largest target."""
        return self.limits[:, -1]

    def merge(self, other: Survey, size: int) -> Survey:
        """Return the survey of the rows of both, with a sample of ``size``."""
        few = self.groups is not None and other.groups is not None
        groups = np.union1d(self.groups, other.groups) if few else None  # type: ignore[arg-type]
        return replace(
            _sampled(self, other, size),
            moments=self.moments.merge(other.moments),
            target=self.target.merge(other.target),
            n_rows=self.n_rows + other.n_rows,
            n_missing=self.n_missing + other.n_missing,
            limits=np.stack([np.fmin(self.limits[0], other.limits[0]), np.fmax(self.limits[1], other.limits[1])]),
            classes=_known_classes({*self.classes, *other.classes}),
            groups=groups if groups is not None and len(groups) <= MOST_GROUPS else None,
        )


def survey(source: RowSource, size: int, seed: int, missing: str, middle: FloatArray | None = None) -> Survey:
    """Go over a table once.

    Parameters
    ----------
    source : RowSource
        The table.
    size : int
        Rows of the sample.
    seed : int
        Of the sample.
    missing : {"error", "median"}
        Whether missing values are refused.
    middle : ndarray of shape (n_columns,), optional
        What takes their place; without it the moments of a table with gaps are not to be used.

    Returns
    -------
    Survey
        Of all rows.
    """
    found = source.over_parts(partial(_survey_part, size, seed, missing, middle), partial(_together, size))
    if found is None:
        raise InputError(f"{source.pieces.name} has no {source.rows_are_called}: pass one that has.")
    return found


def _together(size: int, *surveys: Survey | None) -> Survey | None:
    """Merge the surveys of several parts; None where none of them has rows."""
    known = [one for one in surveys if one is not None]
    return reduce(lambda one, other: one.merge(other, size), known) if known else None


def random_numbers(rows: IndexArray, seed: int) -> FloatArray:
    """Return a number in [0, 1) for each row number, the same wherever it is asked for."""
    return (mixed(rows.astype(np.uint64), seed) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def mixed(values: Hashes, seed: int) -> Hashes:
    """Return hashes of whole numbers (Steele, Lea and Flood 2014, splitmix64), others for every seed."""
    golden, first, second = (np.uint64(n) for n in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
    with np.errstate(over="ignore"):
        state = values * golden
        for start in (np.uint64(seed), np.uint64(0)):  # twice, so that seeds beside each other have nothing in common
            state = state + (start + np.uint64(1)) * golden
            state = (state ^ (state >> np.uint64(30))) * first
            state = (state ^ (state >> np.uint64(27))) * second
            state = state ^ (state >> np.uint64(31))
    return state


def _survey_part(
    size: int, seed: int, missing: str, middle: FloatArray | None, source: RowSource, blocks: Iterator[RowBlock]
) -> Survey | None:
    """Survey the rows of a part; None where it has none."""
    whole: Survey | None = None
    for block in blocks:
        if len(block):
            found = _survey_block(source, size, seed, missing, middle, block)
            whole = found if whole is None else whole.merge(found, size)
    return whole


def _survey_block(
    source: RowSource, size: int, seed: int, missing: str, middle: FloatArray | None, block: RowBlock
) -> Survey:
    try:
        refuse_bad_values(block.X, source.columns, missing)
    except InputError as error:
        raise InputError(f"From row {block.row[0] + 1} on: {error}") from error
    gaps = np.isnan(block.X)
    filled = fill(block.X, np.zeros(block.X.shape[1]) if middle is None else middle) if gaps.any() else block.X
    weight = None if source.sample_weight is None else block.weight
    n_columns = block.X.shape[1]
    target, classes, ends = StreamingMoments.empty(1), (), np.array([[np.nan], [np.nan]])
    if source.task == "regression":
        if (np.abs(block.y) > LARGEST).any():
            raise InputError(
                f"Target {source.target!r} holds values beyond {LARGEST:g} or infinity from row {block.row[0] + 1} on, "
                "whose squares cannot be added up: correct or rescale it."
            )
        target = target.update(block.y[:, None], weight)
        ends = np.array([[block.y.min()], [block.y.max()]])
    else:
        classes = _known_classes(set(block.y.tolist()))
    chance = random_numbers(block.row, seed)
    order = np.argsort(chance, kind="stable")[:size]
    return Survey(
        StreamingMoments.empty(n_columns).update(filled, weight),
        target,
        len(block),
        gaps.sum(axis=0),
        np.hstack([np.stack([filled.min(axis=0), filled.max(axis=0)]), ends]),
        classes,
        None if block.group is None else np.unique(block.group_hash),
        block.take(order),
        chance[order],
    )


def _known_classes(labels: set[Any]) -> tuple[Any, ...]:
    if len(labels) > MOST_CLASSES:
        raise InputError(
            f"The target has more than {MOST_CLASSES} classes: check the target column, or use a regressor for numbers."
        )
    try:
        return tuple(sorted(labels))
    except TypeError as error:
        raise InputError(
            f"The target mixes labels of different types, such as text and numbers ({some(list(labels))}): use one."
        ) from error


def _sampled(one: Survey, other: Survey, size: int) -> Survey:
    """Return the first survey with the sample of both."""
    if len(one.chance) >= size and other.chance[0] > one.chance[-1]:
        return one
    chance = np.concatenate([one.chance, other.chance])
    order = np.argsort(chance, kind="stable")[:size]
    group = None if one.sample.group is None else np.concatenate([one.sample.group, other.sample.group])[order]
    X, y, weight, row = (np.concatenate([getattr(x.sample, part) for x in (one, other)])[order] for part in PARTS)
    return replace(one, sample=RowBlock(X, y, weight, group, row), chance=chance[order])
